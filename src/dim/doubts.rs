//! Which questions the prover could not answer, for whoever can ask the user instead.

use rustc_hash::FxHashMap;

use super::expr::Dim;
use super::monomial::{Atom, Summand};
use super::scope::Scope;

/// Questions beyond this many are not noted.
const MOST: usize = 4096;
/// Nor are those about larger expressions: nobody could say more about them than the prover.
const LARGEST: u32 = 64;

/// Expressions that could not be proved to be at least 0, and how often that was asked.
#[derive(Debug, Default)]
pub(super) struct Doubts(FxHashMap<Dim, usize>);

impl Scope {
    /// From now on the questions that the prover cannot answer are noted.
    pub fn note_doubts(&self) {
        self.doubts.replace(Some(Doubts::default()));
    }

    /// Notes that `a ≥ goal` is not proved.
    pub(super) fn doubt(&self, a: &Dim, goal: i64) {
        let mut doubts = self.doubts.borrow_mut();
        let Some(Doubts(known)) = doubts.as_mut() else { return };
        if a.as_const().is_some() || a.size() > LARGEST {
            return;
        }
        let Some(slack) = a.minus(&Dim::constant(goal)) else { return };
        if let Some(times) = known.get_mut(&slack) {
            *times += 1;
        } else if known.len() < MOST {
            known.insert(slack, 1);
        }
    }

    /// The expressions that could not be proved to be at least 0 since doubts are noted, those first that were asked about most often.
    pub fn doubts(&self) -> Vec<(Dim, usize)> {
        let doubts = self.doubts.borrow();
        let mut found: Vec<(Dim, usize)> = match doubts.as_ref() {
            Some(Doubts(known)) => known.iter().map(|(slack, times)| (slack.clone(), *times)).collect(),
            None => Vec::new(),
        };
        let order = |slack: &Dim| (slack.size(), self.format(slack));
        found.sort_by_cached_key(|(slack, times)| (std::cmp::Reverse(*times), order(slack)));
        found
    }
}

impl Scope {
    /// That `slack` is at least 0, with what it takes away on the other side: `a + b <= c`.
    pub fn inequality(&self, slack: &Dim) -> String {
        let (above, below): (Vec<Summand>, Vec<Summand>) =
            slack.terms().iter().cloned().partition(|term| term.coefficient > 0);
        let sum = |terms: Vec<Summand>, sign: i64| Dim::from_terms(terms)?.scaled(sign);
        match (sum(above, 1), sum(below, -1)) {
            (Some(above), Some(below)) if below.as_const().is_some() => {
                format!("{} >= {}", self.format(&above), self.format(&below))
            }
            (Some(above), Some(below)) => format!("{} <= {}", self.format(&below), self.format(&above)),
            _ => format!("{} >= 0", self.format(slack)),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_proved_is_noted_and_nothing_else() {
        let scope = Scope::new();
        let size = Dim::symbol(scope.named("s"));
        let seven = Dim::constant(7);
        assert!(scope.ge(&size, &seven) == super::super::Answer::Unknown && scope.doubts().is_empty());
        scope.note_doubts();
        assert!(scope.ge(&size, &seven) == super::super::Answer::Unknown);
        assert!(scope.ge(&size, &Dim::constant(0)).is_yes());
        let told: Vec<String> = scope.doubts().iter().map(|(slack, _)| scope.format(slack)).collect();
        assert_eq!(told, ["6 - s", "s - 7"]);
    }

    #[test]
    fn an_inequality_takes_nothing_away() {
        let scope = Scope::new();
        let told = |text: &str| scope.inequality(&scope.parse(text).unwrap());
        assert_eq!(told("130 - a - 2*b"), "a + 2*b <= 130");
        assert_eq!(told("a - b"), "b <= a");
        assert_eq!(told("a + b"), "a + b >= 0");
        assert_eq!(told("a - 7"), "a >= 7");
        assert_eq!(told("0 - a"), "a <= 0");
    }

    #[test]
    fn members_of_maxima_are_compared() {
        let scope = Scope::new();
        let found = comparisons(&scope.parse("3 + max(0, s - 7)").unwrap());
        assert_eq!(found.iter().map(|dim| scope.format(dim)).collect::<Vec<_>>().len(), 1);
    }

    #[test]
    fn divisors_are_found_at_any_depth() {
        let scope = Scope::new();
        let size = scope.parse("max(0, floor((floor((s + 1)/2) + t)/3))").unwrap();
        let mut found: Vec<i64> = divisors(&size).into_iter().map(|(_, divisor)| divisor).collect();
        found.sort_unstable();
        assert_eq!(found, [2, 3]);
    }
}
