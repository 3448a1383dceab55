//! Tensors that hold one number everywhere, whatever their size.

use super::counting::counting;
use crate::ir::{Node, ValueId};
use crate::ops::Number;
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
            "ConstantOfShape" => return place.read(node).fill_value()?.uniform(),
            "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Expand" | "Transpose" | "Slice"
            | "Tile" | "Gather" | "GatherElements" | "GatherND" => at = node.input(0)?,
            // The nearest entry is one of the entries.
            "Resize" if is_nearest(node) => at = node.input(0)?,
            "Pad" => {
                let number = uniform_before(place, node.input(0)?, depth / 2)?;
                let reading = place.read(node);
                // Other modes repeat what is there.
                if !reading.pads_with_a_number()? {
                    return Some(number);
                }
                let around = match reading.pad_fill()? {
                    Number::Operand(value) => uniform_before(place, value, depth / 2)?,
                    Number::Absent => Tensor::zeros(number.dtype(), &[]).ok()?,
                    Number::Attribute(_) => return None,
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
    let crops = node.text("coordinate_transformation_mode", b"") == Some(b"tf_crop_and_resize");
    node.text("mode", b"nearest") == Some(b"nearest") && !crops
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
