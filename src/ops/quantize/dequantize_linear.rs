//! DequantizeLinear: `y = (x − x_zero_point) · x_scale`.
//!
//! | | |
//! |---|---|
//! | granularity | see [`grain`](super::grain) |
//! | type | float before version 19; then that of the scale, or from 23 on `output_dtype` |
//! | versions | 10; 13 adds axes; 19 8-bit floats, scales of 16 bits; 21 blocks, 4- and 16-bit integers; 23 `output_dtype`, 4-bit floats; 24 scales that are powers of two; 25 2-bit integers; 28 6-bit floats |
//! | accuracy | the difference is exact, the product is in binary32, rounded once to the result type |
//! | rejects | zero points whose shape or type does not match; a result without a type |
//! | not evaluated | nonzero zero points of small floats; scales that rounding to the result type changes |

use super::grain::{Grain, check_zero_point};
use crate::ir::Fact;
use crate::ops::lane::{Ring, same_dtype};
use crate::ops::traits::{NumbersOf, Operands, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor, smallfloat};

pub(super) const DEQUANTIZE_LINEAR: Operator =
    Operator::new("DequantizeLinear", &[10, 13, 19, 21, 23, 24, 25, 28], infer, eval).with(
        Traits::function()
            .with_operands(Operands::Scaled)
            .inferred_by_numbers(NumbersOf::SameAxisOfFirst)
            .fused_with_next(),
    );

