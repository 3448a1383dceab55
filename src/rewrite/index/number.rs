//! Assignments of one number.
//!
//! Law: where `ScatterND(x, i, c)` writes the number `c` to a block, it is `Where(m, c, x)` with a mask `m` of the axes along which the places
//! are numbers. If along one axis it writes to what a Slice `o : e` takes, however long that is, this is done to that part, between the rest.
//! Exporters write `x[:, 1:3, :, ::2] = c` with an index for each element.

use super::counting::{Counting, columns};
use super::uniform;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, ValueId};
use crate::rewrite::build::{Build, axes};
use crate::rewrite::place::Place;
use crate::tensor::{DType, Tensor};

/// How many places a mask may tell apart.
const MOST_PLACES: usize = 4096;

/// The end of an axis, however long it is.
const TO_THE_END: i64 = i64::MAX;

pub(super) fn assigned(place: &Place<'_>) -> Option<Edit> {
    use DType::{Double, Float, Int32, Int64};
    let node = place.node()?;
    let (into, indices, updates, output) = (node.input(0)?, node.input(1)?, node.input(2)?, node.output(0)?);
    if node.text("reduction", b"none")? != b"none" || !place.opset.has("Where") {
        return None;
    }
    if place.constant(indices).is_some() || !place.model.is_read_only_by(indices, &[place.id]) {
        return None;
    }
    let number = uniform(place, updates).filter(|number| Some(number.dtype()) == place.dtype(output))?;
    let is_negative_zero =
        || number.to_f64s().is_some_and(|numbers| numbers.iter().any(|x| *x == 0.0 && x.is_sign_negative()));
    if !matches!(number.dtype(), Float | Double | Int32 | Int64) || is_negative_zero() {
        return None;
    }
    let block = Block::of(place, into, &columns(place, indices)?)?;
    let mut edit = place.edit()?;
    let number = edit.constant(updates, "number", number);
    let mask = edit.constant(indices, "mask", block.mask()?);
    let choose = |data: ValueId| NewNode::new("Where", [Some(mask), Some(number), Some(data)]);
    let Some((axis, start, end)) = block.part else { return place.instead(edit, choose(into)).ok() };
    let mut pieces = Vec::new();
    for (from, to) in [(0, start), (start, end), (end, TO_THE_END)] {
        if from == to {
            continue;
        }
        let piece = edit.new_value(into, if from == start { "part" } else { "rest" });
        let slice = place.build(&mut edit, into).slice(into, vec![from], vec![to], axes([axis]), vec![1])?;
        edit.insert.push(slice.output(piece));
        if from == start {
            let written = edit.new_value(output, "part");
            edit.insert.push(choose(piece).output(written));
            pieces.push(written);
        } else {
            pieces.push(piece);
        }
    }
    place.instead(edit, Build::concat(pieces, axis)).ok()
}

/// A block of places.
struct Block {
    /// For each axis along which the places are numbers, and not all there are, which they are.
    fixed: Vec<Option<Vec<bool>>>,
    /// The axis along which they are what a Slice takes, and its bounds.
    part: Option<(usize, i64, i64)>,
}

impl Block {
    fn of(place: &Place<'_>, into: ValueId, columns: &[(Counting, ValueId)]) -> Option<Block> {
        let dims = place.shape(into)?;
        if columns.len() != dims.len() || dims.is_empty() {
            return None;
        }
        let mut block = Block { fixed: Vec::new(), part: None };
        for (axis, ((column, _), dim)) in columns.iter().zip(dims).enumerate() {
            let moves_along = column.moving().iter().all(|&moves| moves == axis);
            let start = column.offset.as_const().filter(|start| *start >= 0)?;
            let (size, step) = (column.shape.get(axis)?, column.steps.get(axis)?.as_const()?);
            if !moves_along || column.shape.len() != dims.len() {
                return None;
            }
            let is_whole = start == 0 && step == 1 && place.scope().eq(size, dim).is_yes();
            let mut fixed = None;
            if let (Some(size), Some(dim), false) = (size.as_const(), dim.as_const(), is_whole) {
                fixed = Some(places(start, step, size, dim)?);
            } else if !is_whole {
                let end = (step == 1 && block.part.is_none()).then(|| end_of_slice(place, dim, start, size))??;
                block.part = Some((axis, start, end));
            }
            block.fixed.push(fixed);
        }
        block.fixed.iter().any(Option::is_some).then_some(block)
    }

    /// The mask of the axes along which the places are numbers; other axes have size 1.
    fn mask(&self) -> Option<Tensor> {
        let first = self.fixed.iter().position(Option::is_some)?;
        let (mut shape, mut flags) = (Vec::new(), vec![true]);
        for fixed in self.fixed.get(first..)? {
            let own = fixed.as_deref().unwrap_or(&[true]);
            shape.push(own.len());
            if flags.len().checked_mul(own.len())? > MOST_PLACES {
                return None;
            }
            flags = flags.iter().flat_map(|&flag| own.iter().map(move |&own| flag && own)).collect();
        }
        Tensor::from_bools(&shape, &flags).ok()
    }
}

/// Which of `dim` places `start + step·k` are, for `k` below `size`.
fn places(start: i64, step: i64, size: i64, dim: i64) -> Option<Vec<bool>> {
    let mut flags = vec![false; usize::try_from(dim).ok().filter(|dim| *dim <= MOST_PLACES)?];
    for k in 0..size.min(i64::try_from(MOST_PLACES).ok()?) {
        let at = usize::try_from(start.checked_add(step.checked_mul(k)?)?).ok()?;
        *flags.get_mut(at)? = true;
    }
    Some(flags)
}

/// Where a Slice from `start` ends that takes `size` of an axis, however long that is.
fn end_of_slice(place: &Place<'_>, dim: &Dim, start: i64, size: &Dim) -> Option<i64> {
    let scope = place.scope();
    // What takes nothing has no part of its own between the rest.
    let end = start.checked_add(scope.upper_bound(size)?).filter(|end| *end > start)?;
    let up_to = |bound: i64| scope.min(dim, &Dim::constant(bound));
    scope.eq(&scope.sub(&up_to(end), &up_to(start)), size).is_yes().then_some(end)
}
