//! Compares two results: bit for bit, or up to rounding.

use crate::ir::Data;
use crate::tensor::{DType, Tensor};

/// The most elements that a message shows of a value.
const SHOWN: usize = 4;

/// Describes how two values differ; `None` if they are equal. NaN equals NaN. Without `exact`, floats may differ by rounding, relative to the largest
/// number of the tensor.
pub fn difference(a: &Data, b: &Data, exact: bool) -> Option<String> {
    match (a, b) {
        (Data::Tensor(a), Data::Tensor(b)) => of_tensors(a, b, exact),
        (Data::Sequence(a), Data::Sequence(b)) if a.len() == b.len() => {
            a.iter().zip(b.iter()).find_map(|(a, b)| difference(a, b, exact))
        }
        (Data::Sequence(a), Data::Sequence(b)) => Some(format!("has {} elements instead of {}", b.len(), a.len())),
        (Data::Optional(Some(a)), Data::Optional(Some(b))) => difference(a, b, exact),
        (a, b) if a.same(b) => None,
        _ => Some("is another value".to_string()),
    }
}

fn of_tensors(a: &Tensor, b: &Tensor, exact: bool) -> Option<String> {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        let told = |tensor: &Tensor| format!("{}{:?}", tensor.dtype(), tensor.shape());
        return Some(format!("is {} instead of {}", told(b), told(a)));
    }
    if a.same(b) {
        return None;
    }
    if !a.dtype().is_float() {
        return Some(match (a.to_i64s(), b.to_i64s()) {
            (Some(a), Some(b)) => shown(&a, &b, |a, b| a == b)?,
            _ => "is another value".to_string(),
        });
    }
    let (x, y) = (a.to_f64s()?, b.to_f64s()?);
    if exact {
        return shown(&x, &y, |a, b| a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits());
    }
    let largest = x.iter().filter(|number| number.is_finite()).fold(0.0_f64, |most, number| most.max(number.abs()));
    let bound = tolerance(a.dtype());
    shown(&x, &y, |a, b| a.is_nan() && b.is_nan() || a == b || (a - b).abs() <= bound * (a.abs() + largest))
}

/// Returns the tolerance for rounding in a chain of operations, relative to the largest number.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Double => 1e-9,
        DType::Float => 1e-3,
        DType::Float16 => 2e-2,
        _ => 0.1,
    }
}

/// Describes both values from their first differing element on.
fn shown<T: Copy + std::fmt::Debug>(a: &[T], b: &[T], equal: impl Fn(T, T) -> bool) -> Option<String> {
    let differing: Vec<usize> =
        a.iter().zip(b).enumerate().filter(|(_, (a, b))| !equal(**a, **b)).map(|(at, _)| at).collect();
    let first = *differing.first()?;
    let of = |values: &[T]| values.iter().skip(first).take(SHOWN).copied().collect::<Vec<_>>();
    let (count, all) = (differing.len(), a.len());
    Some(format!("is {:?} instead of {:?} from element {first} on, {count} of {all} elements differ", of(b), of(a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(values: &[f32]) -> Data {
        Data::Tensor(Tensor::vector(values.to_vec()))
    }

    #[test]
    fn zeros_of_both_signs_differ_bit_for_bit_only() {
        assert!(difference(&vector(&[0.0]), &vector(&[-0.0]), true).is_some());
        assert!(difference(&vector(&[0.0]), &vector(&[-0.0]), false).is_none());
        assert!(difference(&vector(&[f32::NAN]), &vector(&[f32::NAN]), true).is_none());
    }

    #[test]
    fn rounding_is_measured_by_the_largest_number() {
        assert!(difference(&vector(&[1000.0, 0.0]), &vector(&[1000.0, 0.5]), false).is_none());
        assert!(difference(&vector(&[1000.0, 0.0]), &vector(&[1000.0, 5.0]), false).is_some());
        assert!(difference(&vector(&[1.0]), &vector(&[f32::INFINITY]), false).is_some());
    }

    #[test]
    fn a_difference_shows_both_values() {
        let told = difference(&vector(&[1.0, 2.0]), &vector(&[1.0, 3.0]), false).unwrap();
        assert_eq!(told, "is [3.0] instead of [2.0] from element 1 on, 1 of 2 elements differ");
    }
}
