//! ReduceSum, ReduceMean and the other reductions.

use half::{bf16, f16};

use super::axes::{self, Axes, Operand};
use super::layout::Layout;
use super::real::{fit_on_the_way, rounded, stay_above_zero};
use crate::dim::{Dim, Scope};
use crate::ir::{Data, Fact, Scalar};
use crate::ops::elementwise::symbolic::Elements;
use crate::ops::vector::StoredFloat;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Refusal, Site};
use crate::tensor::{DType, Number, Tensor, dispatch_numeric};

/// The function that combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
}

impl Kind {
    fn of(site: &Site<'_>) -> Result<Kind, Refusal> {
        Ok(match site.node.op_type.as_str() {
            "ReduceSum" => Kind::Sum,
            "ReduceMean" => Kind::Mean,
            "ReduceMax" => Kind::Max,
            "ReduceMin" => Kind::Min,
            "ReduceProd" => Kind::Prod,
            "ReduceL1" => Kind::L1,
            "ReduceL2" => Kind::L2,
            "ReduceLogSum" => Kind::LogSum,
            "ReduceLogSumExp" => Kind::LogSumExp,
            "ReduceSumSquare" => Kind::SumSquare,
            other => return Err(Refusal::unsupported(format!("{other} is not a known reduction"))),
        })
    }

    /// Returns `true` if the reduction of a single element is the element.
    fn keeps_single(self) -> bool {
        matches!(self, Kind::Sum | Kind::Mean | Kind::Max | Kind::Min | Kind::Prod)
    }
}

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let kind = Kind::of(cx)?;
    let data = cx.required(0)?;
    let dtype = data.dtype();
    let keep = cx.attr_flag("keepdims", true)?;
    let Some(shape) = data.shape() else { return Ok(vec![Fact::tensor(dtype, None)]) };
    let rank = shape.len();
    let known;
    let operand = match cx.input(1) {
        None => Operand::Absent,
        Some(fact) => match fact.const_ints() {
            Some(axes) => {
                known = axes;
                Operand::Known(&known)
            }
            None => Operand::Unknown(fact.static_len().filter(|_| fact.rank() == Some(1))),
        },
    };
    let axes = axes::resolve(cx, &operand, rank)?;
    // For empty tensors, ONNX Runtime keeps an axis with a negative index.
    if shape.iter().any(|dim| dim.is_const(0)) && axes::from_the_end(cx, &operand)? {
        return Ok(vec![Fact::tensor(dtype, None)]);
    }
    match axes {
        Axes::Known(reduced) => {
            let fact = Fact::tensor(dtype, Some(reduced_shape(shape, &reduced, keep, Dim::constant(1))));
            let elements = reduced_elements(cx.scope(), kind, data, &reduced);
            Ok(vec![match elements {
                Some(elements) => fact.with_elements(elements),
                None => fact,
            }])
        }
        // Each axis is either kept or reduced.
        Axes::One | Axes::Unknown if keep => {
            let one = Dim::constant(1);
            let either = |dim: &Dim| {
                if dim.is_const(1) {
                    return one.clone();
                }
                let (low, high) = cx.scope().bounds(dim);
                let stem = crate::ops::join::stem_of(cx);
                cx.scope().fresh_within(
                    &stem,
                    Some(i64::from(low.is_some_and(|low| low > 0))),
                    high.map(|high| high.max(1)),
                )
            };
            Ok(vec![Fact::tensor(dtype, Some(shape.iter().map(either).collect()))])
        }
        Axes::One if rank == 0 => Err(Refusal::invalid("'axes' is not empty, but the data is a scalar")),
        Axes::One => {
            let alike = shape.first().filter(|first| shape.iter().all(|dim| cx.scope().eq(first, dim).is_yes()));
            let dims = (1..rank).map(|_| alike.cloned().unwrap_or_else(|| cx.fresh_dim())).collect();
            Ok(vec![Fact::tensor(dtype, Some(dims))])
        }
        Axes::Unknown => Ok(vec![Fact::tensor(dtype, None)]),
    }
}

