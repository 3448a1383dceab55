//! Remainders of the sign of the divisor, on numbers of any type.

use crate::tensor::Number;
/// Only NaN is unordered with itself.
pub(super) fn is_nan<T: PartialOrd>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
}

/// `a − ⌊a / b⌋·b`, of the sign of `b` also when it is zero. The divisor is no integer 0.
pub(super) fn floor_remainder<T: Number>(a: T, b: T) -> T {
    let zero = T::zero();
    let rest = a.rem(b).unwrap_or(zero);
    if rest == zero {
        return if b < zero { zero.neg() } else { zero };
    }
    if (rest < zero) == (b < zero) || is_nan(rest) || is_nan(b) { rest } else { rest.add(b) }
}
