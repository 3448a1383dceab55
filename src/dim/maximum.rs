//! Maxima in canonical form; a minimum is the negated maximum of the negations.
//!
//! A maximum of two is written `m₀ + g·max(0, d)`, where `d` is their difference with its common factor `g` taken out and
//! its leading coefficient positive. So `min(S, 10)`, `S − max(0, S − 10)` and `10 − max(0, 10 − S)` are one expression,
//! and `max(a, b) + min(a, b)` is `a + b`. A maximum of more has what is common to all members taken out.

use std::sync::Arc;

use super::expr::{Atom, Dim, Monomial, Term};
use super::scope::Scope;

/// A maximum of more members than this is not stated.
const MAX_MEMBERS: usize = 16;

impl Scope {
    /// The largest of `members`.
    pub(super) fn largest(&self, members: Vec<Dim>) -> Option<Dim> {
        let members = self.without_dominated(members)?;
        let members = self.without_dominated(flatten(members)?)?;
        match members.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            [a, b] => self.larger_of_two(a, b),
            _ => self.largest_of_many(members),
        }
    }

    /// Sorts, and drops every member that another one is proved to reach.
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

    fn larger_of_two(&self, a: &Dim, b: &Dim) -> Option<Dim> {
        let difference = self.settle(b.minus(a)?)?;
        let (base, difference) =
            if difference.leading().coefficient > 0 { (a, difference) } else { (b, difference.scaled(-1)?) };
        // max(0, max(0, x) − c) = max(0, x − c): a maximum inside is worth opening where it leaves nothing behind.
        let opened = flatten(vec![Dim::constant(0), difference.clone()])?;
        if opened.len() > 2 {
            let opened = self.without_dominated(opened)?;
            if opened.len() <= 2 {
                return self.largest(opened)?.plus(base);
            }
        }
        let (difference, factor) = self.take_out_factor(vec![difference])?;
        let [difference] = difference.try_into().ok()?;
        let excess = Atom::Max(Arc::new(vec![Dim::constant(0), difference])).dim()?;
        excess.times_term(&factor)?.plus(base)
    }

    fn largest_of_many(&self, members: Vec<Dim>) -> Option<Dim> {
        let common = common_part(&members)?;
        let reduced: Option<Vec<Dim>> = members.iter().map(|member| member.minus(&common)).collect();
        let (mut reduced, factor) = self.take_out_factor(reduced?)?;
        reduced.sort();
        Atom::Max(Arc::new(reduced)).dim()?.times_term(&factor)?.plus(&common)
    }

    /// `max(g·xᵢ) = g·max(xᵢ)` for `g ≥ 0`: a constant, and a monomial that is proved not to be negative.
    fn take_out_factor(&self, members: Vec<Dim>) -> Option<(Vec<Dim>, Term)> {
        let content = members.iter().fold(0, |gcd, m| super::expr::greatest_common_divisor(gcd, m.content()));
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
        Some((reduced.collect::<Option<_>>()?, Term { monomial, coefficient: content }))
    }
}

/// `max(a, y + c·max(mᵢ)) = max(a, y + c·m₁, y + c·m₂, …)` for `c > 0`.
fn flatten(members: Vec<Dim>) -> Option<Vec<Dim>> {
    let mut flat = Vec::with_capacity(members.len());
    for member in members {
        let inner = member.terms().iter().fold((0, None), |(count, found), term| match term.monomial.as_atom() {
            Some(atom @ Atom::Max(_)) if term.coefficient > 0 => (count + 1, Some((atom.clone(), term.coefficient))),
            _ => (count, found),
        });
        if let (1, Some((atom, coefficient))) = inner
            && let Atom::Max(choices) = &atom
            && choices.len().saturating_add(flat.len()) <= MAX_MEMBERS
        {
            let rest = member.minus(&atom.clone().dim()?.scaled(coefficient)?)?;
            for choice in choices.iter() {
                flat.push(rest.plus_scaled(choice, coefficient)?);
            }
        } else {
            flat.push(member);
        }
    }
    Some(flat)
}

/// What is taken out of every member, so that shifting all of them shifts the result: of every monomial, the constant
/// one included, the coefficient that most members have; of several such the largest.
fn common_part(members: &[Dim]) -> Option<Dim> {
    let mut common: Vec<Term> = Vec::new();
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
        common.push(Term { monomial: term.monomial, coefficient });
    }
    Dim::from_terms(common)
}
