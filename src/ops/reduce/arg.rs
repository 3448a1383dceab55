//! ArgMax and ArgMin.

use super::real::{PARALLEL, TASK};
use crate::dim::Dim;
use crate::ir::{Data, Fact};
use crate::ops::vector::{Stored, find_in_run, fold_run, vectorized};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, axis_in};
use crate::tensor::{DType, Tensor, dispatch_numeric, product, threads};

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let axis = cx.attr_int("axis")?.unwrap_or(0);
    let keep = cx.attr_flag("keepdims", true)?;
    let shape = match cx.required(0)?.shape() {
        None => None,
        // For empty tensors, ONNX Runtime keeps an axis with a negative index.
        Some(shape) if axis < 0 && shape.iter().any(|dim| dim.is_const(0)) => {
            axis_in(axis, shape.len())?;
            None
        }
        Some(shape) => {
            let axis = axis_in(axis, shape.len())?;
            let mut shape = shape.to_vec();
            match shape.get_mut(axis).filter(|_| keep) {
                Some(dim) => *dim = Dim::constant(1),
                None => {
                    shape.remove(axis);
                }
            }
            Some(shape)
        }
    };
    Ok(vec![Fact::tensor(Some(DType::Int64), shape)])
}

pub(super) fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let axis = cx.attr_int("axis")?.unwrap_or(0);
    if data.is_empty() && axis < 0 {
        return Err(Decline::unsupported(
            "an axis is negative and the data is empty, for which runtimes return different shapes",
        ));
    }
    let axis = axis_in(axis, data.rank())?;
    let (outer, rest) = data.shape().split_at(axis);
    let Some((&dim, inner)) = rest.split_first() else {
        return Err(Decline::invalid("the data is a scalar, and has no axis"));
    };
    let mut shape = outer.to_vec();
    shape.extend(cx.attr_flag("keepdims", true)?.then_some(1));
    shape.extend(inner);
    let search = Search {
        dim,
        inner: product(inner).unwrap_or(0),
        largest: cx.node.is("ArgMax"),
        last: cx.version >= 12 && cx.attr_flag("select_last_index", false)?,
    };
    if u32::try_from(dim).is_err() {
        return Err(Decline::OverBudget(format!("the axis has {dim} elements, which is too many")));
    }
    if dim == 0 && product(&shape) != Some(0) {
        return Err(Decline::invalid("the dim along the axis is 0"));
    }
    cx.claim(DType::Int64, &shape)?;
    cx.budget().take_work(u64::try_from(data.len()).unwrap_or(u64::MAX))?;
    let found = dispatch_numeric!(data.dtype(), T => {
        let elements = T::stored(data).ok_or_else(|| Decline::invalid("the data does not have the expected element type"))?;
        search.over::<T>(elements)
    }, else => return Err(Decline::invalid(format!("the element type {} has no order", data.dtype()))));
    let found = found.ok_or_else(|| Decline::unsupported("the data contains NaN, which runtimes order differently"))?;
    Ok(vec![Data::Tensor(Tensor::from_vec(&shape, found)?)])
}

struct Search {
    /// The length of the searched axis.
    dim: usize,
    /// The number of elements between two neighbors on this axis.
    inner: usize,
    largest: bool,
    /// `true` if ties select the last element.
    last: bool,
}

impl Search {
    /// Returns the winning index for each position; `None` if there is a NaN.
    fn over<T: Stored>(&self, elements: &[T::Bytes]) -> Option<Vec<i64>> {
        let block = self.dim.checked_mul(self.inner).filter(|&block| block > 0 && elements.len() >= PARALLEL);
        let Some(block) = block else { return self.over_part::<T>(elements) };
        let len = (TASK / block).max(1).checked_mul(block)?;
        let parts = threads::map(elements.chunks(len), |part| self.over_part::<T>(part));
        Some(parts.into_iter().collect::<Option<Vec<_>>>()?.concat())
    }

    /// Like `over`, on one thread.
    fn over_part<T: Stored>(&self, elements: &[T::Bytes]) -> Option<Vec<i64>> {
        vectorized(
            #[inline(always)]
            || {
                let is_unordered = |bytes| u32::from(T::of_bytes(bytes).partial_cmp(&T::of_bytes(bytes)).is_none());
                // Count per block; a count over all elements would need wider integers.
                let is_ordered = |block: &[T::Bytes]| block.iter().map(|&bytes| is_unordered(bytes)).sum::<u32>() == 0;
                elements.chunks(TASK).all(is_ordered).then(|| match self.largest {
                    true => self.winners::<T>(elements, |x, best| x > best),
                    false => self.winners::<T>(elements, |x, best| x < best),
                })
            },
        )
    }

