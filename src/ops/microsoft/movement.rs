//! Operators of `com.microsoft` that move, select or pair elements; the standard later adopted some of them.
//!
//! | operator | operands | result |
//! |---|---|---|
//! | CDist | `A [M, K]`, `B [N, K]` | distances `[M, N]` |
//! | CropAndResize | `X [N, C, H, W]`, rois `[R, 4]`, batch indices `[R]`, a crop size of two | `[R, C, h, w]` |
//! | ExpandDims | `X`, an axis | `X` with a dim of 1 before that axis of the result |
//! | GatherND | `data`, `indices [i…, k]` | `[i…]` and the axes of the data after the first `k` |
//! | GridSample | `X [N, C, H, W]`, `grid [N, h, w, 2]` | `[N, C, h, w]` |
//! | MurmurHash3 | `X` | one uint32 per element, or an int32 without `positive` |
//! | Pad | `data` of rank r, `2·r` pads (or `[1, 2·r]`) | each dim plus its two pads |
//! | Range | start, limit, and a delta that is 1 if absent | `[max(0, ⌈(limit − start) / delta⌉)]` |
//! | Tokenizer | strings `[C]` or `[N, C]` | a new last axis of data-dependent length |
//! | TorchEmbedding | `weight [N, D]`, `indices [i…]` | `[i…, D]`: a row for each index |
//! | Unique | `X [N]` | the distinct elements `[M]`, the index of each element among them `[N]`, counts `[M]`; `M ≤ N` |
//! | MemcpyFromHost, MemcpyToHost | anything | the same |

use super::{dim, operator, or_fresh};
use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::movement::range;
use crate::ops::{InferCx, InferResult, Operator, Refusal, axis_in};
use crate::tensor::DType;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("CDist", infer_distances),
    operator("CropAndResize", infer_crop_and_resize),
    operator("ExpandDims", infer_expand_dims),
    operator("GatherND", infer_gather_nd),
    operator("GridSample", infer_grid_sample),
    operator("MurmurHash3", infer_hash),
    operator("Pad", infer_pad),
    operator("Range", range::infer_optional_delta),
    operator("Tokenizer", infer_tokenizer),
    operator("TorchEmbedding", infer_embedding),
    operator("Unique", infer_unique),
    // ONNX Runtime inserts these between devices, and defines them in the default domain.
    Operator::infer_only("MemcpyFromHost", &[1], infer_same),
    Operator::infer_only("MemcpyToHost", &[1], infer_same),
];

/// Checks that an operand has the only allowed rank.
fn of_rank(cx: &InferCx<'_>, i: usize, rank: usize) -> Result<(), Refusal> {
    match cx.rank(i) {
        Some(found) if found != rank => {
            Err(Refusal::invalid(format!("operand {i} has rank {found} instead of {rank}")))
        }
        _ => Ok(()),
    }
}

/// Returns size `at` of the list in operand `i`.
pub(super) fn size_at(cx: &InferCx<'_>, i: usize, at: usize) -> Dim {
    let known = cx.ints(i).and_then(|sizes| sizes.get(at).cloned());
    or_fresh(cx, known.filter(|size| cx.scope().ge(size, &Dim::constant(0)).is_yes()))
}

fn infer_same(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![cx.required(0)?.clone()])
}

fn infer_distances(cx: &mut InferCx<'_>) -> InferResult {
    of_rank(cx, 0, 2)?;
    of_rank(cx, 1, 2)?;
    let shape = vec![or_fresh(cx, dim(cx, 0, 0)), or_fresh(cx, dim(cx, 1, 0))];
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape))])
}

fn infer_crop_and_resize(cx: &mut InferCx<'_>) -> InferResult {
    of_rank(cx, 0, 4)?;
    let count = or_fresh(cx, dim(cx, 1, 0).or(dim(cx, 2, 0)));
    let shape = vec![count, or_fresh(cx, dim(cx, 0, 1)), size_at(cx, 3, 0), size_at(cx, 3, 1)];
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape))])
}

fn infer_expand_dims(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match (cx.shape(0), cx.const_ints(1).as_deref()) {
        (Some(shape), Some(&[axis])) => {
            let axis = axis_in(axis, shape.len().saturating_add(1))?;
            let mut dims = shape.to_vec();
            dims.insert(axis.min(dims.len()), Dim::constant(1));
            Some(dims)
        }
        (Some(shape), _) => Some(cx.fresh_shape(shape.len().saturating_add(1))),
        _ => None,
    };
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

fn infer_gather_nd(cx: &mut InferCx<'_>) -> InferResult {
    let shape = match (cx.shape(0), cx.shape(1)) {
        (Some(data), Some([outer @ .., depth])) => match depth.as_const() {
            None => None,
            Some(depth) => {
                let rest = usize::try_from(depth).ok().and_then(|depth| data.get(depth..));
                let rest = rest.ok_or_else(|| {
                    Refusal::invalid(format!(
                        "the last axis of the indices has size {depth}, but the data has only {} axes",
                        data.len()
                    ))
                })?;
                Some(outer.iter().chain(rest).cloned().collect())
            }
        },
        _ => None,
    };
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

fn infer_embedding(cx: &mut InferCx<'_>) -> InferResult {
    of_rank(cx, 0, 2)?;
    let width = or_fresh(cx, dim(cx, 0, 1));
    let shape = cx.shape(1).map(|indices| indices.iter().cloned().chain([width]).collect());
    Ok(vec![Fact::tensor(cx.dtype(0), shape)])
}

fn infer_grid_sample(cx: &mut InferCx<'_>) -> InferResult {
    of_rank(cx, 0, 4)?;
    of_rank(cx, 1, 4)?;
    let places = [dim(cx, 0, 0).or(dim(cx, 1, 0)), dim(cx, 0, 1), dim(cx, 1, 1), dim(cx, 1, 2)];
    let shape = places.into_iter().map(|place| or_fresh(cx, place)).collect();
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape))])
}

