//! How far a factor or a shift may move: the one guard of every rule that computes new weights.
//!
//! `s·(x·w) = x·(s·w)` holds of real numbers. Of floats it holds up to rounding while every number on the way is a normal one of its
//! type, and `w·(x + t) = w·x + w·t` while `w·t` is not much larger than the result. Both depend on operands that nobody knows. They
//! are taken to be of *ordinary size*, which is a share of the type's own range:
//!
//! | type | normal numbers | ordinary size | factor across computed values |
//! | --- | --- | --- | --- |
//! | float, bfloat16 | 2⁻¹²⁶ … 2¹²⁸ | 2⁻³² … 2³² | 2⁻¹⁶ … 2¹⁶ |
//! | double | 2⁻¹⁰²² … 2¹⁰²⁴ | 2⁻²⁵⁶ … 2²⁵⁶ | 2⁻¹²⁸ … 2¹²⁸ |
//! | float16 | 2⁻¹⁴ … 2¹⁶ | 1 … 2⁴ | 2⁻⁴ … 1 |
//!
//! * **Weights** ([`Peak`]): a product `s·w` other than 0 is normal, and it times an operand of ordinary size is, too: what a factor below 1
//!   makes small stays far enough above the smallest normal number, and what one above 1 makes large below the largest. For
//!   float16, whose small weights have few digits anyway, the largest of each channel decides.
//!   Each new weight of float16 is off by up to half a unit in its last place. In a sum of many products such errors come to no more than the
//!   rounding of a result of the usual size, `√n` of `n` products; of a sum that cancels to less, digits are lost.
//!   Weights that are added ([`may_sum`]) lose nothing that the two products kept; they and their sums times operands of ordinary size
//!   stay below the largest number.
//! * **Values** ([`may_move`]): a factor that passes computed values scales all of these; it is within the last column, so that
//!   values of up to 2¹¹² and down to 2⁻¹¹⁰ (in float) have room.
//! * **Shifts** ([`may_shift`]): `x + t` is exact for `x` near `−t`, and `w·x + w·t` is off by the rounding of `w·t`. With `|t| ≤ 1` that is
//!   no more than the rounding of results of ordinary size.

use crate::tensor::DType;

/// The range of a floating-point type, and what is taken for ordinary in it.
#[derive(Clone, Copy)]
struct Limits {
    /// The smallest normal number.
    smallest: f64,
    /// The largest finite number.
    largest: f64,
    /// Operands of ordinary size are at least this.
    least: f64,
    /// Operands of ordinary size are at most this.
    most: f64,
    /// Factors across computed values are within these bounds.
    factors: [f64; 2],
}

fn limits(dtype: DType) -> Option<Limits> {
    let symmetric = |smallest: f64, largest: f64, ordinary: f64| {
        let far = ordinary.sqrt();
        Limits { smallest, largest, least: ordinary.recip(), most: ordinary, factors: [far.recip(), far] }
    };
    match dtype {
        // The largest bfloat16 is a little less than the largest float.
        DType::Float | DType::Bfloat16 => Some(symmetric(f32::MIN_POSITIVE.into(), f32::MAX.into(), exp2(32))),
        DType::Double => Some(symmetric(f64::MIN_POSITIVE, f64::MAX, exp2(256))),
        DType::Float16 => {
            Some(Limits { smallest: exp2(-14), largest: 65504.0, least: 1.0, most: 16.0, factors: [exp2(-4), 1.0] })
        }
        _ => None,
    }
}

/// `2^exponent`, exactly.
fn exp2(exponent: i32) -> f64 {
    libm::ldexp(1.0, exponent)
}

/// Whether values computed in a type may be multiplied by a factor, and what follows them by its inverse.
pub(super) fn may_move(dtype: DType, factor: f64) -> bool {
    limits(dtype).is_some_and(|Limits { factors: [least, most], .. }| (least..=most).contains(&factor.abs()))
}

/// Whether these numbers, added to the operand of a node with weights, may be added to its result instead.
pub(super) fn may_shift(shifts: &[f64]) -> bool {
    shifts.iter().all(|shift| shift.abs() <= 1.0)
}

/// Whether weights that are added to others, the largest of all and of their sums of this magnitude, give results in the type's range with
/// operands of ordinary size.
pub(super) fn may_sum(dtype: DType, largest: f64) -> bool {
    limits(dtype).is_some_and(|Limits { largest: end, most, .. }| largest <= end / most)
}

