//! Tensors side by side, and parts of tensors.

use bytes::Bytes;

use crate::ops::{Decline, EvalCx, axis_in};
use crate::tensor::{StridedView, Tensor, gather, pack, product};

/// The tensors side by side along an axis they all have.
///
/// # Errors
/// There is none, they differ in type or in another dim, or the result is over budget.
pub(in crate::ops) fn concat(cx: &EvalCx<'_>, tensors: &[Tensor], axis: usize) -> Result<Tensor, Decline> {
    let first = tensors.first().ok_or_else(|| Decline::unsupported("the type and shape of nothing is not known"))?;
    let mut shape = first.shape().to_vec();
    let mut size = 0usize;
    for tensor in tensors {
        let fits = tensor.dtype() == first.dtype()
            && tensor.rank() == first.rank()
            && tensor.shape().iter().zip(first.shape()).enumerate().all(|(at, (a, b))| at == axis || a == b);
        if !fits {
            return Err(Decline::invalid("the tensors to join differ in type or shape"));
        }
        let dim = tensor.shape().get(axis).ok_or_else(|| Decline::invalid(format!("there is no axis {axis}")))?;
        size = size.checked_add(*dim).ok_or_else(|| Decline::invalid("the joined axis is too long"))?;
    }
    if let Some(dim) = shape.get_mut(axis) {
        *dim = size;
    }
    cx.claim(first.dtype(), &shape)?;
    let rows = product(shape.get(..axis).unwrap_or_default()).unwrap_or(0);
    if first.strings().is_some() {
        let parts: Vec<&[Bytes]> = tensors.iter().filter_map(Tensor::strings).collect();
        return Ok(Tensor::from_strings(&shape, interleaved(&parts, rows))?);
    }
    if let Some(bits) = first.dtype().bits().filter(|_| first.dtype().is_packed()) {
        let codes: Vec<Vec<u8>> = tensors.iter().map(|tensor| tensor.codes().into_iter().flatten().collect()).collect();
        let parts: Vec<&[u8]> = codes.iter().map(Vec::as_slice).collect();
        let payload = pack(&interleaved(&parts, rows), bits);
        return Ok(Tensor::from_bytes(first.dtype(), &shape, payload.into())?);
    }
    let parts: Vec<&[u8]> = tensors.iter().map(|tensor| tensor.bytes().as_ref()).collect();
    Ok(Tensor::from_bytes(first.dtype(), &shape, interleaved(&parts, rows).into())?)
}

/// Row 0 of every part, row 1 of every part, …; each part has this many rows.
fn interleaved<T: Clone>(parts: &[&[T]], rows: usize) -> Vec<T> {
    let mut all = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    for row in 0..rows {
        for part in parts {
            let width = part.len() / rows;
            all.extend_from_slice(part.get(row * width..(row + 1) * width).unwrap_or_default());
        }
    }
    all
}

/// The tensors stacked along a new axis; a negative one counts from the back of the result.
///
/// # Errors
/// There is none, they differ in type or shape, there is no such axis, or the result is over budget.
pub(in crate::ops) fn stack(cx: &EvalCx<'_>, tensors: &[Tensor], axis: i64) -> Result<Tensor, Decline> {
    let rank = tensors.first().map_or(0, Tensor::rank);
    if tensors.is_empty() {
        return Err(Decline::unsupported("the type and shape of nothing is not known"));
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
    cx.claim(tensor.dtype(), view.shape())?;
    Ok(gather(tensor, &view)?)
}

/// `len` indices of an axis from `start` on.
///
/// # Errors
/// There is no such axis or range, or the result is over budget.
pub(super) fn part(cx: &EvalCx<'_>, tensor: &Tensor, axis: usize, start: usize, len: usize) -> Result<Tensor, Decline> {
    let view = StridedView::of(tensor).slice_axis(axis, start, 1, len)?;
    cx.claim(tensor.dtype(), view.shape())?;
    Ok(gather(tensor, &view)?)
}
