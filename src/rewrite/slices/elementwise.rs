//! Slices of what is computed element by element.

use super::cuts::cuts_of;
use super::{is_common, moved};
use crate::ir::{Definition, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Operands, Variation, traits_of};
use crate::rewrite::{Place, Rule};

pub(in crate::rewrite) const RULES: &[Rule] = &[
    // Where a function is approximated, what is beside it in the chain goes with it: so this one is tried first.
    Rule {
        name: "slice-of-function",
        law: "f(x, y)[r] = f(x[r], y), up to rounding",
        sentence: "Moves a Slice before element-wise functions that runtimes approximate, so that less is computed.",
        premises: &[
            (
                "pointwise",
                "each node that it moves over computes an element from those at its place, up to rounding wherever that is",
            ),
            ("approximated", "one of them may be rounded otherwise in another place"),
            ("one-operand", "one operand has the axes that are cut, and the others are broadcast along them"),
            ("one-reader", "the values in between have no other consumer"),
            (
                "not-fused",
                "the operand is not the result of a product or normalization, with which runtimes fuse this node",
            ),
            ("movable-type", "every runtime slices the element type"),
        ],
        exact: false,
        operators: &["Slice"],
        apply: slice_of_function,
    },
    Rule {
        name: "slice-of-elementwise",
        law: "f(x, y)[r] = f(x[r], y)",
        sentence: "Moves a Slice before exact element-wise operators, so that less is computed.",
        premises: &[
            ("pointwise", "each node that it moves over computes an element from those at its place"),
            ("same-bits", "the operator computes the same bits at every position and for every shape"),
            ("one-operand", "one operand has the axes that are cut, and the others are broadcast along them"),
            ("one-reader", "the values in between have no other consumer"),
            (
                "not-fused",
                "the operand is not the result of a product or normalization, with which runtimes fuse this node",
            ),
            ("movable-type", "every runtime slices the element type"),
        ],
        exact: true,
        operators: &["Slice"],
        apply: slice_of_elementwise,
    },
];

/// A chain longer than this is moved in several goes.
const MOST_STEPS: usize = 64;

/// A link of a chain: the node, and which operands are the chain's data.
struct Link {
    id: NodeId,
    node: NewNode,
    slots: Vec<usize>,
    /// Whether results may be rounded otherwise in another place.
    varies: bool,
}

/// Results stay as they are bit for bit.
fn slice_of_elementwise(place: &Place<'_>) -> Option<Edit> {
    sliced_before(place, Variation::None)
}

/// Some function of the chain is computed differently for some places, as kernels do in vectors.
fn slice_of_function(place: &Place<'_>) -> Option<Edit> {
    sliced_before(place, Variation::Rounding)
}

/// `f(x, y)[r] = f(x[r], y)` where the result has the axes that `r` cuts from `x`, and `y` is broadcast along them, for a whole
/// chain of such `f` at once. They work on less, and there are as many of them. Two operands of full size would need two slices, so
/// such an `f` is left alone; and so is what a runtime does together with the product before it.
fn sliced_before(place: &Place<'_>, most: Variation) -> Option<Edit> {
    let output = place.output(0)?;
    let mut value = place.input(0)?;
    let mut chain: Vec<Link> = Vec::new();
    let cuts = cuts_of(place, place.id)?;
    let axes: Vec<usize> = cuts.cut().map(|(axis, _)| axis).collect();
    // An axis that is named and stays whole may be shorter in an operand.
    if axes.is_empty() || axes.len() != cuts.named {
        return None;
    }
    let rank = cuts.dims.len();
    // The slice itself may read what it cuts as a bound, too.
    if !place.has_one_reader(value) {
        return None;
    }
    while chain.len() < MOST_STEPS && place.has_one_reader_node(value) {
        let Some((link, data)) = link(place, value, (rank, &axes), most) else { break };
        chain.push(link);
        value = data;
    }
    let varies = chain.iter().any(|link| link.varies);
    if chain.is_empty()
        || varies != (most == Variation::Rounding)
        || place.producer_with(value, |own| own.fused_with_next).is_some()
    {
        return None;
    }
    let mut edit = place.edit()?.removing(place.id);
    let slice = moved(place, &mut edit, place.id, value, rank, &Some)?;
    let mut part = edit.new_value(value, "sliced");
    edit.insert.push(slice.output(part));
    while let Some(Link { id, mut node, slots, .. }) = chain.pop() {
        for slot in slots {
            node = node.reading(slot, part);
        }
        part = if chain.is_empty() { output } else { edit.new_value(output, "part") };
        edit.remove.push(id);
        edit.insert.push(node.output(part));
    }
    Some(edit)
}

/// The elementwise node that computes a value, and the one operand that has its axes.
fn link(
    place: &Place<'_>,
    value: ValueId,
    (rank, axes): (usize, &[usize]),
    most: Variation,
) -> Option<(Link, ValueId)> {
    let id = place.model.value(value).producer()?;
    let node = place.model.node(id)?;
    if node.graph() != place.node()?.graph() || node.outputs().len() != 1 || !node.canonical_domain().is_empty() {
        return None;
    }
    let traits = traits_of(place.model, node);
    let pointwise = traits.pointwise?;
    let variation = traits.variation(place.dtype(node.input(0)?)?);
    let data = match pointwise.operands {
        Operands::First => node.input(0)?,
        Operands::Broadcast | Operands::Stretched
            if place.opset.everything_broadcasts() && pointwise.meets(place.opset) =>
        {
            full_operand(place, node, value, rank, axes)?
        }
        // Quantized groups are recognised by runtimes as they stand.
        _ => return None,
    };
    if variation > most {
        return None;
    }
    let is_constant = matches!(place.model.value(data).definition(), Definition::Initializer(_));
    // Not every runtime slices every type.
    let is_common = place.dtype(data).is_some_and(is_common);
    if is_constant || !is_common || place.shape(data)?.len() != rank {
        return None;
    }
    let inputs = node.inputs().iter().enumerate();
    let slots = inputs.filter(|(_, input)| **input == Some(data)).map(|(slot, _)| slot).collect();
    Some((Link { id, node: NewNode::like(node), slots, varies: variation > Variation::None }, data))
}

/// The operand that the result has all of these axes from; every other one is broadcast along them.
fn full_operand(place: &Place<'_>, node: &Node, value: ValueId, rank: usize, axes: &[usize]) -> Option<ValueId> {
    let result = place.shape(value)?;
    let scope = place.scope();
    let dim_of = |operand: ValueId, axis: usize| {
        let shape = place.shape(operand)?;
        let missing = rank.checked_sub(shape.len())?;
        Some(axis.checked_sub(missing).and_then(|axis| shape.get(axis)))
    };
    let mut full = None;
    for &operand in node.inputs() {
        let operand = operand?;
        if full == Some(operand) {
            continue;
        }
        let broadcast =
            axes.iter().all(|&axis| dim_of(operand, axis).is_some_and(|dim| dim.is_none_or(|dim| dim.is_const(1))));
        if broadcast {
            continue;
        }
        let has_axis = |&axis: &usize| {
            let dims = dim_of(operand, axis).flatten().zip(result.get(axis));
            dims.is_some_and(|(own, dim)| scope.eq(own, dim).is_yes())
        };
        if full.is_some() || !axes.iter().all(has_axis) {
            return None;
        }
        full = Some(operand);
    }
    full
}
