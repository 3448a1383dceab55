//! Finds counterexamples by sampling: if an expression is negative for one assignment, no search for a proof is needed.
//!
//! Sampled values only refute. Each assignment is within the bounds of each symbol; one that violates a given relation is discarded. The
//! values are the same on every run.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Symbol;
use super::attempts::{Attempts, Kept};
use super::expr::Dim;
use super::monomial::Atom;
use super::scope::{Scope, Table};

/// The number of assignments for one question; less than the number of bits in a `u32`.
const TRIES: u64 = 20;
/// The largest expression that is sampled; the proof search has the same limit.
const LARGEST: u32 = 256;
/// The most cached values of floors and maxima for each assignment.
const MAX_VALUES: usize = 1 << 11;
/// The most constants at which assignments start, and the most symbols that start there individually.
const MOST_STARTS: usize = 8;

/// One assignment.
struct Attempt<'t> {
    table: &'t Table,
    number: u64,
    values: &'t mut FxHashMap<Atom, Option<i128>>,
}

impl Attempt<'_> {
    fn value(&mut self, dim: &Dim) -> Option<i64> {
        i64::try_from(self.wide_value(dim)?).ok()
    }

    fn wide_value(&mut self, dim: &Dim) -> Option<i128> {
        dim.evaluate_over(|atom| self.atom_value(atom))
    }

    fn atom_value(&mut self, atom: &Atom) -> Option<i128> {
        if let Atom::Symbol(symbol) = atom {
            return drawn(self.table, *symbol, self.number).map(i128::from);
        }
        if let Some(known) = self.values.get(atom) {
            return *known;
        }
        let value = atom.evaluate(|inner| self.wide_value(inner));
        if self.values.len() >= MAX_VALUES {
            self.values.clear();
        }
        self.values.insert(atom.clone(), value);
        value
    }
}

/// The signs that an expression has at the sampled assignments.
#[derive(Clone, Copy, Default)]
pub(super) struct Signs {
    pub(super) negative: bool,
    pub(super) zero: bool,
    pub(super) positive: bool,
}

impl Signs {
    /// Returns `true` if there is more than one sign. Then no statement about the sign holds for all assignments or for none.
    pub(super) fn is_mixed(self) -> bool {
        u8::from(self.negative) + u8::from(self.zero) + u8::from(self.positive) > 1
    }
}

impl Scope {
    /// Returns `true` if an assignment within the known facts makes `a` negative.
    pub(super) fn is_refuted(&self, a: &Dim) -> bool {
        self.signs(a, |signs| signs.negative).negative
    }

    /// Returns `true` if an assignment within the known facts moves `a` out of these bounds, both included.
    pub(super) fn leaves(&self, a: &Dim, least: i64, most: i64) -> bool {
        let mut leaves = false;
        self.try_assignments(a, |value, is_allowed| {
            leaves = !(i128::from(least)..=i128::from(most)).contains(&value) && is_allowed();
            leaves
        });
        leaves
    }

    /// Returns the signs of `a` at assignments within the known facts, until `enough` returns `true`.
    pub(super) fn signs(&self, a: &Dim, enough: impl Fn(Signs) -> bool) -> Signs {
        let mut signs = Signs::default();
        self.try_assignments(a, |value, is_allowed| {
            if i64::try_from(value).is_err() {
                return false;
            }
            let seen = match value.cmp(&0) {
                Ordering::Less => &mut signs.negative,
                Ordering::Equal => &mut signs.zero,
                Ordering::Greater => &mut signs.positive,
            };
            *seen = *seen || is_allowed();
            enough(signs)
        });
        signs
    }

