//! Shapes of tensors as values.
//!
//! | operator | versions | difference |
//! | --- | --- | --- |
//! | Shape | 1, 13, 15, 19, 21, 23, 24, 25 | 15: attributes `start` and `end`; the others add types |
//! | Size | 1, 13, 19, 21, 23, 24, 25 | types |
//!
//! Shape gives the dims `start .. end` as int64, both counted from the end when negative and then clamped to `[0, rank]`. Size gives
//! their product as an int64 of rank 0. Neither needs the operand's content: a symbolic shape gives symbolic elements.

use crate::dim::Dim;
use crate::ir::{Data, Fact, Scalar};
use crate::ops::traits::Traits;
use crate::ops::{EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor};

use super::count;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Shape", &[1, 13, 15, 19, 21, 23, 24, 25], infer_shape, eval_shape).with(Traits::NONE.of_shape()),
    Operator::new("Size", &[1, 13, 19, 21, 23, 24, 25], infer_size, eval_size).with(Traits::NONE.of_shape()),
];

/// Returns the range of dims that Shape selects among `rank` dims.
fn window(site: &Site<'_>, rank: usize) -> Result<std::ops::Range<usize>, Refusal> {
    let (start, end) = bounds(site)?;
    let rank_int = i64::try_from(rank).unwrap_or(i64::MAX);
    #[allow(clippy::disallowed_methods, reason = "the standard's own bounds of start and end, which count dims")]
    let place = |at: i64| {
        let counted = if at < 0 { at.saturating_add(rank_int) } else { at };
        usize::try_from(counted.clamp(0, rank_int)).unwrap_or(0)
    };
    let (start, end) = (place(start), end.map_or(rank, place));
    Ok(start..end.max(start))
}

fn bounds(site: &Site<'_>) -> Result<(i64, Option<i64>), Refusal> {
    if site.version < 15 {
        return Ok((0, None));
    }
    Ok((site.attr_int("start")?.unwrap_or(0), site.attr_int("end")?))
}

fn infer_shape(cx: &mut InferCx<'_>) -> InferResult {
    if let Some(dims) = cx.required(0)?.shape() {
        let dims = dims.get(window(cx, dims.len())?).unwrap_or_default().to_vec();
        let fact = Fact::tensor(Some(DType::Int64), Some(vec![Dim::from(dims.len() as i64)]));
        return Ok(vec![fact.with_elements(dims.into_iter().map(Scalar::Int).collect())]);
    }
    // For an unknown rank, at most `end - start` dims, if both count from the same side.
    let limit = match bounds(cx)? {
        (start, Some(end)) if (start < 0) == (end < 0) => Some(end.saturating_sub(start).max(0)),
        (start, None) if start < 0 => start.checked_neg(),
        _ => None,
    };
    let length = limit.map_or_else(|| cx.fresh_dim(), |limit| super::dim_up_to(cx, &Dim::constant(limit)));
    Ok(vec![Fact::tensor(Some(DType::Int64), Some(vec![length]))])
}

fn eval_shape(cx: &mut EvalCx<'_>) -> EvalResult {
    let shape = cx.tensor(0)?.shape();
    let dims = shape.get(window(cx, shape.len())?).unwrap_or_default();
    Ok(vec![Data::Tensor(Tensor::vector(dims.iter().map(|&dim| dim as i64).collect()))])
}

fn infer_size(cx: &mut InferCx<'_>) -> InferResult {
    let size = cx.required(0)?.shape().map(|dims| cx.scope().product(dims));
    // An unknown size is still the same size wherever it is used.
    let size = size.unwrap_or_else(|| cx.fresh_dim());
    Ok(vec![Fact::tensor(Some(DType::Int64), Some(Vec::new())).with_elements(vec![Scalar::Int(size)])])
}

fn eval_size(cx: &mut EvalCx<'_>) -> EvalResult {
    let size = count(cx.tensor(0)?.shape())?;
    Ok(vec![Data::Tensor(Tensor::scalar(size as i64))])
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::ops::Decline;

    #[test]
    fn windows_of_the_shape() {
        let data = iota(&[2, 3, 4]);
        let shape = |start: Option<i64>, end: Option<i64>| {
            let mut case = Case::new("Shape", 15);
            for (name, at) in [("start", start), ("end", end)] {
                if let Some(at) = at {
                    case = case.with(name, at);
                }
            }
            values::<i64>(&case.eval(std::slice::from_ref(&data)))
        };
        assert_eq!(shape(None, None), [2, 3, 4]);
        assert_eq!(shape(Some(-1), None), [4]);
        assert_eq!(shape(None, Some(-1)), [2, 3]);
        assert_eq!(shape(Some(1), Some(2)), [3]);
        assert_eq!(shape(Some(-10), Some(10)), [2, 3, 4]);
        assert!(shape(Some(2), Some(1)).is_empty());
        assert_eq!(shape(Some(i64::MIN), Some(i64::MAX)), [2, 3, 4]);
        assert!(matches!(Case::new("Shape", 13).with("start", 1).fails([data]), Decline::Unsupported(_)));
        assert!(values::<i64>(&Case::new("Shape", 1).eval([iota(&[])])).is_empty());
    }

    #[test]
    fn sizes() {
        assert!(Case::new("Size", 1).eval([iota(&[2, 3])]).same(&Tensor::scalar(6i64)));
        assert!(Case::new("Size", 25).eval([iota(&[])]).same(&Tensor::scalar(1i64)));
        assert!(Case::new("Size", 13).eval([iota(&[2, 0])]).same(&Tensor::scalar(0i64)));
    }
}
