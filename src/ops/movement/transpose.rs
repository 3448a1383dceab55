//! Axes in another order, and depth and space traded for one another.
//!
//! | operator | versions | what changes |
//! | --- | --- | --- |
//! | Transpose | 1, 13, 21, 23, 24, 25 | types |
//! | DepthToSpace | 1, 11, 13, 28 | 11: `mode` (DCR before); the others add types |
//! | SpaceToDepth | 1, 13, 28 | 13: types; 28: `mode` (DCR before) |
//!
//! Axis `i` of Transpose's result is axis `perm[i]` of its operand; without `perm` the order is reversed. With blocks of `b` by `b`,
//! DepthToSpace takes `[N, C, H, W]` to `[N, C/b², H·b, W·b]` and SpaceToDepth back; the mode says whether the block's two axes stand
//! before the channels in depth (DCR) or behind them (CRD).
//!
//! Refused: a `perm` that is no permutation, a rank other than 4, a block size below 1, dims that do not divide.

use super::maps::{self, MapResult};
use super::moves::{self, permutation};
use crate::dim::{Dim, Scope};
use crate::index_map::{BlockMode, IndexMap};
use crate::ir::Fact;
use crate::ops::traits::{Moved, Movement, NodeFacts, Traits, moved};
use crate::ops::{InferCx, InferResult, Operator, Refusal, Site};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Transpose", &[1, 13, 21, 23, 24, 25], infer_transpose, maps::eval).with(
        Traits::movement(Movement::Selection)
            .index_map(map_transpose)
            .counts(moved)
            .carrying_quantization()
            .repeats(moves::permuted_narrow)
            .passing_slices(),
    ),
    Operator::new("DepthToSpace", &[1, 11, 13, 28], infer_depth_to_space, maps::eval)
        .with(Traits::movement(Movement::Selection).index_map(map_depth_to_space).some_types()),
    Operator::new("SpaceToDepth", &[1, 13, 28], infer_space_to_depth, maps::eval)
        .with(Traits::movement(Movement::Selection).index_map(map_space_to_depth).some_types()),
];

fn infer_transpose(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let Some(shape) = data.shape() else {
        let rank = cx.attr_ints("perm")?.map(<[i64]>::len);
        return Ok(vec![super::of_rank(cx, data.dtype(), rank)]);
    };
    let permutation = permutation(cx, shape.len())?;
    let dims = permutation.iter().filter_map(|&axis| shape.get(axis).cloned()).collect();
    Ok(vec![Fact::tensor(data.dtype(), Some(dims))])
}

fn map_transpose(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let data = view.dims(0)?;
    let permutation = permutation(&view.known_site()?, data.len())?;
    Ok(Moved::of_first(IndexMap::transpose(view.scope(), data, &permutation)?))
}

/// The size of a block, and the order of its axes and the channels in depth.
fn block(site: &Site<'_>, mode_since: i64) -> Result<(i64, BlockMode), Refusal> {
    let size = site.attr_int("blocksize")?.ok_or_else(|| Refusal::invalid("attribute 'blocksize' is missing"))?;
    if size < 1 {
        return Err(Refusal::invalid(format!("attribute 'blocksize' is {size}, which is not valid")));
    }
    let mode = if site.version < mode_since { None } else { site.attr_str("mode")? };
    match mode {
        None | Some("DCR") => Ok((size, BlockMode::DepthColumnRow)),
        Some("CRD") => Ok((size, BlockMode::ColumnRowDepth)),
        Some(mode) => Err(Refusal::invalid(format!("attribute 'mode' is '{mode}', which is not defined"))),
    }
}

/// The quotient, where a remainder would keep the model from running.
fn quotient(scope: &Scope, dim: &Dim, by: &Dim) -> Result<Dim, Refusal> {
    match (scope.exact_div(dim, by), dim.as_const()) {
        (Some(quotient), _) => Ok(quotient),
        (None, Some(dim)) => Err(Refusal::invalid(format!(
            "the dim {dim} is not a multiple of {}, which attribute 'blocksize' requires",
            scope.format(by)
        ))),
        (None, None) => Ok(scope.floor_div(dim, by)),
    }
}

fn infer_depth_to_space(cx: &mut InferCx<'_>) -> InferResult {
    let (block, _) = block(cx, 11)?;
    infer_blocks(cx, block, true)
}

fn infer_space_to_depth(cx: &mut InferCx<'_>) -> InferResult {
    let (block, _) = block(cx, 28)?;
    infer_blocks(cx, block, false)
}

