//! Softmax, LogSoftmax and Hardmax.

use super::real::{by_blocks, sum};
use crate::ir::{Data, Fact};
use crate::ops::elementwise::exponential;
use crate::ops::vector::fold_run;
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
    // Before version 13, all axes from this one on are flattened.
    let (dims, inner) = if flattened { (rest, &[][..]) } else { rest.split_at(rest.len().min(1)) };
    let (dim, inner) = (product(dims).unwrap_or(0), product(inner).unwrap_or(0));
    // An exponential costs dozens of elementary operations.
    cx.budget().take_work(u64::try_from(data.len()).unwrap_or(u64::MAX).saturating_mul(32))?;
    let size = dim.saturating_mul(inner);
    let whole = |kind: fn(&mut [f64], usize, fn(f64) -> f64), exp: fn(f64) -> f64, all_numbers: bool| {
        by_blocks(cx, data, data.dtype(), size, |_, block| {
            kind(block, inner, exp);
            // A row with a NaN or an infinity, or with negative infinities only, has NaN as its result. Runtimes agree on that for Softmax
            // only: Hardmax finds a maximum, and LogSoftmax in binary64 keeps the infinities.
            if all_numbers && block.iter().any(|value| value.is_nan()) {
                return Err(Decline::unsupported("the result is NaN"));
            }
            Ok(())
        })
    };
    let wide = data.dtype() == DType::Double;
    let (result, _) = match cx.node.op_type.as_str() {
        "Hardmax" => whole(hardmax, libm::exp, true),
        "LogSoftmax" if wide => whole(log_softmax, libm::exp, true),
        "LogSoftmax" => whole(log_softmax, exponential::exp, false),
        _ if wide => whole(softmax::<true>, libm::exp, false),
        // A faster exponential is precise enough for results of at most 32 bits.
        _ => by_blocks(
            cx,
            data,
            data.dtype(),
            size,
            #[inline(always)]
            |_, block| {
                softmax::<false>(block, inner, exponential::exp);
                Ok(())
            },
        ),
    }?;
    Ok(vec![Data::Tensor(result)])
}

/// Returns the maximum of each column of a block of rows; NaN if there is one.
fn largest(block: &[f64], width: usize) -> Vec<f64> {
    let mut most = vec![f64::NEG_INFINITY; width];
    for row in block.chunks_exact(width) {
        for (most, &x) in most.iter_mut().zip(row) {
            *most = larger(*most, x);
        }
    }
    most
}

/// Computes the logarithm of the softmax over a block of rows of this width, which is not 0.
pub(super) fn log_softmax_rows(block: &mut [f64], width: usize) {
    log_softmax(block, width, libm::exp);
}

/// Returns the larger number; NaN if the second one is NaN.
#[inline(always)]
fn larger(most: f64, x: f64) -> f64 {
    if x > most || x.is_nan() { x } else { most }
}

/// Computes the softmax. Without `DIVIDES`, results are precise enough only for types of at most 32 bits.
#[inline(always)]
fn softmax<const DIVIDES: bool>(block: &mut [f64], width: usize, exp: impl Fn(f64) -> f64) {
    if width == 1 {
        // One row, processed in parallel lanes.
        let most = fold_run(block, f64::NEG_INFINITY, larger, larger);
        block.iter_mut().for_each(|x| *x = exp(*x - most));
        let total = sum(block, |x| x);
        if DIVIDES {
            block.iter_mut().for_each(|x| *x /= total);
        } else {
            let share = total.recip();
            block.iter_mut().for_each(|x| *x *= share);
        }
        return;
    }
    let most = largest(block, width);
    let mut sums = vec![0.0; width];
    for row in block.chunks_exact_mut(width) {
        row.iter_mut().zip(&most).for_each(|(x, most)| *x = exp(*x - most));
        sums.iter_mut().zip(&*row).for_each(|(sum, x)| *sum += x);
    }
    for row in block.chunks_exact_mut(width) {
        row.iter_mut().zip(&sums).for_each(|(x, sum)| *x /= sum);
    }
}

fn log_softmax(block: &mut [f64], width: usize, exp: fn(f64) -> f64) {
    let most = largest(block, width);
    let mut sums = vec![0.0; width];
    for row in block.chunks_exact(width) {
        sums.iter_mut().zip(row).zip(&most).for_each(|((sum, x), most)| *sum += exp(x - most));
    }
    let logs: Vec<f64> = sums.into_iter().map(libm::log).collect();
    for row in block.chunks_exact_mut(width) {
        row.iter_mut().zip(&most).zip(&logs).for_each(|((x, most), log)| *x = (*x - most) - log);
    }
}

/// Writes 1 for the first maximum, 0 for the others.
fn hardmax(block: &mut [f64], width: usize, _: fn(f64) -> f64) {
    let most = largest(block, width);
    let mut open = vec![true; width];
    for row in block.chunks_exact_mut(width) {
        for ((x, open), most) in row.iter_mut().zip(&mut open).zip(&most) {
            // A NaN is kept, and prevents folding of the node.
            let chosen = *open && x == most;
            *open &= !chosen;
            if !most.is_nan() {
                *x = f64::from(u8::from(chosen));
            }
        }
    }
}
