//! QuantizeLinear: `y = saturate(round(x / y_scale) + y_zero_point)`.
//!
//! | | |
//! |---|---|
//! | granularity | see [`grain`](super::grain) |
//! | type | that of the zero point; else from 21 on `output_dtype`; else uint8 |
//! | rounding | to nearest, ties to even, before the zero point is added; small floats are rounded as in Cast, including `saturate` |
//! | precision | of the division: `precision` from 23 on, else the type of the scale |
//! | versions | 10; 13 adds axes; 19 8-bit floats, 16-bit operands, `saturate`; 21 blocks, 4- and 16-bit integers, `output_dtype`; 23 `precision`, 4-bit floats; 24 scales that are powers of two; 25 2-bit integers; 28 6-bit floats |
//! | rejects | zero points whose shape or type does not match |
//! | not evaluated | NaN to integers; nonzero zero points of small floats; elements whose result differs between the text's precision and the binary32 of runtimes |

use super::grain::{Grain, check_zero_point};
use crate::ir::Fact;
use crate::ops::lane::Ring;
use crate::ops::traits::{NumbersOf, Operands, Traits};
use crate::ops::vector::{Stored, vectorized};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::smallfloat::{Format, decode_e8m0};
use crate::tensor::{DType, Tensor, nearest_bf16, nearest_f16, pack};

pub(super) const QUANTIZE_LINEAR: Operator =
    Operator::new("QuantizeLinear", &[10, 13, 19, 21, 23, 24, 25, 28], infer, eval)
        .with(Traits::function().with_operands(Operands::Scaled).inferred_by_numbers(NumbersOf::SameAxisOfFirst));

/// Returns the result type, if known, given the zero point's type: `None` without a zero point, `Some(None)` if its type is
/// unknown.
fn result_dtype(site: &Site<'_>, zero: Option<Option<DType>>) -> Result<Option<DType>, Refusal> {
    let given = if site.version >= 21 && site.attr_int("output_dtype")?.unwrap_or(0) != 0 {
        site.attr_dtype("output_dtype")?
    } else {
        None
    };
    match (zero, given) {
        (Some(Some(zero)), Some(given)) if zero != given => {
            Err(Refusal::invalid(format!("attribute 'output_dtype' is {given}, but the zero point has type {zero}")))
        }
        (Some(zero), given) => Ok(zero.or(given)),
        (None, given) => Ok(Some(given.unwrap_or(DType::Uint8))),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = result_dtype(cx, cx.input(2).map(Fact::dtype))?;
    Ok(vec![Fact::tensor(dtype, cx.shape(0).map(<[_]>::to_vec))])
}

/// The type of the division.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    Float16,
    Bfloat16,
    Float,
    Double,
}

impl Precision {
    fn of(dtype: DType) -> Option<Precision> {
        Some(match dtype {
            DType::Float16 => Precision::Float16,
            DType::Bfloat16 => Precision::Bfloat16,
            // Division by a power of two is exact.
            DType::Float | DType::Float8E8M0 => Precision::Float,
            DType::Double | DType::Int32 => Precision::Double,
            _ => return None,
        })
    }

    fn round(self, value: f64) -> f64 {
        match self {
            Precision::Float16 => nearest_f16(value).to_f64(),
            Precision::Bfloat16 => nearest_bf16(value).to_f64(),
            Precision::Float => f64::from(value as f32),
            Precision::Double => value,
        }
    }

    /// Returns the quotient in this precision. Rounding a binary64 quotient to at most 24 bits equals rounding the exact quotient.
    fn divide(self, x: f64, scale: f64) -> f64 {
        self.round(self.round(x) / self.round(scale))
    }
}

/// The conversion of quotients to codes.
enum Target {
    /// Integers with their zero points, or a single 0.
    Integers { low: f32, high: f32, zeros: Vec<f32> },
    /// A small float.
    Float { format: Format, saturate: bool },
}

impl Target {
    fn new(site: &Site<'_>, dtype: DType, zero: Option<&Tensor>) -> Result<Self, Decline> {
        if let Some(format) = Format::of(dtype) {
            if zero.and_then(Tensor::codes).is_some_and(|mut codes| codes.any(|code| code != 0)) {
                let reason =
                    "a zero point of an 8-bit or 4-bit float type is not 0, and runtimes ignore this zero point";
                return Err(Decline::unsupported(reason));
            }
            return Ok(Target::Float { format, saturate: site.attr_flag("saturate", true)? });
        }
        let bits = match dtype {
            DType::Uint2 | DType::Int2 => 2,
            DType::Uint4 | DType::Int4 => 4,
            DType::Uint8 | DType::Int8 => 8,
            DType::Uint16 | DType::Int16 => 16,
            other => return Err(Decline::invalid(format!("a quantization to {other} is not supported"))),
        };
        let (low, high) = match dtype.is_signed_integer() {
            true => (-(1i32 << (bits - 1)), (1i32 << (bits - 1)) - 1),
            false => (0, (1i32 << bits) - 1),
        };
        let zeros = zero.map_or_else(|| Some(vec![0]), Tensor::to_i64s);
        let zeros = zeros.ok_or_else(|| Decline::invalid("the zero points are not integers"))?;
        let zeros = zeros.into_iter().map(|zero| zero as f32).collect();
        Ok(Target::Integers { low: low as f32, high: high as f32, zeros })
    }

