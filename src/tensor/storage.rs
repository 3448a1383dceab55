//! The one storage of tensors.

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
/// Checked when made, immutable and well formed ever after: the number of elements fits `isize`, and the payload is
/// exactly as long as type and shape demand. A clone copies no elements. Equality is a method, [`Tensor::same`],
/// because NaN and −0 make several equalities thinkable.
#[derive(Clone, Debug)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    /// `product(shape)`.
    len: usize,
    /// Little-endian; elements of less than a byte are packed; empty for strings.
    payload: Payload,
    /// The elements of a string tensor.
    strings: Option<Arc<[Bytes]>>,
}

/// Bytes from which on a tensor is computed when it is written, where that can be: smaller ones take little memory.
const DEFERRED: usize = 1 << 20;

/// Identifies a payload among those that are alive: an address, the position in a source outside of memory, and a length.
pub type PayloadKey = (usize, u64, usize);

/// Where a payload is.
#[derive(Clone, Debug)]
enum Payload {
    Here(Bytes),
    /// In a file or a Blob. Only of elements that are whole bytes.
    Outside(ByteRange),
    /// Nowhere yet. Only of elements that are whole bytes.
    Deferred(Deferred),
}

impl Tensor {
    /// A tensor of any type but string over a payload in the layout of `TensorProto.raw_data`. The payload is kept, not
    /// copied.
    ///
    /// # Errors
    /// The number of elements or bytes is not addressable, the payload has another length, or the type is string.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Bytes) -> Result<Tensor, TensorError> {
        let (len, expected) = Tensor::measure(dtype, shape)?;
        if bytes.len() != expected {
            let found = bytes.len();
            return Err(TensorError::PayloadLength { dtype, shape: shape.into(), expected, found });
        }
        Ok(Tensor { dtype, shape: shape.into(), len, payload: Payload::Here(bytes), strings: None })
    }

    /// A tensor over a payload outside of memory, in the layout of `TensorProto.raw_data`. Elements must be whole bytes.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), or elements are packed.
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

    /// Returns the part of a source that the payload is.
    pub(crate) fn range(&self) -> Option<&ByteRange> {
        match &self.payload {
            Payload::Outside(range) => Some(range),
            _ => None,
        }
    }

    /// Returns `true` if the payload is in memory, and `false` if it is best [read](Self::read) in blocks.
    pub(crate) fn is_in_memory(&self) -> bool {
        match &self.payload {
            Payload::Here(_) => true,
            Payload::Outside(range) => range.is_empty(),
            Payload::Deferred(deferred) => deferred.is_made(),
        }
    }

    /// A tensor whose elements are computed when they are read. Elements must be whole bytes.
    ///
    /// # Errors
    /// The number of elements or bytes is not addressable, or elements are packed or strings.
    pub(crate) fn deferred(dtype: DType, shape: &[usize], recipe: Box<dyn Recipe>) -> Result<Tensor, TensorError> {
        let (len, bytes) = Tensor::measure(dtype, shape)?;
        let width = dtype.byte_len(1).filter(|_| !dtype.is_packed()).ok_or(TensorError::StringPayload)?;
        let payload = Payload::Deferred(Deferred::new(recipe, bytes, width));
        Ok(Tensor { dtype, shape: shape.into(), len, payload, strings: None })
    }

    /// Whether the payload is to be computed or lies outside of memory, and is best [read](Self::read) in blocks.
    pub fn is_deferred(&self) -> bool {
        !matches!(self.payload, Payload::Here(_))
    }

    /// How many recipes deep the payload is; 0 if it is there.
    pub(crate) fn depth(&self) -> usize {
        match &self.payload {
            Payload::Here(_) | Payload::Outside(_) => 0,
            Payload::Deferred(deferred) => deferred.depth(),
        }
    }

    /// Bytes of the payload that are best read at a time.
    pub(crate) fn piece(&self) -> usize {
        match &self.payload {
            Payload::Here(_) | Payload::Outside(_) => 0,
            Payload::Deferred(deferred) => deferred.piece(),
        }
    }

    /// Writes the bytes of the payload from `at` on, of which there must be as many, without making the whole of it.
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

    /// What tells the payload from any other that is held: tensors for which it is equal share theirs.
    pub fn payload_key(&self) -> PayloadKey {
        match &self.payload {
            Payload::Deferred(deferred) => (deferred.address(), 0, deferred.len()),
            Payload::Outside(range) => (range.address(), range.from(), range.len()),
            Payload::Here(bytes) => (bytes.as_ptr() as usize, 0, bytes.len()),
        }
    }

    /// Whether the payload was to be computed and has been, as a whole.
    #[cfg(test)]
    pub(crate) fn is_made(&self) -> bool {
        matches!(&self.payload, Payload::Deferred(deferred) if deferred.is_made())
    }

    /// The bytes of memory that the payload would take once somebody wants it in one piece; 0 if it is there.
    pub(crate) fn unmade(&self) -> usize {
        match &self.payload {
            Payload::Deferred(deferred) if !deferred.is_made() => deferred.len(),
            _ => 0,
        }
    }

    /// Whether a tensor of this type and shape is large enough to be computed when it is written, and can be.
    pub(crate) fn may_be_deferred(dtype: DType, shape: &[usize]) -> bool {
        !dtype.is_packed() && Tensor::measure(dtype, shape).is_ok_and(|(_, bytes)| bytes >= DEFERRED)
    }

    /// The same tensor for a recipe to read: where it is many recipes deep already, it is computed, so that what is computed of it is not
    /// ever more work.
    pub(crate) fn for_recipe(&self) -> Tensor {
        if self.depth() >= DEEPEST {
            self.bytes();
        }
        self.clone()
    }

    /// Elements and payload bytes of a dense type and shape.
    fn measure(dtype: DType, shape: &[usize]) -> Result<(usize, usize), TensorError> {
        if dtype == DType::String {
            return Err(TensorError::StringPayload);
        }
        let len = count(shape)?;
        let bytes = dtype.byte_len(len).filter(|&bytes| bytes <= isize::MAX as usize);
        let bytes = bytes.ok_or_else(|| TensorError::ByteCount { dtype, shape: shape.into() })?;
        Ok((len, bytes))
    }

    /// The bytes that the payload of a tensor of this type and shape has.
    ///
    /// # Errors
    /// The number of elements or bytes is not addressable, or the type is string.
    pub fn byte_len_of(dtype: DType, shape: &[usize]) -> Result<usize, TensorError> {
        Tensor::measure(dtype, shape).map(|(_, bytes)| bytes)
    }

    /// A string tensor; any bytes are a string.
    ///
    /// # Errors
    /// There are more or fewer strings than the shape has elements.
    pub fn from_strings(shape: &[usize], strings: Vec<Bytes>) -> Result<Tensor, TensorError> {
        let len = count(shape)?;
        if strings.len() != len {
            let found = strings.len();
            return Err(TensorError::StringCount { shape: shape.into(), expected: len, found });
        }
        let strings = Some(strings.into());
        Ok(Tensor { dtype: DType::String, shape: shape.into(), len, payload: Payload::Here(Bytes::new()), strings })
    }

    /// A tensor of Rust values, row-major. The vector is kept, not copied, on little-endian hosts.
    ///
    /// # Errors
    /// There are more or fewer values than the shape has elements.
    pub fn from_vec<T: Element>(shape: &[usize], values: Vec<T>) -> Result<Tensor, TensorError> {
        Tensor::from_bytes(T::DTYPE, shape, payload_of(values))
    }

    /// A bool tensor.
    ///
    /// # Errors
    /// As [`from_vec`](Self::from_vec).
    pub fn from_bools(shape: &[usize], values: &[bool]) -> Result<Tensor, TensorError> {
        Tensor::from_vec(shape, values.iter().map(|&value| Bool::from(value)).collect())
    }

    /// A tensor of rank 0.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor {
            dtype: T::DTYPE,
            shape: Shape::new(),
            len: 1,
            payload: Payload::Here(payload_of(vec![value])),
            strings: None,
        }
    }

    /// A tensor of rank 1.
    pub fn vector<T: Element>(values: Vec<T>) -> Tensor {
        let len = values.len();
        let shape = SmallVec::from_slice(&[len]);
        Tensor { dtype: T::DTYPE, shape, len, payload: Payload::Here(payload_of(values)), strings: None }
    }

    /// A tensor whose payload is all zero bits (the smallest value for `float8e8m0`, which has no zero), or of empty
    /// strings.
    ///
    /// # Errors
    /// The payload is not addressable or cannot be allocated. What may be allocated is for the caller to bound.
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

    /// The dims, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether some dim is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of the payload; for strings, of all their contents together.
    pub fn byte_len(&self) -> usize {
        match &self.strings {
            None => self.payload_key().2,
            Some(strings) => strings.iter().fold(0, |sum, string| sum.saturating_add(string.len())),
        }
    }

    /// The dense payload, little-endian, elements of less than a byte packed; empty for strings. One that was to be computed is now, and
    /// takes memory from then on, and so does one outside of memory.
    pub fn bytes(&self) -> &Bytes {
        match &self.payload {
            Payload::Here(bytes) => bytes,
            Payload::Outside(range) => range.bytes(),
            Payload::Deferred(deferred) => deferred.bytes(),
        }
    }

    /// The elements of a string tensor; `None` for other types.
    pub fn strings(&self) -> Option<&[Bytes]> {
        self.strings.as_deref()
    }

    /// The elements, row-major; `None` unless `T` is the element type. Borrowed where the payload is aligned for `T`, as
    /// what this program computed is and what lies in a mapped file need not be.
    pub fn elements<T: Element>(&self) -> Option<Cow<'_, [T]>> {
        if self.dtype != T::DTYPE {
            return None;
        }
        if self.range().is_some() || cfg!(target_endian = "big") {
            // Read without a copy that is kept.
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

    /// The elements of a bool tensor; `None` for other types.
    pub fn bools(&self) -> Option<Vec<bool>> {
        (self.dtype == DType::Bool).then(|| self.bytes().iter().map(|&byte| byte != 0).collect())
    }

    /// The codes of elements of eight bits or fewer, one byte each, row-major, zero-extended; `None` for wider types.
    pub fn codes(&self) -> Option<Codes<'_>> {
        let bits = self.dtype.bits().filter(|&bits| bits <= 8)?;
        Some(Codes::new(self.bytes(), bits, 0, self.len))
    }

    /// The elements of a packed type, one byte each, row-major: signed integers sign-extended to `int8` (two's
    /// complement), others zero-extended codes. `None` for types of a byte or more.
    pub fn unpacked(&self) -> Option<Vec<u8>> {
        let bits = self.dtype.bits().filter(|_| self.dtype.is_packed())?;
        let codes = self.codes()?;
        Some(match self.dtype.is_signed_integer() {
            true => codes.map(|code| sign_extend(code, bits) as u8).collect(),
            false => codes.collect(),
        })
    }

    /// The same elements under another shape, without a copy.
    ///
    /// # Errors
    /// The number of elements differs.
    pub fn reshape(&self, shape: &[usize]) -> Result<Tensor, TensorError> {
        if count(shape)? != self.len {
            return Err(TensorError::Reshape { from: self.shape.clone(), to: shape.into() });
        }
        Ok(Tensor { shape: shape.into(), ..self.clone() })
    }

    /// The elements of an integer or bool tensor, row-major. `None` for other types, and when a `uint64` does not fit.
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

    /// The elements of a real tensor, row-major: exact but for 64-bit integers above 2⁵³, which round to nearest; bools
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

    /// The elements of a [block](Self::block).
    pub(crate) const BLOCK: usize = 1 << 16;

    /// Reads the elements from number `first` on, [`BLOCK`](Self::BLOCK) or as many as there are, into a tensor of rank 1. `None` for strings and
    /// packed elements.
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

/// Gives a vector of elements up as a payload.
pub(super) fn payload_of<T: Element>(mut values: Vec<T>) -> Bytes {
    if cfg!(target_endian = "big") {
        swap_bytes(&mut values);
    }
    Bytes::from_owner(Values(values))
}

/// A vector that owns a payload, keeping the alignment of its elements.
struct Values<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Values<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// The bytes as values, whatever their alignment.
fn copied<T: Element>(bytes: &[u8]) -> Vec<T> {
    let mut values = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
    values
}

/// Swaps the bytes of every number.
fn swap_bytes<T: Element>(values: &mut [T]) {
    let width = size_of::<T>() / T::COMPONENTS;
    bytemuck::cast_slice_mut::<T, u8>(values).chunks_exact_mut(width).for_each(<[u8]>::reverse);
}
