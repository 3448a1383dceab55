//! Tensors that hold one number everywhere, whatever their size.

use super::counting::counting;
use crate::ir::{Attribute, ValueId};
use crate::rewrite::Place;
use crate::tensor::{DType, Tensor};

/// How far back a tensor is followed through the nodes that compute it.
const MAX_DEPTH: usize = 16;

/// The one number (of rank 0) that every element of a value is, in the value's type. An empty tensor may pass for any.
pub(in crate::rewrite) fn uniform(place: &Place<'_>, value: ValueId) -> Option<Tensor> {
    uniform_before(place, value, MAX_DEPTH)
}

fn uniform_before(place: &Place<'_>, value: ValueId, depth: usize) -> Option<Tensor> {
    let mut at = value;
    for depth in (0..depth).rev() {
        if let Some(tensor) = place.constant(at) {
            return tensor.uniform();
        }
        let node = place.model.value(at).producer().and_then(|id| place.model.node(id))?;
        if !node.canonical_domain().is_empty() {
            return None;
        }
        match node.op_type.as_str() {
            "ConstantOfShape" => {
                return match node.attribute("value") {
                    Some(Attribute::Tensor(tensor, _)) => tensor.uniform(),
                    Some(_) => None,
                    None => Some(Tensor::scalar(0.0f32)),
                };
            }
            "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Expand" | "Transpose" | "Slice"
            | "Tile" | "Gather" | "GatherElements" | "GatherND" => at = node.input(0)?,
            // Of any number but 0, and of NaN, the flag is true.
            "Cast" if place.dtype(at)? == DType::Bool => {
                let number = uniform_before(place, node.input(0)?, depth)?.to_f64s()?;
                return Tensor::from_bools(&[], &[*number.first()? != 0.0]).ok();
            }
            _ => break,
        }
    }
    if place.dtype(at)? != DType::Bool {
        return None;
    }
    let flag = counting(place, at).filter(super::counting::Counting::is_splat)?.offset.as_const()?;
    Tensor::from_bools(&[], &[flag != 0]).ok()
}
