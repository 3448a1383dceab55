//! Add, Sub, Mul, Div, Mod, Pow; Min, Max, Sum, Mean.
//!
//! | operator | versions that differ |
//! | --- | --- |
//! | Add, Sub, Mul, Div | before 7: no broadcasting, or with `broadcast=1` the second operand from `axis` on; 6, 13, 14 add types |
//! | Mod | 10, 13: floats need `fmod=1`; 28: `fmod=0` on floats is the floored remainder |
//! | Pow | before 7 as Add; from 12 on the exponent may have another type |
//! | Min, Max, Sum, Mean | before 8: equal shapes; from 8 on broadcast; 12, 13 add types |
//!
//! Integers wrap; integer quotients truncate. Not evaluated:
//! - integer division by 0, and of the smallest integer by −1, which overflows and crashes processes;
//! - integer powers that overflow or have a negative exponent: runtimes disagree;
//! - the remainder of −0 by a positive number from version 28 on: the standard leaves it open.

use std::sync::atomic::{AtomicBool, Ordering};

use super::kernel::{Lane, Reader, charge, charge_later, is_number, lanes, map_to, single, wrong_dtype, zip, zip_to};
use super::later::zip_later;
use super::remainder::{floor_remainder, is_nan};
use super::symbolic::Elements;
use super::{Meeting, common_dtype, equal_shapes, static_shapes, with_zipped};
use crate::dim::Dim;
use crate::ir::{Data, Fact, Scalar};
use crate::ops::broadcast::{Broadcast, broadcast_shapes};
use crate::ops::traits::{Commutes, Counting, NodeFacts, Traits, Variation, pair};
use crate::ops::{Decline, EvalCx, EvalResult, Event, EventKind, InferCx, InferResult, Operator, Refusal};
use crate::tensor::{DType, Number, Tensor};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Add", &[1, 6, 7, 13, 14], |cx| infer(cx, |e, a, b| e.add(a, b)), evaluate::<Add>)
        .with(Traits::broadcast(7).neutral(is_zero_of_sum).commuting(Commutes::Always).counts(sum).ordered(2)),
    Operator::new("Sub", &[1, 6, 7, 13, 14], |cx| infer(cx, |e, a, b| e.sub(a, b)), evaluate::<Sub>)
        .with(Traits::broadcast(7).neutral(is_zero_taken).counts(difference).ordered(2)),
    Operator::new("Mul", &[1, 6, 7, 13, 14], |cx| infer(cx, |e, a, b| e.mul(a, b)), evaluate::<Mul>)
        .with(Traits::broadcast(7).neutral(is_one).commuting(Commutes::Always).bilinear().counts(product).ordered(2)),
    Operator::new("Div", &[1, 6, 7, 13, 14], infer_div, evaluate::<Div>).with(
        Traits::broadcast(7)
            .neutral(is_one)
            .dividing_by(1)
            .fails_unless(divides)
            .needs(divisor_needs)
            .ordered(1)
            .showing_zero_sign(1),
    ),
    Operator::new("Mod", &[10, 13, 28], infer_mod, evaluate_mod)
        .with(Traits::broadcast(10).attributes(&["fmod"]).dividing_by(1).fails_unless(divides).needs(divisor_needs)),
    Operator::new("Pow", &[1, 7, 12, 13, 15], infer_pow, evaluate_pow).with(
        Traits::broadcast(7)
            .integers_since(12)
            .rounded()
            .by_scalar(Variation::Rounding, Variation::Values)
            .neutral(is_exponent_one)
            .showing_zero_sign(0),
    ),
    Operator::new(
        "Min",
        &[1, 6, 8, 12, 13],
        |cx| infer_variadic(cx, Some(|e, a, b| e.min(a, b))),
        |cx| fold::<Min>(cx, false),
    )
    .with(EXTREME),
    Operator::new(
        "Max",
        &[1, 6, 8, 12, 13],
        |cx| infer_variadic(cx, Some(|e, a, b| e.max(a, b))),
        |cx| fold::<Max>(cx, false),
    )
    .with(EXTREME),
    Operator::new(
        "Sum",
        &[1, 6, 8, 13],
        |cx| infer_variadic(cx, Some(|e, a, b| e.add(a, b))),
        |cx| fold::<Add>(cx, false),
    )
    .with(AVERAGE),
    Operator::new("Mean", &[1, 6, 8, 13], |cx| infer_variadic(cx, None), |cx| fold::<Add>(cx, true)).with(AVERAGE),
];

