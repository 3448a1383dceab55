//! Range: numbers with equal distances.
//!
//! | version | difference |
//! | --- | --- |
//! | 11 | float, double, int16, int32, int64 |
//! | 27 | float16 and bfloat16, computed in float (`stash_type` 1) |
//!
//! The length is `max(0, ceil((limit − start) / delta))`, element `i` is `start + i·delta`.
//!
//! Refused: operands with another number of elements than one, a delta of 0, NaN. Kept: lengths that depend on the precision of the
//! quotient, which the standard does not define; a `stash_type` other than float.

use super::moves;
use crate::tensor::threads;

use crate::dim::{Dim, Law, Scope};
use crate::ir::{Data, Fact, MAX_ELEMENTS, Scalar};
use crate::ops::traits::Traits;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal};
use crate::tensor::{DType, Element, Number, Tensor, dispatch_numeric};

pub(in crate::ops) const OPERATORS: &[Operator] = &[Operator::new("Range", &[11, 27], infer, eval)
    .with(Traits::NONE.counts(moves::range_counts).inferred_by_contents(0))];

/// Returns the element of an operand, as far as it is known.
fn element(cx: &InferCx<'_>, i: usize) -> Result<Scalar, Refusal> {
    let fact = cx.required(i)?;
    match fact.static_len() {
        Some(length) if length != 1 => Err(Refusal::invalid(format!("operand {i} has {length} elements instead of 1"))),
        _ => Ok(fact.elements().and_then(|elements| elements.first().cloned()).unwrap_or(Scalar::Unknown)),
    }
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let delta = element(cx, 2)?;
    count(cx, delta)
}

/// The same with an optional delta that defaults to 1, as `com.microsoft` has it.
pub(in crate::ops) fn infer_optional_delta(cx: &mut InferCx<'_>) -> InferResult {
    let delta = match cx.has_input(2) {
        true => element(cx, 2)?,
        false if cx.dtype(0).or(cx.dtype(1)).is_some_and(DType::is_integer) => Scalar::Int(Dim::constant(1)),
        false => Scalar::Float(1.0),
    };
    count(cx, delta)
}

fn count(cx: &InferCx<'_>, delta: Scalar) -> InferResult {
    let dtype = (0..3).find_map(|at| cx.dtype(at));
    let (start, limit) = (element(cx, 0)?, element(cx, 1)?);
    let scope = cx.scope();
    let length = match (&start, &limit, &delta) {
        (Scalar::Int(start), Scalar::Int(limit), Scalar::Int(delta)) => {
            if delta.is_const(0) {
                return Err(Refusal::invalid("the operand 'delta' is 0"));
            }
            int_length(scope, start, limit, delta)
        }
        _ => float_length(scope, &start, &limit, &delta),
    };
    let Some(length) = length else { return Ok(vec![Fact::tensor(dtype, Some(vec![cx.fresh_dim()]))]) };
    let known =
        length.as_const().and_then(|length| usize::try_from(length).ok()).filter(|&length| length <= MAX_ELEMENTS);
    let fact = Fact::tensor(dtype, Some(vec![length]));
    let (Scalar::Int(start), Scalar::Int(delta), Some(known)) = (start, delta, known) else { return Ok(vec![fact]) };
    let step = |at: usize| scope.add(&start, &scope.mul(&Dim::constant(at as i64), &delta));
    let elements = (0..known).map(|at| Scalar::Int(step(at))).collect();
    Ok(vec![fact.with_elements(elements)])
}

/// Returns the length over integers, if the sign of the delta is known: no run succeeds with a delta of 0.
fn int_length(scope: &Scope, start: &Dim, limit: &Dim, delta: &Dim) -> Option<Dim> {
    let (zero, one) = (Dim::constant(0), Dim::constant(1));
    let count = if scope.ge(delta, &zero).is_yes() {
        scope.ceil_div(&scope.sub(limit, start), &scope.max(delta, &one))
    } else if scope.le(delta, &zero).is_yes() {
        scope.ceil_div(&scope.sub(start, limit), &scope.max(&scope.neg(delta), &one))
    } else {
        return None;
    };
    Some(scope.max(&zero, &count))
}

