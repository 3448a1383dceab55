//! Functions of one number.
//!
//! | operators | versions that differ |
//! | --- | --- |
//! | Neg, Abs | 1: floats only; 6 adds integers |
//! | Sign | integers and floats; NaN stays NaN (declined in 16 bits), and both zeros give +0 |
//! | Floor, Ceil, Round, Sqrt, Reciprocal, Exp, Log, Erf, Tanh | later versions add `bfloat16` |
//! | Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh | 22 adds `bfloat16` |
//! | IsNaN, IsInf | 20 adds the 8-bit floats, and to IsInf the 16-bit ones |
//!
//! Functions of floats are computed in binary64 with software that is the same everywhere, and rounded once; so results in
//! `double` may differ from a runtime's in the last bits, others hardly ever. Erf of integers, which version 9 allows, is not
//! evaluated: no runtime has it.

use super::kernel::{charge, computed, elements, lanes, map, map_floats, narrowed, single, widened, wrong_dtype};
use super::symbolic::Elements;
use super::{like_operand, like_operand_with, with_mapped};
use crate::ir::{Fact, Scalar};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator};
use crate::tensor::{Bool, DType, Number, Tensor, smallfloat};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Neg", &[1, 6, 13], |cx| like_operand_with(cx, |e, x| e.neg(x)), numbers::<Neg>),
    Operator::new("Abs", &[1, 6, 13], |cx| like_operand_with(cx, |e, x| e.abs(x)), numbers::<Abs>),
    Operator::new("Sign", &[9, 13], |cx| like_operand_with(cx, |e, x| e.sign(x)), evaluate_sign),
    Operator::new("Floor", &[1, 6, 13], |cx| like_operand_with(cx, |e, x| e.floor(x)), |cx| floats(cx, 1, f64::floor)),
    Operator::new("Ceil", &[1, 6, 13], |cx| like_operand_with(cx, |e, x| e.ceil(x)), |cx| floats(cx, 1, f64::ceil)),
    Operator::new(
        "Round",
        &[11, 22],
        |cx| like_operand_with(cx, |e, x| e.round(x)),
        |cx| floats(cx, 1, f64::round_ties_even),
    ),
    // Rounding a root or quotient of binary32 numbers to binary64 first changes no result.
    Operator::new("Sqrt", &[1, 6, 13], like_operand, |cx| floats(cx, 4, f64::sqrt)),
    Operator::new("Reciprocal", &[1, 6, 13], like_operand, |cx| floats(cx, 4, f64::recip)),
    Operator::new("Exp", &[1, 6, 13], like_operand, |cx| floats(cx, 16, libm::exp)),
    Operator::new("Log", &[1, 6, 13], like_operand, |cx| floats(cx, 16, libm::log)),
    Operator::new("Erf", &[9, 13], like_operand, |cx| floats(cx, 32, libm::erf)),
    Operator::new("Tanh", &[1, 6, 13], like_operand, |cx| floats(cx, 32, libm::tanh)),
    Operator::new("Sin", &[7, 22], like_operand, |cx| floats(cx, 32, libm::sin)),
    Operator::new("Cos", &[7, 22], like_operand, |cx| floats(cx, 32, libm::cos)),
    Operator::new("Tan", &[7, 22], like_operand, |cx| floats(cx, 32, libm::tan)),
    Operator::new("Asin", &[7, 22], like_operand, |cx| floats(cx, 32, libm::asin)),
    Operator::new("Acos", &[7, 22], like_operand, |cx| floats(cx, 32, libm::acos)),
    Operator::new("Atan", &[7, 22], like_operand, |cx| floats(cx, 32, libm::atan)),
    Operator::new("Sinh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::sinh)),
    Operator::new("Cosh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::cosh)),
    Operator::new("Asinh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::asinh)),
    Operator::new("Acosh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::acosh)),
    Operator::new("Atanh", &[9, 22], like_operand, |cx| floats(cx, 32, libm::atanh)),
    Operator::new("IsNaN", &[9, 13, 20], infer_is_nan, evaluate_is_nan),
    Operator::new("IsInf", &[10, 20], infer_is_inf, evaluate_is_inf),
];

/// A function of numbers of any type.
trait Function {
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
    charge(cx, x.dtype(), x.shape(), 1)?;
    let wide = widened(x)?;
    let result = lanes!(wide.dtype(), T => {
        Tensor::from_vec(x.shape(), map(&elements::<T>(&wide)?, F::apply::<T>))?
    }, else => return Err(wrong_dtype(x.dtype())));
    single(narrowed(x.dtype(), result)?)
}

/// Runtimes make NaN of NaN, but some make 0 of it in the 16-bit types.
fn evaluate_sign(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    let narrow = matches!(x.dtype(), DType::Float16 | DType::Bfloat16);
    if narrow && x.to_f64s().is_some_and(|values| values.iter().any(|value| value.is_nan())) {
        return Err(Decline::unsupported("runtimes differ on the sign of NaN"));
    }
    numbers::<Sign>(cx)
}

/// A function of floats; `work` is what an element costs.
fn floats(cx: &mut EvalCx<'_>, work: u64, function: fn(f64) -> f64) -> EvalResult {
    let x = cx.tensor(0)?;
    charge(cx, x.dtype(), x.shape(), work)?;
    single(map_floats(x, function)?)
}

/// A truth value for each element of operand 0.
fn infer_test(cx: &InferCx<'_>, test: impl Fn(f64) -> bool) -> InferResult {
    let operand = cx.required(0)?;
    let result = Fact::tensor(Some(DType::Bool), operand.shape().map(<[_]>::to_vec));
    let elements = Elements::new(cx.scope(), DType::Bool);
    Ok(vec![with_mapped(result, operand, |element| match element {
        Scalar::Float(value) => elements.int(i64::from(test(*value)).into()),
        // An exact fraction is a finite number.
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
    } else {
        let wide = widened(x)?;
        match (wide.elements::<f32>(), wide.elements::<f64>()) {
            (Some(values), _) => map(&values, |value| Bool::from(test(f64::from(value)))),
            (_, Some(values)) => map(&values, |value| Bool::from(test(value))),
            _ => return Err(wrong_dtype(dtype)),
        }
    };
    single(Tensor::from_vec(x.shape(), flags)?)
}

fn infer_is_nan(cx: &mut InferCx<'_>) -> InferResult {
    infer_test(cx, f64::is_nan)
}

fn evaluate_is_nan(cx: &mut EvalCx<'_>) -> EvalResult {
    evaluate_test(cx, f64::is_nan)
}

/// Whether a value is an infinity that is asked for.
fn is_detected(negative: bool, positive: bool) -> impl Fn(f64) -> bool + Sync {
    move |value| value.is_infinite() && if value < 0.0 { negative } else { positive }
}

fn infer_is_inf(cx: &mut InferCx<'_>) -> InferResult {
    infer_test(cx, is_detected(cx.attr_flag("detect_negative", true)?, cx.attr_flag("detect_positive", true)?))
}

fn evaluate_is_inf(cx: &mut EvalCx<'_>) -> EvalResult {
    evaluate_test(cx, is_detected(cx.attr_flag("detect_negative", true)?, cx.attr_flag("detect_positive", true)?))
}