    /// Returns for each position the index of the element that wins against all before it.
    #[inline(always)]
    fn winners<T: Stored>(&self, elements: &[T::Bytes], wins: impl Fn(T, T) -> bool) -> Vec<i64> {
        let block = self.dim.checked_mul(self.inner).filter(|&block| block > 0);
        let Some(block) = block else { return Vec::new() };
        let blocks = elements.chunks_exact(block);
        if self.inner == 1 {
            return blocks.map(|row| winner::<T>(row, &wins, self.last)).collect();
        }
        let mut found = Vec::with_capacity(elements.len() / self.dim);
        let mut winners = vec![0u32; self.inner];
        let mut best = vec![T::zero(); self.inner];
        for block in blocks {
            // From the end that wins ties, so that a later element has to be better.
            let row = |step: usize| {
                let index = if self.last { self.dim - 1 - step } else { step };
                (index as u32, block.get(index * self.inner..(index + 1) * self.inner).unwrap_or_default())
            };
            let (index, first) = row(0);
            winners.fill(index);
            best.iter_mut().zip(first).for_each(|(best, &bytes)| *best = T::of_bytes(bytes));
            for (index, row) in (1..self.dim).map(row) {
                // Branch-free, so that several positions are compared at once.
                for ((best, winner), &bytes) in best.iter_mut().zip(winners.iter_mut()).zip(row) {
                    let element = T::of_bytes(bytes);
                    let is_better = wins(element, *best);
                    *best = if is_better { element } else { *best };
                    *winner = if is_better { index } else { *winner };
                }
            }
            found.extend(winners.iter().copied().map(i64::from));
        }
        found
    }
}

/// Returns the index of the winning element of a row: the first of those that equal the best, or the last.
#[inline(always)]
fn winner<T: Stored>(row: &[T::Bytes], wins: impl Fn(T, T) -> bool, last: bool) -> i64 {
    let better = |best, x| if wins(x, best) { x } else { best };
    let Some(&first) = row.first() else { return 0 };
    let best = fold_run(row, T::of_bytes(first), |best, bytes| better(best, T::of_bytes(bytes)), better);
    let at = find_in_run(row, last, |bytes| T::of_bytes(bytes) == best);
    at.and_then(|at| i64::try_from(at).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(elements: &[f32]) -> Vec<[u8; 4]> {
        elements.iter().map(|element| element.to_le_bytes()).collect()
    }

    fn over(search: Search, elements: &[f32]) -> Option<Vec<i64>> {
        search.over::<f32>(&stored(elements))
    }

    #[test]
    fn winners_equal_those_of_a_sequential_scan() {
        let numbers: Vec<f32> = (0..6000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 29) as f32 - 3.5).collect();
        for (dim, inner) in [(1, 1), (7, 1), (64, 1), (37, 3), (5, 40), (2, 1)] {
            for (largest, last) in [(true, false), (true, true), (false, false), (false, true)] {
                let elements = &numbers[..6000 / (dim * inner) * dim * inner];
                let found = over(Search { dim, inner, largest, last }, elements).unwrap();
                let expected: Vec<i64> = (0..elements.len() / dim)
                    .map(|at| {
                        let element = |index: usize| elements[(at / inner * dim + index) * inner + at % inner];
                        let wins = |a: f32, b: f32| if largest { a > b } else { a < b } || last && a == b;
                        (1..dim).fold(0, |best, index| if wins(element(index), element(best)) { index } else { best })
                            as i64
                    })
                    .collect();
                assert_eq!(found, expected, "{dim} × {inner}");
            }
        }
        let many: Vec<f32> = numbers.iter().copied().cycle().take(PARALLEL / 37 * 37 * 3).collect();
        for (dim, inner) in [(37, 1), (37, 3), (3, 37), (TASK + 1, 1)] {
            let search = Search { dim, inner, largest: true, last: false };
            let elements = &many[..many.len() / (dim * inner) * dim * inner];
            let stored = stored(elements);
            assert_eq!(search.over::<f32>(&stored), search.over_part::<f32>(&stored));
        }
        let pair = || Search { dim: 2, inner: 1, largest: true, last: false };
        assert!(over(pair(), &[1.0, f32::NAN]).is_none());
        assert_eq!(over(pair(), &[-0.0, 0.0]), Some(vec![0]));
    }
}
