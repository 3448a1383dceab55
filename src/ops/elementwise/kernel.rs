//! Element-wise loops over one operand or two broadcast operands, and the types they compute in.
//!
//! Arithmetic uses the element type, except that `float16` and `bfloat16` are computed in binary32 and rounded once at the end.
//! Payloads that are unaligned (as in mapped files) or narrower than the computing type are read block by block. Large results
//! are computed in parallel pieces; elements are independent, so results do not depend on the pieces.
//!
//! Only the loops over a block ([`map_block`], [`zip_block`]) are compiled per function; the code around them is compiled per type.

use std::ops::Range;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::ops::broadcast::Broadcast;
use crate::ops::{Decline, EvalCx, EvalResult};
use crate::tensor::threads;
use crate::tensor::{Bool, Complex128, DType, Element, Number, Tensor, product};

/// The number of elements per task.
const PIECE: usize = 1 << 16;

/// The number of elements read or rounded at a time, on the stack.
const BLOCK: usize = 1024;

/// Results larger than this are computed by several threads.
const PARALLEL_BYTES: usize = 4 << 20;

/// Runs an expression with the [`Lane`] type of an element type: `lanes!(dtype, T => f::<T>(), else => g())`.
macro_rules! lanes {
    ($dtype:expr, $T:ident => $body:expr, else => $other:expr) => {{
        macro_rules! with {
            ($type:ty) => {{
                type $T = $type;
                $body
            }};
        }
        use $crate::tensor::DType as D;
        match $dtype {
            D::Float | D::Float16 | D::Bfloat16 => with!(f32),
            D::Double => with!(f64),
            D::Int8 => with!(i8),
            D::Int16 => with!(i16),
            D::Int32 => with!(i32),
            D::Int64 => with!(i64),
            D::Uint8 => with!(u8),
            D::Uint16 => with!(u16),
            D::Uint32 => with!(u32),
            D::Uint64 => with!(u64),
            _ => $other,
        }
    }};
}
pub(super) use lanes;

/// Returns the decline for an element type that the standard does not allow here.
pub(super) fn wrong_dtype(dtype: DType) -> Decline {
    Decline::invalid(format!("the operator does not accept the element type {dtype}"))
}

/// Returns `true` for types that the standard allows in arithmetic: unpacked numbers.
pub(super) fn is_number(dtype: DType) -> bool {
    lanes!(dtype, T => size_of::<T>() > 0, else => false)
}

/// Decodes little-endian elements, up to the shorter of both slices.
type Decode<T> = fn(&[u8], &mut [T]);

/// Computes a piece of a result, given the index of its first element.
type Fill<'f, T> = &'f (dyn Fn(usize, &mut [T]) + Sync);

/// A type that elements can be read as.
pub(super) trait Read: Element {
    /// Returns the bytes per element and the decoder of a tensor type; `None` if it is not computed in `Self`.
    fn decoder(dtype: DType) -> Option<(usize, Decode<Self>)>;
}

/// A type that arithmetic computes in.
pub(super) trait Lane: Read + Number {
    /// Returns a tensor of this type with elements computed by `fill`.
    ///
    /// # Errors
    /// The type is not computed in `Self`.
    fn compute(dtype: DType, shape: &[usize], fill: Fill<'_, Self>) -> Result<Tensor, Decline> {
        if dtype != Self::DTYPE {
            return Err(wrong_dtype(dtype));
        }
        Ok(Tensor::from_vec(shape, computed(product(shape).unwrap_or(0), fill))?)
    }

    /// Returns `true` if elements of this type are computed in `Self`.
    fn stores(dtype: DType) -> bool {
        Self::decoder(dtype).is_some()
    }

    /// Writes elements as a type that is computed in `Self`, in host byte order.
    fn store(_: DType, elements: &[Self], out: &mut [u8]) {
        out.copy_from_slice(bytemuck::cast_slice(elements));
    }
}

macro_rules! reads_itself {
    ($($type:ident)*) => {
        $(impl Read for $type {
            fn decoder(dtype: DType) -> Option<(usize, Decode<Self>)> {
                (dtype == Self::DTYPE).then_some((size_of::<Self>(), decode::<{ size_of::<Self>() }, Self>))
            }
        }

        impl FromLittle<{ size_of::<$type>() }> for $type {
            fn from_little(bytes: [u8; size_of::<$type>()]) -> Self {
                $type::from_le_bytes(bytes)
            }
        })*
    };
}

