//! Parses expressions. The text may be part of a file, so its length and nesting are bounded, and a failed parse leaves nothing in the
//! scope.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = unary { ("*" | "/" | "//" | "%") unary }
//! unary   = { "+" | "-" } power
//! power   = primary [ "**" integer ]
//! primary = integer | name | word "(" sum { "," sum } ")" | "(" sum ")"
//! name    = word | '"' any text '"' | "'" any text "'"
//! ```
//!
//! A word is a letter or `_` followed by letters, digits and `_ . : $`, without two dots in a row. Any other name is quoted, with quotes
//! inside doubled.
//!
//! The functions are `floor`, `ceil`, `ceiling`, `abs`, `min`, `max` and `mod`, the last three also capitalized. A quotient `a/b` is exact:
//! it is valid as the direct argument of `floor` or `ceil`, or if `b` divides `a`.

use std::borrow::Cow;

use super::expr::Dim;
use super::monomial::MAX_DEGREE;
use super::scope::Scope;

/// The most bytes in one expression.
const MAX_TEXT: usize = 1 << 16;
/// The deepest nesting of parentheses. Each level of a written expression takes two.
const MAX_NESTING: u32 = 160;

impl Scope {
    /// Parses an expression. `None` for a syntax error, or if the value cannot be expressed (overflow, or a divisor that may be zero). A
    /// name is the symbol that [`named`](Scope::named) returns. A failed parse creates no symbols.
    pub fn parse(&self, text: &str) -> Option<Dim> {
        self.value_of(&Tree::read(text)?)
    }

    /// Parses an expression in which every name is known.
    pub fn parse_over(&self, text: &str, is_known: &dyn Fn(&str) -> bool) -> Option<Dim> {
        let tree = Tree::read(text)?;
        tree.names().all(is_known).then(|| self.value_of(&tree)).flatten()
    }

    /// Parses an expression with at least one name, in which every name is known. A number has no name.
    pub fn parse_known(&self, text: &str, is_known: &dyn Fn(&str) -> bool) -> Option<Dim> {
        let tree = Tree::read(text)?;
        let mut names = tree.names().peekable();
        names.peek()?;
        names.all(is_known).then(|| self.value_of(&tree)).flatten()
    }

    fn value_of(&self, tree: &Tree<'_>) -> Option<Dim> {
        let before = self.symbol_count();
        let value = tree.evaluate(self);
        if value.is_none() && self.symbol_count() > before {
            self.truncate(before);
        }
        value
    }
}

#[derive(Clone, Copy)]
enum Function {
    Floor,
    Ceil,
    Abs,
    Min,
    Max,
    Mod,
}

impl Function {
    fn named(name: &str) -> Option<Function> {
        Some(match name {
            "floor" => Function::Floor,
            "ceil" | "ceiling" => Function::Ceil,
            "abs" | "Abs" => Function::Abs,
            "min" | "Min" => Function::Min,
            "max" | "Max" => Function::Max,
            "mod" | "Mod" => Function::Mod,
            _ => return None,
        })
    }
}

/// An operation on earlier nodes, so that evaluation is one pass from the front.
enum Node<'t> {
    Literal(i128),
    Name(Cow<'t, str>),
    /// Operands, each with `true` if it is subtracted.
    Sum(Vec<(usize, bool)>),
    Product(usize, usize),
    Quotient(usize, usize),
    FloorDivision(usize, usize),
    Power(usize, u32),
    Call(Function, Vec<usize>),
}

/// The value of a node. A quotient is kept as such until its parent is evaluated.
enum Value {
    Whole(Dim),
    Quotient(Dim, Dim),
}

struct Tree<'t> {
    nodes: Vec<Node<'t>>,
    text: &'t str,
    nesting: u32,
}