/// For two zeros, or a number and NaN, the result of kernels depends on the order of operands.
const EXTREME: Traits = Traits::broadcast(8)
    .integers_since(12)
    .by_scalar(Variation::Rounding, Variation::None)
    .commuting(Commutes::Integers)
    .variadic()
    .ordered(2);

const AVERAGE: Traits = Traits::broadcast(8).commuting(Commutes::Always).variadic();

/// `(o + Σ sₖ·iₖ) + (p + Σ tₖ·iₖ) = (o + p) + Σ (sₖ + tₖ)·iₖ`.
fn sum(view: &NodeFacts<'_>, shape: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>) -> Option<Counting> {
    let (a, b) = pair(view, shape, operand)?;
    a.plus(view.scope(), &b).unless_wrapped(view)
}

fn difference(view: &NodeFacts<'_>, shape: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>) -> Option<Counting> {
    let (a, b) = pair(view, shape, operand)?;
    a.plus(view.scope(), &b.scaled(view.scope(), &Dim::constant(-1))).unless_wrapped(view)
}

/// Returns the product of positions and one number. In narrow types, a product of two sizes may overflow.
fn product(view: &NodeFacts<'_>, shape: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>) -> Option<Counting> {
    let is_wide = view.result()?.dtype()? == DType::Int64;
    let (a, b) = pair(view, shape, operand)?;
    let (positions, factor) = match (a.is_splat(), b.is_splat()) {
        (_, true) => (a, b.offset),
        (true, false) => (b, a.offset),
        (false, false) => return None,
    };
    (is_wide || factor.as_const().is_some()).then(|| positions.scaled(view.scope(), &factor).unless_wrapped(view))?
}

/// Returns `true` for float division, or if the divisor is proved to be neither 0 nor −1: the smallest integer divided by −1
/// overflows. Nothing is proved without a divisor.
fn divides(view: &NodeFacts<'_>) -> bool {
    let is_apart = |dim: &Dim| view.at_least(dim, 1) || view.scope().le(dim, &Dim::constant(-2)).is_yes();
    match view.dtype(1) {
        Some(dtype) if dtype.is_float() => true,
        Some(_) => {
            let divisors = view.fact(1).and_then(Fact::ints);
            divisors.is_some_and(|divisors| !divisors.is_empty() && divisors.iter().all(is_apart))
        }
        None => false,
    }
}

/// An integer divisor is not 0, so a nonnegative divisor is at least 1.
fn divisor_needs(view: &NodeFacts<'_>) -> Vec<(Dim, i64)> {
    // An empty result divides nothing.
    let divides =
        |all: &Fact| all.dtype().is_some_and(DType::is_integer) && all.static_len().is_some_and(|len| len > 0);
    if !view.result().is_some_and(divides) {
        return Vec::new();
    }
    let size = |dim: &Dim| dim.as_const().is_none() && view.at_least(dim, 0);
    let divisors = view.fact(1).and_then(Fact::ints).unwrap_or_default();
    divisors.into_iter().filter(size).map(|dim| (dim, 1)).collect()
}

fn is_number_of(one: &Tensor, number: f64) -> bool {
    (one.dtype().is_float() || one.dtype().is_integer()) && one.to_f64s().is_some_and(|held| held == [number])
}

/// Returns `true` for integer 0 (`x + 0 = x`) and float −0 (`x + −0 = x`): `−0 + 0` is `0`.
fn is_zero_of_sum(_: DType, one: &Tensor) -> bool {
    is_number_of(one, 0.0)
        && (one.dtype().is_integer()
            || one.to_f64s().is_some_and(|held| held.iter().all(|zero| zero.is_sign_negative())))
}