    /// Returns the code of a quotient, in the low bits.
    #[inline]
    fn code(&self, quotient: f32, scale: usize) -> Option<u16> {
        match self {
            Target::Integers { low, high, zeros } => {
                if quotient.is_nan() {
                    return None;
                }
                let zero = zeros.get(scale).or(zeros.first()).copied()?;
                Some(integer(quotient, zero, *low, *high))
            }
            // Only Cast defines the conversion of NaN to a type without NaN.
            Target::Float { format, .. } if quotient.is_nan() && !format.has_nan() => None,
            Target::Float { format, saturate } => format.encode(quotient, *saturate).map(u16::from),
        }
    }
}

/// Returns the code of a quotient that is not NaN.
#[inline(always)]
fn integer(quotient: f32, zero: f32, low: f32, high: f32) -> u16 {
    // The clamp exceeds the type's range by more than any zero point. Adding 1.5·2²³ rounds numbers of this size to the nearest
    // integer, ties to even.
    const SHIFT: f32 = 12_582_912.0;
    let bounded = quotient.clamp(-131_072.0, 131_072.0);
    let rounded = (bounded + SHIFT) - SHIFT;
    // The low bits contain the integer.
    ((rounded + zero).clamp(low, high) + SHIFT).to_bits() as u16
}

/// Writes the codes of elements with one scale or separate scales and zero points. Returns `true` if each element has a code.
#[inline(always)]
fn integers<V: Copy, C>(
    out: &mut [C],
    values: &[V],
    read: &impl Fn(V) -> f32,
    (scales, zeros): (&[f32], &[f32]),
    (low, high): (f32, f32),
    narrow: &impl Fn(u16) -> C,
) -> bool {
    let mut known = true;
    let mut code = |out: &mut C, quotient: f32, zero: f32| {
        known &= !quotient.is_nan();
        *out = narrow(integer(quotient, zero, low, high));
    };
    let values = out.iter_mut().zip(values.iter().map(|&x| read(x)));
    match (scales, zeros) {
        (&[scale], &[zero]) => values.for_each(|(out, x)| code(out, x / scale, zero)),
        (scales, &[zero]) => values.zip(scales).for_each(|((out, x), scale)| code(out, x / scale, zero)),
        (scales, zeros) => {
            values.zip(scales.iter().zip(zeros)).for_each(|((out, x), (scale, &zero))| code(out, x / scale, zero));
        }
    }
    known
}

/// Builds a tensor of the codes of elements that `read` converts.
fn quantized<V: Copy>(
    (dtype, shape): (DType, &[usize]),
    grain: &Grain,
    values: &[V],
    read: impl Fn(V) -> f32,
    scales: &[f32],
    target: (f32, f32, &[f32]),
) -> Result<Tensor, Decline> {
    if dtype.bits() == Some(8) {
        let codes = all_integers(grain, values, read, scales, target, |code| code as u8).ok_or_else(uncertain)?;
        return Ok(Tensor::from_bytes(dtype, shape, codes.into())?);
    }
    let codes = all_integers(grain, values, read, scales, target, |code| code).ok_or_else(uncertain)?;
    encoded(dtype, shape, codes)
}

