//! Comparisons and logic: Equal, Less, Greater, LessOrEqual, GreaterOrEqual; And, Or, Xor, Not.
//!
//! | operators | versions that differ |
//! | --- | --- |
//! | Equal | 1, 7: integers and bool; 11 adds the other numbers, 13 `bfloat16`, 19 strings |
//! | Less, Greater | 1, 7: floats; 9 adds integers, 13 `bfloat16` |
//! | LessOrEqual, GreaterOrEqual | 12; 16 adds `bfloat16` |
//! | And, Or, Xor | bool only |
//!
//! Before version 7, the second operand broadcasts only by attribute, as in Add. Comparisons with NaN are false, and zeros of
//! either sign are equal. Undecided booleans become fresh symbols with the bounds 0 and 1.

use super::kernel::{Reader, charge, lanes, map, single, wrong_dtype, zip};
use super::symbolic::{Elements, Relation};
use super::{Meeting, common_dtype, static_shapes, with_mapped, with_zipped};
use crate::dim::{Answer, Dim, Scope};
use crate::ir::{Fact, Scalar};
use crate::ops::traits::{Commutes, Counting, NodeFacts, Traits, pair};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator};
use crate::tensor::{Bool, DType, Tensor};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new(
        "Equal",
        &[1, 7, 11, 13, 19],
        |cx| infer_comparison(cx, Relation::Equal, false),
        |cx| evaluate_comparison(cx, Relation::Equal, false),
    )
    .with(comparison(7, 7).commuting(Commutes::Always)),
    Operator::new(
        "Less",
        &[1, 7, 9, 13],
        |cx| infer_comparison(cx, Relation::Less, false),
        |cx| evaluate_comparison(cx, Relation::Less, false),
    )
    .with(comparison(7, 9).ordered(2)),
    Operator::new(
        "Greater",
        &[1, 7, 9, 13],
        |cx| infer_comparison(cx, Relation::Less, true),
        |cx| evaluate_comparison(cx, Relation::Less, true),
    )
    .with(comparison(7, 9).ordered(2)),
    Operator::new(
        "LessOrEqual",
        &[12, 16],
        |cx| infer_comparison(cx, Relation::LessOrEqual, false),
        |cx| evaluate_comparison(cx, Relation::LessOrEqual, false),
    )
    .with(comparison(12, 12).ordered(2)),
    Operator::new(
        "GreaterOrEqual",
        &[12, 16],
        |cx| infer_comparison(cx, Relation::LessOrEqual, true),
        |cx| evaluate_comparison(cx, Relation::LessOrEqual, true),
    )
    .with(comparison(12, 12).ordered(2)),
    Operator::new("And", &[1, 7], |cx| infer_logic(cx, and), |cx| evaluate_logic(cx, |a, b| a && b))
        .with(Traits::broadcast(7).neutral(is_true).commuting(Commutes::Always).counts(conjunction).giving_flags()),
    Operator::new("Or", &[1, 7], |cx| infer_logic(cx, or), |cx| evaluate_logic(cx, |a, b| a || b))
        .with(Traits::broadcast(7).neutral(is_false).commuting(Commutes::Always).counts(disjunction).giving_flags()),
    Operator::new("Xor", &[1, 7], |cx| infer_logic(cx, xor), |cx| evaluate_logic(cx, |a, b| a != b))
        .with(Traits::broadcast(7).neutral(is_false).commuting(Commutes::Always).giving_flags()),
    Operator::new("Not", &[1], infer_not, evaluate_not).with(Traits::function().counts(negation).giving_flags()),
];

const fn comparison(since: i64, integers_since: i64) -> Traits {
    Traits::broadcast(since).integers_since(integers_since).ignoring_zero_sign().counts(compared).giving_flags()
}

/// Returns a constant flag if the comparison has the same result for all elements.
fn compared(view: &NodeFacts<'_>, shape: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>) -> Option<Counting> {
    let (a, b) = pair(view, shape, operand)?;
    let difference = a.plus(view.scope(), &b.scaled(view.scope(), &Dim::constant(-1)));
    let decided = decided(view.scope(), &view.node.op_type, &difference)?;
    Some(Counting::splat(shape.to_vec(), Dim::constant(i64::from(decided))))
}