impl<'t> Tree<'t> {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Name(name) => Some(&**name),
            _ => None,
        })
    }

    fn read(text: &'t str) -> Option<Tree<'t>> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let mut tree = Tree { nodes: Vec::new(), text, nesting: 0 };
        tree.sum()?;
        tree.skip_space();
        tree.text.is_empty().then_some(tree)
    }

    fn push(&mut self, node: Node<'t>) -> usize {
        self.nodes.push(node);
        self.nodes.len().saturating_sub(1)
    }

    fn skip_space(&mut self) {
        self.text = self.text.trim_start();
    }

    /// Consumes `token` if it is next.
    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let rest = self.text.strip_prefix(token);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'t str {
        let end = self.text.find(|letter| !accept(letter)).unwrap_or(self.text.len());
        let (taken, rest) = self.text.split_at_checked(end).unwrap_or((self.text, ""));
        self.text = rest;
        taken
    }

    fn sum(&mut self) -> Option<usize> {
        let first = self.product()?;
        let mut operands = vec![(first, false)];
        loop {
            let subtracted = if self.take("+") {
                false
            } else if self.take("-") {
                true
            } else {
                break;
            };
            operands.push((self.product()?, subtracted));
        }
        if operands.len() == 1 { Some(first) } else { Some(self.push(Node::Sum(operands))) }
    }

    fn product(&mut self) -> Option<usize> {
        let mut left = self.unary()?;
        loop {
            // `power` has consumed `**` where it is valid.
            let node: fn(usize, usize) -> Node<'t> = if self.take("//") {
                Node::FloorDivision
            } else if self.take("/") {
                Node::Quotient
            } else if self.take("%") {
                |a, b| Node::Call(Function::Mod, vec![a, b])
            } else if self.take("*") {
                Node::Product
            } else {
                return Some(left);
            };
            let right = self.unary()?;
            left = self.push(node(left, right));
        }
    }

    fn unary(&mut self) -> Option<usize> {
        let mut negative = false;
        loop {
            if self.take("-") {
                negative = !negative;
            } else if !self.take("+") {
                break;
            }
        }
        let operand = self.power()?;
        if !negative {
            return Some(operand);
        }
        if let Some(Node::Literal(value)) = self.nodes.get_mut(operand) {
            *value = value.checked_neg()?;
            return Some(operand);
        }
        Some(self.push(Node::Sum(vec![(operand, true)])))
    }

    fn power(&mut self) -> Option<usize> {
        let base = self.primary()?;
        if !self.take("**") {
            return Some(base);
        }
        self.skip_space();
        let exponent: u32 = self.take_while(|letter| letter.is_ascii_digit()).parse().ok()?;
        if exponent > MAX_DEGREE || self.take("**") {
            return None;
        }
        Some(self.push(Node::Power(base, exponent)))
    }

    fn primary(&mut self) -> Option<usize> {
        self.skip_space();
        if self.text.starts_with(|letter: char| letter.is_ascii_digit()) {
            let digits = self.take_while(|letter| letter.is_ascii_digit());
            if self.text.starts_with(is_name_letter) {
                return None;
            }
            let value: i128 = digits.parse().ok()?;
            return Some(self.push(Node::Literal(value)));
        }
        if let Some(quote) = ['"', '\''].into_iter().find(|&quote| self.text.starts_with(quote)) {
            let name = self.quoted(quote)?;
            return Some(self.push(Node::Name(name)));
        }
        if self.text.starts_with(is_name_letter) {
            let name = Some(self.take_while(is_word_letter)).filter(|name| is_word(name))?;
            if !self.take("(") {
                return Some(self.push(Node::Name(name.into())));
            }
            let function = Function::named(name)?;
            let arguments = self.arguments()?;
            return Some(self.push(Node::Call(function, arguments)));
        }
        if !self.take("(") {
            return None;
        }
        match self.arguments()?.as_slice() {
            [inner] => Some(*inner),
            _ => None,
        }
    }

    /// Parses a name in quotes.
    fn quoted(&mut self, quote: char) -> Option<Cow<'t, str>> {
        let mut name = Cow::Borrowed("");
        loop {
            // Two quotes in a row are one quote of the name.
            self.text = self.text.strip_prefix(quote)?;
            name += self.take_while(|letter| letter != quote);
            self.text = self.text.strip_prefix(quote)?;
            if !self.text.starts_with(quote) {
                return (!name.is_empty()).then_some(name);
            }
            name += if quote == '"' { "\"" } else { "'" };
        }
    }

    /// Parses arguments up to the closing parenthesis.
    fn arguments(&mut self) -> Option<Vec<usize>> {
        if self.nesting >= MAX_NESTING {
            return None;
        }
        self.nesting = self.nesting.saturating_add(1);
        let mut arguments = vec![self.sum()?];
        while self.take(",") {
            arguments.push(self.sum()?);
        }
        self.nesting = self.nesting.saturating_sub(1);
        self.take(")").then_some(arguments)
    }

    fn evaluate(&self, scope: &Scope) -> Option<Dim> {
        let mut values: Vec<Value> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let value = evaluate_node(scope, node, &values)?;
            values.push(value);
        }
        whole(scope, values.last()?)
    }
}

