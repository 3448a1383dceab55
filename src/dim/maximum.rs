//! Maxima in canonical form; a minimum is the negated maximum of the negations.
//!
//! A maximum of two members has the form `m₀ + g·max(0, d)`. Here `d` is the difference of the members without its common factor `g`, and
//! has a positive leading coefficient. So `min(S, 10)`, `S − max(0, S − 10)` and `10 − max(0, 10 − S)` are one expression, and
//! `max(a, b) + min(a, b)` is `a + b`. A maximum of more members is reduced by their common part. Inside a maximum, a symbol `S` known to
//! be a multiple of `m` has the form `m·⌊S/m⌋`, which makes the factor explicit.

use super::expr::Dim;
use super::integer::greatest_common_divisor;
use super::monomial::{Atom, Monomial, Summand};
use super::scope::Scope;

/// The most members of a maximum.
const MAX_MEMBERS: usize = 16;

/// The most rounds of flattening and shifting before a maximum is used as it is.
const MAX_ROUNDS: u32 = 16;

impl Scope {
    /// Returns the largest of `members`.
    ///
    /// Every round keeps `offset + factor · max(members)` equal to the result. The loop ends when no rule changes the members any more, so
    /// that parsing a written maximum gives the same one.
    pub(super) fn largest(&self, members: Vec<Dim>) -> Option<Dim> {
        if let Some(known) = self.recall_maximum(&members) {
            return known;
        }
        let maximum = self.largest_anew(&members);
        self.remember_maximum(&members, maximum.clone());
        maximum
    }

    fn largest_anew(&self, members: &[Dim]) -> Option<Dim> {
        let mut offset = Dim::constant(0);
        let mut factor = Summand { monomial: Monomial::One, coefficient: 1 };
        let expanded = members.iter().map(|member| self.expand(member));
        let mut members = self.without_dominated(expanded.collect::<Option<_>>()?)?;
        let mut round = 0;
        loop {
            if let Some(opened) = open_nested(&members)? {
                members = self.without_dominated(opened)?;
            }
            let shift = match members.as_slice() {
                [] => return None,
                [only] => return only.times_term(&factor)?.plus(&offset),
                [a, b] => {
                    let (base, difference) = self.oriented(a, b)?;
                    members = vec![Dim::constant(0), difference];
                    base
                }
                _ => {
                    let common = common_part(&members)?;
                    let shifted = members.iter().map(|member| member.minus(&common));
                    members = shifted.collect::<Option<_>>()?;
                    common
                }
            };
            offset = shift.times_term(&factor)?.plus(&offset)?;
            let share = self.take_out_factor(&mut members)?;
            factor = factor.times(&share)?;
            members.sort();
            // Without a symbolic factor, more can be proved and flattened.
            let done = share.monomial.is_one() && open_nested(&members)?.is_none();
            if !share.monomial.is_one() {
                members = self.without_dominated(members)?;
            }
            round += 1;
            if done || round == MAX_ROUNDS {
                return self.shared(Atom::max(members)).dim()?.times_term(&factor)?.plus(&offset);
            }
        }
    }

    /// Applies `max(a, b) = base + max(0, difference)`. Of the two orientations, it prefers one whose difference can be flattened without
    /// more members, then one whose difference subtracts a maximum, then one with a positive leading coefficient.
    fn oriented(&self, a: &Dim, b: &Dim) -> Option<(Dim, Dim)> {
        let difference = b.minus(a)?;
        let negated = difference.scaled(-1)?;
        let nested = difference.terms().iter().find(|term| is_maximum(term)).map(|term| term.coefficient < 0);
        let forwards = match nested {
            None => difference.leading().coefficient > 0,
            Some(_) if self.opens_well(&difference)? => true,
            Some(removed) => removed && !self.opens_well(&negated)?,
        };
        Some(if forwards { (a.clone(), difference) } else { (b.clone(), negated) })
    }

    /// Returns `true` if `max(0, difference)` flattens into a maximum of at most two members: `max(0, max(0, x) − c) = max(0, x − c)`.
    fn opens_well(&self, difference: &Dim) -> Option<bool> {
        let opened = open_nested(&[Dim::constant(0), difference.clone()])?;
        let kept = opened.filter(|opened| opened.len() == 3).and_then(|opened| self.without_dominated(opened));
        Some(kept.is_some_and(|kept| kept.len() <= 2))
    }

