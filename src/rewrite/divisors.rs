//! Integer divisors that an edit would make constant.
//!
//! ONNX Runtime refuses a constant integer 0 among divisors when it loads a model, be the division in a branch that is not taken or of
//! nothing. One that is computed fails only where it runs. So no edit gives a division a constant divisor that holds a 0.

use super::Place;
use crate::ir::{Edit, NodeId, ValueId};
use crate::ops::operator;
use crate::ops::traits::traits_of;
use crate::tensor::Tensor;

/// Whether an edit gives no division a constant integer divisor with a 0 in it.
pub(super) fn keeps_divisors_computed(place: &Place<'_>, edit: &Edit) -> bool {
    let model = place.model;
    let has_zero = |value: ValueId| {
        let made = edit.constants.iter().find(|(own, _)| *own == value).map(|(_, tensor)| tensor);
        let there = || if value.is_placeholder() { None } else { model.value(value).tensor() };
        made.or_else(there).is_some_and(holds_zero)
    };
    let divides = |id: NodeId, slot: usize| {
        let staying = model.node(id).filter(|_| !edit.remove.contains(&id));
        staying.is_some_and(|node| traits_of(model, node).divisor == Some(slot))
    };
    let remade = edit.constants.iter().map(|&(value, _)| (value, value));
    let replaced = edit.replace.iter().copied().chain(remade).filter(|(old, _)| !old.is_placeholder());
    let replaced = replaced.flat_map(|(old, new)| model.users(old).into_iter().map(move |(id, slot)| (id, slot, new)));
    let rewired = edit.rewire.iter().filter_map(|&(id, slot, new)| Some((id, slot, new?)));
    let inserted = edit.insert.iter().filter_map(|node| {
        let slot = operator(&node.domain, &node.op_type)?.traits.divisor?;
        node.inputs.get(slot).copied().flatten()
    });
    let staying = replaced.chain(rewired).filter(|&(id, slot, _)| divides(id, slot)).map(|(.., new)| new);
    !staying.chain(inserted).any(has_zero)
}

/// Whether a tensor is of integers, one of which is 0.
fn holds_zero(tensor: &Tensor) -> bool {
    tensor.dtype().is_integer() && tensor.to_i64s().is_some_and(|held| held.contains(&0))
}
