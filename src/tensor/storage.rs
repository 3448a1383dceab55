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

    /// Returns `true` if a condition holds for all elements of a real tensor, as [`to_f64s`](Self::to_f64s) gives them; `None` for strings and
    /// complex numbers. Reads a payload that is not in memory in blocks.
    pub fn every_f64(&self, mut holds: impl FnMut(f64) -> bool) -> Option<bool> {
        self.every_block(|block| Some(block.to_f64s()?.into_iter().all(&mut holds)))
    }

    /// As [`every_f64`](Self::every_f64), of the integers that [`to_i64s`](Self::to_i64s) gives.
    pub fn every_i64(&self, mut holds: impl FnMut(i64) -> bool) -> Option<bool> {
        self.every_block(|block| Some(block.to_i64s()?.into_iter().all(&mut holds)))
    }

    /// Returns `true` if a condition holds for the tensor, or, where its payload is not in memory, for each [block](Self::block) of it.
    fn every_block(&self, mut holds: impl FnMut(&Tensor) -> Option<bool>) -> Option<bool> {
        if self.is_in_memory() {
            return holds(self);
        }
        for first in (0..self.len).step_by(Self::BLOCK) {
            if !holds(&self.block(first)?)? {
                return Some(false);
            }
        }
        Some(true)
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

    /// Whether two tensors are the same bit for bit: type, shape and elements. Padding after packed elements is no part
    /// of them.
    pub fn same(&self, other: &Tensor) -> bool {
        if self.dtype != other.dtype || self.shape != other.shape {
            return false;
        }
        if self.strings.is_some() || other.strings.is_some() {
            return self.strings == other.strings;
        }
        if self.payload_key() == other.payload_key() {
            return true;
        }
        if self.is_deferred() || other.is_deferred() {
            return self.same_blocks(other);
        }
        let ((mine, my_tail), (others, other_tail)) = (self.whole_bytes(), other.whole_bytes());
        my_tail == other_tail && mine == others
    }

    /// Whether the payloads of two tensors of one type and shape are equal, block by block. No elements are packed.
    fn same_blocks(&self, other: &Tensor) -> bool {
        const BLOCK: usize = 1 << 20;
        let len = self.byte_len();
        let [mut mine, mut others] = [vec![0; len.min(BLOCK)], vec![0; len.min(BLOCK)]];
        (0..len).step_by(BLOCK).all(|at| {
            let block = BLOCK.min(len - at);
            let (Some(mine), Some(others)) = (mine.get_mut(..block), others.get_mut(..block)) else { return false };
            self.read(at, mine);
            other.read(at, others);
            mine == others
        })
    }

    /// The payload without a last byte that is part padding, and that byte with the padding cleared.
    fn whole_bytes(&self) -> (&[u8], Option<u8>) {
        let bits = self.dtype.bits().unwrap_or(8);
        // Elements come in whole bytes eight at a time, whatever their width.
        let used = self.len % 8 * bits % 8;
        match self.bytes().split_last() {
            Some((last, whole)) if used != 0 => (whole, Some(last & ((1 << used) - 1))),
            _ => (self.bytes(), None),
        }
    }

    /// The one element all elements are, bit for bit, as a tensor of rank 0; `None` if they differ or there are none.
    pub fn uniform(&self) -> Option<Tensor> {
        if self.is_empty() {
            return None;
        }
        let mut scalar = Tensor { shape: Shape::new(), len: 1, ..self.clone() };
        if let Some(strings) = self.strings() {
            let first = strings.first()?;
            scalar.strings = Some([first.clone()].into());
            return strings.iter().all(|string| string == first).then_some(scalar);
        }
        if self.dtype.is_packed() {
            let mut codes = self.codes()?;
            let first = codes.next()?;
            scalar.payload = Payload::Here(Bytes::copy_from_slice(&[first]));
            return codes.all(|code| code == first).then_some(scalar);
        }
        // All equal is: the payload equals itself moved by one element.
        let width = self.dtype.byte_len(1)?;
        if !self.is_in_memory() {
            // Block by block: most tensors have two elements that differ in the first, which is small.
            let (mut at, mut block, mut read, mut first) = (0, 1024usize.checked_mul(width)?, Vec::new(), None);
            while at < self.byte_len() {
                read.resize(block.min(self.byte_len() - at), 0);
                self.read(at, &mut read);
                let element = first.get_or_insert_with(|| read.get(..width).unwrap_or_default().to_vec());
                if !repeats(&read, element) {
                    return None;
                }
                (at, block) = (at + read.len(), block.checked_mul(4)?.min(width << 16));
            }
            scalar.payload = Payload::Here(first?.into());
            return Some(scalar);
        }
        let bytes = self.bytes();
        scalar.payload = Payload::Here(bytes.slice(..width));
        (bytes.get(width..)? == bytes.get(..bytes.len() - width)?).then_some(scalar)
    }

    /// A hash of type, shape and a bounded part of the payload, so that a large tensor is not read for it. What has another
    /// sample is different; what has the same is to be compared with [`Tensor::same`].
    pub fn hash_sample(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        const WHOLE: usize = 4096;
        const PART: usize = 64;
        let len = self.byte_len();
        if self.strings.is_some() || len <= WHOLE {
            return self.hash_content();
        }
        let mut hasher = rustc_hash::FxHasher::default();
        self.dtype().hash(&mut hasher);
        self.shape().hash(&mut hasher);
        for at in (0..len).step_by(len / 16 + 1) {
            let mut part = [0; PART];
            let Some(part) = part.get_mut(..PART.min(len - at)) else { continue };
            self.read(at, part);
            part.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// A hash of type, shape and elements: equal for tensors that are the [`same`](Self::same), alike on every machine,
    /// not resistant to collisions made on purpose. Equality is always for `same` to confirm.
    pub fn hash_content(&self) -> u64 {
        let mut hash = Hash::new(self.dtype.onnx() as u64);
        hash.word(self.shape.len() as u64);
        for &dim in &self.shape {
            hash.word(dim as u64);
        }
        match self.strings() {
            Some(strings) => strings.iter().for_each(|string| hash.bytes(string)),
            None => {
                let (whole, tail) = self.whole_bytes();
                hash.bytes(whole);
                hash.word(tail.map_or(0, u64::from));
            }
        }
        hash.finish()
    }
}

/// Returns `true` if the bytes are an element again and again: eight bytes at a time, and without calls, which take most of the time in a module.
fn repeats(bytes: &[u8], element: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let Some(&first) = words.first().filter(|_| 8usize.is_multiple_of(element.len())) else {
        return bytes.chunks(element.len().max(1)).all(|other| other == element);
    };
    let word = u64::from_ne_bytes(first);
    first.chunks(element.len()).all(|other| other == element)
        && words.iter().all(|other| u64::from_ne_bytes(*other) == word)
        && rest.chunks(element.len()).all(|other| other == element)
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

/// A multiply-and-rotate hash over four independent lanes, so that long payloads run at the speed of memory.
struct Hash {
    state: u64,
}

impl Hash {
    /// Odd, without pattern: the fraction of the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    const LANES: usize = 4;

    fn new(seed: u64) -> Hash {
        let mut hash = Hash { state: Self::FACTOR };
        hash.word(seed);
        hash
    }

    fn word(&mut self, word: u64) {
        self.state = mix(self.state, word);
    }

    /// Bytes and their number, so that neighbouring strings do not run together.
    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        let (blocks, words) = words.as_chunks::<{ Self::LANES }>();
        if !blocks.is_empty() {
            let mut lanes = [1, 2, 3, 4].map(|lane| mix(self.state, lane));
            for block in blocks {
                for (lane, word) in lanes.iter_mut().zip(block) {
                    *lane = mix(*lane, u64::from_le_bytes(*word));
                }
            }
            lanes.into_iter().for_each(|lane| self.word(lane));
        }
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        rest.iter().for_each(|&byte| self.word(byte.into()));
    }

    fn finish(self) -> u64 {
        let state = (self.state ^ self.state >> 32).wrapping_mul(Self::FACTOR);
        state ^ state >> 29
    }
}

/// One step, bijective in the word for a fixed state.
fn mix(state: u64, word: u64) -> u64 {
    (state.rotate_left(23) ^ word).wrapping_mul(Hash::FACTOR)
}
