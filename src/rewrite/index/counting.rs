//! Tensors that count, alone and as the columns of an index tensor.

use crate::dim::Dim;
use crate::ir::ValueId;
use crate::rewrite::limits::LISTED;
use crate::rewrite::place::Place;

pub(super) use crate::ops::traits::{Counting, in_steps};

/// A value as a counting tensor, if it is proved to be one.
pub(super) fn counting(place: &Place<'_>, value: ValueId) -> Option<Counting> {
    Counting::of(place.model, place.facts, place.opset.version(), value)
}

/// The columns of an index tensor `[…, k]`, constant or a Concat of `k` along the last axis, each as a counting tensor over the
/// other axes.
pub(super) fn columns(place: &Place<'_>, indices: ValueId) -> Option<Vec<(Counting, ValueId)>> {
    let rank = place.shape(indices)?.len();
    let last = rank.checked_sub(1)?;
    if let Some(tensor) = place.constant(indices).filter(|tensor| tensor.len() <= LISTED) {
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
