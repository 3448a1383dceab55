//! BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift, BitCast.
//!
//! | operator | versions that differ |
//! | --- | --- |
//! | Bitwise… | 18: integers |
//! | BitShift | 11: unsigned; 28 adds signed types, whose right shift keeps the sign |
//! | BitCast | 26: the same bits read as another type of the same width |
//!
//! A shift by at least the width (defined in version 28) equals a shift by one bit less and then by one more; runtimes do so
//! for earlier versions, too. BitCast between bool and a byte other than 0 and 1 is not evaluated.

use super::kernel::{Reader, charge, map, single, wrong_dtype, zip};
use super::symbolic::Elements;
use super::{Meeting, common_dtype, like_operand, static_shapes, with_zipped};
use crate::dim::Dim;
use crate::ir::{Fact, Scalar};
use crate::ops::broadcast::Broadcast;
use crate::ops::traits::{Commutes, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Tensor};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("BitwiseAnd", &[18], |cx| infer_pair(cx, |_, _, _| Scalar::Unknown), |cx| bitwise(cx, |a, b| a & b))
        .with(Traits::broadcast(18).neutral(has_all_bits).commuting(Commutes::Always)),
    Operator::new("BitwiseOr", &[18], |cx| infer_pair(cx, |_, _, _| Scalar::Unknown), |cx| bitwise(cx, |a, b| a | b))
        .with(Traits::broadcast(18).neutral(is_zero).commuting(Commutes::Always)),
    Operator::new("BitwiseXor", &[18], |cx| infer_pair(cx, |_, _, _| Scalar::Unknown), |cx| bitwise(cx, |a, b| a ^ b))
        .with(Traits::broadcast(18).neutral(is_zero).commuting(Commutes::Always)),
    Operator::new("BitwiseNot", &[18], like_operand, evaluate_not).with(Traits::function()),
    Operator::new("BitShift", &[11, 28], infer_shift, evaluate_shift)
        .with(Traits::broadcast(11).attributes(&["direction"]).neutral(is_zero)),
    Operator::new("BitCast", &[26], infer_bit_cast, evaluate_bit_cast)
        .with(Traits::function().attributes(&["to"]).showing_zero_sign(0)),
];

/// Returns `true` for a rank-0 integer 0.
fn is_zero(_: DType, one: &Tensor) -> bool {
    one.dtype().is_integer() && one.to_i64s().is_some_and(|held| held == [0])
}

/// Returns `true` for an integer tensor with all bits set.
fn has_all_bits(_: DType, one: &Tensor) -> bool {
    one.dtype().is_integer() && !one.dtype().is_packed() && one.bytes().iter().all(|&byte| byte == u8::MAX)
}

fn infer_pair(cx: &InferCx<'_>, symbolic: impl Fn(&Elements<'_>, &Scalar, &Scalar) -> Scalar) -> InferResult {
    let (a, b) = (cx.required(0)?, cx.required(1)?);
    let dtype = common_dtype(cx, 0..2)?;
    if let Some(dtype) = dtype.filter(|dtype| !dtype.is_integer()) {
        return Err(wrong_dtype(dtype).into());
    }
    let result = Fact::tensor(dtype, Meeting::Broadcast.shape(cx.scope(), a.shape(), b.shape())?);
    let (Some(dtype), Some(shapes)) = (dtype, static_shapes([a, b])) else { return Ok(vec![result]) };
    let elements = Elements::new(cx.scope(), dtype);
    let way = Broadcast::new(shapes.each_ref().map(Vec::as_slice));
    Ok(vec![with_zipped(result, [a, b], way, |[a, b]| symbolic(&elements, a, b))])
}

/// Returns the operands of an integer operator and their broadcast.
fn operands<'c>(cx: &'c EvalCx<'_>) -> Result<(&'c Tensor, &'c Tensor, Broadcast<2>), Decline> {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    if a.dtype() != b.dtype() || !a.dtype().is_integer() || a.dtype().is_packed() {
        return Err(Decline::invalid(format!(
            "the operands have types {} and {} instead of one integer type",
            a.dtype(),
            b.dtype()
        )));
    }
    let way = Meeting::Broadcast.way(a.shape(), b.shape())?;
    charge(cx, a.dtype(), way.shape(), 1)?;
    Ok((a, b, way))
}

/// Returns the unsigned type of the same width.
fn unsigned(dtype: DType) -> Result<DType, Decline> {
    match dtype.bits() {
        Some(8) => Ok(DType::Uint8),
        Some(16) => Ok(DType::Uint16),
        Some(32) => Ok(DType::Uint32),
        Some(64) => Ok(DType::Uint64),
        _ => Err(wrong_dtype(dtype)),
    }
}

/// Reinterprets the bits as elements of another type of the same width.
fn reread(tensor: &Tensor, dtype: DType) -> Result<Tensor, Decline> {
    Ok(Tensor::from_bytes(dtype, tensor.shape(), tensor.bytes().clone())?)
}

