//! Functions of one number.
//!
//! | operators | versions that differ |
//! | --- | --- |
//! | Neg, Abs | 1: floats only; 6 adds integers |
//! | Sign | integers and floats; NaN is preserved (declined in 16 bits), and both zeros yield +0 |
//! | Floor, Ceil, Round, Sqrt, Reciprocal, Exp, Log, Erf, Tanh | later versions add `bfloat16` |
//! | Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh | 22 adds `bfloat16` |
//! | IsNaN, IsInf | 20 adds the 8-bit floats, and to IsInf the 16-bit ones |
//!
//! Float functions are computed in binary64 with portable software and rounded once. Results in `double` may differ from a
//! runtime's in the last bits, other types rarely do. Integer Erf, which version 9 allows, is not evaluated: no runtime
//! implements it.

use super::exponential;
use super::kernel::{Reader, charge, charge_later, computed, lanes, map, map_floats, single, wrong_dtype};
use super::later::{Held, map_later};
use super::symbolic::Elements;
use super::{like_operand, like_operand_with, with_mapped};
use crate::dim::Dim;
use crate::ir::{Fact, Scalar};
use crate::ops::traits::{Counting, NodeFacts, OVERSHOOT, Traits, ValueRange};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator};
use crate::tensor::{Bool, DType, Number, Tensor, smallfloat};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Neg", &[1, 6, 13], |cx| like_operand_with(cx, |e, x| e.neg(x)), numbers::<Neg>)
        .with(Traits::function().integers_since(6).falling().homogeneous().counts(negated)),
    Operator::new("Abs", &[1, 6, 13], |cx| like_operand_with(cx, |e, x| e.abs(x)), numbers::<Abs>).with(
        Traits::function()
            .integers_since(6)
            .ignoring_zero_sign()
            .ordered_by_sign()
            .range(|_, _| Some(ValueRange::between(0.0, f64::INFINITY))),
    ),
    Operator::new("Sign", &[9, 13], |cx| like_operand_with(cx, |e, x| e.sign(x)), evaluate_sign)
        .with(Traits::function().rising().ignoring_zero_sign().range(|_, _| Some(ValueRange::between(-1.0, 1.0)))),
    Operator::new(
        "Floor",
        &[1, 6, 13],
        |cx| like_operand_with(cx, |e, x| e.floor(x)),
        |cx| plain_floats(cx, floor, f64::floor),
    )
    .with(Traits::function().rising()),
    Operator::new(
        "Ceil",
        &[1, 6, 13],
        |cx| like_operand_with(cx, |e, x| e.ceil(x)),
        |cx| plain_floats(cx, ceil, f64::ceil),
    )
    .with(Traits::function().rising()),
    Operator::new(
        "Round",
        &[11, 22],
        |cx| like_operand_with(cx, |e, x| e.round(x)),
        |cx| plain_floats(cx, round, f64::round_ties_even),
    )
    .with(Traits::function().rising()),
    Operator::new("Sqrt", &[1, 6, 13], like_operand, |cx| plain_floats(cx, f32::sqrt, f64::sqrt))
        .with(Traits::function().rising()),
    Operator::new("Reciprocal", &[1, 6, 13], like_operand, |cx| plain_floats(cx, f32::recip, f64::recip))
        .with(Traits::approximate().showing_zero_sign(0)),
    Operator::new("Exp", &[1, 6, 13], like_operand, |cx| common(cx, exponential::exp, libm::exp)).with(
        Traits::approximate().rising().ignoring_zero_sign().range(|_, _| Some(ValueRange::between(0.0, f64::INFINITY))),
    ),
    Operator::new("Log", &[1, 6, 13], like_operand, |cx| floats(cx, 16, libm::log))
        .with(Traits::approximate().rising().ignoring_zero_sign()),
    Operator::new("Erf", &[9, 13], like_operand, |cx| floats(cx, 32, libm::erf))
        .with(Traits::approximate().rising().range(within_one)),
    Operator::new("Tanh", &[1, 6, 13], like_operand, |cx| common(cx, exponential::tanh, libm::tanh))
        .with(Traits::approximate().rising().range(within_one)),
    Operator::new("Sin", &[7, 22], like_operand, |cx| floats(cx, 32, libm::sin))
        .with(Traits::approximate().range(within_one)),
    Operator::new("Cos", &[7, 22], like_operand, |cx| floats(cx, 32, libm::cos))
        .with(Traits::approximate().ignoring_zero_sign().range(within_one)),
    Operator::new("Tan", &[7, 22], like_operand, |cx| floats(cx, 32, libm::tan)).with(Traits::approximate()),
    Operator::new("Asin", &[7, 22], like_operand, |cx| floats(cx, 32, libm::asin)).with(Traits::approximate().rising()),
    Operator::new("Acos", &[7, 22], like_operand, |cx| floats(cx, 32, libm::acos))
        .with(Traits::approximate().falling().ignoring_zero_sign()),
    Operator::new("Atan", &[7, 22], like_operand, |cx| floats(cx, 32, libm::atan)).with(Traits::approximate().rising()),
    Operator::new("Sinh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::sinh)).with(Traits::approximate().rising()),
    Operator::new("Cosh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::cosh)).with(
        Traits::approximate()
            .ignoring_zero_sign()
            .range(|_, _| Some(ValueRange::between(1.0 - OVERSHOOT, f64::INFINITY))),
    ),
    Operator::new("Asinh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::asinh))
        .with(Traits::approximate().rising()),
    Operator::new("Acosh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::acosh))
        .with(Traits::approximate().rising()),
    Operator::new("Atanh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::atanh))
        .with(Traits::approximate().rising()),
    Operator::new("IsNaN", &[9, 13, 20], infer_is_nan, evaluate_is_nan)
        .with(Traits::function().ignoring_zero_sign().giving_flags()),
    Operator::new("IsInf", &[10, 20], infer_is_inf, evaluate_is_inf).with(
        Traits::function().giving_flags().attributes(&["detect_negative", "detect_positive"]).ignoring_zero_sign(),
    ),
];

/// Returns the range of functions that approach or reach ±1.
pub(in crate::ops) fn within_one(_: &NodeFacts<'_>, _: &dyn Fn(usize) -> Option<ValueRange>) -> Option<ValueRange> {
    Some(ValueRange::between(-1.0 - OVERSHOOT, 1.0 + OVERSHOOT))
}

/// `−(o + Σ sₖ·iₖ) = −o + Σ −sₖ·iₖ`.
fn negated(view: &NodeFacts<'_>, _: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>) -> Option<Counting> {
    operand(0)?.scaled(view.scope(), &Dim::constant(-1)).unless_wrapped(view)
}

/// A function on numbers of any type.
trait Function: 'static {
    fn apply<T: Number>(x: T) -> T;
}

struct Neg;
struct Abs;
struct Sign;

impl Function for Neg {
    fn apply<T: Number>(x: T) -> T {
        x.neg()
    }
}

impl Function for Abs {
    fn apply<T: Number>(x: T) -> T {
        x.abs()
    }
}

impl Function for Sign {
    fn apply<T: Number>(x: T) -> T {
        if x > T::zero() {
            T::one()
        } else if x < T::zero() {
            T::one().neg()
        } else if x == T::zero() {
            T::zero()
        } else {
            x
        }
    }
}

fn numbers<F: Function>(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    let dtype = x.dtype();
    let later = charge_later(cx, dtype, x.shape(), 1)?;
    single(lanes!(dtype, T => map_later::<T>(later, dtype, x, F::apply)?, else => return Err(wrong_dtype(dtype))))
}

/// Evaluates a function with binary32 instructions.
fn plain_floats(
    cx: &mut EvalCx<'_>,
    narrow: impl Fn(f32) -> f32 + Held,
    wide: impl Fn(f64) -> f64 + Held,
) -> EvalResult {
    let x = cx.tensor(0)?;
    let later = charge_later(cx, x.dtype(), x.shape(), 1)?;
    single(match x.dtype() {
        DType::Double => map_later::<f64>(later, DType::Double, x, wide)?,
        dtype => map_later::<f32>(later, dtype, x, narrow)?,
    })
}

/// From this magnitude on, all binary32 numbers are integers.
const WHOLE: f32 = (1 << 23) as f32;

/// Computes `⌊x⌋` through an integer, many times faster than the library on machines without an instruction.
fn floor(x: f32) -> f32 {
    whole(x, |toward_zero| if toward_zero > x { toward_zero - 1.0 } else { toward_zero })
}

fn ceil(x: f32) -> f32 {
    whole(x, |toward_zero| if toward_zero < x { toward_zero + 1.0 } else { toward_zero })
}

/// Rounds to even: adding 2²³ removes the fraction.
fn round(x: f32) -> f32 {
    if x.abs() < WHOLE { ((x.abs() + WHOLE) - WHOLE).copysign(x) } else { x }
}

/// Returns an integer near `x`, computed from the truncated one, with the sign of `x` (also for zero).
fn whole(x: f32, near: impl Fn(f32) -> f32) -> f32 {
    if x.abs() < WHOLE { near(x as i32 as f32).copysign(x) } else { x }
}

/// Evaluates Sign. NaN yields NaN, but some runtimes return 0 in the 16-bit types.
fn evaluate_sign(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    let narrow = matches!(x.dtype(), DType::Float16 | DType::Bfloat16);
    if narrow && x.to_f64s().is_some_and(|values| values.iter().any(|value| value.is_nan())) {
        return Err(Decline::unsupported("runtimes return NaN with different signs"));
    }
    numbers::<Sign>(cx)
}

/// Evaluates a float function; `work` is the cost per element.
fn floats(cx: &mut EvalCx<'_>, work: u64, function: fn(f64) -> f64) -> EvalResult {
    let x = cx.tensor(0)?;
    charge(cx, x.dtype(), x.shape(), work)?;
    single(map_floats(x, function)?)
}

/// Evaluates a common float function, which has a faster version for results of at most 32 bits.
pub(super) fn common(
    cx: &mut EvalCx<'_>,
    narrow: impl Fn(f64) -> f64 + Sync,
    wide: impl Fn(f64) -> f64 + Sync,
) -> EvalResult {
    let x = cx.tensor(0)?;
    charge(cx, x.dtype(), x.shape(), 16)?;
    single(if x.dtype() == DType::Double { map_floats(x, wide)? } else { map_floats(x, narrow)? })
}

/// Infers a boolean for each element of operand 0.
fn infer_test(cx: &InferCx<'_>, test: impl Fn(f64) -> bool) -> InferResult {
    let operand = cx.required(0)?;
    let result = Fact::tensor(Some(DType::Bool), operand.shape().map(<[_]>::to_vec));
    let elements = Elements::new(cx.scope(), DType::Bool);
    Ok(vec![with_mapped(result, operand, |element| match element {
        Scalar::Float(value) => elements.int(i64::from(test(*value)).into()),
        // Exact fractions are finite.
        Scalar::Real { .. } => elements.int(0.into()),
        _ => Scalar::Unknown,
    })])
}

fn evaluate_test(cx: &EvalCx<'_>, test: impl Fn(f64) -> bool + Sync) -> EvalResult {
    let x = cx.tensor(0)?;
    let dtype = x.dtype();
    charge(cx, DType::Bool, x.shape(), 1)?;
    let flags = if dtype.is_small_float() && !dtype.is_packed() {
        let codes = x.bytes();
        let table: Vec<bool> =
            (0..=u8::MAX).map(|code| smallfloat::decode(dtype, code).is_some_and(|value| test(value.into()))).collect();
        computed(x.len(), &|start, out: &mut [Bool]| {
            for (out, &code) in out.iter_mut().zip(codes.get(start..).unwrap_or_default()) {
                *out = table.get(usize::from(code)).copied().unwrap_or_default().into();
            }
        })
    } else if dtype == DType::Double {
        map(&Reader::<f64>::of(x)?, x.len(), |value| Bool::from(test(value)))
    } else {
        map(&Reader::<f32>::of(x)?, x.len(), |value| Bool::from(test(f64::from(value))))
    };
    single(Tensor::from_vec(x.shape(), flags)?)
}

fn infer_is_nan(cx: &mut InferCx<'_>) -> InferResult {
    infer_test(cx, f64::is_nan)
}

fn evaluate_is_nan(cx: &mut EvalCx<'_>) -> EvalResult {
    evaluate_test(cx, f64::is_nan)
}

/// Returns `true` for infinities of the selected signs.
fn is_detected(negative: bool, positive: bool) -> impl Fn(f64) -> bool + Sync {
    move |value| value.is_infinite() && if value < 0.0 { negative } else { positive }
}

fn infer_is_inf(cx: &mut InferCx<'_>) -> InferResult {
    infer_test(cx, is_detected(cx.attr_flag("detect_negative", true)?, cx.attr_flag("detect_positive", true)?))
}

fn evaluate_is_inf(cx: &mut EvalCx<'_>) -> EvalResult {
    evaluate_test(cx, is_detected(cx.attr_flag("detect_negative", true)?, cx.attr_flag("detect_positive", true)?))
}
