//! Running sums and products along an axis.
//!
//! | operator | versions | difference |
//! | --- | --- | --- |
//! | CumSum | 11, 14 | types |
//! | CumProd | 26 | |
//!
//! With `exclusive`, element `j` omits its own operand, and the first is 0 (1 for products). With `reverse`, the axis is processed from its
//! end. Integers wrap; floats are added one after another in their own type.
//!
//! Refused: an axis out of range, which every axis of a scalar is; other types than numbers.

use super::around;
use super::cells::elements_of;
use super::moves;
use crate::dim::Dim;
use crate::ir::{Data, Fact, Scalar};
use crate::ops::traits::Traits;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, Site, axis_in};
use crate::tensor::threads;
use crate::tensor::{DType, Element, Number, Tensor, dispatch_numeric};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("CumSum", &[11, 14], infer_sum, eval_sum)
        .with(Traits::mixing(moves::cumulated_axis).exact().fails_unless(moves::has_cumulated_axis)),
    Operator::new("CumProd", &[26], infer_product, eval_product)
        .with(Traits::mixing(moves::cumulated_axis).exact().fails_unless(moves::has_cumulated_axis)),
];

/// The direction and form of the accumulation.
#[derive(Clone, Copy)]
struct Walked {
    exclusive: bool,
    reverse: bool,
}

fn walked(site: &Site<'_>) -> Result<Walked, Refusal> {
    Ok(Walked { exclusive: site.attr_flag("exclusive", false)?, reverse: site.attr_flag("reverse", false)? })
}

fn infer_sum(cx: &mut InferCx<'_>) -> InferResult {
    infer(cx, false)
}

fn infer_product(cx: &mut InferCx<'_>) -> InferResult {
    infer(cx, true)
}

fn infer(cx: &mut InferCx<'_>, product: bool) -> InferResult {
    let how = walked(cx)?;
    let data = cx.required(0)?;
    let fact = Fact::tensor(data.dtype(), data.shape().map(<[Dim]>::to_vec));
    let axis = match cx.const_ints(1).as_deref() {
        Some(&[axis]) => axis,
        Some(axes) => {
            return Err(Refusal::invalid(format!("the operand 'axis' has {} elements instead of 1", axes.len())));
        }
        None => return Ok(vec![fact]),
    };
    let axis = data.rank().map(|rank| axis_in(axis, rank)).transpose()?;
    // Narrower integers may wrap.
    let followed = data.dtype() == Some(DType::Int64) && data.data().is_none() && data.content.is_some();
    let (Some(axis), Some(elements), true) = (axis, elements_of(data), followed) else { return Ok(vec![fact]) };
    let scope = cx.scope();
    let neutral = Scalar::Int(Dim::constant(product.into()));
    let shape = data.static_shape().unwrap_or_default();
    let result = cumulated(&elements, around(&shape, axis)?, how, &neutral, |a, b| match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => {
            let result = if product { scope.mul(a, b) } else { scope.add(a, b) };
            if scope.fits_bits(&result, 64, true) { Scalar::Int(result) } else { Scalar::Unknown }
        }
        _ => Scalar::Unknown,
    });
    Ok(vec![fact.with_elements(result)])
}

fn eval_sum(cx: &mut EvalCx<'_>) -> EvalResult {
    eval(cx, false)
}

fn eval_product(cx: &mut EvalCx<'_>) -> EvalResult {
    eval(cx, true)
}

fn eval(cx: &mut EvalCx<'_>, product: bool) -> EvalResult {
    let how = walked(cx)?;
    let data = cx.tensor(0)?;
    let &[axis] = cx.ints(1)?.as_slice() else {
        return Err(Decline::invalid("the operand 'axis' is not a single element"));
    };
    let axis = axis_in(axis, data.rank())?;
    cx.claim(data.dtype(), data.shape())?;
    let unsupported = || Decline::unsupported(format!("the element type {} is not supported", data.dtype()));
    if data.is_empty() {
        return Ok(vec![Data::Tensor(data.clone())]);
    }
    let walk = around(data.shape(), axis)?;
    let result = dispatch_numeric!(data.dtype(), T => {
        let elements = data.elements::<T>().ok_or_else(unsupported)?;
        let neutral = if product { T::one() } else { T::zero() };
        let result = if product {
            cumulated_at_once(&elements, walk, how, &neutral, |a, b| a.mul(*b))
        } else {
            cumulated_at_once(&elements, walk, how, &neutral, |a, b| a.add(*b))
        };
        Tensor::from_vec(data.shape(), result)?
    }, else => return Err(unsupported()));
    Ok(vec![Data::Tensor(result)])
}

/// Accumulates along the middle of three dims.
fn cumulated<T: Clone>(
    elements: &[T],
    (_, dim, inner): (usize, usize, usize),
    how: Walked,
    neutral: &T,
    combine: impl Fn(&T, &T) -> T,
) -> Vec<T> {
    let mut result = elements.to_vec();
    let block = dim.saturating_mul(inner).max(1);
    for (out, elements) in result.chunks_mut(block).zip(elements.chunks(block)) {
        walk_block(out, elements, inner, how, neutral, &combine);
    }
    result
}

