//! Moving the elements of a dequantized constant.
//!
//! Law: `f(DequantizeLinear(x, s, z)) = DequantizeLinear(f(x), s, z)` for every `f` that only moves elements, as long as each
//! element keeps its scale: with one scale for the tensor always, with one for each index of an axis if that axis stays whole and in
//! order. Bit for bit, since each element is computed as before.
//!
//! So weights are transposed, reshaped and cut as integers, and the dequantization stays beside the node that computes with it,
//! where runtimes look for it.

use super::{Place, Rule};
use crate::ir::{Attribute, Edit, Model, NewNode, Node, NodeId, ValueId};
use crate::ops::axis_in;
use crate::ops::traits::{self, AxisSource, traits_of};
use crate::tensor::DType;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "move-before-dequantize",
    law: "f(DequantizeLinear(x, s, z)) = DequantizeLinear(f(x), s, z) where f moves elements and each keeps its scale",
    sentence: "What moves the elements of a dequantized constant moves the quantized ones.",
    premises: &[
        ("constant", "x, and what f reads beside the data, are constants"),
        ("whole-bytes", "the elements of x are integers of 8, 16 or 32 bits, which every movement takes"),
        ("one-reader", "nothing else reads x or its dequantization: it would be kept twice"),
        ("scale-follows", "one scale is for all, or f keeps the axis whose indices have one each, whole and in order"),
    ],
    exact: true,
    operators: traits::MOVING,
    apply: move_before,
}];

/// Whether a node moves elements in a way that the rule carries over to the quantized tensor.
pub fn moves_dequantized(model: &Model, node: &Node) -> bool {
    matches!(node.outputs(), [Some(_)]) && traits_of(model, node).moves_without_repeating()
}

/// The dequantization of a constant, and how its scales lie.
struct Dequantized {
    id: NodeId,
    quantized: ValueId,
    /// The axis whose indices have a scale each, unless one scale is for all.
    axis: Option<usize>,
}

fn move_before(place: &Place<'_>) -> Option<Edit> {
    let (value, output) = (place.input(0)?, place.output(0)?);
    if !moves_dequantized(place.model, place.node()?) {
        return None;
    }
    let given = dequantized(place, value)?;
    let rest = place.node()?.inputs().iter().skip(1).flatten();
    if !rest.copied().all(|operand| place.constant(operand).is_some()) {
        return None;
    }
    let axis = match given.axis {
        None => None,
        Some(axis) => Some(i64::try_from(axis_after(place, axis)?).ok()?),
    };
    let movement = NewNode::like(place.node()?).reading(0, given.quantized);
    let mut dequantization = NewNode::like(place.model.node(given.id)?);
    let mut edit = place.edit()?.removing(place.id).removing(given.id);
    let moved = edit.new_value(given.quantized, "moved");
    dequantization = dequantization.reading(0, moved);
    if let Some(axis) = axis {
        dequantization = dequantization.set("axis", axis);
    }
    Some(edit.inserting(movement.output(moved)).inserting(dequantization.output(output)))
}

/// What `value` is dequantized from: a constant that nothing else reads, as `value` has no other readers, so that the model does not
/// grow. Types of less than a byte are left alone, because not every operator that moves elements takes them.
fn dequantized(place: &Place<'_>, value: ValueId) -> Option<Dequantized> {
    let (id, node) = place.producer(value, "DequantizeLinear")?;
    let (quantized, scale) = (node.input(0)?, node.input(1)?);
    let tensor = place.constant(quantized)?;
    let is_covered = matches!(tensor.dtype(), DType::Int8 | DType::Uint8 | DType::Int16 | DType::Uint16 | DType::Int32);
    // Blocks lie in the scales as they lie in the tensor, and would have to move with it.
    let has_blocks = node.attribute("block_size").is_some_and(|size| !matches!(size, Attribute::Int(0)));
    if !is_covered || has_blocks || !place.has_one_reader(value) || !place.has_one_reader(quantized) {
        return None;
    }
    let axis = match place.constant(scale)?.shape() {
        [] | [1] => None,
        [_] => {
            let named = match node.attribute("axis") {
                None => 1,
                Some(Attribute::Int(axis)) => *axis,
                Some(_) => return None,
            };
            Some(axis_in(named, tensor.rank()).ok()?)
        }
        _ => return None,
    };
    Some(Dequantized { id, quantized, axis })
}

/// Where the node puts an axis that it leaves whole and in order.
fn axis_after(place: &Place<'_>, axis: usize) -> Option<usize> {
    let view = place.view(place.id)?;
    view.traits().axes?(&view)?.into_iter().position(|source| source == Some(AxisSource::Whole(axis)))
}
