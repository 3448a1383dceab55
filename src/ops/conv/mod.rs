//! Convolutions: plain, transposed, deformable and quantized.

mod deform;
mod direct;
mod geometry;
mod quantized;
mod transpose;

use super::Operator;
pub(in crate::ops) use direct::shape_of as conv_shape;

pub(super) const OPERATORS: &[Operator] =
    &[direct::CONV, transpose::CONV_TRANSPOSE, deform::DEFORM_CONV, quantized::CONV_INTEGER, quantized::QLINEAR_CONV];
