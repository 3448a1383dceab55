//! Moving the elements of a dequantized constant.
//!
//! Law: `f(DequantizeLinear(x, s, z)) = DequantizeLinear(f(x), s, z)` for every `f` that only moves elements, as long as each
//! element keeps its scale: with one scale for the tensor always, with one for each index of an axis if that axis stays whole and in
//! order. Bit for bit, since each element is computed as before.
//!
//! So weights are transposed, reshaped and cut as integers, and the dequantization stays beside the node that computes with it,
//! where runtimes look for it.

use super::slices::cuts::untouched_axes;
use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Attribute, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::axis_in;
use crate::tensor::DType;

const MOVEMENTS: &[&str] = &["Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Identity"];

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
    operators: MOVEMENTS,
    apply: move_before,
}];

/// Whether a node moves elements in a way that the rule carries over to the quantized tensor.
pub fn moves_dequantized(node: &Node) -> bool {
    MOVEMENTS.iter().any(|operator| node.is(operator))
}

/// The dequantization of a constant, and how its scales lie.
struct Dequantized {
    id: NodeId,
    quantized: ValueId,
    /// The axis whose indices have a scale each, unless one scale is for all.
    axis: Option<usize>,
    shape: Vec<usize>,
}

fn move_before(place: &Place<'_>) -> Option<Edit> {
    let (value, output) = (place.input(0)?, place.output(0)?);
    let given = dequantized(place, value)?;
    let rest = place.node()?.inputs().iter().skip(1).flatten();
    if !rest.copied().all(|operand| place.constant(operand).is_some()) {
        return None;
    }
    let axis = match given.axis {
        None => None,
        Some(axis) => Some(i64::try_from(axis_after(place, axis, &given.shape)?).ok()?),
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
    let (shape, scales) = (tensor.shape().to_vec(), place.constant(scale)?.shape());
    let axis = match scales {
        [] | [1] => None,
        [_] => {
            let named = match node.attribute("axis") {
                None => 1,
                Some(Attribute::Int(axis)) => *axis,
                Some(_) => return None,
            };
            Some(axis_in(named, shape.len()).ok()?)
        }
        _ => return None,
    };
    Some(Dequantized { id, quantized, axis, shape })
}

/// Where the node puts an axis that it leaves whole and in order.
fn axis_after(place: &Place<'_>, axis: usize, shape: &[usize]) -> Option<usize> {
    let node = place.node()?;
    match node.op_type.as_str() {
        "Identity" => Some(axis),
        "Transpose" => place.read(node).permutation(shape.len())?.iter().position(|&from| from == axis),
        "Slice" => untouched_axes(place, place.id)?.get(axis)?.then_some(axis),
        _ => {
            // The elements keep their order: an axis stays if as many elements lie before it and it is as long.
            let after: Vec<usize> = place.shape(place.output(0)?)?.iter().map(constant_size).collect::<Option<_>>()?;
            let before =
                |dims: &[usize], axis: usize| dims.iter().take(axis).try_fold(1usize, |a, &b| a.checked_mul(b));
            let (length, lead) = (shape.get(axis)?, before(shape, axis)?);
            (0..after.len()).find(|&at| after.get(at) == Some(length) && before(&after, at) == Some(lead))
        }
    }
}

fn constant_size(dim: &Dim) -> Option<usize> {
    usize::try_from(dim.as_const()?).ok()
}
