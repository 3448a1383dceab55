//! Assignments to places that only count.
//!
//! Law: `ScatterND(x, i, u)` that writes `x[…, o : o + n, …]` along one axis and all of every other is the concatenation of
//! `x[…, : o, …]`, `u` and `x[…, o + n :, …]`. Where such assignments, one after another, write all of the axis, `x` is not read. One that
//! writes all of every axis is `u`: exporters write `x[:, :, :, : length] = u` so, which mostly is all there is. For `x[…, 0] += c` they spell
//! every place of `x` out, whatever its size.

use super::RULES;
use super::counting::{Counting, columns, counting};
use super::uniform;
use crate::dim::Dim;
use crate::ir::{Edit, Node, ValueId};
use crate::rewrite::build::{Build, axes};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::miss;

/// One assignment: the axis, the range of it, and what is written.
struct Written {
    axis: usize,
    start: i64,
    end: i64,
    updates: ValueId,
    into: ValueId,
}

pub(super) fn in_order(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    ensure(node.text("reduction", b"none") == Some(b"none".as_slice()), miss!("plain"))?;
    let columns = block(place, node).ok_or(miss!("blocks"))?;
    if let Some(edit) = whole(place, node, &columns) {
        return Ok(edit);
    }
    let last = part_written(place, node, &columns).ok_or(miss!("blocks"))?;
    let axis = last.axis;
    let mut axis_pieces = Pieces {
        end: place
            .shape(place.result()?)
            .ok_or(miss!("covers"))?
            .get(axis)
            .ok_or(miss!("covers"))?
            .as_const()
            .ok_or(miss!("covers"))?,
        found: Vec::new(),
    };
    axis_pieces.add(last.start, last.end, last.updates).ok_or(miss!("covers"))?;
    let mut into = last.into;
    // The newest write wins; earlier ones show where nothing newer was written.
    for _ in 0..16 {
        if axis_pieces.open().is_empty() {
            break;
        }
        if let Some(parts) = concatenated(place, into, axis) {
            for (start, end, value) in parts {
                axis_pieces.add(start, end, value).ok_or(miss!("covers"))?;
            }
            break;
        }
        let earlier = place.producer(into, "ScatterND").and_then(|(_, node)| written(place, node));
        let Some(earlier) = earlier.filter(|earlier| earlier.axis == axis) else { break };
        axis_pieces.add(earlier.start, earlier.end, earlier.updates).ok_or(miss!("covers"))?;
        into = earlier.into;
    }
    let mut edit = place.begin()?;
    match axis_pieces.open()[..] {
        [] => {}
        [(start, end)] if is_spelled_out(place, into) => {
            let rest = edit.new_value(into, "rest");
            let slice = place
                .build(&mut edit, rest)
                .slice(into, vec![start], vec![end], axes([axis]), vec![1])
                .ok_or(Miss::EXPRESSIBLE)?;
            edit.insert.push(slice.output(rest));
            axis_pieces.add(start, end, rest).ok_or(miss!("covers"))?;
        }
        _ => return Err(miss!("covers")),
    }
    let mut pieces = axis_pieces.found;
    pieces.sort_by_key(|&(start, _, _)| start);
    place.instead(edit, Build::concat(pieces.into_iter().map(|(_, _, updates)| updates), axis))
}

/// What is known to stand at which places of an axis.
struct Pieces {
    end: i64,
    found: Vec<(i64, i64, ValueId)>,
}

impl Pieces {
    /// Adds what stands where nothing newer was written, if that is all of it or nothing.
    fn add(&mut self, start: i64, end: i64, value: ValueId) -> Option<()> {
        let open = self.open();
        if open.iter().any(|&(from, to)| from <= start && end <= to) {
            self.found.push((start, end, value));
            return Some(());
        }
        open.iter().all(|&(from, to)| end <= from || to <= start).then_some(())
    }

    /// The places of which nothing is known yet.
    fn open(&self) -> Vec<(i64, i64)> {
        let mut found: Vec<(i64, i64)> = self.found.iter().map(|&(start, end, _)| (start, end)).collect();
        found.sort_unstable();
        let (mut open, mut at) = (Vec::new(), 0);
        for (start, end) in found {
            if at < start {
                open.push((at, start));
            }
            at = end;
        }
        if at < self.end {
            open.push((at, self.end));
        }
        open
    }
}

