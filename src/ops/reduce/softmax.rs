//! Softmax, LogSoftmax and Hardmax.

use rayon::prelude::*;

use super::real::{reals, rounded};
use crate::ir::{Data, Fact};
use crate::ops::elementwise::exponential;
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, axis_in};
use crate::tensor::{DType, product};

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let axis = cx.attr_int("axis")?.unwrap_or(if cx.version < 13 { 1 } else { -1 });
    if let Some(rank) = data.rank() {
        axis_in(axis, rank)?;
    }
    Ok(vec![Fact::tensor(data.dtype(), data.shape().map(<[_]>::to_vec))])
}

pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let flattened = cx.version < 13;
    let axis = cx.attr_int("axis")?.unwrap_or(if flattened { 1 } else { -1 });
    let axis = axis_in(axis, data.rank())?;
    let rest = data.shape().get(axis..).unwrap_or_default();
    // Before version 13, all axes from this one on are one.
    let (dims, inner) = if flattened { (rest, &[][..]) } else { rest.split_at(rest.len().min(1)) };
    let (dim, inner) = (product(dims).unwrap_or(0), product(inner).unwrap_or(0));
    let mut values = reals(cx, data)?;
    // An exponential is worth some dozens of elementary operations.
    cx.budget().take_work(u64::try_from(data.len()).unwrap_or(u64::MAX).saturating_mul(32))?;
    if let Some(block) = dim.checked_mul(inner).filter(|&block| block > 0) {
        let kind = match cx.node.op_type.as_str() {
            "LogSoftmax" => log_softmax,
            "Hardmax" => hardmax,
            _ => softmax,
        };
        // What is rounded to binary32 or less is good enough in a faster way.
        let exp = if data.dtype() == DType::Double { libm::exp } else { exponential::exp };
        if values.len() < PARALLEL {
            values.chunks_exact_mut(block).for_each(|block| kind(block, &largest(block, inner), exp));
        } else {
            values.par_chunks_exact_mut(block).for_each(|block| kind(block, &largest(block, inner), exp));
        }
    }
    // A row with a NaN or an infinity, or of nothing but negative infinities, has no share that is a number. Runtimes agree on
    // that for Softmax only: Hardmax finds something largest, and LogSoftmax in binary64 leaves the infinities.
    let agreed = cx.node.is("Softmax") || cx.node.is("LogSoftmax") && data.dtype() != DType::Double;
    if !agreed && values.iter().any(|value| value.is_nan()) {
        return Err(Decline::unsupported("the result is not a number"));
    }
    Ok(vec![Data::Tensor(rounded(cx, data.dtype(), data.shape(), values)?)])
}

/// The largest of each column of a block of rows; NaN where there is one.
fn largest(block: &[f64], width: usize) -> Vec<f64> {
    let mut most = vec![f64::NEG_INFINITY; width];
    for row in block.chunks_exact(width) {
        for (most, &x) in most.iter_mut().zip(row) {
            if x > *most || x.is_nan() {
                *most = x;
            }
        }
    }
    most
}

/// The logarithm of the softmax over a block of rows of this width, which is not 0.
pub(super) fn log_softmax_rows(block: &mut [f64], width: usize) {
    let most = largest(block, width);
    log_softmax(block, &most, libm::exp);
}

/// Fewer elements are not worth another thread.
const PARALLEL: usize = 1 << 18;

/// The sums over a block of rows of `exp(x - most)`, which the rows become when `keep` says so.
fn exponentials(block: &mut [f64], most: &[f64], keep: bool, exp: fn(f64) -> f64) -> Vec<f64> {
    let mut sums = vec![0.0; most.len()];
    for row in block.chunks_exact_mut(most.len()) {
        for ((x, sum), most) in row.iter_mut().zip(&mut sums).zip(most) {
            let power = exp(*x - most);
            *sum += power;
            if keep {
                *x = power;
            }
        }
    }
    sums
}

fn softmax(block: &mut [f64], most: &[f64], exp: fn(f64) -> f64) {
    let sums = exponentials(block, most, true, exp);
    for row in block.chunks_exact_mut(most.len()) {
        row.iter_mut().zip(&sums).for_each(|(x, sum)| *x /= sum);
    }
}

fn log_softmax(block: &mut [f64], most: &[f64], exp: fn(f64) -> f64) {
    let sums = exponentials(block, most, false, exp);
    let logs: Vec<f64> = sums.into_iter().map(libm::log).collect();
    for row in block.chunks_exact_mut(most.len()) {
        row.iter_mut().zip(most).zip(&logs).for_each(|((x, most), log)| *x = (*x - most) - log);
    }
}

/// 1 for the first largest element, 0 for the others.
fn hardmax(block: &mut [f64], most: &[f64], _: fn(f64) -> f64) {
    let mut open = vec![true; most.len()];
    for row in block.chunks_exact_mut(most.len()) {
        for ((x, open), most) in row.iter_mut().zip(&mut open).zip(most) {
            // A NaN stays one, and keeps the node from being folded.
            let chosen = *open && x == most;
            *open &= !chosen;
            if !most.is_nan() {
                *x = f64::from(u8::from(chosen));
            }
        }
    }
}