/// Returns the reduced shape.
fn reduced_shape<D: Clone>(shape: &[D], reduced: &[bool], keep: bool, one: D) -> Vec<D> {
    let dims = shape.iter().zip(reduced);
    if keep {
        dims.map(|(dim, &reduced)| if reduced { one.clone() } else { dim.clone() }).collect()
    } else {
        dims.filter(|(_, reduced)| !**reduced).map(|(dim, _)| dim.clone()).collect()
    }
}

/// Infers the elements of the reduction of a small tensor, as expressions.
fn reduced_elements(scope: &Scope, kind: Kind, data: &Fact, reduced: &[bool]) -> Option<Vec<Scalar>> {
    // Constants are left to evaluation, which declines if necessary.
    if data.data().is_some() {
        return None;
    }
    let (parts, shape) = (data.elements()?, data.static_shape()?);
    let layout = Layout::new(&shape, reduced)?;
    let within = |element: &Scalar, most: u64| is_exact(scope, kind, data.dtype(), element, most);
    let exact = |element: &Scalar| within(element, EXACT);
    if layout.each == 1 && kind.keeps_single() {
        return Some(parts.into_iter().map(|part| if exact(&part) { part } else { Scalar::Unknown }).collect());
    }
    let elements = Elements::new(scope, data.dtype()?);
    if layout.each == 0 || !matches!(kind, Kind::Sum | Kind::Prod | Kind::Max | Kind::Min) {
        return None;
    }
    // No partial sum may be rounded, in any order of addition.
    let most = EXACT.checked_div(u64::try_from(layout.each).ok()?)?;
    if kind == Kind::Sum && !parts.iter().all(|part| within(part, most)) {
        return None;
    }
    let mut results: Vec<Option<Scalar>> = vec![None; layout.results];
    for (part, target) in parts.iter().zip(layout.targets(parts.len())) {
        let result = results.get_mut(target)?;
        *result = Some(match result.take() {
            None => part.clone(),
            Some(total) => united(&elements, kind, &total, part),
        });
    }
    results
        .into_iter()
        .map(|result| result.map(|result| if exact(&result) { result } else { Scalar::Unknown }))
        .collect()
}

/// Returns `true` if runtimes represent this number exactly. Some compute sums, means and products of `int64` in binary64, which
/// rounds beyond 2⁵³. `most` is the largest exact magnitude.
fn is_exact(scope: &Scope, kind: Kind, dtype: Option<DType>, number: &Scalar, most: u64) -> bool {
    let Scalar::Int(dim) = number else { return true };
    if matches!(kind, Kind::Max | Kind::Min) || dtype.is_some_and(|dtype| dtype != DType::Int64) {
        return true;
    }
    if let Some(number) = dim.as_const() {
        return number.unsigned_abs() <= most;
    }
    if scope.is_of_sizes(dim) {
        return true;
    }
    let (low, high) = scope.bounds(dim);
    low.zip(high).is_some_and(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()) <= most)
}

/// The largest magnitude up to which all integers are exact in binary64.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// Combines two elements of a reduction, if that is exact in any order.
fn united(elements: &Elements<'_>, kind: Kind, a: &Scalar, b: &Scalar) -> Scalar {
    let (scope, zero) = (elements.scope(), Dim::constant(0));
    let integers = matches!((a, b), (Scalar::Int(_), Scalar::Int(_)));
    let is_nan = |element: &Scalar| matches!(element, Scalar::Float(value) if value.is_nan());
    match kind {
        Kind::Sum if integers => unless_wrapped(elements.add(a, b), a, b, i64::checked_add),
        Kind::Prod if integers => unless_wrapped(elements.mul(a, b), a, b, i64::checked_mul),
        Kind::Prod => match (elements.fraction(a), elements.fraction(b)) {
            // A product of zero with a negative factor would be −0.
            (Some((a, a_den)), Some((b, b_den))) if [&a, &b].into_iter().all(|num| scope.ge(num, &zero).is_yes()) => {
                elements.real(scope.mul(&a, &b), a_den.saturating_mul(b_den))
            }
            _ => Scalar::Unknown,
        },
        Kind::Max if !is_nan(a) && !is_nan(b) => elements.max(a, b),
        Kind::Min if !is_nan(a) && !is_nan(b) => elements.min(a, b),
        _ => Scalar::Unknown,
    }
}