/// The operands of a Concat along this axis, and where each stands.
fn concatenated(place: &Place<'_>, value: ValueId, axis: usize) -> Option<Vec<(i64, i64, ValueId)>> {
    let (_, node) = place.producer(value, "Concat")?;
    if place.read(node).axis(place.shape(value)?.len())? != axis {
        return None;
    }
    let mut end = 0i64;
    let mut part = |operand: &Option<ValueId>| {
        let start = end;
        end = start.checked_add(place.shape((*operand)?)?.get(axis)?.as_const()?)?;
        Some((start, end, (*operand)?))
    };
    node.inputs().iter().map(&mut part).collect()
}

/// Whether the places are computed, for assignments of this kind alone, into a tensor that does not hold one number: of such a tensor
/// and what is written a Pad is made.
fn is_spelled_out(place: &Place<'_>, into: ValueId) -> bool {
    let Some(indices) = place.input(1).filter(|&indices| place.constant(indices).is_none()) else { return false };
    let readers = place.model.users(indices);
    let alike = |&(id, slot): &(crate::ir::NodeId, usize)| {
        let node = place.model.node(id).filter(|node| node.is("ScatterND") && Some(node.graph()) == place.graph());
        slot == 1 && node.is_some_and(|node| written(place, node).is_some())
    };
    !place.model.is_named(indices) && readers.iter().all(alike) && uniform(place, into).is_none()
}

/// An assignment to every place, in order, is what is written.
fn whole(place: &Place<'_>, node: &Node, columns: &[Counting]) -> Option<Edit> {
    let (into, updates) = (node.input(0)?, node.input(2)?);
    let is_whole = |(axis, (column, dim)): (usize, (&Counting, &Dim))| covers(place, column, axis, dim);
    let all = columns.iter().zip(place.shape(into)?).enumerate().all(is_whole);
    (all && place.same_shape(into, updates)).then(|| place.forward(updates).ok())?
}

/// Whether a column of places writes all of an axis of size `dim`, from the first on.
fn covers(place: &Place<'_>, column: &Counting, axis: usize, dim: &Dim) -> bool {
    let size = column.shape.get(axis);
    column.offset.is_const(0) && size.is_some_and(|size| place.scope().eq(size, dim).is_yes())
}

/// The places a ScatterND writes to in order, axis by axis.
fn block(place: &Place<'_>, node: &Node) -> Option<Vec<Counting>> {
    if node.text("reduction", b"none")? != b"none" {
        return None;
    }
    places_by_axis(place, node).filter(|columns| in_steps_of_one(columns))
}

/// Returns `true` if the places along each axis are consecutive.
pub(super) fn in_steps_of_one(columns: &[Counting]) -> bool {
    columns.iter().enumerate().all(|(axis, column)| {
        // An axis of size 1 has no second place, so its step does not matter.
        let along = column.steps.get(axis).zip(column.shape.get(axis));
        along.is_some_and(|(step, size)| step.is_const(1) || size.is_const(1))
    })
}

/// The places a ScatterND writes to, axis by axis, if those along each axis depend on that axis of the updates alone.
pub(super) fn places_by_axis(place: &Place<'_>, node: &Node) -> Option<Vec<Counting>> {
    let (into, indices) = (node.input(0)?, node.input(1)?);
    let shape = place.shape(into)?;
    let mut columns: Vec<Counting> = match columns(place, indices) {
        Some(columns) => columns.into_iter().map(|(column, _)| column).collect(),
        None => {
            let mut count = counting(place, indices)?;
            count.steps.pop()?;
            count.shape.pop().filter(|last| last.is_const(1))?;
            vec![count]
        }
    };
    // All places of the axes after the indexed ones are written.
    let named = columns.len();
    let rest = shape.get(named..)?;
    if columns.iter().any(|column| column.shape.len() != named) {
        return None;
    }
    for column in &mut columns {
        column.shape.extend_from_slice(rest);
        column.steps.resize(shape.len(), Dim::constant(0));
    }
    for axis in named..shape.len() {
        let mut whole = Counting::splat(columns.first()?.shape.clone(), Dim::constant(0));
        *whole.steps.get_mut(axis)? = Dim::constant(1);
        columns.push(whole);
    }
    let moves_along = |(axis, column): (usize, &Counting)| column.moving().iter().all(|&moves| moves == axis);
    columns.iter().enumerate().all(moves_along).then_some(columns)
}

fn written(place: &Place<'_>, node: &Node) -> Option<Written> {
    part_written(place, node, &block(place, node)?)
}

/// The assignment of a ScatterND to these places, if it leaves some of one axis as it is.
fn part_written(place: &Place<'_>, node: &Node, columns: &[Counting]) -> Option<Written> {
    let (into, updates) = (node.input(0)?, node.input(2)?);
    let shape = place.shape(into)?;
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