    /// Sorts the members, and removes every member that is proved to be at most another one.
    fn without_dominated(&self, mut members: Vec<Dim>) -> Option<Vec<Dim>> {
        members.sort();
        members.dedup();
        // Constants sort first, in order: only the last one counts.
        let constants = members.iter().take_while(|member| member.as_const().is_some()).count();
        members.drain(..constants.saturating_sub(1));
        if members.len() > MAX_MEMBERS {
            return None;
        }
        let mut index = 0;
        while let Some(member) = members.get(index) {
            let mut others = members.iter().enumerate().filter(|(other, _)| *other != index);
            let dominated = others.any(|(_, other)| other.minus(member).is_some_and(|slack| self.at_least(&slack, 0)));
            if dominated {
                members.remove(index);
            } else {
                index = index.saturating_add(1);
            }
        }
        Some(members)
    }

    /// Applies `max(g·xᵢ) = g·max(xᵢ)` for `g ≥ 0`: a constant times a monomial that is proved not to be negative.
    fn take_out_factor(&self, members: &mut Vec<Dim>) -> Option<Summand> {
        let content = members.iter().fold(0, |gcd, m| greatest_common_divisor(gcd, m.content()));
        let content = i64::try_from(content).ok().filter(|content| *content > 0).unwrap_or(1);
        let mut shared: Option<Monomial> = None;
        for member in members.iter().filter(|member| !member.is_const(0)) {
            let own = member.common_monomial();
            shared = Some(shared.map_or(own.clone(), |shared| shared.common(&own)));
        }
        let factors = shared.as_ref().map_or(&[][..], Monomial::factors).iter().filter(|factor| {
            Monomial::from_factors(vec![(*factor).clone()]).dim().is_some_and(|power| self.at_least(&power, 0))
        });
        let monomial = Monomial::from_factors(factors.cloned().collect());
        let reduced = members.iter().map(|member| {
            if member.is_const(0) { Some(member.clone()) } else { member.over_const(content)?.over_monomial(&monomial) }
        });
        *members = reduced.collect::<Option<_>>()?;
        Some(Summand { monomial, coefficient: content })
    }
}

/// Returns `true` for a maximum times a constant.
fn is_maximum(term: &Summand) -> bool {
    matches!(term.monomial.as_atom(), Some(Atom::Max(_)))
}

/// Applies `max(a, y + c·max(mᵢ)) = max(a, y + c·m₁, y + c·m₂, …)` for `c > 0`, if this is the only maximum added in its member. The inner
/// `None` means that no member has a nested maximum.
fn open_nested(members: &[Dim]) -> Option<Option<Vec<Dim>>> {
    let (mut flat, mut changed) = (Vec::with_capacity(members.len()), false);
    for member in members {
        let terms = member.terms();
        let mut added = terms.iter().filter(|term| is_maximum(term) && term.coefficient > 0);
        if let (Some(term), None) = (added.next(), added.next())
            && let Some(Atom::Max(choices)) = term.monomial.as_atom()
            && choices.as_slice().len().saturating_add(members.len()) <= MAX_MEMBERS
        {
            let rest = member.minus(&Dim::from_sorted(vec![term.clone()])?)?;
            for choice in choices.iter() {
                flat.push(rest.plus_scaled(choice, term.coefficient)?);
            }
            changed = true;
        } else {
            flat.push(member.clone());
        }
    }
    Some(changed.then_some(flat))
}

/// Returns the common part that is subtracted from every member, which shifts the result by as much. For every monomial, including the
/// constant one, it is the most frequent coefficient; on a tie, the largest.
fn common_part(members: &[Dim]) -> Option<Dim> {
    let mut common: Vec<Summand> = Vec::new();
    for term in members.iter().flat_map(|member| member.terms().to_vec()) {
        if common.iter().any(|known| known.monomial == term.monomial) {
            continue;
        }
        let coefficient_of = |member: &Dim| {
            member.terms().iter().find(|own| own.monomial == term.monomial).map_or(0, |own| own.coefficient)
        };
        let coefficients: Vec<i64> = members.iter().map(coefficient_of).collect();
        let votes = |value: i64| coefficients.iter().filter(|other| **other == value).count();
        let coefficient = coefficients.iter().copied().max_by_key(|value| (votes(*value), *value)).unwrap_or(0);
        common.push(Summand { monomial: term.monomial, coefficient });
    }
    Dim::from_terms(common)
}