/// Returns the codes of all elements, if each has one.
fn all_integers<V: Copy, C: Copy + Default>(
    grain: &Grain,
    values: &[V],
    read: impl Fn(V) -> f32,
    scales: &[f32],
    (low, high, zeros): (f32, f32, &[f32]),
    narrow: impl Fn(u16) -> C,
) -> Option<Vec<C>> {
    let mut codes = vec![C::default(); values.len()];
    let mut known = true;
    grain.runs(&mut |run, first, next| {
        let these = first..first + if next { run.len() } else { 1 };
        let zeros = if let [_] = zeros { Some(zeros) } else { zeros.get(these.clone()) };
        let (Some(scales), Some(zeros)) = (scales.get(these), zeros) else { return known = false };
        let (Some(out), Some(values)) = (codes.get_mut(run.clone()), values.get(run)) else { return known = false };
        known &= vectorized(
            #[inline(always)]
            || integers(out, values, &read, (scales, zeros), (low, high), &narrow),
        );
    });
    known.then_some(codes)
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, scale, zero) = (cx.tensor(0)?, cx.tensor(1)?, cx.optional_tensor(2)?);
    let dtype = result_dtype(cx, zero.map(|zero| Some(zero.dtype())))?.unwrap_or(DType::Uint8);
    let grain = Grain::of(cx, x, scale)?;
    if let Some(zero) = zero {
        check_zero_point(scale, zero)?;
    }
    let target = Target::new(cx, dtype, zero)?;
    let precision = match cx.attr_int("precision")?.unwrap_or(0) {
        0 => scale.dtype(),
        _ => cx.attr_dtype("precision")?.unwrap_or(DType::Float),
    };
    let precision = Precision::of(precision)
        .ok_or_else(|| Decline::invalid(format!("attribute 'precision' is {precision}, which is not supported")))?;
    cx.claim(dtype, x.shape())?;
    cx.budget().take_work(x.len() as u64)?;
    // Texts and runtimes agree in this case.
    let plain = precision == Precision::Float && scale.dtype() == x.dtype();
    if let (Target::Integers { low, high, zeros }, true, Some(scales)) = (&target, plain, f32::read(scale)) {
        let target = (*low, *high, zeros.as_slice());
        let result = match f32::stored(x) {
            Some(values) => quantized((dtype, x.shape()), &grain, values, f32::of_bytes, &scales, target),
            None => {
                let values = f32::read(x).unwrap_or_default();
                quantized((dtype, x.shape()), &grain, &values, |x| x, &scales, target)
            }
        };
        return Ok(vec![result?.into()]);
    }
    let mut codes: Vec<u16> = Vec::new();
    let known = match (f32::read(x), f32::read(scale)) {
        (Some(values), Some(scales)) if plain => {
            let mut known = true;
            grain.runs(&mut |run, scale, next| {
                let len = run.len();
                let (Some(values), Some(scales)) = (values.get(run), scales.get(scale..)) else { return known = false };
                let each = scales.iter().enumerate().take(if next { len } else { 1 });
                let each = each.cycle().map(|(at, divisor)| (scale + at, divisor));
                for (x, (of, divisor)) in values.iter().zip(each) {
                    let code = target.code(x / divisor, of);
                    known &= code.is_some();
                    codes.extend(code);
                }
            });
            known
        }
        _ => {
            let (values, scales) = (exact(x)?, exact(scale)?);
            let mut known = true;
            grain.each(|at, of| {
                let pair = values.get(at).zip(scales.get(of));
                match pair.and_then(|(&x, &scale)| agreed(&target, precision, x, scale, of)) {
                    Some(code) => codes.push(code),
                    None => known = false,
                }
            });
            known
        }
    };
    if !known {
        return Err(uncertain());
    }
    Ok(vec![encoded(dtype, x.shape(), codes)?.into()])
}

fn uncertain() -> Decline {
    Decline::unsupported("an element is NaN, or the rounding of an element depends on the precision of the runtime")
}

/// Converts the elements to binary64, exactly.
fn exact(tensor: &Tensor) -> Result<Vec<f64>, Decline> {
    match tensor.dtype() {
        DType::Float | DType::Float16 | DType::Bfloat16 | DType::Int32 => tensor.to_f64s(),
        DType::Float8E8M0 => tensor.codes().map(|codes| codes.map(|code| f64::from(decode_e8m0(code))).collect()),
        _ => None,
    }
    .ok_or_else(|| Decline::invalid(format!("the type of an operand is {}", tensor.dtype())))
}

/// Returns the code if the text's precision and the binary32 of runtimes agree on it.
fn agreed(target: &Target, precision: Precision, x: f64, scale: f64, at: usize) -> Option<u16> {
    let code = target.code(Precision::Float.divide(x, scale) as f32, at)?;
    let stated = precision.divide(x, scale);
    // Digits below the half also affect integers, and binary32 may have dropped them.
    let halfway = matches!(target, Target::Integers { .. }) && f64::from(stated as f32) != stated;
    let stated = match halfway {
        true => target.code(stated.round_ties_even() as f32, at)?,
        false => target.code(stated as f32, at)?,
    };
    (code == stated).then_some(code)
}

