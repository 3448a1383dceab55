//! Index maps of lookups and assignments whose indices are affine in the positions, as those that exporters compute with Range, Expand and Concat.

use super::lookup::{batch_dims, gather_axis};
use crate::dim::{Dim, Scope};
use crate::index_map::{Affine, AxisRange, IndexMap, Selected, Undecided};
use crate::ir::{MAX_ELEMENTS, ValueId};
use crate::ops::traits::{Counting, Moved, NodeFacts, in_steps};

/// The columns of an index tensor `[…, k]`, each affine in the positions along the other axes, if they are proved to be. The tensor is a constant, or a Concat
/// of `k` tensors `[…, 1]` along the last axis.
pub(crate) fn columns_of(view: &NodeFacts<'_>, slot: usize) -> Option<Vec<(Counting, ValueId)>> {
    let indices = view.input(slot)?;
    let (last, front) = view.shape(slot)?.split_last()?;
    let column = |value: ValueId| {
        let mut count = Counting::of(view.model, view.facts, view.opset, value)?;
        count.steps.pop()?;
        count.shape.pop()?.is_const(1).then_some((count, value))
    };
    let constant = view.fact(slot)?.constant_tensor().filter(|tensor| tensor.len() <= MAX_ELEMENTS);
    if let Some(tensor) = constant {
        let width = usize::try_from(last.as_const()?).ok().filter(|width| *width > 0)?;
        let numbers: Vec<Dim> = tensor.to_i64s()?.into_iter().map(Dim::constant).collect();
        let column = |at: usize| {
            let elements: Vec<Dim> = numbers.iter().skip(at).step_by(width).cloned().collect();
            Some((in_steps(view.scope(), front, &elements)?, indices))
        };
        return (0..width).map(column).collect();
    }
    if last.is_const(1) {
        return Some(vec![column(indices)?]);
    }
    let concat = NodeFacts::of(view.model, view.facts, view.model.value(indices).producer()?, view.opset)?;
    let is_last = concat.node.is("Concat") && concat.axis(1)? == front.len();
    let columns = concat.node.inputs().iter().filter(|_| is_last);
    columns.map(|value| column((*value)?)).collect::<Option<Vec<_>>>().filter(|_| is_last)
}

/// An index along axes of the result, the first of which is that of the first axis of the indices.
fn affine(scope: &Scope, count: &Counting, dim: &Dim, first: usize) -> Affine {
    // An index that may be negative counts from the end.
    let is_negative = count.bounds(scope).is_some_and(|(_, high)| scope.lt(&high, &Dim::constant(0)).is_yes());
    let offset = if is_negative { scope.add(&count.offset, dim) } else { count.offset.clone() };
    let moving = count.steps.iter().enumerate().filter(|(_, step)| !step.is_const(0));
    Affine { offset, terms: moving.map(|(axis, step)| (axis.saturating_add(first), step.clone())).collect() }
}

/// The index of an axis that is not looked up: its position.
fn own(axis: usize) -> Affine {
    Affine { offset: Dim::constant(0), terms: vec![(axis, Dim::constant(1))] }
}

/// A Gather by affine indices.
pub(super) fn gather(view: &NodeFacts<'_>) -> Result<Moved, Undecided> {
    let (scope, data, shape) = (view.scope(), view.dims(0)?, view.dims(1)?);
    let axis = gather_axis(&view.known_site()?, data.len())?;
    let indices = view.input(1).ok_or(Undecided::Operands)?;
    let count = Counting::of(view.model, view.facts, view.opset, indices).ok_or(Undecided::RunTime)?;
    let index = |(at, dim): (usize, &Dim)| match at.cmp(&axis) {
        std::cmp::Ordering::Less => own(at),
        std::cmp::Ordering::Equal => affine(scope, &count, dim, axis),
        std::cmp::Ordering::Greater => own(at.saturating_add(shape.len()).saturating_sub(1)),
    };
    let indices: Vec<Affine> = data.iter().enumerate().map(index).collect();
    let (front, back) = data.split_at_checked(axis).ok_or(Undecided::Rank)?;
    let result = [front, shape, back.get(1..).unwrap_or_default()].concat();
    Ok(Moved::of_first(IndexMap::affine(scope, data, &result, &indices)?))
}

