//! The arithmetic of polynomials in canonical form: sums, products, exact divisions and division with remainder.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::integer::greatest_common_divisor;
use super::super::monomial::{Atom, Monomial, Summand};
use super::{Dim, MAX_TERMS, Poly, Repr, hash_of};

impl Dim {
    pub(in crate::dim) fn plus(&self, other: &Dim) -> Option<Dim> {
        self.plus_scaled(other, 1)
    }

    pub(in crate::dim) fn minus(&self, other: &Dim) -> Option<Dim> {
        self.plus_scaled(other, -1)
    }

    /// Returns `self + scale · other`.
    pub(in crate::dim) fn plus_scaled(&self, other: &Dim, scale: i64) -> Option<Dim> {
        if let (Repr::Const(a), Repr::Const(b)) = (&self.0, &other.0) {
            return Some(Dim::constant(a.checked_add(b.checked_mul(scale)?)?));
        }
        if scale == 0 || other.is_const(0) {
            return Some(self.clone());
        }
        if let Some(sum) = self.plus_few(other, scale) {
            return Some(sum);
        }
        let (left, right) = (self.terms(), other.terms());
        let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
        let mut terms = Vec::with_capacity(left.len().saturating_add(right.len()));
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.monomial.cmp(&b.monomial) {
                Ordering::Greater => terms.extend(left.next().cloned()),
                Ordering::Less => {
                    terms.push(b.scaled(scale)?);
                    right.next();
                }
                Ordering::Equal => {
                    let coefficient = a.coefficient.checked_add(b.coefficient.checked_mul(scale)?)?;
                    if coefficient != 0 {
                        terms.push(Summand { monomial: a.monomial.clone(), coefficient });
                    }
                    left.next();
                    right.next();
                }
            }
        }
        terms.extend(left.cloned());
        for term in right {
            terms.push(term.scaled(scale)?);
        }
        Dim::from_sorted(terms)
    }

    /// [`plus_scaled`](Dim::plus_scaled) for a long sum and few addends, which does not visit every term. This makes long chains of
    /// additions fast. `None` if the general algorithm is needed.
    fn plus_few(&self, few: &Dim, scale: i64) -> Option<Dim> {
        let Repr::Poly(poly) = &self.0 else { return None };
        let few = few.terms();
        if few.len().saturating_mul(16) > poly.terms.len() {
            return None;
        }
        let Poly { mut hash, mut mask, mut size, mut depth, .. } = **poly;
        let mut terms = Vec::with_capacity(poly.terms.len().saturating_add(few.len()));
        let mut rest = poly.terms.as_slice();
        for term in few.iter() {
            let mut added = term.scaled(scale)?;
            let place = rest.partition_point(|own| own.monomial > added.monomial);
            let (before, after) = rest.split_at_checked(place)?;
            terms.extend_from_slice(before);
            rest = after;
            match after.split_first() {
                Some((own, after)) if own.monomial == added.monomial => {
                    added.coefficient = added.coefficient.checked_add(own.coefficient).filter(|sum| *sum != 0)?;
                    hash = hash.wrapping_sub(hash_of(own));
                    rest = after;
                }
                _ => {
                    size = size.checked_add(added.size())?;
                    depth = depth.max(added.depth());
                    mask |= added.mask();
                }
            }
            hash = hash.wrapping_add(hash_of(&added));
            terms.push(added);
        }
        terms.extend_from_slice(rest);
        (size <= MAX_TERMS).then(|| Dim(Repr::Poly(Arc::new(Poly { terms, hash, mask, size, depth }))))
    }

    pub(in crate::dim) fn times(&self, other: &Dim) -> Option<Dim> {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => Some(Dim::constant(a.checked_mul(*b)?)),
            (Repr::Const(scale), _) => other.scaled(*scale),
            (_, Repr::Const(scale)) => self.scaled(*scale),
            (Repr::Poly(a), Repr::Poly(b)) => {
                let count = a.terms.len().checked_mul(b.terms.len())?;
                if count > 2 * MAX_TERMS as usize {
                    return None;
                }
                let mut terms = Vec::with_capacity(count);
                for left in &a.terms {
                    for right in &b.terms {
                        terms.push(left.times(right)?);
                    }
                }
                Dim::from_terms(terms)
            }
        }
    }

    pub(in crate::dim) fn scaled(&self, scale: i64) -> Option<Dim> {
        match scale {
            0 => Some(Dim::constant(0)),
            1 => Some(self.clone()),
            _ => self.map_coefficients(|coefficient| coefficient.checked_mul(scale)),
        }
    }

    /// Multiplies by a term. The order is compatible with multiplication, so the terms are still sorted.
    pub(in crate::dim) fn times_term(&self, term: &Summand) -> Option<Dim> {
        if term.monomial.is_one() || term.coefficient == 0 {
            return self.scaled(term.coefficient);
        }
        let scaled: Option<Vec<Summand>> = self.terms().iter().map(|own| own.times(term)).collect();
        Dim::from_sorted(scaled?)
    }

    /// Replaces every coefficient; `change` never returns zero.
    fn map_coefficients(&self, change: impl Fn(i64) -> Option<i64>) -> Option<Dim> {
        match &self.0 {
            Repr::Const(value) => Some(Dim::constant(change(*value)?)),
            Repr::Poly(poly) => {
                let changed = poly.terms.iter().map(|term| {
                    Some(Summand { monomial: term.monomial.clone(), coefficient: change(term.coefficient)? })
                });
                let terms: Vec<Summand> = changed.collect::<Option<_>>()?;
                let hash = terms.iter().fold(0u64, |hash, term| hash.wrapping_add(hash_of(term)));
                let Poly { mask, size, depth, .. } = **poly;
                Some(Dim(Repr::Poly(Arc::new(Poly { terms, hash, mask, size, depth }))))
            }
        }
    }

    /// Divides every coefficient by `divisor`, which divides all of them.
    pub(in crate::dim) fn over_const(&self, divisor: i64) -> Option<Dim> {
        if divisor == 1 { Some(self.clone()) } else { self.map_coefficients(|c| c.checked_div(divisor)) }
    }

    /// Divides by `monomial`, which divides every term.
    pub(in crate::dim) fn over_monomial(&self, monomial: &Monomial) -> Option<Dim> {
        let terms = self.terms();
        let divided = terms
            .iter()
            .map(|term| Some(Summand { monomial: term.monomial.over(monomial)?, coefficient: term.coefficient }));
        Dim::from_terms(divided.collect::<Option<_>>()?)
    }

    /// Returns the greatest common divisor of the coefficients, including the constant term's. Zero for the constant 0.
    pub(in crate::dim) fn content(&self) -> u64 {
        self.terms().iter().fold(0, |gcd, term| greatest_common_divisor(gcd, term.coefficient.unsigned_abs()))
    }

    /// Returns the expression divided by the greatest common divisor of its coefficients; 0 for 0.
    pub fn without_content(&self) -> Dim {
        i64::try_from(self.content()).ok().and_then(|content| self.over_const(content)).unwrap_or_else(|| self.clone())
    }

    /// Returns the greatest common divisor of the coefficients except the constant term's. Zero for a constant.
    pub(in crate::dim) fn step(&self) -> u64 {
        let mut step = 0;
        for term in self.terms().iter().filter(|term| !term.monomial.is_one()) {
            step = greatest_common_divisor(step, term.coefficient.unsigned_abs());
            if step == 1 {
                break;
            }
        }
        step
    }

    /// Returns `(p, c, k)` with `self = c·p + k`, where the coefficients of `p` have no common divisor and `p` has no constant term.
    pub(in crate::dim) fn primitive(&self) -> Option<(Dim, i64, i64)> {
        let offset = self.offset();
        let variable = if offset == 0 { self.clone() } else { self.minus(&Dim::constant(offset))? };
        let content = i64::try_from(variable.content()).ok().filter(|content| *content > 0)?;
        Some((variable.over_const(content)?, content, offset))
    }

    /// Returns the greatest monomial that divides every term.
    pub(in crate::dim) fn common_monomial(&self) -> Monomial {
        let terms = self.terms();
        let mut rest = terms.iter();
        let mut common = rest.next().map_or(Monomial::One, |first| first.monomial.clone());
        for term in rest {
            if common.is_one() {
                break;
            }
            common = common.common(&term.monomial);
        }
        common
    }

    /// Returns the polynomial in `atom` alone, as unordered pairs `(exponent, cofactor)`. The terms of a cofactor keep their order, which
    /// is compatible with multiplication.
    pub(in crate::dim) fn collect(&self, atom: &Atom) -> Option<Vec<(u32, Dim)>> {
        let mut parts: Vec<(u32, Vec<Summand>)> = Vec::new();
        for term in self.terms().iter() {
            let exponent = term.monomial.exponent_of(atom);
            let monomial = if exponent == 0 {
                term.monomial.clone()
            } else {
                let factors = term.monomial.factors().iter().filter(|factor| factor.atom != *atom);
                Monomial::from_factors(factors.cloned().collect())
            };
            let rest = Summand { monomial, coefficient: term.coefficient };
            match parts.iter_mut().find(|(other, _)| *other == exponent) {
                Some((_, terms)) => terms.push(rest),
                None => parts.push((exponent, vec![rest])),
            }
        }
        parts.into_iter().map(|(exponent, terms)| Some((exponent, Dim::from_sorted(terms)?))).collect()
    }

    /// Replaces `atom` by `value` wherever it is a factor of a term. Occurrences inside other atoms are kept.
    pub(in crate::dim) fn replace_atom(&self, atom: &Atom, value: &Dim) -> Option<Dim> {
        let mut parts = self
            .collect(atom)?
            .into_iter()
            .map(|(exponent, cofactor)| (0..exponent).try_fold(cofactor, |product, _| product.times(value)));
        let Some(first) = parts.next() else { return Some(Dim::constant(0)) };
        parts.try_fold(first?, |sum, part| sum.plus(&part?))
    }

    /// Returns the quotient and remainder of polynomial division: `self = quotient · divisor + remainder`. The divisor's leading term can
    /// reduce no term of the remainder further (coefficients are in `0 ..` the leading one). The divisor's leading coefficient is positive.
    pub(in crate::dim) fn divide(&self, divisor: &Dim) -> Option<(Dim, Dim)> {
        let leading = divisor.leading();
        if leading.coefficient <= 0 {
            return None;
        }
        let (mut quotient, mut remainder) = (Vec::new(), self.clone());
        // Each round removes the greatest reducible term; the bound only keeps a pathological division short.
        for _ in 0..64 {
            let step = remainder.terms().iter().find_map(|term| {
                let share = term.coefficient.div_euclid(leading.coefficient);
                let monomial = term.monomial.over(&leading.monomial)?;
                (share != 0).then_some(Summand { monomial, coefficient: share })
            });
            let Some(step) = step else {
                return Some((Dim::from_terms(quotient)?, remainder));
            };
            remainder = remainder.minus(&divisor.times_term(&step)?)?;
            quotient.push(step);
        }
        None
    }
}