/// Whether a number that is computed anew keeps its digits in a type: 0, or a normal number. The subnormal numbers of float16 are let
/// pass, as they are among weights and biases wherever these are small.
pub(super) fn keeps_digits(dtype: DType, number: f64) -> bool {
    let small = |limits: Limits| number != 0.0 && number.abs() < limits.smallest;
    number.is_finite() && limits(dtype).is_some_and(|limits| dtype == DType::Float16 || !small(limits))
}

/// What becomes of the weights that one factor multiplies.
pub(super) struct Peak {
    dtype: DType,
    limits: Limits,
    /// The largest product.
    largest: f64,
    /// The largest magnitude of the factors.
    factor: [f64; 2],
}

impl Peak {
    /// Nothing yet.
    pub fn new(dtype: DType) -> Option<Peak> {
        Some(Peak { dtype, limits: limits(dtype)?, largest: 0.0, factor: [f64::INFINITY, 0.0] })
    }

    /// Takes note of `weight · factor`. Returns whether it keeps the digits that the weight had.
    #[must_use]
    pub fn note(&mut self, weight: f64, factor: f64) -> bool {
        let (product, size) = ((weight * factor).abs(), factor.abs());
        if weight == 0.0 || factor == 0.0 {
            return true;
        }
        self.largest = self.largest.max(product);
        self.factor = [self.factor[0].min(size), self.factor[1].max(size)];
        let had_digits = weight.abs() >= self.limits.smallest;
        let has_digits = self.dtype == DType::Float16 || product >= self.limits.smallest;
        product.is_finite() && (size >= 1.0 || !had_digits || has_digits)
    }

    /// The smallest normal number of the type.
    pub fn smallest(&self) -> f64 {
        self.limits.smallest
    }

    /// Whether products with operands of ordinary size stay within the type's range, where the weights' own did.
    pub fn has_room(&self) -> bool {
        let Limits { smallest, largest, least, most, .. } = self.limits;
        let [low, high] = self.factor;
        let above = low >= 1.0 || self.largest == 0.0 || self.largest >= smallest / least;
        let below = high <= 1.0 || self.largest <= largest / most;
        above && below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(dtype: DType, weights: &[f64], factor: f64) -> bool {
        let mut peak = Peak::new(dtype).unwrap();
        weights.iter().all(|&weight| peak.note(weight, factor)) && peak.has_room()
    }

    #[test]
    fn weights_stay_far_from_the_ends_of_their_type() {
        for dtype in [DType::Float, DType::Bfloat16] {
            assert!(fits(dtype, &[0.02, -1.5, 0.0, 1e-20], 1.0 / 255.0));
            assert!(!fits(dtype, &[1e-30, 2e-30], 1e-20));
            assert!(!fits(dtype, &[1.0, 1e-30], 1e-20), "one weight is lost");
            assert!(!fits(dtype, &[1e-25], 1e-10), "an operand of 1e-8 would make it subnormal");
            assert!(!fits(dtype, &[1.0], 1e30));
            assert!(fits(dtype, &[1e-41], 2.0) && fits(dtype, &[1.0, 1e-41], 0.5), "it had no digits to lose");
        }
        assert!(fits(DType::Double, &[1e-30, 2e-30], 1e-20));
        assert!(!fits(DType::Double, &[1e-200], 1e-150));
        assert!(fits(DType::Float16, &[0.02, 1e-5], 0.125));
        assert!(!fits(DType::Float16, &[1e-4], 0.01) && !fits(DType::Float16, &[100.0], 100.0));
        assert!(Peak::new(DType::Int32).is_none());
    }

    #[test]
    fn sums_of_weights_stay_in_range() {
        assert!(may_sum(DType::Float, 1e28) && !may_sum(DType::Float, 1e30) && !may_sum(DType::Float, f64::INFINITY));
        assert!(may_sum(DType::Float16, 4000.0) && !may_sum(DType::Float16, 5000.0) && !may_sum(DType::Int32, 1.0));
    }

    #[test]
    fn factors_pass_values_within_bounds() {
        assert!(may_move(DType::Float, 0.125) && may_move(DType::Float, -65536.0));
        assert!(!may_move(DType::Float, 1e30) && !may_move(DType::Bfloat16, 1e-20));
        assert!(may_move(DType::Float16, 0.125) && !may_move(DType::Float16, 8.0));
        assert!(may_move(DType::Double, 1e30) && !may_move(DType::Double, 1e40));
        assert!(!may_move(DType::Float, 0.0) && !may_move(DType::Float, f64::NAN));
    }

    #[test]
    fn shifts_pass_weights_within_bounds() {
        assert!(may_shift(&[0.5, -1.0, 0.0]) && !may_shift(&[0.5, 1e6]) && !may_shift(&[f64::NAN]));
    }
}
