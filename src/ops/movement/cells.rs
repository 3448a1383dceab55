//! Moves elements without interpreting them.

use std::borrow::Cow;

use bytes::Bytes;

use crate::ops::Decline;
pub(super) use crate::ops::contents::elements_of;
use crate::tensor::{Buffer, DType, Tensor, pack};

/// A kernel that only moves elements, on operands of one element type. Its operands have elements of whole bytes, and so has its result,
/// which has the same type.
pub(super) type Kernel<'k> = &'k dyn Fn(&[Tensor]) -> Result<Tensor, Decline>;

/// Runs a kernel that only moves elements on operands of any one element type: packed elements are unpacked to a byte each, and strings are
/// moved by their indices.
pub(super) fn moved(operands: &[&Tensor], kernel: Kernel<'_>) -> Result<Tensor, Decline> {
    let dtype =
        operands.first().map(|first| first.dtype()).ok_or_else(|| Decline::invalid("the node has no operands"))?;
    if let Some(other) = operands.iter().find(|other| other.dtype() != dtype) {
        return Err(Decline::invalid(format!(
            "the operands have different element types: {dtype} and {}",
            other.dtype()
        )));
    }
    if dtype == DType::String {
        return moved_strings(operands, kernel);
    }
    if !dtype.is_packed() {
        let operands: Vec<Tensor> = operands.iter().map(|&operand| operand.clone()).collect();
        return kernel(&operands);
    }
    let spread = |operand: &&Tensor| {
        let codes: Vec<u8> = operand.codes().into_iter().flatten().collect();
        Tensor::from_bytes(DType::Uint8, operand.shape(), codes.into())
    };
    let operands = operands.iter().map(spread).collect::<Result<Vec<_>, _>>()?;
    let result = kernel(&operands)?;
    let packed = pack(result.bytes(), dtype.bits().unwrap_or(8));
    Ok(Tensor::from_bytes(dtype, result.shape(), packed.into())?)
}

fn moved_strings(operands: &[&Tensor], kernel: Kernel<'_>) -> Result<Tensor, Decline> {
    let shapes: Vec<&[usize]> = operands.iter().map(|operand| operand.shape()).collect();
    let result = kernel(&numbered(&shapes)?)?;
    let all: Vec<&Bytes> = operands.iter().filter_map(|operand| operand.strings()).flatten().collect();
    let found = numbers(&result).map(|at| all.get(at).map(|&string| string.clone()));
    let strings = found.collect::<Option<Vec<_>>>().ok_or_else(lost)?;
    Ok(Tensor::from_strings(result.shape(), strings)?)
}

/// Returns tensors of these shapes whose elements are consecutive numbers, from 0.
fn numbered(shapes: &[&[usize]]) -> Result<Vec<Tensor>, Decline> {
    let mut next = 0u32;
    let mut tensors = Vec::with_capacity(shapes.len());
    for shape in shapes {
        let len = super::count(shape)?;
        let end = u32::try_from(len).ok().and_then(|len| next.checked_add(len));
        let end = end.ok_or_else(|| Decline::OverBudget("the number of elements is too large".into()))?;
        tensors.push(Tensor::from_vec(shape, (next..end).collect())?);
        next = end;
    }
    Ok(tensors)
}

/// Returns the elements of an integer operand, borrowed if they are int64.
pub(super) fn index_values(tensor: &Tensor) -> Result<Cow<'_, [i64]>, Decline> {
    if let Some(values) = tensor.elements::<i64>() {
        return Ok(values);
    }
    tensor.to_i64s().map(Cow::Owned).ok_or_else(|| Decline::invalid("the operand 'indices' has no integer type"))
}

fn numbers(tensor: &Tensor) -> impl Iterator<Item = usize> + '_ {
    tensor.bytes().chunks_exact(4).map(|number| match *number {
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
        _ => usize::MAX,
    })
}

/// The reason for an internal error: a kernel returned an element that its operands do not have.
fn lost() -> Decline {
    Decline::unsupported("an operand has fewer elements than the shape of the operand requires")
}