/// Returns the length over floats with a power of two as delta that start at 0, or are whole at both ends. Every way to compute the
/// quotient is then exact, if the difference is.
fn float_length(scope: &Scope, start: &Scalar, limit: &Scalar, delta: &Scalar) -> Option<Dim> {
    const EXACT: i64 = 1 << 24;
    let (start, start_den) = ratio(start)?;
    let (limit, limit_den) = ratio(limit)?;
    let (delta, delta_den) = ratio(delta)?;
    let delta = delta.as_const()?;
    // The difference of whole numbers that a float represents is representable.
    let whole = |num: &Dim, den: i64| den == 1 && num.as_const().is_none_or(|num| num.unsigned_abs() < 1 << 23);
    let exact = start.is_const(0) || whole(&start, start_den) && whole(&limit, limit_den);
    if !exact || !delta.unsigned_abs().is_power_of_two() {
        return None;
    }
    // (limit − start)/limit_den ÷ delta/delta_den
    let distance = scope.sub(&limit, &start);
    let num = scope.mul(&distance, &Dim::constant(delta_den.checked_mul(delta.signum())?));
    let den = limit_den.checked_mul(i64::try_from(delta.unsigned_abs()).ok()?)?;
    let length = scope.max(&Dim::constant(0), &scope.ceil_div(&num, &Dim::constant(den)));
    if start.is_const(0) || scope.trusts() || scope.lies_within(&distance, -EXACT, EXACT) {
        return Some(length);
    }
    let law = Law { name: "range", parameter: den, reach: EXACT };
    Some(scope.assumed(law, vec![distance, num], Some(scope.nominal(&length)), (Some(0), None)))
}

/// Returns the exact value as a fraction whose denominator is a power of two.
fn ratio(scalar: &Scalar) -> Option<(Dim, i64)> {
    match scalar {
        Scalar::Real { num, den } => Some((num.clone(), *den)),
        Scalar::Float(value) => {
            let den = (0..=30).map(|bits| 1i64 << bits).find(|&den| (value * den as f64).fract() == 0.0)?;
            let num = value * den as f64;
            (num.abs() < 9.0e15).then(|| (Dim::constant(num as i64), den))
        }
        _ => None,
    }
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let (start, limit, delta) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let dtype = start.dtype();
    if [start, limit, delta].iter().any(|operand| operand.len() != 1 || operand.dtype() != dtype) {
        return Err(Decline::invalid("'start', 'limit' and 'delta' are not single elements of one type"));
    }
    if matches!(dtype, DType::Float16 | DType::Bfloat16) && cx.attr_int("stash_type")?.unwrap_or(1) != 1 {
        return Err(Decline::unsupported("attribute 'stash_type' is not float"));
    }
    let ints = [start, limit, delta].map(Tensor::to_i64s).map(|ints| ints.and_then(|ints| ints.first().copied()));
    if let [Some(start), Some(limit), Some(delta)] = ints {
        let length = int_count(start, limit, delta)?;
        cx.claim(dtype, &[length])?;
        let result = dispatch_numeric!(dtype, T => {
            // All elements are between start and limit, and so in the range of the type.
            let values = counted(length, &|base, at| {
                let distance = (base as i64).wrapping_add(at.into()).wrapping_mul(delta);
                <T as Number>::from_i64(start.wrapping_add(distance))
            });
            Tensor::from_vec(&[length], values)?
        }, else => return Err(Decline::unsupported(format!("a Range of {dtype} is not supported"))));
        return Ok(vec![Data::Tensor(result)]);
    }
    let unsupported = || Decline::unsupported(format!("a Range of {dtype} is not supported"));
    let floats =
        [start, limit, delta].map(Tensor::to_f64s).map(|floats| floats.and_then(|floats| floats.first().copied()));
    let [Some(start), Some(limit), Some(delta)] = floats else { return Err(unsupported()) };
    let single = dtype != DType::Double;
    let length = float_count(start, limit, delta, single)?;
    cx.claim(dtype, &[length])?;
    cx.budget().take_work(length as u64)?;
    if !is_sum(start, delta, length, single) {
        return Err(Decline::unsupported(
            "runtimes round differently: some add 'delta' repeatedly, and others multiply 'delta' by the position",
        ));
    }
    let result = dispatch_numeric!(dtype, T => {
        let values = counted(length, &|base, at| {
            let value = start + (base as f64 + f64::from(at)) * delta;
            <T as Number>::from_f64(if single { f64::from(value as f32) } else { value }).unwrap_or(<T as Number>::zero())
        });
        Tensor::from_vec(&[length], values)?
    }, else => return Err(unsupported()));
    Ok(vec![Data::Tensor(result)])
}

