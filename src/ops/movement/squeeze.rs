//! Axes of dim 1 that come and go, and axes that melt together. The elements stay in place.
//!
//! | operator | versions | what changes |
//! | --- | --- | --- |
//! | Squeeze | 1, 11, 13, 21, 23, 24, 25 | 11: negative axes; 13: `axes` is an operand; the others add types |
//! | Unsqueeze | 1, 11, 13, 21, 23, 24, 25 | the same |
//! | Flatten | 1, 9, 11, 13, 21, 23, 24, 25 | 11: a negative `axis`; the others add types |
//!
//! Squeeze without `axes` takes every dim of 1 away, so that the rank of its result hangs on every dim. Axes of Unsqueeze
//! count in the result. Flatten multiplies the dims before `axis` and those from there on.
//!
//! Refused: an axis out of range or, in Unsqueeze, named twice; squeezing a dim that is not 1. Disputed and left alone: Squeeze with
//! `axes` given but empty, where ONNX Runtime squeezes everything and the text nothing.

use super::{List, axes_in, distinct_axes, of_rank};
use super::{maps, moves};
use crate::dim::{Dim, Scope};
use crate::ir::Fact;
use crate::ops::traits::{Movement, NodeFacts, Traits, moved};
use crate::ops::{InferCx, InferResult, Operator, Refusal, Site};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Squeeze", &[1, 11, 13, 21, 23, 24, 25], infer_squeeze, maps::eval).with(
        Traits::movement(Movement::Layout)
            .index_map(maps::layout)
            .counts(moved)
            .repeats(moves::layout)
            .needs(needs)
            .inferred_by_contents(1)
            .carrying_quantization(),
    ),
    Operator::new("Unsqueeze", &[1, 11, 13, 21, 23, 24, 25], infer_unsqueeze, maps::eval).with(
        Traits::movement(Movement::Layout)
            .index_map(maps::layout)
            .counts(moved)
            .repeats(moves::layout)
            .inferred_by_contents(1)
            .carrying_quantization(),
    ),
    Operator::new("Flatten", &[1, 9, 11, 13, 21, 23, 24, 25], infer_flatten, maps::eval)
        .with(Traits::movement(Movement::Layout).index_map(maps::layout).counts(moved).repeats(moves::layout)),
];

/// Squeeze removes axes of dim 1 only.
fn needs(view: &NodeFacts<'_>) -> Vec<(Dim, i64)> {
    let Some(dims) = view.shape(0) else { return Vec::new() };
    let axes = view.axes(1, dims.len()).unwrap_or_default();
    let squeezed = axes.into_iter().filter_map(|axis| dims.get(axis)).filter(|dim| dim.as_const().is_none());
    squeezed.flat_map(|dim| [(dim.clone(), 1), (view.scope().sub(&Dim::constant(2), dim), 1)]).collect()
}

/// The axes as inference sees them.
fn axes(cx: &InferCx<'_>) -> Result<List, Refusal> {
    if cx.version < 13 { List::attribute(cx, "axes") } else { Ok(List::operand(cx, 1)) }
}

fn infer_squeeze(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let (dtype, axes) = (data.dtype(), axes(cx)?);
    let Some(shape) = data.shape() else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let one = Dim::constant(1);
    let axes = match axes {
        List::Known(axes) if !axes.is_empty() => axes_in(&axes, shape.len())?,
        List::Unknown(Some(length)) if length > 0 => {
            // Each of the axes, if they are distinct, takes one dim away; a repeated one may take none.
            let rank = if length == 1 { shape.len().checked_sub(1) } else { None };
            return Ok(vec![of_rank(cx, dtype, rank)]);
        }
        List::Unknown(_) => return Ok(vec![Fact::tensor(dtype, None)]),
        absent => {
            let is_one = |dim: &Dim| cx.scope().eq(dim, &one);
            if shape.iter().any(|dim| !is_one(dim).is_yes() && !is_one(dim).is_no()) {
                return Ok(vec![Fact::tensor(dtype, None)]);
            }
            let axes: Vec<usize> =
                shape.iter().enumerate().filter(|(_, dim)| is_one(dim).is_yes()).map(|(axis, _)| axis).collect();
            if matches!(absent, List::Known(_)) && !axes.is_empty() {
                return Err(Refusal::unsupported(
                    "'axes' is empty: by the standard no axis is removed, but runtimes remove every axis of size 1",
                ));
            }
            axes
        }
    };
    if let Some(&axis) = axes.iter().find(|&&axis| shape.get(axis).is_some_and(|dim| cx.scope().eq(dim, &one).is_no()))
    {
        return Err(Refusal::invalid(format!("'axes' contains axis {axis}, whose dim is not 1")));
    }
    let kept = shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, dim)| dim.clone());
    Ok(vec![Fact::tensor(dtype, Some(kept.collect()))])
}

/// Inserts dims of 1 at `axes` of the result.
fn unsqueezed(dims: &[Dim], axes: &[i64]) -> Result<Vec<Dim>, Refusal> {
    let rank = dims.len().saturating_add(axes.len());
    let mut unsqueezed = vec![None; rank];
    for axis in distinct_axes(axes, rank)? {
        unsqueezed.get_mut(axis).into_iter().for_each(|dim| *dim = Some(Dim::constant(1)));
    }
    let mut old = dims.iter().cloned();
    Ok(unsqueezed.into_iter().filter_map(|dim| dim.or_else(|| old.next())).collect())
}

