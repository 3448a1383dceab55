//! ConvInteger and QLinearConv: convolutions of quantized tensors.
//!
//! | | |
//! |---|---|
//! | ConvInteger | the convolution of `x − x_zero_point` and `w − w_zero_point` in `int32`, which wraps |
//! | QLinearConv | the same sums plus `B`, scaled by `x_scale·w_scale / y_scale` in binary32, rounded to nearest even, shifted by `y_zero_point`, clamped |
//! | zero points and scales | one number; for the weights also one per output channel |
//! | padding | has the value `x_zero_point`, which represents 0 |
//! | versions | 10 |
//! | not evaluated | products of unsigned and signed numbers whose pairwise sums exceed 16 bits: some processors saturate them |

use std::borrow::Cow;

use super::direct::{ConvLayout, per_channel, shape_of};
use super::geometry::fitting;
use crate::ir::Fact;
use crate::ops::lane::{Ring, read, same_dtype};
use crate::ops::quantize::{Requantize, sums_alike};
use crate::ops::traits::{NumbersOf, Traits, convolution};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator};
use crate::tensor::{DType, Tensor};

pub(super) const CONV_INTEGER: Operator = Operator::new("ConvInteger", &[10], infer_integer, eval_integer).with(
    Traits::NONE
        .fused_with_next()
        .macs(|view| convolution(view, 1))
        .needs(|view| fitting(view, 0, 1))
        .inferred_by_numbers(NumbersOf::Whole(2)),
);
pub(super) const QLINEAR_CONV: Operator = Operator::new("QLinearConv", &[10], infer_qlinear, eval_qlinear)
    .with(Traits::NONE.macs(|view| convolution(view, 3)).needs(|view| fitting(view, 0, 3)));

fn infer_integer(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(Some(DType::Int32), shape_of(cx, 0, 1, None)?)])
}

fn infer_qlinear(cx: &mut InferCx<'_>) -> InferResult {
    let bias = cx.shape(8).and_then(|shape| shape.first()).cloned();
    Ok(vec![Fact::tensor(cx.dtype(7), shape_of(cx, 0, 3, bias)?)])
}

fn eval_integer(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, w) = (cx.tensor(0)?, cx.tensor(1)?);
    let (layout, sums) = sums(cx, (x, cx.optional_tensor(2)?), (w, cx.optional_tensor(3)?), None)?;
    Ok(vec![u32::write(DType::Int32, &layout.shape, sums)?.into()])
}

fn eval_qlinear(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, w, bias) = (cx.tensor(0)?, cx.tensor(3)?, cx.optional_tensor(8)?);
    let (layout, sums) = sums(cx, (x, Some(cx.tensor(2)?)), (w, Some(cx.tensor(5)?)), bias)?;
    let requantize = Requantize::new(cx.tensor(6)?, cx.tensor(7)?)?;
    let (x_scale, w_scale) = (read::<f32>(cx.tensor(1)?)?, read::<f32>(cx.tensor(4)?)?);
    let &[x_scale] = &*x_scale else { return Err(Decline::invalid("'x_scale' has more than one element")) };
    let channels = w.shape().first().copied().unwrap_or(0);
    if w_scale.len() != 1 {
        per_channel(cx.tensor(4)?, channels)?;
    }
    cx.claim(requantize.dtype(), &layout.shape)?;
    let mut codes = Vec::with_capacity(sums.len());
    let scales = w_scale.iter().cycle().take(if w_scale.len() == 1 { usize::MAX } else { channels }).cycle();
    for (sums, &w_scale) in sums.chunks_exact(layout.geometry.places.max(1)).zip(scales) {
        for &sum in sums {
            codes.push(requantize.code(sum as i32, x_scale * w_scale)?);
        }
    }
    Ok(vec![requantize.tensor(&layout.shape, codes)?.into()])
}