/// As [`cumulated`], with one block on each thread if that pays.
fn cumulated_at_once<T: Element>(
    elements: &[T],
    (_, dim, inner): (usize, usize, usize),
    how: Walked,
    neutral: &T,
    combine: impl Fn(&T, &T) -> T + Sync,
) -> Vec<T> {
    let mut result = vec![T::zeroed(); elements.len()];
    let block = dim.saturating_mul(inner).max(1);
    let walk = |(out, elements): (&mut [T], &[T])| walk_block(out, elements, inner, how, neutral, &combine);
    let blocks = result.chunks_mut(block).zip(elements.chunks(block));
    if elements.len() < PARALLEL {
        blocks.for_each(walk);
    } else {
        threads::for_each(blocks, walk);
    }
    result
}

/// The least number of elements for which another thread pays.
const PARALLEL: usize = 1 << 20;

fn walk_block<T: Clone>(
    out: &mut [T],
    elements: &[T],
    inner: usize,
    how: Walked,
    neutral: &T,
    combine: &impl Fn(&T, &T) -> T,
) {
    match (inner, how.reverse) {
        (1, false) => walk_lane(out.iter_mut().zip(elements), how.exclusive, neutral, combine),
        (1, true) => walk_lane(out.iter_mut().zip(elements).rev(), how.exclusive, neutral, combine),
        _ => walk_lanes(out, elements, inner, how, neutral, combine),
    }
}

/// Accumulates one lane with adjacent elements.
fn walk_lane<'e, T: Clone + 'e>(
    lane: impl Iterator<Item = (&'e mut T, &'e T)>,
    exclusive: bool,
    neutral: &T,
    combine: &impl Fn(&T, &T) -> T,
) {
    let mut before: Option<T> = None;
    for (out, element) in lane {
        let with = before.as_ref().map_or_else(|| element.clone(), |before| combine(before, element));
        *out = if exclusive { before.unwrap_or_else(|| neutral.clone()) } else { with.clone() };
        before = Some(with);
    }
}

/// Accumulates `inner` interleaved lanes, row by row.
fn walk_lanes<T: Clone>(
    out: &mut [T],
    elements: &[T],
    inner: usize,
    how: Walked,
    neutral: &T,
    combine: &impl Fn(&T, &T) -> T,
) {
    let inner = inner.max(1);
    let rows = out.chunks_mut(inner).zip(elements.chunks(inner));
    let rows: &mut dyn Iterator<Item = (&mut [T], &[T])> = if how.reverse { &mut rows.rev() } else { &mut { rows } };
    let mut before: Vec<T> = Vec::new();
    for (out, elements) in rows {
        if before.is_empty() {
            before.extend_from_slice(elements);
            if how.exclusive {
                out.fill(neutral.clone());
            } else {
                out.clone_from_slice(elements);
            }
            continue;
        }
        for ((out, before), element) in out.iter_mut().zip(&mut before).zip(elements) {
            let with = combine(before, element);
            *out = if how.exclusive { before.clone() } else { with.clone() };
            *before = with;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;
    use crate::dim::Scope;

    #[test]
    fn sums_and_products() {
        let run = |op, opset, exclusive: i64, reverse: i64| {
            let case = Case::new(op, opset).with("exclusive", exclusive).with("reverse", reverse);
            values::<i32>(&case.eval([Tensor::vector(vec![2i32, 3, 4]), Tensor::scalar(0i64)]))
        };
        assert_eq!(run("CumSum", 14, 0, 0), [2, 5, 9]);
        assert_eq!(run("CumSum", 14, 1, 0), [0, 2, 5]);
        assert_eq!(run("CumSum", 14, 0, 1), [9, 7, 4]);
        assert_eq!(run("CumSum", 14, 1, 1), [7, 4, 0]);
        assert_eq!(run("CumProd", 26, 0, 0), [2, 6, 24]);
        assert_eq!(run("CumProd", 26, 1, 0), [1, 2, 6]);
        assert_eq!(run("CumProd", 26, 1, 1), [12, 4, 1]);
    }

    #[test]
    fn axes_and_edges() {
        let case = Case::new("CumSum", 11);
        let square = iota(&[2, 3]);
        assert_eq!(values::<f32>(&case.eval([square.clone(), ints(&[-2])])), [0.0, 1.0, 2.0, 3.0, 5.0, 7.0]);
        assert_eq!(values::<f32>(&case.eval([square.clone(), ints(&[1])])), [0.0, 1.0, 3.0, 3.0, 7.0, 12.0]);
        assert_eq!(case.eval([iota(&[0, 3]), ints(&[1])]).shape(), [0, 3]);
        assert_eq!(case.eval([iota(&[3, 0]), ints(&[0])]).shape(), [3, 0]);
        let wrap = case.eval([ints(&[i64::MAX, 1]), ints(&[0])]);
        assert_eq!(values::<i64>(&wrap), [i64::MAX, i64::MIN]);
        case.fails([square.clone(), ints(&[2])]);
        case.fails([square, ints(&[0, 1])]);
        case.fails([iota(&[]), ints(&[0])]);
        case.fails([strings(&[1], &["a"]), ints(&[0])]);
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let facts = vec![Some(vector(&scope, &["A", "B", "?", "1"])), Some(Fact::constant(ints(&[0])))];
        assert_eq!(elements(&scope, &Case::new("CumSum", 11).infer(&scope, facts)[0]), ["A", "A + B", "?", "?"]);
    }
}
