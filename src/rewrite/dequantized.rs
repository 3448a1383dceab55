//! Moving the elements of a dequantized constant.
//!
//! Law: `f(DequantizeLinear(x, s, z)) = DequantizeLinear(f(x), s, z)` for every `f` that only moves elements, as long as each
//! element keeps its scale: with one scale for the tensor always, with one for each index of an axis if that axis stays whole and in
//! order. Bit for bit, since each element is computed as before.
//!
//! So weights are transposed, reshaped and cut as integers, and the dequantization stays beside the node that computes with it,
//! where runtimes look for it.

use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Attribute, Data, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::{self, AxisSource, traits_of};
use crate::ops::{Environment, axis_in, evaluate_node, has_kernel_for_narrow};
use crate::slicing::SliceRule;
use crate::tensor::{DType, Tensor};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "move-before-dequantize",
    law: "f(DequantizeLinear(x, s, z)) = DequantizeLinear(f(x), s, z) where f moves elements and each keeps its scale",
    sentence: "Moves data movement of a dequantized constant to the quantized constant.",
    premises: &[
        ("constant", "x and the other operands of f are constants"),
        ("one-reader", "neither x nor its dequantization has another consumer, because two copies would remain"),
        ("scale-follows", "one scale is for all, or f keeps the axis whose indices have one each, whole and in order"),
    ],
    exact: true,
    operators: traits::MOVING,
    apply: move_before,
}];

pub(super) const LATE_RULES: &[Rule] = &[Rule {
    name: "dequantize-behind-moves",
    law: "f(DequantizeLinear(x, s, z)) = DequantizeLinear(f(x), s, z) where f moves elements, or takes the largest and s > 0",
    sentence: "Moves DequantizeLinear after data movement and pooling.",
    premises: &[
        (
            "carried",
            "ONNX Runtime propagates the quantization over f and then fails to load the model: a subgraph consumes the moved value, or the operator set is 21 or newer and x has type int8",
        ),
        (
            "not-quantized",
            "since operator set 21, the moved value is not quantized, so that ONNX Runtime propagates nothing",
        ),
        ("one-scale", "one constant scale is for all, and the elements of x are integers of 8 or 16 bits"),
        (
            "same-largest",
            "f moves elements; or it is a MaxPool since operator set 12, x is of 8 bits, s is a normal number above 0 with which all numbers \
                are finite, and no window lies in the padding alone",
        ),
    ],
    exact: true,
    operators: traits::CARRYING_QUANTIZATION,
    apply: dequantize_last,
}];

/// Longer ways to a body are not looked for.
const MAX_CARRIED: usize = 32;

/// ONNX Runtime carries a quantization over a node (the trait `carries_quantization`) by writing QuantizeLinear and DequantizeLinear behind it
/// (measured on 1.31). It writes them before the operand of a reader even if that is a value that a body reads, which is no operand of the
/// node that has the body. Of int8 since operator set 21 it writes a QuantizeLinear that has a zero point of another type than its result.
fn dequantize_last(place: &Place<'_>) -> Option<Edit> {
    let (value, output) = (place.input(0)?, place.output(0)?);
    let (id, node) = place.producer(value, "DequantizeLinear")?;
    let (quantized, scale) = (node.input(0)?, node.input(1)?);
    let dtype = place.dtype(quantized)?;
    let is_covered = matches!(dtype, DType::Int8 | DType::Uint8 | DType::Int16 | DType::Uint16);
    let scale = place.constant(scale).filter(|scale| is_one_number(scale))?;
    if has_blocks(node) || !is_covered {
        return None;
    }
    if !traits_of(place.model, place.node()?).moves_first() && !has_same_largest(place, quantized, scale)? {
        return None;
    }
    let is_mistyped = dtype == DType::Int8 && place.opset.version() >= 21 && node.input(2).is_some();
    let is_quantized =
        |(reader, _): (NodeId, usize)| place.model.node(reader).is_some_and(|node| node.is("QuantizeLinear"));
    let fails = is_mistyped && !place.model.users(output).into_iter().any(is_quantized);
    if !fails && !is_read_in_body(place, output) {
        return None;
    }
    moved_first(place, (id, quantized), None)
}

/// Moves the quantized elements and dequantizes each result, with scales along `axis` if there is one. Removes the dequantization before
/// if nothing else reads it. Where ONNX Runtime has no kernel that moves elements of the type, the moved constants are computed here.
fn moved_first(place: &Place<'_>, (id, quantized): (NodeId, ValueId), axis: Option<i64>) -> Option<Edit> {
    let node = place.node()?;
    let mut edit = place.edit()?.removing(place.id);
    if place.has_one_reader(place.input(0)?) {
        edit = edit.removing(id);
    }
    let moved: Vec<Option<ValueId>> =
        node.outputs().iter().map(|output| output.map(|_| edit.new_value(quantized, "moved"))).collect();
    if has_kernel_for_narrow(&node.op_type, place.dtype(quantized)?, place.opset.version()) {
        edit.insert.push(NewNode { outputs: moved.clone(), ..NewNode::like(node).reading(0, quantized) });
    } else {
        let tensors = moved_constant(place, node, quantized)?.into_iter();
        edit.constants = moved.iter().zip(tensors).filter_map(|(value, tensor)| Some(((*value)?, tensor))).collect();
    }
    for (output, moved) in node.outputs().iter().zip(moved) {
        let (Some(output), Some(moved)) = (*output, moved) else { continue };
        let mut dequantization = NewNode::like(place.model.node(id)?).reading(0, moved);
        if let Some(axis) = axis {
            dequantization = dequantization.set("axis", axis);
        }
        edit.insert.push(dequantization.output(output));
    }
    Some(edit)
}

