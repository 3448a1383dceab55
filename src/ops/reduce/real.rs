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

/// Fails unless these numbers, which kernels compute on the way in the type itself or, for smaller ones, in binary32, are finite there.
/// A double that holds them would give a result where kernels give an infinity and what follows from it. Sums are left some room,
/// because kernels add in orders of their own.
///
/// # Errors
/// One of the numbers may not fit.
pub(super) fn fit_on_the_way(dtype: DType, numbers: impl IntoIterator<Item = f64>) -> Result<(), Decline> {
    let most = if dtype == DType::Double { f64::MAX } else { f64::from(f32::MAX) } / 4.0;
    if numbers.into_iter().all(|number| number.abs() <= most) {
        return Ok(());
    }
    Err(Decline::unsupported("kernels overflow on the way to the result"))
}

/// Fails if one of these sums of squares is positive, but nothing in the type that kernels add in.
///
/// # Errors
/// One of the numbers is too small.
pub(super) fn stay_above_zero(dtype: DType, numbers: impl IntoIterator<Item = f64>) -> Result<(), Decline> {
    let least = if dtype == DType::Double { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) } * 1e8;
    if numbers.into_iter().all(|number| number == 0.0 || number.abs() >= least) {
        return Ok(());
    }
    Err(Decline::unsupported("kernels lose what is divided by on the way to the result"))
}

/// Fails if terms of this size may be rounded by more than some thousandth on the way to results of ordinary size.
///
/// # Errors
/// One of the terms is too large.
pub(super) fn keep_digits(dtype: DType, terms: impl IntoIterator<Item = f64>) -> Result<(), Decline> {
    let most = if dtype == DType::Double { 1u64 << 43 } else { 1 << 14 } as f64;
    if terms.into_iter().all(|term| term.abs() <= most) {
        return Ok(());
    }
    Err(Decline::unsupported("rounding on the way decides the result"))
}

/// The sum of squares of some numbers.
pub(super) fn squared(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum()
}
