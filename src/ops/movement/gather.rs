//! Elements selected by index.
//!
//! | operator | versions | difference |
//! | --- | --- | --- |
//! | Gather | 1, 11, 13 | 11: negative indices; 13: types |
//! | GatherElements | 11, 13 | types |
//! | GatherND | 11, 12, 13 | 12: `batch_dims`; 13: types |
//!
//! Gather replaces an axis by the rows that the indices select. GatherElements selects, for each element of the indices, the element at the
//! same position except along one axis. GatherND reads the last axis of the indices as positions along the axes of the data after the first
//! `batch_dims`.
//!
//! Refused: indices outside `-dim .. dim` (in version 1 of Gather, ONNX Runtime counts negative ones from the end as well).

use super::cells::{Builder, index_values, moved, width};
use super::lookup::{batch_dims, check_batch, element_places, gather_axis, places, tuple_places};
use super::maps;
use super::moves;
use super::{around, claim, count, of_rank};
use crate::dim::Dim;
use crate::ir::{Data, Fact};
use crate::ops::traits::{Movement, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::threads;
use crate::tensor::{Buffer, Tensor};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Gather", &[1, 11, 13], infer_gather, eval_gather).with(
        Traits::movement(Movement::Selection)
            .index_map(maps::gather)
            .repeats(moves::gathered_narrow)
            .fails_unless(moves::indices_inside)
            .needs(moves::gather_needs),
    ),
    Operator::new("GatherElements", &[11, 13], infer_gather_elements, eval_gather_elements).with(
        Traits::movement(Movement::Selection).index_map(maps::gather_elements).fails_unless(moves::indices_inside),
    ),
    Operator::new("GatherND", &[11, 12, 13], infer_gather_nd, eval_gather_nd).with(
        Traits::movement(Movement::Selection)
            .index_map(maps::gather_nd)
            .fails_unless(moves::tuples_inside)
            .needs(moves::gather_needs),
    ),
];

/// The number of bytes from which copying uses several threads.
const PARALLEL_BYTES: usize = 4 << 20;

/// The bytes that one thread copies at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Returns the dims with those of the indices in place of an axis.
fn gathered<T: Clone>(data: &[T], indices: &[T], axis: usize) -> Vec<T> {
    let (front, back) = data.split_at_checked(axis).unwrap_or((data, &[]));
    front.iter().chain(indices).chain(back.iter().skip(1)).cloned().collect()
}

fn infer_gather(cx: &mut InferCx<'_>) -> InferResult {
    let (data, indices) = (cx.required(0)?, cx.required(1)?);
    let dtype = data.dtype();
    let Some(shape) = data.shape() else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let axis = gather_axis(cx, shape.len())?;
    if let (Some(dim), Some(known)) = (shape.get(axis).and_then(Dim::as_const), indices.const_ints()) {
        let dim = usize::try_from(dim).unwrap_or(0);
        places(&known, dim)?;
    }
    let Some(index_shape) = indices.shape() else { return Ok(vec![Fact::tensor(dtype, None)]) };
    Ok(vec![Fact::tensor(dtype, Some(gathered(shape, index_shape, axis)))])
}