/// The results of a movement whose first operand is this constant, and the others are constants too.
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

/// Whether a scale is for the whole tensor.
fn is_one_number(scale: &Tensor) -> bool {
    matches!(scale.shape(), [] | [1])
}

/// Whether the largest number of each window is the one that the largest integer stands for, bit for bit.
fn has_same_largest(place: &Place<'_>, quantized: ValueId, scale: &Tensor) -> Option<bool> {
    let node = place.node().filter(|node| node.is("MaxPool") && place.opset.version() >= 12)?;
    let is_pooled =
        matches!(place.dtype(quantized)?, DType::Int8 | DType::Uint8) && matches!(node.outputs(), [Some(_)]);
    // A number below the normal ones times a difference may be 0 for several integers, and of either sign. Of −∞ alone runtimes make the
    // least finite number.
    let rising = f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX) / 256.0;
    let is_rising = scale.dtype() == DType::Float && scale.to_f64s()?.iter().all(|scale| rising.contains(scale));
    let (kernel, pads) = (node.ints("kernel_shape")?, node.ints("pads")?);
    let is_unpadded = pads.iter().all(|&pad| pad == 0);
    let are_shorter = || pads.iter().zip(kernel.iter().cycle()).all(|(&pad, &taps)| 0 <= pad && pad < taps);
    let are_dense = || Some(node.ints("dilations")?.iter().all(|&dilation| dilation == 1));
    let has_elements = |dim: &Dim| place.scope().ge(dim, &Dim::constant(1)).is_yes();
    let are_there = || Some(place.shape(quantized)?.get(2..)?.iter().all(has_elements));
    let is_filled = !node.flag("ceil_mode", false)?
        && matches!(node.text("auto_pad", b"NOTSET")?, b"NOTSET" | b"" | b"VALID")
        && (is_unpadded || are_shorter() && are_dense()? && are_there()?);
    Some(is_pooled && is_rising && is_filled)
}

/// Whether blocks have scales. These lie as they lie in the tensor, and would have to move with it.
fn has_blocks(node: &Node) -> bool {
    node.attribute("block_size").is_some_and(|size| !matches!(size, Attribute::Int(0)))
}

/// Whether a body reads a value, or what the quantization is carried over to from it.
fn is_read_in_body(place: &Place<'_>, value: ValueId) -> bool {
    let mut values = vec![value];
    let mut at = 0;
    while let Some(&value) = values.get(at).filter(|_| at < MAX_CARRIED) {
        at += 1;
        for (reader, slot) in place.model.users(value) {
            let Some(node) = place.model.node(reader) else { continue };
            if Some(node.graph()) != place.graph() {
                return true;
            }
            if slot == 0 && traits_of(place.model, node).carries_quantization {
                values.extend(node.output(0));
            }
        }
    }
    false
}

/// The dequantization of a constant, and how its scales lie.
struct Dequantized {
    id: NodeId,
    quantized: ValueId,
    /// The axis whose indices have a scale each, unless one scale is for all.
    axis: Option<usize>,
}

fn move_before(place: &Place<'_>) -> Option<Edit> {
    let given = dequantized(place, place.input(0)?)?;
    let rest = place.node()?.inputs().iter().skip(1).flatten();
    if !rest.copied().all(|operand| place.constant(operand).is_some()) {
        return None;
    }
    let axis = match given.axis {
        None => None,
        Some(axis) => Some(i64::try_from(axis_after(place, axis)?).ok()?),
    };
    moved_first(place, (given.id, given.quantized), axis)
}

/// What `value` is dequantized from: a constant that nothing else reads, as `value` has no other readers, so that the model does not
/// grow.
fn dequantized(place: &Place<'_>, value: ValueId) -> Option<Dequantized> {
    let (id, node) = place.producer(value, "DequantizeLinear")?;
    let (quantized, scale) = (node.input(0)?, node.input(1)?);
    let tensor = place.constant(quantized)?;
    if has_blocks(node) || !place.has_one_reader(value) || !place.has_one_reader(quantized) {
        return None;
    }
    let scale = place.constant(scale)?;
    let axis = match scale.shape() {
        _ if is_one_number(scale) => None,
        // Before there was an attribute for it, ONNX Runtime took several scales for the axis 1, and no other can be said.
        [_] if place.opset.version() < 13 => return None,
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
