//! OneHot: a row of `depth` elements for each index, on at the index and off elsewhere.
//!
//! | version | difference |
//! | --- | --- |
//! | 9 | indices count from 0; any other is off everywhere |
//! | 11 | indices in `[-depth, -1]` count from the end |
//! | 28 | bfloat16 values |
//!
//! Refused: a depth below 1, `values` with another number of elements than two, `depth` with another than one. Disputed and kept:
//! fractional indices, which the standard truncates and ONNX Runtime compares; negative indices in version 9, which ONNX Runtime counts
//! from the end.

use super::cells::{elements_of, moved, overwrite};
use super::{claim, count, of_rank};
use crate::dim::Dim;
use crate::ir::{Data, Fact, MAX_ELEMENTS, Scalar};
use crate::ops::traits::Traits;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site, axis_in};
use crate::tensor::{DType, StridedView, Tensor, gather};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("OneHot", &[9, 11, 28], infer, eval).with(Traits::NONE.inferred_by_contents(1))];

/// Returns the position of the new axis in a result for indices of this rank.
fn new_axis(site: &Site<'_>, rank: usize) -> Result<usize, Refusal> {
    axis_in(site.attr_int("axis")?.unwrap_or(-1), rank.saturating_add(1))
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    cx.require_rank(1, "depth", 0..=1)?;
    let (indices, depth, values) = (cx.required(0)?, cx.required(1)?, cx.required(2)?);
    let dtype = values.dtype();
    for (fact, number, name) in [(depth, 1, "depth"), (values, 2, "values")] {
        if let Some(length) = fact.static_len().filter(|&length| length != number) {
            return Err(Refusal::invalid(format!("the operand '{name}' has {length} elements instead of {number}")));
        }
    }
    let Some(shape) = indices.shape() else { return Ok(vec![of_rank(cx, dtype, None)]) };
    let axis = new_axis(cx, shape.len())?;
    let size = match elements_of(depth).and_then(|elements| elements.first().cloned()) {
        Some(Scalar::Int(size)) => size,
        Some(Scalar::Float(size)) if size.abs() < 9.0e15 => Dim::constant(size as i64),
        _ => cx.fresh_dim(),
    };
    if size.as_const().is_some_and(|size| size < 1) {
        return Err(Refusal::invalid(format!("the operand 'depth' is {}", cx.scope().format(&size))));
    }
    let mut dims = shape.to_vec();
    dims.insert(axis.min(shape.len()), size);
    let fact = Fact::tensor(dtype, Some(dims));
    let len = fact.static_len().filter(|&len| len <= MAX_ELEMENTS && values.data().is_none());
    let pair = values.elements().and_then(|pair| <[Scalar; 2]>::try_from(pair).ok());
    let known = len.zip(fact.static_shape()).zip(indices.const_ints().zip(pair));
    let Some(((len, shape), (places, [off, on]))) = known else { return Ok(vec![fact]) };
    let Ok(starts) = hot(&places, &shape, axis, cx.version) else { return Ok(vec![fact]) };
    let mut elements = vec![off; len];
    starts.iter().for_each(|&start| elements.get_mut(start).into_iter().for_each(|element| *element = on.clone()));
    Ok(vec![fact.with_elements(elements)])
}

/// Returns the positions of the elements that are on. The result must be known to be addressable.
fn hot(indices: &[i64], shape: &[usize], axis: usize, version: i64) -> Result<Vec<usize>, Decline> {
    let (_, depth, inner) = super::around(shape, axis)?;
    let wide = i64::try_from(depth).unwrap_or(i64::MAX);
    let mut starts = Vec::new();
    for (at, &index) in indices.iter().enumerate() {
        let index = match index {
            index if index >= 0 => index,
            index if index < -wide => continue,
            _ if version < 11 => {
                return Err(Decline::unsupported(
                    "an element of 'indices' is negative, which version 9 does not define",
                ));
            }
            index => index + wide,
        };
        if index < wide {
            // There are indices, so the dims around the new axis are not 0.
            let (outer, inner_at) = (at / inner.max(1), at % inner.max(1));
            starts.push((outer * depth + index as usize) * inner + inner_at);
        }
    }
    Ok(starts)
}

fn one_hot(values: &Tensor, shape: &[usize], starts: &[usize]) -> Result<Tensor, Decline> {
    let spread = |at: usize, shape: &[usize]| {
        let view = StridedView::of(values).select(0, at)?;
        gather(values, &view.broadcast_to(shape)?)
    };
    overwrite(&spread(0, shape)?, &spread(1, &[starts.len()])?, starts, 1)
}

