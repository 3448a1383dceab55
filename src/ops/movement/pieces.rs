//! Tensors side by side, and parts of tensors.

use super::cells::{Builder, moved};
use super::{around, claim, count};
use crate::ops::{Decline, EvalCx, axis_in};
use crate::tensor::{StridedView, Tensor, join_later};

/// [`concat`], if there is room for it.
///
/// # Errors
/// As those of [`concat`]; or there is no tensor, or the result is over budget.
pub(in crate::ops) fn concat_within(cx: &EvalCx<'_>, tensors: &[&Tensor], axis: usize) -> Result<Tensor, Decline> {
    let first = tensors.first().ok_or_else(|| Decline::invalid("the node has no operands"))?;
    let shapes: Vec<&[usize]> = tensors.iter().map(|tensor| tensor.shape()).collect();
    let shape = concatenated_shape(&shapes, axis)?;
    let is_one_type = tensors.iter().all(|tensor| tensor.dtype() == first.dtype());
    if is_one_type && !first.dtype().is_packed() && cx.claim_later(first.dtype(), &shape)? {
        return concat_later(tensors, axis);
    }
    claim(cx, first.dtype(), &shape)?;
    concat(tensors, axis)
}

/// [`concat`] of tensors of one type, of elements of whole bytes, that is put together when it is read where it is large.
///
/// # Errors
/// As those of [`concat`].
pub fn concat_later(tensors: &[&Tensor], axis: usize) -> Result<Tensor, Decline> {
    let first = tensors.first().ok_or_else(|| Decline::invalid("the node has no operands"))?;
    let shapes: Vec<&[usize]> = tensors.iter().map(|tensor| tensor.shape()).collect();
    let shape = concatenated_shape(&shapes, axis)?;
    if !Tensor::may_be_deferred(first.dtype(), &shape) {
        return concat(tensors, axis);
    }
    let (rows, _, _) = around(&shape, axis)?;
    Ok(join_later(tensors, rows, &shape)?)
}

/// Tensors of one type one behind the other along an axis, whatever their type.
///
/// # Errors
/// The types differ, or the shapes differ on another axis.
pub fn concat(tensors: &[&Tensor], axis: usize) -> Result<Tensor, Decline> {
    moved(tensors, &|tensors| concatenated(tensors, axis))
}

fn concatenated_shape(shapes: &[&[usize]], axis: usize) -> Result<Vec<usize>, Decline> {
    let mut result = shapes.first().map(|shape| shape.to_vec()).unwrap_or_default();
    let mut sum = 0usize;
    for shape in shapes {
        let differ = shape.iter().zip(&result).enumerate().any(|(at, (a, b))| at != axis && a != b);
        if differ || shape.len() != result.len() {
            return Err(Decline::invalid(format!(
                "the shapes {shape:?} and {result:?} differ on another axis than axis {axis}"
            )));
        }
        let dim = shape.get(axis).copied().unwrap_or(0);
        sum = sum.checked_add(dim).ok_or_else(|| Decline::OverBudget("the result exceeds the address space".into()))?;
    }
    if let Some(dim) = result.get_mut(axis) {
        *dim = sum;
    }
    Ok(result)
}

fn concatenated(operands: &[Tensor], axis: usize) -> Result<Tensor, Decline> {
    let shapes: Vec<&[usize]> = operands.iter().map(Tensor::shape).collect();
    let shape = concatenated_shape(&shapes, axis)?;
    let first = operands.first().ok_or_else(|| Decline::invalid("the node has no operands"))?;
    let len = count(&shape)?;
    let mut builder = Builder::new(first, len)?;
    if len > 0 {
        let (rows, _, inner) = around(&shape, axis)?;
        let runs = operands.iter().map(|operand| {
            let dim = operand.shape().get(axis).copied().unwrap_or(0);
            // A run is a part of a row of the result, whose size is known to be addressable.
            (operand, dim.saturating_mul(inner))
        });
        let runs: Vec<(&Tensor, usize)> = runs.collect();
        for row in 0..rows {
            for &(operand, run) in &runs {
                builder.append(operand, row.saturating_mul(run), run)?;
            }
        }
    }
    builder.finish(&shape)
}

/// The tensors side by side along an axis they all have.
///
/// # Errors
/// There is none, they differ in type or in another dim, or the result is over budget.
pub(in crate::ops) fn concat_items(cx: &EvalCx<'_>, tensors: &[Tensor], axis: usize) -> Result<Tensor, Decline> {
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
    concat_items(cx, &expanded.collect::<Result<Vec<_>, _>>()?, axis)
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
