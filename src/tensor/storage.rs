//! The storage of tensors.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use super::buffer::Buffer;
use super::deferred::{DEEPEST, Deferred, Recipe};
use super::dispatch_numeric;
use super::dtype::DType;
use super::element::{Bool, Element, Number};
use super::error::TensorError;
use super::index::{Shape, product};
use super::outside::ByteRange;
use super::packed::{Codes, sign_extend};
use super::smallfloat;

mod content;

/// A dense row-major tensor: element type, shape, payload.
///
/// Checked at construction, then immutable and valid: the number of elements fits `isize`, and the payload has exactly the length
/// of type and shape. A clone copies no elements. Equality is a method, [`Tensor::same`], because NaN and −0 allow several
/// definitions.
#[derive(Clone, Debug)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    /// `product(shape)`.
    len: usize,
    /// Little-endian; small elements are packed; empty for strings.
    payload: Payload,
    /// The elements of a string tensor.
    strings: Option<Arc<[Bytes]>>,
}

/// The minimum bytes of a deferred tensor: smaller ones take little memory.
const DEFERRED: usize = 1 << 20;

/// Identifies a live payload: an address, the position in a source outside of memory, and a length.
pub type PayloadKey = (usize, u64, usize);

/// The location of a payload.
#[derive(Clone, Debug)]
enum Payload {
    Here(Bytes),
    /// In a file or a Blob. Elements are whole bytes.
    Outside(ByteRange),
    /// Not yet computed. Elements are whole bytes.
    Deferred(Deferred),
}