/// Returns the result, unless a constant overflowed: some runtimes saturate.
fn unless_wrapped(result: Scalar, a: &Scalar, b: &Scalar, exact: fn(i64, i64) -> Option<i64>) -> Scalar {
    match a.as_const_int().zip(b.as_const_int()) {
        Some((a, b)) if exact(a, b) != result.as_const_int() => Scalar::Unknown,
        _ => result,
    }
}

pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let kind = Kind::of(cx)?;
    let data = cx.tensor(0)?;
    let axes = cx.optional_tensor(1)?.map(|axes| axes.to_i64s());
    let operand = match &axes {
        None => Operand::Absent,
        Some(Some(axes)) => Operand::Known(axes),
        Some(None) => return Err(Decline::invalid("'axes' has no integer type")),
    };
    if data.is_empty() && axes::from_the_end(cx, &operand)? {
        return Err(Decline::unsupported(
            "an axis is negative and the data is empty, for which runtimes return different shapes",
        ));
    }
    let Axes::Known(reduced) = axes::resolve(cx, &operand, data.rank())? else {
        return Err(Decline::unsupported("the operand 'axes' is not constant"));
    };
    let shape = reduced_shape(data.shape(), &reduced, cx.attr_flag("keepdims", true)?, 1);
    let layout =
        Layout::new(data.shape(), &reduced).ok_or_else(|| Decline::invalid("the number of elements is too large"))?;
    cx.budget().take_work(u64::try_from(data.len()).unwrap_or(u64::MAX))?;
    let undefined = kind == Kind::Mean && layout.each == 0 && layout.results > 0;
    if undefined {
        return Err(Decline::unsupported("the mean of an empty tensor is undefined"));
    }
    // One accumulator per result.
    cx.budget().take_bytes(layout.results.saturating_mul(size_of::<i128>()))?;
    let result = match data.dtype() {
        DType::Float => of_floats::<f32>(cx, kind, data, &layout, &shape)?,
        DType::Double => of_floats::<f64>(cx, kind, data, &layout, &shape)?,
        DType::Float16 => of_floats::<f16>(cx, kind, data, &layout, &shape)?,
        DType::Bfloat16 => of_floats::<bf16>(cx, kind, data, &layout, &shape)?,
        DType::Bool if matches!(kind, Kind::Max | Kind::Min) => return of_bools(cx, kind, data, &layout, &shape),
        dtype if dtype.is_integer() && !dtype.is_packed() => return of_integers(cx, kind, data, &layout, &shape),
        other => return Err(Decline::invalid(format!("{} does not accept {other}", cx.node.op_type))),
    };
    Ok(vec![Data::Tensor(rounded(cx, data.dtype(), &shape, result)?)])
}

