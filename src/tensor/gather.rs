//! Copies of strided views into dense tensors.
#![allow(
    clippy::indexing_slicing,
    reason = "the view was checked to stay inside the tensor, and blocks divide what they are taken from"
)]

use bytes::Bytes;

use super::buffer::Buffer;
use super::copy;
use super::deferred::Recipe;
use super::error::TensorError;
use super::index::Strides;
use super::packed::{code_at, pack_into, unpack_into};
use super::selection::Selection;
use super::storage::Tensor;
use super::strided::StridedView;
use super::threads;

/// Returns the elements of a view as a dense tensor of the view's shape.
///
/// A view that is contiguous in memory shares the payload; packed elements must also begin and end at whole bytes, and packed
/// copies are padded with zeros. Other views are copied once, on all threads if large. The result does not depend on the number
/// of threads.
///
/// # Errors
/// The view exceeds the tensor, or its elements cannot be addressed or allocated. The caller must limit the allocation before,
/// from [`StridedView::len`].
pub fn gather(tensor: &Tensor, view: &StridedView) -> Result<Tensor, TensorError> {
    gathered(tensor, view, false)
}

/// Like [`gather`](fn@gather), but defers the copy of a large tensor until it is read.
///
/// # Errors
/// As for [`gather`](fn@gather).
pub(crate) fn gather_later(tensor: &Tensor, view: &StridedView) -> Result<Tensor, TensorError> {
    gathered(tensor, view, true)
}

fn gathered(tensor: &Tensor, view: &StridedView, later: bool) -> Result<Tensor, TensorError> {
    let dtype = tensor.dtype();
    let len = view.len().ok_or_else(|| TensorError::ElementCount { shape: view.shape().into() })?;
    let Some((first, last)) = view.reach(tensor.len())? else {
        return Tensor::zeros(dtype, view.shape());
    };
    let flat = view.coalesced();
    let contiguous = matches!((flat.shape(), flat.strides()), ([], _) | ([_], [1]));
    if contiguous && len == tensor.len() {
        return tensor.reshape(view.shape());
    }
    if let Some(strings) = tensor.strings() {
        return Tensor::from_strings(view.shape(), gather_strings(strings, &flat, len)?);
    }
    let bits = dtype.bits().ok_or(TensorError::StringPayload)?;
    if let Some(range) = tensor.range() {
        let width = bits / 8;
        let bytes = |at: usize| at.checked_mul(width);
        let part = bytes(first).zip(last.checked_add(1).and_then(bytes)).filter(|_| contiguous);
        if let Some(part) = part.and_then(|(from, to)| range.slice(from, to)) {
            return Tensor::outside(dtype, view.shape(), part);
        }
    }
    // A part of a deferred tensor is deferred, too.
    if (later || tensor.unmade() > 0)
        && Tensor::may_be_deferred(dtype, view.shape())
        && !(contiguous && tensor.unmade() == 0)
    {
        return Tensor::deferred(dtype, view.shape(), Box::new(Selection::new(tensor, flat, bits / 8)));
    }
    if contiguous && let Some(payload) = share(tensor, bits, first, last) {
        return Tensor::from_bytes(dtype, view.shape(), payload);
    }
    let bytes = dtype.byte_len(len).filter(|&bytes| bytes <= isize::MAX as usize);
    let bytes = bytes.ok_or_else(|| TensorError::ByteCount { dtype, shape: view.shape().into() })?;
    let mut buffer = Buffer::zeroed(bytes)?;
    match dtype.is_packed() {
        _ if tensor.range().is_some() => Selection::new(tensor, flat, bits / 8).fill(0, buffer.bytes()),
        true => gather_packed(tensor, &flat, bits, (first, last), buffer.bytes())?,
        false => copy::copy(tensor.bytes(), &flat, bits / 8, buffer.bytes()),
    }
    Tensor::from_bytes(dtype, view.shape(), buffer.into())
}

/// Returns the part of the payload with elements `first..=last`, if it is whole bytes.
fn share(tensor: &Tensor, bits: usize, first: usize, last: usize) -> Option<Bytes> {
    let end = last.checked_add(1)?;
    // Eight elements are whole bytes.
    let aligned = |at: usize| (at % 8 * bits).is_multiple_of(8);
    if !aligned(first) || !(aligned(end) || end == tensor.len()) {
        return None;
    }
    let (from, to) = (tensor.dtype().byte_len(first)?, tensor.dtype().byte_len(end)?);
    Some(tensor.bytes().slice(from..to))
}

fn gather_strings(strings: &[Bytes], flat: &StridedView, len: usize) -> Result<Vec<Bytes>, TensorError> {
    let mut gathered = Vec::new();
    let bytes = len.saturating_mul(size_of::<Bytes>());
    gathered.try_reserve_exact(len).map_err(|_| TensorError::OutOfMemory { bytes })?;
    for_each_row(flat, 0, len, |start, step, len| {
        gathered.extend(positions(start, step, len).filter_map(|at| strings.get(at).cloned()));
    });
    Ok(gathered)
}

