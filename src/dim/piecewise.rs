//! Lower bounds of piecewise linear expressions in one symbol.
//!
//! An expression of sums, multiples and maxima in one symbol `s` has a last breakpoint `K`: for `s ≥ K` it is `slope·s + offset`. Maxima of such
//! expressions break where two of them cross: `a·s + b = c·s + d` with integers `a ≠ c` implies `|s| ≤ |b| + |d|`. So the expression is at least 0 for all
//! `s ≥ low` if it is at `low, low + 1, …, K`, and if the slope is at least 0. Clamped bounds of Slices of Slices are such expressions.

use super::expr::{Dim, Symbol};
use super::monomial::Atom;
use super::scope::Scope;

/// The most values of the symbol at which one expression is evaluated. Bounds of Slices in models are small, or larger than every axis.
const MOST_VALUES: i128 = 64;

/// An expression from a breakpoint on: `slope·s + offset` for `s ≥ from`.
#[derive(Clone, Copy)]
struct Ray {
    from: i128,
    slope: i128,
    offset: i128,
}

impl Ray {
    const ZERO: Ray = Ray { from: i128::MIN, slope: 0, offset: 0 };

    /// Returns the sum with a multiple of another ray.
    fn plus(self, other: Ray, factor: i128) -> Option<Ray> {
        Some(Ray {
            from: self.from.max(other.from),
            slope: self.slope.checked_add(other.slope.checked_mul(factor)?)?,
            offset: self.offset.checked_add(other.offset.checked_mul(factor)?)?,
        })
    }

    /// Returns the maximum with another ray.
    fn max(self, other: Ray) -> Option<Ray> {
        let crossing = match self.slope == other.slope {
            true => i128::MIN,
            false => self.offset.checked_abs()?.checked_add(other.offset.checked_abs()?)?,
        };
        let highest = std::cmp::max_by_key(self, other, |ray| (ray.slope, ray.offset));
        Some(Ray { from: self.from.max(other.from).max(crossing), ..highest })
    }
}

/// Returns the last ray of an expression, or `None` for expressions with products, quotients or another symbol.
fn last_ray(a: &Dim, symbol: Symbol) -> Option<Ray> {
    a.terms().iter().try_fold(Ray::ZERO, |sum, term| {
        let ray = match term.monomial.as_atom() {
            None if term.monomial.is_one() => Ray { offset: 1, ..Ray::ZERO },
            Some(Atom::Symbol(found)) if *found == symbol => Ray { slope: 1, ..Ray::ZERO },
            Some(Atom::Max(members)) => {
                let rays = members.iter().map(|member| last_ray(member, symbol));
                rays.reduce(|left, right| left?.max(right?))??
            }
            _ => return None,
        };
        sum.plus(ray, i128::from(term.coefficient))
    })
}

impl Scope {
    /// Returns `true` if the expression is piecewise linear in one symbol, and at least 0 at each value that the symbol may have.
    pub(super) fn is_nonnegative_by_pieces(&self, a: &Dim) -> bool {
        self.lowest_is_nonnegative(a).unwrap_or(false)
    }

    fn lowest_is_nonnegative(&self, a: &Dim) -> Option<bool> {
        let pieces = self.pieces(a)?;
        if pieces.high > pieces.last && pieces.ray.slope < 0 {
            return Some(false);
        }
        (pieces.low..=pieces.last).try_fold(true, |all, value| Some(all && pieces.value(value)? >= 0))
    }

    /// Returns an expression `s − m` for a piecewise linear expression in one symbol `s`. It is at least 0 wherever the given one is at
    /// least 1.
    pub fn present_from(&self, a: &Dim) -> Option<Dim> {
        let pieces = self.pieces(a)?;
        let first = (pieces.low..=pieces.last).find(|&value| pieces.value(value).is_none_or(|found| found >= 1));
        let first = match first {
            Some(first) => first,
            None if pieces.high > pieces.last && pieces.ray.slope > 0 => pieces.last.checked_add(1)?,
            None => return None,
        };
        self.try_sub(&Dim::symbol(pieces.symbol), &Dim::constant(i64::try_from(first).ok()?))
    }