/// Returns `true` for integer 0 and float +0, as `x − 0 = x`.
fn is_zero_taken(_: DType, one: &Tensor) -> bool {
    is_number_of(one, 0.0)
        && (one.dtype().is_integer()
            || one.to_f64s().is_some_and(|held| held.iter().all(|zero| zero.is_sign_positive())))
}

fn is_one(_: DType, one: &Tensor) -> bool {
    is_number_of(one, 1.0)
}

/// ONNX Runtime computes integer powers in doubles, which do not represent all integers.
fn is_exponent_one(base: DType, one: &Tensor) -> bool {
    base.is_float() && is_number_of(one, 1.0)
}

/// An operation on two symbolic elements.
type Symbolic = fn(&Elements<'_>, &Scalar, &Scalar) -> Scalar;

/// An operation on two numbers.
trait Operation: 'static {
    /// `true` for division: integer division by 0, and of the smallest integer by −1, has no result.
    const DIVIDES: bool = false;

    fn apply<T: Number>(a: T, b: T) -> T;
}

struct Add;
struct Sub;
struct Mul;
struct Div;
/// The remainder with the dividend's sign.
struct Remainder;
/// The remainder with the divisor's sign.
struct Modulo;
struct Min;
struct Max;

impl Operation for Add {
    fn apply<T: Number>(a: T, b: T) -> T {
        a.add(b)
    }
}

impl Operation for Sub {
    fn apply<T: Number>(a: T, b: T) -> T {
        a.sub(b)
    }
}

impl Operation for Mul {
    fn apply<T: Number>(a: T, b: T) -> T {
        a.mul(b)
    }
}

impl Operation for Div {
    const DIVIDES: bool = true;

    /// Callers exclude integers without a quotient.
    fn apply<T: Number>(a: T, b: T) -> T {
        a.div(b).unwrap_or(a)
    }
}

impl Operation for Remainder {
    const DIVIDES: bool = true;

    fn apply<T: Number>(a: T, b: T) -> T {
        a.rem(b).unwrap_or(a)
    }
}

impl Operation for Modulo {
    const DIVIDES: bool = true;

    fn apply<T: Number>(a: T, b: T) -> T {
        floor_remainder(a, b)
    }
}

impl Operation for Min {
    /// NaN wins; of equal operands (zeros of different sign), the first wins.
    fn apply<T: Number>(a: T, b: T) -> T {
        if a <= b || is_nan(a) { a } else { b }
    }
}

impl Operation for Max {
    /// Like [`Min`].
    fn apply<T: Number>(a: T, b: T) -> T {
        if a >= b || is_nan(a) { a } else { b }
    }
}

fn checked_number(dtype: Option<DType>) -> Result<Option<DType>, Refusal> {
    match dtype {
        Some(dtype) if !is_number(dtype) => Err(wrong_dtype(dtype).into()),
        dtype => Ok(dtype),
    }
}

fn infer(cx: &mut InferCx<'_>, symbolic: Symbolic) -> InferResult {
    let dtype = checked_number(common_dtype(cx, 0..2)?)?;
    infer_pair(cx, dtype, symbolic)
}

fn infer_pair(cx: &InferCx<'_>, dtype: Option<DType>, symbolic: Symbolic) -> InferResult {
    let (a, b) = (cx.required(0)?, cx.required(1)?);
    let meeting = Meeting::of(cx)?;
    let result = Fact::tensor(dtype, meeting.shape(cx.scope(), a.shape(), b.shape())?);
    let (Some(dtype), Some([a_shape, b_shape])) = (dtype, static_shapes([a, b])) else { return Ok(vec![result]) };
    let elements = Elements::new(cx.scope(), dtype);
    let way = meeting.way(&a_shape, &b_shape).ok();
    Ok(vec![with_zipped(result, [a, b], way, |[a, b]| symbolic(&elements, a, b))])
}

fn infer_div(cx: &mut InferCx<'_>) -> InferResult {
    note_zero_divisor(cx);
    infer(cx, |elements, a, b| elements.div(a, b))
}

