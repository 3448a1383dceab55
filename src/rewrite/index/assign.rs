//! Assignments to places that only count.
//!
//! Law: `ScatterND(x, i, u)` that writes `x[…, o : o + n, …]` along one axis and all of every other is the concatenation of
//! `x[…, : o, …]`, `u` and `x[…, o + n :, …]`. Where such assignments, one after another, write all of the axis, `x` is not read.

use super::counting::counting;
use super::lookup::columns;
use crate::ir::{Attribute, Edit, NewNode, Node, ValueId};
use crate::rewrite::Place;

/// One assignment: the axis, the range of it, and what is written.
struct Written {
    axis: usize,
    start: i64,
    end: i64,
    updates: ValueId,
    into: ValueId,
}

pub(super) fn in_order(place: &mut Place<'_>) -> Option<Edit> {
    let output = place.output(0)?;
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
    let name = place.node()?.name.clone();
    let node = NewNode::new("Concat", pieces.into_iter().map(|(_, _, updates)| Some(updates)))
        .with("axis", i64::try_from(axis).ok()?)
        .named(name)
        .output(output);
    Some(place.edit("assignment-in-order")?.removing(place.id).inserting(node))
}

fn written(place: &Place<'_>, node: &Node) -> Option<Written> {
    if matches!(node.attribute("reduction"), Some(Attribute::String(reduction)) if reduction.as_ref() != b"none") {
        return None;
    }
    let (into, indices, updates) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let shape = place.shape(into)?;
    let columns = match columns(place, indices) {
        Some(columns) => columns.into_iter().map(|(column, _)| column).collect(),
        None if shape.len() == 1 => {
            let mut count = counting(place, indices)?;
            count.steps.pop()?;
            count.shape.pop().filter(|last| last.is_const(1))?;
            vec![count]
        }
        None => return None,
    };
    if columns.len() != shape.len() {
        return None;
    }
    let mut part = None;
    for (axis, (column, dim)) in columns.iter().zip(shape).enumerate() {
        let size = column.shape.get(axis)?;
        let along = column.steps.get(axis)?;
        let stays = column.moving().iter().all(|&moves| moves == axis);
        // Along an axis of size 1 a step says nothing.
        if !stays || column.shape.len() != shape.len() || !(along.is_const(1) || size.is_const(1)) {
            return None;
        }
        if column.offset.is_const(0) && place.scope().eq(size, dim).is_yes() {
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