/// Reduces floats with binary64 accumulators.
fn of_floats<T: StoredFloat>(
    cx: &EvalCx<'_>,
    kind: Kind,
    data: &Tensor,
    layout: &Layout,
    shape: &[usize],
) -> Result<Vec<f64>, Decline> {
    let elements =
        T::stored(data).ok_or_else(|| Decline::invalid("the data does not have the expected element type"))?;
    let real = |bytes: T::Bytes| T::of_bytes(bytes).to_f64();
    let add = |a: f64, b: f64| a + b;
    cx.claim(DType::Double, shape)?;
    if !matches!(kind, Kind::Sum | Kind::LogSum | Kind::Mean | Kind::L1) {
        partial_results_fit::<T>(kind, data.dtype(), elements, layout)?;
    }
    Ok(match kind {
        Kind::Sum | Kind::LogSum | Kind::Mean => {
            let mut sums = summed::<T>(kind, data.dtype(), elements, layout, |x| x)?;
            let count = layout.each as f64;
            sums.iter_mut().for_each(|sum| match kind {
                Kind::LogSum => *sum = libm::log(*sum),
                Kind::Mean => *sum /= count,
                _ => {}
            });
            sums
        }
        Kind::L1 => summed::<T>(kind, data.dtype(), elements, layout, f64::abs)?,
        Kind::SumSquare | Kind::L2 => {
            let mut sums = layout.fold(elements, 0.0, |sum, x| sum + real(x) * real(x), add);
            if kind == Kind::L2 {
                sums.iter_mut().for_each(|sum| *sum = sum.sqrt());
            }
            sums
        }
        Kind::Prod => layout.fold(elements, 1.0, |product, x| product * real(x), |a, b| a * b),
        Kind::Max => {
            let most = |most, x| greater(most, real(x));
            numbers(layout.fold_looking(elements, f64::NEG_INFINITY, most, greater, |_| 0.0).0)?
        }
        Kind::Min => numbers(layout.fold(elements, f64::INFINITY, |least, x| lesser(least, real(x)), lesser))?,
        Kind::LogSumExp => {
            let sums = layout.fold(elements, ScaledSum::NOTHING, |sum, x| sum.with(real(x), 1.0), ScaledSum::merge);
            sums.into_iter().map(ScaledSum::log).collect()
        }
    })
}

/// Sums the terms of elements, if kernels do not overflow in between. If the largest magnitude times their number might overflow,
/// checks the partial results.
#[inline(always)]
fn summed<T: StoredFloat>(
    kind: Kind,
    dtype: DType,
    elements: &[T::Bytes],
    layout: &Layout,
    term: impl Fn(f64) -> f64 + Sync,
) -> Result<Vec<f64>, Decline> {
    let real = |bytes: T::Bytes| T::of_bytes(bytes).to_f64();
    let (sums, most) = layout.fold_looking(elements, 0.0, |sum, x| sum + term(real(x)), |a, b| a + b, T::greatest);
    if fit_on_the_way(dtype, [most * layout.each as f64]).is_err() {
        partial_results_fit::<T>(kind, dtype, elements, layout)?;
    }
    Ok(sums)
}

/// Fails if kernels that reduce in the type itself, in another order, may overflow or underflow in between. Infinities and NaN
/// are order-independent.
fn partial_results_fit<T: StoredFloat>(
    kind: Kind,
    dtype: DType,
    elements: &[T::Bytes],
    layout: &Layout,
) -> Result<(), Decline> {
    let size = |x: T::Bytes| Some(T::of_bytes(x).to_f64().abs()).filter(|x| x.is_finite());
    match kind {
        Kind::Sum | Kind::LogSum | Kind::Mean | Kind::L1 => {
            fit_on_the_way(dtype, layout.fold(elements, 0.0, |sum, x| sum + size(x).unwrap_or(0.0), |a, b| a + b))
        }
        Kind::SumSquare | Kind::L2 => {
            let square = |x: T::Bytes| size(x).map_or(0.0, |x| x * x);
            let sums = layout.fold(elements, 0.0, |sum, x| sum + square(x), |a, b| a + b);
            if kind == Kind::L2 {
                stay_above_zero(dtype, sums.iter().copied())?;
            }
            fit_on_the_way(dtype, sums)
        }
        Kind::Prod => {
            let large = |x: T::Bytes| size(x).unwrap_or(1.0).max(1.0);
            let small = |x: T::Bytes| size(x).filter(|&x| x > 0.0).unwrap_or(1.0).min(1.0);
            fit_on_the_way(dtype, layout.fold(elements, 1.0, |all, x| all * large(x), |a, b| a * b))?;
            stay_above_zero(dtype, layout.fold(elements, 1.0, |all, x| all * small(x), |a, b| a * b))
        }
        Kind::Max | Kind::Min | Kind::LogSumExp => Ok(()),
    }
}

/// Returns the second number if it is greater or NaN. For equal zeros, returns the first one, for either sign.
#[inline(always)]
fn greater(most: f64, x: f64) -> f64 {
    if x > most || x.is_nan() { x } else { most }
}

