//! Writes expressions as arithmetic that a Python evaluator with `floor`, `min`, `max` and `Mod` can parse. This file spells one form;
//! [`shorten`](super::shorten) chooses the form.
//!
//! `floor(a/b)` is the quotient rounded down. `ceil` is not used, because some readers do not support it. The canonical form has neither
//! `mod` nor `min`. Terms that make up `a − b·⌊a/b⌋`, `x − max(0, d)` or `y + max(0, d)` are written as `Mod(a, b)`, `min(x, x − d)` and
//! `max(y, y + d)`. Names that are no words, such as `S + 1`, are quoted.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Symbol;
use super::expr::Dim;
use super::monomial::{Atom, Floor, Monomial, Summand};
use super::parse::quoted;

/// Formats the canonical form, with symbols by number: `s0`, `s1`.
impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&write_sum(self, &Style::NUMBERED).text(false))
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&write_atom(self, &Style::NUMBERED).text)
    }
}

/// The style of a written expression.
pub(super) struct Style<'s> {
    pub(super) name: &'s dyn Fn(Symbol) -> Arc<str>,
    /// Converts an inner expression of an atom to the form that is shortest to write.
    pub(super) settle: &'s dyn Fn(&Dim) -> Dim,
    /// Writes an inner expression of an atom.
    pub(super) inner: &'s dyn Fn(&Dim) -> Rc<Sum>,
    /// A cache of written atoms, if there is one.
    pub(super) known: Option<&'s RefCell<FxHashMap<Atom, Part>>>,
    /// `true` if spaces are omitted, and `a//b` is written for `floor(a/b)`.
    pub(super) dense: bool,
}

impl Style<'_> {
    const NUMBERED: Style<'static> = Style {
        name: &|symbol| format!("s{}", symbol.0).into(),
        settle: &Dim::clone,
        inner: &|dim| Rc::new(write_sum(dim, &Style::NUMBERED)),
        known: None,
        dense: false,
    };
}

/// The precedence of a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Form {
    /// A name, a literal or a call.
    Whole,
    /// Has `**` outside of parentheses.
    Power,
    /// Has `*` outside of parentheses.
    Product,
    /// Begins with `//` outside of parentheses, possibly followed by `*`.
    Quotient,
}

/// A text without its sign.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) negative: bool,
    pub(super) text: String,
    pub(super) form: Form,
}

/// The summands, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum(pub(super) Vec<Part>);

impl Sum {
    pub(super) fn text(&self, dense: bool) -> String {
        let mut text = String::new();
        self.for_each_piece(dense, |piece| text.push_str(piece));
        text
    }

    /// Visits the pieces of the text in order. No name and no number extends over two pieces.
    pub(super) fn for_each_piece<'s>(&'s self, dense: bool, mut visit: impl FnMut(&'s str)) {
        let (plus, minus) = if dense { ("+", "-") } else { (" + ", " - ") };
        // A sum begins with a positive summand, if there is one.
        let first = self.0.iter().position(|part| !part.negative).unwrap_or(0);
        let rest = self.0.iter().enumerate().filter(|(index, _)| *index != first).map(|(_, part)| part);
        for (index, part) in self.0.get(first).into_iter().chain(rest).enumerate() {
            match (index, part.negative) {
                (0, false) => {}
                (0, true) => visit("-"),
                (_, false) => visit(plus),
                (_, true) => visit(minus),
            }
            // `−a//b` is the quotient of `−a`.
            match part.form == Form::Quotient && index == 0 && part.negative {
                true => ["(", &part.text, ")"].into_iter().for_each(&mut visit),
                false => visit(&part.text),
            }
        }
    }

    /// Returns the text as an operand of an operator with the precedence `form`, in parentheses if its own precedence is lower.
    pub(super) fn operand(&self, form: Form, dense: bool) -> String {
        let text = self.text(dense);
        match self.0.as_slice() {
            [part] if !part.negative && part.form <= form => text,
            _ => format!("({text})"),
        }
    }