/// Records that integer division by 0 fails if the node runs and has elements. ONNX Runtime rejects a constant divisor of 0 at
/// load time, so a computed one must not be folded.
fn note_zero_divisor(cx: &mut InferCx<'_>) {
    let Some(divisor) = cx.input(1).filter(|fact| fact.dtype().is_some_and(DType::is_integer)) else { return };
    let has_zero = match divisor.data().and_then(Data::tensor) {
        Some(tensor) => tensor.every_i64(|divisor| divisor != 0) == Some(false),
        None => divisor.elements().is_some_and(|held| held.iter().any(|element| element.as_const_int() == Some(0))),
    };
    if has_zero {
        let reason = "an integer is divided by zero".to_string();
        cx.walk.events.push(Event { node: cx.id, kind: EventKind::Disputed, reason });
    }
}

fn infer_mod(cx: &mut InferCx<'_>) -> InferResult {
    note_zero_divisor(cx);
    let dtype = checked_number(common_dtype(cx, 0..2)?)?;
    let truncated = cx.attr_flag("fmod", false)?;
    if !truncated && cx.version < 28 && dtype.is_some_and(DType::is_float) {
        return Err(Refusal::invalid("Mod of floating-point numbers needs fmod=1 before version 28"));
    }
    match truncated {
        true => infer_pair(cx, dtype, |elements, a, b| elements.modulo(a, b, true)),
        false => infer_pair(cx, dtype, |elements, a, b| elements.modulo(a, b, false)),
    }
}

fn infer_pow(cx: &mut InferCx<'_>) -> InferResult {
    let dtype = if cx.version < 12 { common_dtype(cx, 0..2)? } else { cx.dtype(0) };
    infer_pair(cx, checked_number(dtype)?, |e, a, b| e.pow(a, b))
}

fn infer_variadic(cx: &mut InferCx<'_>, symbolic: Option<Symbolic>) -> InferResult {
    let count = cx.input_count();
    let first = cx.required(0)?;
    let dtype = checked_number(common_dtype(cx, 0..count)?)?;
    let operands = (0..count).map(|i| cx.required(i)).collect::<Result<Vec<_>, _>>()?;
    let shapes: Option<Vec<&[Dim]>> = operands.iter().map(|operand| operand.shape()).collect();
    let shape = match shapes {
        _ if cx.version < 8 => equal_shapes(cx.scope(), operands.iter().filter_map(|operand| operand.shape()))?,
        Some(shapes) => Some(broadcast_shapes(cx.scope(), &shapes)?),
        None => None,
    };
    let result = Fact::tensor(dtype, shape);
    let (Some(dtype), Some(symbolic)) = (dtype, symbolic) else { return Ok(vec![result]) };
    if operands.iter().all(|operand| operand.data().is_some()) {
        return Ok(vec![result]);
    }
    let elements = Elements::new(cx.scope(), dtype);
    let mut sum = first.clone();
    for &operand in operands.iter().skip(1) {
        let Some([a, b]) = static_shapes([&sum, operand]) else { return Ok(vec![result]) };
        let Some(way) = Broadcast::new([&a, &b]) else { return Ok(vec![result]) };
        let shape = way.shape().iter().map(|&dim| i64::try_from(dim).ok().map(Dim::constant)).collect();
        let partial = Fact::tensor(Some(dtype), shape);
        // Two constants among several operands are never evaluated alone, so infer their elements here.
        let both = [&sum, operand].map(|fact| match super::scalars(fact) {
            Some(elements) => Fact { content: None, ..fact.clone() }.with_elements(elements),
            None => fact.clone(),
        });
        sum = with_zipped(partial, [&both[0], &both[1]], Some(way), |[a, b]| symbolic(&elements, a, b));
    }
    Ok(vec![Fact { content: sum.content, ..result }])
}

fn evaluate<O: Operation>(cx: &mut EvalCx<'_>) -> EvalResult {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let way = Meeting::of(cx)?.way(a.shape(), b.shape())?;
    single(combined::<O>(cx, &way, a, b)?)
}

