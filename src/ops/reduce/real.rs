//! Conversion of float tensors to binary64 and back: all operators of this family compute in binary64 and round once.

use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};

use crate::ops::vector::{Stored, fold_run, vectorized};
use crate::ops::{Decline, EvalCx};
use crate::tensor::threads;
use crate::tensor::{DType, Element, Tensor, nearest_bf16, nearest_f16};

/// Reads the elements of a float tensor. Charges the budget for the memory.
///
/// # Errors
/// The element type is not a float type, or there are too many elements.
pub(super) fn reals(cx: &EvalCx<'_>, tensor: &Tensor) -> Result<Vec<f64>, Decline> {
    if !matches!(tensor.dtype(), DType::Float | DType::Double | DType::Float16 | DType::Bfloat16) {
        return Err(Decline::invalid(format!("{} is not a supported element type", tensor.dtype())));
    }
    cx.claim(DType::Double, tensor.shape())?;
    cx.budget().take_work(u64::try_from(tensor.len()).unwrap_or(u64::MAX))?;
    tensor.to_f64s().ok_or_else(|| Decline::invalid("the data has no numeric type"))
}

/// Builds a tensor from these numbers, each rounded once. Charges the budget for the memory.
///
/// # Errors
/// The type is not a float type of at least 16 bits, or the result is over budget.
pub(super) fn rounded(cx: &EvalCx<'_>, dtype: DType, shape: &[usize], values: Vec<f64>) -> Result<Tensor, Decline> {
    cx.claim(dtype, shape)?;
    Ok(match dtype {
        DType::Double => Tensor::from_vec(shape, values)?,
        DType::Float => Tensor::from_vec(shape, values.into_iter().map(|value| value as f32).collect())?,
        DType::Float16 => Tensor::from_vec(shape, values.into_iter().map(nearest_f16).collect())?,
        DType::Bfloat16 => Tensor::from_vec(shape, values.into_iter().map(nearest_bf16).collect())?,
        other => return Err(Decline::invalid(format!("{other} is not a supported element type"))),
    })
}

/// Fails unless these intermediate results of kernels are finite in the type itself, or in binary32 for narrower types. Binary64
/// would yield finite results where kernels yield infinities or NaN. The limit has a margin for sums, because kernels add in
/// different orders.
///
/// # Errors
/// One of the numbers may not fit.
pub(super) fn fit_on_the_way(dtype: DType, numbers: impl IntoIterator<Item = f64>) -> Result<(), Decline> {
    let most = if dtype == DType::Double { f64::MAX } else { f64::from(f32::MAX) } / 4.0;
    if numbers.into_iter().all(|number| number.abs() <= most) {
        return Ok(());
    }
    Err(Decline::unsupported("intermediate results overflow in the kernels of runtimes"))
}

/// Fails if one of these sums of squares is positive, but underflows in the type that kernels add in.
///
/// # Errors
/// One of the numbers is too small.
pub(super) fn stay_above_zero(dtype: DType, numbers: impl IntoIterator<Item = f64>) -> Result<(), Decline> {
    let least = if dtype == DType::Double { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) } * 1e8;
    if numbers.into_iter().all(|number| number == 0.0 || number.abs() >= least) {
        return Ok(());
    }
    Err(Decline::unsupported("a sum of squares underflows to 0 in the kernels of runtimes"))
}

/// Fails if rounding terms of this size may change results of ordinary size by more than about a thousandth.
///
/// # Errors
/// One of the terms is too large.
pub(super) fn keep_digits(dtype: DType, terms: impl IntoIterator<Item = f64>) -> Result<(), Decline> {
    let most = if dtype == DType::Double { 1u64 << 43 } else { 1 << 14 } as f64;
    if terms.into_iter().all(|term| term.abs() <= most) {
        return Ok(());
    }
    Err(Decline::unsupported("the result depends on the rounding of intermediate values, in which runtimes differ"))
}

/// Returns the sum of squares.
#[inline(always)]
pub(super) fn squared(values: &[f64]) -> f64 {
    sum(values, |x| x * x)
}

/// Returns the sum of a function of the numbers.
#[inline(always)]
pub(super) fn sum(values: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    fold_run(values, 0.0, |sum, x| sum + term(x), |a, b| a + b)
}

/// The number of elements per task, if blocks are shorter: they are still cached when they are read again.
pub(super) const TASK: usize = 1 << 14;

/// The minimum number of elements for several threads.
pub(super) const PARALLEL: usize = 1 << 18;