fn infer_hash(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = if cx.attr_flag("positive", true)? { DType::Uint32 } else { DType::Int32 };
    Ok(vec![Fact::tensor(Some(dtype), cx.shape(0).map(<[Dim]>::to_vec))])
}

fn infer_pad(cx: &mut InferCx<'_>) -> InferResult {
    let Some(shape) = cx.shape(0) else { return Ok(vec![Fact::tensor(cx.dtype(0), None)]) };
    let (rank, scope) = (shape.len(), cx.scope());
    let pads = cx.ints(1);
    if pads.as_ref().is_some_and(|pads| pads.len() != rank.saturating_mul(2)) {
        return Err(Refusal::invalid(format!("the number of elements of 'pads' is not twice the rank {rank}")));
    }
    let padded = |(axis, size): (usize, &Dim)| {
        let ends = pads.as_ref().and_then(|pads| pads.get(axis).zip(pads.get(axis.saturating_add(rank))));
        ends.map_or_else(|| cx.fresh_dim(), |(begin, end)| scope.add(size, &scope.add(begin, end)))
    };
    Ok(vec![Fact::tensor(cx.dtype(0), Some(shape.iter().enumerate().map(padded).collect()))])
}

fn infer_tokenizer(cx: &mut InferCx<'_>) -> InferResult {
    let shape = cx.shape(0).map(|shape| shape.iter().cloned().chain([cx.fresh_dim()]).collect());
    Ok(vec![Fact::tensor(Some(DType::String), shape)])
}

fn infer_unique(cx: &mut InferCx<'_>) -> InferResult {
    of_rank(cx, 0, 1)?;
    let (all, distinct) = (or_fresh(cx, dim(cx, 0, 0)), cx.fresh_dim());
    cx.scope().assume_le(&distinct, &all);
    let indices = |dim: &Dim| Fact::tensor(Some(DType::Int64), Some(vec![dim.clone()]));
    Ok(vec![Fact::tensor(cx.dtype(0), Some(vec![distinct.clone()])), indices(&all), indices(&distinct)])
}

#[cfg(test)]
mod tests {
    use super::super::DOMAIN;
    use super::*;
    use crate::ops::single::Single;

    fn node(op_type: &str) -> Single {
        Single::new(op_type, 17).in_domain(DOMAIN)
    }

    #[test]
    fn pairs_and_places() {
        assert_eq!(node("CDist").input(DType::Double, "M K").input(DType::Double, "N K").infer(), ["double[M, N]"]);
        assert!(node("CDist").input(DType::Float, "M").input(DType::Float, "N K").infer()[0].starts_with("invalid"));
        let crop = node("CropAndResize").input(DType::Float, "N C H W").input(DType::Float, "R 4");
        assert_eq!(crop.input(DType::Int32, "R").values(&[2], &[7i32, 5]).infer(), ["float[R, C, 7, 5]"]);
        let grid = node("GridSample").input(DType::Float, "N C H W").input(DType::Float, "N h w 2");
        assert_eq!(grid.infer(), ["float[N, C, h, w]"]);
        assert_eq!(
            node("GatherND").input(DType::Float, "A B C").input(DType::Int64, "N M 2").infer(),
            ["float[N, M, C]"]
        );
        let deep = node("GatherND").input(DType::Float, "A").input(DType::Int64, "N 2");
        assert!(deep.infer()[0].starts_with("invalid"));
    }

    #[test]
    fn sizes_from_operands() {
        let expand = |axis: i32| node("ExpandDims").input(DType::Float, "A B").values(&[], &[axis]).infer();
        assert_eq!(expand(0), ["float[1, A, B]"]);
        assert_eq!(expand(-1), ["float[A, B, 1]"]);
        assert!(expand(3)[0].starts_with("invalid"));
        let pad = |pads: &[i64]| node("Pad").input(DType::Float, "A 4").values(&[1, pads.len()], pads).infer();
        assert_eq!(pad(&[1, 0, 2, -1]), ["float[A + 3, 3]"]);
        assert!(pad(&[1, 0])[0].starts_with("invalid"));
        let range = |limit: i32| node("Range").values(&[], &[9i32]).values(&[], &[limit]);
        assert_eq!(range(12).infer(), ["int32[3]"]);
        assert_eq!(range(16).values(&[], &[3i32]).infer(), ["int32[3]"]);
        assert_eq!(range(1).values(&[], &[-3i32]).infer(), ["int32[3]"]);
        assert_eq!(node("Range").values(&[], &[0f32]).values(&[], &[2.5f32]).infer(), ["float[3]"]);
    }

    #[test]
    fn words() {
        let unique = node("Unique").output().output().input(DType::Float, "N");
        assert_eq!(unique.infer(), ["float[?]", "int64[N]", "int64[?]"]);
        assert_eq!(node("Tokenizer").input(DType::String, "N C").infer(), ["string[N, C, ?]"]);
        assert_eq!(node("MurmurHash3").input(DType::String, "N").infer(), ["uint32[N]"]);
        assert_eq!(node("MurmurHash3").with("positive", 0).input(DType::String, "N").infer(), ["int32[N]"]);
        assert_eq!(Single::new("MemcpyToHost", 17).input(DType::Float, "N").infer(), ["float[N]"]);
    }
}
