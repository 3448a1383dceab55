//! Elements put in place by index.
//!
//! | operator | versions | what changes |
//! | --- | --- | --- |
//! | Scatter | 9, 11 | deprecated in 11 for ScatterElements, which it is |
//! | ScatterElements | 11, 13, 16, 18 | 13: types; 16: `reduction` add and mul; 18: max and min |
//! | ScatterND | 11, 13, 16, 18 | the same |
//! | TensorScatter | 24 | |
//!
//! The result is the data with updates written over it, or combined with what stands there, at the places that GatherElements
//! and GatherND would read with the same indices. TensorScatter writes `update` along `axis` from each batch entry's write
//! index on (around the end and on from the start when `mode` is circular).
//!
//! Refused: indices out of range, updates of another shape. Without a reduction, places written twice leave the result
//! open in the standard, so such a node is left alone; and so are NaNs in max and min, where runtimes differ.

use super::agree;
use super::cells::{index_values, moved, overwrite};
use super::lookup::{Reduction, element_starts, reduction, scatter_axis, tuple_places};
use super::maps;
use super::{around, claim, count};
use crate::dim::Dim;
use crate::ir::{Data, Fact};
use crate::ops::traits::Traits;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site, axis_in};
use crate::tensor::{Number, Tensor, dispatch_numeric};

const ELEMENTS: Traits = Traits::NONE.index_map(maps::scatter_elements).inferred_by_shapes();

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Scatter", &[9, 11], infer_elements, eval_elements).with(ELEMENTS),
    Operator::new("ScatterElements", &[11, 13, 16, 18], infer_elements, eval_elements).with(ELEMENTS),
    Operator::new("ScatterND", &[11, 13, 16, 18], infer_nd, eval_nd)
        .with(Traits::NONE.index_map(maps::scatter_nd).inferred_by_shapes()),
    Operator::new("TensorScatter", &[24], infer_tensor_scatter, eval_tensor_scatter),
];

/// The result has the type and shape of the data. Its elements follow from the index map.
fn infer_scattered(cx: &InferCx<'_>) -> InferResult {
    let (data, updates) = (cx.required(0)?, cx.required(2)?);
    cx.required(1)?;
    reduction(cx)?;
    Ok(vec![Fact::tensor(data.dtype().or(updates.dtype()), data.shape().map(<[Dim]>::to_vec))])
}

fn infer_elements(cx: &mut InferCx<'_>) -> InferResult {
    cx.rank(0).map(|rank| scatter_axis(cx, rank)).transpose()?;
    for operand in [1, 2] {
        if let (Some(data), Some(other)) = (cx.rank(0), cx.rank(operand))
            && data != other
        {
            return Err(Refusal::invalid(format!("operand {operand} has rank {other}, but 'data' has rank {data}")));
        }
    }
    infer_scattered(cx)
}

fn eval_elements(cx: &mut EvalCx<'_>) -> EvalResult {
    let (data, indices, updates) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let axis = scatter_axis(cx, data.rank())?;
    if updates.shape() != indices.shape() {
        return Err(Decline::invalid(format!(
            "'updates' and 'indices' have different shapes: {:?} and {:?}",
            updates.shape(),
            indices.shape()
        )));
    }
    claim(cx, data.dtype(), data.shape())?;
    let starts = element_starts(data.shape(), indices.shape(), axis, &index_values(indices)?)?;
    Ok(vec![Data::Tensor(scattered(data, updates, &starts, 1, reduction(cx)?)?)])
}

fn infer_nd(cx: &mut InferCx<'_>) -> InferResult {
    let last = cx.shape(1).and_then(<[Dim]>::last).and_then(Dim::as_const);
    if let (Some(rank), Some(last)) = (cx.rank(0), last)
        && i64::try_from(rank).is_ok_and(|rank| last > rank)
    {
        return Err(Refusal::invalid(format!("the last dim of 'indices' is {last}, but 'data' has only {rank} axes")));
    }
    infer_scattered(cx)
}

fn eval_nd(cx: &mut EvalCx<'_>) -> EvalResult {
    let (data, indices, updates) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let (&last, tuples) =
        indices.shape().split_last().ok_or_else(|| Decline::invalid("the operand 'indices' is a scalar"))?;
    let rest = data.shape().get(last..);
    let rest = rest.ok_or_else(|| {
        Decline::invalid(format!(
            "the last dim of 'indices' is {last}, but 'data' has only {} axes after the batch axes",
            data.rank()
        ))
    })?;
    if updates.shape() != [tuples, rest].concat() {
        return Err(Decline::invalid(format!(
            "'updates' has shape {:?}, which does not fit 'indices'",
            updates.shape()
        )));
    }
    claim(cx, data.dtype(), data.shape())?;
    let starts = tuple_places(data.shape(), indices.shape(), 0, &index_values(indices)?)?;
    Ok(vec![Data::Tensor(scattered(data, updates, &starts, count(rest)?, reduction(cx)?)?)])
}

