//! Suppositions about the inputs, and the prover's open questions that each could decide.

use std::collections::{BTreeMap, BTreeSet};

use crate::dim::{Dim, Scope, Symbol, comparisons, divisors, is_word, least_common_multiple};
use crate::ir::{DeclaredType, Fact, Facts, Model};
use crate::ops::slice_cuts;
use crate::passes::{Assumption, relations_in_labels};

/// The most open questions that are considered.
const MOST_DOUBTS: usize = 400;
/// The largest lower bound that a user would plausibly give.
const LARGEST_BOUND: i64 = 512;
/// The largest multiple of a size, as models of images and streams need it.
const LARGEST_MULTIPLE: i64 = 64;
/// The most relations between sizes that are tried.
const MOST_RELATIONS: usize = 6;

/// The bounds of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub low: Option<i64>,
    pub high: Option<i64>,
    pub multiple: Option<i64>,
}

/// A possible fact about the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Supposition {
    /// The range of a size, by its name in `--dim`.
    Range(String, Range),
    /// A fixed size.
    Size(String, i64),
    /// A relation between sizes.
    Relation(String),
    /// The reading of input labels as expressions, as relations.
    Labels(Vec<String>),
}

impl Supposition {
    /// Returns the assumptions for the library.
    pub fn assumptions(&self) -> Vec<Assumption> {
        match self {
            Supposition::Range(name, range) => vec![Assumption::Dim(format!("{name}={}", range.text()))],
            Supposition::Size(name, size) => vec![Assumption::Dim(format!("{name}={size}"))],
            Supposition::Relation(text) => vec![Assumption::Relation(text.clone())],
            Supposition::Labels(relations) => relations.iter().cloned().map(Assumption::Relation).collect(),
        }
    }

    /// Returns the flag for the command line.
    pub fn flag(&self) -> String {
        match self {
            Supposition::Range(name, range) => format!("--dim {}", shell_word(&format!("{name}={}", range.text()))),
            Supposition::Size(name, size) => format!("--dim {}", shell_word(&format!("{name}={size}"))),
            Supposition::Relation(text) => format!("--assume {}", shell_word(text)),
            Supposition::Labels(_) => "--trust-input-names".to_string(),
        }
    }

    /// Describes the condition on runs.
    pub fn condition(&self) -> String {
        match self {
            Supposition::Size(name, size) => format!("{name} is {size}"),
            Supposition::Relation(text) => text.clone(),
            Supposition::Labels(relations) => relations.join(", "),
            Supposition::Range(name, range) => {
                let mut told = Vec::new();
                match (range.low, range.high) {
                    (Some(low), Some(high)) => told.push(format!("between {low} and {high}")),
                    (Some(low), None) => told.push(format!("at least {low}")),
                    (None, Some(high)) => told.push(format!("at most {high}")),
                    (None, None) => {}
                }
                told.extend(range.multiple.map(|multiple| format!("a multiple of {multiple}")));
                format!("{name} is {}", told.join(" and "))
            }
        }
    }
}

impl Range {
    fn text(&self) -> String {
        let bound = |bound: Option<i64>| bound.map_or_else(String::new, |bound| bound.to_string());
        let range = match (self.low, self.high) {
            (None, None) => String::new(),
            (low, high) => format!("{}..{}", bound(low), bound(high)),
        };
        let multiple = self.multiple.map_or_else(String::new, |multiple| format!(":{multiple}"));
        format!("{range}{multiple}")
    }

    pub fn is_empty(&self) -> bool {
        *self == Range::default()
    }
}

/// Quotes a word for a POSIX shell, if it needs quotes.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-=:+,/".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A symbolic dim of the inputs, and the candidates for its bounds.
#[derive(Clone, Debug)]
pub(super) struct Size {
    pub symbol: Symbol,
    /// The name in `--dim`.
    pub name: String,
    /// The first input and axis with the dim.
    pub place: (String, usize),
    /// The number of open questions about the dim.
    pub asked: usize,
    /// Lower bounds that decide open questions.
    pub lows: BTreeSet<i64>,
    /// Upper bounds that decide open questions.
    pub highs: BTreeSet<i64>,
    /// The least common multiple of its divisors; 1 without any.
    pub multiple: i64,
}

