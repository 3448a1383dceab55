//! Signal processing: Fourier transforms, windows, the mel scale.
//!
//! | file | operators |
//! | --- | --- |
//! | [`dft`] | DFT |
//! | [`stft`] | STFT |
//! | [`windows`] | HannWindow, HammingWindow, BlackmanWindow |
//! | [`mel`] | MelWeightMatrix |
//!
//! [`fourier`] is the transform itself. All arithmetic is in binary64, rounded once at the end.

mod dft;
mod fourier;
mod mel;
mod stft;
mod windows;

use super::lane::{Lane, Ring, in_lane};
use super::{Decline, EvalCx, InferCx, Operator};
use crate::dim::Dim;
use crate::tensor::{DType, Tensor};

pub(super) const OPERATORS: &[Operator] = &[
    dft::DFT,
    stft::STFT,
    windows::HANN_WINDOW,
    windows::HAMMING_WINDOW,
    windows::BLACKMAN_WINDOW,
    mel::MEL_WEIGHT_MATRIX,
];

/// Returns the number in integer operand `i` during inference.
fn number(cx: &InferCx<'_>, i: usize) -> Option<Dim> {
    match <[Dim; 1]>::try_from(cx.ints(i)?) {
        Ok([number]) => Some(number),
        Err(_) => None,
    }
}

/// Returns the number in integer operand `i`.
fn scalar(cx: &EvalCx<'_>, i: usize) -> Result<i64, Decline> {
    match cx.ints(i)?.as_slice() {
        &[number] => Ok(number),
        _ => Err(Decline::invalid(format!("operand {i} is not a single number"))),
    }
}

/// Returns a number of elements: a non-negative integer.
fn length(number: i64) -> Result<usize, Decline> {
    usize::try_from(number)
        .map_err(|_| Decline::invalid(format!("an operand that gives a length is {number}, which is not valid")))
}

/// Returns the number of frequencies of a transform of real numbers: `⌊length / 2⌋ + 1`.
fn one_sided(cx: &InferCx<'_>, length: &Dim) -> Dim {
    let half = cx.scope().floor_div(length, &Dim::constant(2));
    cx.scope().add(&half, &Dim::constant(1))
}

/// Returns a float tensor of these numbers. The caller has claimed its memory.
fn rounded(dtype: DType, shape: &[usize], values: &[f64]) -> Result<Tensor, Decline> {
    in_lane!(dtype, T => {
        let values = values.iter().map(|&value| <T as Lane>::of(value)).collect();
        <T as Ring>::write(dtype, shape, values)
    })
}

/// Returns the elements of a float tensor as binary64 numbers, and claims their memory.
fn reals(cx: &EvalCx<'_>, tensor: &Tensor) -> Result<Vec<f64>, Decline> {
    let floats = matches!(tensor.dtype(), DType::Float | DType::Double | DType::Float16 | DType::Bfloat16);
    cx.claim(DType::Double, tensor.shape())?;
    let signal = tensor.to_f64s().filter(|_| floats);
    let signal =
        signal.ok_or_else(|| Decline::invalid(format!("a signal of type {} is not supported", tensor.dtype())))?;
    // No intermediate number exceeds this sum, and its rounding bounds the error of kernels that compute in the type itself.
    let most = if tensor.dtype() == DType::Double { 1u64 << 43 } else { 1 << 14 } as f64;
    let sum: f64 = signal.iter().map(|value| value.abs()).sum();
    if sum <= most {
        Ok(signal)
    } else {
        Err(Decline::unsupported("the result depends on the rounding of intermediate values, in which runtimes differ"))
    }
}