    /// Returns the linear expression that a piecewise linear expression in one symbol equals from its last breakpoint on.
    pub fn asymptote(&self, a: &Dim) -> Option<Dim> {
        let Pieces { symbol, ray, .. } = self.pieces(a)?;
        let number = |value: i128| i64::try_from(value).ok().map(Dim::constant);
        self.try_add(&self.try_mul(&number(ray.slope)?, &Dim::symbol(symbol))?, &number(ray.offset)?)
    }

    fn pieces<'d>(&self, a: &'d Dim) -> Option<Pieces<'d>> {
        let mut symbols = a.symbols().into_iter();
        let symbol = symbols.next().filter(|_| symbols.next().is_none())?;
        let ray = last_ray(a, symbol)?;
        let values = self.quick_interval(&Dim::symbol(symbol));
        let (low, high) = (values.low?, values.high.unwrap_or(i128::MAX));
        let last = ray.from.max(low).min(high);
        (last.checked_sub(low)? <= MOST_VALUES).then_some(Pieces { a, symbol, ray, low, last, high })
    }
}

/// An expression in one symbol that has values from `low` to `high`, and its last ray, which begins at `last` or earlier.
struct Pieces<'d> {
    a: &'d Dim,
    symbol: Symbol,
    ray: Ray,
    low: i128,
    last: i128,
    high: i128,
}

impl Pieces<'_> {
    fn value(&self, symbol: i128) -> Option<i64> {
        self.a.evaluate(&|_| i64::try_from(symbol).ok())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a sum of clamped differences, as in the length of Slices of Slices.
    fn expression(scope: &Scope, s: &Dim, clamps: &[(i64, i64, i64)]) -> Dim {
        clamps.iter().fold(Dim::constant(0), |sum, &(factor, shift, bound)| {
            let shifted = scope.add(&sum, &scope.add(s, &Dim::constant(shift)));
            let clamped = scope.min(&shifted, &Dim::constant(bound));
            scope.add(&sum, &scope.mul(&Dim::constant(factor), &clamped))
        })
    }

    proptest! {
        #[test]
        fn answers_are_those_of_values(
            clamps in prop::collection::vec((-2..=2i64, -3..=3i64, -4..=6i64), 1..4),
            offset in -6..=6i64,
        ) {
            let scope = Scope::new();
            let s = Dim::symbol(scope.fresh("s"));
            let a = scope.add(&expression(&scope, &s, &clamps), &Dim::constant(offset));
            let value = |n: i64| a.evaluate(&|_| Some(n)).unwrap();
            let is_nonnegative = (0..2000).all(|n| value(n) >= 0);
            if scope.is_nonnegative_by_pieces(&a) {
                prop_assert!(is_nonnegative, "{}", scope.format(&a));
            } else if let Some(symbol) = s.as_symbol()
                && let Some(ray) = last_ray(&a, symbol)
                && a.symbols().len() == 1
                && ray.from <= MOST_VALUES
            {
                prop_assert!(!is_nonnegative, "{}", scope.format(&a));
            }
        }
    }

    #[test]
    fn slices_of_slices_have_equal_sizes() {
        let scope = Scope::new();
        let s = Dim::symbol(scope.fresh("s"));
        let number = Dim::constant;
        let size =
            |dim: &Dim, from: i64, to: i64| scope.sub(&scope.min(dim, &number(to)), &scope.min(dim, &number(from)));
        assert!(scope.eq(&size(&size(&s, 1, 5), 1, 2), &size(&s, 2, 3)).is_yes());
        assert!(!scope.eq(&size(&size(&s, 1, 5), 1, 2), &size(&s, 2, 4)).is_yes());
        // The last two of at most n elements.
        let at_least_0 = |shift: i64| scope.max(&number(0), &scope.add(&s, &number(shift)));
        let last_two = scope.sub(&at_least_0(-1), &at_least_0(-3));
        assert!(scope.eq(&last_two, &scope.min(&number(2), &at_least_0(-1))).is_yes());
        assert_eq!(scope.present_from(&last_two), Some(scope.sub(&s, &number(2))));
        assert_eq!(scope.present_from(&size(&s, 3, 2)), None);
    }
}