fn eval_gather(cx: &mut EvalCx<'_>) -> EvalResult {
    let (data, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let axis = gather_axis(cx, data.rank())?;
    let shape = gathered(data.shape(), indices.shape(), axis);
    claim(cx, data.dtype(), &shape)?;
    let dim = data.shape().get(axis).copied().unwrap_or(0);
    let places = places(&index_values(indices)?, dim)?;
    let result = moved(&[data], &|operands| match operands {
        [data] => gather_rows(data, axis, &places, &shape),
        _ => Err(Decline::invalid("the operands have different element types")),
    })?;
    Ok(vec![Data::Tensor(result)])
}

/// Returns the rows of an axis at these positions. `None` if one is out of range.
pub fn gather_along(tensor: &Tensor, axis: usize, positions: &[usize]) -> Option<Tensor> {
    let mut shape = tensor.shape().to_vec();
    *shape.get_mut(axis)? = positions.len();
    let rows = |operands: &[Tensor]| match operands {
        [data] => gather_rows(data, axis, positions, &shape),
        _ => Err(Decline::invalid("the operands have different element types")),
    };
    moved(&[tensor], &rows).ok()
}

/// Returns rows of `run` consecutive elements, by their indices.
pub(super) fn gather_runs(data: &Tensor, run: usize, rows: &[usize], shape: &[usize]) -> Result<Tensor, Decline> {
    let number = data.len().checked_div(run).unwrap_or(0);
    gather_rows(&data.reshape(&[number, run])?, 0, rows, shape)
}

/// Returns the rows of an axis at these positions.
pub(super) fn gather_rows(data: &Tensor, axis: usize, places: &[usize], shape: &[usize]) -> Result<Tensor, Decline> {
    let len = count(shape)?;
    if len == 0 {
        return Ok(Tensor::zeros(data.dtype(), shape)?);
    }
    let (outer, dim, inner) = around(data.shape(), axis)?;
    let addressable = || Decline::OverBudget("the result exceeds the address space".into());
    let row = inner.checked_mul(width(data)?).ok_or_else(addressable)?;
    let size = len.checked_mul(width(data)?).ok_or_else(addressable)?;
    if size >= PARALLEL_BYTES {
        let mut buffer = Buffer::zeroed(size)?;
        let rows = (CHUNK_BYTES / row).max(1);
        let chunks = buffer.bytes().chunks_mut(rows.saturating_mul(row)).enumerate();
        let copied = threads::map(chunks, |(chunk, out)| {
            copy_rows(out, data.bytes(), row, dim, places, chunk.saturating_mul(rows))
        });
        copied
            .into_iter()
            .collect::<Option<()>>()
            .ok_or_else(|| Decline::unsupported("an element of 'indices' is out of range"))?;
        return Ok(Tensor::from_bytes(data.dtype(), shape, buffer.into())?);
    }
    let mut builder = Builder::new(data, len)?;
    for block in 0..outer {
        let base = block.saturating_mul(dim);
        if inner == 1 {
            builder.pick(data, base, places)?;
        } else {
            for &place in places {
                builder.append(data, base.saturating_add(place).saturating_mul(inner), inner)?;
            }
        }
    }
    builder.finish(shape)
}

/// Fills `out` with rows of `row` bytes, from row number `first` of the result on.
fn copy_rows(out: &mut [u8], data: &[u8], row: usize, dim: usize, places: &[usize], first: usize) -> Option<()> {
    match row {
        1 => copy_cells::<1>(out, data, dim, places, first),
        2 => copy_cells::<2>(out, data, dim, places, first),
        4 => copy_cells::<4>(out, data, dim, places, first),
        8 => copy_cells::<8>(out, data, dim, places, first),
        16 => copy_cells::<16>(out, data, dim, places, first),
        _ => {
            for (out, from) in out.chunks_exact_mut(row).zip(sources(dim, places, first)?) {
                let start = from.checked_mul(row)?;
                out.copy_from_slice(data.get(start..start.checked_add(row)?)?);
            }
            Some(())
        }
    }
}

fn copy_cells<const W: usize>(out: &mut [u8], data: &[u8], dim: usize, places: &[usize], first: usize) -> Option<()> {
    let (data, _) = data.as_chunks::<W>();
    let (out, _) = out.as_chunks_mut::<W>();
    for (out, from) in out.iter_mut().zip(sources(dim, places, first)?) {
        *out = *data.get(from)?;
    }
    Some(())
}

/// Returns the rows of the data that the rows of the result are, from row `first` on: the positions, for each block of `dim` rows.
fn sources(dim: usize, places: &[usize], first: usize) -> Option<impl Iterator<Item = usize> + '_> {
    let (mut block, mut at) = (first.checked_div(places.len())?, first.checked_rem(places.len())?);
    Some(std::iter::from_fn(move || {
        let place = *places.get(at)?;
        let source = block.wrapping_mul(dim).wrapping_add(place);
        at += 1;
        if at == places.len() {
            at = 0;
            block = block.wrapping_add(1);
        }
        Some(source)
    }))
}

