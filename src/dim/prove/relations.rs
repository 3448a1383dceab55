//! Lower bounds from given relations: `r ≥ 0` may be subtracted any number of times, so that a term cancels.

use std::borrow::Cow;
use std::cmp::Ordering;

use smallvec::SmallVec;

use super::super::bounds::Interval;
use super::super::expr::Dim;
use super::super::integer::{ceil_quotient, greatest_common_divisor};
use super::super::monomial::{Monomial, Summand};
use super::Prover;

/// The most relations that are combined with one polynomial.
const RELATIONS: usize = 48;

impl Prover<'_> {
    /// `p ≥ (s·p − k·m·r) / s` for every given `r ≥ 0` and a monomial `m ≥ 0`; `s`, `k` and `m` are chosen so that a term cancels.
    pub(super) fn low_by_relations(&mut self, p: &Dim, goal: i128, level: u32) -> Option<i128> {
        // In most relations no term divides a term of `p`. The traces show this without a comparison of all pairs.
        let traces = p.terms().iter().fold(0, |traces, term| traces | term.monomial.trace());
        let may_divide = |other: &Summand| !other.monomial.is_one() && other.monomial.trace() & !traces == 0;
        let meets = |relation: &Dim| relation.terms().iter().any(may_divide);
        let mut relations: Vec<Dim> = self.relations.iter().filter(|relation| meets(relation)).cloned().collect();
        self.scope.with_table(|table| {
            let near = table.relations.about(p).map(|(_, relation)| relation);
            relations.extend(near.take(RELATIONS).filter(|relation| meets(relation)).cloned());
        });
        let level = level.saturating_sub(1);
        let mut own = Known::new(p);
        let mut best = None;
        for relation in relations {
            let mut theirs = Known::new(&relation);
            let terms = relation.terms();
            let others: SmallVec<[&Summand; 8]> = terms.iter().filter(|other| may_divide(other)).collect();
            for term in p.terms().iter().filter(|term| !term.monomial.is_one()) {
                for &other in &others {
                    if self.fuel == 0 {
                        return best;
                    }
                    let Some(share) = self.cancelling(term, other) else { continue };
                    let wanted = goal.saturating_sub(1).saturating_mul(share.scale.into()).saturating_add(1);
                    // Most differences have no fast bound, so they are not built to find that out.
                    let quick = self.quick_low_of_difference(&share, &mut own, &mut theirs);
                    let low = if level == 0 || quick.is_some_and(|low| low >= wanted) {
                        quick
                    } else {
                        let Some(difference) = share.difference(p, &relation) else { continue };
                        self.low(&difference, wanted, level)
                    };
                    best = best.max(low.and_then(|low| ceil_quotient(low, share.scale.into())));
                    if best >= Some(goal) {
                        return best;
                    }
                }
            }
        }
        best
    }

    /// Returns the multiple to subtract so that `term` cancels against `other`, a term of an expression that is at least 0.
    fn cancelling(&self, term: &Summand, other: &Summand) -> Option<Share> {
        if (term.coefficient < 0) != (other.coefficient < 0) {
            return None;
        }
        let monomial = term.monomial.over(&other.monomial)?;
        if !monomial.is_one() && !self.monomial_interval(&monomial).is_non_negative() {
            return None;
        }
        let (own, theirs) = (term.coefficient.unsigned_abs(), other.coefficient.unsigned_abs());
        let common = greatest_common_divisor(own, theirs);
        let scale = i64::try_from(theirs.checked_div(common)?).ok()?;
        let count = i64::try_from(own.checked_div(common)?).ok()?;
        Some(Share { scale, count, monomial })
    }

    /// Returns [`quick_low`](Prover::quick_low) of `own − share` without building the difference. The first term without a bound ends the
    /// loop.
    fn quick_low_of_difference(&self, share: &Share, own: &mut Known, theirs: &mut Known) -> Option<i128> {
        let unraised = share.monomial.is_one();
        let (left, right) = (own.dim.terms(), theirs.dim.terms());
        let mut left = left.iter().enumerate().peekable();
        let mut right =
            right.iter().enumerate().map(|(index, term)| (index, term, share.raise(&term.monomial))).peekable();
        let mut low = 0i128;
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((_, a)), Some((_, _, raised))) => a.monomial.cmp(raised.as_deref()?),
                (Some(_), None) => Ordering::Greater,
                (None, Some(_)) => Ordering::Less,
                (None, None) => return Some(low),
            };
            let a = if order.is_ge() { left.next() } else { None };
            let b = if order.is_le() { right.next() } else { None };
            let minuend = a.map_or(0, |(_, term)| i128::from(term.coefficient)).checked_mul(share.scale.into())?;
            let subtrahend = b.as_ref().map_or(0, |(_, term, _)| i128::from(term.coefficient));
            let coefficient = minuend.checked_sub(subtrahend.checked_mul(share.count.into())?)?;
            if coefficient == 0 {
                continue;
            }
            let interval = match (a, b) {
                (Some((index, term)), _) => own.interval(self, index, &term.monomial),
                (None, Some((index, term, _))) if unraised => theirs.interval(self, index, &term.monomial),
                (None, b) => self.monomial_interval(b?.2.as_deref()?),
            };
            low = low.checked_add(interval.scaled(coefficient).low?)?;
        }
    }
}

/// `scale · p − count · monomial · relation`.
struct Share {
    scale: i64,
    count: i64,
    monomial: Monomial,
}

/// A polynomial and the intervals of its monomials, computed on demand.
struct Known<'d> {
    dim: &'d Dim,
    intervals: Vec<Option<Interval>>,
}

impl<'d> Known<'d> {
    fn new(dim: &'d Dim) -> Known<'d> {
        Known { dim, intervals: Vec::new() }
    }

    fn interval(&mut self, prover: &Prover, index: usize, monomial: &Monomial) -> Interval {
        if self.intervals.is_empty() {
            self.intervals.resize(self.dim.terms().len(), None);
        }
        match self.intervals.get_mut(index) {
            Some(known) => *known.get_or_insert_with(|| prover.monomial_interval(monomial)),
            None => prover.monomial_interval(monomial),
        }
    }
}

impl Share {
    fn raise<'m>(&self, monomial: &'m Monomial) -> Option<Cow<'m, Monomial>> {
        match self.monomial.is_one() {
            true => Some(Cow::Borrowed(monomial)),
            false => monomial.times(&self.monomial).map(Cow::Owned),
        }
    }

    fn difference(&self, p: &Dim, relation: &Dim) -> Option<Dim> {
        let share = Summand { monomial: self.monomial.clone(), coefficient: self.count };
        p.scaled(self.scale)?.minus(&relation.times_term(&share)?)
    }
}
