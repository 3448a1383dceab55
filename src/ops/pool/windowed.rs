//! MaxPool, AveragePool, LpPool: reduce each window of a channel to one number.
//!
//! | operator | computes | versions |
//! |---|---|---|
//! | MaxPool | the maximum, and optionally its index among all elements of `X`, column-major within each channel if `storage_order` is 1; the first of equal maxima | 1; 8 adds `Indices`; 10 `dilations`, `ceil_mode`; 11; 12 adds 8-bit integers; 22 bfloat16 |
//! | AveragePool | the mean, including padding with `count_include_pad` | 1; 7 adds `count_include_pad`; 10 `ceil_mode`; 11; 19 `dilations`; 22 bfloat16 |
//! | LpPool | `(Σ │x│ᵖ)^(1/p)` | 1: `p` is a FLOAT, `kernel_shape` may be missing; 2; 11; 18 adds `dilations`, `ceil_mode`; 22 bfloat16 |
//!
//! Shapes: `X [N, C, D…]`; positions as in [`window`](crate::ops::window), and one if the window exceeds the axis by less than a
//! stride. Padding never wins and adds nothing. Not inferred or evaluated, because runtimes differ: SAME with dilations or with
//! windows that may not reach the end, NaN in MaxPool, windows whose maximum is −∞, windows that contain only padding.

use std::ops::Range;

use smallvec::SmallVec;

use crate::dim::Dim;
use crate::ir::Fact;
use crate::ops::lane::{Lane, Ring, in_lane, read};
use crate::ops::linear::stays_finite;
use crate::ops::traits::{NumbersOf, Traits};
use crate::ops::vector::Stored;
use crate::ops::window::{AutoPad, AxisWindows, Window, read_numbers};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site};
use crate::tensor::threads;
use crate::tensor::{DType, Tensor, product};

/// Runtimes require the number of windows on all axes or on none. With `ceil_mode`, ONNX Runtime's inference counts a window that
/// begins in the padding, and its kernel omits it.
const BY_WINDOWS: Traits = Traits::NONE.inferred_by_numbers(NumbersOf::Whole(1)).inferred_without("ceil_mode");

pub(super) const MAX_POOL: Operator =
    Operator::new("MaxPool", &[1, 8, 10, 11, 12, 22], infer_max, eval_max).with(BY_WINDOWS.carrying_quantization());
pub(super) const AVERAGE_POOL: Operator =
    Operator::new("AveragePool", &[1, 7, 10, 11, 19, 22], infer, eval_average).with(BY_WINDOWS.homogeneous());
pub(super) const LP_POOL: Operator = Operator::new("LpPool", &[1, 2, 11, 18, 22], infer, eval_lp).with(BY_WINDOWS);

/// Returns the attribute `kernel_shape` for an operand of this rank, if known.
pub(super) fn read_kernel(site: &Site<'_>, rank: Option<usize>) -> Result<Option<Vec<i64>>, Refusal> {
    let count = match rank {
        None => match site.attr_ints("kernel_shape")? {
            None => return Ok(None),
            Some(kernel) => kernel.len(),
        },
        Some(rank) => match rank.checked_sub(2).filter(|&axes| axes > 0) {
            Some(axes) => axes,
            None => return Err(Refusal::invalid(format!("the rank of 'X' is {rank}, which is less than 3"))),
        },
    };
    read_numbers(site, "kernel_shape", count, 1)
}

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    Ok(vec![Fact::tensor(cx.dtype(0), shape_of(cx, false)?)])
}

fn infer_max(cx: &mut InferCx<'_>) -> InferResult {
    let shape = shape_of(cx, false)?;
    Ok(vec![Fact::tensor(cx.dtype(0), shape.clone()), Fact::tensor(Some(DType::Int64), shape)])
}