fn is_name_letter(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// Returns `true` if a letter may follow the first one of a word.
fn is_word_letter(letter: char) -> bool {
    is_name_letter(letter) || ['.', ':', '$'].contains(&letter)
}

/// Returns `true` if `text` reads back as one name without quotes, alone or as a part of an expression.
pub fn is_word(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first == '_' || first.is_alphabetic())
        && letters.all(is_word_letter)
        && !text.contains("..")
}

/// Returns a name as it is written in an expression: in quotes unless it is a word.
pub fn quoted(name: &str) -> Cow<'_, str> {
    if is_word(name) { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")).into() }
}

/// Returns the value as an integer: a quotient must be exact.
fn whole(scope: &Scope, value: &Value) -> Option<Dim> {
    match value {
        Value::Whole(value) => Some(value.clone()),
        Value::Quotient(a, b) => scope.exact_div(a, b),
    }
}

fn evaluate_node(scope: &Scope, node: &Node, values: &[Value]) -> Option<Value> {
    let get = |index: &usize| whole(scope, values.get(*index)?);
    Some(Value::Whole(match node {
        Node::Literal(value) => Dim::constant(i64::try_from(*value).ok()?),
        Node::Name(name) => scope.resolve(&Dim::symbol(scope.named(name))),
        Node::Sum(operands) => {
            let signed = operands.iter().map(|(index, subtracted)| {
                let operand = get(index)?;
                if *subtracted { scope.try_neg(&operand) } else { Some(operand) }
            });
            scope.try_sum(&signed.collect::<Option<Vec<_>>>()?)?
        }
        Node::Product(a, b) => scope.try_mul(&get(a)?, &get(b)?)?,
        Node::Quotient(a, b) => return Some(Value::Quotient(get(a)?, get(b)?)),
        Node::FloorDivision(a, b) => scope.try_floor_div(&get(a)?, &get(b)?)?,
        Node::Power(base, exponent) => {
            let base = get(base)?;
            (0..*exponent).try_fold(Dim::constant(1), |power, _| scope.try_mul(&power, &base))?
        }
        Node::Call(function, arguments) => call(scope, *function, arguments, values)?,
    }))
}

fn call(scope: &Scope, function: Function, arguments: &[usize], values: &[Value]) -> Option<Dim> {
    if let (Function::Floor | Function::Ceil, [only]) = (function, arguments) {
        return match values.get(*only)? {
            Value::Whole(value) => Some(value.clone()),
            Value::Quotient(a, b) if matches!(function, Function::Floor) => scope.try_floor_div(a, b),
            Value::Quotient(a, b) => scope.try_ceil_div(a, b),
        };
    }
    let operands = arguments.iter().map(|index| whole(scope, values.get(*index)?)).collect::<Option<Vec<_>>>()?;
    match (function, operands.as_slice()) {
        (Function::Abs, [a]) => scope.try_abs(a),
        (Function::Mod, [a, b]) => scope.try_modulo(a, b),
        (Function::Max, [_, ..]) => scope.try_max_of(operands),
        (Function::Min, [_, ..]) => scope.try_min_of(operands),
        _ => None,
    }
}
