//! Slices of reshaped data, where the axis survives the reshape.

use super::{axes_of, moved, with_axes};
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::ops::traits::{AxisSource, Movement, traits_of};
use crate::rewrite::merge::reshape_codes;
use crate::rewrite::{Place, Rule};
use crate::tensor::Tensor;

pub(in crate::rewrite) const RULES: &[Rule] =
    &[Rule { name: "slice-of-reshape", operators: &["Slice"], exact: true, apply: slice_of_reshape }];

/// `Reshape(x)[r] = Reshape(x[r])` where the axis cut is an axis of `x`: as long, with as many elements before it and behind it.
///
/// A reshape moves no data, so nothing is won by that alone: the slice must meet something it may cancel with, or leave the reshape
/// next to another one.
fn slice_of_reshape(place: &mut Place<'_>) -> Option<Edit> {
    let (middle, output) = (place.input(0)?, place.output(0)?);
    let (id, node) = place.layout(middle)?;
    let data = node.input(0)?;
    if !place.has_one_reader(middle) || !is_worth_it(place, data, output) {
        return None;
    }
    let cuts = super::cuts_of(place, place.id)?;
    let from = place.shape(data)?.to_vec();
    let map = axis_map(place, id)?;
    let mut lengths: Vec<Dim> = from.clone();
    let result = place.shape(output)?.to_vec();
    for (axis, _) in cuts.cut() {
        let own = map.get(axis).copied().flatten()?;
        *lengths.get_mut(own)? = result.get(axis)?.clone();
    }
    // Axes that the slice names only to leave them whole need not survive.
    if cuts.named != cuts.cut().count() {
        return None;
    }
    let operator = node.op_type.clone();
    let axes = match operator.as_str() {
        "Squeeze" => Some(axes_of(place, node, from.len())?),
        "Unsqueeze" => Some(axes_of(place, node, cuts.dims.len())?),
        _ => None,
    };
    let again = NewNode::like(node);
    let mut edit = place.edit("slice-of-reshape")?;
    let rank = cuts.dims.len();
    let slice = moved(place, &mut edit, place.id, data, rank, &|axis| map.get(axis).copied().flatten())?;
    let part = place.new_value(middle, "sliced");
    let reshape = match axes {
        Some(axes) => with_axes(place, &mut edit, &operator, part, &axes)?,
        None => reshaped(place, &mut edit, part, &lengths, &result)?,
    };
    edit.insert.push(slice.output(part));
    edit.insert.push(NewNode { name: again.name, extra: again.extra, ..reshape }.output(output));
    Some(edit.removing(place.id).removing(id))
}

/// Whether a slice between `data` and the reshape, instead of behind it, has something to meet.
fn is_worth_it(place: &Place<'_>, data: ValueId, output: ValueId) -> bool {
    let meets = place.producer_with(data, |own| own.passes_slices).is_some() && place.has_one_reader(data);
    let readers: Vec<(NodeId, usize)> = place.model.users(output);
    let reshapes = |&(id, slot): &(NodeId, usize)| {
        let node = place.model.node(id);
        slot == 0 && node.is_some_and(|node| traits_of(place.model, node).moves == Some(Movement::Layout))
    };
    let cancels = place.has_one_reader(output) && readers.iter().all(reshapes);
    meets || cancels
}

/// Which axis of the operand each axis of the reshaped data is, if it is one.
fn axis_map(place: &Place<'_>, reshape: NodeId) -> Option<Vec<Option<usize>>> {
    let view = place.view(reshape)?;
    let own = |source: Option<AxisSource>| match source {
        Some(AxisSource::Whole(axis)) => Some(axis),
        _ => None,
    };
    Some(view.traits().axes?(&view)?.into_iter().map(own).collect())
}

/// A Reshape to these dims, if constants can say them.
fn reshaped(place: &mut Place<'_>, edit: &mut Edit, data: ValueId, from: &[Dim], target: &[Dim]) -> Option<NewNode> {
    if place.opset < 5 {
        return None;
    }
    let codes = reshape_codes(place.scope(), from, target)?;
    let shape = super::constant(place, edit, data, "shape", Tensor::vector(codes));
    Some(NewNode::new("Reshape", [Some(data), Some(shape)]))
}