/// Infers the shape of operand 0 after pooling: `[N, C, D…]` or, with `channels_last`, `[N, D…, C]`.
pub(in crate::ops) fn shape_of(cx: &InferCx<'_>, channels_last: bool) -> Result<Option<Vec<Dim>>, Refusal> {
    let Some(kernel) = read_kernel(cx, cx.rank(0))? else {
        return match cx.shape(0) {
            // LpPool-1 without a kernel is not defined.
            Some([n, c, spatial @ ..]) if cx.version == 1 && cx.node.is("LpPool") => {
                Ok(Some([n, c].into_iter().cloned().chain(cx.fresh_shape(spatial.len())).collect()))
            }
            _ => Err(Refusal::invalid("attribute 'kernel_shape' is missing")),
        };
    };
    let Some(shape) = cx.shape(0) else { return Ok(Some(cx.fresh_shape(kernel.len() + 2))) };
    let window = Window::read(cx, kernel.len())?;
    let (before, rest) = shape.split_at(if channels_last { 1 } else { 2 });
    let (sizes, behind) = rest.split_at(kernel.len().min(rest.len()));
    let mut dims = before.to_vec();
    for (axis, (size, &kernel)) in sizes.iter().zip(&kernel).enumerate() {
        let places = match is_disputed(&window, axis) {
            true => None,
            false => window.places_rounded(cx.scope(), axis, size, &Dim::constant(kernel)),
        };
        dims.push(places.unwrap_or_else(|| cx.fresh_dim()));
    }
    dims.extend_from_slice(behind);
    Ok(Some(dims))
}

/// Returns `true` for dilated SAME padding, for which runtimes ignore the gaps between taps.
fn is_disputed(window: &Window, axis: usize) -> bool {
    matches!(window.auto_pad, AutoPad::SameUpper | AutoPad::SameLower) && window.dilations.get(axis) != Some(&1)
}

/// Windows over the channels of an operand of constant shape.
struct Pooling {
    /// The shape of the result.
    shape: Vec<usize>,
    axes: Vec<AxisWindows>,
    /// For each axis, the elements that each position covers.
    spans: Vec<Vec<Span>>,
    /// The number of elements and positions per channel.
    elements: usize,
    places: usize,
}

/// The elements that one position covers on one axis: `count` from `first` on, `step` apart.
#[derive(Clone, Copy, Default)]
struct Span {
    first: usize,
    count: usize,
    step: usize,
    /// The number of taps on elements or padding.
    padded: usize,
}

impl Pooling {
    /// Checks the node, and claims the result and the work.
    fn new(cx: &EvalCx<'_>, x: &Tensor, dtype: DType) -> Result<Self, Decline> {
        let kernel = read_kernel(cx, Some(x.rank()))?;
        let kernel = kernel.ok_or_else(|| Decline::unsupported("attribute 'kernel_shape' is missing"))?;
        let window = Window::read(cx, kernel.len())?;
        if (0..kernel.len()).any(|axis| is_disputed(&window, axis)) {
            return Err(Decline::unsupported(
                "attribute 'auto_pad' is SAME_UPPER or SAME_LOWER, and 'dilations' are not 1: runtimes pad differently",
            ));
        }
        let kernel: Vec<usize> = kernel.iter().map(|&taps| usize::try_from(taps).unwrap_or(usize::MAX)).collect();
        let (channels, sizes) = x.shape().split_at(2);
        let axes = window.over(sizes, &kernel)?;
        let shape: Vec<usize> = channels.iter().copied().chain(axes.iter().map(|axis| axis.places)).collect();
        cx.claim(dtype, &shape)?;
        let mut pooling = Pooling { shape, axes, spans: Vec::new(), elements: 1, places: 1 };
        if pooling.shape.contains(&0) {
            return Ok(pooling);
        }
        // No dim is 0, so no axis has more positions than the result has elements.
        for axis in &pooling.axes {
            let spans = (0..axis.places).map(|place| {
                let taps = axis.taps(place);
                let first = axis.element(place, taps.start).filter(|_| !taps.is_empty())?;
                Some(Span { first, count: taps.len(), step: axis.dilation, padded: axis.padded_taps(place) })
            });
            let spans = spans.collect::<Option<Vec<Span>>>();
            pooling.spans.push(spans.ok_or_else(|| Decline::unsupported("a pooling window contains only padding"))?);
            pooling.elements = pooling.elements.saturating_mul(axis.size);
            pooling.places = pooling.places.saturating_mul(axis.places);
        }
        let taps = pooling.spans.iter().map(|spans| spans.iter().map(|span| span.count).max().unwrap_or(0));
        let taps = taps.fold(1u64, |product, taps| product.saturating_mul(taps as u64));
        let places = product(&pooling.shape).unwrap_or(usize::MAX) as u64;
        cx.budget().take_work(places.saturating_mul(taps))?;
        Ok(pooling)
    }

