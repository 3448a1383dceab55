//! How a tensor that counts is recognised: what is known of its content, or else what its operator makes of its operands.

use std::cell::Cell;

use crate::dim::Dim;
use crate::ir::ValueId;
use crate::rewrite::Place;
use crate::tensor::DType;

pub(super) use crate::ops::traits::{Counting, in_steps};

/// How far back a tensor is followed through the nodes that compute it.
const MAX_DEPTH: usize = 24;

/// How many nodes are looked at for one tensor; a node that is reached on two ways counts twice.
const MAX_STEPS: usize = 128;

/// Constants with more elements are only asked whether all of them are one number.
const MAX_CONSTANT: usize = 4096;

/// A value as a counting tensor, if it is proved to be one.
pub(super) fn counting(place: &Place<'_>, value: ValueId) -> Option<Counting> {
    follow(place, value, MAX_DEPTH, &Cell::new(MAX_STEPS))
}

fn follow(place: &Place<'_>, value: ValueId, depth: usize, steps: &Cell<usize>) -> Option<Counting> {
    steps.set(steps.get().checked_sub(1)?);
    let fact = place.fact(value)?;
    if !matches!(fact.dtype()?, DType::Int64 | DType::Int32 | DType::Bool) {
        return None;
    }
    let shape = fact.shape()?.to_vec();
    if let Some(known) = known(place, value, &shape) {
        return Some(known);
    }
    let view = place.view(place.model.value(value).producer()?)?;
    let depth = depth.checked_sub(1)?;
    let operand = |slot: usize| follow(place, view.input(slot)?, depth, steps);
    let traits = view.traits();
    if let Some(counts) = traits.counts {
        return counts(&view, &shape, &operand);
    }
    // Any element of a tensor of one number is that number.
    let data = operand(0).filter(|data| traits.moves_first() && data.is_splat())?;
    Some(Counting::splat(shape, data.offset))
}

/// What the content that is already known says.
fn known(place: &Place<'_>, value: ValueId, shape: &[Dim]) -> Option<Counting> {
    let fact = place.fact(value)?;
    if let Some(tensor) = fact.constant_tensor() {
        if let Some(one) = tensor.uniform() {
            let [number] = one.to_i64s()?[..] else { return None };
            return Some(Counting::splat(shape.to_vec(), Dim::constant(number)));
        }
        if tensor.len() > MAX_CONSTANT {
            return None;
        }
        let numbers: Vec<Dim> = tensor.to_i64s()?.into_iter().map(Dim::constant).collect();
        return in_steps(place.scope(), shape, &numbers);
    }
    in_steps(place.scope(), shape, &fact.ints()?)
}

/// The columns of an index tensor `[…, k]`, constant or a Concat of `k` along the last axis, each as a counting tensor over the
/// other axes.
pub(super) fn columns(place: &Place<'_>, indices: ValueId) -> Option<Vec<(Counting, ValueId)>> {
    let rank = place.shape(indices)?.len();
    let last = rank.checked_sub(1)?;
    if let Some(tensor) = place.constant(indices).filter(|tensor| tensor.len() <= MAX_CONSTANT) {
        let shape = place.shape(indices)?;
        let width = usize::try_from(shape.get(last)?.as_const()?).ok().filter(|width| *width > 0)?;
        let front = shape.get(..last)?;
        let numbers: Vec<Dim> = tensor.to_i64s()?.into_iter().map(Dim::constant).collect();
        let column = |at: usize| {
            let elements: Vec<Dim> = numbers.iter().skip(at).step_by(width).cloned().collect();
            Some((in_steps(place.scope(), front, &elements)?, indices))
        };
        return (0..width).map(column).collect();
    }
    let (_, concat) = place.producer(indices, "Concat")?;
    if place.read(concat).axis(rank)? != last {
        return None;
    }
    let column = |value: &Option<ValueId>| {
        let value = (*value)?;
        let mut count = counting(place, value)?;
        count.steps.pop()?;
        count.shape.pop()?.is_const(1).then_some((count, value))
    };
    concat.inputs().iter().map(column).collect()
}
