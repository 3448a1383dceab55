//! Branch-free exponentials of binary32 numbers, which the compiler can vectorize.
//!
//! The functions compute in binary64 in a fixed order of operations, so results are the same on all machines. The polynomial's
//! error is 10⁻¹¹, so results rounded to binary32 are within half a unit in the last place plus 10⁻⁴ units.

/// Splits `x = k · ln 2 + rest` with `|rest| ≤ ln 2 / 2`; returns 2ᵏ and the rest.
#[inline(always)]
fn reduced(x: f64) -> (f64, f64) {
    // Adding 1.5·2⁵² leaves the nearest integer in the low bits.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    let shifted = x * std::f64::consts::LOG2_E + SHIFT;
    let rest = x - (shifted - SHIFT) * std::f64::consts::LN_2;
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    (power, rest)
}

/// Computes `eˣ − 1` for `|x| ≤ ln 2 / 2`: the series up to `x⁹ / 9!`, in halves to shorten dependency chains.
#[inline(always)]
fn near_zero(x: f64) -> f64 {
    let square = x * x;
    let fourth = square * square;
    let low = (1.0 + 0.5 * x) + (1.0 / 6.0 + 1.0 / 24.0 * x) * square;
    let high = (1.0 / 120.0 + 1.0 / 720.0 * x) + (1.0 / 5_040.0 + 1.0 / 40_320.0 * x) * square;
    (low + (high + 1.0 / 362_880.0 * fourth) * fourth) * x
}

/// Computes `eˣ`, with `x` clamped to ±200, which is beyond the range of binary32 results.
#[inline(always)]
pub(in crate::ops) fn exp(x: f64) -> f64 {
    let (power, rest) = reduced(x.clamp(-200.0, 200.0));
    power + power * near_zero(rest)
}

/// Computes `tanh x` as `(e²ˣ − 1) / (e²ˣ + 1)`, with a precise numerator near 0.
#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let (power, rest) = reduced((2.0 * x).clamp(-80.0, 80.0));
    let less_one = power * near_zero(rest) + (power - 1.0);
    // Restore the sign of zero, which the sum loses.
    (less_one / (less_one + 2.0)).copysign(x)
}

/// Computes `1 / (1 + e⁻ˣ)`.
#[inline(always)]
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 997th binary32 number, and the special ones.
    fn numbers() -> impl Iterator<Item = f32> {
        (0..=u32::MAX).step_by(997).map(f32::from_bits).chain([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN])
    }

    fn agrees(fast: fn(f64) -> f64, slow: fn(f64) -> f64) {
        let mut wrong = 0;
        for x in numbers() {
            let (a, b) = (fast(x.into()) as f32, slow(x.into()) as f32);
            if a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits() {
                continue;
            }
            assert!(a.to_bits().abs_diff(b.to_bits()) == 1, "{x:e}: {a:e} is not {b:e}");
            wrong += 1;
        }
        assert!(wrong < 2000, "{wrong}");
    }

    #[test]
    fn results_are_those_of_the_library() {
        agrees(exp, libm::exp);
        agrees(tanh, libm::tanh);
        agrees(sigmoid, |x| 1.0 / (1.0 + libm::exp(-x)));
    }
}