    /// Computes one result per window: `reduce` gets the channel's index, its elements, and the window's span on each axis.
    fn each<E: Sync, R: Send + Default + Clone>(
        &self,
        x: &[E],
        reduce: impl Fn(usize, &[E], &[Span]) -> R + Sync,
    ) -> Vec<R> {
        let mut results = vec![R::default(); product(&self.shape).unwrap_or(0)];
        if results.is_empty() {
            return results;
        }
        let channels = results.chunks_exact_mut(self.places).zip(x.chunks_exact(self.elements));
        threads::for_each(channels.enumerate(), |(channel, (results, elements))| {
            let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, self.spans.len());
            let mut spans: SmallVec<[Span; 4]> = SmallVec::from_elem(Span::default(), self.spans.len());
            for result in results {
                covered(&self.spans, &index, &mut spans);
                *result = reduce(channel, elements, &spans);
                advance(&mut index, &self.spans);
            }
        });
        results
    }

    /// Returns the maximum of each window, computed for all windows of a row at once; ties select the first in the order of
    /// [`each_element`](Self::each_element). Returns `None` if the windows are too long on the last axis for this to be faster.
    ///
    /// # Errors
    /// An element is NaN.
    fn largest<E: Copy + Sync, T: Lane>(
        &self,
        x: &[E],
        read: impl Fn(E) -> T + Sync,
    ) -> Result<Option<Vec<T>>, Decline> {
        /// The maximum number of taps on the last axis.
        const MOST: usize = 64;
        let (Some(last), Some((_, outer))) = (self.axes.last(), self.spans.split_last()) else { return Ok(None) };
        if last.kernel > MOST {
            return Ok(None);
        }
        // For each tap, its positions on elements, and the element of the row at the first of them.
        let taps = (0..last.kernel).filter_map(|tap| {
            let places = last.places_on_elements(tap);
            let first = last.element(places.start, tap).filter(|_| !places.is_empty())?;
            Some((places, first))
        });
        let taps: Vec<(Range<usize>, usize)> = taps.collect();
        let mut results = vec![T::of(f64::NEG_INFINITY); product(&self.shape).unwrap_or(0)];
        let channels = results.chunks_exact_mut(self.places.max(1)).zip(x.chunks_exact(self.elements.max(1)));
        let checked = threads::map(channels, |(results, elements)| -> Result<(), Decline> {
            all_numbers(elements, &read)?;
            let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
            let mut spans: SmallVec<[Span; 4]> = SmallVec::from_elem(Span::default(), outer.len());
            for row in results.chunks_exact_mut(last.places) {
                covered(outer, &index, &mut spans);
                self.each_row(&spans, |start| {
                    let elements = elements.get(start..).unwrap_or_default();
                    for (places, first) in &taps {
                        if let (Some(row), Some(from)) = (row.get_mut(places.clone()), elements.get(*first..)) {
                            raise(row, from, last.stride, &read);
                        }
                    }
                });
                advance(&mut index, outer);
            }
            Ok(())
        });
        checked.into_iter().collect::<Result<(), _>>()?;
        Ok(Some(results))
    }

    /// Calls `visit` with the index of each element in a window, within the channel and in order.
    fn each_element(&self, spans: &[Span], mut visit: impl FnMut(usize)) {
        if let Some((last, outer)) = spans.split_last() {
            self.each_row(outer, |row| (0..last.count).for_each(|at| visit(row + last.first + at * last.step)));
        }
    }

    /// Calls `visit` with the start of each row of elements that a window covers on the outer axes, in order.
    fn each_row(&self, outer: &[Span], mut visit: impl FnMut(usize)) {
        let Some(size) = self.axes.last().map(|axis| axis.size) else { return };
        let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
        loop {
            let rows = outer.iter().zip(&self.axes).zip(&index);
            let row = rows.fold(0, |row, ((span, axis), &at)| row * axis.size + span.first + at * span.step);
            visit(row * size);
            let wheel = index.iter_mut().zip(outer).rev().find_map(|(at, span)| {
                *at += 1;
                if *at < span.count {
                    return Some(());
                }
                *at = 0;
                None
            });
            if wheel.is_none() {
                return;
            }
        }
    }

    /// Returns the column-major index of an element within its channel.
    fn column_major(&self, element: usize) -> usize {
        let (mut rest, mut number, mut stride) = (element, 0, self.elements);
        for axis in self.axes.iter().rev() {
            stride /= axis.size.max(1);
            number += rest % axis.size.max(1) * stride;
            rest /= axis.size.max(1);
        }
        number
    }
}

