//! A cache of the assignments that are tried to refute a relation.

use rustc_hash::FxHashMap;

use super::monomial::Atom;

/// The assignments that satisfy a relation, as far as they have been checked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    /// One bit for each checked assignment.
    asked: u32,
    /// One bit for each assignment that satisfies the relation.
    holds: u32,
}

impl Kept {
    /// Returns `true` if an assignment satisfies the relation. `keeps` is called at most once.
    pub(super) fn by(&mut self, attempt: u64, keeps: impl FnOnce() -> bool) -> bool {
        let bit = 1 << attempt;
        if self.asked & bit == 0 {
            self.asked |= bit;
            self.holds |= if keeps() { bit } else { 0 };
        }
        self.holds & bit != 0
    }
}

/// The results for all assignments under the present bounds.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// One entry for each relation.
    pub kept: Vec<Kept>,
    /// The values of floors and maxima, by attempt.
    pub values: Vec<FxHashMap<Atom, Option<i128>>>,
}

impl Attempts {
    /// Forgets the results that depend on a symbol, because its value changes; `relations` are the indices of the relations that mention
    /// it.
    pub(super) fn redraw(&mut self, relations: &[usize]) {
        for &place in relations {
            if let Some(kept) = self.kept.get_mut(place) {
                *kept = Kept::default();
            }
        }
        self.values.clear();
    }
}