/// Builds a tensor of codes.
fn encoded(dtype: DType, shape: &[usize], codes: Vec<u16>) -> Result<Tensor, Decline> {
    let narrow = |codes: Vec<u16>| codes.into_iter().map(|code| code as u8).collect::<Vec<u8>>();
    Ok(match dtype.bits() {
        Some(16) if dtype.is_signed_integer() => {
            Tensor::from_vec(shape, codes.into_iter().map(|code| code as i16).collect::<Vec<i16>>())?
        }
        Some(16) => Tensor::from_vec(shape, codes)?,
        Some(bits @ 1..8) => Tensor::from_bytes(dtype, shape, pack(&narrow(codes), bits).into())?,
        _ => Tensor::from_bytes(dtype, shape, narrow(codes).into())?,
    })
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::ops::single::Single;

    fn node(opset: i64) -> Single {
        Single::new("QuantizeLinear", opset)
    }

    #[test]
    fn types_and_shapes() {
        let x = |opset: i64| node(opset).input(DType::Float, "N 3").input(DType::Float, "");
        assert_eq!(x(10).infer(), ["uint8[N, 3]"]);
        assert_eq!(x(10).input(DType::Int8, "").infer(), ["int8[N, 3]"]);
        assert_eq!(x(21).with("output_dtype", DType::Int4).infer(), ["int4[N, 3]"]);
        assert!(x(21).with("output_dtype", DType::Int4).input(DType::Int8, "").infer()[0].starts_with("invalid"));
    }

    #[test]
    fn rounding_is_to_even_and_comes_first() {
        let x = [0.5f32, 1.5, 2.5, -0.5, 300.0, -300.0, f32::INFINITY, f32::NEG_INFINITY];
        let plain = node(13).values(&[8], &x).values(&[], &[1.0f32]).values(&[], &[3u8]);
        assert_eq!(plain.integers(), [3, 5, 5, 3, 255, 0, 255, 0]);
        let wide = node(21)
            .values(&[4], &[65534.5f32, -1.0, 70000.0, 3.0])
            .values(&[], &[1.0f32])
            .with("output_dtype", DType::Uint16);
        assert_eq!(wide.integers(), [65534, 0, 65535, 3]);
        let signed =
            node(21).values(&[4], &[-40000.0f32, 40000.0, 6.0, -6.0]).values(&[], &[4.0f32]).values(&[], &[-30000i16]);
        assert_eq!(signed.integers(), [-32768, -20000, -29998, -30002]);
        let small = node(25)
            .values(&[5], &[-3.0f32, -1.0, 0.4, 1.0, 9.0])
            .values(&[], &[1.0f32])
            .with("output_dtype", DType::Int2);
        assert_eq!(small.integers(), [-2, -1, 0, 1, 1]);
    }

    #[test]
    fn every_granularity() {
        let x = || node(21).values(&[2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(x().values(&[3], &[1.0f32, 2.0, 4.0]).integers(), [0, 0, 0, 3, 2, 1]);
        let blocks = x().values(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]).values(&[2, 2], &[0u8, 1, 2, 3]);
        assert_eq!(blocks.with("block_size", 2).with("axis", 1).integers(), [0, 1, 2, 3, 3, 4]);
    }

    #[test]
    fn small_floats() {
        let node = |dtype: DType, saturate: i64| {
            let zero = Tensor::zeros(dtype, &[]).unwrap();
            node(28)
                .values(&[4], &[1.0f32, -3.0, 1e6, f32::NAN])
                .values(&[], &[2.0f32])
                .constant(zero)
                .with("saturate", saturate)
        };
        let bytes = |node: Single| node.eval().unwrap()[0].bytes().to_vec();
        assert_eq!(bytes(node(DType::Float8E4M3FN, 1)), [0x30, 0xbc, 0x7e, 0x7f]);
        assert_eq!(bytes(node(DType::Float8E5M2, 0))[2], 0x7c);
        assert!(node(DType::Float4E2M1, 1).eval().is_err());
    }

    #[test]
    fn elements_that_depend_on_the_precision_decline() {
        let half = |x: f32| node(19).values(&[1], &[f16::from_f32(x)]).values(&[], &[f16::from_f32(3.0)]);
        assert_eq!(half(10.0).integers(), [3]);
        // 3.4998 rounds to 3 in binary32, but its binary16 value is 3.5.
        let disputed = node(23).values(&[1], &[3.4998f32]).values(&[], &[f16::ONE]);
        assert!(disputed.eval().is_err());
        let stated = node(23).values(&[1], &[3.4998f32]).values(&[], &[f16::ONE]).with("precision", DType::Float);
        assert_eq!(stated.integers(), [3]);
        assert!(node(13).values(&[1], &[f32::NAN]).values(&[], &[1.0f32]).eval().is_err());
        assert!(node(13).values(&[1], &[0.0f32]).values(&[], &[0.0f32]).eval().is_err());
        assert_eq!(node(13).values(&[2], &[3i32, 7]).values(&[], &[2.0f32]).integers(), [2, 4]);
    }
}
