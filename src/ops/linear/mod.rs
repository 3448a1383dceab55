//! Linear algebra: matrix products of floats, integers and quantized numbers, Einstein sums, determinants.

mod det;
mod einsum;
mod gemm;
mod matmul;
mod product;
mod quantized;

use super::Operator;
pub(in crate::ops) use gemm::shape_of as gemm_shape;
pub(in crate::ops) use matmul::{product_dims, shape_of as matmul_shape};
pub(in crate::ops) use product::{Matrix, multiply_add, stays_finite};

pub(super) const OPERATORS: &[Operator] =
    &[matmul::MATMUL, gemm::GEMM, einsum::EINSUM, det::DET, quantized::MATMUL_INTEGER, quantized::QLINEAR_MATMUL];