/// Returns the result of comparing a difference with 0, if it is the same everywhere.
fn decided(scope: &Scope, operator: &str, difference: &Counting) -> Option<bool> {
    let (low, high) = difference.bounds(scope)?;
    let zero = Dim::constant(0);
    let (ge, gt) = (scope.ge(&low, &zero).is_yes(), scope.gt(&low, &zero).is_yes());
    let (le, lt) = (scope.le(&high, &zero).is_yes(), scope.lt(&high, &zero).is_yes());
    match operator {
        "Equal" if ge && le => Some(true),
        "Equal" if gt || lt => Some(false),
        "Less" if lt => Some(true),
        "Less" if ge => Some(false),
        "LessOrEqual" if le => Some(true),
        "LessOrEqual" if gt => Some(false),
        "Greater" if gt => Some(true),
        "Greater" if le => Some(false),
        "GreaterOrEqual" if ge => Some(true),
        "GreaterOrEqual" if lt => Some(false),
        _ => None,
    }
}

fn conjunction(_: &NodeFacts<'_>, shape: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>) -> Option<Counting> {
    combined(shape, operand, 0)
}

fn disjunction(_: &NodeFacts<'_>, shape: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>) -> Option<Counting> {
    combined(shape, operand, 1)
}

/// Returns the constant result of And or Or; an operand equal to `absorbing` determines it alone.
fn combined(shape: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>, absorbing: i64) -> Option<Counting> {
    let absorbing = Dim::constant(absorbing);
    let flag = |slot| operand(slot).filter(Counting::is_splat).map(|flag| flag.offset);
    let (a, b) = (flag(0), flag(1));
    if a.as_ref() == Some(&absorbing) || b.as_ref() == Some(&absorbing) {
        return Some(Counting::splat(shape.to_vec(), absorbing));
    }
    let other = Dim::constant(1 - absorbing.as_const()?);
    (a? == b?).then(|| Counting::splat(shape.to_vec(), other))
}

fn negation(_: &NodeFacts<'_>, shape: &[Dim], operand: &dyn Fn(usize) -> Option<Counting>) -> Option<Counting> {
    let flag = operand(0).filter(Counting::is_splat)?.offset.as_const()?;
    Some(Counting::splat(shape.to_vec(), Dim::constant(i64::from(flag == 0))))
}

fn is_true(_: DType, one: &Tensor) -> bool {
    one.dtype() == DType::Bool && one.to_i64s().is_some_and(|held| held == [1])
}

fn is_false(_: DType, one: &Tensor) -> bool {
    one.dtype() == DType::Bool && one.to_i64s().is_some_and(|held| held == [0])
}

/// Infers the relation of operand 0 to operand 1; with `turned`, of operand 1 to operand 0.
fn infer_comparison(cx: &mut InferCx<'_>, relation: Relation, turned: bool) -> InferResult {
    let dtype = common_dtype(cx, 0..2)?;
    infer_pair(cx, |elements, a, b| {
        let (a, b) = if turned { (b, a) } else { (a, b) };
        elements.compare(relation, a, b).map_or(Scalar::Unknown, |answer| elements.truth(answer))
    })
    .map(|facts| match dtype {
        // String elements have no symbolic form.
        Some(DType::String) => facts.into_iter().map(|fact| Fact { content: None, ..fact }).collect(),
        _ => facts,
    })
}

fn infer_pair(cx: &InferCx<'_>, symbolic: impl Fn(&Elements<'_>, &Scalar, &Scalar) -> Scalar) -> InferResult {
    let (a, b) = (cx.required(0)?, cx.required(1)?);
    let meeting = Meeting::of(cx)?;
    let result = Fact::tensor(Some(DType::Bool), meeting.shape(cx.scope(), a.shape(), b.shape())?);
    let Some([a_shape, b_shape]) = static_shapes([a, b]) else { return Ok(vec![result]) };
    let elements = Elements::new(cx.scope(), DType::Bool);
    let way = meeting.way(&a_shape, &b_shape).ok();
    Ok(vec![with_zipped(result, [a, b], way, |[a, b]| symbolic(&elements, a, b))])
}