/// The candidates for suppositions about the inputs.
pub(super) struct Candidates {
    pub sizes: Vec<Size>,
    /// Relations between sizes, in the order of the questions.
    pub relations: Vec<String>,
    /// Sizes that may be equal.
    pub equalities: Vec<String>,
    /// Labels of inputs that parse as expressions, as relations.
    pub labels: Vec<String>,
}

impl Candidates {
    /// Collects the suppositions that could decide the open questions of folding `original` to `model`. Each expression in `open` must be at least 0
    /// so that a rule fires at a remaining node.
    pub fn new(original: &Model, model: &Model, facts: &Facts, open: Vec<Dim>) -> Self {
        let mut candidates = Candidates {
            sizes: sizes_of(original, facts),
            relations: Vec::new(),
            equalities: Vec::new(),
            labels: relations_in_labels(original, facts.scope()),
        };
        let scope = facts.scope();
        let mut doubts: Vec<Dim> = remains(model, facts);
        candidates.multiples(model, facts, &doubts);
        doubts.extend(open);
        doubts.extend(scope.doubts().into_iter().take(MOST_DOUBTS).map(|(slack, _)| slack));
        for slack in &doubts {
            candidates.note(scope, slack, true);
            // A question about several sizes may reduce to one about a single size: which member of a maximum is the largest.
            comparisons(slack).iter().for_each(|difference| candidates.note(scope, difference, false));
        }
        candidates
    }

    /// Returns the size with this `--dim` name or symbol name.
    pub fn size(&self, scope: &Scope, name: &str) -> Option<&Size> {
        self.sizes.iter().find(|size| size.name == name || &*scope.name(size.symbol) == name)
    }

    /// Collects the divisors of sizes; for a nested division, the product.
    fn multiples(&mut self, model: &Model, facts: &Facts, more: &[Dim]) {
        let values = model.graph(model.main()).nodes().filter_map(|id| model.node(id));
        let facts = values.flat_map(|node| node.outputs().iter().flatten()).filter_map(|&value| facts.get(value));
        let mut found: BTreeMap<Symbol, i64> = BTreeMap::new();
        let mut divided: Vec<(Dim, i64)> = Vec::new();
        for fact in facts {
            for dim in fact.shape().into_iter().flatten().filter(|dim| dim.as_symbol().is_none()) {
                divided.extend(divisors(dim));
            }
        }
        divided.extend(more.iter().flat_map(divisors));
        for (numerator, divisor) in divided {
            for symbol in numerator.symbols() {
                let known = found.entry(symbol).or_insert(1);
                if let Some(multiple) = least_common_multiple(*known, divisor).filter(|all| *all <= LARGEST_MULTIPLE) {
                    *known = multiple;
                }
            }
        }
        for size in &mut self.sizes {
            size.multiple = found.get(&size.symbol).copied().unwrap_or(1);
        }
    }

    /// Records bounds that could decide whether `slack` is at least 0: of one size, and with `relates` of several.
    fn note(&mut self, scope: &Scope, slack: &Dim, relates: bool) {
        let symbols: Vec<Symbol> = slack.symbols().into_iter().collect();
        let known: Vec<usize> =
            symbols.iter().filter_map(|symbol| self.sizes.iter().position(|size| size.symbol == *symbol)).collect();
        if known.len() < symbols.len() || known.is_empty() {
            return;
        }
        if let [only] = known.as_slice() {
            let Some(size) = self.sizes.get_mut(*only) else { return };
            size.asked += 1;
            let mut multiples = vec![1];
            multiples.extend(Some(size.multiple).filter(|multiple| *multiple > 1));
            for multiple in multiples {
                let (low, high) = thresholds(slack, size.symbol, multiple);
                let high = high.filter(|_| relates);
                let other = if relates { None } else { slack_below(slack, size.symbol, multiple) };
                let low = low.or(other);
                size.lows.extend(low.filter(|low| (1..=LARGEST_BOUND).contains(low)));
                size.highs.extend(high.filter(|high| *high >= 2));
            }
            return;
        }
        if relates {
            self.relation(scope, slack);
        }
    }

