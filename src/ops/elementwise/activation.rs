//! Activation functions.
//!
//! | operators | versions that differ |
//! | --- | --- |
//! | Relu | 14 adds integers |
//! | LeakyRelu, Elu, HardSigmoid, HardSwish, Softplus, Softsign, ThresholdedRelu, Mish, Celu | later versions add types |
//! | Selu | 1: default attributes with fewer digits |
//! | PRelu | before 7: one slope, or one per channel (axis 1); from 7 on the slope broadcasts to the operand |
//! | Sigmoid, Gelu, Swish | one definition |
//! | Shrink | all numeric types; integer results are truncated |
//! | SwiGLU | two operands of one shape |
//!
//! All functions are computed in binary64 and rounded once. Not evaluated: Celu with `alpha = 0`, which would divide by zero, and
//! integer Shrink with a result out of range.

use std::sync::atomic::{AtomicBool, Ordering};

use super::exponential;
use super::functions::{common, within_one};
use super::kernel::{Reader, charge, lanes, map_floats, map_to, single, wrong_dtype, zip_to};
use super::{Meeting, common_dtype, equal_shapes, like_operand, like_operand_with};
use crate::ir::{Fact, Scalar};
use crate::ops::broadcast::{Broadcast, placed_shape};
use crate::ops::traits::{NumbersOf, OVERSHOOT, Operands, Traits, ValueRange};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::{DType, Number};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Relu", &[1, 6, 13, 14], infer_relu, evaluate_relu).with(
        Traits::function().integers_since(14).rising().range(|_, _| Some(ValueRange::between(0.0, f64::INFINITY))),
    ),
    Operator::new("LeakyRelu", &[1, 6, 16], like_operand, |cx| {
        let alpha = parameter(cx, "alpha", 0.01)?;
        floats(cx, move |x| if x < 0.0 { alpha * x } else { x })
    })
    .with(Traits::function().attributes(&["alpha"])),
    Operator::new("PRelu", &[1, 6, 7, 9, 16], infer_prelu, evaluate_prelu)
        .with(Traits::broadcast(7).with_operands(Operands::Stretched).inferred_by_numbers(NumbersOf::SameAxisOfFirst)),
    Operator::new("Elu", &[1, 6, 22], like_operand, |cx| {
        let alpha = parameter(cx, "alpha", 1.0)?;
        floats(cx, move |x| if x < 0.0 { alpha * libm::expm1(x) } else { x })
    })
    .with(Traits::approximate().attributes(&["alpha"])),
    Operator::new("Selu", &[1, 6, 22], like_operand, evaluate_selu)
        .with(Traits::approximate().attributes(&["alpha", "gamma"])),
    Operator::new("Celu", &[12, 28], like_operand, evaluate_celu).with(Traits::approximate().attributes(&["alpha"])),
    Operator::new("Sigmoid", &[1, 6, 13], like_operand, |cx| common(cx, exponential::sigmoid, sigmoid)).with(
        Traits::approximate()
            .rising()
            .ignoring_zero_sign()
            .range(|_, _| Some(ValueRange::between(0.0, 1.0 + OVERSHOOT))),
    ),
    Operator::new("HardSigmoid", &[1, 6, 22], like_operand, |cx| {
        let (alpha, beta) = (parameter(cx, "alpha", 0.2)?, parameter(cx, "beta", 0.5)?);
        floats(cx, move |x| (alpha * x + beta).clamp(0.0, 1.0))
    })
    .with(Traits::approximate().attributes(&["alpha", "beta"]).range(|_, _| Some(ValueRange::between(0.0, 1.0)))),
    Operator::new("HardSwish", &[14, 22], like_operand, |cx| floats(cx, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)))
        .with(Traits::approximate()),
    Operator::new("Swish", &[24], like_operand, |cx| {
        let alpha = parameter(cx, "alpha", 1.0)?;
        floats(cx, move |x| x * sigmoid(alpha * x))
    })
    .with(Traits::approximate().attributes(&["alpha"])),
    Operator::new("SwiGLU", &[28], infer_swiglu, evaluate_swiglu),
    Operator::new("Softplus", &[1, 22], like_operand, |cx| floats(cx, softplus)).with(
        Traits::approximate().rising().ignoring_zero_sign().range(|_, _| Some(ValueRange::between(0.0, f64::INFINITY))),
    ),
    Operator::new("Softsign", &[1, 22], like_operand, |cx| floats(cx, |x| x / (1.0 + x.abs())))
        .with(Traits::approximate().rising().range(within_one)),
    Operator::new("ThresholdedRelu", &[10, 22], like_operand, |cx| {
        let alpha = parameter(cx, "alpha", 1.0)?;
        floats(cx, move |x| if x > alpha { x } else { 0.0 })
    })
    .with(Traits::function().attributes(&["alpha"])),
    Operator::new("Gelu", &[20], infer_gelu, evaluate_gelu).with(Traits::approximate().attributes(&["approximate"])),
    Operator::new("Mish", &[18, 22], like_operand, |cx| floats(cx, |x| x * libm::tanh(softplus(x))))
        .with(Traits::approximate()),
    Operator::new("Shrink", &[9], like_operand, evaluate_shrink)
        .with(Traits::function().attributes(&["bias", "lambd"])),
];