/// The data with runs of `run` updates at each of `starts`, which are multiples of it.
fn scattered(data: &Tensor, updates: &Tensor, starts: &[usize], run: usize, how: Reduction) -> Result<Tensor, Decline> {
    if data.dtype() != updates.dtype() {
        return Err(Decline::invalid(format!(
            "'updates' has type {}, but 'data' has type {}",
            updates.dtype(),
            data.dtype()
        )));
    }
    if data.is_empty() || updates.is_empty() {
        return Ok(data.clone());
    }
    if how != Reduction::None {
        return reduced(data, updates, starts, run, how);
    }
    let result = moved(&[data, updates], &|operands| match operands {
        [data, updates] => overwrite(data, updates, starts, run),
        _ => Err(Decline::invalid("'data' and 'updates' have different element types")),
    })?;
    if repeats(starts, run, data.len()) {
        return Err(Decline::unsupported(
            "an index occurs twice, and the standard does not define the order of the writes",
        ));
    }
    Ok(result)
}

/// Whether a run is written twice.
fn repeats(starts: &[usize], run: usize, len: usize) -> bool {
    let run = run.max(1);
    let mut written = vec![0u64; len / run / 64 + 1];
    starts.iter().any(|&start| {
        let (word, bit) = (start / run / 64, start / run % 64);
        written.get_mut(word).is_none_or(|word| {
            let again = *word & 1 << bit != 0;
            *word |= 1 << bit;
            again
        })
    })
}

fn reduced(data: &Tensor, updates: &Tensor, starts: &[usize], run: usize, how: Reduction) -> Result<Tensor, Decline> {
    let fails =
        || Decline::unsupported(format!("the reduction is not supported for the element type {}", data.dtype()));
    dispatch_numeric!(data.dtype(), T => reduced_numbers::<T>(data, updates, starts, run, how), else => {
        // Truth values add and multiply as in numpy and ONNX Runtime: or, and.
        let (mut result, updates) = data.bools().zip(updates.bools()).ok_or_else(fails)?;
        let places = starts.iter().flat_map(|&start| start..start.saturating_add(run));
        for (place, update) in places.zip(updates) {
            let element = result.get_mut(place).ok_or_else(fails)?;
            *element = match how {
                Reduction::Add | Reduction::Max => *element | update,
                _ => *element & update,
            };
        }
        Ok(Tensor::from_bools(data.shape(), &result)?)
    })
}

fn reduced_numbers<T: Number>(
    data: &Tensor,
    updates: &Tensor,
    starts: &[usize],
    run: usize,
    how: Reduction,
) -> Result<Tensor, Decline> {
    let fails = || Decline::invalid("the shape of 'updates' does not fit the shape of 'data'");
    let mut result = data.elements::<T>().ok_or_else(fails)?.into_owned();
    let updates = updates.elements::<T>().ok_or_else(fails)?;
    for (&start, updates) in starts.iter().zip(updates.chunks(run.max(1))) {
        let place = start.checked_add(run).and_then(|end| result.get_mut(start..end)).ok_or_else(fails)?;
        for (element, &update) in place.iter_mut().zip(updates) {
            *element = match how {
                Reduction::Add => element.add(update),
                Reduction::Mul => element.mul(update),
                Reduction::None => update,
                Reduction::Max | Reduction::Min => {
                    let order = (*element).partial_cmp(&update);
                    let order = order.ok_or_else(|| {
                        Decline::unsupported("'data' or 'updates' contains NaN, for which the reductions 'max' and 'min' are not defined")
                    })?;
                    let keep = if how == Reduction::Max { order.is_ge() } else { order.is_le() };
                    if keep { *element } else { update }
                }
            };
        }
    }
    Ok(Tensor::from_vec(data.shape(), result)?)
}

/// The axis of the sequence, and whether writing wraps around.
fn sequence(site: &Site<'_>, rank: usize) -> Result<(usize, bool), Refusal> {
    let axis = axis_in(site.attr_int("axis")?.unwrap_or(-2), rank)?;
    if axis == 0 {
        return Err(Refusal::invalid("the sequence axis is the batch axis"));
    }
    match site.attr_str("mode")? {
        None | Some("linear") => Ok((axis, false)),
        Some("circular") => Ok((axis, true)),
        Some(mode) => Err(Refusal::invalid(format!("attribute 'mode' is '{mode}', which is not defined"))),
    }
}

