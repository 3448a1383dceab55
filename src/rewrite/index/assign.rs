//! Assignments to places that only count.
//!
//! Law: `ScatterND(x, i, u)` that writes `x[…, o : o + n, …]` along one axis and all of every other is the concatenation of
//! `x[…, : o, …]`, `u` and `x[…, o + n :, …]`. Where such assignments, one after another, write all of the axis, `x` is not read. One that
//! writes all of every axis is `u`: exporters write `x[:, :, :, : length] = u` so, which mostly is all there is.

use super::counting::{Counting, columns, counting};
use super::uniform;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, Node, ValueId};
use crate::rewrite::Place;
use crate::rewrite::build::Build;
use crate::tensor::DType;

/// One assignment: the axis, the range of it, and what is written.
struct Written {
    axis: usize,
    start: i64,
    end: i64,
    updates: ValueId,
    into: ValueId,
}

pub(super) fn in_order(place: &Place<'_>) -> Option<Edit> {
    let output = place.output(0)?;
    if let Some(edit) = whole(place) {
        return Some(edit);
    }
    let last = written(place, place.node()?)?;
    let dim = place.shape(output)?.get(last.axis)?.as_const()?;
    let axis = last.axis;
    // The newest write wins; earlier ones show where nothing newer was written.
    let mut pieces: Vec<(i64, i64, ValueId)> = vec![(last.start, last.end, last.updates)];
    let mut into = last.into;
    let mut open = dim.checked_sub(last.end.checked_sub(last.start)?)?;
    for _ in 0..16 {
        if open == 0 {
            break;
        }
        let (_, node) = place.producer(into, "ScatterND")?;
        let earlier = written(place, node).filter(|earlier| earlier.axis == axis)?;
        let overlaps = pieces.iter().any(|&(start, end, _)| start < earlier.end && earlier.start < end);
        if overlaps {
            return None;
        }
        pieces.push((earlier.start, earlier.end, earlier.updates));
        open = open.checked_sub(earlier.end.checked_sub(earlier.start)?)?;
        into = earlier.into;
    }
    if open != 0 {
        return None;
    }
    pieces.sort_by_key(|&(start, _, _)| start);
    place.instead(place.edit()?, Build::concat(pieces.into_iter().map(|(_, _, updates)| updates), axis))
}

/// An assignment to every place, in order, is what is written.
fn whole(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (into, updates) = (node.input(0)?, node.input(2)?);
    let columns = block(place, node)?;
    let is_whole = |(axis, (column, dim)): (usize, (&Counting, &Dim))| covers(place, column, axis, dim);
    let all = columns.iter().zip(place.shape(into)?).enumerate().all(is_whole);
    (all && place.same_shape(into, updates)).then(|| place.forward(updates))?
}

/// Whether a column of places writes all of an axis of size `dim`, from the first on.
fn covers(place: &Place<'_>, column: &Counting, axis: usize, dim: &Dim) -> bool {
    let size = column.shape.get(axis);
    column.offset.is_const(0) && size.is_some_and(|size| place.scope().eq(size, dim).is_yes())
}

/// Law: writing a block `u` into a tensor of one number `v` is `Pad(u, v)` to that tensor's size.
pub(super) fn into_filled(place: &Place<'_>) -> Option<Edit> {
    use DType::{Double, Float, Int32, Int64};
    let node = place.node()?;
    let (into, updates, output) = (node.input(0)?, node.input(2)?, node.output(0)?);
    let padded = matches!(place.dtype(output)?, Float | Double | Int32 | Int64);
    if !place.opset.pad_and_clip_have_operands() || !padded || place.constant(updates).is_some() {
        return None;
    }
    let number = uniform(place, into).filter(|number| Some(number.dtype()) == place.dtype(output))?;
    let columns = block(place, node)?;
    let shape = place.shape(into)?.to_vec();
    let scope = place.scope();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (axis, (column, dim)) in columns.iter().zip(&shape).enumerate() {
        let size = column.shape.get(axis)?;
        // Places may be counted from the end.
        let first = column.offset.as_const()?;
        let start = if first < 0 { scope.add(dim, &column.offset) } else { column.offset.clone() };
        let end = scope.add(&start, size);
        let (front, back) = (start.as_const()?, scope.sub(dim, &end).as_const()?);
        if front < 0 || back < 0 || first < 0 && first.checked_add(size.as_const()?)? > 0 {
            return None;
        }
        before.push(front);
        after.push(back);
    }
    let mut edit = place.edit()?;
    let mut build = place.build(&mut edit, output);
    let pad = NewNode::new("Pad", [Some(updates)]);
    let pad = build.padded(pad, &before.into_iter().zip(after).collect::<Vec<_>>())?;
    let value = build.constant("value", number);
    place.instead(edit, pad.reading(2, value))
}

/// The places a ScatterND writes to, axis by axis, if each axis of the updates is written in order to the same axis.
fn block(place: &Place<'_>, node: &Node) -> Option<Vec<Counting>> {
    if node.text("reduction", b"none")? != b"none" {
        return None;
    }
    let (into, indices) = (node.input(0)?, node.input(1)?);
    let shape = place.shape(into)?;
    let columns: Vec<Counting> = match columns(place, indices) {
        Some(columns) => columns.into_iter().map(|(column, _)| column).collect(),
        None if shape.len() == 1 => {
            let mut count = counting(place, indices)?;
            count.steps.pop()?;
            count.shape.pop().filter(|last| last.is_const(1))?;
            vec![count]
        }
        None => return None,
    };
    let in_order = |(axis, column): (usize, &Counting)| {
        let stays = column.moving().iter().all(|&moves| moves == axis) && column.shape.len() == shape.len();
        // Along an axis of size 1 a step says nothing.
        let along = column.steps.get(axis).zip(column.shape.get(axis));
        stays && along.is_some_and(|(step, size)| step.is_const(1) || size.is_const(1))
    };
    (columns.len() == shape.len() && columns.iter().enumerate().all(in_order)).then_some(columns)
}

fn written(place: &Place<'_>, node: &Node) -> Option<Written> {
    let (into, updates) = (node.input(0)?, node.input(2)?);
    let shape = place.shape(into)?;
    let columns = block(place, node)?;
    let mut part = None;
    for (axis, (column, dim)) in columns.iter().zip(shape).enumerate() {
        let size = column.shape.get(axis)?;
        if covers(place, column, axis, dim) {
            continue;
        }
        let start = column.offset.as_const().filter(|start| *start >= 0)?;
        let end = start.checked_add(size.as_const()?)?;
        if part.is_some() || end > dim.as_const()? {
            return None;
        }
        part = Some((axis, start, end));
    }
    let (axis, start, end) = part?;
    (start < end).then_some(Written { axis, start, end, updates, into })
}
