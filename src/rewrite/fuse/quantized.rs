//! Quantizing what was just dequantized.
//!
//! Law: `QuantizeLinear(DequantizeLinear(x, s, z), s, z) = x`. The real number is `n·s` with the whole number `n = x − z`;
//! both steps round, by one part in 2²⁴ each, which moves `n·s / s` from `n` by less than a half for `|n| < 2²²`, and rounding to
//! whole numbers then gives `n`. So it is for integers of 16 bits and fewer, and binary32 scales `s > 0` for which neither
//! `s` nor `n·s` leaves the numbers that have all digits.

use crate::ir::{Edit, Node};
use crate::rewrite::miss::{Miss, ensure};
use crate::rewrite::place::Place;
use crate::rewrite::rule::{Rule, miss};
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
    apply: quantize,
}];

fn quantize(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let (_, inner) = place.producer(node.input(0).ok_or(Miss::ROOT)?, "DequantizeLinear").ok_or(Miss::ROOT)?;
    let value = inner.input(0).ok_or(Miss::ROOT)?;
    ensure(place.same_grid(node, inner), miss!("same-grid"))?;
    // The real number in between is a binary32.
    ensure(
        [0, DType::Float.onnx().into()].contains(&inner.int("output_dtype", 0).ok_or(miss!("same-type"))?),
        miss!("same-type"),
    )?;
    let dtype = place.dtype(value).ok_or(miss!("same-type").of(value))?;
    ensure(result_type(place, node).ok_or(miss!("same-type"))? == dtype, miss!("same-type"))?;
    ensure(is_covered(dtype), miss!("same-type"))?;
    ensure(node.int("precision", 0).ok_or(miss!("same-type"))? == 0, miss!("same-type"))?;
    let scale = place
        .tensor(node.input(1).ok_or(Miss::ROOT)?)
        .filter(|scale| scale.dtype() == DType::Float)
        .ok_or(miss!("normal-scale"))?;
    let digits = |scale: &f32| (f32::MIN_POSITIVE..f32::MAX / 131_072.0).contains(scale);
    ensure(scale.elements::<f32>().ok_or(Miss::COMPUTABLE)?.iter().all(digits), miss!("normal-scale"))?;
    place.forward(value)
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