    pub(super) fn negated(mut self) -> Sum {
        self.0.iter_mut().for_each(|part| part.negative = !part.negative);
        self
    }
}

/// `cofactor · name(arguments)`; without a name, the cofactor alone.
struct Piece {
    cofactor: Summand,
    call: Option<Call>,
}

struct Call {
    name: &'static str,
    arguments: Vec<Dim>,
}

/// Writes an expression in its present form, apart from `Mod`, `min` and `max`.
pub(super) fn write_sum(a: &Dim, style: &Style) -> Sum {
    if let Some(Atom::Symbol(symbol)) = a.as_atom() {
        let text = quoted(&(style.name)(*symbol)).into_owned();
        return Sum(vec![Part { negative: false, text, form: Form::Whole }]);
    }
    if let Some(value) = a.as_const() {
        return Sum(vec![Part { negative: value < 0, text: value.unsigned_abs().to_string(), form: Form::Whole }]);
    }
    let written = pieces_of(a, style).iter().map(|piece| write_piece(piece, style)).collect();
    Sum(written)
}

fn write_piece(piece: &Piece, style: &Style) -> Part {
    let coefficient = piece.cofactor.coefficient;
    let size = coefficient.unsigned_abs();
    let mut factors: Vec<(String, Form)> = Vec::new();
    if size != 1 || (piece.cofactor.monomial.is_one() && piece.call.is_none()) {
        // The absolute value of the least integer is not a valid literal.
        let text = if coefficient == i64::MIN { coefficient.to_string() } else { size.to_string() };
        factors.push((text, Form::Whole));
    }
    for factor in piece.cofactor.monomial.factors() {
        let atom = write_atom(&factor.atom, style);
        factors.push(match factor.exponent {
            0 | 1 => (atom.text, atom.form),
            exponent if atom.form == Form::Whole => (format!("{}**{exponent}", atom.text), Form::Power),
            exponent => (format!("({})**{exponent}", atom.text), Form::Power),
        });
    }
    if let Some(call) = &piece.call {
        factors.push((write_call(call.name, &call.arguments, style), Form::Whole));
    }
    Part { negative: coefficient < 0 && coefficient != i64::MIN, ..write_product(factors) }
}

/// Writes a product. `x*a//b` is the quotient of `x*a`, so only the first factor may be a quotient without parentheses.
pub(super) fn write_product(factors: Vec<(String, Form)>) -> Part {
    let (mut text, mut form) = (String::new(), Form::Whole);
    for (index, (factor, own)) in factors.into_iter().enumerate() {
        form = match index {
            0 => own,
            _ => form.max(Form::Product),
        };
        text.push_str(if index == 0 { "" } else { "*" });
        match index > 0 && own == Form::Quotient {
            true => text.extend(["(", &factor, ")"]),
            false => text.push_str(&factor),
        }
    }
    Part { negative: false, text, form }
}

pub(super) fn write_atom(atom: &Atom, style: &Style) -> Part {
    if let Some(written) = style.known.and_then(|known| known.borrow().get(atom).cloned()) {
        return written;
    }
    let written = write_new_atom(atom, style);
    if let Some(known) = style.known {
        known.borrow_mut().insert(atom.clone(), written.clone());
    }
    written
}

fn write_new_atom(atom: &Atom, style: &Style) -> Part {
    let whole = |text: String| Part { negative: false, text, form: Form::Whole };
    match atom {
        Atom::Symbol(symbol) => whole(quoted(&(style.name)(*symbol)).into_owned()),
        Atom::Floor(floor) => {
            let numerator = write_operand(&floor.numerator, Form::Quotient, style);
            let denominator = write_operand(&floor.denominator, Form::Whole, style);
            if style.dense {
                return Part { negative: false, text: format!("{numerator}//{denominator}"), form: Form::Quotient };
            }
            whole(format!("floor({numerator}/{denominator})"))
        }
        Atom::Max(members) => whole(write_call("max", members.as_slice(), style)),
    }
}