/// Writes the spans of the position with this index on each axis.
fn covered(axes: &[Vec<Span>], index: &[usize], spans: &mut [Span]) {
    for ((span, axis), &at) in spans.iter_mut().zip(axes).zip(index) {
        *span = axis.get(at).copied().unwrap_or_default();
    }
}

/// Advances to the next position.
fn advance(index: &mut [usize], axes: &[Vec<Span>]) {
    for (at, spans) in index.iter_mut().zip(axes).rev() {
        *at += 1;
        if *at < spans.len() {
            break;
        }
        *at = 0;
    }
}

/// Replaces each number by the element `step` after the previous number's one, if that is larger.
#[inline(always)]
fn raise<E: Copy, T: Lane>(most: &mut [T], from: &[E], step: usize, read: &impl Fn(E) -> T) {
    let raise = |most: &mut T, x: E| {
        let x = read(x);
        *most = if x > *most { x } else { *most };
    };
    match step {
        1 => most.iter_mut().zip(from).for_each(|(most, &x)| raise(most, x)),
        2 => {
            let (pairs, rest) = from.as_chunks::<2>();
            most.iter_mut().zip(pairs).for_each(|(most, &[x, _])| raise(most, x));
            if let (Some(most), &[x]) = (most.get_mut(pairs.len()), rest) {
                raise(most, x);
            }
        }
        _ => most.iter_mut().zip(from.iter().step_by(step)).for_each(|(most, &x)| raise(most, x)),
    }
}

/// # Errors
/// An element is NaN.
fn all_numbers<E: Copy, T: Lane>(values: &[E], read: impl Fn(E) -> T) -> Result<(), Decline> {
    // Test all elements of a part without branches, so that the loop is vectorized.
    let any = |values: &[E]| values.iter().fold(false, |any, &value| any | read(value).to_f64().is_nan());
    if values.chunks(1024).any(any) {
        return Err(Decline::unsupported("'X' contains NaN, for which runtimes return different maxima"));
    }
    Ok(())
}

fn eval_max(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    match x.dtype() {
        // Integers of 8 bits are exact in binary32.
        DType::Int8 | DType::Uint8 => {
            let wide: Vec<f32> = x.to_i64s().unwrap_or_default().into_iter().map(|value| value as f32).collect();
            max(cx, x, &wide, |x| x)
        }
        DType::Float => max(cx, x, f32::stored(x).unwrap_or_default(), f32::of_bytes),
        dtype => in_lane!(dtype, T => max::<T, T>(cx, x, &read::<T>(x)?, |x| x)),
    }
}

/// Evaluates MaxPool; `read` converts elements.
fn max<E: Copy + Sync, T: Lane>(cx: &EvalCx<'_>, x: &Tensor, values: &[E], read: impl Fn(E) -> T + Sync) -> EvalResult {
    let pooling = Pooling::new(cx, x, x.dtype())?;
    let by_column = cx.attr_int("storage_order")?.unwrap_or(0) != 0;
    let wanted = cx.has_output(1);
    if wanted {
        cx.claim(DType::Int64, &pooling.shape)?;
    }
    let largest = if wanted { None } else { pooling.largest(values, &read)? };
    let (most, places) = match largest {
        Some(most) => (most, Vec::new()),
        None => {
            all_numbers(values, &read)?;
            let found = pooling.each(values, |_, elements, spans| {
                let mut best: Option<(T, usize)> = None;
                pooling.each_element(spans, |at| {
                    if let Some(value) = elements.get(at).map(|&element| read(element))
                        && best.is_none_or(|(most, _)| value > most)
                    {
                        best = Some((value, at));
                    }
                });
                best.unwrap_or_default()
            });
            found.into_iter().unzip()
        }
    };
    let least = |most: &[T]| most.iter().fold(false, |any, most| any | (most.to_f64() == f64::NEG_INFINITY));
    if most.chunks(1024).any(least) {
        return Err(Decline::unsupported("a maximum is −∞, for which runtimes return different values"));
    }
    let mut results = vec![match x.dtype() {
        DType::Int8 => {
            Tensor::from_vec(&pooling.shape, most.iter().map(|value| value.to_f64() as i8).collect::<Vec<i8>>())?
        }
        DType::Uint8 => {
            Tensor::from_vec(&pooling.shape, most.iter().map(|value| value.to_f64() as u8).collect::<Vec<u8>>())?
        }
        dtype => T::write(dtype, &pooling.shape, most)?,
    }];
    if wanted {
        let number = |(at, &element): (usize, &usize)| {
            let own = if by_column { pooling.column_major(element) } else { element };
            (at / pooling.places * pooling.elements + own) as i64
        };
        results.push(Tensor::from_vec(&pooling.shape, places.iter().enumerate().map(number).collect::<Vec<i64>>())?);
    }
    Ok(results.into_iter().map(Into::into).collect())
}