reads_itself! { f64 i8 i16 i32 i64 u8 u16 u32 u64 }

/// A number that can be read from little-endian bytes.
trait FromLittle<const WIDTH: usize> {
    fn from_little(bytes: [u8; WIDTH]) -> Self;
}

impl FromLittle<4> for f32 {
    fn from_little(bytes: [u8; 4]) -> Self {
        f32::from_le_bytes(bytes)
    }
}

impl FromLittle<2> for f16 {
    fn from_little(bytes: [u8; 2]) -> Self {
        f16::from_le_bytes(bytes)
    }
}

impl FromLittle<2> for bf16 {
    fn from_little(bytes: [u8; 2]) -> Self {
        bf16::from_le_bytes(bytes)
    }
}

/// On little-endian hosts, the compiler turns this into a copy.
fn decode<const WIDTH: usize, T: FromLittle<WIDTH>>(bytes: &[u8], out: &mut [T]) {
    for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<WIDTH>().0) {
        *out = T::from_little(*bytes);
    }
}

impl Read for f32 {
    fn decoder(dtype: DType) -> Option<(usize, Decode<Self>)> {
        Some(match dtype {
            DType::Float => (4, decode),
            DType::Float16 => (2, |bytes, out| {
                let mut narrow = [f16::ZERO; BLOCK];
                for (bytes, out) in bytes.chunks(2 * BLOCK).zip(out.chunks_mut(BLOCK)) {
                    decode(bytes, &mut narrow);
                    if let Some(narrow) = narrow.get(..out.len()) {
                        narrow.convert_to_f32_slice(out);
                    }
                }
            }),
            DType::Bfloat16 => (2, |bytes, out| {
                for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *out = bf16::from_le_bytes(*bytes).to_f32();
                }
            }),
            _ => return None,
        })
    }
}

impl Read for Complex128 {
    fn decoder(dtype: DType) -> Option<(usize, Decode<Self>)> {
        let decode: Decode<Self> = |bytes, out| {
            for (out, bytes) in out.iter_mut().zip(bytes.as_chunks::<16>().0) {
                let [re, im] = [0, 8].map(|at| bytes.get(at..at + 8).and_then(|part| part.try_into().ok()));
                *out = Complex128([re, im].map(|part| part.map_or(0.0, f64::from_le_bytes)));
            }
        };
        (dtype == DType::Complex128).then_some((16, decode))
    }
}

impl Read for Bool {
    fn decoder(dtype: DType) -> Option<(usize, Decode<Self>)> {
        let decode: Decode<Self> = |bytes, out| out.iter_mut().zip(bytes).for_each(|(out, &byte)| *out = Bool(byte));
        (dtype == DType::Bool).then_some((1, decode))
    }
}

macro_rules! lane {
    ($($type:ident)*) => { $(impl Lane for $type {})* };
}

lane! { f64 i8 i16 i32 i64 u8 u16 u32 u64 }

impl Lane for f32 {
    fn store(dtype: DType, elements: &[Self], out: &mut [u8]) {
        store_floats(dtype, elements, out);
    }

    fn compute(dtype: DType, shape: &[usize], fill: Fill<'_, Self>) -> Result<Tensor, Decline> {
        let len = product(shape).unwrap_or(0);
        Ok(match dtype {
            DType::Float => Tensor::from_vec(shape, computed(len, fill))?,
            DType::Float16 => {
                let narrowed = rounded(len, fill, |wide, narrow: &mut [f16]| narrow.convert_from_f32_slice(wide));
                Tensor::from_vec(shape, narrowed)?
            }
            DType::Bfloat16 => {
                let narrowed = rounded(len, fill, |wide, narrow: &mut [bf16]| {
                    narrow.iter_mut().zip(wide).for_each(|(narrow, &wide)| *narrow = bf16::from_f32(wide));
                });
                Tensor::from_vec(shape, narrowed)?
            }
            _ => return Err(wrong_dtype(dtype)),
        })
    }
}

/// Writes binary32 results as `dtype`, in host byte order.
fn store_floats(dtype: DType, wide: &[f32], out: &mut [u8]) {
    match dtype {
        DType::Float16 => {
            let mut narrow = vec![f16::ZERO; wide.len()];
            narrow.convert_from_f32_slice(wide);
            out.copy_from_slice(bytemuck::cast_slice(&narrow));
        }
        DType::Bfloat16 => {
            for (out, &wide) in out.as_chunks_mut::<2>().0.iter_mut().zip(wide) {
                *out = bf16::from_f32(wide).to_ne_bytes();
            }
        }
        _ => out.copy_from_slice(bytemuck::cast_slice(wide)),
    }
}