/// Returns the result type, if known.
fn result_dtype(site: &Site<'_>, scale: Option<DType>) -> Result<Option<DType>, Refusal> {
    if site.version < 19 {
        return Ok(Some(DType::Float));
    }
    let given = if site.version >= 23 && site.attr_int("output_dtype")?.unwrap_or(0) != 0 {
        site.attr_dtype("output_dtype")?
    } else {
        None
    };
    match given.or(scale) {
        Some(DType::Float8E8M0) => {
            Err(Refusal::invalid("attribute 'output_dtype' is missing, which a scale of type float8e8m0 requires"))
        }
        dtype => Ok(dtype),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = result_dtype(cx, cx.dtype(1))?;
    Ok(vec![Fact::tensor(dtype, cx.shape(0).map(<[_]>::to_vec))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, scale, zero) = (cx.tensor(0)?, cx.tensor(1)?, cx.optional_tensor(2)?);
    let dtype = result_dtype(cx, Some(scale.dtype()))?.unwrap_or(scale.dtype());
    if !matches!(dtype, DType::Float | DType::Float16 | DType::Bfloat16) {
        return Err(Decline::invalid(format!("the type of the result would be {dtype}")));
    }
    let grain = Grain::of(cx, x, scale)?;
    if let Some(zero) = zero {
        check_zero_point(scale, zero)?;
        same_dtype(x.dtype(), &[zero])?;
    }
    cx.claim(dtype, x.shape())?;
    cx.budget().take_work(x.len() as u64)?;
    let scales = widened(scale)?;
    check_rounding(scale.dtype(), dtype, &scales)?;
    let zeros = zero.map(|zero| zero_points(x.dtype(), zero)).transpose()?.flatten();
    let values = match (x.dtype(), &zeros) {
        (DType::Int32, Some(zeros)) => differences(x, zeros, &grain),
        _ => widened(x)?,
    };
    // The zero points of 32-bit integers are already subtracted.
    let zeros = zeros.filter(|_| x.dtype() != DType::Int32);
    let zeros: Option<Vec<f32>> = zeros.map(|zeros| zeros.into_iter().map(|zero| zero as f32).collect());
    let values = dequantized(values, &scales, zeros.as_deref(), &grain);
    Ok(vec![f32::write(dtype, x.shape(), values)?.into()])
}

/// Converts the elements to binary32: exact except for 32-bit integers, which are rounded to nearest.
fn widened(tensor: &Tensor) -> Result<Vec<f32>, Decline> {
    if let Some(values) = f32::read(tensor) {
        return Ok(values.into_owned());
    }
    fn wide<T: Copy>(elements: Option<std::borrow::Cow<'_, [T]>>, convert: impl Fn(T) -> f32) -> Option<Vec<f32>>
    where
        [T]: ToOwned<Owned = Vec<T>>,
    {
        elements.map(|elements| elements.iter().map(|&element| convert(element)).collect())
    }
    let values = match tensor.dtype() {
        DType::Int8 => wide(tensor.elements::<i8>(), f32::from),
        DType::Uint8 => wide(tensor.elements::<u8>(), f32::from),
        DType::Int16 => wide(tensor.elements::<i16>(), f32::from),
        DType::Uint16 => wide(tensor.elements::<u16>(), f32::from),
        DType::Int32 => wide(tensor.elements::<i32>(), |value| value as f32),
        dtype if dtype.is_small_float() || dtype.is_packed() => {
            let table: Vec<f32> = (0..=255u8).map(|code| decoded(dtype, code)).collect();
            tensor.codes().map(|codes| codes.filter_map(|code| table.get(usize::from(code)).copied()).collect())
        }
        _ => None,
    };
    values.ok_or_else(|| Decline::invalid(format!("the type of an operand is {}", tensor.dtype())))
}

/// Returns the number that a code of a small type represents.
fn decoded(dtype: DType, code: u8) -> f32 {
    match (smallfloat::decode(dtype, code), dtype.bits()) {
        (Some(value), _) => value,
        (None, Some(bits @ 1..8)) if dtype.is_signed_integer() => {
            let sign = 1i16 << (bits - 1);
            f32::from((i16::from(code) ^ sign) - sign)
        }
        _ => f32::from(code),
    }
}

/// Returns the zero points; `None` if all are 0.
fn zero_points(dtype: DType, zero: &Tensor) -> Result<Option<Vec<i32>>, Decline> {
    if dtype.is_small_float() {
        let nothing = zero.codes().is_some_and(|mut codes| codes.all(|code| code == 0));
        let decline = || {
            Decline::unsupported(
                "a zero point of an 8-bit or 4-bit float type is not 0, and runtimes ignore this zero point",
            )
        };
        return if nothing { Ok(None) } else { Err(decline()) };
    }
    let zeros = zero.to_i64s().ok_or_else(|| Decline::invalid("the zero points are not integers"))?;
    let zeros: Vec<i32> = zeros.into_iter().map(|zero| zero as i32).collect();
    Ok(zeros.iter().any(|&zero| zero != 0).then_some(zeros))
}

/// Subtracts the zero points from 32-bit integers and rounds to binary32.
fn differences(x: &Tensor, zeros: &[i32], grain: &Grain) -> Vec<f32> {
    let x = x.elements::<i32>().unwrap_or_default();
    let mut values = Vec::with_capacity(x.len());
    grain.each(|at, scale| {
        let (x, zero) = (x.get(at).copied().unwrap_or(0), zeros.get(scale).copied().unwrap_or(0));
        values.push((i64::from(x) - i64::from(zero)) as f32);
    });
    values
}

/// Checks that the scale is exact in the result type. The text computes the product in the result type, runtimes in binary32;
/// both agree then.
fn check_rounding(from: DType, to: DType, scales: &[f32]) -> Result<(), Decline> {
    let exact = |&scale: &f32| match to {
        DType::Float16 => half::f16::from_f32(scale).to_f32() == scale,
        DType::Bfloat16 => half::bf16::from_f32(scale).to_f32() == scale,
        _ => true,
    };
    if from == to || scales.iter().all(exact) {
        return Ok(());
    }
    Err(Decline::unsupported("the scale has a higher precision than the result"))
}

fn dequantized(mut values: Vec<f32>, scales: &[f32], zeros: Option<&[f32]>, grain: &Grain) -> Vec<f32> {
    grain.runs(&mut |run, first, next| {
        let len = if next { run.len() } else { 1 };
        let Some(values) = values.get_mut(run) else { return };
        let part =
            |numbers: &'_ [f32]| numbers.get(first..).and_then(|numbers| numbers.get(..len)).map(<[f32]>::to_vec);
        let (Some(scales), zeros) = (part(scales), zeros.and_then(part)) else { return };
        match (&*scales, zeros.as_deref()) {
            (&[scale], None) => values.iter_mut().for_each(|x| *x *= scale),
            (&[scale], Some(&[zero])) => values.iter_mut().for_each(|x| *x = (*x - zero) * scale),
            (scales, None) => values.iter_mut().zip(scales).for_each(|(x, scale)| *x *= scale),
            (scales, Some(zeros)) => {
                let terms = values.iter_mut().zip(scales).zip(zeros);
                terms.for_each(|((x, scale), zero)| *x = (*x - zero) * scale);
            }
        }
    });
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;
    use half::f16;

    fn node(opset: i64) -> Single {
        Single::new("DequantizeLinear", opset)
    }

    #[test]
    fn types_and_shapes() {
        let infer = |node: Single| node.infer().remove(0);
        let of = |opset: i64, scale: DType| node(opset).input(DType::Uint8, "N C").input(scale, "C");
        assert_eq!(infer(of(13, DType::Float)), "float[N, C]");
        assert_eq!(infer(of(19, DType::Float16)), "float16[N, C]");
        assert_eq!(infer(of(23, DType::Float).with("output_dtype", DType::Bfloat16)), "bfloat16[N, C]");
        assert_eq!(infer(of(24, DType::Float8E8M0).with("output_dtype", DType::Float)), "float[N, C]");
        assert!(infer(of(24, DType::Float8E8M0)).starts_with("invalid"));
        assert_eq!(infer(node(13).unranked(DType::Int8).input(DType::Float, "")), "float");
    }

    #[test]
    fn every_granularity() {
        let x = [0u8, 3, 128, 255, 7, 9];
        let plain = node(10).values(&[2, 3], &x).values(&[], &[0.5f32]).values(&[], &[128u8]);
        assert_eq!(plain.floats(), [-64.0, -62.5, 0.0, 63.5, -60.5, -59.5]);
        let last = || node(13).values(&[2, 3], &x).values(&[3], &[1.0f32, 2.0, 4.0]);
        assert_eq!(last().floats(), [0.0, 6.0, 512.0, 255.0, 14.0, 36.0]);
        assert_eq!(last().values(&[3], &[1u8, 2, 3]).floats(), [-1.0, 2.0, 500.0, 254.0, 10.0, 24.0]);
        let first = node(13).values(&[2, 3], &x).values(&[2], &[1.0f32, 2.0]).with("axis", 0);
        assert_eq!(first.floats(), [0.0, 3.0, 128.0, 510.0, 14.0, 18.0]);
        let blocks = node(21).values(&[2, 3], &x).values(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]).with("block_size", 2);
        assert_eq!(blocks.floats(), [0.0, 3.0, 256.0, 765.0, 21.0, 36.0]);
        let down = node(21)
            .values(&[3, 2], &x)
            .values(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])
            .with("block_size", 2)
            .with("axis", 0);
        assert_eq!(down.floats(), [0.0, 6.0, 128.0, 510.0, 21.0, 36.0]);
        assert!(node(13).values::<u8>(&[0, 3], &[]).values(&[3], &[1.0f32; 3]).floats().is_empty());
    }

    #[test]
    fn small_and_wide_types() {
        let packed = |dtype: DType, bytes: &'static [u8], count: usize| {
            let x = Tensor::from_bytes(dtype, &[count], bytes.into()).unwrap();
            node(28).constant(x).values(&[], &[2.0f32]).floats()
        };
        assert_eq!(packed(DType::Int4, &[0x7f, 0x08], 3), [-2.0, 14.0, -16.0]);
        assert_eq!(packed(DType::Uint4, &[0x7f, 0x08], 3), [30.0, 14.0, 16.0]);
        assert_eq!(packed(DType::Int2, &[0b11_10_01_00], 4), [0.0, 2.0, -4.0, -2.0]);
        assert_eq!(packed(DType::Float8E4M3FN, &[0x38, 0xb8], 2), [2.0, -2.0]);
        assert_eq!(packed(DType::Float4E2M1, &[0x72], 2), [2.0, 12.0]);
        let wide = node(13).values(&[2], &[i32::MIN, 5]).values(&[], &[1.0f32]).values(&[], &[1i32]);
        assert_eq!(wide.floats(), [-2147483648.0, 4.0]);
        let halves = node(21).values(&[1], &[200u8]).values(&[], &[f16::from_f32(0.1)]).values(&[], &[3u8]);
        assert_eq!(halves.floats(), [19.6875]);
        let scale = Tensor::from_bytes(DType::Float8E8M0, &[], vec![128u8].into()).unwrap();
        let powers = node(24).values(&[2], &[3i8, -3]).constant(scale).with("output_dtype", DType::Float);
        assert_eq!(powers.floats(), [6.0, -6.0]);
    }

    #[test]
    fn mismatched_operands_decline() {
        let x = || node(21).values(&[2, 3], &[0u8; 6]);
        assert!(x().values(&[2], &[1.0f32; 2]).eval().is_err());
        assert!(x().values(&[3], &[1.0f32; 3]).values(&[], &[0u8]).eval().is_err());
        assert!(x().values(&[], &[1.0f32]).values(&[], &[0i8]).eval().is_err());
        assert!(x().values(&[2, 2], &[1.0f32; 4]).eval().is_err());
        assert!(x().values(&[3], &[1.0f32; 3]).with("axis", 2).eval().is_err());
        assert!(node(10).values(&[2, 3], &[0u8; 6]).values(&[3], &[1.0f32; 3]).eval().is_err());
    }
}