/// Applies the operation to each pair of elements.
fn combined<O: Operation>(cx: &EvalCx<'_>, way: &Broadcast<2>, a: &Tensor, b: &Tensor) -> Result<Tensor, Decline> {
    if a.dtype() != b.dtype() {
        return Err(Decline::invalid(format!("the operands' element types differ: {} and {}", a.dtype(), b.dtype())));
    }
    let later = charge_later(cx, a.dtype(), way.shape(), 1)?;
    lanes!(a.dtype(), T => combined_in::<O, T>(later, a.dtype(), way, a, b), else => Err(wrong_dtype(a.dtype())))
}

fn combined_in<O: Operation, T: Lane>(
    later: bool,
    dtype: DType,
    way: &Broadcast<2>,
    a: &Tensor,
    b: &Tensor,
) -> Result<Tensor, Decline> {
    if O::DIVIDES && !T::FLOAT && !way.is_empty() {
        let (a, b) = (Reader::<T>::of(a)?, Reader::<T>::of(b)?);
        if b.contains(T::zero()) {
            return Err(Decline::unsupported("an integer is divided by zero"));
        }
        let minus_one = T::zero().sub(T::one());
        #[allow(clippy::disallowed_methods, reason = "a number of bytes")]
        let least = T::from_i64(i64::MIN >> (64 - 8 * size_of::<T>().clamp(1, 8)));
        if minus_one < T::zero() && b.contains(minus_one) && a.contains(least) {
            return Err(Decline::unsupported("the smallest integer is divided by −1, which overflows"));
        }
    }
    zip_later(later, dtype, way, (a, b), O::apply::<T>)
}

/// Returns `true` if binary64 represents each integer.
fn exact(values: &[i64]) -> bool {
    values.iter().all(|value| value.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS)
}

fn evaluate_mod(cx: &mut EvalCx<'_>) -> EvalResult {
    let truncated = cx.attr_flag("fmod", false)?;
    let is_float = cx.tensor(0)?.dtype().is_float();
    if !is_float {
        // Runtimes compute truncated remainders with `fmod`, which has 53 bits.
        let wide = |i| Ok::<bool, Decline>(truncated && !cx.tensor(i)?.to_i64s().is_some_and(|values| exact(&values)));
        if wide(0)? || wide(1)? {
            return Err(Decline::unsupported(
                "runtimes compute different remainders of integers with more than 53 bits",
            ));
        }
        return if truncated { evaluate::<Remainder>(cx) } else { evaluate::<Modulo>(cx) };
    }
    if !truncated {
        if cx.version < 28 {
            return Err(Decline::invalid("Mod of floating-point numbers needs fmod=1 before version 28"));
        }
        return evaluate::<Modulo>(cx);
    }
    let zeros_agree = cx.version < 28
        || cx
            .tensor(0)?
            .to_f64s()
            .is_some_and(|values| values.iter().all(|value| *value != 0.0 || value.is_sign_positive()));
    if !zeros_agree {
        return Err(Decline::unsupported("the standard does not define the sign of a result that is zero"));
    }
    evaluate::<Remainder>(cx)
}

/// Folds all operands from the left; `mean` finally divides by their number.
fn fold<O: Operation>(cx: &mut EvalCx<'_>, mean: bool) -> EvalResult {
    let dtype = cx.tensor(0)?.dtype();
    if mean && !dtype.is_float() {
        return Err(wrong_dtype(dtype));
    }
    single(lanes!(dtype, T => folded::<O, T>(cx, mean)?, else => return Err(wrong_dtype(dtype))))
}

fn folded<O: Operation, T: Lane>(cx: &EvalCx<'_>, mean: bool) -> Result<Tensor, Decline> {
    let first = cx.tensor(0)?;
    let dtype = first.dtype();
    let meeting = if cx.version < 8 { Meeting::Equal } else { Meeting::Broadcast };
    let count = cx.input_count();
    // Intermediate results are not rounded.
    let mut result = first.clone();
    for i in 1..count {
        let operand = cx.tensor(i)?;
        if operand.dtype() != dtype {
            return Err(Decline::invalid("the operands' element types differ"));
        }
        let way = meeting.way(result.shape(), operand.shape())?;
        charge(cx, T::DTYPE, way.shape(), 1)?;
        result = combined_in::<O, T>(false, T::DTYPE, &way, &result, operand)?;
    }
    if mean {
        let count = T::from_f64(count as f64).ok_or_else(|| wrong_dtype(dtype))?;
        return map_to::<T>(dtype, &result, |sum| sum.div(count).unwrap_or(sum));
    }
    if result.dtype() == dtype { Ok(result) } else { map_to::<T>(dtype, &result, |x| x) }
}