/// Like [`greater`], for the smaller number.
#[inline(always)]
fn lesser(least: f64, x: f64) -> f64 {
    if x < least || x.is_nan() { x } else { least }
}

/// Returns these maxima or minima, if no element is NaN.
fn numbers(extremes: Vec<f64>) -> Result<Vec<f64>, Decline> {
    if extremes.iter().any(|extreme| extreme.is_nan()) {
        return Err(Decline::unsupported(
            "the data contains NaN, for which runtimes return different maxima or minima",
        ));
    }
    Ok(extremes)
}

/// A sum of exponentials without overflow: `sum · exp(scale)`, where `scale` is the largest exponent so far.
#[derive(Clone, Copy)]
struct ScaledSum {
    scale: f64,
    sum: f64,
}

impl ScaledSum {
    const NOTHING: ScaledSum = ScaledSum { scale: f64::NEG_INFINITY, sum: 0.0 };

    /// Adds `count · exp(exponent)`.
    fn with(self, exponent: f64, count: f64) -> ScaledSum {
        if exponent == f64::NEG_INFINITY {
            return self;
        }
        if exponent == self.scale {
            ScaledSum { sum: self.sum + count, ..self }
        } else if exponent < self.scale {
            ScaledSum { sum: self.sum + count * libm::exp(exponent - self.scale), ..self }
        } else {
            // NaN also takes this branch and is preserved.
            ScaledSum { scale: exponent, sum: self.sum * libm::exp(self.scale - exponent) + count }
        }
    }

    fn merge(self, other: ScaledSum) -> ScaledSum {
        if other.sum == 0.0 { self } else { self.with(other.scale, other.sum) }
    }

    fn log(self) -> f64 {
        self.scale + libm::log(self.sum)
    }
}

fn of_bools(cx: &EvalCx<'_>, kind: Kind, data: &Tensor, layout: &Layout, shape: &[usize]) -> EvalResult {
    let elements = data.bools().ok_or_else(|| Decline::invalid("the data is not of type bool"))?;
    cx.claim(DType::Bool, shape)?;
    let results = match kind {
        Kind::Max => layout.fold(&elements, false, |a, b| a | b, |a, b| a | b),
        _ => layout.fold(&elements, true, |a, b| a & b, |a, b| a & b),
    };
    Ok(vec![Data::Tensor(Tensor::from_bools(shape, &results)?)])
}

/// Reduces integers exactly, if runtimes do.
fn of_integers(cx: &EvalCx<'_>, kind: Kind, data: &Tensor, layout: &Layout, shape: &[usize]) -> EvalResult {
    cx.claim(DType::Int64, data.shape())?;
    cx.claim(data.dtype(), shape)?;
    // 64-bit unsigned integers are stored as signed ones with the same bits.
    let wide = data.dtype() == DType::Uint64;
    let bits: Option<Vec<i64>> = if wide {
        data.elements::<u64>().map(|elements| elements.iter().map(|&element| element as i64).collect())
    } else {
        data.to_i64s()
    };
    let bits = bits.ok_or_else(|| Decline::invalid("the data has no integer type"))?;
    let value = |bits: i64| if wide { i128::from(bits as u64) } else { i128::from(bits) };
    let (least, most) = range_of(data.dtype());
    let add = |a: i128, b: i128| a.saturating_add(b);
    let sums = |term: fn(i128) -> i128| layout.fold(&bits, 0, |sum, x| add(sum, term(value(x))), add);
    let square: fn(i128) -> i128 = |x| x.saturating_mul(x);
    let results: Vec<i128> = match kind {
        Kind::Sum => fitting(sums(|x| x), least, most)?,
        Kind::Prod => {
            let multiply = |product: i128, x: i128| product.saturating_mul(x);
            fitting(layout.fold(&bits, 1, |product, x| multiply(product, value(x)), multiply), least, most)?
        }
        Kind::Max => layout.fold(&bits, least, |most, x| most.max(value(x)), i128::max),
        Kind::Min => layout.fold(&bits, most, |least, x| least.min(value(x)), i128::min),
        Kind::Mean => {
            let count = i128::try_from(layout.each).unwrap_or(i128::MAX).max(1);
            fitting(sums(|x| x), least, most)?.into_iter().map(|sum| sum / count).collect()
        }
        Kind::L1 => fitting(sums(i128::abs), least, most)?,
        Kind::SumSquare => fitting(sums(square), least, most)?,
        Kind::L2 => {
            agreeing(fitting(sums(square), least, most)?, |sum| ((sum as f32).sqrt() as f64, (sum as f64).sqrt()))?
        }
        Kind::LogSum => agreeing(fitting(sums(|x| x), least, most)?, |sum| {
            (f64::from(libm::logf(sum as f32)), libm::log(sum as f64))
        })?,
        Kind::LogSumExp => log_sum_exp(layout, &bits, value)?,
    };
    let result = dispatch_numeric!(data.dtype(), T => {
        Tensor::from_vec(shape, results.into_iter().map(|value| <T as Number>::from_i64(value as i64)).collect::<Vec<T>>())?
    }, else => return Err(Decline::invalid("the data has no integer type")));
    Ok(vec![Data::Tensor(result)])
}

