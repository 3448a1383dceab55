//! Moves data movement from the result of a dequantized constant to the constant.
//!
//! Law: `f(DequantizeLinear(x, s, z)) = DequantizeLinear(f(x), s, z)` for every `f` that only moves elements, if each element keeps its
//! scale. A scale for the whole tensor always does. Scales along an axis do if `f` keeps this axis whole and in order. The results are
//! equal bit for bit, because each element is computed as before.
//!
//! The integers are transposed, reshaped and sliced at compile time, so the DequantizeLinear is next to the node that computes with it.
//! Runtimes fuse the two only in this position.

use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::ir::{Attribute, Data, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{self, index_map_of};
use crate::ops::{Environment, axis_in, evaluate_node, has_kernel_for_narrow};
use crate::slicing::SliceRule;
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "move-before-dequantize",
    law: "f(DequantizeLinear(x, s, z)) = DequantizeLinear(f(x), s, z) where f only moves elements, and each element keeps its scale",
    sentence: "Moves a data movement operator from a dequantized constant to the quantized constant, where it is folded.",
    premises: &[
        ("constant", "x and the other operands of f are constants"),
        (
            "one-reader",
            "neither x nor the result of the DequantizeLinear has another consumer, because the model would otherwise hold two copies of the constant",
        ),
        (
            "scale-follows",
            "the scale s is one number for all elements. Alternatively, s has one scale per index of an axis, and f keeps this axis with all indices in order",
        ),
    ],
    exact: true,
    operators: traits::MOVING,
    apply: move_before,
}];

/// Moves the quantized elements and dequantizes each result, with scales along `axis` if there is one. Removes the original
/// DequantizeLinear if it has no other consumer. Where ONNX Runtime has no kernel that moves elements of the type, this function computes
/// the moved constants.
fn moved_first(place: &Place<'_>, (id, quantized): (NodeId, ValueId), axis: Option<i64>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let mut edit = place.begin()?.removing(place.id);
    if place.has_one_reader(place.operand(0)?) {
        edit = edit.removing(id);
    }
    let moved: Vec<Option<ValueId>> =
        node.outputs().iter().map(|output| output.map(|_| edit.new_value(quantized, "moved"))).collect();
    if has_kernel_for_narrow(&node.op_type, place.dtype(quantized).ok_or(Miss::ROOT)?, place.opset.version()) {
        edit.insert.push(NewNode { outputs: moved.clone(), ..NewNode::like(node).reading(0, quantized) });
    } else {
        let tensors = moved_constant(place, node, quantized).ok_or(Miss::ROOT)?.into_iter();
        edit.constants = moved.iter().zip(tensors).filter_map(|(value, tensor)| Some(((*value)?, tensor))).collect();
    }
    for (output, moved) in node.outputs().iter().zip(moved) {
        let (Some(output), Some(moved)) = (*output, moved) else { continue };
        let mut dequantization = NewNode::like(place.model.node(id).ok_or(Miss::ROOT)?).reading(0, moved);
        if let Some(axis) = axis {
            dequantization = dequantization.set("axis", axis);
        }
        edit.insert.push(dequantization.output(output));
    }
    Ok(edit)
}

/// Returns the results of a movement whose first operand is this constant, if its other operands are constants.
fn moved_constant(place: &Place<'_>, node: &Node, constant: ValueId) -> Option<Vec<Tensor>> {
    let operand = |(slot, value): (usize, &Option<ValueId>)| {
        let value = if slot == 0 { Some(constant) } else { *value };
        let Some(value) = value else { return Some(None) };
        Some(Some(Data::Tensor(place.constant(value)?.clone())))
    };
    let inputs = node.inputs().iter().enumerate().map(operand).collect::<Option<Vec<_>>>()?;
    let environment = Environment::of(place.model);
    let results = evaluate_node(&environment, place.id, node, inputs, place.budget, SliceRule::Agree, 0).ok()?;
    results.iter().map(|result| result.tensor().cloned()).collect()
}

/// Returns `true` if the scale is for the whole tensor.
fn is_one_number(scale: &Tensor) -> bool {
    matches!(scale.shape(), [] | [1])
}

/// Returns `true` if the node has one scale for each block. Such scales have the layout of the tensor and would have to move with it.
fn has_blocks(node: &Node) -> bool {
    node.attribute("block_size").is_some_and(|size| !matches!(size, Attribute::Int(0)))
}

/// The dequantization of a constant, with the axis of its scales.
struct Dequantized {
    id: NodeId,
    quantized: ValueId,
    /// The axis with one scale for each index; `None` if one scale is for the whole tensor.
    axis: Option<usize>,
}

fn move_before(place: &Place<'_>) -> Result<Edit, Miss> {
    let given = dequantized(place, place.operand(0)?)?;
    let rest = place.root()?.inputs().iter().skip(1).flatten();
    ensure(rest.copied().all(|operand| place.constant(operand).is_some()), miss!("constant"))?;
    let axis = match given.axis {
        None => None,
        Some(axis) => Some(i64::try_from(axis_after(place, axis)?).or(Err(Miss::COMPUTABLE))?),
    };
    moved_first(place, (given.id, given.quantized), axis)
}

/// Returns the dequantization of a constant that computes `value`. Both the constant and `value` have one consumer, so the model does not
/// grow.
fn dequantized(place: &Place<'_>, value: ValueId) -> Result<Dequantized, Miss> {
    let (id, node) = place.producer(value, "DequantizeLinear").ok_or(Miss::ROOT)?;
    let (quantized, scale) = (node.input(0).ok_or(Miss::ROOT)?, node.input(1).ok_or(Miss::ROOT)?);
    let tensor = place.constant(quantized).ok_or(miss!("constant").of(quantized))?;
    ensure(!has_blocks(node), miss!("scale-follows"))?;
    ensure(place.has_one_reader(value), miss!("one-reader").of(value))?;
    ensure(place.has_one_reader(quantized), miss!("one-reader").of(quantized))?;
    let scale = place.constant(scale).ok_or(miss!("constant").of(scale))?;
    let axis = match scale.shape() {
        _ if is_one_number(scale) => None,
        // Before the attribute *axis* existed, ONNX Runtime applied a vector of scales to axis 1, and no form names another axis.
        [_] if place.opset.version() < 13 => return Err(miss!("scale-follows")),
        [_] => {
            let named = match node.attribute("axis") {
                None => 1,
                Some(Attribute::Int(axis)) => *axis,
                Some(_) => return Err(miss!("scale-follows")),
            };
            Some(axis_in(named, tensor.rank()).or(Err(miss!("scale-follows")))?)
        }
        _ => return Err(miss!("scale-follows")),
    };
    Ok(Dequantized { id, quantized, axis })
}

/// Returns the axis of the result that carries this axis of the quantized tensor, whole and in order.
fn axis_after(place: &Place<'_>, axis: usize) -> Result<usize, Miss> {
    let moved = index_map_of(place.model, place.facts, place.id, 0, place.opset.version());
    let map = moved.or(Err(miss!("scale-follows")))?.map;
    let mut axes = 0..map.result().len();
    axes.find(|&after| map.carries_axis(place.scope(), axis, after)).ok_or(miss!("scale-follows"))
}
