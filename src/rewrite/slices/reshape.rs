//! Slices of reshaped data, where the axis survives the reshape.

use super::cuts::cuts_of;
use super::moved;
use crate::dim::Dim;
use crate::ir::{Edit, NewNode, NodeId, ValueId};
use crate::ops::size_operand::reshape_codes;
use crate::ops::traits::{AxisSource, Movement, traits_of};
use crate::rewrite::build::{axes, rebuilt};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "slice-of-reshape",
    law: "Reshape(x)[r] = Reshape(x[r′])",
    sentence: "Moves a Slice before a Reshape, where it may cancel.",
    premises: &[
        (
            "axis-survives",
            "each cut axis corresponds to an axis of x, with the same dim and the same number of elements before and after it",
        ),
        ("meets", "a node before the Reshape or after the Slice may cancel with one of them"),
        ("sizes-said", "a constant can express the new shape"),
        ("one-reader", "the reshaped value has no other consumer"),
    ],
    exact: true,
    operators: &["Slice"],
    apply: slice_of_reshape,
}];

/// `Reshape(x)[r] = Reshape(x[r])` where the axis cut is an axis of `x`: as long, with as many elements before it and behind it.
///
/// A reshape moves no data, so nothing is won by that alone: the slice must meet something it may cancel with, or leave the reshape
/// next to another one.
fn slice_of_reshape(place: &Place<'_>) -> Result<Edit, Miss> {
    let (middle, output) = (place.operand(0)?, place.result()?);
    let (id, node) = place.layout(middle).ok_or(Miss::ROOT)?;
    let data = node.input(0).ok_or(Miss::ROOT)?;
    ensure(place.has_one_reader(middle), miss!("one-reader").of(middle))?;
    ensure(is_worth_it(place, data, output), miss!("meets"))?;
    let cuts = cuts_of(place, place.id).ok_or(miss!("axis-survives"))?;
    let from = place.shape(data).ok_or(miss!("axis-survives").of(data))?;
    let map = axis_map(place, id).ok_or(miss!("axis-survives"))?;
    let mut lengths: Vec<Dim> = from.to_vec();
    let result = place.shape(output).ok_or(miss!("axis-survives").of(output))?;
    for (axis, _) in cuts.cut() {
        let own = map.get(axis).copied().flatten().ok_or(miss!("axis-survives"))?;
        *lengths.get_mut(own).ok_or(miss!("axis-survives"))? = result.get(axis).ok_or(miss!("axis-survives"))?.clone();
    }
    // Axes that the slice names only to leave them whole need not survive.
    ensure(cuts.named == cuts.cut().count(), miss!("axis-survives"))?;
    let mut edit = place.begin()?;
    let rank = cuts.dims.len();
    let slice = moved(place, &mut edit, place.id, data, rank, &|axis| map.get(axis).copied().flatten())
        .ok_or(Miss::EXPRESSIBLE)?;
    let part = edit.new_value(middle, "sliced");
    let mut build = place.build(&mut edit, part);
    let reshape = match node.op_type.as_str() {
        "Squeeze" => build.squeeze(part, axes(place.read(node).ones().ok_or(Miss::ROOT)?)),
        "Unsqueeze" => build.unsqueeze(part, axes(place.read(node).ones().ok_or(Miss::ROOT)?)),
        _ => build.reshape(part, reshape_codes(place.scope(), &lengths, result).ok_or(miss!("sizes-said"))?),
    };
    edit.insert.push(slice.output(part));
    let reshape = NewNode { extra: node.extra.clone(), ..rebuilt(node, reshape) };
    edit.insert.push(reshape.named(node.name.clone()).output(output));
    Ok(edit.removing(place.id).removing(id))
}

/// Whether a slice between `data` and the reshape, instead of behind it, has something to meet.
fn is_worth_it(place: &Place<'_>, data: ValueId, output: ValueId) -> bool {
    let meets = place.producer_with(data, |own| own.passes_slices).is_some() && place.has_one_reader(data);
    let readers = place.model.users(output);
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
