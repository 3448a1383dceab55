//! Guard for float16 products with transposed data and constant weights.
//!
//! ONNX Runtime merges a Transpose into a product (MatmulTransposeFusion), also one that moves the first axis to the last or last but one
//! position and keeps the order of the others. In float16 with a constant matrix as the other operand, the fused kernel reads out of bounds
//! and the process crashes. So no edit makes such a product read such a Transpose.

use super::place::Place;
use crate::ir::{Attribute, Edit, NewNode, ValueId};
use crate::tensor::DType;

/// Returns `true` if the edit makes no float16 product with a constant matrix read a Transpose that ONNX Runtime misreads there.
pub(super) fn multiplies_nothing_turned(place: &Place<'_>, edit: &Edit) -> bool {
    let model = place.model;
    let changed = edit.changed_operands(model).filter_map(|(id, slot, new)| {
        let product = model.node(id).filter(|node| node.is("MatMul"))?;
        Some((new, product.input(1usize.checked_sub(slot)?)?))
    });
    let inserted = edit.insert.iter().filter(|node| node.op_type == "MatMul" && node.domain.is_empty());
    let inserted = inserted.filter_map(|node| match *node.inputs.as_slice() {
        [Some(a), Some(b)] => Some([(a, b), (b, a)]),
        _ => None,
    });
    let mut products = changed.flat_map(|(new, other)| [(new, other), (other, new)]).chain(inserted.flatten());
    !products.any(|(operand, weight)| is_half_matrix(place, edit, weight) && is_turned(place, edit, operand))
}

/// Returns `true` if a value is a constant float16 matrix, in the model or in the edit.
fn is_half_matrix(place: &Place<'_>, edit: &Edit, value: ValueId) -> bool {
    let made = edit.constants.iter().find(|(own, _)| *own == value).map(|(_, tensor)| (tensor.dtype(), tensor.rank()));
    let there = || {
        let known = !value.is_placeholder() && place.model.value(value).is_constant();
        known.then(|| Some((place.dtype(value)?, place.shape(value)?.len()))).flatten()
    };
    made.or_else(there) == Some((DType::Float16, 2))
}

/// Returns `true` if a value is a Transpose, in the model or in the edit, that moves the first axis to the last or last but one position.
fn is_turned(place: &Place<'_>, edit: &Edit, value: ValueId) -> bool {
    let made = edit.insert.iter().find(|node| node.outputs.contains(&Some(value)));
    let perm = match made {
        Some(node) => named_order(node).filter(|_| node.op_type == "Transpose"),
        None if value.is_placeholder() => None,
        None => place.producer(value, "Transpose").and_then(|(_, node)| {
            let rank = place.shape(node.input(0)?)?.len();
            place.read(node).permutation(rank)
        }),
    };
    perm.is_some_and(|perm| {
        let Some(front) = perm.len().checked_sub(2) else { return false };
        let in_order = perm.iter().take(front).enumerate().all(|(at, &axis)| axis == at + 1);
        front > 0 && in_order && perm.iter().skip(front).any(|&axis| axis == 0)
    })
}

/// Returns the permutation that a node of an edit declares.
fn named_order(node: &NewNode) -> Option<Vec<usize>> {
    let perm = node.attributes.iter().find(|attribute| attribute.name == "perm")?;
    let Attribute::Ints(axes) = &perm.value else { return None };
    axes.iter().map(|&axis| usize::try_from(axis).ok()).collect()
}
