//! Limits of moving a factor or a shift: the guard of every rule that computes new weights.
//!
//! `s·(x·w) = x·(s·w)` holds for real numbers. For floats it holds up to rounding as long as every intermediate number is normal. Likewise
//! `w·(x + t) = w·x + w·t` holds while `w·t` is not much larger than the result. Both depend on unknown operands. These are assumed to be
//! of *ordinary size*, a share of the type's range:
//!
//! | type | normal numbers | ordinary size | factor across computed values |
//! | --- | --- | --- | --- |
//! | float, bfloat16 | 2⁻¹²⁶ … 2¹²⁸ | 2⁻³² … 2³² | 2⁻¹⁶ … 2¹⁶ |
//! | double | 2⁻¹⁰²² … 2¹⁰²⁴ | 2⁻²⁵⁶ … 2²⁵⁶ | 2⁻¹²⁸ … 2¹²⁸ |
//! | float16 | 2⁻¹⁴ … 2¹⁶ | 1 … 2⁴ | 2⁻⁴ … 1 |
//!
//! Operands that have been multiplied by a larger constant are excluded ([`ordinary`](super::ordinary)).
//!
//! * **Weights** ([`Peak`]): a product `s·w` other than 0 is normal, and so is its product with an operand of ordinary size. A factor below
//!   1 keeps products far enough above the smallest normal number, a factor above 1 keeps them below the largest. For float16, whose small
//!   weights have few digits anyway, the largest weight of each channel decides. The same holds for products with the old weights: a factor
//!   below 1, or 0, would hide their overflow, and a large one their lost digits. Each new weight of float16 has an error of up to half a
//!   unit in its last place. In a sum of `n` products, these errors add up to no more than the rounding of a result of the usual size,
//!   `√n`. A sum that cancels to less loses digits.
//! * **Values** ([`may_move`]): a factor that passes computed values scales all of them. It is within the last column, so that values up to
//!   2¹¹² and down to 2⁻¹¹⁰ (in float) have room.
//! * **Removed steps** ([`has_room`]): the product that a separate node computed was a normal number if the operand was of ordinary size.
//!   So `1e30·(1e-30·x)` may become `x`, but `1e-38·(1e38·x)` may not, because its inner product may overflow.
//! * **Sums** ([`may_add`]): the first sum of `(y + b) + t` has the rounding error of `b`. `y + (b + t)` does not have it if `b` and `t`
//!   cancel. A result of ordinary size keeps half of its digits in both forms.

use crate::tensor::DType;

/// The range of a floating-point type, and its ordinary size.
#[derive(Clone, Copy)]
struct Limits {
    /// The smallest normal number.
    smallest: f64,
    /// The largest finite number.
    largest: f64,
    /// The least magnitude of ordinary size.
    least: f64,
    /// The largest magnitude of ordinary size.
    most: f64,
    /// The bounds of factors that pass computed values.
    factors: [f64; 2],
    /// The largest ratio of a term to a sum that keeps half of its digits.
    cancels: f64,
}

fn limits(dtype: DType) -> Option<Limits> {
    // Ordinary size ends at a power of two, factors at its square root.
    let symmetric = |smallest: f64, largest: f64, ordinary: i16, cancels: f64| {
        let far = ordinary / 2;
        let factors = [exp2(-far), exp2(far)];
        Limits { smallest, largest, least: exp2(-ordinary), most: exp2(ordinary), factors, cancels }
    };
    Some(match dtype {
        DType::Float => symmetric(f32::MIN_POSITIVE.into(), f32::MAX.into(), 32, exp2(12)),
        // The largest bfloat16 is a little less than the largest float.
        DType::Bfloat16 => symmetric(f32::MIN_POSITIVE.into(), f32::MAX.into(), 32, exp2(4)),
        DType::Double => symmetric(f64::MIN_POSITIVE, f64::MAX, 256, exp2(26)),
        DType::Float16 => {
            let factors = [exp2(-4), 1.0];
            Limits { smallest: exp2(-14), largest: 65504.0, least: 1.0, most: 16.0, factors, cancels: exp2(5) }
        }
        _ => return None,
    })
}