/// A GatherND whose columns are affine.
pub(super) fn gather_nd(view: &NodeFacts<'_>) -> Result<Moved, Undecided> {
    let (scope, data) = (view.scope(), view.dims(0)?);
    let batch = batch_dims(&view.known_site()?)?;
    let columns = columns_of(view, 1).ok_or(Undecided::RunTime)?;
    let (_, tuples) = view.dims(1)?.split_last().ok_or(Undecided::Rank)?;
    let named = batch.saturating_add(columns.len());
    let index = |(at, dim): (usize, &Dim)| match at.checked_sub(batch).map(|column| columns.get(column)) {
        None => own(at),
        Some(Some((count, _))) => affine(scope, count, dim, 0),
        Some(None) => own(at.saturating_sub(named).saturating_add(tuples.len())),
    };
    let indices: Vec<Affine> = data.iter().enumerate().map(index).collect();
    let result = [tuples, data.get(named..).ok_or(Undecided::Rank)?].concat();
    Ok(Moved::of_first(IndexMap::affine(scope, data, &result, &indices)?))
}

/// The positions along each axis of the data that a ScatterND writes, if they are all combinations of these, in the order of the updates.
pub(crate) fn written_block(view: &NodeFacts<'_>) -> Option<Vec<AxisRange>> {
    let (scope, data, one) = (view.scope(), view.shape(0)?, Dim::constant(1));
    let columns = columns_of(view, 1)?;
    let (named, rest) = data.split_at_checked(columns.len())?;
    let (_, tuples) = view.shape(1)?.split_last()?;
    let mut block = Vec::with_capacity(data.len());
    let mut next = 0;
    for ((column, _), size) in columns.iter().zip(named) {
        let is_negative = scope.lt(&column.offset, &Dim::constant(0)).is_yes();
        let start = if is_negative { scope.add(&column.offset, size) } else { column.offset.clone() };
        let (step, len) = match column.moving().as_slice() {
            [] => (1, one.clone()),
            &[axis] => {
                // Each axis of the updates once, in order.
                if tuples.get(next..axis)?.iter().any(|size| !size.is_const(1)) {
                    return None;
                }
                next = axis.checked_add(1)?;
                (column.steps.get(axis)?.as_const()?, tuples.get(axis)?.clone())
            }
            _ => return None,
        };
        block.push(AxisRange { start, step, len });
    }
    if tuples.get(next..)?.iter().any(|size| !size.is_const(1)) {
        return None;
    }
    block.extend(rest.iter().map(|size| AxisRange { start: Dim::constant(0), step: 1, len: size.clone() }));
    Some(block)
}

/// A ScatterND that replaces the elements of a block.
pub(super) fn scatter_nd(view: &NodeFacts<'_>) -> Result<Moved, Undecided> {
    let (scope, data, updates) = (view.scope(), view.dims(0)?, view.dims(2)?);
    let ranges = written_block(view).ok_or(Undecided::RunTime)?;
    let lens: Vec<Dim> = ranges.iter().map(|range| range.len.clone()).collect();
    let block = ranges.into_iter().zip(data).map(|(AxisRange { start, step, len }, size)| {
        let is_whole = step == 1 && start.is_const(0) && view.equal(&len, size);
        if is_whole { Selected::All } else { Selected::Range { start, step, len } }
    });
    let map = IndexMap::assign(scope, data, &block.collect::<Vec<_>>())?;
    let (from, to) = (scope.product(updates), scope.product(&lens));
    if !view.equal(&from, &to) {
        return Err(Undecided::Equal(from, to));
    }
    let (data, updates) = (IndexMap::identity(scope, data), IndexMap::reshape(scope, updates, &lens));
    Ok(Moved { slots: vec![0, 2], map: map.applied_to(scope, &[&data, &updates])? })
}
