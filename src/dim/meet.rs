//! The broadcast size of several dims of one axis.
//!
//! In a valid broadcast, all dims that are not 1 are equal. So the result is 0 if one of them is 0, and otherwise the largest:
//! `max(a, b, …)·min(1, a, b, …)`. The broadcast of such formulas is the formula of all their parts, by the same argument. A scope
//! therefore remembers the parts of a formula, so that a further broadcast does not nest formulas.

use std::sync::Arc;

use super::expr::Dim;
use super::scope::Scope;

/// The most dims in one formula.
const MOST_PARTS: usize = 4;
/// The most terms of these dims in total.
const MOST_TERMS: usize = 40;

impl Scope {
    /// Returns the broadcast size of `a` and `b` in every run that succeeds. `None` if the formula would be too long.
    pub fn meet(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        let mut parts = self.parts_of(a);
        parts.extend(self.parts_of(b));
        parts.sort();
        parts.dedup();
        parts.retain(|part| !part.is_const(1));
        let mut index = 0;
        while let Some(part) = parts.get(index) {
            if parts.iter().any(|other| other != part && self.covers(other, part)) {
                parts.remove(index);
            } else {
                index = index.saturating_add(1);
            }
        }
        match parts.as_slice() {
            [] => return Some(Dim::constant(1)),
            [only] => return Some(only.clone()),
            _ => {}
        }
        let terms = parts.iter().map(Dim::term_count).fold(0, usize::saturating_add);
        if parts.len() > MOST_PARTS || terms > MOST_TERMS {
            return None;
        }
        let largest = self.try_max_of(parts.clone())?;
        let mut bounded = parts.clone();
        bounded.push(Dim::constant(1));
        let result = self.try_mul(&largest, &self.try_min_of(bounded)?)?;
        self.remember_parts(&result, Arc::from(parts));
        Some(result)
    }

    /// Assumes that the broadcast size `met` equals `large`, one of its parts. `max(a, b, …)·min(1, a, b, …) = a` implies that `a` and `b`
    /// broadcast to `a`: if `a = 1` then `b = 1`, and if `a > 1` then `1 ≤ b ≤ a`. Returns `true` if this is new.
    pub fn assume_met(&self, met: &Dim, large: &Dim) -> bool {
        let parts = self.recall_parts(met).filter(|parts| parts.contains(large));
        let others = parts.iter().flat_map(|parts| parts.iter()).filter(|&part| part != large);
        let news: Vec<Dim> = others.filter(|part| !self.covers(large, part)).cloned().collect();
        let mut is_new = false;
        for small in news {
            is_new |= self.note_covered(large, small);
        }
        is_new
    }

    /// Returns `true` if `part` is a part of the broadcast size `met`, and at least 2 if all its symbols are at least 1. Then `met` equals `part`.
    pub fn is_met_by(&self, met: &Dim, part: &Dim) -> bool {
        let is_part = self.recall_parts(met).is_some_and(|parts| parts.contains(part));
        let above_zero = part.symbols().into_iter().filter_map(|symbol| Dim::symbol(symbol).minus(&Dim::constant(1)));
        is_part && self.supposing(&above_zero.collect::<Vec<Dim>>(), || self.ge(part, &Dim::constant(2)).is_yes())
    }

    /// Returns `true` if the broadcast size of `large` and `small` is `large`, whenever the two broadcast. This holds for a symbol if
    /// `small` is 1 whenever the symbol is 1. In the other cases the symbol is the result: it is 0, or it is more than 1. So `min(64, S)`
    /// and `S` give `S`, and so do `S + 3·max(0, 1 − S)` and `S`.
    pub fn covers(&self, large: &Dim, small: &Dim) -> bool {
        if self.is_noted_covered(large, small) {
            return true;
        }
        let one = Dim::constant(1);
        let Some(symbol) = large.as_symbol().filter(|&symbol| small.mentions(symbol)) else { return false };
        let at_one = self.try_substitute(small, &|other| (other == symbol).then(|| one.clone()));
        at_one.is_some_and(|at_one| {
            self.ge(&at_one, &one).is_yes() && (self.le(&at_one, &one).is_yes() || self.le(small, large).is_yes())
        })
    }

    /// Returns the parts of a formula; any other dim is its only part.
    fn parts_of(&self, dim: &Dim) -> Vec<Dim> {
        self.recall_parts(dim).map_or_else(|| vec![dim.clone()], |parts| parts.to_vec())
    }
}