/// Copies packed elements. Rows of whole bytes are copied as bytes. Else a view that covers much of its span is unpacked to one
/// byte per code (memory for a few times the span); a sparse view is copied code by code.
fn gather_packed(
    tensor: &Tensor,
    flat: &StridedView,
    bits: usize,
    (first, last): (usize, usize),
    out: &mut [u8],
) -> Result<(), TensorError> {
    let source = tensor.bytes();
    if let Some(bytewise) = bytewise(flat, bits) {
        copy::copy(source, &bytewise, 1, out);
        return Ok(());
    }
    let len = flat.len().unwrap_or(0);
    // Eight elements are whole bytes.
    let start = first - first % 8;
    let span = last - start + 1;
    if span / 4 > len {
        gather_codes(source, bits, flat, len, out);
        return Ok(());
    }
    let mut spanned = Buffer::zeroed(span)?;
    in_blocks(spanned.bytes(), BLOCK, |block, codes| {
        let byte = (start + block * BLOCK) / 8 * bits;
        unpack_into(&source[byte..], bits, codes);
    });
    let view = StridedView::new(flat.shape(), flat.strides(), flat.offset() - start as isize)?;
    let mut codes = Buffer::zeroed(len)?;
    copy::copy(spanned.bytes(), &view, 1, codes.bytes());
    let codes: &[u8] = codes.bytes();
    in_blocks(out, BLOCK / 8 * bits, |block, bytes| {
        let codes = &codes[block * BLOCK..];
        pack_into(&codes[..BLOCK.min(codes.len())], bits, bytes);
    });
    Ok(())
}

/// Calls `fill` with the index and bytes of each block of the output, on all threads if it is large.
fn in_blocks(out: &mut [u8], block: usize, fill: impl Fn(usize, &mut [u8]) + Sync) {
    let is_large = out.len() >= PARALLEL;
    let blocks = out.chunks_mut(block).enumerate();
    match is_large {
        true => threads::for_each(blocks, |(number, out)| fill(number, out)),
        false => blocks.for_each(|(number, out)| fill(number, out)),
    }
}

/// The minimum output in bytes for several threads.
const PARALLEL: usize = 1 << 20;

/// The packed elements per task: whole bytes for all element types.
const BLOCK: usize = 1 << 14;

/// Returns the view in bytes instead of elements, if each row begins and ends at a whole byte.
fn bytewise(flat: &StridedView, bits: usize) -> Option<StridedView> {
    // The smallest group of elements that is whole bytes, and its bytes.
    let group = if bits == 4 { 2 } else { 4 };
    let bytes = group * bits / 8;
    let (&last_dim, outer_dims) = flat.shape().split_last()?;
    let (&last_stride, outer_strides) = flat.strides().split_last()?;
    let group = group as isize;
    let whole = |elements: isize| elements % group == 0;
    let last_dim = last_dim as isize;
    if last_stride != 1 || !whole(last_dim) || !whole(flat.offset()) || !outer_strides.iter().all(|&s| whole(s)) {
        return None;
    }
    let scale = |elements: isize| elements / group * bytes as isize;
    let mut shape = outer_dims.to_vec();
    shape.push(scale(last_dim) as usize);
    let mut strides: Strides = outer_strides.iter().map(|&stride| scale(stride)).collect();
    strides.push(1);
    StridedView::new(&shape, &strides, scale(flat.offset())).ok()
}

/// Copies code by code, in independent blocks.
fn gather_codes(source: &[u8], bits: usize, flat: &StridedView, len: usize, out: &mut [u8]) {
    in_blocks(out, BLOCK / 8 * bits, |block, out| {
        let first = block * BLOCK;
        let mut codes = Vec::with_capacity(BLOCK);
        for_each_row(flat, first, BLOCK.min(len - first), |start, step, len| {
            codes.extend(positions(start, step, len).filter_map(|at| code_at(source, bits, at)));
        });
        pack_into(&codes, bits, out);
    });
}

/// Calls `row` with the start, step and length of each (partial) row among elements `first..first + len` of a view within its
/// tensor.
fn for_each_row(view: &StridedView, first: usize, len: usize, mut row: impl FnMut(isize, isize, usize)) {
    let (dims, strides) = (view.shape(), view.strides());
    let (Some((&dim, outer_dims)), Some((&step, outer_strides))) = (dims.split_last(), strides.split_last()) else {
        return row(view.offset(), 1, len.min(1));
    };
    let mut at = first;
    let end = first + len;
    while at < end {
        let (mut rest, within) = (at / dim, at % dim);
        let mut start = view.offset() + within as isize * step;
        for (&dim, &stride) in outer_dims.iter().zip(outer_strides).rev() {
            start += (rest % dim) as isize * stride;
            rest /= dim;
        }
        let run = (dim - within).min(end - at);
        row(start, step, run);
        at += run;
    }
}

/// Returns the positions of a row.
fn positions(start: isize, step: isize, len: usize) -> impl Iterator<Item = usize> {
    (0..len as isize).map(move |at| (start + at * step) as usize)
}