impl Tensor {
    /// Returns a tensor of any type but string over a payload in the layout of `TensorProto.raw_data`. Shares the payload without a
    /// copy.
    ///
    /// # Errors
    /// The number of elements or bytes is not addressable, the payload's length differs, or the type is string.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Bytes) -> Result<Tensor, TensorError> {
        let (len, expected) = Tensor::measure(dtype, shape)?;
        if bytes.len() != expected {
            let found = bytes.len();
            return Err(TensorError::PayloadLength { dtype, shape: shape.into(), expected, found });
        }
        Ok(Tensor { dtype, shape: shape.into(), len, payload: Payload::Here(bytes), strings: None })
    }

    /// Returns a tensor over a payload outside of memory, in the layout of `TensorProto.raw_data`. Elements must be whole bytes.
    ///
    /// # Errors
    /// As for [`from_bytes`](Self::from_bytes), or elements are packed.
    pub(crate) fn outside(dtype: DType, shape: &[usize], range: ByteRange) -> Result<Tensor, TensorError> {
        let (len, expected) = Tensor::measure(dtype, shape)?;
        if range.len() != expected {
            return Err(TensorError::PayloadLength { dtype, shape: shape.into(), expected, found: range.len() });
        }
        if dtype.is_packed() {
            return Err(TensorError::StringPayload);
        }
        Ok(Tensor { dtype, shape: shape.into(), len, payload: Payload::Outside(range), strings: None })
    }

    /// Returns the range of a source that contains the payload.
    pub(crate) fn range(&self) -> Option<&ByteRange> {
        match &self.payload {
            Payload::Outside(range) => Some(range),
            _ => None,
        }
    }

    /// Returns `true` if the payload is in memory, and `false` if it is better [read](Self::read) in blocks.
    pub(crate) fn is_in_memory(&self) -> bool {
        match &self.payload {
            Payload::Here(_) => true,
            Payload::Outside(range) => range.is_empty(),
            Payload::Deferred(deferred) => deferred.is_made(),
        }
    }

    /// Returns a tensor whose elements are computed when they are read. Elements must be whole bytes.
    ///
    /// # Errors
    /// The number of elements or bytes is not addressable, or elements are packed or strings.
    pub(crate) fn deferred(dtype: DType, shape: &[usize], recipe: Box<dyn Recipe>) -> Result<Tensor, TensorError> {
        let (len, bytes) = Tensor::measure(dtype, shape)?;
        let width = dtype.byte_len(1).filter(|_| !dtype.is_packed()).ok_or(TensorError::StringPayload)?;
        let payload = Payload::Deferred(Deferred::new(recipe, bytes, width));
        Ok(Tensor { dtype, shape: shape.into(), len, payload, strings: None })
    }

    /// Returns `true` if the payload is deferred or outside of memory, and is better [read](Self::read) in blocks.
    pub fn is_deferred(&self) -> bool {
        !matches!(self.payload, Payload::Here(_))
    }

    /// Returns the depth of nested recipes; 0 if the payload is in memory.
    pub(crate) fn depth(&self) -> usize {
        match &self.payload {
            Payload::Here(_) | Payload::Outside(_) => 0,
            Payload::Deferred(deferred) => deferred.depth(),
        }
    }

    /// Returns the preferred bytes per read.
    pub(crate) fn piece(&self) -> usize {
        match &self.payload {
            Payload::Here(_) | Payload::Outside(_) => 0,
            Payload::Deferred(deferred) => deferred.piece(),
        }
    }

    /// Writes the bytes of the payload from `at` on into `out`, without computing all of it. The range must be within the payload.
    pub fn read(&self, at: usize, out: &mut [u8]) {
        match &self.payload {
            Payload::Deferred(deferred) => deferred.read(at, out),
            Payload::Outside(range) => range.read(at, out),
            Payload::Here(bytes) => {
                if let Some(bytes) = at.checked_add(out.len()).and_then(|end| bytes.get(at..end)) {
                    out.copy_from_slice(bytes);
                }
            }
        }
    }

    /// Identifies the payload among live ones: tensors with equal keys share it.
    pub fn payload_key(&self) -> PayloadKey {
        match &self.payload {
            Payload::Deferred(deferred) => (deferred.address(), 0, deferred.len()),
            Payload::Outside(range) => (range.address(), range.from(), range.len()),
            Payload::Here(bytes) => (bytes.as_ptr() as usize, 0, bytes.len()),
        }
    }

    /// Returns `true` if a deferred payload was computed as a whole.
    #[cfg(test)]
    pub(crate) fn is_made(&self) -> bool {
        matches!(&self.payload, Payload::Deferred(deferred) if deferred.is_made())
    }

    /// Returns the memory that the payload would take if it were requested in one piece; 0 if it is in memory.
    pub(crate) fn unmade(&self) -> usize {
        match &self.payload {
            Payload::Deferred(deferred) if !deferred.is_made() => deferred.len(),
            _ => 0,
        }
    }

    /// Returns `true` if a tensor of this type and shape can be deferred and is large enough.
    pub(crate) fn may_be_deferred(dtype: DType, shape: &[usize]) -> bool {
        !dtype.is_packed() && Tensor::measure(dtype, shape).is_ok_and(|(_, bytes)| bytes >= DEFERRED)
    }

    /// Returns the tensor as an operand of a recipe. Computes it if its recipes are already deeply nested, which limits the work per
    /// element.
    pub(crate) fn for_recipe(&self) -> Tensor {
        if self.depth() >= DEEPEST {
            self.bytes();
        }
        self.clone()
    }

    /// Returns the elements and payload bytes of a dense type and shape.
    fn measure(dtype: DType, shape: &[usize]) -> Result<(usize, usize), TensorError> {
        if dtype == DType::String {
            return Err(TensorError::StringPayload);
        }
        let len = count(shape)?;
        let bytes = dtype.byte_len(len).filter(|&bytes| bytes <= isize::MAX as usize);
        let bytes = bytes.ok_or_else(|| TensorError::ByteCount { dtype, shape: shape.into() })?;
        Ok((len, bytes))
    }

    /// Returns the payload bytes of a tensor of this type and shape.
    ///
    /// # Errors
    /// The number of elements or bytes is not addressable, or the type is string.
    pub fn byte_len_of(dtype: DType, shape: &[usize]) -> Result<usize, TensorError> {
        Tensor::measure(dtype, shape).map(|(_, bytes)| bytes)
    }

    /// Returns a string tensor; a string may contain any bytes.
    ///
    /// # Errors
    /// The number of strings differs from the number of elements.
    pub fn from_strings(shape: &[usize], strings: Vec<Bytes>) -> Result<Tensor, TensorError> {
        let len = count(shape)?;
        if strings.len() != len {
            let found = strings.len();
            return Err(TensorError::StringCount { shape: shape.into(), expected: len, found });
        }
        let strings = Some(strings.into());
        Ok(Tensor { dtype: DType::String, shape: shape.into(), len, payload: Payload::Here(Bytes::new()), strings })
    }

    /// Returns a tensor of Rust values, row-major. Shares the vector without a copy on little-endian hosts.
    ///
    /// # Errors
    /// The number of values differs from the number of elements.
    pub fn from_vec<T: Element>(shape: &[usize], values: Vec<T>) -> Result<Tensor, TensorError> {
        Tensor::from_bytes(T::DTYPE, shape, payload_of(values))
    }

    /// Returns a bool tensor.
    ///
    /// # Errors
    /// As for [`from_vec`](Self::from_vec).
    pub fn from_bools(shape: &[usize], values: &[bool]) -> Result<Tensor, TensorError> {
        Tensor::from_vec(shape, values.iter().map(|&value| Bool::from(value)).collect())
    }

    /// Returns a tensor of rank 0.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor {
            dtype: T::DTYPE,
            shape: Shape::new(),
            len: 1,
            payload: Payload::Here(payload_of(vec![value])),
            strings: None,
        }
    }

    /// Returns a tensor of rank 1.
    pub fn vector<T: Element>(values: Vec<T>) -> Tensor {
        let len = values.len();
        let shape = SmallVec::from_slice(&[len]);
        Tensor { dtype: T::DTYPE, shape, len, payload: Payload::Here(payload_of(values)), strings: None }
    }

    /// Returns a tensor whose payload is all zero bits (the smallest value for `float8e8m0`, which has no zero), or of empty strings.
    ///
    /// # Errors
    /// The payload is not addressable or cannot be allocated. The caller must limit the allocation.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Tensor, TensorError> {
        if dtype == DType::String {
            let len = count(shape)?;
            let mut strings = Vec::new();
            let bytes = len.saturating_mul(size_of::<Bytes>());
            strings.try_reserve_exact(len).map_err(|_| TensorError::OutOfMemory { bytes })?;
            strings.resize(len, Bytes::new());
            return Tensor::from_strings(shape, strings);
        }
        let (_, bytes) = Tensor::measure(dtype, shape)?;
        Tensor::from_bytes(dtype, shape, Buffer::zeroed(bytes)?.into())
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the dims, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if some dim is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of the payload; for strings, of all their contents.
    pub fn byte_len(&self) -> usize {
        match &self.strings {
            None => self.payload_key().2,
            Some(strings) => strings.iter().fold(0, |sum, string| sum.saturating_add(string.len())),
        }
    }

    /// Returns the dense payload, little-endian, small elements packed; empty for strings. Loads or computes a payload that is not in
    /// memory, and keeps it there.
    pub fn bytes(&self) -> &Bytes {
        match &self.payload {
            Payload::Here(bytes) => bytes,
            Payload::Outside(range) => range.bytes(),
            Payload::Deferred(deferred) => deferred.bytes(),
        }
    }

    /// Returns the elements of a string tensor; `None` for other types.
    pub fn strings(&self) -> Option<&[Bytes]> {
        self.strings.as_deref()
    }

    /// Returns the elements, row-major; `None` unless `T` is the element type. Borrows them if the payload is aligned for `T`: computed
    /// payloads are, mapped files may not be.
    pub fn elements<T: Element>(&self) -> Option<Cow<'_, [T]>> {
        if self.dtype != T::DTYPE {
            return None;
        }
        if self.range().is_some() || cfg!(target_endian = "big") {
            // Read without keeping a copy.
            let mut values = vec![T::zeroed(); self.len];
            self.read(0, bytemuck::cast_slice_mut(&mut values));
            if cfg!(target_endian = "big") {
                swap_bytes::<T>(&mut values);
            }
            return Some(Cow::Owned(values));
        }
        Some(match bytemuck::try_cast_slice(self.bytes()) {
            Ok(values) => Cow::Borrowed(values),
            Err(_) => Cow::Owned(copied(self.bytes())),
        })
    }

    /// Returns the elements of a bool tensor; `None` for other types.
    pub fn bools(&self) -> Option<Vec<bool>> {
        (self.dtype == DType::Bool).then(|| self.bytes().iter().map(|&byte| byte != 0).collect())
    }

    /// Returns the codes of elements of at most eight bits, one byte each, row-major, zero-extended; `None` for wider types.
    pub fn codes(&self) -> Option<Codes<'_>> {
        let bits = self.dtype.bits().filter(|&bits| bits <= 8)?;
        Some(Codes::new(self.bytes(), bits, 0, self.len))
    }

    /// Returns the elements of a packed type, one byte each, row-major: signed integers sign-extended to `int8` (two's complement),
    /// others zero-extended codes. `None` for unpacked types.
    pub fn unpacked(&self) -> Option<Vec<u8>> {
        let bits = self.dtype.bits().filter(|_| self.dtype.is_packed())?;
        let codes = self.codes()?;
        Some(match self.dtype.is_signed_integer() {
            true => codes.map(|code| sign_extend(code, bits) as u8).collect(),
            false => codes.collect(),
        })
    }

    /// Returns the same elements with another shape, without a copy.
    ///
    /// # Errors
    /// The number of elements differs.
    pub fn reshape(&self, shape: &[usize]) -> Result<Tensor, TensorError> {
        if count(shape)? != self.len {
            return Err(TensorError::Reshape { from: self.shape.clone(), to: shape.into() });
        }
        Ok(Tensor { shape: shape.into(), ..self.clone() })
    }

    /// Returns the elements of an integer or bool tensor, row-major. `None` for other types, and if a `uint64` does not fit.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        if self.dtype == DType::Bool {
            return Some(self.bytes().iter().map(|&byte| i64::from(byte != 0)).collect());
        }
        if !self.dtype.is_integer() {
            return None;
        }
        dispatch_numeric!(self.dtype, T => self.elements::<T>()?.iter().map(|&value| Number::to_i64(value)).collect(), else => {
            let bits = self.dtype.bits()?;
            let signed = self.dtype.is_signed_integer();
            Some(self.codes()?.map(|code| if signed { sign_extend(code, bits).into() } else { code.into() }).collect())
        })
    }

    /// Returns the elements of a real tensor, row-major: exact except for 64-bit integers above 2⁵³, which round to nearest; bools
    /// are 0 and 1. `None` for strings and complex numbers.
    pub fn to_f64s(&self) -> Option<Vec<f64>> {
        dispatch_numeric!(self.dtype, T => Some(self.elements::<T>()?.iter().map(|&value| Number::to_f64(value)).collect()), else => {
            if self.dtype.is_small_float() {
                return self.codes()?.map(|code| smallfloat::decode(self.dtype, code).map(f64::from)).collect();
            }
            // Bool and packed integers.
            Some(self.to_i64s()?.into_iter().map(|value| value as f64).collect())
        })
    }

    /// The elements per [block](Self::block).
    pub(crate) const BLOCK: usize = 1 << 16;

    /// Reads up to [`BLOCK`](Self::BLOCK) elements from index `first` on into a tensor of rank 1. `None` for strings and packed
    /// elements.
    pub(crate) fn block(&self, first: usize) -> Option<Tensor> {
        let width = self.dtype.byte_len(1).filter(|_| !self.dtype.is_packed())?;
        let len = Self::BLOCK.min(self.len.checked_sub(first)?);
        let mut bytes = vec![0; len.checked_mul(width)?];
        self.read(first.checked_mul(width)?, &mut bytes);
        Tensor::from_bytes(self.dtype, &[len], bytes.into()).ok()
    }
}

fn count(shape: &[usize]) -> Result<usize, TensorError> {
    product(shape).ok_or_else(|| TensorError::ElementCount { shape: shape.into() })
}

/// Converts a vector of elements to a payload.
pub(super) fn payload_of<T: Element>(mut values: Vec<T>) -> Bytes {
    if cfg!(target_endian = "big") {
        swap_bytes(&mut values);
    }
    Bytes::from_owner(Values(values))
}

/// A vector as owner of a payload, which keeps the alignment of its elements.
struct Values<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Values<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// Copies the bytes to values, for any alignment.
fn copied<T: Element>(bytes: &[u8]) -> Vec<T> {
    let mut values = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
    values
}

/// Swaps the bytes of each number.
fn swap_bytes<T: Element>(values: &mut [T]) {
    let width = size_of::<T>() / T::COMPONENTS;
    bytemuck::cast_slice_mut::<T, u8>(values).chunks_exact_mut(width).for_each(<[u8]>::reverse);
}