pub(super) fn write_call(name: &str, arguments: &[Dim], style: &Style) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{name}(");
    for (index, argument) in arguments.iter().enumerate() {
        text.push_str(match (index, style.dense) {
            (0, _) => "",
            (_, false) => ", ",
            (_, true) => ",",
        });
        text.push_str(&(style.inner)(argument).text(style.dense));
    }
    text.push(')');
    text
}

/// Writes an operand of a division.
fn write_operand(operand: &Dim, form: Form, style: &Style) -> String {
    match operand.as_atom() {
        Some(atom @ Atom::Symbol(_)) => write_atom(atom, style).text,
        _ => (style.inner)(operand).operand(form, style.dense),
    }
}

/// Returns the summands to write, in order. Terms that form a known function together are one summand.
fn pieces_of(a: &Dim, style: &Style) -> Vec<Piece> {
    let (mut rest, mut calls) = (a.clone(), Vec::new());
    // In reverse order, so that the tighter clamp of `S − max(0, S − 3) − max(0, S − 2)` becomes the minimum.
    let terms = a.terms();
    let holds_atom = |term: &&Summand| term.monomial.factors().iter().any(|f| !matches!(f.atom, Atom::Symbol(_)));
    for term in terms.iter().rev().filter(holds_atom) {
        let present = rest.terms().iter().any(|own| own == term);
        let call = present
            .then(|| term.monomial.factors().iter().find_map(|factor| as_call(&rest, term, &factor.atom, style)));
        if let Some((piece, remaining)) = call.flatten() {
            calls.push(piece);
            rest = remaining;
        }
    }
    let (constant, terms): (Vec<Summand>, Vec<Summand>) =
        rest.terms().iter().cloned().partition(|term| term.monomial.is_one());
    calls.reverse();
    let plain = |term| Piece { cofactor: term, call: None };
    terms.into_iter().map(plain).chain(calls).chain(constant.into_iter().map(plain)).collect()
}

/// Reads `term`, which has `atom` as a factor, as part of a call. Returns the call, and the remaining part of `sum`.
fn as_call(sum: &Dim, term: &Summand, atom: &Atom, style: &Style) -> Option<(Piece, Dim)> {
    if matches!(atom, Atom::Symbol(_)) || term.monomial.exponent_of(atom) > 1 {
        return None;
    }
    let cofactor = term.monomial.over(&Monomial::atom(atom.clone()))?;
    let cofactor = Summand { monomial: cofactor, coefficient: term.coefficient };
    let rest = sum.minus(&Dim::from_sorted(vec![term.clone()])?)?;
    match atom {
        Atom::Symbol(_) => None,
        Atom::Floor(floor) => as_modulo(&rest, &cofactor, floor),
        Atom::Max(members) => match members.as_slice() {
            [zero, difference] if zero.is_const(0) => as_extremum(&rest, &cofactor, &(style.settle)(difference)),
            others => as_large_extremum(&rest, cofactor, others),
        },
    }
}

/// Reads `n·a − n·b·⌊a/b⌋` as `n·Mod(a, b)`.
fn as_modulo(rest: &Dim, cofactor: &Summand, floor: &Floor) -> Option<(Piece, Dim)> {
    let terms = floor.denominator.terms();
    let [divisor] = &*terms else { return None };
    let coefficient = cofactor.coefficient.checked_neg()?;
    if coefficient.checked_rem(divisor.coefficient)? != 0 {
        return None;
    }
    let coefficient = coefficient.checked_div(divisor.coefficient)?;
    let cofactor = Summand { monomial: cofactor.monomial.over(&divisor.monomial)?, coefficient };
    let dividend = floor.numerator.times_term(&cofactor)?;
    if !dividend.terms().iter().all(|term| term.monomial.is_one() || holds(rest, term)) {
        return None;
    }
    let arguments = vec![floor.numerator.clone(), floor.denominator.clone()];
    Some((Piece { cofactor, call: Some(Call { name: "Mod", arguments }) }, rest.minus(&dividend)?))
}

