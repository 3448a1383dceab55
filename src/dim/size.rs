//! Defines which integers are sizes, and which integers fit a fixed number of bits.
//!
//! A size is a count: of elements along an axis, nodes or iterations. A symbol is a size if it was created as one: a dim that has a name or
//! belongs to an axis ([`Scope::named`], [`Scope::fresh`], [`Scope::fresh_within`] from 0 on). The results of Shape and Size, and their
//! concatenations and slices, consist of these. Integers that are inputs of a run or computed by it ([`Scope::fresh_value`],
//! [`Scope::fresh_integer`]) are not sizes: they may be any number of their type.
//!
//! An axis has at most [`LONGEST_AXIS`] elements. The same limit holds for a sum of sizes that contains each size once. Together with the
//! bounds of the symbols, it decides if an integer fits its type ([`Scope::lies_within`]).
//!
//! Products of sizes are assumed to fit the integers in which they are computed, because they count elements of tensors. The assumption
//! only shapes sizes ([`Scope::fits_bits`]). Constant factors and addends may be any number, so the assumption does not cover them: `2³⁰·s`
//! in `int32` is 0 for `s = 4`, and `s + (2⁶³ − 1)` is negative. For integers other than sizes, a proof from their bounds is required:
//! `k·k` of a run-time `int32` is negative for `k = 50000`.
//!
//! Sums and products in 64 bits wrap modulo 2⁶⁴, and so does an expression made of them. So equal expressions represent equal integers even
//! after a wrap. An order, a quotient and a cast need the exact integer ([`Scope::unwrapped`]).

use rustc_hash::FxHashMap;

use super::Symbol;
use super::bounds::Interval;
use super::expr::Dim;
use super::monomial::{Atom, Factor, Summand};
use super::scope::{Law, Scope};

/// The most elements of an axis. Memory holds far less, but an empty tensor may have any dim next to its 0: runtimes accept up to 2⁶³ − 1.
/// Half of that keeps index arithmetic from overflowing.
pub const LONGEST_AXIS: i64 = 1 << 62;

/// The assumed limit of sizes in expressions with other integers, for types of up to 32 bits and for wider ones.
const MIXED_LIMIT: [i64; 2] = [1 << 24, 1 << 40];

/// The assumed limit of a product of sizes, as a power of two, for types of up to 32 bits and for wider ones. Constant factors and addends
/// must leave room for such products.
const ROOM: [u32; 2] = [12, 22];

impl Scope {
    /// Returns `true` if every symbol of the expression is a size.
    pub fn is_of_sizes(&self, dim: &Dim) -> bool {
        dim.symbols().into_iter().all(|symbol| self.is_size(symbol))
    }

    /// Returns `true` if the expression is between `least` and `most`, both included, for all sizes.
    pub fn lies_within(&self, dim: &Dim, least: i64, most: i64) -> bool {
        if let Some(value) = dim.as_const() {
            return (least..=most).contains(&value);
        }
        let (least, most) = (i128::from(least), i128::from(most));
        let inside = |interval: Interval| {
            interval.low.is_some_and(|low| low >= least) && interval.high.is_some_and(|high| high <= most)
        };
        inside(self.interval_of_axes(dim))
            || self.interval_of_sum(dim).is_some_and(inside)
            || self.proved_low(dim).is_some_and(|low| low >= least)
                && self.proved_high(dim).is_some_and(|high| high <= most)
    }

    /// Returns the interval of the expression, with each size at most [`LONGEST_AXIS`].
    pub(super) fn interval_of_axes(&self, dim: &Dim) -> Interval {
        let sizes = dim.symbols().into_iter().filter(|&symbol| self.is_size(symbol));
        let axis = Interval { low: None, high: Some(LONGEST_AXIS.into()) };
        self.interval_within(dim, sizes.map(|symbol| (symbol, axis)).collect())
    }

