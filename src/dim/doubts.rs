//! Which questions the prover could not answer, for whoever can ask the user instead.

use rustc_hash::FxHashMap;

use super::expr::Dim;
use super::monomial::Atom;

/// Questions beyond this many are not noted.
const MOST: usize = 4096;
/// Nor are those about larger expressions: nobody could say more about them than the prover.
const LARGEST: u32 = 64;

/// Expressions that could not be proved to be at least 0, and how often that was asked.
#[derive(Debug, Default)]
pub(super) struct Doubts(FxHashMap<Dim, usize>);

impl Doubts {
    /// Notes that `a ≥ goal` is not proved.
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

    /// All of them, in no order.
    pub(super) fn all(&self) -> Vec<(Dim, usize)> {
        self.0.iter().map(|(slack, times)| (slack.clone(), *times)).collect()
    }
}

/// What the members of maxima inside `a` differ by: which of them is the largest is a question.
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

/// The numbers that expressions are divided by inside `a`, each with the expression that is divided.
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
