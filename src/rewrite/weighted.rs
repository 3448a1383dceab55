//! Guard for products whose weights are dequantized constants.
//!
//! ONNX Runtime computes a product with a dequantized constant as its second operand in integers (`MatMulNBits`). It quantizes the other
//! operand to 8 bits, which changes results by some hundredths. The author's own products of this form are kept. If another node is in
//! between, for example a Transpose, ONNX Runtime uses integers only in some opsets and for some types. So no edit puts the
//! DequantizeLinear directly before a product that computes in floats.

use super::place::Place;
use crate::ir::{Attribute, Edit, NewNode, ValueId};

/// Returns `true` if the edit makes no float product read a dequantized constant directly that it did not read before.
pub(super) fn multiplies_no_integers(place: &Place<'_>, edit: &Edit) -> bool {
    let model = place.model;
    let made = || edit.insert.iter().filter(|node| node.op_type == "DequantizeLinear" && node.domain.is_empty());
    let is_weight = |value: ValueId| {
        let known = |quantized: Option<ValueId>| {
            quantized.is_some_and(|value| value.is_placeholder() || place.constant(value).is_some())
        };
        match made().find(|node| node.outputs.contains(&Some(value))) {
            Some(node) => known(node.inputs.first().copied().flatten()),
            None => is_dequantized(place, value, true),
        }
    };
    let mut changed = edit.changed_operands(model).filter_map(|(id, slot, new)| {
        let product = model.node(id).filter(|node| slot == 1 && (node.is("MatMul") || node.is("Gemm")))?;
        let is_turned = product.is("Gemm") && product.flag("transB", false) != Some(false);
        let (data, old) = (product.input(0)?, product.input(1)?);
        (!is_turned && !is_dequantized(place, data, false) && !is_dequantized(place, old, false)).then_some(new)
    });
    !changed.any(is_weight) && !edit.insert.iter().any(|node| multiplies_anew(place, edit, node, &is_weight))
}

/// Returns `true` if a new node is a float product with weights that no removed product has read.
fn multiplies_anew(place: &Place<'_>, edit: &Edit, node: &NewNode, is_weight: &dyn Fn(ValueId) -> bool) -> bool {
    let is_product = node.domain.is_empty() && (node.op_type == "MatMul" || node.op_type == "Gemm");
    let is_turned = node.attributes.iter().any(|own| own.name == "transB" && !matches!(own.value, Attribute::Int(0)));
    let &[Some(data), Some(weight), ..] = node.inputs.as_slice() else { return false };
    if !is_product || is_turned || !is_weight(weight) || is_dequantized(place, data, false) {
        return false;
    }
    let mut gone = edit.remove.iter().filter_map(|&id| place.model.node(id));
    !gone.any(|node| (node.is("MatMul") || node.is("Gemm")) && node.input(1) == Some(weight))
}

/// Returns `true` if a DequantizeLinear computes a value, of a constant if `of_constant` is set.
fn is_dequantized(place: &Place<'_>, value: ValueId, of_constant: bool) -> bool {
    if value.is_placeholder() {
        return false;
    }
    let node = place.producer(value, "DequantizeLinear");
    node.is_some_and(|(_, node)| {
        !of_constant || node.input(0).is_some_and(|quantized| place.constant(quantized).is_some())
    })
}