fn evaluate_comparison(cx: &mut EvalCx<'_>, relation: Relation, turned: bool) -> EvalResult {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    if a.dtype() != b.dtype() {
        return Err(Decline::invalid(format!("the operands' element types differ: {} and {}", a.dtype(), b.dtype())));
    }
    let way = Meeting::of(cx)?.way(a.shape(), b.shape())?;
    charge(cx, DType::Bool, way.shape(), 1)?;
    let equal = relation == Relation::Equal;
    if let (Some(a), Some(b), true) = (a.strings(), b.strings(), equal) {
        let pairs = way.positions();
        let flags: Vec<bool> = pairs.into_iter().map(|[i, j]| a.get(i) == b.get(j)).collect();
        return single(Tensor::from_bools(way.shape(), &flags)?);
    }
    if equal && a.dtype() == DType::Bool {
        let (a, b) = (Reader::<Bool>::of(a)?, Reader::<Bool>::of(b)?);
        return single(Tensor::from_vec(way.shape(), zip(&way, &a, &b, |a, b| Bool::from(a == b)))?);
    }
    single(lanes!(a.dtype(), T => {
        let (a, b) = (Reader::<T>::of(a)?, Reader::<T>::of(b)?);
        let flags = match (relation, turned) {
            (Relation::Equal, _) => zip(&way, &a, &b, |a: T, b: T| Bool::from(a == b)),
            (Relation::Less, false) => zip(&way, &a, &b, |a: T, b: T| Bool::from(a < b)),
            (Relation::Less, true) => zip(&way, &a, &b, |a: T, b: T| Bool::from(a > b)),
            (Relation::LessOrEqual, false) => zip(&way, &a, &b, |a: T, b: T| Bool::from(a <= b)),
            (Relation::LessOrEqual, true) => zip(&way, &a, &b, |a: T, b: T| Bool::from(a >= b)),
        };
        Tensor::from_vec(way.shape(), flags)?
    }, else => return Err(wrong_dtype(a.dtype()))))
}

fn check_bool(dtype: Option<DType>) -> Result<(), Decline> {
    match dtype {
        Some(dtype) if dtype != DType::Bool => Err(wrong_dtype(dtype)),
        _ => Ok(()),
    }
}

fn infer_logic(cx: &mut InferCx<'_>, symbolic: fn(&Elements<'_>, &Scalar, &Scalar) -> Scalar) -> InferResult {
    check_bool(common_dtype(cx, 0..2)?)?;
    infer_pair(cx, symbolic)
}

/// Returns `true` if an element is this constant.
fn is(element: &Scalar, value: i64) -> bool {
    element.as_const_int() == Some(value)
}

/// For booleans, `a ∧ b = min(a, b)`; a false operand determines the result.
fn and(elements: &Elements<'_>, a: &Scalar, b: &Scalar) -> Scalar {
    if is(a, 0) || is(b, 0) { Scalar::Int(0.into()) } else { elements.min(a, b) }
}

/// For booleans, `a ∨ b = max(a, b)`; a true operand determines the result.
fn or(elements: &Elements<'_>, a: &Scalar, b: &Scalar) -> Scalar {
    if is(a, 1) || is(b, 1) { Scalar::Int(1.into()) } else { elements.max(a, b) }
}

/// Exclusive or of booleans: `true` if they differ.
fn xor(elements: &Elements<'_>, a: &Scalar, b: &Scalar) -> Scalar {
    match (a, b) {
        (Scalar::Int(a), b) if a.is_const(0) => b.clone(),
        (a, Scalar::Int(b)) if b.is_const(0) => a.clone(),
        (Scalar::Int(a), b) if a.is_const(1) => not(elements, b),
        (a, Scalar::Int(b)) if b.is_const(1) => not(elements, a),
        (Scalar::Int(a), Scalar::Int(b)) => match elements.scope().eq(a, b) {
            Answer::Yes => elements.truth(Answer::No),
            Answer::No => elements.truth(Answer::Yes),
            Answer::Unknown => elements.truth(Answer::Unknown),
        },
        _ => Scalar::Unknown,
    }
}

/// For booleans, `¬a = 1 − a`.
fn not(elements: &Elements<'_>, a: &Scalar) -> Scalar {
    match a {
        Scalar::Int(a) => elements.int(elements.scope().sub(&Dim::constant(1), a)),
        _ => Scalar::Unknown,
    }
}

fn evaluate_logic(cx: &mut EvalCx<'_>, operation: fn(bool, bool) -> bool) -> EvalResult {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let way = Meeting::of(cx)?.way(a.shape(), b.shape())?;
    charge(cx, DType::Bool, way.shape(), 1)?;
    let (a, b) = (Reader::<Bool>::of(a)?, Reader::<Bool>::of(b)?);
    let flags = zip(&way, &a, &b, |a: Bool, b: Bool| Bool::from(operation(a.get(), b.get())));
    single(Tensor::from_vec(way.shape(), flags)?)
}

fn infer_not(cx: &mut InferCx<'_>) -> InferResult {
    let operand = cx.required(0)?;
    check_bool(operand.dtype())?;
    let result = Fact::tensor(Some(DType::Bool), operand.shape().map(<[_]>::to_vec));
    let elements = Elements::new(cx.scope(), DType::Bool);
    Ok(vec![with_mapped(result, operand, |element| not(&elements, element))])
}

fn evaluate_not(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    charge(cx, DType::Bool, x.shape(), 1)?;
    single(Tensor::from_vec(x.shape(), map(&Reader::<Bool>::of(x)?, x.len(), |x: Bool| Bool::from(!x.get())))?)
}