fn eval_average(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    let with_padding = cx.attr_flag("count_include_pad", false)?;
    let pooling = Pooling::new(cx, x, x.dtype())?;
    stays_finite(x.len(), &[x])?;
    in_lane!(x.dtype(), T => {
        let means = pooling.each(&read::<T>(x)?, |_, elements, spans| {
            let mut sum = 0.0;
            pooling.each_element(spans, |at| sum += elements.get(at).map_or(0.0, |x| x.to_f64()));
            let taps = spans.iter().map(|span| if with_padding { span.padded } else { span.count });
            T::of(sum / taps.fold(1.0, |product, taps| product * taps as f64))
        });
        Ok(vec![T::write(x.dtype(), &pooling.shape, means)?.into()])
    })
}

/// Reads the attribute `p` of a norm.
pub(super) fn read_norm(site: &Site<'_>) -> Result<f64, Decline> {
    let p = match site.version {
        1 => f64::from(site.attr_float("p")?.unwrap_or(2.0)),
        _ => site.attr_int("p")?.unwrap_or(2) as f64,
    };
    if p >= 1.0 && p.is_finite() {
        Ok(p)
    } else {
        Err(Decline::unsupported(format!("attribute 'p' is {p}, which is not supported")))
    }
}

/// Fails unless powers of the elements, and their sums, are finite in kernels that compute in the type itself.
pub(super) fn powers_stay_finite(x: &Tensor, p: f64) -> Result<(), Decline> {
    // In binary32, higher powers are finite only for numbers below 4.
    const MOST: f64 = 64.0;
    stays_finite(x.len(), &vec![x; p.min(MOST).ceil() as usize])
}

/// Returns the root of `Σ │x│ᵖ` over the terms.
pub(super) fn norm(p: f64, terms: impl Iterator<Item = f64>) -> f64 {
    match p {
        1.0 => terms.map(f64::abs).sum(),
        2.0 => terms.map(|x| x * x).sum::<f64>().sqrt(),
        _ => libm::pow(terms.map(|x| libm::pow(x.abs(), p)).sum(), 1.0 / p),
    }
}