fn infer_tensor_scatter(cx: &mut InferCx<'_>) -> InferResult {
    let (past, update) = (cx.required(0)?, cx.required(1)?);
    let dtype = past.dtype().or(update.dtype());
    let scope = cx.scope();
    let dims = match (past.shape(), update.shape()) {
        (None, None) => None,
        (None, Some(update)) => Some(cx.fresh_shape(update.len())),
        (Some(past), None) => Some(past.to_vec()),
        (Some(past), Some(update)) => {
            if past.len() != update.len() {
                return Err(Refusal::invalid(format!(
                    "the update has rank {}, but 'past_cache' has rank {}",
                    update.len(),
                    past.len()
                )));
            }
            let (axis, _) = sequence(cx, past.len())?;
            let pairs = past.iter().zip(update).enumerate();
            let dims = pairs.map(|(at, (past, update))| {
                let others = Some(update).filter(|_| at != axis);
                Ok(agree(scope, [past].into_iter().chain(others))?.unwrap_or_else(|| past.clone()))
            });
            Some(dims.collect::<Result<Vec<_>, Refusal>>()?)
        }
    };
    Ok(vec![Fact::tensor(dtype, dims)])
}

fn eval_tensor_scatter(cx: &mut EvalCx<'_>) -> EvalResult {
    let (past, update) = (cx.tensor(0)?, cx.tensor(1)?);
    let (axis, circular) = sequence(cx, past.rank())?;
    let pairs = past.shape().iter().zip(update.shape()).enumerate();
    let mut differ = pairs.filter(|&(at, (past, update))| if at == axis { update > past } else { update != past });
    if past.rank() != update.rank() || differ.next().is_some() {
        return Err(Decline::invalid(format!(
            "the update has shape {:?}, which does not fit 'past_cache' of shape {:?}",
            update.shape(),
            past.shape()
        )));
    }
    claim(cx, past.dtype(), past.shape())?;
    if update.is_empty() {
        return Ok(vec![Data::Tensor(past.clone())]);
    }
    let (prefixes, room, run) = around(past.shape(), axis)?;
    let length = update.shape().get(axis).copied().unwrap_or(0);
    let batch = past.shape().first().copied().unwrap_or(0);
    let writes = if cx.has_input(2) { cx.ints(2)? } else { vec![0; batch] };
    if writes.len() != batch {
        return Err(Decline::invalid(format!(
            "'write_indices' has {} elements, but the batch size is {batch}",
            writes.len()
        )));
    }
    let mut starts = Vec::with_capacity(prefixes.saturating_mul(length));
    for prefix in 0..prefixes {
        let write = writes.get(prefix / (prefixes / batch).max(1)).and_then(|&write| usize::try_from(write).ok());
        let write = write.ok_or_else(|| Decline::invalid("an element of 'write_indices' is negative"))?;
        let fits = write.checked_add(length).is_some_and(|end| circular || end <= room);
        if !fits {
            return Err(Decline::invalid(format!(
                "{length} elements from position {write} exceed the cache of length {room}"
            )));
        }
        // There are elements, so neither the room nor the prefixes are 0, and all products are within the cache.
        starts.extend((write..write + length).map(|at| (prefix * room + at % room) * run));
    }
    Ok(vec![Data::Tensor(scattered(past, update, &starts, run, Reduction::None)?)])
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::dim::Scope;

    #[test]
    fn elements_are_scattered() {
        let case = |axis: i64| Case::new("ScatterElements", 18).with("axis", axis);
        let zeros = tensor(&[3, 3], &[0f32; 9]);
        let indices = tensor(&[2, 3], &[1i64, 0, 2, 0, 2, 1]);
        let updates = tensor(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let expected = tensor(&[3, 3], &[4f32, 2.0, 0.0, 1.0, 0.0, 6.0, 0.0, 5.0, 3.0]);
        assert!(case(0).eval([zeros.clone(), indices.clone(), updates.clone()]).same(&expected));
        assert!(Case::new("Scatter", 9).eval([zeros.clone(), indices.clone(), updates]).same(&expected));
        let words = case(1).eval([strings(&[1, 2], &["a", "b"]), tensor(&[1, 1], &[-1i32]), strings(&[1, 1], &["c"])]);
        assert!(words.same(&strings(&[1, 2], &["a", "c"])));
        let twice = [ints(&[1, 2]), ints(&[0, 0]), ints(&[5, 6])];
        assert!(matches!(case(0).fails(&twice), Decline::Unsupported(_)));
        for (name, expected) in [("add", 12), ("mul", 30), ("max", 6), ("min", 1)] {
            let case = case(0).text("reduction", name);
            assert_eq!(values::<i64>(&case.eval(&twice)), [expected, 2], "{name}");
        }
        case(0).fails([zeros.clone(), indices.clone(), tensor(&[1, 3], &[1f32; 3])]);
        case(0).fails([zeros.clone(), tensor(&[1, 1], &[3i64]), tensor(&[1, 1], &[1f32])]);
        case(0).fails([zeros, tensor(&[1, 4], &[0i64; 4]), tensor(&[1, 4], &[1f32; 4])]);
        Case::new("ScatterElements", 16).text("reduction", "max").fails(&twice);
    }

    #[test]
    fn tuples_are_scattered() {
        let case = || Case::new("ScatterND", 18);
        let data = iota(&[4]);
        let result = case().eval([data.clone(), tensor(&[2, 1], &[-1i64, 0]), tensor(&[2], &[9f32, 8.0])]);
        assert_eq!(values::<f32>(&result), [8.0, 1.0, 2.0, 9.0]);
        let rows = case().eval([iota(&[3, 2]), tensor(&[1, 1], &[1i64]), tensor(&[1, 2], &[7f32, 7.0])]);
        assert_eq!(values::<f32>(&rows), [0.0, 1.0, 7.0, 7.0, 4.0, 5.0]);
        let twice = [iota(&[3, 2]), tensor(&[2, 1], &[1i64, 1]), tensor(&[2, 2], &[7f32; 4])];
        case().fails(&twice);
        let sum = case().text("reduction", "add").eval(&twice);
        assert_eq!(values::<f32>(&sum), [0.0, 1.0, 16.0, 17.0, 4.0, 5.0]);
        let truth = |values: &[bool]| Tensor::from_bools(&[values.len()], values).unwrap();
        let any = case().text("reduction", "add");
        let any = any.eval([truth(&[false, true]), tensor(&[2, 1], &[0i64, 1]), truth(&[true, false])]);
        assert_eq!(any.bools().unwrap(), [true, true]);
        case().fails([data.clone(), tensor(&[1, 1], &[4i64]), tensor(&[1], &[9f32])]);
        case().fails([data.clone(), tensor(&[1, 2], &[0i64, 0]), tensor(&[1], &[9f32])]);
        let nan = [data, tensor(&[1, 1], &[0i64]), tensor(&[1], &[f32::NAN])];
        case().text("reduction", "max").fails(&nan);
    }

    #[test]
    fn caches_are_written() {
        let past = tensor(&[2, 3, 1], &[0f32; 6]);
        let update = tensor(&[2, 2, 1], &[1f32, 2.0, 3.0, 4.0]);
        let linear = Case::new("TensorScatter", 24);
        assert_eq!(values::<f32>(&linear.eval([past.clone(), update.clone()])), [1.0, 2.0, 0.0, 3.0, 4.0, 0.0]);
        let at = linear.eval([past.clone(), update.clone(), ints(&[1, 0])]);
        assert_eq!(values::<f32>(&at), [0.0, 1.0, 2.0, 3.0, 4.0, 0.0]);
        linear.fails([past.clone(), update.clone(), ints(&[2, 0])]);
        linear.fails([past.clone(), update.clone(), ints(&[-1, 0])]);
        linear.fails([past.clone(), update.clone(), ints(&[0])]);
        let around = Case::new("TensorScatter", 24).text("mode", "circular");
        let around = around.eval([past, update, ints(&[2, 4])]);
        assert_eq!(values::<f32>(&around), [2.0, 0.0, 1.0, 0.0, 3.0, 4.0]);
    }

    #[test]
    fn elements_follow() {
        let scope = Rc::new(Scope::new());
        let shape = vector(&scope, &["A", "B", "?"]);
        let infer = |case: Case, indices: Tensor, updates: Fact| {
            let facts = vec![Some(shape.clone()), Some(Fact::constant(indices)), Some(updates)];
            elements(&scope, &case.infer(&scope, facts)[0])
        };
        let one = infer(Case::new("ScatterND", 13), tensor(&[1, 1], &[2i64]), vector(&scope, &["C"]));
        assert_eq!(one, ["A", "B", "C"]);
        let two = infer(Case::new("ScatterElements", 13), ints(&[0, 1]), vector(&scope, &["C", "D"]));
        assert_eq!(two, ["C", "D", "?"]);
    }
}
