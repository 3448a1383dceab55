//! ArgMax and ArgMin.

use crate::dim::Dim;
use crate::ir::{Data, Fact};
use crate::ops::{Decline, EvalCx, EvalResult, InferCx, InferResult, axis_in};
use crate::tensor::{DType, Number, Tensor, dispatch_numeric, product};

pub(super) fn infer(cx: &mut InferCx<'_>) -> InferResult {
    let axis = cx.attr_int("axis")?.unwrap_or(0);
    let keep = cx.attr_flag("keepdims", true)?;
    let shape = match cx.required(0)?.shape() {
        None => None,
        // Of nothing, ONNX Runtime keeps an axis that is counted from the end.
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
        return Err(Decline::unsupported("runtimes disagree about axes of nothing that are counted from the end"));
    }
    let axis = axis_in(axis, data.rank())?;
    let (outer, rest) = data.shape().split_at(axis);
    let Some((&dim, inner)) = rest.split_first() else {
        return Err(Decline::invalid("there is no axis to search"));
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
    if dim == 0 && product(&shape) != Some(0) {
        return Err(Decline::invalid("there is nothing to search"));
    }
    cx.claim(DType::Int64, &shape)?;
    cx.budget().take_work(u64::try_from(data.len()).unwrap_or(u64::MAX))?;
    let found = dispatch_numeric!(data.dtype(), T => {
        let elements = data.elements::<T>().ok_or_else(|| Decline::invalid("the elements are of another type"))?;
        search.over(&elements)
    }, else => return Err(Decline::invalid(format!("{} has no order", data.dtype()))));
    let found = found.ok_or_else(|| Decline::unsupported("runtimes disagree about where NaN stands in the order"))?;
    Ok(vec![Data::Tensor(Tensor::from_vec(&shape, found)?)])
}

struct Search {
    /// The length of the searched axis.
    dim: usize,
    /// How many elements lie between two neighbours on it.
    inner: usize,
    largest: bool,
    /// Of equal elements, whether the last counts.
    last: bool,
}

impl Search {
    /// The index of the winner for each place; `None` if there is a NaN.
    fn over<T: Number>(&self, elements: &[T]) -> Option<Vec<i64>> {
        let block = self.dim.checked_mul(self.inner).filter(|&block| block > 0);
        let Some(block) = block else { return Some(Vec::new()) };
        let mut found = Vec::with_capacity(elements.len() / self.dim);
        for block in elements.chunks_exact(block) {
            let mut rows = block.chunks_exact(self.inner);
            let mut best = rows.next()?.to_vec();
            let start = found.len();
            found.resize(start + self.inner, 0i64);
            let winners = found.get_mut(start..)?;
            if best.iter().any(|x| x.partial_cmp(x).is_none()) {
                return None;
            }
            for (index, row) in (1i64..).zip(rows) {
                for ((best, winner), element) in best.iter_mut().zip(winners.iter_mut()).zip(row) {
                    let order = element.partial_cmp(best)?;
                    let better = if self.largest { order.is_gt() } else { order.is_lt() };
                    if better || (self.last && order.is_eq()) {
                        *best = *element;
                        *winner = index;
                    }
                }
            }
        }
        Some(found)
    }
}
