//! Floating point tensors as binary64 numbers and back: every operator of this family computes so and rounds once.

use crate::ops::{Decline, EvalCx};
use crate::tensor::{DType, Tensor, nearest_bf16, nearest_f16};

/// The elements of a float tensor. Takes the memory from the budget.
///
/// # Errors
/// The elements are of another kind, or there are too many.
pub(super) fn reals(cx: &EvalCx<'_>, tensor: &Tensor) -> Result<Vec<f64>, Decline> {
    if !matches!(tensor.dtype(), DType::Float | DType::Double | DType::Float16 | DType::Bfloat16) {
        return Err(Decline::invalid(format!("{} is no type to compute with here", tensor.dtype())));
    }
    cx.claim(DType::Double, tensor.shape())?;
    cx.budget().take_work(u64::try_from(tensor.len()).unwrap_or(u64::MAX))?;
    tensor.to_f64s().ok_or_else(|| Decline::invalid("the elements are no numbers"))
}

/// A tensor of these numbers, each rounded to the type once. Takes the memory from the budget.
///
/// # Errors
/// The type is no float type of 16 bits or more, or the result is over budget.
pub(super) fn rounded(cx: &EvalCx<'_>, dtype: DType, shape: &[usize], values: Vec<f64>) -> Result<Tensor, Decline> {
    cx.claim(dtype, shape)?;
    Ok(match dtype {
        DType::Double => Tensor::from_vec(shape, values)?,
        DType::Float => Tensor::from_vec(shape, values.into_iter().map(|value| value as f32).collect())?,
        DType::Float16 => Tensor::from_vec(shape, values.into_iter().map(nearest_f16).collect())?,
        DType::Bfloat16 => Tensor::from_vec(shape, values.into_iter().map(nearest_bf16).collect())?,
        other => return Err(Decline::invalid(format!("{other} is no type to compute with here"))),
    })
}