/// Returns the indices as integers.
fn whole_indices(indices: &Tensor) -> Result<Vec<i64>, Decline> {
    if let Some(ints) = indices.to_i64s() {
        return Ok(ints);
    }
    // A number that does not fit is out of every range.
    let floats = match indices.dtype() {
        DType::Uint64 => {
            return Ok(indices
                .elements::<u64>()
                .unwrap_or_default()
                .iter()
                .map(|&index| i64::try_from(index).unwrap_or(i64::MAX))
                .collect());
        }
        _ => indices.to_f64s().ok_or_else(|| Decline::invalid("the operand 'indices' has no numeric type"))?,
    };
    let whole = |value: f64| if value.fract() == 0.0 { Ok(value as i64) } else { Err(()) };
    floats
        .into_iter()
        .map(whole)
        .collect::<Result<_, _>>()
        .map_err(|()| Decline::unsupported("an element of 'indices' is not an integer"))
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (indices, depth, values) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let axis = new_axis(cx, indices.rank())?;
    let depth = match (depth.to_i64s().as_deref(), depth.to_f64s().as_deref()) {
        (Some(&[depth]), _) => Some(depth),
        (None, Some(&[depth])) if depth.abs() < 9.0e15 => Some(depth as i64),
        _ => None,
    };
    let depth = depth.filter(|&depth| depth > 0).and_then(|depth| usize::try_from(depth).ok());
    let depth = depth.ok_or_else(|| Decline::invalid("the operand 'depth' is not a single positive number"))?;
    if values.shape() != [2] {
        return Err(Decline::invalid(format!("the operand 'values' has shape {:?} instead of [2]", values.shape())));
    }
    let mut shape = indices.shape().to_vec();
    shape.insert(axis.min(indices.rank()), depth);
    claim(cx, values.dtype(), &shape)?;
    let starts =
        if count(&shape)? == 0 { Vec::new() } else { hot(&whole_indices(indices)?, &shape, axis, cx.version)? };
    let result = moved(&[values], &|operands| match operands {
        [values] => one_hot(values, &shape, &starts),
        _ => Err(Decline::invalid("the operand 'values' does not have two elements")),
    })?;
    Ok(vec![Data::Tensor(result)])
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::dim::Scope;

    #[test]
    fn rows_of_one_hot() {
        let pair = ints(&[7, 9]);
        let run = |axis: i64, indices: Tensor, depth: Tensor| {
            Case::new("OneHot", 11).with("axis", axis).eval([indices, depth, pair.clone()])
        };
        let expected = tensor(&[2, 3], &[7i64, 9, 7, 7, 7, 9]);
        assert!(run(-1, ints(&[1, -1]), Tensor::scalar(3i64)).same(&expected));
        assert!(run(1, tensor(&[2], &[1f32, -1.0]), Tensor::vector(vec![3.7f32])).same(&expected));
        assert_eq!(values::<i64>(&run(0, ints(&[1, 5, -4]), ints(&[2]))), [7, 7, 7, 9, 7, 7]);
        assert_eq!(run(-1, tensor::<i64>(&[0, 2], &[]), ints(&[2])).shape(), [0, 2, 2]);
        assert!(run(0, Tensor::scalar(0i64), ints(&[2])).same(&ints(&[9, 7])));
        let words = Case::new("OneHot", 11).eval([ints(&[1]), ints(&[2]), strings(&[2], &["", "x"])]);
        assert!(words.same(&strings(&[1, 2], &["", "x"])));
        let case = |opset| Case::new("OneHot", opset);
        assert!(matches!(case(9).fails([ints(&[-1]), ints(&[2]), pair.clone()]), Decline::Unsupported(_)));
        assert_eq!(values::<i64>(&case(9).eval([ints(&[-3]), ints(&[2]), pair.clone()])), [7, 7]);
        assert!(matches!(case(11).fails([tensor(&[1], &[0.5f32]), ints(&[2]), pair.clone()]), Decline::Unsupported(_)));
        case(11).fails([ints(&[1]), ints(&[0]), pair.clone()]);
        case(11).fails([ints(&[1]), ints(&[2]), ints(&[1, 2, 3])]);
        assert!(matches!(case(11).fails([ints(&[1]), ints(&[i64::MAX]), pair]), Decline::OverBudget(_)));
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let facts =
            vec![Some(shaped(&scope, &["B", "S"])), Some(vector(&scope, &["N"])), Some(vector(&scope, &["0", "1"]))];
        let fact = Case::new("OneHot", 11).with("axis", 1).infer(&scope, facts).remove(0);
        assert_eq!(dims(&scope, &fact), ["B", "N", "S"]);
        let facts =
            vec![Some(Fact::constant(ints(&[1]))), Some(vector(&scope, &["2"])), Some(vector(&scope, &["0", "N"]))];
        let fact = Case::new("OneHot", 11).infer(&scope, facts).remove(0);
        assert_eq!(elements(&scope, &fact), ["0", "N"]);
    }
}