fn infer_unsqueeze(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let dtype = data.dtype();
    match (axes(cx)?, data.shape()) {
        (List::Absent, _) => Err(Refusal::invalid("'axes' is missing")),
        (List::Known(axes), Some(shape)) => Ok(vec![Fact::tensor(dtype, Some(unsqueezed(shape, &axes)?))]),
        // Wherever the axes of a scalar come, all of them are new.
        (List::Unknown(Some(length @ 0..=MAX_NEW)), Some([])) => {
            Ok(vec![Fact::tensor(dtype, Some(vec![Dim::constant(1); length]))])
        }
        (List::Unknown(Some(length)), Some(shape)) => Ok(vec![of_rank(cx, dtype, shape.len().checked_add(length))]),
        _ => Ok(vec![Fact::tensor(dtype, None)]),
    }
}

/// The most axes that a scalar gets without anyone knowing which.
const MAX_NEW: usize = 64;

/// How many axes Flatten puts in front; the rank is allowed too.
fn flatten_at(site: &Site<'_>, rank: usize) -> Result<usize, Refusal> {
    let axis = site.attr_int("axis")?.unwrap_or(1);
    let wide = i64::try_from(rank).unwrap_or(i64::MAX);
    let counted = if axis < 0 { axis.checked_add(wide) } else { Some(axis) };
    let counted = counted.filter(|&axis| axis <= wide).and_then(|axis| usize::try_from(axis).ok());
    counted.ok_or_else(|| Refusal::invalid(format!("axis {axis} is out of range for rank {rank}")))
}

fn infer_flatten(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let dtype = data.dtype();
    let Some(shape) = data.shape() else { return Ok(vec![of_rank(cx, dtype, Some(2))]) };
    let (front, back) = shape.split_at_checked(flatten_at(cx, shape.len())?).unwrap_or((shape, &[]));
    let scope: &Scope = cx.scope();
    let flat = vec![scope.product(front), scope.product(back)];
    Ok(vec![Fact::tensor(dtype, Some(flat))])
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::ops::Decline;
    use crate::tensor::DType;

    #[test]
    fn squeezing() {
        let data = iota(&[1, 3, 1]);
        assert_eq!(Case::new("Squeeze", 1).eval([data.clone()]).shape(), [3]);
        assert_eq!(Case::new("Squeeze", 11).with("axes", vec![-1]).eval([data.clone()]).shape(), [1, 3]);
        assert_eq!(Case::new("Squeeze", 13).eval([data.clone(), ints(&[0, -1])]).shape(), [3]);
        assert_eq!(Case::new("Squeeze", 13).eval([data.clone()]).shape(), [3]);
        Case::new("Squeeze", 13).fails([data.clone(), ints(&[1])]);
        Case::new("Squeeze", 13).fails([data.clone(), ints(&[3])]);
        assert!(matches!(Case::new("Squeeze", 13).fails([data, ints(&[])]), Decline::Unsupported(_)));
        assert_eq!(Case::new("Squeeze", 13).eval([iota(&[3]), ints(&[])]).shape(), [3]);
    }

    #[test]
    fn unsqueezing() {
        let data = iota(&[3, 4]);
        assert_eq!(Case::new("Unsqueeze", 1).with("axes", vec![0, 3]).eval([data.clone()]).shape(), [1, 3, 4, 1]);
        assert_eq!(Case::new("Unsqueeze", 13).eval([data.clone(), ints(&[-1, 1])]).shape(), [3, 1, 4, 1]);
        assert_eq!(Case::new("Unsqueeze", 13).eval([iota(&[]), ints(&[0])]).shape(), [1]);
        Case::new("Unsqueeze", 13).fails([data.clone(), ints(&[0, -4])]);
        Case::new("Unsqueeze", 13).fails([data, ints(&[3])]);
    }

    #[test]
    fn flattening() {
        let data = iota(&[2, 3, 4]);
        let flat = |axis: i64| Case::new("Flatten", 11).with("axis", axis).eval([data.clone()]).shape().to_vec();
        assert_eq!(flat(0), [1, 24]);
        assert_eq!(flat(2), [6, 4]);
        assert_eq!(flat(3), [24, 1]);
        assert_eq!(flat(-1), [6, 4]);
        assert_eq!(flat(-3), [1, 24]);
        assert_eq!(Case::new("Flatten", 1).eval([iota(&[5])]).shape(), [5, 1]);
        Case::new("Flatten", 11).with("axis", -4).fails([data.clone()]);
        Case::new("Flatten", 11).with("axis", 4).fails([data]);
    }

    #[test]
    fn symbols_and_ranks() {
        let scope = Rc::new(Scope::new());
        let infer = |case: Case, facts: Vec<Fact>| case.infer(&scope, facts.into_iter().map(Some).collect()).remove(0);
        let data = || shaped(&scope, &["1", "B+2", "1"]);
        assert_eq!(dims(&scope, &infer(Case::new("Squeeze", 13), vec![data()])), ["B + 2"]);
        // Whether B is 1 nobody knows.
        let open = infer(Case::new("Squeeze", 13), vec![shaped(&scope, &["1", "B"])]);
        assert_eq!(open.rank(), None);
        let flat = infer(Case::new("Flatten", 13), vec![shaped(&scope, &["B", "C", "4"])]);
        assert_eq!(dims(&scope, &flat), ["B", "4*C"]);
        let axes = Fact::tensor(Some(DType::Int64), Some(vec![Dim::constant(2)]));
        assert_eq!(infer(Case::new("Unsqueeze", 13), vec![data(), axes.clone()]).rank(), Some(5));
        let scalar = infer(Case::new("Unsqueeze", 13), vec![shaped(&scope, &[]), axes]);
        assert_eq!(dims(&scope, &scalar), ["1", "1"]);
        let vector = infer(Case::new("Unsqueeze", 13), vec![vector(&scope, &["B", "?"]), Fact::constant(ints(&[0]))]);
        assert_eq!(elements(&scope, &vector), ["B", "?"]);
        assert_eq!(dims(&scope, &vector), ["1", "2"]);
    }
}