/// Returns `true` if repeated addition of the step, as in ONNX Runtime, gives exactly the results of the standard's multiplication, rounded
/// once or after each operation.
fn is_sum(start: f64, delta: f64, length: usize, single: bool) -> bool {
    let rounded = |value: f64| if single { f64::from(value as f32) } else { value };
    let mut sum = start;
    (0..length).all(|at| {
        let product = at as f64 * delta;
        let same = rounded(start + product) == sum && rounded(start + rounded(product)) == sum;
        sum = rounded(sum + delta);
        same
    })
}

/// Returns `length` elements, each computed from its index: the begin of its piece, and the offset in the piece.
fn counted<T: Element>(length: usize, each: &(impl Fn(usize, i32) -> T + Sync)) -> Vec<T> {
    const PIECE: usize = 1 << 16;
    let mut values = vec![T::zeroed(); length];
    let fill = |(piece, out): (usize, &mut [T])| {
        out.iter_mut().zip(0..).for_each(|(out, at)| *out = each(piece * PIECE, at));
    };
    if length > 4 * PIECE {
        threads::for_each(values.chunks_mut(PIECE).enumerate(), fill);
    } else {
        values.chunks_mut(PIECE).enumerate().for_each(fill);
    }
    values
}

fn int_count(start: i64, limit: i64, delta: i64) -> Result<usize, Decline> {
    if delta == 0 {
        return Err(Decline::invalid("the operand 'delta' is 0"));
    }
    let (distance, step) = (i128::from(limit) - i128::from(start), i128::from(delta));
    // For this sign of the step the quotient is positive, and rounding it up adds the rest of a step.
    let (distance, step) = if step < 0 { (-distance, -step) } else { (distance, step) };
    let count = if distance <= 0 { 0 } else { (distance - 1) / step + 1 };
    usize::try_from(count).map_err(|_| {
        Decline::OverBudget(format!("the result would have {count} elements, which exceed the address space"))
    })
}

