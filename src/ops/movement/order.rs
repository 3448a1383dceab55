//! Keys for elements, with the order of the elements.

use crate::ops::Decline;
use crate::sort;
use crate::tensor::{DType, Number, Tensor, dispatch_numeric};

/// Returns a key for each element, row-major. Keys have the order of the elements; both zeros have one key.
///
/// # Errors
/// There are NaNs or complex numbers, which have no order.
pub(super) fn sort_keys(tensor: &Tensor) -> Result<Vec<u64>, Decline> {
    let unordered = || Decline::unsupported(format!("the element type {} has no order", tensor.dtype()));
    if let Some(strings) = tensor.strings() {
        let mut sorted: Vec<&bytes::Bytes> = strings.iter().collect();
        sort::sort(&mut sorted);
        sorted.dedup();
        return Ok(strings.iter().map(|string| sorted.partition_point(|&other| other < string) as u64).collect());
    }
    if tensor.dtype() == DType::Uint64 {
        return Ok(tensor.elements::<u64>().ok_or_else(unordered)?.into_owned());
    }
    if let Some(ints) = tensor.to_i64s() {
        return Ok(ints.into_iter().map(|int| int as u64 ^ 1 << 63).collect());
    }
    let mut ordered = true;
    let mut key = |value: f64| {
        ordered &= !value.is_nan();
        float_key(value)
    };
    let keys: Vec<u64> = dispatch_numeric!(tensor.dtype(), T => {
        let elements = tensor.elements::<T>().ok_or_else(unordered)?;
        elements.iter().map(|&element| key(Number::to_f64(element))).collect()
    }, else => {
        let floats = tensor.to_f64s().ok_or_else(unordered)?;
        floats.into_iter().map(key).collect()
    });
    if ordered { Ok(keys) } else { Err(Decline::unsupported("the operand contains NaN, which has no order")) }
}

/// Returns bits with the order of the float, which is no NaN.
pub(super) fn float_key(value: f64) -> u64 {
    // Adding 0 turns −0 into 0.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn keys_compare_like_elements() {
        let ascending = |tensor: Tensor| assert!(sort_keys(&tensor).unwrap().is_sorted_by(|a, b| a < b), "{tensor:?}");
        ascending(ints(&[i64::MIN, -1, 0, 1, i64::MAX]));
        ascending(Tensor::vector(vec![0u64, 1, 1 << 63, u64::MAX]));
        ascending(Tensor::vector(vec![f32::NEG_INFINITY, -1.0, -1e-45, 0.0, 1e-45, 1.0, f32::INFINITY]));
        ascending(Tensor::from_bools(&[2], &[false, true]).unwrap());
        ascending(strings(&[4], &["", "B", "a", "aa"]));
        let zeros = sort_keys(&Tensor::vector(vec![-0.0f64, 0.0])).unwrap();
        assert_eq!(zeros[0], zeros[1]);
        assert!(sort_keys(&Tensor::vector(vec![f32::NAN])).is_err());
        assert!(sort_keys(&Tensor::vector(vec![crate::tensor::Complex64([0.0, 1.0])])).is_err());
    }
}
