//! What is remembered of the assignments that are tried to refute a relation.

use rustc_hash::FxHashMap;

use super::monomial::Atom;

/// Which attempts keep a relation, as far as somebody asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    /// A bit for each attempt that was looked at.
    asked: u32,
    /// A bit for each attempt that keeps the relation.
    holds: u32,
}

impl Kept {
    /// Whether an attempt keeps the relation, which is asked at most once.
    pub(super) fn by(&mut self, attempt: u64, keeps: impl FnOnce() -> bool) -> bool {
        let bit = 1 << attempt;
        if self.asked & bit == 0 {
            self.asked |= bit;
            self.holds |= if keeps() { bit } else { 0 };
        }
        self.holds & bit != 0
    }
}

/// What was found of the attempts under the present bounds.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// One for each relation.
    pub kept: Vec<Kept>,
    /// The values of floors and maxima, by attempt.
    pub values: Vec<FxHashMap<Atom, Option<i128>>>,
}

impl Attempts {
    /// From now on another value is drawn for a symbol; `relations` are the places of the relations that mention it.
    pub(super) fn redraw(&mut self, relations: &[usize]) {
        for &place in relations {
            if let Some(kept) = self.kept.get_mut(place) {
                *kept = Kept::default();
            }
        }
        self.values.clear();
    }
}