/// Computes elements in binary32 and rounds them block by block.
fn rounded<T: Element>(len: usize, fill: Fill<'_, f32>, round: impl Fn(&[f32], &mut [T]) + Sync) -> Vec<T> {
    computed(len, &|start, out: &mut [T]| {
        let mut wide = [0f32; BLOCK];
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            if let Some(wide) = wide.get_mut(..out.len()) {
                fill(start + block * BLOCK, wide);
                round(wide, out);
            }
        }
    })
}

/// Computes `len` elements, piece by piece.
pub(super) fn computed<T: Element>(len: usize, fill: Fill<'_, T>) -> Vec<T> {
    let mut result = vec![T::zeroed(); len];
    if len.saturating_mul(size_of::<T>()) > PARALLEL_BYTES {
        threads::for_each(result.chunks_mut(PIECE).enumerate(), |(piece, out)| fill(piece * PIECE, out));
    } else {
        fill(0, &mut result);
    }
    result
}

/// The elements of an operand, converted to the computing type.
pub(super) struct Reader<'a, T> {
    /// The payload, if no conversion is needed.
    whole: Option<&'a [T]>,
    bytes: &'a [u8],
    /// The index of the first available element.
    first: usize,
    width: usize,
    decode: Decode<T>,
}

impl<'a, T: Read> Reader<'a, T> {
    /// Reads the elements of a tensor.
    ///
    /// # Errors
    /// They are not computed in `T`.
    pub(super) fn of(tensor: &'a Tensor) -> Result<Self, Decline> {
        Reader::over(tensor.dtype(), tensor.bytes(), 0)
    }

    /// Reads the elements of a tensor, given the bytes from element `first` on.
    ///
    /// # Errors
    /// They are not computed in `T`.
    pub(super) fn over(dtype: DType, bytes: &'a [u8], first: usize) -> Result<Self, Decline> {
        let (width, decode) = T::decoder(dtype).ok_or_else(|| wrong_dtype(dtype))?;
        let as_is = dtype == T::DTYPE && cfg!(target_endian = "little");
        let whole = if as_is { bytemuck::try_cast_slice(bytes).ok() } else { None };
        Ok(Reader { whole, bytes, first, width, decode })
    }
}

impl<'a, T: Element> Reader<'a, T> {
    /// Reads elements from a slice.
    pub(super) fn at_hand(whole: &'a [T]) -> Self {
        Reader { whole: Some(whole), bytes: &[], first: 0, width: 0, decode: |_, _| {} }
    }

    /// Returns the elements in `range`; converted elements are limited to one block.
    fn lend<'b>(&'b self, range: Range<usize>, buffer: &'b mut [T; BLOCK]) -> &'b [T] {
        let range = range.start.saturating_sub(self.first)..range.end.saturating_sub(self.first);
        if let Some(whole) = self.whole {
            return whole.get(range).unwrap_or_default();
        }
        let bytes = self.bytes.get(range.start * self.width..range.end * self.width).unwrap_or_default();
        let lent = buffer.get_mut(..range.len()).unwrap_or_default();
        (self.decode)(bytes, lent);
        lent
    }

    /// Returns the first element.
    pub(super) fn first(&self) -> Option<T> {
        self.lend(0..1, &mut [T::zeroed(); BLOCK]).first().copied()
    }

    /// Returns `true` if some element equals the given one.
    pub(super) fn contains(&self, element: T) -> bool
    where
        T: PartialEq,
    {
        self.any(|other| other == element)
    }

    /// Returns `true` if some element passes the test.
    pub(super) fn any(&self, test: impl Fn(T) -> bool) -> bool {
        let len = self.whole.map_or_else(|| self.bytes.len().checked_div(self.width).unwrap_or(0), <[T]>::len);
        let mut buffer = [T::zeroed(); BLOCK];
        (0..len).step_by(BLOCK).any(|start| {
            let block = self.lend(start..len.min(start.saturating_add(BLOCK)), &mut buffer);
            block.iter().any(|&element| test(element))
        })
    }
}