    /// Records a relation. Only sizes with declared names can occur in one.
    fn relation(&mut self, scope: &Scope, slack: &Dim) {
        let is_named = |symbol: Symbol| {
            let size = self.sizes.iter().find(|size| size.symbol == symbol);
            size.is_some_and(|size| is_word(&size.name) && *size.name == *scope.name(symbol))
        };
        if slack.term_count() > 4 || !slack.symbols().into_iter().all(is_named) {
            return;
        }
        let symbols: Vec<Symbol> = slack.symbols().into_iter().collect();
        if let [a, b] = symbols.as_slice() {
            let (left, right) = (Dim::symbol(*a), Dim::symbol(*b));
            let difference = scope.sub(&left, &right);
            let is_difference = [difference.clone(), scope.neg(&difference)]
                .iter()
                .any(|difference| scope.sub(slack, difference).as_const().is_some_and(|rest| (-1..=0).contains(&rest)));
            if is_difference {
                let text = format!("{} == {}", scope.format(&left), scope.format(&right));
                if !self.equalities.contains(&text) {
                    self.equalities.push(text);
                }
            }
        }
        // No user would suppose a relation that only holds for tiny sizes.
        let holds = |even: i64, odd: i64| {
            let value = |symbol: Symbol| symbols.iter().position(|other| *other == symbol);
            slack
                .evaluate(&|symbol| value(symbol).map(|at| if at % 2 == 0 { even } else { odd }))
                .is_some_and(|slack| slack >= 0)
        };
        if ![(8, 8), (8, 64), (64, 8)].iter().any(|&(even, odd)| holds(even, odd)) {
            return;
        }
        let text = scope.inequality(slack);
        if self.relations.len() < MOST_RELATIONS && !self.relations.contains(&text) {
            self.relations.push(text);
        }
    }
}

/// Returns the differences that must be at least 0 so that a Slice selects the whole axis.
fn remains(model: &Model, facts: &Facts) -> Vec<Dim> {
    let mut found = Vec::new();
    for id in model.graph(model.main()).nodes().filter(|&id| model.node(id).is_some_and(|node| node.is("Slice"))) {
        let Some(cuts) = slice_cuts(model, facts, id) else { continue };
        for (axis, cut) in cuts.cut() {
            let both = cut.exact.as_ref().zip(cuts.dims.get(axis));
            found.extend(
                both.map(|((_, len), dim)| facts.scope().sub(len, dim)).filter(|rest| rest.as_const().is_none()),
            );
        }
    }
    found
}

/// Returns the symbolic dims of the inputs.
fn sizes_of(original: &Model, facts: &Facts) -> Vec<Size> {
    let mut sizes: Vec<Size> = Vec::new();
    for &value in original.graph(original.main()).inputs() {
        let place = original.value(value);
        let declared = place.declared.as_ref().and_then(DeclaredType::shape);
        for (axis, dim) in facts.get(value).and_then(Fact::shape).into_iter().flatten().enumerate() {
            let Some(symbol) = dim.as_symbol().filter(|symbol| sizes.iter().all(|size| size.symbol != *symbol)) else {
                continue;
            };
            let named = declared.and_then(|dims| dims.get(axis)).and_then(|dim| dim.claim.name());
            let name = named.map_or_else(|| format!("{}[{axis}]", place.name), str::to_string);
            let place = (place.name.to_string(), axis);
            let (lows, highs) = (BTreeSet::new(), BTreeSet::new());
            sizes.push(Size { symbol, name, place, asked: 0, lows, highs, multiple: 1 });
        }
    }
    sizes
}

