//! Remainders with the sign of the divisor, for all number types.

use crate::tensor::Number;
/// Returns `true` for NaN, the only value that is unordered with itself.
pub(super) fn is_nan<T: PartialOrd>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
}

/// Computes `a − ⌊a / b⌋·b`; zero results take the sign of `b`, too. An integer divisor must not be 0.
pub(super) fn floor_remainder<T: Number>(a: T, b: T) -> T {
    let zero = T::zero();
    let rest = a.rem(b).unwrap_or(zero);
    if rest == zero {
        return if b < zero { zero.neg() } else { zero };
    }
    if (rest < zero) == (b < zero) || is_nan(rest) || is_nan(b) { rest } else { rest.add(b) }
}
