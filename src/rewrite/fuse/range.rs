//! Between which numbers the elements of a value lie.

use super::Place;
use crate::ir::{Node, ValueId};
use crate::ops::Number;
use crate::tensor::DType;

/// How many nodes up it is looked for what bounds a value.
const REACH: usize = 16;

/// A Relu or a Clip.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub input: ValueId,
    pub low: f64,
    pub high: f64,
}

impl Cut {
    pub fn of(place: &Place<'_>, node: &Node) -> Option<Cut> {
        let input = node.input(0)?;
        if node.is("Relu") {
            return Some(Cut { input, low: 0.0, high: f64::INFINITY });
        }
        if !node.is("Clip") {
            return None;
        }
        // A bound that is left out is the type's last finite number, that of float32 where it would be an attribute.
        let as_operand = place.opset.pad_and_clip_have_operands();
        let last = if as_operand { last_finite(place.dtype(input)?)? } else { f32::MAX.into() };
        let bound = |bound: Number, absent: f64| match bound {
            Number::Absent => Some(absent),
            Number::Attribute(number) => Some(number.into()),
            Number::Operand(value) => place.scalar(value),
        };
        let (low, high) = place.read(node).clip_bounds()?;
        let (low, high) = (bound(low, -last)?, bound(high, last)?);
        // False for NaN, too.
        (low <= high).then_some(Cut { input, low, high })
    }
}

/// The largest finite number of the types these rules know.
pub(super) fn last_finite(dtype: DType) -> Option<f64> {
    match dtype {
        DType::Float => Some(f32::MAX.into()),
        DType::Double => Some(f64::MAX),
        DType::Float16 => Some(65504.0),
        _ => None,
    }
}

/// Between which numbers, both included, the elements of a floating point value lie, whatever the model's inputs are; NaN
/// aside.
pub(super) fn range(place: &Place<'_>, mut value: ValueId) -> Option<(f64, f64)> {
    last_finite(place.dtype(value)?)?;
    for _ in 0..REACH {
        let node = place.model.node(place.model.value(value).producer()?)?;
        if !node.canonical_domain().is_empty() {
            return None;
        }
        match node.op_type.as_str() {
            "Relu" | "Clip" => return Cut::of(place, node).map(|cut| (cut.low, cut.high)),
            "Sigmoid" | "HardSigmoid" => return Some((0.0, 1.0)),
            "Exp" | "Softmax" | "Softplus" | "Abs" | "ReduceL1" | "ReduceL2" | "ReduceSumSquare" => {
                return Some((0.0, f64::INFINITY));
            }
            "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" | "Identity" | "Slice" | "Split"
            | "Gather" | "Expand" | "Tile" | "MaxPool" | "GlobalMaxPool" => value = node.input(0)?,
            _ => return None,
        }
    }
    None
}