fn infer_gather_elements(cx: &mut InferCx<'_>) -> InferResult {
    let (data, indices) = (cx.required(0)?, cx.required(1)?);
    let dtype = data.dtype();
    if let (Some(data), Some(indices)) = (data.rank(), indices.rank())
        && data != indices
    {
        return Err(Refusal::invalid(format!("'indices' has rank {indices}, but 'data' has rank {data}")));
    }
    let rank = data.rank().or(indices.rank());
    rank.map(|rank| gather_axis(cx, rank)).transpose()?;
    let Some(index_shape) = indices.shape() else { return Ok(vec![of_rank(cx, dtype, rank)]) };
    Ok(vec![Fact::tensor(dtype, Some(index_shape.to_vec()))])
}

fn eval_gather_elements(cx: &mut EvalCx<'_>) -> EvalResult {
    let (data, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let axis = gather_axis(cx, data.rank())?;
    claim(cx, data.dtype(), indices.shape())?;
    let values = index_values(indices)?;
    let result = moved(&[data], &|operands| {
        let [data] = operands else { return Err(Decline::invalid("the operands have different element types")) };
        let mut builder = Builder::new(data, values.len())?;
        element_places(data.shape(), indices.shape(), axis, &values, &mut |row| builder.pick(data, 0, row))?;
        builder.finish(indices.shape())
    })?;
    Ok(vec![Data::Tensor(result)])
}

fn infer_gather_nd(cx: &mut InferCx<'_>) -> InferResult {
    let (data, indices) = (cx.required(0)?, cx.required(1)?);
    let (dtype, batch) = (data.dtype(), batch_dims(cx)?);
    let unknown = || Ok(vec![Fact::tensor(dtype, None)]);
    let (Some(shape), Some(index_shape)) = (data.shape(), indices.shape()) else { return unknown() };
    check_batch(batch, shape.len(), index_shape.len())?;
    let Some((last, tuples)) = index_shape.split_last() else { return unknown() };
    let Some(last) = last.as_const().and_then(|last| usize::try_from(last).ok()) else { return unknown() };
    let depth = batch.saturating_add(last);
    let Some(rest) = shape.get(depth..) else {
        return Err(Refusal::invalid(format!(
            "the last dim of 'indices' is {last}, but 'data' has only {} axes after the batch axes",
            shape.len().saturating_sub(batch)
        )));
    };
    // The batch dims of the indices are used: ONNX Runtime accepts multiples of the data's, including 0.
    let mut dims = tuples.to_vec();
    dims.extend_from_slice(rest);
    Ok(vec![Fact::tensor(dtype, Some(dims))])
}

fn eval_gather_nd(cx: &mut EvalCx<'_>) -> EvalResult {
    let (data, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let batch = batch_dims(cx)?;
    check_batch(batch, data.rank(), indices.rank())?;
    let (&last, tuples) =
        indices.shape().split_last().ok_or_else(|| Decline::invalid("the operand 'indices' is a scalar"))?;
    let rest = data.shape().get(batch.saturating_add(last)..);
    let rest = rest.ok_or_else(|| {
        Decline::invalid(format!("the last dim of 'indices' is {last}, which is larger than the rank of 'data'"))
    })?;
    let shape = [tuples, rest].concat();
    claim(cx, data.dtype(), &shape)?;
    let starts = tuple_places(data.shape(), indices.shape(), batch, &index_values(indices)?)?;
    let run = count(rest)?;
    let rows = if run == 1 { starts } else { starts.iter().map(|at| at.checked_div(run).unwrap_or(0)).collect() };
    let result = moved(&[data], &|operands| {
        let [data] = operands else { return Err(Decline::invalid("the operands have different element types")) };
        gather_runs(data, run, &rows, &shape)
    })?;
    Ok(vec![Data::Tensor(result)])
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::dim::Scope;
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn rows_are_gathered() {
        let data = iota(&[3, 2]);
        let case = |axis: i64| Case::new("Gather", 13).with("axis", axis);
        let picked = case(0).eval([data.clone(), tensor(&[1, 2], &[-1i32, 0])]);
        assert!(picked.same(&tensor(&[1, 2, 2], &[4f32, 5.0, 0.0, 1.0])));
        assert!(case(1).eval([data.clone(), Tensor::scalar(1i64)]).same(&tensor(&[3], &[1f32, 3.0, 5.0])));
        assert_eq!(case(1).eval([data.clone(), ints(&[])]).shape(), [3, 0]);
        assert_eq!(case(0).eval([iota(&[0, 2]), ints(&[])]).shape(), [0, 2]);
        case(0).fails([data.clone(), ints(&[3])]);
        case(0).fails([data.clone(), ints(&[-4])]);
        case(0).fails([data.clone(), ints(&[i64::MIN])]);
        case(2).fails([data, ints(&[0])]);
        let words = strings(&[2, 2], &["a", "b", "c", "d"]);
        assert!(case(1).eval([words, ints(&[1, 1])]).same(&strings(&[2, 2], &["b", "b", "d", "d"])));
        let nibbles = Tensor::from_bytes(DType::Int4, &[3], vec![0x21, 0x03].into()).unwrap();
        assert_eq!(case(0).eval([nibbles, ints(&[2, 0])]).bytes().as_ref(), [0x13]);
    }

    #[test]
    fn many_rows_are_gathered_on_several_threads() {
        // Both widths of rows, and chunks that do not divide evenly.
        for (shape, axis) in [([3, 1500, 7], 1), ([70, 3, 500], 2), ([1100, 3, 1000], 0)] {
            let data = iota(&shape);
            let dim = shape[axis] as i64;
            let indices: Vec<i64> = (0..1301i64).map(|at| at * 7919 % (2 * dim) - dim).collect();
            let result = Case::new("Gather", 13).with("axis", axis as i64).eval([data.clone(), ints(&indices)]);
            let (from, to) = (values::<f32>(&data), values::<f32>(&result));
            let [outer, inner] = [shape[..axis].iter().product::<usize>(), shape[axis + 1..].iter().product()];
            let expected = (0..outer).flat_map(|block| {
                let from = &from;
                indices.iter().flat_map(move |&index| {
                    let place = index.rem_euclid(dim) as usize;
                    let start = (block * dim as usize + place) * inner;
                    from[start..start + inner].iter().copied()
                })
            });
            assert!(expected.eq(to));
        }
    }

    #[test]
    fn elements_are_gathered() {
        let data = tensor(&[3, 3], &[1i64, 2, 3, 4, 5, 6, 7, 8, 9]);
        let case = |axis: i64| Case::new("GatherElements", 13).with("axis", axis);
        let indices = tensor(&[2, 3], &[1i64, 2, 0, 2, 0, 0]);
        assert!(case(0).eval([data.clone(), indices]).same(&tensor(&[2, 3], &[4i64, 8, 3, 7, 2, 3])));
        let indices = tensor(&[2, 4], &[0i64, -1, 0, 1, 2, 2, 2, -3]);
        assert!(case(1).eval([data.clone(), indices]).same(&tensor(&[2, 4], &[1i64, 3, 1, 2, 6, 6, 6, 4])));
        case(1).fails([data.clone(), tensor(&[4, 1], &[0i64; 4])]);
        case(1).fails([data.clone(), ints(&[0])]);
        case(0).fails([data, tensor(&[1, 1], &[3i64])]);
        assert_eq!(case(0).eval([iota(&[0, 3]), tensor::<i64>(&[0, 3], &[])]).shape(), [0, 3]);
    }

    #[test]
    fn batch_dims_are_those_of_the_indices() {
        let case = |data: &'static str, indices: &'static str| {
            let node = Single::new("GatherND", 13).with("batch_dims", 1);
            node.input(DType::Float, data).input(DType::Int64, indices).infer()
        };
        assert_eq!(case("A B C", "D E 1"), ["float[D, E, C]"]);
        assert_eq!(case("2 B C", "D E 1"), ["float[D, E, C]"]);
        assert_eq!(case("1 B C", "2 E 1"), ["float[2, E, C]"]);
        let uneven = Single::new("GatherND", 13).with("batch_dims", 1);
        let uneven = uneven.values(&[1, 2], &[1f32, 2.0]).values(&[2, 1], &[0i64, 1]);
        assert!(matches!(uneven.eval(), Err(Decline::Unsupported(_))));
    }

    #[test]
    fn tuples_are_gathered() {
        let case = |batch: i64| Case::new("GatherND", 12).with("batch_dims", batch);
        let data = tensor(&[2, 2], &[0i32, 1, 2, 3]);
        assert_eq!(values::<i32>(&case(0).eval([data.clone(), tensor(&[2, 2], &[0i64, 0, 1, 1])])), [0, 3]);
        assert_eq!(values::<i32>(&case(0).eval([data.clone(), tensor(&[2, 1], &[1i64, 0])])), [2, 3, 0, 1]);
        let data = tensor(&[2, 2, 2], &[0i32, 1, 2, 3, 4, 5, 6, 7]);
        let picked = case(0).eval([data.clone(), tensor(&[2, 1, 2], &[0i64, 1, 1, 0])]);
        assert!(picked.same(&tensor(&[2, 1, 2], &[2i32, 3, 4, 5])));
        let picked = case(1).eval([data.clone(), tensor(&[2, 1], &[1i64, -2])]);
        assert!(picked.same(&tensor(&[2, 2], &[2i32, 3, 4, 5])));
        case(2).fails([data.clone(), tensor(&[2, 1], &[1i64, 0])]);
        case(0).fails([data.clone(), tensor(&[1, 4], &[0i64; 4])]);
        case(0).fails([data, tensor(&[1, 1], &[2i64])]);
    }

    #[test]
    fn elements_follow() {
        let scope = Rc::new(Scope::new());
        let shape = vector(&scope, &["A", "B", "?"]);
        let infer = |case: Case, indices: Fact| case.infer(&scope, vec![Some(shape.clone()), Some(indices)]).remove(0);
        let one = infer(Case::new("Gather", 13), Fact::constant(Tensor::scalar(-2i64)));
        assert_eq!((one.rank(), elements(&scope, &one)), (Some(0), vec!["B".to_string()]));
        let two = infer(Case::new("Gather", 13), vector(&scope, &["0", "?", "2"]));
        assert_eq!(elements(&scope, &two), ["A", "?", "?"]);
        let picked = infer(Case::new("GatherElements", 13), Fact::constant(ints(&[1, 1, 0])));
        assert_eq!(elements(&scope, &picked), ["B", "B", "A"]);
        let picked = infer(Case::new("GatherND", 13), Fact::constant(tensor(&[2, 1], &[1i64, 0])));
        assert_eq!(elements(&scope, &picked), ["B", "A"]);
        // All selectable elements are equal.
        let facts = vec![Some(vector(&scope, &["A", "A"])), Some(Fact::tensor(Some(DType::Int64), Some(vec![])))];
        assert_eq!(elements(&scope, &Case::new("Gather", 13).infer(&scope, facts)[0]), ["A"]);
    }
}