/// Returns `2^exponent`, exactly, for exponents of normal numbers. It is called for each weight, so it builds the bits directly.
const fn exp2(exponent: i16) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Returns `true` if values computed in a type may be multiplied by a factor, and later values by its inverse.
pub(super) fn may_move(dtype: DType, factor: f64) -> bool {
    limits(dtype).is_some_and(|Limits { factors: [least, most], .. }| (least..=most).contains(&factor.abs()))
}

/// Returns `true` if a new number keeps its digits in a type: it is 0 or normal. Subnormal numbers of float16 are accepted, because small
/// weights and biases of that type are often subnormal.
pub(super) fn keeps_digits(dtype: DType, number: f64) -> bool {
    let small = |limits: Limits| number != 0.0 && number.abs() < limits.smallest;
    number.is_finite() && limits(dtype).is_some_and(|limits| dtype == DType::Float16 || !small(limits))
}

/// Returns `true` if the magnitude of a number is at most ordinary size.
pub(super) fn is_ordinary_number(dtype: DType, number: f64) -> bool {
    // For float16 the limit is not applied: too many constants exceed its small range.
    dtype == DType::Float16 || limits(dtype).is_some_and(|Limits { most, .. }| number.abs() <= most)
}

/// Returns `true` if the products of operands of ordinary size and this factor are 0 or normal numbers.
pub(super) fn has_room(dtype: DType, factor: f64) -> bool {
    factor == 0.0
        || limits(dtype).is_some_and(|Limits { smallest, largest, least, most, .. }| {
            (smallest / least..=largest / most).contains(&factor.abs())
        })
}

/// Returns `true` if the products of operands of ordinary size and these numbers are below the largest number of the type.
pub(super) fn is_bounded(dtype: DType, numbers: impl IntoIterator<Item = f64>) -> bool {
    limits(dtype)
        .is_some_and(|Limits { largest, most, .. }| numbers.into_iter().all(|number| number.abs() <= largest / most))
}

/// Returns `true` if two successive added numbers may be merged into their sum.
pub(super) fn may_add(dtype: DType, a: f64, b: f64) -> bool {
    limits(dtype).is_some_and(|Limits { largest, cancels, .. }| {
        let term = a.abs().max(b.abs());
        a.is_finite() && b.is_finite() && term <= largest && term <= cancels * (a + b).abs().max(1.0)
    })
}

/// Returns `true` if a number that is multiplied by a factor, or added to such a product, may be scaled at compile time: this hides neither
/// an overflow nor lost digits.
pub(super) fn may_scale(dtype: DType, number: f64, factor: f64) -> bool {
    Peak::new(dtype, factor).is_some_and(|mut peak| {
        peak.largest = number.abs();
        number.is_finite() && peak.hides_nothing()
    })
}

/// The weights that one factor multiplies, summarized.
pub(super) struct Peak {
    dtype: DType,
    limits: Limits,
    factor: f64,
    /// The largest weight.
    largest: f64,
}

impl Peak {
    /// Returns the summary of no weights.
    pub fn new(dtype: DType, factor: f64) -> Option<Peak> {
        Some(Peak { dtype, limits: limits(dtype)?, factor, largest: 0.0 })
    }

    /// Records a weight. Returns `true` if its product with the factor keeps its digits.
    #[must_use]
    pub fn note(&mut self, weight: f64) -> bool {
        let product = (weight * self.factor).abs();
        if weight == 0.0 {
            return true;
        }
        self.largest = self.largest.max(weight.abs());
        let had_digits = weight.abs() >= self.limits.smallest;
        let has_digits = self.dtype == DType::Float16 || product >= self.limits.smallest;
        product.is_finite() && (self.factor == 0.0 || self.factor.abs() >= 1.0 || !had_digits || has_digits)
    }

    /// Returns the smallest normal number of the type.
    pub fn smallest(dtype: DType) -> Option<f64> {
        Some(limits(dtype)?.smallest)
    }

    /// Returns `true` if products with operands of ordinary size are within the type's range, for the old weights and for the new ones.
    pub fn has_room(&self) -> bool {
        let Limits { smallest, largest, least, most, .. } = self.limits;
        let (factor, product) = (self.factor.abs(), (self.largest * self.factor).abs());
        let above = factor >= 1.0 || product == 0.0 || product >= smallest / least;
        let below = factor <= 1.0 || product <= largest / most;
        above && below && self.hides_nothing()
    }

