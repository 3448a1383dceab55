//! Slices of what is computed element by element.

use super::cuts::cuts_of;
use super::{is_common, moved};
use crate::ir::{Definition, Edit, NewNode, Node, NodeId, ValueId};
use crate::rewrite::{Place, Rule};

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "slice-of-elementwise",
    law: "f(x, y)[r] = f(x[r], y)",
    sentence: "A slice of what is computed element by element is taken before, and less is computed.",
    premises: &[
        ("pointwise", "each node that it moves over computes an element from those at its place"),
        ("one-operand", "one operand has the axes that are cut, and the others are broadcast along them"),
        ("one-reader", "nothing else reads the values in between"),
        ("not-fused", "what comes before is no product or normalization, with which runtimes compute the rest at once"),
        ("movable-type", "every runtime slices the element type"),
    ],
    exact: true,
    operators: &["Slice"],
    apply: slice_of_elementwise,
}];

/// Operators whose result at a place depends on their first operand at the place, and on scalars.
#[rustfmt::skip]
const UNARY: &[&str] = &[
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Elu",
    "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not",
    "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish",
    "Tan", "Tanh", "ThresholdedRelu",
];

/// Operators whose result at a place depends on their operands, broadcast, at the place.
#[rustfmt::skip]
const BROADCASTING: &[&str] = &[
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
];

/// Operators that runtimes compute in one go with what is done to their results element by element.
#[rustfmt::skip]
const FUSING: &[&str] = &[
    "Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "LayerNormalization", "InstanceNormalization",
    "GroupNormalization", "RMSNormalization", "SkipLayerNormalization", "DequantizeLinear", "ConvInteger", "MatMulInteger",
];

/// A chain longer than this is moved in several goes.
const MOST_STEPS: usize = 64;

/// A step of a chain: the node, and which operands are the chain's data.
struct Step {
    id: NodeId,
    node: NewNode,
    slots: Vec<usize>,
}

/// `f(x, y)[r] = f(x[r], y)` where the result has the axes that `r` cuts from `x`, and `y` is broadcast along them, for a whole
/// chain of such `f` at once. They work on less, and there are as many of them. Two operands of full size would need two slices, so
/// such an `f` is left alone; and so is what a runtime does together with the product before it.
fn slice_of_elementwise(place: &Place<'_>) -> Option<Edit> {
    let output = place.output(0)?;
    let mut value = place.input(0)?;
    let mut chain: Vec<Step> = Vec::new();
    let cuts = cuts_of(place, place.id)?;
    let axes: Vec<usize> = cuts.cut().map(|(axis, _)| axis).collect();
    // An axis that is named and stays whole may be shorter in an operand.
    if axes.is_empty() || axes.len() != cuts.named {
        return None;
    }
    let rank = cuts.dims.len();
    while chain.len() < MOST_STEPS && place.has_one_reader_node(value) {
        let Some((step, data)) = step(place, value, rank, &axes) else { break };
        chain.push(step);
        value = data;
    }
    if chain.is_empty() || place.producer_of(value, FUSING).is_some() {
        return None;
    }
    let mut edit = place.edit()?.removing(place.id);
    let slice = moved(place, &mut edit, place.id, value, rank, &Some)?;
    let mut part = edit.new_value(value, "sliced");
    edit.insert.push(slice.output(part));
    while let Some(Step { id, mut node, slots }) = chain.pop() {
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
fn step(place: &Place<'_>, value: ValueId, rank: usize, axes: &[usize]) -> Option<(Step, ValueId)> {
    let id = place.model.value(value).producer()?;
    let node = place.model.node(id)?;
    let is_one_of = |operators: &[&str]| operators.iter().any(|operator| node.is(operator));
    if node.graph() != place.node()?.graph() || node.outputs().len() != 1 {
        return None;
    }
    let data = if is_one_of(UNARY) {
        node.input(0)?
    } else if is_one_of(BROADCASTING) && place.opset.everything_broadcasts() {
        full_operand(place, node, value, rank, axes)?
    } else {
        return None;
    };
    let is_constant = matches!(place.model.value(data).definition(), Definition::Initializer(_));
    // Not every runtime slices every type.
    let is_common = place.dtype(data).is_some_and(is_common);
    if is_constant || !is_common || place.shape(data)?.len() != rank {
        return None;
    }
    let inputs = node.inputs().iter().enumerate();
    let slots = inputs.filter(|(_, input)| **input == Some(data)).map(|(slot, _)| slot).collect();
    Some((Step { id, node: NewNode::like(node), slots }, data))
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
