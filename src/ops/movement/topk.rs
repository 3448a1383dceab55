//! TopK: the largest or smallest elements of an axis, and their indices.
//!
//! | version | difference |
//! | --- | --- |
//! | 1 | `k` is an attribute |
//! | 10 | `k` is an operand |
//! | 11 | attributes `largest` and `sorted`, integers |
//! | 24 | bfloat16 |
//!
//! Of equal elements the one with the lower index comes first. Without `sorted` the standard leaves the order undefined; the evaluator then
//! sorts, too.
//!
//! Refused: a `k` below 0 or above the dim. Disputed and kept: NaNs, which have no order.

use std::sync::atomic::{AtomicBool, Ordering};

use super::around;
use super::cells::{elements_of, moved};
use super::gather::gather_runs;
use super::order::{float_key, sort_keys};
use crate::dim::{Dim, Scope};
use crate::ir::{Data, Fact, Scalar};
use crate::ops::traits::{NumbersOf, Traits};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, Operator, Refusal, axis_in};
use crate::tensor::threads;
use crate::tensor::{DType, Tensor};

pub(in crate::ops) const OPERATORS: &[Operator] = &[Operator::new("TopK", &[1, 10, 11, 24], infer, eval)
    .with(Traits::NONE.inferred_by_contents(1).inferred_by_numbers(NumbersOf::Whole(1)))];

fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let data = cx.required(0)?;
    let dtype = data.dtype();
    let size = if cx.version < 10 {
        cx.attr_int("k")?.map(Dim::constant)
    } else {
        let size = cx.required(1)?;
        if let Some(length) = size.static_len().filter(|&length| length != 1) {
            return Err(Refusal::invalid(format!("the operand 'K' has {length} elements instead of 1")));
        }
        elements_of(size).and_then(|elements| elements.first().and_then(Scalar::as_int).cloned())
    };
    let Some(shape) = data.shape() else {
        return Ok(vec![Fact::tensor(dtype, None), Fact::tensor(Some(DType::Int64), None)]);
    };
    let axis = axis_in(cx.attr_int("axis")?.unwrap_or(-1), shape.len())?;
    let mut dims = shape.to_vec();
    if let Some(dim) = dims.get_mut(axis) {
        let scope: &Scope = cx.scope();
        if let Some(size) = size.as_ref()
            && (size.as_const().is_some_and(|size| size < 0) || scope.gt(size, dim).is_yes())
        {
            let (size, dim) = (scope.format(size), scope.format(dim));
            return Err(Refusal::invalid(format!("'K' is {size}, which is out of range for a dim of {dim}")));
        }
        *dim = size.unwrap_or_else(|| super::dim_up_to(cx, dim));
    }
    Ok(vec![Fact::tensor(dtype, Some(dims.clone())), Fact::tensor(Some(DType::Int64), Some(dims))])
}

fn eval(cx: &mut EvalCx<'_>) -> EvalResult {
    let data = cx.tensor(0)?;
    let axis = axis_in(cx.attr_int("axis")?.unwrap_or(-1), data.rank())?;
    let size = if cx.version < 10 {
        cx.attr_int("k")?
    } else {
        match cx.ints(1)?.as_slice() {
            &[size] => Some(size),
            _ => None,
        }
    };
    let largest = cx.version < 11 || cx.attr_flag("largest", true)?;
    let (_, dim, inner) = around(data.shape(), axis)?;
    let size = size.and_then(|size| usize::try_from(size).ok()).filter(|&size| size <= dim);
    let size =
        size.ok_or_else(|| Decline::invalid(format!("'K' is not a single number between 0 and the dim {dim}")))?;
    let mut shape = data.shape().to_vec();
    if let Some(dim) = shape.get_mut(axis) {
        *dim = size;
    }
    cx.claim(data.dtype(), &shape)?;
    cx.claim(DType::Int64, &shape)?;
    let len = super::count(&shape)?;
    if len == 0 {
        let indices = Tensor::zeros(DType::Int64, &shape)?;
        return Ok(vec![Data::Tensor(Tensor::zeros(data.dtype(), &shape)?), Data::Tensor(indices)]);
    }
    cx.budget().take_work((data.len() as u64).saturating_mul(u64::from(dim.ilog2()) + 1))?;
    let split = Lanes { dim, inner, size, largest };
    let found = match data.dtype() {
        DType::Float => split.chosen(&data.elements::<f32>().unwrap_or_default(), |x| ordered(x.into())),
        DType::Double => split.chosen(&data.elements::<f64>().unwrap_or_default(), ordered),
        DType::Int32 => split.chosen(&data.elements::<i32>().unwrap_or_default(), |x| Some(x as u64 ^ 1 << 63)),
        DType::Int64 => split.chosen(&data.elements::<i64>().unwrap_or_default(), |x| Some(x as u64 ^ 1 << 63)),
        _ => {
            cx.claim(DType::Uint64, data.shape())?;
            split.chosen(&sort_keys(data)?, Some)
        }
    };
    let (places, indices) =
        found.ok_or_else(|| Decline::unsupported("the operand contains NaN, which has no order"))?;
    let values = moved(&[data], &|operands| {
        let [data] = operands else { return Err(Decline::invalid("the operands have different element types")) };
        gather_runs(data, 1, &places, &shape)
    })?;
    Ok(vec![Data::Tensor(values), Data::Tensor(Tensor::from_vec(&shape, indices)?)])
}

/// Returns the key of a float; NaN has none.
fn ordered(value: f64) -> Option<u64> {
    (!value.is_nan()).then(|| float_key(value))
}

