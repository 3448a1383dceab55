//! Guard for graph outputs that are also transposed and quantized.
//!
//! Where a QuantizeLinear reads a Transpose, ONNX Runtime quantizes before it transposes. If the data of the Transpose is also a graph
//! output, the output becomes the quantized value. The author's own nodes are kept, but no edit creates this pattern.

use super::place::Place;
use crate::ir::{Edit, Model, Node, ValueId};

/// Returns `true` if the edit makes no output the data of a Transpose before a QuantizeLinear, unless it was before.
pub(super) fn turns_no_output(place: &Place<'_>, edit: &Edit) -> bool {
    let model = place.model;
    let is_shown = |value: ValueId| !value.is_placeholder() && model.is_output(value);
    let is_shown_then = |value| is_shown(value) || edit.replace.iter().any(|&(old, new)| new == value && is_shown(old));
    let mut changed = edit.changed_operands(model).filter_map(|(id, _, new)| Some((model.node(id)?, new)));
    let is_turned_anew = changed.any(|(node, new)| {
        is_turned_for_quantization(model, node) && is_shown_then(new) && !node.input(0).is_some_and(is_shown)
    });
    let mut renamed = edit.replace.iter().filter(|&&(old, new)| is_shown(old) && !is_shown(new));
    let is_shown_anew = renamed.any(|&(old, new)| {
        !new.is_placeholder() && is_quantized_turned(model, new) && !is_quantized_turned(model, old)
    });
    let read_by_quantization = |value: ValueId| {
        let inserted = edit
            .insert
            .iter()
            .any(|node| node.op_type == "QuantizeLinear" && node.inputs.first() == Some(&Some(value)));
        let stays = edit
            .changed_operands(model)
            .any(|(id, slot, new)| new == value && slot == 0 && model.node(id).is_some_and(is_quantization));
        inserted || stays
    };
    let is_made = edit.insert.iter().any(|node| {
        let (operand, result) = (node.inputs.first().copied().flatten(), node.outputs.first().copied().flatten());
        let is_turned = node.op_type == "Transpose" && node.domain.is_empty();
        is_turned
            && operand.is_some_and(is_shown_then)
            && result.is_some_and(read_by_quantization)
            && !operand.is_some_and(|operand| !operand.is_placeholder() && is_quantized_turned(model, operand))
    });
    !is_turned_anew && !is_shown_anew && !is_made
}

/// Returns `true` if a value is the data of a Transpose that a QuantizeLinear reads.
pub fn is_quantized_turned(model: &Model, value: ValueId) -> bool {
    model
        .users(value)
        .into_iter()
        .any(|(id, _)| model.node(id).is_some_and(|node| is_turned_for_quantization(model, node)))
}

fn is_turned_for_quantization(model: &Model, node: &Node) -> bool {
    let readers = || node.output(0).map(|value| model.users(value)).unwrap_or_default();
    node.is("Transpose")
        && readers().into_iter().any(|(id, slot)| slot == 0 && model.node(id).is_some_and(is_quantization))
}

/// Returns `true` for a QuantizeLinear of the default domain or of `com.microsoft`.
pub fn is_quantization(node: &Node) -> bool {
    node.op_type == "QuantizeLinear" && ["", "com.microsoft"].contains(&node.canonical_domain())
}