/// Evaluates a bitwise operator. Signed operands are computed as unsigned ones.
fn bitwise(cx: &mut EvalCx<'_>, operation: fn(u64, u64) -> u64) -> EvalResult {
    let (a, b, way) = operands(cx)?;
    let bits = unsigned(a.dtype())?;
    let dtype = a.dtype();
    let (a, b) = (reread(a, bits)?, reread(b, bits)?);
    macro_rules! combined {
        ($type:ty) => {{
            let (a, b) = (Reader::<$type>::of(&a)?, Reader::<$type>::of(&b)?);
            let combine = |a: $type, b: $type| operation(a.into(), b.into()) as $type;
            Tensor::from_vec(way.shape(), zip(&way, &a, &b, combine))?
        }};
    }
    let result = match bits {
        DType::Uint8 => combined!(u8),
        DType::Uint16 => combined!(u16),
        DType::Uint32 => combined!(u32),
        _ => combined!(u64),
    };
    single(reread(&result, dtype)?)
}

fn evaluate_not(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    if !x.dtype().is_integer() || x.dtype().is_packed() {
        return Err(wrong_dtype(x.dtype()));
    }
    charge(cx, x.dtype(), x.shape(), 1)?;
    single(Tensor::from_bytes(
        x.dtype(),
        x.shape(),
        map(&Reader::at_hand(x.bytes()), x.bytes().len(), |byte: u8| !byte).into(),
    )?)
}

/// Returns `true` if the shift is to the left.
fn to_the_left(site: &Site<'_>) -> Result<bool, Refusal> {
    match site.attr_str("direction")? {
        Some("LEFT") => Ok(true),
        Some("RIGHT") => Ok(false),
        other => Err(Refusal::invalid(format!(
            "attribute 'direction' is '{}', which is not valid",
            other.unwrap_or_default()
        ))),
    }
}

/// Infers `x ≪ k = x·2ᵏ` and `x ≫ k = ⌊x / 2ᵏ⌋`.
fn infer_shift(cx: &mut InferCx<'_>) -> InferResult {
    let left = to_the_left(cx)?;
    infer_pair(cx, |elements, x, by| {
        let (Scalar::Int(x), Some(by @ 0..=31)) = (x, by.as_const_int()) else { return Scalar::Unknown };
        let power = Dim::constant(1 << by);
        elements.int(if left {
            elements.scope().mul(x, &power)
        } else {
            elements.scope().floor_div(&elements.scope().unwrapped(x), &power)
        })
    })
}

fn evaluate_shift(cx: &mut EvalCx<'_>) -> EvalResult {
    let left = to_the_left(cx)?;
    let (x, by, way) = operands(cx)?;
    macro_rules! shifted {
        ($type:ty) => {{
            let (x, by) = (Reader::<$type>::of(x)?, Reader::<$type>::of(by)?);
            let shift = if left { Shift::left } else { Shift::right };
            Tensor::from_vec(way.shape(), zip(&way, &x, &by, shift))?
        }};
    }
    single(match x.dtype() {
        DType::Int8 => shifted!(i8),
        DType::Int16 => shifted!(i16),
        DType::Int32 => shifted!(i32),
        DType::Int64 => shifted!(i64),
        DType::Uint8 => shifted!(u8),
        DType::Uint16 => shifted!(u16),
        DType::Uint32 => shifted!(u32),
        DType::Uint64 => shifted!(u64),
        dtype => return Err(wrong_dtype(dtype)),
    })
}

/// Shifts by any amount; negative amounts count as larger than the width.
trait Shift {
    fn left(self, by: Self) -> Self;
    fn right(self, by: Self) -> Self;
}

macro_rules! shifts {
    ($($type:ident)*) => {
        $(impl Shift for $type {
            fn left(self, by: Self) -> Self {
                u32::try_from(by).ok().and_then(|by| self.checked_shl(by)).unwrap_or(0)
            }

            fn right(self, by: Self) -> Self {
                let by = u32::try_from(by).ok().filter(|&by| by < Self::BITS);
                // If all bits are shifted out, signed numbers leave copies of the sign bit, unsigned ones 0.
                let sign = if $type::MIN == 0 { 0 } else { self >> (Self::BITS - 1) };
                by.map_or(sign, |by| self >> by)
            }
        })*
    };
}

shifts! { i8 i16 i32 i64 u8 u16 u32 u64 }

fn infer_bit_cast(cx: &mut InferCx<'_>) -> InferResult {
    let operand = cx.required(0)?;
    let to = bit_cast_target(cx, operand.dtype())?;
    Ok(vec![Fact::tensor(Some(to), operand.shape().map(<[_]>::to_vec))])
}

fn bit_cast_target(site: &Site<'_>, from: Option<DType>) -> Result<DType, Refusal> {
    let to = site.attr_dtype("to")?.ok_or_else(|| Refusal::invalid("attribute 'to' is missing"))?;
    if to == DType::String || from.is_some_and(|from| from.bits() != to.bits()) {
        return Err(Refusal::invalid(format!(
            "the types {} and {to} have different numbers of bits",
            from.map_or("the operand", DType::name)
        )));
    }
    Ok(to)
}

fn evaluate_bit_cast(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    let to = bit_cast_target(cx, Some(x.dtype()))?;
    let truths = x.dtype() == DType::Bool || to == DType::Bool;
    if truths && x.bytes().iter().any(|&byte| byte > 1) {
        return Err(Decline::unsupported("a byte of the operand is neither 0 (false) nor 1 (true)"));
    }
    single(reread(x, to)?)
}