/// Computes a block of a result from elements of the operand.
pub(super) type OfBlock<'f, T, O> = &'f (dyn Fn(&[T], &mut [O]) + Sync + 'f);

/// Computes a block of a result from elements of two operands: one per result element, or a single repeated one.
pub(super) type OfBlocks<'f, A, B, O> = &'f (dyn Fn(&[A], &[B], &mut [O]) + Sync + 'f);

/// Applies a function to each element of a block.
pub(super) fn map_block<T: Copy, O>(x: &[T], out: &mut [O], function: &impl Fn(T) -> O) {
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = function(x));
}

/// Applies a function to each pair of elements of two blocks; either block may be a single repeated element.
pub(super) fn zip_block<A: Copy, B: Copy, O>(a: &[A], b: &[B], out: &mut [O], function: &impl Fn(A, B) -> O) {
    match (a, b) {
        (&[a], b) if b.len() == out.len() => out.iter_mut().zip(b).for_each(|(out, &b)| *out = function(a, b)),
        (a, &[b]) if a.len() == out.len() => out.iter_mut().zip(a).for_each(|(out, &a)| *out = function(a, b)),
        _ => out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = function(a, b)),
    }
}

/// Applies a function to the elements of one piece of the result.
pub(super) fn map_piece<T: Element, O: Element>(
    x: &Reader<'_, T>,
    start: usize,
    out: &mut [O],
    function: OfBlock<'_, T, O>,
) {
    let mut buffer = [T::zeroed(); BLOCK];
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let start = start + block * BLOCK;
        function(x.lend(start..start + out.len(), &mut buffer), out);
    }
}

/// Applies a function to each of `len` elements.
pub(super) fn map<T: Element, O: Element>(x: &Reader<'_, T>, len: usize, function: impl Fn(T) -> O + Sync) -> Vec<O> {
    let function = |x: &[T], out: &mut [O]| map_block(x, out, &function);
    computed(len, &|start, out| map_piece(x, start, out, &function))
}

/// Returns a tensor of the same shape with a function applied to each element.
pub(super) fn map_to<T: Lane>(dtype: DType, x: &Tensor, function: impl Fn(T) -> T + Sync) -> Result<Tensor, Decline> {
    map_blocks_to(dtype, x, &|x, out| map_block(x, out, &function))
}

/// Like [`map_to`], block by block.
pub(super) fn map_blocks_to<T: Lane>(dtype: DType, x: &Tensor, function: OfBlock<'_, T, T>) -> Result<Tensor, Decline> {
    let reader = Reader::of(x)?;
    T::compute(dtype, x.shape(), &|start, out| map_piece(&reader, start, out, function))
}

/// Applies a function to the pairs of elements of one piece of the result.
pub(super) fn zip_piece<A: Element, B: Element, O: Element>(
    way: &Broadcast<2>,
    (a, b): (&Reader<'_, A>, &Reader<'_, B>),
    start: usize,
    out: &mut [O],
    function: OfBlocks<'_, A, B, O>,
) {
    let (mut a_buffer, mut b_buffer) = ([A::zeroed(); BLOCK], [B::zeroed(); BLOCK]);
    way.runs(start..start + out.len(), |run, [of_a, of_b]| {
        let out = out.get_mut(run).unwrap_or_default();
        let (a_moves, b_moves) = (of_a.len() == out.len(), of_b.len() == out.len());
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let part = |of: &Range<usize>, moves: bool| match moves {
                true => of.start + block * BLOCK..of.start + block * BLOCK + out.len(),
                false => of.clone(),
            };
            function(a.lend(part(&of_a, a_moves), &mut a_buffer), b.lend(part(&of_b, b_moves), &mut b_buffer), out);
        }
    });
}

/// Applies a function to each pair of elements of two operands that broadcast.
pub(super) fn zip<A: Element, B: Element, O: Element>(
    way: &Broadcast<2>,
    a: &Reader<'_, A>,
    b: &Reader<'_, B>,
    function: impl Fn(A, B) -> O + Sync,
) -> Vec<O> {
    let function = |a: &[A], b: &[B], out: &mut [O]| zip_block(a, b, out, &function);
    computed(way.len(), &|start, out| zip_piece(way, (a, b), start, out, &function))
}

