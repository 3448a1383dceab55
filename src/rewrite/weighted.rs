//! Products whose weights are dequantized constants.
//!
//! ONNX Runtime computes a product with a dequantized constant as its second operand in integers (`MatMulNBits`), and quantizes the other
//! operand for that, to 8 bits, which costs some hundredths of the result. Where an author has written such a product, it is theirs. Where
//! the weights are moved in between, by a Transpose for example, the runtime does so in some operator sets and for some types alone. So no
//! edit puts the dequantization directly before a product that computes in floats.

use super::place::Place;
use crate::ir::{Attribute, Edit, NewNode, ValueId};

/// Whether an edit makes no product of floats read a dequantized constant directly that it did not read so before.
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

/// Whether a new node is a product of floats and of weights that no product that goes has read.
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

/// Whether a value is computed by a DequantizeLinear, of a constant if that is asked.
fn is_dequantized(place: &Place<'_>, value: ValueId, of_constant: bool) -> bool {
    if value.is_placeholder() {
        return false;
    }
    let node = place.producer(value, "DequantizeLinear");
    node.is_some_and(|(_, node)| {
        !of_constant || node.input(0).is_some_and(|quantized| place.constant(quantized).is_some())
    })
}
