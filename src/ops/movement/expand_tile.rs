//! Tensors that repeat.
//!
//! | operator | versions | what changes |
//! | --- | --- | --- |
//! | Expand | 8, 13 | types |
//! | Tile | 1, 6, 13 | 1: one axis, `tiles` and `axis` as operands of the data's type; 6: `repeats` for every axis; 13: types |
//!
//! Expand broadcasts its operand with a shape, both ways: dims of 1 in the shape leave the operand's dims as they are. Tile
//! multiplies each dim by its repeats.
//!
//! Refused: dims that do not broadcast, negative sizes and repeats, another number of repeats than axes.

use super::cells::elements_of;
use super::maps::{self, MapResult};
use super::moves;
use super::{of_rank, whole};
use crate::dim::Dim;
use crate::index_map::{IndexMap, Undecided};
use crate::ir::{Fact, Scalar};
use crate::ops::broadcast::broadcast_dims;
use crate::ops::traits::{Moved, Movement, NodeFacts, Traits, moved};
use crate::ops::{InferCx, InferResult, Operator, Refusal, axis_in};
use crate::tensor::Tensor;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Expand", &[8, 13], infer_expand, maps::eval).with(
        Traits::movement(Movement::Spread)
            .index_map(map_expand)
            .counts(moved)
            .repeats(moves::expanded_narrow)
            .broadcast_with(1)
            .inferred_by_contents(1)
            .passing_slices(),
    ),
    Operator::new("Tile", &[1, 6, 13], infer_tile, maps::eval)
        .with(Traits::movement(Movement::Spread).index_map(map_tile).inferred_by_contents(1)),
];

fn infer_expand(cx: &mut InferCx<'_>) -> InferResult {
    // ONNX Runtime takes a constant of any rank.
    if cx.constant(1).is_none() {
        cx.require_rank(1, "shape", 1..=1)?;
    }
    let (data, target) = (cx.required(0)?, cx.required(1)?);
    let dtype = data.dtype();
    let Some(shape) = data.shape() else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let Some(elements) = elements_of(target) else {
        let rank = target.static_len().map(|length| length.max(shape.len()));
        return Ok(vec![of_rank(cx, dtype, rank)]);
    };
    let rank = shape.len().max(elements.len());
    let scope = cx.scope();
    let one = Dim::constant(1);
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        // Both align at the end.
        let dim = (axis + shape.len()).checked_sub(rank).and_then(|at| shape.get(at)).unwrap_or(&one);
        let element = (axis + elements.len()).checked_sub(rank).and_then(|at| elements.get(at));
        dims.push(match element {
            None => dim.clone(),
            Some(Scalar::Int(size)) if size.as_const().is_some_and(|size| size < 0) => {
                return Err(Refusal::invalid(format!("an element of 'shape' is negative: {}", scope.format(size))));
            }
            Some(Scalar::Int(size)) => broadcast_dims(scope, dim, size)?,
            Some(_) if scope.eq(dim, &one).is_no() => dim.clone(),
            Some(_) => cx.fresh_dim(),
        });
    }
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

fn map_expand(view: &NodeFacts<'_>, output: usize) -> MapResult {
    Ok(Moved::of_first(IndexMap::expand(view.scope(), view.dims(0)?, view.result_dims(output)?)?))
}

/// Repeats for every axis from one axis and its repeats.
fn one_axis<T: Clone>(rank: usize, axis: i64, tiles: T, one: T) -> Result<Vec<T>, Refusal> {
    let axis = axis_in(axis, rank)?;
    Ok((0..rank).map(|at| if at == axis { tiles.clone() } else { one.clone() }).collect())
}

/// The one integer of an operand of Tile-1.
fn single(tensor: &Tensor) -> Result<i64, Refusal> {
    match whole(tensor).as_deref() {
        Some(&[int]) => Ok(int),
        _ => Err(Refusal::invalid("'tiles' or 'axis' is not a single integer")),
    }
}

