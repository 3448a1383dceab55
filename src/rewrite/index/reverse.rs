//! Sequences that are turned around whole.
//!
//! Law: `ReverseSequence(x, v)`, where all of `v` is the length `n` of the time axis, looks up the places `n − 1, …, 0` along it. A Slice with
//! the step −1 would do so at any length, but not every consumer reads that (`introduced`).

use super::counting::counting;
use crate::ir::Edit;
use crate::rewrite::Place;
use crate::rewrite::limits::LISTED;
use crate::tensor::Tensor;

pub(super) fn reverse(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (data, output) = (node.input(0)?, node.output(0)?);
    let axis = node.int("time_axis", 0).filter(|axis| [0, 1].contains(axis))?;
    let dim = place.shape(data)?.get(usize::try_from(axis).ok()?)?;
    let lengths = counting(place, node.input(1)?)?;
    if !lengths.is_splat() || !place.scope().eq(&lengths.offset, dim).is_yes() {
        return None;
    }
    let length = dim.as_const().filter(|length| (1..=(LISTED as i64)).contains(length))?;
    let places = Tensor::vector((0..length).rev().collect());
    let mut edit = place.edit()?;
    let gather = place.build(&mut edit, output).gather_at(data, places, axis);
    place.instead(edit, gather)
}