/// Evaluates Pow: the result has the base's type; the exponent may have any numeric type.
fn evaluate_pow(cx: &mut EvalCx<'_>) -> EvalResult {
    let (base, exponent) = (cx.tensor(0)?, cx.tensor(1)?);
    let way = Meeting::of(cx)?.way(base.shape(), exponent.shape())?;
    let dtype = base.dtype();
    if !is_number(dtype) || !is_number(exponent.dtype()) {
        return Err(wrong_dtype(if is_number(dtype) { exponent.dtype() } else { dtype }));
    }
    charge(cx, dtype, way.shape(), 64)?;
    let exponents = exponent.to_f64s().ok_or_else(|| wrong_dtype(exponent.dtype()))?;
    if exponent.dtype().is_integer() && exponents.iter().any(|exponent| exponent.abs() >= (1u64 << 53) as f64) {
        // Some of these integers are inexact in binary64, so their parity is lost.
        return Err(Decline::unsupported("an integer exponent has more than 53 bits"));
    }
    let exponents = Reader::at_hand(&exponents);
    single(match dtype {
        DType::Double => zip_to(dtype, &way, &Reader::<f64>::of(base)?, &exponents, float_power)?,
        dtype if dtype.is_float() => {
            let power = |base: f32, exponent: f64| float_power(f64::from(base), exponent) as f32;
            zip_to(dtype, &way, &Reader::of(base)?, &exponents, power)?
        }
        dtype => lanes!(dtype, T => {
            Tensor::from_vec(way.shape(), integer_powers(&way, &Reader::<T>::of(base)?, &exponents)?)?
        }, else => return Err(wrong_dtype(dtype))),
    })
}

/// Computes a power. Squares are common, and a product is rounded once while `pow` may be off by an ulp.
fn float_power(base: f64, exponent: f64) -> f64 {
    if exponent == 2.0 { base * base } else { libm::pow(base, exponent) }
}

fn integer_powers<T: Number>(
    way: &Broadcast<2>,
    bases: &Reader<'_, T>,
    exponents: &Reader<'_, f64>,
) -> Result<Vec<T>, Decline> {
    let failed = AtomicBool::new(false);
    let powers = zip(way, bases, exponents, |base, exponent| {
        // Runtimes compute powers in doubles, which do not represent all larger integers.
        let power = base.to_i64().and_then(|base| integer_power(base, exponent)).filter(|power| exact(&[*power]));
        let narrow = power.map(|power| (power, T::from_i64(power)));
        match narrow {
            Some((power, narrow)) if narrow.to_i64() == Some(power) => narrow,
            _ => {
                failed.store(true, Ordering::Relaxed);
                base
            }
        }
    });
    if failed.into_inner() {
        return Err(Decline::unsupported(
            "a power of integers has more than 53 bits or a negative exponent, for which runtimes disagree",
        ));
    }
    Ok(powers)
}

/// Returns the power, if it is defined and fits.
fn integer_power(base: i64, exponent: f64) -> Option<i64> {
    if !exponent.is_finite() {
        return None;
    }
    if exponent.fract() != 0.0 {
        // A fractional exponent: the result is truncated, as in a cast from floating point.
        let exact = base.unsigned_abs() < 1 << 53;
        return exact.then(|| libm::pow(base as f64, exponent).trunc()).and_then(<i64 as Number>::from_f64);
    }
    match base {
        1 => Some(1),
        -1 if exponent % 2.0 != 0.0 => Some(-1),
        -1 => Some(1),
        0 if exponent > 0.0 => Some(0),
        _ if (0.0..=64.0).contains(&exponent) => base.checked_pow(exponent as u32),
        _ => None,
    }
}