/// Returns the smallest and the largest number of an integer type of whole bytes.
fn range_of(dtype: DType) -> (i128, i128) {
    let bits = dtype.bits().unwrap_or(64) as u32;
    if dtype.is_signed_integer() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

/// Returns the results, if they fit the type and a binary64 number: some runtimes wrap, others saturate, and some compute in
/// binary64.
fn fitting(results: Vec<i128>, least: i128, most: i128) -> Result<Vec<i128>, Decline> {
    let exact = 1i128 << f64::MANTISSA_DIGITS;
    if results.iter().any(|result| !(least..=most).contains(result) || result.abs() > exact) {
        return Err(Decline::unsupported("the reduction overflows, for which runtimes return different values"));
    }
    Ok(results)
}

/// Truncates integers computed through floats, if binary32 and binary64 agree.
fn agreeing(results: Vec<i128>, of: impl Fn(i128) -> (f64, f64)) -> Result<Vec<i128>, Decline> {
    let whole = |result: i128| {
        let (coarse, fine) = of(result);
        (coarse.is_finite() && coarse.trunc() == fine.trunc()).then_some(fine.trunc() as i128)
    };
    let results: Option<Vec<i128>> = results.into_iter().map(whole).collect();
    results.ok_or_else(|| {
        Decline::unsupported("the data is of an integer type, and runtimes round the result to different integers")
    })
}

/// Evaluates integer ReduceLogSumExp: the standard truncates once at the end, runtimes truncate each exponential. Folds only if
/// both agree.
fn log_sum_exp(layout: &Layout, bits: &[i64], value: impl Fn(i64) -> i128 + Sync) -> Result<Vec<i128>, Decline> {
    let largest = |(most, count): (i128, u64), x: i128, more: u64| match x.cmp(&most) {
        std::cmp::Ordering::Less => (most, count),
        std::cmp::Ordering::Equal => (most, count + more),
        std::cmp::Ordering::Greater => (x, more),
    };
    let tops = layout.fold(bits, (i128::MIN, 0u64), |top, x| largest(top, value(x), 1), |a, b| largest(a, b.0, b.1));
    let exact = layout.fold(bits, ScaledSum::NOTHING, |sum, x| sum.with(value(x) as f64, 1.0), ScaledSum::merge);
    let whole = tops.into_iter().zip(exact).map(|((most, count), exact)| {
        let truncated = most.checked_add(libm::log(count as f64) as i128)?;
        let exact = exact.log();
        // Beyond this magnitude, some integers are not binary64 numbers.
        (exact.abs() < 9e15 && exact.trunc() as i128 == truncated).then_some(truncated)
    });
    let whole: Option<Vec<i128>> = whole.collect();
    whole.ok_or_else(|| {
        Decline::unsupported("the data is of an integer type, and runtimes round the result to different integers")
    })
}