/// The lanes of data along an axis, and the number of elements to select from each.
struct Lanes {
    dim: usize,
    inner: usize,
    size: usize,
    largest: bool,
}

impl Lanes {
    /// Returns the positions of the selected elements in the data, and their indices in their lanes. `key` orders like the elements; an
    /// element without an order has no key.
    fn chosen<T: Copy + Sync>(
        &self,
        elements: &[T],
        key: impl Fn(T) -> Option<u64> + Sync,
    ) -> Option<(Vec<usize>, Vec<i64>)> {
        let block = self.dim.saturating_mul(self.inner).max(1);
        let own = self.size.saturating_mul(self.inner).max(1);
        let outer = elements.len() / block;
        let (mut places, mut indices) = (vec![0usize; outer * own], vec![0i64; outer * own]);
        let unordered = AtomicBool::new(false);
        let fill = |(number, (places, indices)): (usize, (&mut [usize], &mut [i64]))| {
            let elements = elements.get(number * block..(number + 1) * block).unwrap_or_default();
            let mut all_ordered = true;
            for lane in 0..self.inner {
                let lane_elements = elements.get(lane..).unwrap_or_default().iter().step_by(self.inner.max(1));
                let keys = lane_elements.map(|&element| match key(element) {
                    // Small keys come first.
                    Some(key) => {
                        if self.largest {
                            !key
                        } else {
                            key
                        }
                    }
                    None => {
                        all_ordered = false;
                        u64::MAX
                    }
                });
                for (rank, index) in smallest(keys, self.size).into_iter().enumerate() {
                    let to = rank * self.inner + lane;
                    if let (Some(place), Some(found)) = (places.get_mut(to), indices.get_mut(to)) {
                        (*place, *found) = (number * block + index * self.inner + lane, index as i64);
                    }
                }
            }
            if !all_ordered {
                unordered.store(true, Ordering::Relaxed);
            }
        };
        let blocks = places.chunks_mut(own).zip(indices.chunks_mut(own)).enumerate();
        if elements.len() < PARALLEL {
            blocks.for_each(fill);
        } else {
            threads::for_each(blocks, fill);
        }
        (!unordered.into_inner()).then_some((places, indices))
    }
}

/// The least number of elements for which another thread pays.
const PARALLEL: usize = 1 << 18;

/// Returns the positions of the smallest `size` keys, at least one of them, in order; of equal keys the first position comes first. It
/// keeps twice as many at a time, and drops keys that are not below the last of them.
fn smallest(keys: impl Iterator<Item = u64>, size: usize) -> Vec<usize> {
    let room = size.saturating_mul(2).max(64);
    let mut keys = keys.zip(0..);
    let mut kept: Vec<(u64, usize)> = keys.by_ref().take(room).collect();
    if kept.len() == room {
        let mut limit = cut(&mut kept, size);
        for (key, index) in keys {
            // An equal key at a later position is dropped as well.
            if key < limit {
                kept.push((key, index));
                if kept.len() >= room {
                    limit = cut(&mut kept, size);
                }
            }
        }
    }
    kept.sort_unstable();
    kept.truncate(size);
    kept.into_iter().map(|(_, index)| index).collect()
}

/// Keeps the smallest `size` keys and returns the last of them.
fn cut(kept: &mut Vec<(u64, usize)>, size: usize) -> u64 {
    let (_, &mut (limit, _), _) = kept.select_nth_unstable(size - 1);
    kept.truncate(size);
    limit
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::*;
    use super::*;

    #[test]
    fn the_largest_and_the_smallest() {
        let data = tensor(&[2, 4], &[3f32, 1.0, 3.0, 2.0, -1.0, -0.0, 0.0, -2.0]);
        let top = Case::new("TopK", 11).outputs(2).all([data.clone(), ints(&[2])]);
        assert_eq!(values::<f32>(&top[0]), [3.0, 3.0, 0.0, 0.0]);
        assert_eq!(values::<i64>(&top[1]), [0, 2, 1, 2]);
        let low = Case::new("TopK", 11).with("largest", 0).with("axis", 0).outputs(2).all([data.clone(), ints(&[1])]);
        assert_eq!(low[0].shape(), [1, 4]);
        assert_eq!(values::<i64>(&low[1]), [1, 1, 1, 1]);
        let old = Case::new("TopK", 1).with("k", 4).outputs(2).all([data.clone()]);
        assert_eq!(values::<i64>(&old[1]), [0, 2, 3, 1, 1, 2, 0, 3]);
        assert_eq!(Case::new("TopK", 11).outputs(2).all([data.clone(), ints(&[0])])[1].shape(), [2, 0]);
        let small = Case::new("TopK", 11).outputs(2).all([Tensor::vector(vec![3u8, 200, 7]), ints(&[2])]);
        assert_eq!(values::<u8>(&small[0]), [200, 7]);
        for wrong in [ints(&[5]), ints(&[-1]), ints(&[1, 1])] {
            Case::new("TopK", 11).outputs(2).fails([data.clone(), wrong]);
        }
        let nan = Case::new("TopK", 11).outputs(2).fails([Tensor::vector(vec![f32::NAN, 1.0]), ints(&[1])]);
        assert!(matches!(nan, Decline::Unsupported(_)));
    }

    #[test]
    fn symbols_follow() {
        let scope = Rc::new(Scope::new());
        let facts = vec![Some(shaped(&scope, &["B", "S"])), Some(vector(&scope, &["K"]))];
        let facts = Case::new("TopK", 11).outputs(2).infer(&scope, facts);
        assert_eq!(dims(&scope, &facts[0]), ["B", "K"]);
        assert_eq!(dims(&scope, &facts[1]), ["B", "K"]);
    }
}
