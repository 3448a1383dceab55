//! Sequences that are turned around whole.
//!
//! Law: `ReverseSequence(x, v)`, where all of `v` is the length of the time axis, is `x[::-1]` along it.

use super::counting::counting;
use crate::ir::Edit;
use crate::rewrite::Place;

pub(super) fn reverse(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (data, output) = (node.input(0)?, node.output(0)?);
    let axis = node.int("time_axis", 0).filter(|axis| [0, 1].contains(axis))?;
    let dim = place.shape(data)?.get(usize::try_from(axis).ok()?)?;
    let lengths = counting(place, node.input(1)?)?;
    if !lengths.is_splat() || !place.scope().eq(&lengths.offset, dim).is_yes() {
        return None;
    }
    let mut edit = place.edit()?;
    let slice = place.build(&mut edit, output).slice(data, vec![-1], vec![i64::MIN], vec![axis], vec![-1])?;
    place.instead(edit, slice)
}
