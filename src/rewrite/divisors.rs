//! Guard: no edit makes an integer divisor constant if it contains a 0.
//!
//! ONNX Runtime refuses to load a model with a constant integer divisor 0, even if the Div is in a branch that is never taken or
//! has an empty operand. A computed divisor of 0 fails only when the node runs.

use super::place::Place;
use crate::ir::{Edit, NodeId, ValueId};
use crate::ops::operator;
use crate::ops::traits::traits_of;
use crate::tensor::Tensor;

/// Returns `true` if the edit gives no division a constant integer divisor that contains a 0.
pub(super) fn keeps_divisors_computed(place: &Place<'_>, edit: &Edit) -> bool {
    let model = place.model;
    let has_zero = |value: ValueId| {
        let made = edit.constants.iter().find(|(own, _)| *own == value).map(|(_, tensor)| tensor);
        // Defaults of inputs count as well: a runtime may check them, too.
        let there = || if value.is_placeholder() { None } else { model.value(value).tensor() };
        made.or_else(there).is_some_and(holds_zero)
    };
    let divides = |&(id, slot, _): &(NodeId, usize, ValueId)| {
        model.node(id).is_some_and(|node| traits_of(model, node).divisor == Some(slot))
    };
    let inserted = edit.insert.iter().filter_map(|node| {
        let slot = operator(&node.domain, &node.op_type)?.traits.divisor?;
        node.inputs.get(slot).copied().flatten()
    });
    !edit.changed_operands(model).filter(divides).map(|(.., new)| new).chain(inserted).any(has_zero)
}

/// Returns `true` if the tensor has an integer type and contains a 0.
fn holds_zero(tensor: &Tensor) -> bool {
    tensor.dtype().is_integer() && tensor.every_i64(|number| number != 0) == Some(false)
}