/// Selects for each condition the element of `x` if it holds, else the element of `y`.
pub(super) fn choose<T: Element>(
    way: &Broadcast<3>,
    conditions: &Reader<'_, Bool>,
    x: &Reader<'_, T>,
    y: &Reader<'_, T>,
) -> Vec<T> {
    computed(way.len(), &|start, out: &mut [T]| {
        let (mut x_buffer, mut y_buffer) = ([T::zeroed(); BLOCK], [T::zeroed(); BLOCK]);
        let mut conditions_buffer = [Bool(0); BLOCK];
        way.runs(start..start + out.len(), |run, operands| {
            let out = out.get_mut(run).unwrap_or_default();
            let len = out.len();
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let [of_conditions, of_x, of_y] = operands.clone().map(|of| match of.len() == len {
                    true => of.start + block * BLOCK..of.start + block * BLOCK + out.len(),
                    false => of,
                });
                let conditions = conditions.lend(of_conditions, &mut conditions_buffer);
                let (x, y) = (x.lend(of_x, &mut x_buffer), y.lend(of_y, &mut y_buffer));
                choose_block(out, conditions, x, y);
            }
        });
    })
}

/// Selects a block. Each operand has one element per result element, or a single repeated one.
fn choose_block<T: Copy>(out: &mut [T], conditions: &[Bool], x: &[T], y: &[T]) {
    let chosen = |condition: Bool, x: T, y: T| if condition.get() { x } else { y };
    match (conditions, x, y) {
        (&[condition], x, y) => match if condition.get() { x } else { y } {
            &[element] => out.fill(element),
            elements => out.iter_mut().zip(elements).for_each(|(out, &element)| *out = element),
        },
        (conditions, &[x], &[y]) => {
            out.iter_mut().zip(conditions).for_each(|(out, &condition)| *out = chosen(condition, x, y));
        }
        (conditions, &[x], y) => {
            let pairs = conditions.iter().zip(y);
            out.iter_mut().zip(pairs).for_each(|(out, (&condition, &y))| *out = chosen(condition, x, y));
        }
        (conditions, x, &[y]) => {
            let pairs = conditions.iter().zip(x);
            out.iter_mut().zip(pairs).for_each(|(out, (&condition, &x))| *out = chosen(condition, x, y));
        }
        (conditions, x, y) => {
            let triples = conditions.iter().zip(x.iter().zip(y));
            out.iter_mut().zip(triples).for_each(|(out, (&condition, (&x, &y)))| *out = chosen(condition, x, y));
        }
    }
}

/// Returns a tensor of a type computed in `T`, with a function applied to each pair of elements of two operands that broadcast.
pub(super) fn zip_to<A: Element, B: Element, T: Lane>(
    dtype: DType,
    way: &Broadcast<2>,
    a: &Reader<'_, A>,
    b: &Reader<'_, B>,
    function: impl Fn(A, B) -> T + Sync,
) -> Result<Tensor, Decline> {
    zip_blocks_to(dtype, way, a, b, &|a, b, out| zip_block(a, b, out, &function))
}

/// Like [`zip_to`], block by block.
pub(super) fn zip_blocks_to<A: Element, B: Element, T: Lane>(
    dtype: DType,
    way: &Broadcast<2>,
    a: &Reader<'_, A>,
    b: &Reader<'_, B>,
    function: OfBlocks<'_, A, B, T>,
) -> Result<Tensor, Decline> {
    T::compute(dtype, way.shape(), &|start, out| zip_piece(way, (a, b), start, out, function))
}

/// Applies a function to each element of a float tensor, computed in binary64 and rounded: to 16-bit types through binary32, as
/// in runtimes.
pub(super) fn map_floats(x: &Tensor, function: impl Fn(f64) -> f64 + Sync) -> Result<Tensor, Decline> {
    match x.dtype() {
        DType::Double => map_to::<f64>(DType::Double, x, function),
        dtype => map_to::<f32>(dtype, x, |x| function(f64::from(x)) as f32),
    }
}

/// Like [`charge`], for a result that may be deferred. Returns `true` if it is deferred.
pub(super) fn charge_later(cx: &EvalCx<'_>, dtype: DType, shape: &[usize], work: u64) -> Result<bool, Decline> {
    let len = product(shape).unwrap_or(usize::MAX);
    cx.budget().take_work(u64::try_from(len).unwrap_or(u64::MAX).saturating_mul(work))?;
    cx.claim_later(dtype, shape)
}

/// Charges the budget for an element-wise result: its bytes, and `work` operations per element.
pub(super) fn charge(cx: &EvalCx<'_>, dtype: DType, shape: &[usize], work: u64) -> Result<(), Decline> {
    cx.claim(dtype, shape)?;
    let len = product(shape).unwrap_or(usize::MAX);
    cx.budget().take_work(u64::try_from(len).unwrap_or(u64::MAX).saturating_mul(work))
}

/// Returns a single result of an evaluation.
pub(super) fn single(tensor: Tensor) -> EvalResult {
    Ok(vec![tensor.into()])
}
