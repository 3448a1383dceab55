//! Tensors that hold one number everywhere, whatever their size.

use super::counting::counting;
use crate::ir::{Attribute, Node, ValueId};
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
            // The nearest entry is one of the entries.
            "Resize" if is_nearest(node) => at = node.input(0)?,
            "Pad" => {
                let number = uniform_before(place, node.input(0)?, depth / 2)?;
                // Other modes repeat what is there.
                if !matches!(node.attribute("mode"), None | Some(Attribute::String(_))) {
                    return None;
                }
                if matches!(node.attribute("mode"), Some(Attribute::String(mode)) if mode.as_ref() != b"constant") {
                    return Some(number);
                }
                let around = match (node.attribute("value"), node.input(2)) {
                    (None, Some(value)) => uniform_before(place, value, depth / 2)?,
                    (None, None) => Tensor::zeros(number.dtype(), &[]).ok()?,
                    _ => return None,
                };
                return Some(number).filter(|number| number.same(&around));
            }
            "Where" => {
                let flag = uniform_before(place, node.input(0)?, depth / 2)?.to_i64s()?;
                at = node.input(if flag == [1] { 1 } else { 2 })?;
            }
            // Of any number but 0, and of NaN, the flag is true.
            "Cast" => {
                let number = uniform_before(place, node.input(0)?, depth)?.to_f64s()?;
                return cast(*number.first()?, place.dtype(at)?);
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

fn is_nearest(node: &Node) -> bool {
    let is = |name: &str, text: &[u8]| matches!(node.attribute(name), Some(Attribute::String(held)) if held.as_ref() == text);
    (node.attribute("mode").is_none() || is("mode", b"nearest"))
        && !is("coordinate_transformation_mode", b"tf_crop_and_resize")
}

/// A number in another type, where both hold it exactly beyond doubt.
fn cast(number: f64, to: DType) -> Option<Tensor> {
    if to == DType::Bool {
        return Tensor::from_bools(&[], &[number != 0.0]).ok();
    }
    let whole = number.fract() == 0.0 && (0.0..=127.0).contains(&number);
    match to {
        _ if !whole => None,
        DType::Float => Some(Tensor::scalar(number as f32)),
        DType::Double => Some(Tensor::scalar(number)),
        DType::Int64 => Some(Tensor::scalar(number as i64)),
        DType::Int32 => Some(Tensor::scalar(number as i32)),
        DType::Uint8 => Some(Tensor::scalar(number as u8)),
        _ => None,
    }
}
