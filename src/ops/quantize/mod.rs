//! Quantization to integers and small floats, and dequantization.

mod dequantize_linear;
mod dynamic;
mod grain;
mod quantize_linear;
mod requantize;

use super::Operator;
pub(in crate::ops) use requantize::{Requantize, sums_alike};

pub(super) const OPERATORS: &[Operator] =
    &[quantize_linear::QUANTIZE_LINEAR, dequantize_linear::DEQUANTIZE_LINEAR, dynamic::DYNAMIC_QUANTIZE_LINEAR];
