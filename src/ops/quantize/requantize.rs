//! Requantization of sums of products of quantized numbers.

use crate::ops::Decline;
use crate::ops::lane::read;
use crate::tensor::{DType, Tensor};

/// The quantization of a result: `saturate(round(sum·multiplier / y_scale) + y_zero_point)`.
///
/// Rounding is to nearest, ties to even, and precedes adding the zero point, as in the standard's text. The multiplication is in
/// binary32, as in runtimes.
pub(in crate::ops) struct Requantize {
    dtype: DType,
    scale: f32,
    zero: i32,
    low: f32,
    high: f32,
}

impl Requantize {
    /// Reads the scale and the zero point of the result.
    ///
    /// # Errors
    /// One of them has several elements, or the zero point is not of type int8 or uint8.
    pub fn new(scale: &Tensor, zero: &Tensor) -> Result<Self, Decline> {
        let (low, high) = match zero.dtype() {
            DType::Int8 => (-128, 127),
            DType::Uint8 => (0, 255),
            other => return Err(Decline::unsupported(format!("a result of type {other} is not supported"))),
        };
        let (Some(&[code]), &[scale]) = (zero.to_i64s().as_deref(), &*read::<f32>(scale)?) else {
            return Err(Decline::unsupported("the scale or zero point of the result has more than one element"));
        };
        let zero_point = code as i32;
        let [low, high] = [low, high].map(|end: i32| (end - zero_point) as f32);
        Ok(Requantize { dtype: zero.dtype(), scale, zero: zero_point, low, high })
    }

    /// Returns the type of the result.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the code of a sum, scaled by `multiplier / y_scale`.
    ///
    /// # Errors
    /// The factor is not finite.
    #[inline]
    pub fn code(&self, sum: i32, multiplier: f32) -> Result<u8, Decline> {
        let factor = multiplier / self.scale;
        if !factor.is_finite() {
            return Err(Decline::unsupported(
                "the product of the input scales divided by the output scale is not finite",
            ));
        }
        // A small integer in range: exact.
        let rounded = (sum as f32 * factor).round_ties_even().clamp(self.low, self.high);
        Ok((rounded as i32 + self.zero) as u8)
    }

    /// Builds a tensor of codes.
    ///
    /// # Errors
    /// The number of codes differs from the number of elements.
    pub fn tensor(&self, shape: &[usize], codes: Vec<u8>) -> Result<Tensor, Decline> {
        Ok(Tensor::from_bytes(self.dtype, shape, codes.into())?)
    }
}

/// Checks that all processors compute the same sums of products of these operands.
///
/// Processors that multiply unsigned by signed bytes add adjacent products in 16 bits, saturating at -32768 and 32767
/// (`vpmaddubsw`: ONNX Runtime on x86 with AVX2 or AVX-512, but not with VNNI). Runtimes choose the first operand and the adjacent
/// products.
///
/// # Errors
/// One operand is unsigned, the other signed, and two products may exceed 16 bits.
pub(in crate::ops) fn sums_alike(operands: [&Tensor; 2], zero: Option<&Tensor>) -> Result<(), Decline> {
    let ends = |tensor: &Tensor| -> Result<[i32; 2], Decline> {
        let numbers = read::<u32>(tensor)?;
        let ends =
            numbers.iter().fold((0, 0), |(low, high), &number| (low.min(number as i32), high.max(number as i32)));
        Ok(ends.into())
    };
    let [first, second] = operands;
    if first.dtype() == second.dtype() {
        return Ok(());
    }
    // The first operand is padded with its zero point.
    let around = zero.map(ends).transpose()?.unwrap_or_default();
    let (a, b) = ([ends(first)?, around].concat(), ends(second)?);
    let fits = |of_one: i32, of_other: i32| (-16384..=16383).contains(&of_one.saturating_mul(of_other));
    if a.iter().all(|&one| b.iter().all(|&other| fits(one, other))) {
        return Ok(());
    }
    Err(Decline::unsupported(
        "the sum of two products exceeds 16 bits, which overflows in the kernels of some processors",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_by_signed_sums_are_equal_if_two_products_fit_16_bits() {
        let unsigned = |values: &[u8]| Tensor::vector(values.to_vec());
        let signed = |values: &[i8]| Tensor::vector(values.to_vec());
        let alike = |a: &Tensor, b: &Tensor| sums_alike([a, b], None).is_ok() && sums_alike([b, a], None).is_ok();
        assert!(alike(&unsigned(&[255, 0]), &signed(&[64, -64])));
        assert!(!alike(&unsigned(&[255]), &signed(&[65])) && !alike(&unsigned(&[255]), &signed(&[-65])));
        assert!(alike(&unsigned(&[128]), &signed(&[-128])) && alike(&unsigned(&[128]), &signed(&[127])));
        assert!(alike(&unsigned(&[255]), &unsigned(&[255])) && alike(&signed(&[-128]), &signed(&[-128])));
        // The padding has the value of the zero point.
        assert!(sums_alike([&unsigned(&[0]), &signed(&[127])], Some(&unsigned(&[255]))).is_err());
    }
}