fn infer_tile(cx: &mut InferCx<'_>) -> InferResult {
    let (data, repeats) = (cx.required(0)?, cx.required(1)?);
    let dtype = data.dtype();
    let Some(shape) = data.shape() else {
        let rank = repeats.static_len().filter(|_| cx.version >= 6);
        return Ok(vec![of_rank(cx, dtype, rank)]);
    };
    let elements = if cx.version < 6 {
        match (cx.constant(1), cx.constant(2)) {
            (Some(tiles), Some(axis)) => {
                let tiles = Scalar::Int(Dim::constant(single(tiles)?));
                Some(one_axis(shape.len(), single(axis)?, tiles, Scalar::Int(Dim::constant(1)))?)
            }
            _ => None,
        }
    } else {
        elements_of(repeats)
    };
    let elements = elements.unwrap_or_else(|| vec![Scalar::Unknown; shape.len()]);
    if elements.len() != shape.len() {
        return Err(Refusal::invalid(format!(
            "'repeats' has {} elements, but the input has rank {}",
            elements.len(),
            shape.len()
        )));
    }
    let scope = cx.scope();
    let mut dims = Vec::with_capacity(shape.len());
    for (dim, element) in shape.iter().zip(&elements) {
        dims.push(match element {
            _ if dim.is_const(0) => Dim::constant(0),
            Scalar::Int(repeats) if repeats.as_const().is_some_and(|repeats| repeats < 0) => {
                return Err(Refusal::invalid(format!("an element of 'repeats' is {}", scope.format(repeats))));
            }
            Scalar::Int(repeats) => scope.mul(dim, repeats),
            _ => cx.fresh_dim(),
        });
    }
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

fn map_tile(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let data = view.dims(0)?;
    let repeats = if view.known_site()?.version < 6 {
        let number = |slot: usize| {
            let tensor = view.fact(slot).and_then(Fact::constant_tensor).ok_or(Undecided::Operands)?;
            single(tensor).map_err(Undecided::from)
        };
        one_axis(data.len(), number(2)?, Dim::constant(number(1)?), Dim::constant(1))?
    } else {
        view.fact(1).and_then(Fact::ints).ok_or(Undecided::Operands)?
    };
    Ok(Moved::of_first(IndexMap::tile(view.scope(), data, &repeats)?))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::dim::Scope;
    use crate::ops::Decline;

    #[test]
    fn expanding() {
        let case = Case::new("Expand", 8);
        let data = iota(&[3, 1]);
        assert!(case.eval([data.clone(), ints(&[2])]).same(&tensor(&[3, 2], &[0f32, 0.0, 1.0, 1.0, 2.0, 2.0])));
        assert_eq!(case.eval([data.clone(), ints(&[2, 1, 6])]).shape(), [2, 3, 6]);
        assert_eq!(case.eval([data.clone(), ints(&[1, 1])]).shape(), [3, 1]);
        assert_eq!(case.eval([data.clone(), ints(&[])]).shape(), [3, 1]);
        assert_eq!(case.eval([data.clone(), ints(&[3, 0])]).shape(), [3, 0]);
        case.fails([data.clone(), ints(&[0, 1])]);
        case.fails([data.clone(), ints(&[2, 1])]);
        case.fails([data.clone(), ints(&[-1, 1])]);
        assert!(matches!(case.fails([data, ints(&[1 << 40, 1, 1])]), Decline::OverBudget(_)));
    }

    #[test]
    fn tiling() {
        let data = iota(&[2, 2]);
        let twice = Case::new("Tile", 6).eval([data.clone(), ints(&[1, 2])]);
        assert!(twice.same(&tensor(&[2, 4], &[0f32, 1.0, 0.0, 1.0, 2.0, 3.0, 2.0, 3.0])));
        let old = Case::new("Tile", 1).eval([data.clone(), Tensor::scalar(2f32), Tensor::scalar(1f32)]);
        assert!(old.same(&twice));
        assert_eq!(Case::new("Tile", 13).eval([data.clone(), ints(&[0, 3])]).shape(), [0, 6]);
        assert!(Case::new("Tile", 13).eval([iota(&[]), ints(&[])]).shape().is_empty());
        Case::new("Tile", 13).fails([data.clone(), ints(&[-1, 1])]);
        Case::new("Tile", 13).fails([data.clone(), ints(&[1])]);
        assert!(matches!(Case::new("Tile", 13).fails([data, ints(&[i64::MAX, 2])]), Decline::OverBudget(_)));
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let infer =
            |op, data: Fact, shape: Fact| Case::new(op, 13).infer(&scope, vec![Some(data), Some(shape)]).remove(0);
        let fact = infer("Expand", shaped(&scope, &["1", "8", "1"]), vector(&scope, &["B", "1", "8", "S"]));
        assert_eq!(dims(&scope, &fact), ["B", "1", "8", "S"]);
        let fact = infer("Expand", shaped(&scope, &["3", "8"]), vector(&scope, &["?", "?"]));
        assert_eq!(dims(&scope, &fact), ["3", "8"]);
        let fact = infer("Tile", shaped(&scope, &["B", "3"]), vector(&scope, &["2", "N"]));
        assert_eq!(dims(&scope, &fact), ["2*B", "3*N"]);
        let fact = infer("Tile", vector(&scope, &["B", "?"]), Fact::constant(ints(&[2])));
        assert_eq!(elements(&scope, &fact), ["B", "?", "B", "?"]);
        let fact = infer("Expand", vector(&scope, &["B"]), Fact::constant(ints(&[2, 1])));
        assert_eq!(elements(&scope, &fact), ["B", "B"]);
    }
}
