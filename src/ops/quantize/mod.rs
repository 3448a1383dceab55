//! Quantization: to integers and small floats and back.

mod dequantize;
mod dynamic;
mod grain;
mod quantize;
mod requantize;

use super::Operator;
pub(in crate::ops) use requantize::Requantize;

pub(super) const OPERATORS: &[Operator] =
    &[quantize::QUANTIZE_LINEAR, dequantize::DEQUANTIZE_LINEAR, dynamic::DYNAMIC_QUANTIZE_LINEAR];