    /// Returns the interval of a constant plus distinct sizes: the sizes add up to at most [`LONGEST_AXIS`].
    fn interval_of_sum(&self, dim: &Dim) -> Option<Interval> {
        let symbols = dim.symbols();
        let sum = self.try_sum(&symbols.iter().map(|&symbol| Dim::symbol(symbol)).collect::<Vec<_>>())?;
        let rest = i128::from(dim.minus(&sum)?.as_const().filter(|_| self.is_of_sizes(dim))?);
        let axis = Interval { low: self.interval_of_axes(&sum).low, high: Some(LONGEST_AXIS.into()) };
        Some(axis.plus(Interval::point(rest)))
    }

    /// Returns the 64-bit integer that a runtime computes for the expression: the expression if it is proved to fit, and otherwise a
    /// symbol.
    pub fn unwrapped(&self, dim: &Dim) -> Dim {
        const WRAPPED: Law = Law { name: "wrapped", parameter: 64, reach: i64::MAX };
        if self.trusts() || self.lies_within(dim, i64::MIN, i64::MAX) || self.is_axis(dim) {
            return dim.clone();
        }
        self.assumed(WRAPPED, vec![dim.clone()], Some(self.nominal(dim)), (None, None))
    }

    /// Returns `true` if the wrapped 64-bit values of two expressions always differ, in their last bits.
    pub fn differ_wrapped(&self, a: &Dim, b: &Dim) -> bool {
        let Some(difference) = self.try_sub(a, b) else { return false };
        let power = 1u64.checked_shl(difference.step().trailing_zeros()).unwrap_or(1);
        difference.offset().rem_euclid(i64::try_from(power).unwrap_or(1)) != 0
    }

    /// Returns `true` if an integer computed in a type of 32 or 64 bits is assumed to equal the expression, without a wrap. In an
    /// expression with other integers, sizes are assumed to be below 2⁴⁰ (2²⁴ for 32 bits), and unknown integers to be any `int64`. This
    /// assumption may shape a size, and decides no rewrite.
    pub fn fits_bits(&self, dim: &Dim, bits: usize, signed: bool) -> bool {
        let dim = &self.nominal(dim);
        let wide = bits > 32;
        if wide && signed && dim.as_symbol().is_some() {
            return true;
        }
        if self.is_of_sizes(dim) {
            let is_signed_right = signed || self.lower_bound(dim).is_some_and(|low| low >= 0);
            return is_signed_right && self.leaves_room(dim, bits);
        }
        let (least, most) = match (wide, signed) {
            (true, true) => (i64::MIN, i64::MAX),
            (true, false) => (0, i64::MAX),
            (false, true) => (i32::MIN.into(), i32::MAX.into()),
            (false, false) => (0, u32::MAX.into()),
        };
        let limit = MIXED_LIMIT.get(usize::from(wide)).copied().unwrap_or(1);
        let mut bounded: FxHashMap<Symbol, Dim> = FxHashMap::default();
        for symbol in dim.symbols() {
            let (low, high) = self.bounds(&Dim::symbol(symbol));
            let most = if self.is_size(symbol) { limit - 1 } else { i64::MAX };
            if low.is_none() || high.is_none() {
                let low = low.unwrap_or(i64::MIN);
                bounded.insert(symbol, self.fresh_integer("bounded", Some(low), Some(high.unwrap_or(most).max(low))));
            }
        }
        let bounded = self.substitute(dim, &|symbol| bounded.get(&symbol).cloned());
        // Most integers without facts do not fit, and a search for a proof takes a hundred times as long as an assignment.
        !self.leaves(&bounded, least, most)
            && self.lower_bound(&bounded).is_some_and(|low| low >= least)
            && self.upper_bound(&bounded).is_some_and(|high| high <= most)
    }