/// Returns the bytes of one element of a type with elements of whole bytes.
pub(super) fn width(tensor: &Tensor) -> Result<usize, Decline> {
    tensor.dtype().byte_len(1).ok_or_else(|| Decline::unsupported("the operator does not support strings"))
}

/// A tensor under construction from elements of tensors of the same type.
pub(super) struct Builder {
    dtype: DType,
    width: usize,
    buffer: Buffer,
    /// The number of bytes written.
    written: usize,
}

impl Builder {
    /// Allocates `len` elements of the type of `like`.
    pub(super) fn new(like: &Tensor, len: usize) -> Result<Self, Decline> {
        let width = width(like)?;
        let size =
            len.checked_mul(width).ok_or_else(|| Decline::OverBudget("the result exceeds the address space".into()))?;
        Ok(Builder { dtype: like.dtype(), width, buffer: Buffer::zeroed(size)?, written: 0 })
    }

    /// Returns the memory of the next `len` elements.
    fn next(&mut self, len: usize) -> Option<&mut [u8]> {
        let start = self.written;
        self.written = start.checked_add(len.checked_mul(self.width)?)?;
        self.buffer.bytes().get_mut(start..self.written)
    }

    /// Appends elements `start..start + len`.
    pub(super) fn append(&mut self, source: &Tensor, start: usize, len: usize) -> Result<(), Decline> {
        let range =
            start.checked_mul(self.width).zip(start.checked_add(len).and_then(|end| end.checked_mul(self.width)));
        let cells = range.and_then(|(start, end)| source.bytes().get(start..end)).ok_or_else(lost)?;
        self.next(len).ok_or_else(lost)?.copy_from_slice(cells);
        Ok(())
    }

    /// Appends the elements `base + offset`, in order.
    pub(super) fn pick(&mut self, source: &Tensor, base: usize, offsets: &[usize]) -> Result<(), Decline> {
        let width = self.width;
        let out = self.next(offsets.len()).ok_or_else(lost)?;
        let picked = match width {
            1 => pick::<1>(out, source.bytes(), base, offsets),
            2 => pick::<2>(out, source.bytes(), base, offsets),
            4 => pick::<4>(out, source.bytes(), base, offsets),
            8 => pick::<8>(out, source.bytes(), base, offsets),
            _ => pick::<16>(out, source.bytes(), base, offsets),
        };
        picked.ok_or_else(lost)
    }

    /// Returns the tensor, which must be complete.
    pub(super) fn finish(mut self, shape: &[usize]) -> Result<Tensor, Decline> {
        if self.written != self.buffer.bytes().len() {
            return Err(lost());
        }
        Ok(Tensor::from_bytes(self.dtype, shape, self.buffer.into())?)
    }
}

fn pick<const W: usize>(out: &mut [u8], source: &[u8], base: usize, offsets: &[usize]) -> Option<()> {
    let (cells, _) = source.as_chunks::<W>();
    let (out, _) = out.as_chunks_mut::<W>();
    for (out, &offset) in out.iter_mut().zip(offsets) {
        *out = *cells.get(base.wrapping_add(offset))?;
    }
    Some(())
}

/// Copies runs of `len` elements into a copy of `data`: run `i` of `updates` to `starts[i]`.
pub(super) fn overwrite(data: &Tensor, updates: &Tensor, starts: &[usize], len: usize) -> Result<Tensor, Decline> {
    let bytes = width(data)?.checked_mul(len).ok_or_else(lost)?;
    let width = width(data)?;
    let mut buffer = Buffer::zeroed(data.bytes().len())?;
    let result = buffer.bytes();
    result.copy_from_slice(data.bytes());
    if bytes > 0 {
        if starts.len().checked_mul(bytes) != Some(updates.bytes().len()) {
            return Err(lost());
        }
        for (&start, update) in starts.iter().zip(updates.bytes().chunks_exact(bytes)) {
            let start = start.checked_mul(width).ok_or_else(lost)?;
            let place = start.checked_add(bytes).and_then(|end| result.get_mut(start..end)).ok_or_else(lost)?;
            place.copy_from_slice(update);
        }
    }
    Ok(Tensor::from_bytes(data.dtype(), data.shape(), buffer.into())?)
}
