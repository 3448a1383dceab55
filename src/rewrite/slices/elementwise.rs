//! Moves Slices before element-wise functions.

use super::cuts::cuts_of;
use super::is_common;
use crate::ir::{Definition, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{Operands, Variation, traits_of};
use crate::rewrite::limits::NODES;
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Premise, Rule, miss};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "slice-of-elementwise",
    law: "f(x, y)[r] = f(x[r], y)",
    sentence: "Moves a Slice before exact element-wise operators, so that less is computed.",
    premises: &[
        POINTWISE,
        ("same-bits", "f computes the same bits at every position and for every shape"),
        ONE_OPERAND,
        ONE_READER,
        NOT_FUSED,
        MOVABLE_TYPE,
    ],
    exact: true,
    operators: &["Slice"],
    apply: |place| before(place, Variation::None),
}];

/// Runs after the compositions of movements, which may include the Slice.
pub(in crate::rewrite) const LATE_RULES: &[Rule] = &[Rule {
    name: "slice-of-function",
    law: "f(x, y)[r] = f(x[r], y), up to rounding",
    sentence: "Moves a Slice before element-wise functions that runtimes approximate, so that less is computed.",
    premises: &[
        POINTWISE,
        ("approximated", "at least one operator in f may round differently by position"),
        ONE_OPERAND,
        ONE_READER,
        NOT_FUSED,
        MOVABLE_TYPE,
    ],
    exact: false,
    operators: &["Slice"],
    apply: |place| before(place, Variation::Rounding),
}];

const POINTWISE: Premise =
    ("pointwise", "each node in f computes an element from the elements at the same position of its operands");
const ONE_OPERAND: Premise =
    ("one-operand", "one operand has the sliced axes, and the other operands are broadcast along them");
const ONE_READER: Premise = ("one-reader", "the values between have no other consumer");
const NOT_FUSED: Premise =
    ("not-fused", "x is not the result of a matrix product or normalization, because runtimes fuse such a node with f");
const MOVABLE_TYPE: Premise = ("movable-type", "every runtime supports Slice for the element type");

/// A node of a chain, and the slots that hold the chain's data.
struct Link {
    id: NodeId,
    node: NewNode,
    slots: Vec<usize>,
    /// `true` if results may be rounded differently by position.
    varies: bool,
}

/// Applies `f(x, y)[r] = f(x[r], y)` to a whole chain of functions `f` at once. The result has the axes that `r` slices from `x`, and `y`
/// is broadcast along them. The functions then compute fewer elements, and their number is unchanged. A function with two operands of full
/// size would need two Slices, so it is kept, and so is a function that a runtime fuses with the product before it.
fn before(place: &Place<'_>, most: Variation) -> Result<Edit, Miss> {
    let output = place.result()?;
    let mut value = place.operand(0)?;
    let mut chain: Vec<Link> = Vec::new();
    let cuts = cuts_of(place, place.id).ok_or(miss!("pointwise"))?;
    let axes: Vec<usize> = cuts.cut().map(|(axis, _)| axis).collect();
    // An axis that is named but kept whole may be shorter in an operand.
    ensure(!axes.is_empty(), miss!("pointwise"))?;
    ensure(axes.len() == cuts.named, miss!("pointwise"))?;
    let rank = cuts.dims.len();
    // The Slice may also read its data as a bound.
    ensure(place.has_one_reader(value), miss!("one-reader").of(value))?;
    while chain.len() < NODES && place.has_one_reader_node(value) {
        match link(place, value, (rank, &axes), most) {
            Ok((link, data)) => {
                chain.push(link);
                value = data;
            }
            Err(miss) if chain.is_empty() => return Err(miss),
            Err(_) => break,
        }
    }
    ensure(!chain.is_empty(), miss!("pointwise"))?;
    let varies = chain.iter().any(|link| link.varies);
    ensure(varies == (most == Variation::Rounding), miss!(LATE_RULES, "approximated"))?;
    ensure(place.producer_with(value, |own| own.fused_with_next).is_none(), miss!("not-fused").of(value))?;
    let mut edit = place.begin()?.removing(place.id);
    let slice = NewNode::like(place.root()?).reading(0, value);
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
    Ok(edit)
}

/// Returns the element-wise producer of a value, and its one operand with all axes.
fn link(
    place: &Place<'_>,
    value: ValueId,
    (rank, axes): (usize, &[usize]),
    most: Variation,
) -> Result<(Link, ValueId), Miss> {
    let id = place.model.value(value).producer().ok_or(Miss::ROOT)?;
    let node = place.model.node(id).ok_or(Miss::ROOT)?;
    ensure(node.graph() == place.root()?.graph(), Miss::ROOT)?;
    ensure(node.outputs().len() == 1, Miss::ROOT)?;
    ensure(node.canonical_domain().is_empty(), miss!("pointwise"))?;
    let traits = traits_of(place.model, node);
    let pointwise = traits.pointwise.ok_or(miss!("pointwise"))?;
    let variation = traits.variation(place.dtype(node.input(0).ok_or(Miss::ROOT)?).ok_or(Miss::ROOT)?);
    let data = match pointwise.operands {
        Operands::First => node.input(0).ok_or(Miss::ROOT)?,
        Operands::Broadcast | Operands::Stretched
            if place.opset.everything_broadcasts() && pointwise.meets(place.opset) =>
        {
            full_operand(place, node, value, rank, axes).ok_or(miss!("one-operand"))?
        }
        // Runtimes match quantized groups in their present form.
        _ => return Err(miss!("pointwise")),
    };
    let unequal = if most == Variation::None { miss!("same-bits") } else { miss!("pointwise") };
    ensure(variation <= most, unequal.of(value))?;
    let is_constant = matches!(place.model.value(data).definition(), Definition::Initializer(_));
    // Not every runtime supports Slice for every type.
    let is_common = place.dtype(data).is_some_and(is_common);
    ensure(!is_constant, miss!("movable-type"))?;
    ensure(is_common, miss!("movable-type").of(data))?;
    ensure(place.shape(data).ok_or(miss!("one-operand").of(data))?.len() == rank, miss!("pointwise").of(data))?;
    let inputs = node.inputs().iter().enumerate();
    let slots = inputs.filter(|(_, input)| **input == Some(data)).map(|(slot, _)| slot).collect();
    Ok((Link { id, node: NewNode::like(node), slots, varies: variation > Variation::None }, data))
}

/// Returns the operand that has all of these axes; every other one is broadcast along them.
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