/// Returns a FLOAT attribute at its stored precision.
fn parameter(site: &Site<'_>, name: &str, default: f32) -> Result<f64, Refusal> {
    Ok(f64::from(site.attr_float(name)?.unwrap_or(default)))
}

/// Computes `1 / (1 + e⁻ˣ)` without overflow.
fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + libm::exp(-x))
    } else {
        let power = libm::exp(x);
        power / (1.0 + power)
    }
}

/// Computes `ln(1 + eˣ)` without overflow. `max` drops NaN; the second term propagates it.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

fn floats(cx: &mut EvalCx<'_>, function: impl Fn(f64) -> f64 + Sync) -> EvalResult {
    let x = cx.tensor(0)?;
    charge(cx, x.dtype(), x.shape(), 32)?;
    single(map_floats(x, function)?)
}

fn infer_relu(cx: &mut InferCx<'_>) -> InferResult {
    like_operand_with(cx, |elements, element| match element {
        Scalar::Int(_) => elements.max(element, &Scalar::Int(0.into())),
        Scalar::Real { .. } => elements.max(element, &Scalar::Float(0.0)),
        Scalar::Float(value) => Scalar::Float(if *value < 0.0 { 0.0 } else { *value }),
        Scalar::Unknown => Scalar::Unknown,
    })
}

fn evaluate_relu(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    let dtype = x.dtype();
    charge(cx, dtype, x.shape(), 1)?;
    single(lanes!(dtype, T => {
        map_to::<T>(dtype, x, |x| if x < T::zero() { T::zero() } else { x })?
    }, else => return Err(wrong_dtype(dtype))))
}

fn evaluate_selu(cx: &mut EvalCx<'_>) -> EvalResult {
    let (alpha, gamma) = if cx.version < 6 { (1.6732, 1.0507) } else { (1.673_263_2, 1.050_701) };
    let (alpha, gamma) = (parameter(cx, "alpha", alpha)?, parameter(cx, "gamma", gamma)?);
    // In the formula, `e⁻⁰ − 1` is +0.
    floats(cx, move |x| if x > 0.0 { gamma * x } else { gamma * (alpha * libm::expm1(x) + 0.0) })
}

fn evaluate_celu(cx: &mut EvalCx<'_>) -> EvalResult {
    let alpha = parameter(cx, "alpha", 1.0)?;
    if alpha == 0.0 || alpha.is_nan() {
        return Err(Decline::unsupported("attribute 'alpha' is 0 or NaN, for which Celu is not defined"));
    }
    // One term of `max(0, x) + min(0, α·(e^(x/α) − 1))` is 0, for either sign of α.
    floats(cx, move |x| if x >= 0.0 { x } else { alpha * libm::expm1(x / alpha) })
}

fn approximates(site: &Site<'_>) -> Result<bool, Refusal> {
    match site.attr_str("approximate")? {
        None | Some("none") => Ok(false),
        Some("tanh") => Ok(true),
        Some(other) => Err(Refusal::invalid(format!("attribute 'approximate' is '{other}', which is not valid"))),
    }
}

fn infer_gelu(cx: &mut InferCx<'_>) -> InferResult {
    approximates(cx)?;
    like_operand(cx)
}

fn evaluate_gelu(cx: &mut EvalCx<'_>) -> EvalResult {
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
    if approximates(cx)? {
        // √(2/π)
        let scale = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
        return floats(cx, move |x| 0.5 * x * (1.0 + libm::tanh(scale * (x + 0.044_715 * x * x * x))));
    }
    // `erfc(−y)` equals `1 + erf(y)` and stays precise for large negative operands.
    floats(cx, |x| 0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2))
}