fn infer_blocks(cx: &mut InferCx<'_>, block: i64, to_space: bool) -> InferResult {
    let data = cx.required(0)?;
    let dtype = data.dtype();
    let Some(shape) = data.shape() else { return Ok(vec![super::of_rank(cx, dtype, Some(4))]) };
    let [batch, depth, height, width] = shape else {
        return Err(Refusal::invalid(format!("the rank of the input is {} instead of 4", shape.len())));
    };
    let scope = cx.scope();
    let block = Dim::constant(block);
    let area = scope.mul(&block, &block);
    let dims = if to_space {
        vec![batch.clone(), quotient(scope, depth, &area)?, scope.mul(height, &block), scope.mul(width, &block)]
    } else {
        let (height, width) = (quotient(scope, height, &block)?, quotient(scope, width, &block)?);
        vec![batch.clone(), scope.mul(depth, &area), height, width]
    };
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

fn map_depth_to_space(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let (size, mode) = block(&view.known_site()?, 11)?;
    Ok(Moved::of_first(IndexMap::depth_to_space(view.scope(), view.dims(0)?, size, mode)?))
}

fn map_space_to_depth(view: &NodeFacts<'_>, _: usize) -> MapResult {
    let (size, mode) = block(&view.known_site()?, 28)?;
    Ok(Moved::of_first(IndexMap::space_to_depth(view.scope(), view.dims(0)?, size, mode)?))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::tensor::{DType, Tensor};

    #[test]
    fn axes_change_places() {
        let data = iota(&[2, 3]);
        let expected = tensor(&[3, 2], &[0f32, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert!(Case::new("Transpose", 1).eval([data.clone()]).same(&expected));
        assert!(Case::new("Transpose", 13).with("perm", vec![1, 0]).eval([data.clone()]).same(&expected));
        assert!(Case::new("Transpose", 13).with("perm", vec![0, 1]).eval([data.clone()]).same(&data));
        assert!(Case::new("Transpose", 13).eval([iota(&[])]).same(&iota(&[])));
        for perm in [vec![0], vec![0, 0], vec![0, 2]] {
            Case::new("Transpose", 13).with("perm", perm).fails([data.clone()]);
        }
        let words = Case::new("Transpose", 1).eval([strings(&[2, 2], &["a", "b", "c", "d"])]);
        assert!(words.same(&strings(&[2, 2], &["a", "c", "b", "d"])));
        let nibbles = Tensor::from_bytes(DType::Int4, &[2, 2], vec![0x21, 0x43].into()).unwrap();
        assert_eq!(Case::new("Transpose", 21).eval([nibbles]).bytes().as_ref(), [0x31, 0x42]);
    }

    #[test]
    fn blocks_move() {
        let deep = iota(&[1, 8, 1, 1]);
        let space = |mode| {
            values::<f32>(&Case::new("DepthToSpace", 13).with("blocksize", 2).text("mode", mode).eval([deep.clone()]))
        };
        assert_eq!(space("DCR"), [0.0, 2.0, 4.0, 6.0, 1.0, 3.0, 5.0, 7.0]);
        assert_eq!(space("CRD"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        // One undoes the other.
        for mode in ["DCR", "CRD"] {
            let wide = iota(&[2, 3, 4, 6]);
            let deep = Case::new("SpaceToDepth", 28).with("blocksize", 2).text("mode", mode).eval([wide.clone()]);
            assert_eq!(deep.shape(), [2, 12, 2, 3]);
            let back = Case::new("DepthToSpace", 28).with("blocksize", 2).text("mode", mode).eval([deep]);
            assert!(back.same(&wide));
        }
        assert_eq!(Case::new("SpaceToDepth", 1).with("blocksize", 2).eval([iota(&[0, 1, 2, 2])]).shape(), [0, 4, 1, 1]);
        Case::new("DepthToSpace", 1).with("blocksize", 3).fails([deep.clone()]);
        Case::new("DepthToSpace", 1).with("blocksize", 0).fails([deep.clone()]);
        Case::new("DepthToSpace", 1).with("blocksize", i64::MAX).fails([deep.clone()]);
        Case::new("DepthToSpace", 11).with("blocksize", 2).text("mode", "dcr").fails([deep]);
        Case::new("SpaceToDepth", 1).with("blocksize", 2).fails([iota(&[1, 1, 3, 2])]);
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let fact = Case::new("DepthToSpace", 13).with("blocksize", 2);
        let fact = fact.infer(&scope, vec![Some(shaped(&scope, &["B", "8*C", "H", "W"]))]).remove(0);
        assert_eq!(dims(&scope, &fact), ["B", "2*C", "2*H", "2*W"]);
        let fact = Case::new("SpaceToDepth", 13).with("blocksize", 2);
        let fact = fact.infer(&scope, vec![Some(shaped(&scope, &["B", "C", "2*H", "4"]))]).remove(0);
        assert_eq!(dims(&scope, &fact), ["B", "4*C", "H", "2"]);
        let square = Fact::tensor(Some(DType::Int64), Some(vec![Dim::constant(2), Dim::constant(2)]));
        let named = vector(&scope, &["A", "?", "3", "D"]).elements().unwrap();
        let fact = Case::new("Transpose", 13).infer(&scope, vec![Some(square.with_elements(named))]).remove(0);
        assert_eq!(elements(&scope, &fact), ["A", "3", "?", "D"]);
    }
}