    /// Calls `see` with the value of `a` at each assignment, until `see` returns `true`. The second argument is a function that returns
    /// `true` if the assignment satisfies the relations.
    fn try_assignments(&self, a: &Dim, mut see: impl FnMut(i128, &mut dyn FnMut() -> bool) -> bool) {
        if a.size() > LARGEST {
            return;
        }
        let mut attempts = self.attempts.borrow_mut();
        let Attempts { kept, values } = &mut *attempts;
        self.with_table(|table| {
            kept.resize(table.relations.len(), Kept::default());
            values.resize_with(TRIES as usize, FxHashMap::default);
            let about: SmallVec<[(usize, &Dim); 16]> = table.relations.about(a).collect();
            for (number, values) in (0..TRIES).zip(values) {
                let mut attempt = Attempt { table, number, values };
                let Some(value) = attempt.wide_value(a) else { continue };
                // Only the relations about the symbols of `a` matter, and only if `see` needs them.
                let mut is_allowed = || {
                    about.iter().all(|&(place, relation)| {
                        let holds = || attempt.value(relation).is_some_and(|value| value >= 0);
                        kept.get_mut(place).is_some_and(|kept| kept.by(number, holds))
                    })
                };
                if see(value, &mut is_allowed) {
                    break;
                }
            }
        });
    }
}

impl Scope {
    /// Returns `true` if an assignment within the known facts makes `a` and `b` different. The assignments are the usual ones, and those
    /// near the constants of both expressions: `min(s, 5000)` and `s` differ from 5001 on only.
    pub fn differs_somewhere(&self, a: &Dim, b: &Dim) -> bool {
        let [a, b] = [a, b].map(|dim| self.sum([dim]));
        let Some(difference) = self.try_sub(&a, &b) else { return false };
        if let Some(difference) = difference.as_const() {
            return difference != 0;
        }
        let is_not_zero = |scope: &Scope| {
            let signs = scope.signs(&difference, |signs| signs.negative || signs.positive);
            signs.negative || signs.positive
        };
        if is_not_zero(self) {
            return true;
        }
        if self.eq(&a, &b).is_yes() {
            return false;
        }
        let symbols = difference.symbols();
        let starts = difference.constants().into_iter().filter(|start| *start > 1).take(MOST_STARTS);
        let choices = starts.flat_map(|start| {
            let single = symbols.iter().take(MOST_STARTS).map(|&symbol| vec![symbol]);
            single.chain([symbols.iter().copied().collect()]).map(move |chosen: Vec<Symbol>| (start, chosen))
        });
        choices.into_iter().any(|(start, chosen)| {
            let beyond = self.copied();
            chosen.iter().for_each(|&symbol| beyond.restrict(symbol, Some(start), None));
            beyond.impossible().is_none() && is_not_zero(&beyond)
        })
    }
}

/// Returns a value for a symbol: its lower bound plus the distance of this assignment, or its upper bound minus the distance.
fn drawn(table: &Table, symbol: Symbol, attempt: u64) -> Option<i64> {
    let interval = table.interval(symbol);
    let step = i128::from(distance(symbol, attempt));
    let value = match (interval.low, interval.high) {
        (Some(low), _) => low.checked_add(step)?,
        (None, Some(high)) => high.checked_sub(step)?,
        // An unbounded symbol gets values of both signs.
        (None, None) => step / 2 * if step % 2 == 0 { 1 } else { -1 },
    };
    let multiple = i128::from(table.multiple(symbol));
    let value =
        if multiple > 1 { value.checked_add(multiple - 1)?.div_euclid(multiple).checked_mul(multiple)? } else { value };
    let within = interval.low.is_none_or(|low| value >= low) && interval.high.is_none_or(|high| value <= high);
    i64::try_from(value).ok().filter(|_| within)
}

/// Returns the distance of a symbol from its bound: equal for all symbols in the first assignments, different afterwards.
fn distance(symbol: Symbol, attempt: u64) -> u64 {
    const EQUAL: [u64; 8] = [0, 1, 2, 3, 6, 15, 100, 1001];
    const SPANS: [u64; 4] = [3, 8, 40, 2000];
    if let Some(&distance) = usize::try_from(attempt).ok().and_then(|attempt| EQUAL.get(attempt)) {
        return distance;
    }
    let mixed = (u64::from(symbol.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(attempt);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
    SPANS.get((attempt % 4) as usize).map_or(0, |span| mixed % span)
}