fn infer_prelu(cx: &mut InferCx<'_>) -> InferResult {
    let (x, slope) = (cx.required(0)?, cx.required(1)?);
    let shape = match cx.version {
        // The standard broadcasts the slope to the operand only; ONNX Runtime broadcasts both.
        7.. => Meeting::Broadcast.shape(cx.scope(), x.shape(), slope.shape())?,
        _ => x.shape().map(<[_]>::to_vec),
    };
    Ok(vec![Fact::tensor(common_dtype(cx, 0..2)?, shape)])
}

fn evaluate_prelu(cx: &mut EvalCx<'_>) -> EvalResult {
    let (x, slope) = (cx.tensor(0)?, cx.tensor(1)?);
    if x.dtype() != slope.dtype() {
        return Err(Decline::invalid("the type of 'slope' differs from the type of 'X'"));
    }
    let placed = match slope.len() {
        1 => Vec::new(),
        _ if cx.version >= 7 => slope.shape().to_vec(),
        // One slope per channel.
        _ => placed_shape(x.rank(), slope.shape(), Some(i64::from(x.rank() > 1)), 1)?,
    };
    let way = Broadcast::new([x.shape(), &placed]);
    let way = way.ok_or_else(|| Decline::invalid("'slope' does not broadcast to the shape of 'X'"))?;
    if way.shape() != x.shape() {
        return Err(Decline::unsupported(
            "'slope' has a larger shape than 'X', to which runtimes do not broadcast 'X'",
        ));
    }
    let dtype = x.dtype();
    charge(cx, dtype, x.shape(), 1)?;
    single(lanes!(dtype, T => {
        let leak = |x: T, slope: T| if x < T::zero() { slope.mul(x) } else { x };
        zip_to(dtype, &way, &Reader::of(x)?, &Reader::of(slope)?, leak)?
    }, else => return Err(wrong_dtype(dtype))))
}

fn infer_swiglu(cx: &mut InferCx<'_>) -> InferResult {
    let shapes = [cx.required(0)?, cx.required(1)?].into_iter().filter_map(Fact::shape);
    let shape = equal_shapes(cx.scope(), shapes)?;
    Ok(vec![Fact::tensor(common_dtype(cx, 0..2)?, shape)])
}

fn evaluate_swiglu(cx: &mut EvalCx<'_>) -> EvalResult {
    let alpha = parameter(cx, "alpha", 1.0)?;
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    if a.dtype() != b.dtype() {
        return Err(Decline::invalid("the operands' element types differ"));
    }
    let way = Meeting::Equal.way(a.shape(), b.shape())?;
    charge(cx, a.dtype(), a.shape(), 32)?;
    let function = |a: f64, b: f64| a * sigmoid(alpha * a) * b;
    single(match a.dtype() {
        DType::Double => zip_to(DType::Double, &way, &Reader::of(a)?, &Reader::of(b)?, function)?,
        dtype => {
            let function = |a: f32, b: f32| function(f64::from(a), f64::from(b)) as f32;
            zip_to(dtype, &way, &Reader::of(a)?, &Reader::of(b)?, function)?
        }
    })
}

fn evaluate_shrink(cx: &mut EvalCx<'_>) -> EvalResult {
    let (bias, lambda) = (parameter(cx, "bias", 0.0)?, parameter(cx, "lambd", 0.5)?);
    let shrink = move |x: f64| match x {
        x if x < -lambda => x + bias,
        x if x > lambda => x - bias,
        _ => 0.0,
    };
    let x = cx.tensor(0)?;
    if x.dtype().is_float() {
        return floats(cx, shrink);
    }
    charge(cx, x.dtype(), x.shape(), 4)?;
    let failed = AtomicBool::new(false);
    let result = lanes!(x.dtype(), T => {
        let exact = (1u64 << 53) as f64;
        map_to::<T>(x.dtype(), x, |x| {
            let wide = x.to_f64();
            let shrunk = if wide.abs() < exact { T::from_f64(shrink(wide)) } else { None };
            shrunk.unwrap_or_else(|| {
                failed.store(true, Ordering::Relaxed);
                x
            })
        })?
    }, else => return Err(wrong_dtype(x.dtype())));
    if failed.into_inner() {
        return Err(Decline::unsupported("the result for an element is out of range of the integer type"));
    }
    single(result)
}