/// Returns the lower threshold of the negated expression.
fn slack_below(slack: &Dim, symbol: Symbol, multiple: i64) -> Option<i64> {
    let negated = |value: i64| slack.evaluate(&|other| (other == symbol).then_some(value))?.checked_neg();
    thresholds_of(&negated, multiple).0
}

/// Returns the lower and upper thresholds from and up to which an expression in one symbol is at least 0, at multiples of `multiple`. Samples
/// numbers: a threshold is a candidate, not a proof.
pub(super) fn thresholds(slack: &Dim, symbol: Symbol, multiple: i64) -> (Option<i64>, Option<i64>) {
    thresholds_of(&|value| slack.evaluate(&|other| (other == symbol).then_some(value)), multiple)
}

fn thresholds_of(value_at: &dyn Fn(i64) -> Option<i64>, multiple: i64) -> (Option<i64>, Option<i64>) {
    // The last ones are primes, so that no expression that needs a multiple holds at all of them.
    const SOME: [i64; 20] = [
        40,
        48,
        56,
        64,
        96,
        128,
        192,
        256,
        384,
        512,
        1000,
        1024,
        4096,
        10_007,
        100_003,
        1_000_003,
        10_000_019,
        100_000_007,
        1_000_000_007,
        1_000_000_000_039,
    ];
    let holds = |value: i64| Some(value_at(value.checked_mul(multiple)?)? >= 0);
    let samples: Vec<i64> = (0..=34).chain(SOME).collect();
    // Beyond some size, the expression exceeds 64 bits.
    let held: Vec<bool> = samples.iter().map_while(|&value| holds(value)).collect();
    let between = |at: usize, rises: bool| {
        let (mut from, mut to) = (*samples.get(at)?, *samples.get(at.checked_add(1)?)?);
        while to - from > 1 {
            let middle = from + (to - from) / 2;
            if holds(middle)? == rises { to = middle } else { from = middle }
        }
        if rises { to } else { from }.checked_mul(multiple)
    };
    let (first, last) = (held.first() == Some(&true), held.last() == Some(&true));
    let low = held.iter().rposition(|holds| !holds).filter(|_| last).and_then(|at| between(at, true));
    let high = held.iter().position(|holds| !holds).filter(|_| first);
    (low, high.and_then(|at| between(at.checked_sub(1)?, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_where_the_sign_changes() {
        let scope = Scope::new();
        let symbol = scope.named("s");
        let found = |text: &str, multiple| thresholds(&scope.parse(text).unwrap(), symbol, multiple);
        assert_eq!(found("s - 7", 1), (Some(7), None));
        assert_eq!(found("1000 - 3*s", 1), (None, Some(333)));
        assert_eq!(found("floor((s - 22)/4)", 8), (Some(24), None));
        assert_eq!(found("s", 1), (None, None));
        // The expression holds only for multiples of 2, so it has no lower bound, and its upper bound is 0.
        assert_eq!(found("2*floor(s/2) - s", 1), (None, Some(0)));
        assert_eq!(found("2*floor(s/2) - s", 2), (None, None));
    }

    #[test]
    fn flags_are_words_of_a_shell() {
        let range = Range { low: Some(7), high: None, multiple: Some(8) };
        assert_eq!(Supposition::Range("s27".to_string(), range.clone()).flag(), "--dim s27=7..:8");
        assert_eq!(Supposition::Range("x[0]".to_string(), range).flag(), "--dim 'x[0]=7..:8'");
        assert_eq!(Supposition::Relation("a <= b".to_string()).flag(), "--assume 'a <= b'");
        assert_eq!(Supposition::Size("it's".to_string(), 1).flag(), "--dim 'it'\\''s=1'");
    }
}
