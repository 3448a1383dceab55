//! From sums of products of quantized numbers back to quantized numbers.

use crate::ops::Decline;
use crate::ops::lane::read;
use crate::tensor::{DType, Tensor};

/// The way into the quantization of a result: `saturate(round(sum·multiplier / y_scale) + y_zero_point)`.
///
/// Rounding is to nearest, ties to even, and comes before the zero point: the order of the standard's text. The
/// multiplication is one of binary32, as in runtimes.
pub(in crate::ops) struct Requantize {
    dtype: DType,
    scale: f32,
    zero: i32,
    low: f32,
    high: f32,
}

impl Requantize {
    /// From the scale and the zero point of the result.
    ///
    /// # Errors
    /// They are not one number each, or the zero point is not of type int8 or uint8.
    pub fn new(scale: &Tensor, zero: &Tensor) -> Result<Self, Decline> {
        let (low, high) = match zero.dtype() {
            DType::Int8 => (-128, 127),
            DType::Uint8 => (0, 255),
            other => return Err(Decline::unsupported(format!("no requantization to {other}"))),
        };
        let (Some(&[code]), &[scale]) = (zero.to_i64s().as_deref(), &*read::<f32>(scale)?) else {
            return Err(Decline::unsupported("a result with more than one scale or zero point"));
        };
        let zero_point = code as i32;
        let [low, high] = [low, high].map(|end: i32| (end - zero_point) as f32);
        Ok(Requantize { dtype: zero.dtype(), scale, zero: zero_point, low, high })
    }

    /// The type of the result.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The code of a sum, to be scaled by `multiplier / y_scale`.
    ///
    /// # Errors
    /// The scales are not finite or zero.
    #[inline]
    pub fn code(&self, sum: i32, multiplier: f32) -> Result<u8, Decline> {
        let factor = multiplier / self.scale;
        if !factor.is_finite() {
            return Err(Decline::unsupported("the scales do not make a finite factor"));
        }
        // An integer between the ends, which are small: exact.
        let rounded = (sum as f32 * factor).round_ties_even().clamp(self.low, self.high);
        Ok((rounded as i32 + self.zero) as u8)
    }

    /// A tensor of codes.
    ///
    /// # Errors
    /// There are more or fewer than the shape has elements.
    pub fn tensor(&self, shape: &[usize], codes: Vec<u8>) -> Result<Tensor, Decline> {
        Ok(Tensor::from_bytes(self.dtype, shape, codes.into())?)
    }
}