/// Reads `n·x − n·max(0, d)` as `n·min(x, x − d)` and `n·y + n·max(0, d)` as `n·max(y, y + d)`. `x` takes as much of `d`, or `y` of `−d`,
/// as the sum contains.
fn as_extremum(rest: &Dim, cofactor: &Summand, difference: &Dim) -> Option<(Piece, Dim)> {
    let minimum = cofactor.coefficient < 0;
    // n·max(0, d) − n·d = n·max(0, −d), unless parsing the result would flatten it.
    let negated = difference.scaled(-1)?;
    let shift = negated.times_term(cofactor)?;
    let is_added = |term: &&Summand| term.coefficient > 0 && matches!(term.monomial.as_atom(), Some(Atom::Max(_)));
    if !minimum && shift.terms().iter().all(|t| holds(rest, t)) && negated.terms().iter().filter(is_added).count() != 1
    {
        let call = Call { name: "max", arguments: vec![Dim::constant(0), negated] };
        return Some((Piece { cofactor: cofactor.clone(), call: Some(call) }, rest.minus(&shift)?));
    }
    let cofactor = Summand { monomial: cofactor.monomial.clone(), coefficient: cofactor.coefficient.checked_abs()? };
    let sign = if minimum { 1 } else { -1 };
    let mut taken = Vec::new();
    for term in difference.terms().iter() {
        let own = term.scaled(sign)?;
        // Another maximum is not part of the base, because parsing the result would flatten it.
        let plain = !own.monomial.factors().iter().any(|factor| matches!(factor.atom, Atom::Max(_)));
        if plain && holds(rest, &own.times(&cofactor)?) {
            taken.push(own);
        }
    }
    if minimum && taken.is_empty() {
        return None;
    }
    let base = Dim::from_sorted(taken)?;
    let remaining = rest.minus(&base.times_term(&cofactor)?)?;
    let mut arguments = vec![base.plus_scaled(difference, -sign)?, base.clone()];
    // n·max(y, y + d) = −n·min(−y, −y − d), if that saves signs.
    if !minimum && base.leading().coefficient < 0 && !base.is_const(0) {
        arguments = arguments.iter().map(|argument| argument.scaled(-1)).collect::<Option<_>>()?;
        arguments.sort();
        let cofactor = cofactor.scaled(-1)?;
        return Some((Piece { cofactor, call: Some(Call { name: "min", arguments }) }, remaining));
    }
    arguments.sort();
    Some((Piece { cofactor, call: Some(Call { name: if minimum { "min" } else { "max" }, arguments }) }, remaining))
}

/// Reads `−n·max(mᵢ)` as `n·min(−mᵢ)`.
fn as_large_extremum(rest: &Dim, cofactor: Summand, members: &[Dim]) -> Option<(Piece, Dim)> {
    if cofactor.coefficient > 0 {
        return None;
    }
    let cofactor = Summand { monomial: cofactor.monomial, coefficient: cofactor.coefficient.checked_neg()? };
    let mut arguments = members.iter().map(|member| member.scaled(-1)).collect::<Option<Vec<_>>>()?;
    arguments.sort();
    Some((Piece { cofactor, call: Some(Call { name: "min", arguments }) }, rest.clone()))
}

/// Returns `true` if `sum` contains at least `part`: the same constant, or as much of the same monomial with the same sign.
fn holds(sum: &Dim, part: &Summand) -> bool {
    sum.terms().iter().any(|term| {
        let enough = term.coefficient.unsigned_abs() >= part.coefficient.unsigned_abs();
        let same = term.coefficient == part.coefficient;
        let same_sign = (term.coefficient < 0) == (part.coefficient < 0);
        term.monomial == part.monomial && if part.monomial.is_one() { same } else { same_sign && enough }
    })
}