    /// Returns `true` if the factor is a number of the type, and hides no overflow and no lost digits. For a factor below 1 or a very large
    /// one, the old weights times operands of ordinary size must be normal numbers.
    fn hides_nothing(&self) -> bool {
        let Limits { smallest, largest, least, most, factors: [_, far], .. } = self.limits;
        let factor = self.factor.abs();
        let is_number = factor == 0.0 || self.dtype == DType::Float16 || factor >= smallest;
        let overflow = factor < 1.0 && self.largest > largest / most;
        let underflow = factor > far && self.largest != 0.0 && self.largest < smallest / least;
        is_number && factor <= largest && !overflow && !underflow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(dtype: DType, weights: &[f64], factor: f64) -> bool {
        let mut peak = Peak::new(dtype, factor).unwrap();
        weights.iter().all(|&weight| peak.note(weight)) && peak.has_room()
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
        assert!(Peak::new(DType::Int32, 1.0).is_none());
    }

    #[test]
    fn overflow_of_old_weights_is_not_hidden() {
        for dtype in [DType::Float, DType::Bfloat16] {
            assert!(!fits(dtype, &[1e38], -0.0) && !fits(dtype, &[1e38], 1e-20) && fits(dtype, &[1e20], 0.0));
            assert!(!fits(dtype, &[1e-35], 1e30) && fits(dtype, &[1e-35], 1e4) && fits(dtype, &[0.0], 1e30));
            assert!(!fits(dtype, &[1e20], 1e-40), "the factor has lost digits itself");
            assert!(!fits(dtype, &[1e-20], 1e40), "the factor is infinite");
        }
        assert!(!fits(DType::Float16, &[5000.0], 0.5) && fits(DType::Float16, &[4000.0], 0.5));
        assert!(!fits(DType::Float16, &[1e-5], 100.0) && fits(DType::Float16, &[1e-5, 0.1], 100.0));
        assert!(!fits(DType::Double, &[1e300], 1e-30) && fits(DType::Double, &[1e200], 1e-30));
    }

    #[test]
    fn removed_steps_have_room() {
        assert!(has_room(DType::Float, 1e20) && has_room(DType::Float, 0.0) && !has_room(DType::Float, 1e30));
        assert!(!has_room(DType::Float, 1e-30) && !has_room(DType::Float, f64::NAN));
        assert!(has_room(DType::Float16, 1.0 / 255.0) && !has_room(DType::Float16, 5000.0));
        assert!(may_scale(DType::Float, 1e20, 1e-5) && !may_scale(DType::Float, 1e35, 1e-5));
        assert!(may_scale(DType::Float, 1e35, 2.0) && may_scale(DType::Float, -1e-3, 1e30));
        assert!(!may_scale(DType::Float, f64::NAN, 1.0));
    }

    #[test]
    fn sums_keep_half_of_their_digits() {
        assert!(may_add(DType::Float, 1e6, 1e6) && may_add(DType::Float, 100.0, -100.0));
        assert!(!may_add(DType::Float, 1e8, -1e8) && may_add(DType::Double, 1e7, -1e7));
        assert!(!may_add(DType::Float16, 64.0, -63.0) && may_add(DType::Float16, 64.0, -32.0));
        assert!(!may_add(DType::Float, 4e38, -3e38) && !may_add(DType::Float, f64::NAN, 1.0));
    }

    #[test]
    fn factors_pass_values_within_bounds() {
        assert!(may_move(DType::Float, 0.125) && may_move(DType::Float, -65536.0));
        assert!(!may_move(DType::Float, 1e30) && !may_move(DType::Bfloat16, 1e-20));
        assert!(may_move(DType::Float16, 0.125) && !may_move(DType::Float16, 8.0));
        assert!(may_move(DType::Double, 1e30) && !may_move(DType::Double, 1e40));
        assert!(!may_move(DType::Float, 0.0) && !may_move(DType::Float, f64::NAN));
    }
}
