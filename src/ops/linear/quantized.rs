//! MatMulInteger and QLinearMatMul: matrix products of quantized numbers.
//!
//! | | |
//! |---|---|
//! | MatMulInteger | `Y = (A − a_zero_point)·(B − b_zero_point)` in `int32`, which wraps |
//! | QLinearMatMul | the same sums, scaled by `a_scale·b_scale / y_scale` in binary32, rounded to nearest even, shifted by `y_zero_point`, clamped |
//! | zero points | a scalar; a vector with one element per row of `A` or column of `B`; or any shape that broadcasts to the operand's |
//! | versions | MatMulInteger 10; QLinearMatMul 10, 21 (scales of 16 bits, 8-bit floats) |
//! | not evaluated | 8-bit floats, which the standard does not define and no runtime computes; scales of the result that are not scalars; products of unsigned and signed numbers of which two overflow 16 bits, in which some processors add them |

use std::borrow::Cow;

use super::matmul::{MatMulLayout, shape_of};
use crate::ir::Fact;
use crate::ops::broadcast::Broadcast;
use crate::ops::lane::{Ring, read, same_dtype};
use crate::ops::quantize::{Requantize, sums_alike};
use crate::ops::traits::{Traits, matrix_product};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator};
use crate::tensor::{DType, Tensor};

pub(super) const MATMUL_INTEGER: Operator =
    Operator::new("MatMulInteger", &[10], infer_matmul_integer, eval_matmul_integer)
        .with(Traits::NONE.fused_with_next().macs(matrix_product).inferred_by_shapes());
pub(super) const QLINEAR_MATMUL: Operator =
    Operator::new("QLinearMatMul", &[10, 21], infer_qlinear_matmul, eval_qlinear_matmul)
        .with(Traits::NONE.macs(matrix_product).inferred_by_shapes());

fn infer_matmul_integer(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(Some(DType::Int32), shape_of(cx, 0, 1)?)])
}

fn infer_qlinear_matmul(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(7), shape_of(cx, 0, 3)?)])
}

fn eval_matmul_integer(cx: &mut EvalCx<'_>) -> EvalResult {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let sums = sums(cx, (a, cx.optional_tensor(2)?), (b, cx.optional_tensor(3)?))?;
    let Sums { layout, values } = sums;
    Ok(vec![u32::write(DType::Int32, &layout.shape, values)?.into()])
}

fn eval_qlinear_matmul(cx: &mut EvalCx<'_>) -> EvalResult {
    let (a, b) = (cx.tensor(0)?, cx.tensor(3)?);
    let Sums { layout, values } = sums(cx, (a, Some(cx.tensor(2)?)), (b, Some(cx.tensor(5)?)))?;
    let requantize = Requantize::new(cx.tensor(6)?, cx.tensor(7)?)?;
    let scale_dtype = cx.tensor(6)?.dtype();
    let (a_scale, b_scale) = (cx.tensor(1)?, cx.tensor(4)?);
    same_dtype(scale_dtype, &[a_scale, b_scale])?;
    // The sums of a row share a scale of `A`, those of a column a scale of `B`.
    let a_scales = read::<f32>(a_scale)?;
    let b_scales = read::<f32>(b_scale)?;
    let aligned = |scale: &Tensor, by_row: bool| -> Vec<usize> {
        match scale.shape() {
            &[rows] if by_row && rows != 1 => vec![rows, 1],
            shape => shape.to_vec(),
        }
    };
    let way = Broadcast::new([&layout.shape, &aligned(a_scale, true), &aligned(b_scale, false)]);
    let way = way.filter(|way| way.shape() == layout.shape);
    let way =
        way.ok_or_else(|| Decline::unsupported("a scale is neither a single number nor one number per row or column"))?;
    cx.claim(requantize.dtype(), &layout.shape)?;
    let mut codes = Vec::with_capacity(values.len());
    let mut fits = Ok(());
    way.runs(0..way.len(), |run, [_, of_a, of_b]| {
        let scales = |scales: &'_ [f32], at: std::ops::Range<usize>, len: usize| -> Vec<f32> {
            match scales.get(at) {
                Some([one]) => vec![*one; len],
                Some(many) => many.to_vec(),
                None => Vec::new(),
            }
        };
        let (of_a, of_b) = (scales(&a_scales, of_a, run.len()), scales(&b_scales, of_b, run.len()));
        for ((&sum, a), b) in values.get(run).unwrap_or_default().iter().zip(of_a).zip(of_b) {
            match requantize.code(sum as i32, a * b) {
                Ok(code) => codes.push(code),
                Err(decline) => fits = Err(decline),
            }
        }
    });
    fits?;
    Ok(vec![requantize.tensor(&layout.shape, codes)?.into()])
}

