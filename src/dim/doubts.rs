//! The questions that the prover could not answer, so that `explain` can ask the user.

use rustc_hash::FxHashMap;

use super::expr::Dim;
use super::monomial::Atom;

/// The most questions that are recorded.
const MOST: usize = 4096;
/// The largest recorded expression: a user could not decide a larger one either.
const LARGEST: u32 = 64;

/// Expressions that could not be proved to be at least 0, with the number of questions.
#[derive(Debug, Default)]
pub(super) struct Doubts(FxHashMap<Dim, usize>);

impl Doubts {
    /// Records that `a ≥ goal` is not proved.
    pub(super) fn note(&mut self, a: &Dim, goal: i64) {
        if a.as_const().is_some() || a.size() > LARGEST {
            return;
        }
        let Some(slack) = a.minus(&Dim::constant(goal)) else { return };
        if let Some(times) = self.0.get_mut(&slack) {
            *times += 1;
        } else if self.0.len() < MOST {
            self.0.insert(slack, 1);
        }
    }

    /// Returns all of them, unordered.
    pub(super) fn all(&self) -> Vec<(Dim, usize)> {
        self.0.iter().map(|(slack, times)| (slack.clone(), *times)).collect()
    }
}

/// Returns the differences between members of the maxima inside `a`. Their signs decide which member is the largest.
pub fn comparisons(a: &Dim) -> Vec<Dim> {
    const MEMBERS: usize = 6;
    let mut found = Vec::new();
    let mut open = vec![a.clone()];
    while let Some(dim) = open.pop() {
        for atom in dim.terms().iter().flat_map(|term| term.monomial.factors()).map(|factor| &factor.atom) {
            if let Atom::Max(members) = atom {
                let members: Vec<&Dim> = members.iter().take(MEMBERS).collect();
                for (at, one) in members.iter().enumerate() {
                    found.extend(members.iter().skip(at + 1).filter_map(|other| one.minus(other)));
                }
            }
            open.extend(atom.inner().cloned());
        }
    }
    found
}

/// Returns the constant divisors inside `a`, each with its dividend.
pub fn divisors(a: &Dim) -> Vec<(Dim, i64)> {
    let mut found = Vec::new();
    let mut open = vec![a.clone()];
    while let Some(dim) = open.pop() {
        for atom in dim.terms().iter().flat_map(|term| term.monomial.factors()).map(|factor| &factor.atom) {
            if let Atom::Floor(floor) = atom
                && let Some(divisor) = floor.denominator.as_const().filter(|divisor| *divisor > 1)
            {
                found.push((floor.numerator.clone(), divisor));
            }
            open.extend(atom.inner().cloned());
        }
    }
    found
}