/// Reads a float tensor as binary64 numbers, in parts.
enum Reals<'a> {
    Float(&'a [[u8; 4]]),
    Double(&'a [[u8; 8]]),
    Float16(&'a [[u8; 2]]),
    Bfloat16(&'a [[u8; 2]]),
}

impl<'a> Reals<'a> {
    fn of(tensor: &'a Tensor) -> Option<Self> {
        Some(match tensor.dtype() {
            DType::Float => Reals::Float(f32::stored(tensor)?),
            DType::Double => Reals::Double(f64::stored(tensor)?),
            DType::Float16 => Reals::Float16(f16::stored(tensor)?),
            DType::Bfloat16 => Reals::Bfloat16(bf16::stored(tensor)?),
            _ => return None,
        })
    }

    /// Reads elements from index `start` on until `out` is full.
    fn read(&self, start: usize, out: &mut [f64]) {
        match self {
            Reals::Float(values) => widen::<f32>(values, start, out),
            Reals::Double(values) => widen::<f64>(values, start, out),
            Reals::Float16(values) => widen::<f16>(values, start, out),
            Reals::Bfloat16(values) => widen::<bf16>(values, start, out),
        }
    }
}

fn widen<T: Stored>(values: &[T::Bytes], start: usize, out: &mut [f64]) {
    let values = values.get(start..).unwrap_or_default();
    vectorized(
        #[inline(always)]
        || out.iter_mut().zip(values).for_each(|(out, &bytes)| *out = T::of_bytes(bytes).to_f64()),
    );
}

/// Builds a tensor of the shape of `data`, block by block. `each` gets the index of a block of `size` adjacent elements, and the
/// block in binary64, which it changes in place. Each element is rounded to `dtype` once. Also returns the results of `each` in
/// block order. Charges the budget for memory and work.
///
/// # Errors
/// The element type is not a float type, there are too many elements, or `each` failed.
pub(super) fn by_blocks<S: Send + Clone + Default>(
    cx: &EvalCx<'_>,
    data: &Tensor,
    dtype: DType,
    size: usize,
    each: impl Fn(usize, &mut [f64]) -> Result<S, Decline> + Sync,
) -> Result<(Tensor, Vec<S>), Decline> {
    let size = size.max(1);
    // Tasks of small blocks use little memory; those of large blocks may need the whole tensor.
    if size > TASK {
        cx.claim(DType::Double, data.shape())?;
    }
    cx.budget().take_work(u64::try_from(data.len()).unwrap_or(u64::MAX))?;
    cx.claim(dtype, data.shape())?;
    let elements =
        Reals::of(data).ok_or_else(|| Decline::invalid(format!("{} is not a supported element type", data.dtype())))?;
    let blocks = (TASK / size).max(1);
    let answers: Vec<S> = vec![S::default(); data.len() / size];
    let blockwise = Blockwise { data, size, blocks, answers: Mutex::new(answers), failed: Mutex::new(None) };
    let fill = |task: usize, buffer: &mut [f64]| {
        elements.read(task * blocks * size, buffer);
        blockwise.answer(task, buffer, &each);
    };
    let tensor = match dtype {
        DType::Double => blockwise.tensor(&fill, |values, out: &mut [f64]| out.copy_from_slice(values)),
        DType::Float => blockwise.tensor(&fill, |values, out: &mut [f32]| narrow(values, out, |value| value as f32)),
        DType::Float16 => blockwise.tensor(&fill, |values, out| narrow(values, out, nearest_f16)),
        DType::Bfloat16 => blockwise.tensor(&fill, |values, out| narrow(values, out, nearest_bf16)),
        other => Err(Decline::invalid(format!("{other} is not a supported element type"))),
    }?;
    match blockwise.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some((_, decline)) => Err(decline),
        None => Ok((tensor, blockwise.answers.into_inner().unwrap_or_default())),
    }
}

fn narrow<T>(values: &[f64], out: &mut [T], narrow: impl Fn(f64) -> T) {
    vectorized(
        #[inline(always)]
        || out.iter_mut().zip(values).for_each(|(out, &value)| *out = narrow(value)),
    );
}

/// The data that all blocks of a tensor share.
struct Blockwise<'a, S> {
    data: &'a Tensor,
    /// The number of elements per block.
    size: usize,
    /// The number of blocks per task.
    blocks: usize,
    answers: Mutex<Vec<S>>,
    /// The first failed block in block order, so that the reported error is deterministic.
    failed: Mutex<Option<(usize, Decline)>>,
}

impl<S: Send + Clone> Blockwise<'_, S> {
    /// Changes the blocks of a task, and stores the results of `each`.
    fn answer(
        &self,
        task: usize,
        buffer: &mut [f64],
        each: &(impl Fn(usize, &mut [f64]) -> Result<S, Decline> + Sync),
    ) {
        let first = task * self.blocks;
        let mut made = Vec::with_capacity(self.blocks);
        vectorized(
            #[inline(always)]
            || {
                for (at, block) in buffer.chunks_exact_mut(self.size).enumerate() {
                    match each(first + at, block) {
                        Ok(answer) => made.push(answer),
                        Err(decline) => return self.fail(first + at, decline),
                    }
                }
            },
        );
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let places = answers.get_mut(first..).unwrap_or_default();
        places.iter_mut().zip(made).for_each(|(place, made)| *place = made);
    }

    fn fail(&self, block: usize, decline: Decline) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.as_ref().is_none_or(|(earlier, _)| block < *earlier) {
            *failed = Some((block, decline));
        }
    }

    /// Builds the tensor from elements that `fill` computes per task and `round` rounds.
    fn tensor<T: Element>(
        &self,
        fill: &(dyn Fn(usize, &mut [f64]) + Sync),
        round: impl Fn(&[f64], &mut [T]) + Sync,
    ) -> Result<Tensor, Decline> {
        let mut result = vec![T::zeroed(); self.data.len()];
        let task = |buffer: &mut Vec<f64>, (task, out): (usize, &mut [T])| {
            buffer.resize(out.len(), 0.0);
            fill(task, buffer);
            round(buffer, out);
        };
        let len = self.blocks.saturating_mul(self.size);
        if result.len() < PARALLEL {
            let mut buffer = Vec::new();
            result.chunks_mut(len).enumerate().for_each(|part| task(&mut buffer, part));
        } else {
            threads::for_each_with(result.chunks_mut(len).enumerate(), Vec::new, task);
        }
        Ok(Tensor::from_vec(self.data.shape(), result)?)
    }
}
