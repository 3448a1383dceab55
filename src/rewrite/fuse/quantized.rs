//! Quantizing what was just dequantized.
//!
//! Law: `QuantizeLinear(DequantizeLinear(x, s, z), s, z) = x`. The real number is `n·s` with the whole number `n = x − z`;
//! both steps round, by one part in 2²⁴ each, which moves `n·s / s` from `n` by less than a half for `|n| < 2²²`, and rounding to
//! whole numbers then gives `n`. So it is for integers of 16 bits and fewer, and binary32 scales `s > 0` for which neither
//! `s` nor `n·s` leaves the numbers that have all digits.

use crate::ir::{Edit, Node};
use crate::rewrite::miss::Miss;
use crate::rewrite::place::Place;
use crate::rewrite::rule::Rule;
use crate::tensor::DType;

pub(in crate::rewrite) const RULES: &[Rule] = &[Rule {
    name: "quantize-dequantized",
    law: "QuantizeLinear(DequantizeLinear(x, s, z), s, z) = x",
    sentence: "Removes QuantizeLinear of a DequantizeLinear with the same parameters.",
    premises: &[
        ("same-grid", "scale, zero point, axis and blocks are the same"),
        ("same-type", "the result has the type of x, an integer of at most 16 bits"),
        ("normal-scale", "every scale is a positive binary32 with all digits, and so is its product with any x"),
    ],
    exact: true,
    operators: &["QuantizeLinear"],
    apply: |place| quantize(place).ok_or(Miss::new("unnamed")),
}];

fn quantize(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (_, inner) = place.producer(node.input(0)?, "DequantizeLinear")?;
    let value = inner.input(0)?;
    if !place.same_grid(node, inner) {
        return None;
    }
    // The real number in between is a binary32.
    if ![0, DType::Float.onnx().into()].contains(&inner.int("output_dtype", 0)?) {
        return None;
    }
    let dtype = place.dtype(value)?;
    if result_type(place, node)? != dtype || !is_covered(dtype) || node.int("precision", 0)? != 0 {
        return None;
    }
    let scale = place.tensor(node.input(1)?).filter(|scale| scale.dtype() == DType::Float)?;
    let digits = |scale: &f32| (f32::MIN_POSITIVE..f32::MAX / 131_072.0).contains(scale);
    if !scale.elements::<f32>()?.iter().all(digits) {
        return None;
    }
    place.forward_opt(value)
}

/// The type that the standard gives the result: the zero point's, else the attribute's, else `uint8`.
fn result_type(place: &Place<'_>, node: &Node) -> Option<DType> {
    match (node.input(2), node.int("output_dtype", 0)?) {
        (Some(zero), _) => place.dtype(zero),
        (None, 0) => Some(DType::Uint8),
        (None, number) => i32::try_from(number).ok().and_then(DType::from_onnx),
    }
}

fn is_covered(dtype: DType) -> bool {
    use DType::*;
    matches!(dtype, Uint8 | Int8 | Uint16 | Int16 | Uint4 | Int4 | Uint2 | Int2)
}
