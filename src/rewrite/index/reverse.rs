//! Sequences that are turned around whole.
//!
//! Law: `ReverseSequence(x, v)`, where all of `v` is the length of the time axis, is `x[::-1]` along it.

use super::counting::counting;
use crate::ir::{Attribute, Edit, NewNode};
use crate::rewrite::Place;
use crate::tensor::Tensor;

pub(super) fn reverse(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (data, output) = (node.input(0)?, node.output(0)?);
    let axis = match node.attribute("time_axis") {
        None => 0,
        Some(Attribute::Int(axis @ (0 | 1))) => *axis,
        Some(_) => return None,
    };
    let dim = place.shape(data)?.get(usize::try_from(axis).ok()?)?;
    let lengths = counting(place, node.input(1)?)?;
    if !lengths.is_splat() || !place.scope().eq(&lengths.offset, dim).is_yes() {
        return None;
    }
    let name = node.name.clone();
    let mut edit = place.edit()?.removing(place.id);
    let mut inputs = vec![Some(data)];
    for (suffix, number) in [("starts", -1), ("ends", i64::MIN), ("axes", axis), ("steps", -1)] {
        inputs.push(Some(edit.constant(output, suffix, Tensor::vector(vec![number]))));
    }
    Some(edit.inserting(NewNode::new("Slice", inputs).named(name).output(output)))
}