fn eval_lp(cx: &mut EvalCx<'_>) -> EvalResult {
    let x = cx.tensor(0)?;
    let p = read_norm(cx)?;
    let pooling = Pooling::new(cx, x, x.dtype())?;
    powers_stay_finite(x, p)?;
    in_lane!(x.dtype(), T => {
        let norms = pooling.each(&read::<T>(x)?, |_, elements, spans| {
            let mut terms: SmallVec<[f64; 32]> = SmallVec::new();
            pooling.each_element(spans, |at| terms.extend(elements.get(at).map(|x| x.to_f64())));
            T::of(norm(p, terms.into_iter()))
        });
        Ok(vec![T::write(x.dtype(), &pooling.shape, norms)?.into()])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::single::Single;

    fn ramp(op_type: &str, opset: i64, shape: &[usize]) -> Single {
        let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|at| at as f32).collect();
        Single::new(op_type, opset).values(shape, &values)
    }

    #[test]
    fn shapes() {
        let pool = |shape: &str| Single::new("MaxPool", 12).input(DType::Float, shape).with("kernel_shape", vec![3, 3]);
        let strided = |shape: &str| pool(shape).with("strides", vec![2, 2]);
        assert_eq!(pool("N C 9 H").infer(), ["float[N, C, 7, H - 2]"]);
        assert_eq!(pool("N C 9 9").output().infer(), ["float[N, C, 7, 7]", "int64[N, C, 7, 7]"]);
        assert_eq!(strided("1 1 H 9").infer(), ["float[1, 1, max(0, floor((H - 3)/2)) + min(2, H) - 1, 4]"]);
        assert_eq!(strided("1 1 H 9").with("pads", vec![1; 4]).infer(), ["float[1, 1, floor((H + 1)/2), 5]"]);
        assert_eq!(strided("1 1 224 224").with("ceil_mode", 1).infer(), ["float[1, 1, 112, 112]"]);
        assert_eq!(strided("1 1 9 9").with_str("auto_pad", "SAME_UPPER").infer(), ["float[1, 1, 5, 5]"]);
        assert_eq!(
            strided("1 1 9 9").with_str("auto_pad", "SAME_UPPER").with("dilations", vec![1, 2]).infer(),
            ["float[1, 1, 5, ?]"]
        );
        assert_eq!(
            strided("1 1 9 8").with_str("auto_pad", "VALID").with("ceil_mode", 1).infer(),
            ["float[1, 1, 4, ?]"]
        );
        let unknown = Single::new("AveragePool", 19).unranked(DType::Float16).with("kernel_shape", vec![2]);
        assert_eq!(unknown.infer(), ["float16[?, ?, ?]"]);
        assert!(pool("1 1 9").infer()[0].starts_with("invalid"));
        assert!(pool("1 1 9 9").with("strides", vec![0, 1]).infer()[0].starts_with("invalid"));
        assert!(Single::new("MaxPool", 12).input(DType::Float, "1 1 9").infer()[0].starts_with("invalid"));
        assert_eq!(Single::new("LpPool", 1).input(DType::Float, "N 2 9").infer(), ["float[N, 2, ?]"]);
    }

    #[test]
    fn maxima_and_their_places() {
        let pool = |shape: &[usize], kernel: Vec<i64>| ramp("MaxPool", 12, shape).with("kernel_shape", kernel).output();
        let both = |node: Single| {
            let results = node.eval().unwrap();
            (results[0].to_f64s().unwrap(), results[1].to_i64s().unwrap())
        };
        assert_eq!(both(pool(&[1, 2, 2, 3], vec![2, 2])), (vec![4.0, 5.0, 10.0, 11.0], vec![4, 5, 10, 11]));
        assert_eq!(both(pool(&[1, 2, 2, 3], vec![2, 2]).with("storage_order", 1)).1, [3, 5, 9, 11]);
        assert_eq!(
            both(pool(&[2, 1, 2, 2, 2], vec![1, 1, 1]).with("storage_order", 1)).1,
            [0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15]
        );
        let ceil = ramp("MaxPool", 22, &[1, 1, 5]).with("kernel_shape", vec![2]).output();
        let ceil = ceil.with("strides", vec![3]).with("pads", vec![0, 1]).with("ceil_mode", 1);
        assert_eq!(both(ceil), (vec![1.0, 4.0], vec![1, 4]));
        let bytes = Single::new("MaxPool", 12).values(&[1, 1, 5], &[-3i8, -2, -1, 0, 1]).with("kernel_shape", vec![2]);
        assert_eq!(
            both(bytes.with("pads", vec![1, 1]).output()),
            (vec![-3.0, -2.0, -1.0, 0.0, 1.0, 1.0], vec![0, 1, 2, 3, 4, 4])
        );
        let ties = Single::new("MaxPool", 12).values(&[1, 1, 3], &[7.0f32; 3]).with("kernel_shape", vec![2]).output();
        assert_eq!(both(ties).1, [0, 1]);
    }

    /// Without indices, a row is computed at once; with indices, each window separately.
    #[test]
    fn rows_of_windows_equal_single_windows() {
        let numbers = |count: usize| (0..count).map(|at| ((at * 7919) % 1009) as f32 - 500.0).collect::<Vec<_>>();
        for (shape, kernel, strides, pads, dilations) in [
            (vec![2, 3, 9], vec![3], vec![1], vec![1, 0], vec![2]),
            (vec![1, 2, 8, 9], vec![3, 3], vec![2, 2], vec![1, 1, 1, 1], vec![1, 1]),
            (vec![1, 1, 7, 11], vec![2, 4], vec![1, 3], vec![0, 2, 1, 3], vec![2, 1]),
            (vec![1, 1, 3, 70], vec![2, 65], vec![1, 1], vec![0, 0, 0, 0], vec![1, 1]),
            (vec![1, 2, 4, 5, 6], vec![2, 2, 3], vec![1, 2, 2], vec![0, 1, 0, 1, 0, 2], vec![1, 1, 2]),
        ] {
            let node = || {
                let node = Single::new("MaxPool", 12).values(&shape, &numbers(shape.iter().product()));
                let node = node.with("kernel_shape", kernel.clone()).with("strides", strides.clone());
                node.with("pads", pads.clone()).with("dilations", dilations.clone()).with("ceil_mode", 1)
            };
            assert_eq!(node().floats(), node().output().eval().unwrap()[0].to_f64s().unwrap(), "{shape:?}");
        }
    }

    #[test]
    fn disputed_pools_decline() {
        let node = |values: &[f32]| Single::new("MaxPool", 12).values(&[1, 1, 2], values).with("kernel_shape", vec![2]);
        assert!(node(&[1.0, f32::NAN]).eval().is_err());
        assert!(node(&[f32::NEG_INFINITY; 2]).eval().is_err());
        assert!(node(&[1.0, 2.0]).with("pads", vec![2, 0]).eval().is_err());
        assert!(node(&[1.0, 2.0]).with("dilations", vec![2]).eval().is_err());
        let short = ramp("MaxPool", 12, &[1, 1, 6]).with("kernel_shape", vec![1]).with("strides", vec![3]);
        assert!(short.with_str("auto_pad", "SAME_UPPER").eval().is_err());
        let huge = node(&[1.0, 2.0]).with("pads", vec![i64::MAX, i64::MAX]).eval();
        assert!(huge.is_err());
    }

    #[test]
    fn averages() {
        let pool = |opset: i64, size: usize, kernel: i64| {
            ramp("AveragePool", opset, &[1, 1, size]).with("kernel_shape", vec![kernel])
        };
        assert_eq!(pool(1, 5, 2).with("pads", vec![1, 1]).floats(), [0.0, 0.5, 1.5, 2.5, 3.5, 4.0]);
        let partial = |include: i64| {
            pool(19, 6, 3).with("strides", vec![2]).with("ceil_mode", 1).with("count_include_pad", include)
        };
        assert_eq!(partial(0).floats(), [1.0, 3.0, 4.5]);
        assert_eq!(partial(1).floats(), [1.0, 3.0, 4.5]);
        let dilated = pool(19, 7, 2).with("dilations", vec![3]).with("strides", vec![2]);
        assert_eq!(dilated.with("pads", vec![1, 1]).floats(), [2.0, 2.5, 4.5]);
        let same =
            pool(7, 5, 3).with("strides", vec![2]).with_str("auto_pad", "SAME_LOWER").with("count_include_pad", 1);
        assert_eq!(same.floats().iter().map(|x| (x * 3.0).round()).collect::<Vec<_>>(), [1.0, 6.0, 7.0]);
    }

    #[test]
    fn norms() {
        let pool = |opset: i64| ramp("LpPool", opset, &[1, 1, 5]).with("kernel_shape", vec![2]);
        assert_eq!(pool(18).with("p", 1).with("strides", vec![2]).with("ceil_mode", 1).floats(), [1.0, 5.0, 4.0]);
        assert_eq!(pool(11).with_str("auto_pad", "SAME_UPPER").floats()[3..], [5.0, 4.0]);
        let cubes = pool(18).with("p", 3).with("pads", vec![1, 0]).floats();
        assert!((cubes[2] - 2.0800838).abs() < 1e-6);
        assert_eq!(pool(1).with_float("p", 1.0).floats(), [1.0, 3.0, 5.0, 7.0]);
        assert!(pool(18).with("p", 0).eval().is_err());
    }
}
