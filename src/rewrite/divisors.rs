//! Integer divisors that an edit would make constant.
//!
//! ONNX Runtime refuses a constant integer 0 among divisors when it loads a model, be the division in a branch that is not taken or of
//! nothing. One that is computed fails only where it runs. So no edit gives a division a constant divisor that holds a 0.

use super::place::Place;
use crate::ir::{Edit, NodeId, ValueId};
use crate::ops::operator;
use crate::ops::traits::traits_of;
use crate::tensor::Tensor;

/// Whether an edit gives no division a constant integer divisor with a 0 in it.
pub(super) fn keeps_divisors_computed(place: &Place<'_>, edit: &Edit) -> bool {
    let model = place.model;
    let has_zero = |value: ValueId| {
        let made = edit.constants.iter().find(|(own, _)| *own == value).map(|(_, tensor)| tensor);
        // Not only constants: a runtime may also check the default of an input.
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

/// Whether a tensor is of integers, one of which is 0.
fn holds_zero(tensor: &Tensor) -> bool {
    tensor.dtype().is_integer() && tensor.every_i64(|number| number != 0) == Some(false)
}