/// Computes the sums of products in 32 bits.
fn sums(
    cx: &EvalCx<'_>,
    (x, x_zero): (&Tensor, Option<&Tensor>),
    (w, w_zero): (&Tensor, Option<&Tensor>),
    bias: Option<&Tensor>,
) -> Result<(ConvLayout, Vec<u32>), Decline> {
    let layout = ConvLayout::new(cx, x.shape(), w.shape())?;
    let channels = w.shape().first().copied().unwrap_or(0);
    if let Some(zero) = x_zero
        && zero.len() != 1
    {
        return Err(Decline::invalid("'x_zero_point' has more than one element"));
    }
    if let Some(zero) = w_zero
        && zero.len() != 1
    {
        per_channel(zero, channels)?;
    }
    if let Some(bias) = bias {
        same_dtype(DType::Int32, &[bias])?;
        per_channel(bias, channels)?;
    }
    if !cx.environment.compares {
        sums_alike([x, w], x_zero)?;
    }
    cx.claim(DType::Int32, &layout.shape)?;
    cx.budget().take_work(layout.geometry.work())?;
    let bias = bias.map(read::<u32>).transpose()?;
    let sums = layout.convolve(&shifted(x, x_zero, 1)?, &shifted(w, w_zero, channels)?, bias.as_deref());
    Ok((layout, sums))
}

/// Subtracts the zero points, one for all or one for each of `channels` parts, and wraps to 32 bits.
fn shifted<'a>(operand: &'a Tensor, zero: Option<&Tensor>, channels: usize) -> Result<Cow<'a, [u32]>, Decline> {
    if !matches!(operand.dtype(), DType::Int8 | DType::Uint8) {
        return Err(Decline::invalid(format!("the type of an operand is {}", operand.dtype())));
    }
    let mut values = read::<u32>(operand)?;
    let Some(zero) = zero else { return Ok(values) };
    same_dtype(operand.dtype(), &[zero])?;
    let zeros = read::<u32>(zero)?;
    let part = if zeros.len() == 1 { values.len() } else { values.len() / channels.max(1) };
    for (part, &zero) in values.to_mut().chunks_mut(part.max(1)).zip(zeros.iter()) {
        part.iter_mut().for_each(|value| *value = value.wrapping_sub(zero));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;
    use crate::tensor::DType;

    #[test]
    fn integer_convolution_pads_with_the_zero_point() {
        let node =
            || Single::new("ConvInteger", 10).values(&[1, 1, 3], &[2u8, 3, 4]).values(&[2, 1, 2], &[1u8, 1, 2, 3]);
        assert_eq!(node().with("pads", vec![1, 0]).integers(), [2, 5, 7, 6, 13, 18]);
        assert_eq!(node().with("pads", vec![1, 0]).values(&[], &[1u8]).integers(), [1, 3, 5, 3, 8, 13]);
        let by_channel = node().values(&[], &[1u8]).values(&[2], &[1u8, 2]);
        assert_eq!(by_channel.integers(), [0, 0, 2, 3]);
        assert!(node().values(&[2], &[1u8, 1]).eval().is_err());
        let shape = Single::new("ConvInteger", 10).input(DType::Uint8, "N 1 3").input(DType::Int8, "2 1 2");
        assert_eq!(shape.infer(), ["int32[N, 2, 2]"]);
    }

    #[test]
    fn quantized_convolution() {
        let node = Single::new("QLinearConv", 10)
            .values(&[1, 1, 2], &[12u8, 9])
            .values(&[], &[0.5f32])
            .values(&[], &[10u8])
            .values(&[2, 1, 1], &[3i8, 120])
            .values(&[2], &[1.0f32, 2.0])
            .values(&[2], &[0i8, 0])
            .values(&[], &[0.5f32])
            .values(&[], &[-1i8])
            .values(&[2], &[1i32, 0]);
        // (2·3 + 1)·1 − 1 and (−1·3 + 1)·1 − 1; the second channel saturates on both sides.
        assert_eq!(node.integers(), [6, -3, 127, -128]);
    }
}