    /// Returns `true` if an expression of sizes fits a type while its products of sizes are up to [`ROOM`].
    fn leaves_room(&self, dim: &Dim, bits: usize) -> bool {
        let room = ROOM.get(usize::from(bits > 32)).copied().unwrap_or(0);
        let share = room.checked_div(degree(dim).max(1)).unwrap_or(0).max(1);
        let ordinary = 1i128 << share;
        let cases = dim.symbols().into_iter().map(|symbol| {
            let low = self.with_table(|table| table.interval(symbol)).low.unwrap_or(0);
            (symbol, Interval { low: Some(low), high: Some(ordinary.max(low)) })
        });
        let Interval { low, high } = self.interval_within(dim, cases.collect());
        let limit = 1i128 << bits.saturating_sub(1).min(64);
        low.is_some_and(|low| low >= -limit) && high.is_some_and(|high| high < limit)
    }
}

/// Returns the largest number of multiplied sizes, including those inside floor divisions and maxima.
fn degree(dim: &Dim) -> u32 {
    let of_atom = |atom: &Atom| match atom {
        Atom::Symbol(_) => 1,
        Atom::Floor(floor) => degree(&floor.numerator),
        Atom::Max(members) => members.iter().map(degree).max().unwrap_or(0),
    };
    let of_factor = |factor: &Factor| factor.exponent.saturating_mul(of_atom(&factor.atom));
    let of_term = |term: &Summand| term.monomial.factors().iter().map(of_factor).fold(0, u32::saturating_add);
    dim.terms().iter().map(of_term).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fit_and_other_integers_fit_within_their_bounds() {
        let scope = Scope::new();
        let (n, any) = (Dim::symbol(scope.named("n")), scope.fresh_value("k"));
        let narrow = scope.fresh_integer("i", Some(i32::MIN.into()), Some(i32::MAX.into()));
        let small = scope.fresh_integer("j", Some(0), Some(9));
        assert!(scope.is_of_sizes(&scope.mul(&n, &n)) && !scope.is_of_sizes(&scope.add(&n, &any)));
        for (dim, bits, fits) in [
            (scope.mul(&n, &n), 32, true),
            (scope.product([&n; 8]), 32, true),
            (scope.product([&n, &n, &n, &n, &Dim::constant(1024)]), 32, true),
            (scope.mul(&n, &Dim::constant(1 << 30)), 32, false),
            (scope.mul(&n, &Dim::constant(1 << 30)), 64, true),
            (scope.mul(&n, &Dim::constant(1 << 62)), 64, false),
            (scope.add(&n, &Dim::constant(i32::MAX.into())), 32, false),
            (scope.add(&n, &Dim::constant(i64::MAX)), 64, false),
            (scope.sub(&Dim::constant(i64::MAX), &n), 64, true),
            (scope.sub(&Dim::constant(i64::MIN), &n), 64, false),
            (scope.min(&n, &Dim::constant(i64::MAX)), 64, true),
            (scope.add(&scope.min(&n, &Dim::constant(1 << 30)), &Dim::constant(1 << 30)), 32, true),
            (scope.mul(&scope.floor_div(&n, &Dim::constant(3)), &Dim::constant(1 << 31)), 32, false),
            (any.clone(), 64, true),
            (any.clone(), 32, false),
            (scope.add(&any, &Dim::constant(1)), 64, false),
            (scope.mul(&any, &any), 64, false),
            (scope.max(&any, &Dim::constant(0)), 64, true),
            (scope.min(&any, &n), 64, true),
            (narrow.clone(), 32, true),
            (scope.mul(&narrow, &narrow), 32, false),
            (scope.mul(&narrow, &narrow), 64, true),
            (scope.neg(&narrow), 32, false),
            (scope.add(&small, &n), 32, true),
            (scope.mul(&small, &n), 32, true),
            (scope.add(&any, &n), 64, false),
        ] {
            assert_eq!(scope.fits_bits(&dim, bits, true), fits, "{} in {bits} bits", scope.format(&dim));
        }
        assert!(!scope.fits_bits(&scope.sub(&n, &Dim::constant(1)), 32, false) && scope.fits_bits(&n, 32, false));
        assert!(!scope.fits_bits(&scope.sub(&small, &Dim::constant(1)), 64, false));
    }
}