struct Sums {
    layout: MatMulLayout,
    values: Vec<u32>,
}

/// Computes the sums of products in 32 bits.
fn sums(
    cx: &EvalCx<'_>,
    (a, a_zero): (&Tensor, Option<&Tensor>),
    (b, b_zero): (&Tensor, Option<&Tensor>),
) -> Result<Sums, Decline> {
    if let Some(other) = [a, b].iter().find(|operand| !matches!(operand.dtype(), DType::Int8 | DType::Uint8)) {
        return Err(Decline::unsupported(format!("the element type {} is not supported", other.dtype())));
    }
    let layout = MatMulLayout::new(a.shape(), b.shape())?;
    if !cx.environment.compares {
        sums_alike([a, b], None)?;
    }
    cx.claim(DType::Int32, &layout.shape)?;
    cx.budget().take_work(layout.work())?;
    let values = layout.multiply(&shifted(a, a_zero, true)?, &shifted(b, b_zero, false)?);
    Ok(Sums { layout, values })
}

/// Returns the operand's numbers minus their zero points, wrapped to 32 bits.
fn shifted<'a>(operand: &'a Tensor, zero: Option<&Tensor>, by_row: bool) -> Result<Cow<'a, [u32]>, Decline> {
    let mut values = read::<u32>(operand)?;
    let Some(zero) = zero else { return Ok(values) };
    same_dtype(operand.dtype(), &[zero])?;
    let shape = match zero.shape() {
        &[rows] if by_row && rows != 1 => vec![rows, 1],
        shape => shape.to_vec(),
    };
    let one = if zero.len() == 1 { Broadcast::new([operand.shape(), &[]]) } else { None };
    let way = one.or_else(|| Broadcast::new([operand.shape(), &shape]));
    let way = way.filter(|way| way.shape() == operand.shape());
    let way = way.ok_or_else(|| Decline::invalid("the shape of a zero point does not fit the operand"))?;
    let zeros = read::<u32>(zero)?;
    let shifted = values.to_mut();
    way.runs(0..way.len(), |run, [_, from]| {
        let (Some(to), Some(zeros)) = (shifted.get_mut(run), zeros.get(from)) else { return };
        match zeros {
            [zero] => to.iter_mut().for_each(|value| *value = value.wrapping_sub(*zero)),
            zeros => to.iter_mut().zip(zeros).for_each(|(value, zero)| *value = value.wrapping_sub(*zero)),
        }
    });
    Ok(values)
}

#[cfg(test)]
mod tests {
    use crate::ops::single::Single;

    #[test]
    fn integer_products_subtract_their_zero_points() {
        let node =
            || Single::new("MatMulInteger", 10).values(&[2, 2], &[11u8, 7, 3, 10]).values(&[2, 2], &[1i8, -4, 0, 2]);
        assert_eq!(node().integers(), [11, -30, 3, 8]);
        assert_eq!(node().values(&[], &[12u8]).values(&[1], &[1i8]).integers(), [5, 0, 2, 43]);
        // For a 2-D tensor: one per row of `A`, one per column of `B`.
        assert_eq!(node().values(&[2], &[1u8, 3]).values(&[2], &[0i8, 1]).integers(), [10, -44, 0, 7]);
        assert_eq!(node().values(&[2, 1], &[1u8, 3]).integers(), [10, -28, 0, 14]);
        assert!(node().values(&[3], &[1u8, 3, 4]).eval().is_err());
        assert!(node().values(&[], &[1i8]).eval().is_err());
        assert_eq!(node().infer(), ["int32[2, 2]"]);
    }

    #[test]
    fn quantized_products_round_to_even_before_the_zero_point() {
        let node = Single::new("QLinearMatMul", 10)
            .values(&[1, 2], &[3u8, 4])
            .values(&[], &[0.5f32])
            .values(&[], &[2u8])
            .values(&[2, 2], &[1u8, 3, 1, 200])
            .values(&[2], &[0.5f32, 1.0])
            .values(&[], &[0u8])
            .values(&[], &[0.5f32])
            .values(&[], &[3u8]);
        // (1·1 + 2·1)·0.5 = 1.5 and (1·3 + 2·200)·1 = 403.
        assert_eq!(node.integers(), [5, 255]);
    }
}
