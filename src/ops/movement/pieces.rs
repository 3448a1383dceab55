//! Tensors side by side, and parts of tensors.

use crate::ops::movement::concat_split::concat_within;
use crate::ops::{Decline, EvalCx, axis_in};
use crate::tensor::{StridedView, Tensor};

/// The tensors side by side along an axis they all have.
///
/// # Errors
/// There is none, they differ in type or in another dim, or the result is over budget.
pub(in crate::ops) fn concat(cx: &EvalCx<'_>, tensors: &[Tensor], axis: usize) -> Result<Tensor, Decline> {
    let first =
        tensors.first().ok_or_else(|| Decline::unsupported("the type and shape of an empty sequence are unknown"))?;
    if axis >= first.rank() {
        return Err(Decline::invalid(format!("axis {axis} is out of range")));
    }
    concat_within(cx, &tensors.iter().collect::<Vec<_>>(), axis)
}

/// The tensors stacked along a new axis; a negative one counts from the back of the result.
///
/// # Errors
/// There is none, they differ in type or shape, there is no such axis, or the result is over budget.
pub(in crate::ops) fn stack(cx: &EvalCx<'_>, tensors: &[Tensor], axis: i64) -> Result<Tensor, Decline> {
    let rank = tensors.first().map_or(0, Tensor::rank);
    if tensors.is_empty() {
        return Err(Decline::unsupported("the type and shape of an empty sequence are unknown"));
    }
    let axis = axis_in(axis, rank + 1)?;
    let expanded = tensors.iter().map(|tensor| {
        let mut shape = tensor.shape().to_vec();
        // A tensor of another rank is refused below.
        shape.insert(axis.min(shape.len()), 1);
        tensor.reshape(&shape)
    });
    concat(cx, &expanded.collect::<Result<Vec<_>, _>>()?, axis)
}

/// Index `index` of an axis, which goes away.
///
/// # Errors
/// There is no such axis or index, or the result is over budget.
pub(in crate::ops) fn pick(cx: &EvalCx<'_>, tensor: &Tensor, axis: usize, index: usize) -> Result<Tensor, Decline> {
    let view = StridedView::of(tensor).select(axis, index)?;
    cx.gathered(tensor, &view)
}

/// `len` indices of an axis from `start` on.
///
/// # Errors
/// There is no such axis or range, or the result is over budget.
pub(in crate::ops) fn part(
    cx: &EvalCx<'_>,
    tensor: &Tensor,
    axis: usize,
    start: usize,
    len: usize,
) -> Result<Tensor, Decline> {
    let view = StridedView::of(tensor).slice_axis(axis, start, 1, len)?;
    cx.gathered(tensor, &view)
}