fn float_count(start: f64, limit: f64, delta: f64, single: bool) -> Result<usize, Decline> {
    if delta == 0.0 || !(limit - start).is_finite() || delta.is_nan() {
        return Err(Decline::invalid(format!(
            "'start', 'limit' and 'delta' are {start}, {limit} and {delta}, which give no valid length"
        )));
    }
    let exact = ((limit - start) / delta).ceil();
    if exact >= 1e15 {
        return Err(Decline::OverBudget(format!(
            "the result would have {exact} elements, which exceed the address space"
        )));
    }
    if single {
        // Runtimes subtract, and some also divide, in the operands' own precision.
        let distance = limit as f32 - start as f32;
        let (mixed, own) = ((f64::from(distance) / delta).ceil(), f64::from((distance / delta as f32).ceil()));
        if mixed.max(0.0) != exact.max(0.0) || own.max(0.0) != exact.max(0.0) {
            return Err(Decline::unsupported("the rounding of ('limit' − 'start') / 'delta' determines the length"));
        }
    }
    Ok(if exact > 0.0 { exact as usize } else { 0 })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;

    #[test]
    fn integers() {
        let range = |a: i64, b: i64, c: i64| values::<i64>(&Case::new("Range", 11).eval([a, b, c].map(Tensor::scalar)));
        assert_eq!(range(3, 9, 3), [3, 6]);
        assert_eq!(range(3, 10, 3), [3, 6, 9]);
        assert_eq!(range(10, 4, -2), [10, 8, 6]);
        assert!(range(1, 1, 1).is_empty());
        assert!(range(5, 1, 1).is_empty());
        assert_eq!(range(i64::MIN, i64::MAX, i64::MAX), [i64::MIN, -1, i64::MAX - 1]);
        assert_eq!(range(i64::MAX, i64::MIN, i64::MIN), [i64::MAX, -1]);
        let fails = |a: i64, b: i64, c: i64| Case::new("Range", 11).fails([a, b, c].map(Tensor::scalar));
        assert!(matches!(fails(0, 3, 0), Decline::Invalid(_)));
        assert!(matches!(fails(i64::MIN, i64::MAX, 1), Decline::OverBudget(_)));
        let short = Case::new("Range", 11).eval([30000i16, 32767, 1000].map(Tensor::scalar));
        assert_eq!(values::<i16>(&short), [30000, 31000, 32000]);
    }

    #[test]
    fn floats() {
        let range = |operands: [f32; 3]| Case::new("Range", 11).try_all(&operands.map(Tensor::scalar).map(Some));
        let result = range([0.0, 1.0, 0.25]).unwrap();
        assert_eq!(values::<f32>(&result[0]), [0.0, 0.25, 0.5, 0.75]);
        // Sums of 0.1 round differently from multiples.
        assert!(matches!(range([0.0, 1.0, 0.1]), Err(Decline::Unsupported(_))));
        assert_eq!(range([0.0, 0.15, 0.1]).unwrap()[0].len(), 2);
        assert_eq!(range([1.0, 0.0, 0.1]).unwrap()[0].len(), 0);
        for wrong in [[0.0, 1.0, 0.0], [f32::NAN, 1.0, 1.0], [0.0, f32::INFINITY, 1.0], [0.0, 1.0, f32::NAN]] {
            assert!(range(wrong).is_err(), "{wrong:?}");
        }
        assert!(matches!(range([0.0, 1e30, 1e-3]), Err(Decline::OverBudget(_))));
        let halves = [0.0f32, 2.0, 0.5].map(|value| Tensor::scalar(half::f16::from_f32(value)));
        assert_eq!(Case::new("Range", 27).eval(&halves).len(), 4);
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let scalar = |text: &str| {
            let fact = Fact::tensor(Some(DType::Int64), Some(vec![]));
            Some(fact.with_elements(vec![Scalar::Int(scope.parse(text).unwrap())]))
        };
        let infer = |a, b, c| Case::new("Range", 11).infer(&scope, vec![scalar(a), scalar(b), scalar(c)]).remove(0);
        assert_eq!(dims(&scope, &infer("0", "S", "1")), ["S"]);
        assert_eq!(dims(&scope, &infer("S", "2*S + 1", "1")), ["S + 1"]);
        let three = infer("S", "S + 3", "1");
        assert_eq!(elements(&scope, &three), ["S", "S + 1", "S + 2"]);
        assert_eq!(elements(&scope, &infer("5", "-1", "-2")), ["5", "3", "1"]);
        // A delta of 0 is an error.
        assert_eq!(dims(&scope, &infer("0", "S", "T")), ["floor((S - 1)/max(1, T)) + 1"]);
        assert_eq!(dims(&scope, &infer("S", "0", "-T")), ["floor((S - 1)/max(1, T)) + 1"]);
        assert!(!dims(&scope, &infer("0", "S", "T - 1"))[0].contains('S'));
        let float = |scalar| Some(Fact::tensor(Some(DType::Float), Some(vec![])).with_elements(vec![scalar]));
        let limit = Scalar::Real { num: scope.parse("S").unwrap(), den: 1 };
        let infer = |scalars: [Scalar; 3]| {
            let facts = scalars.map(float).into_iter().collect();
            let length = &Case::new("Range", 11).infer(&scope, facts)[0].shape().unwrap()[0].clone();
            [scope.format(&scope.nominal(length))]
        };
        assert_eq!(infer([Scalar::Float(0.0), limit, Scalar::Float(1.0)]), ["S"]);
        let last = Scalar::Real { num: scope.parse("S + T - 1").unwrap(), den: 1 };
        assert_eq!(infer([last.clone(), Scalar::Float(-1.0), Scalar::Float(-1.0)]), ["S + T"]);
        // The distance is rounded before it is divided.
        assert_ne!(infer([last, Scalar::Float(-1e9), Scalar::Float(-1.0)]), ["S + T + 999999999"]);
    }
}
