//! Deferred element-wise results, computed when they are read. Operands may be deferred, too: each piece of the result reads only
//! the elements it needs.

use std::borrow::Cow;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::convert::{Rounding, convert};
use super::kernel::{
    Lane, Reader, map_block, map_blocks_to, map_piece, wrong_dtype, zip_block, zip_blocks_to, zip_piece,
};
use crate::ops::Decline;
use crate::ops::broadcast::Broadcast;
use crate::tensor::{DType, Recipe, Tensor};

/// A function that a recipe may own.
pub(super) trait Held: Send + Sync + UnwindSafe + RefUnwindSafe + 'static {}

impl<F: Send + Sync + UnwindSafe + RefUnwindSafe + 'static> Held for F {}

/// Computes the elements from an index on.
type Fill<T> = Box<dyn Fn(usize, &mut [T]) + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// Elements that are computed in `T` and stored as `dtype`.
struct Computed<T> {
    dtype: DType,
    depth: usize,
    fill: Fill<T>,
}

impl<T: Lane> Recipe for Computed<T> {
    fn depth(&self) -> usize {
        self.depth
    }

    fn fill(&self, first: usize, out: &mut [u8]) {
        let in_place = self.dtype == T::DTYPE && cfg!(target_endian = "little");
        if in_place && let Ok(elements) = bytemuck::try_cast_slice_mut(out) {
            return (self.fill)(first, elements);
        }
        let width = self.dtype.byte_len(1).unwrap_or(1).max(1);
        let mut wide = vec![T::zeroed(); out.len() / width];
        (self.fill)(first, &mut wide);
        T::store(self.dtype, &wide, out);
        if cfg!(target_endian = "big") {
            out.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
    }
}

/// A range of a tensor's elements, in memory.
struct Part<'a> {
    dtype: DType,
    bytes: Cow<'a, [u8]>,
    /// The index of the first element.
    first: usize,
}

impl<'a> Part<'a> {
    /// Borrows all elements if they are in memory; else reads those in the range.
    fn of(tensor: &'a Tensor, range: impl FnOnce() -> Range<usize>) -> Self {
        let dtype = tensor.dtype();
        if tensor.is_in_memory() {
            return Part { dtype, bytes: Cow::Borrowed(tensor.bytes()), first: 0 };
        }
        let (range, width) = (range(), dtype.byte_len(1).unwrap_or(1));
        let mut bytes = vec![0; range.len().saturating_mul(width)];
        tensor.read(range.start.saturating_mul(width), &mut bytes);
        Part { dtype, bytes: Cow::Owned(bytes), first: range.start }
    }

    fn reader<T: Lane>(&self) -> Result<Reader<'_, T>, Decline> {
        Reader::over(self.dtype, &self.bytes, self.first)
    }
}

/// Like [`map_to`](super::kernel::map_to), deferred if `later`.
pub(super) fn map_later<T: Lane>(
    later: bool,
    dtype: DType,
    x: &Tensor,
    function: impl Fn(T) -> T + Held,
) -> Result<Tensor, Decline> {
    map_blocks_later(later, dtype, x, Box::new(move |x, out| map_block(x, out, &function)))
}

type HeldMap<T> = Box<dyn Fn(&[T], &mut [T]) + Send + Sync + UnwindSafe + RefUnwindSafe>;

fn map_blocks_later<T: Lane>(later: bool, dtype: DType, x: &Tensor, function: HeldMap<T>) -> Result<Tensor, Decline> {
    if !later {
        return map_blocks_to(dtype, x, &*function);
    }
    let whole = x.for_recipe();
    // Reject types that are not readable as `T`.
    Reader::<T>::over(x.dtype(), &[], 0)?;
    let depth = whole.depth().saturating_add(1);
    let fill = move |first: usize, out: &mut [T]| {
        let part = Part::of(&whole, || first..first.saturating_add(out.len()));
        if let Ok(reader) = part.reader() {
            map_piece(&reader, first, out, &*function);
        }
    };
    deferred(dtype, x.shape(), depth, Box::new(fill))
}

/// Like [`zip_to`](super::kernel::zip_to), deferred if `later`.
pub(super) fn zip_later<T: Lane>(
    later: bool,
    dtype: DType,
    way: &Broadcast<2>,
    (a, b): (&Tensor, &Tensor),
    function: impl Fn(T, T) -> T + Held,
) -> Result<Tensor, Decline> {
    zip_blocks_later(later, dtype, way, (a, b), Box::new(move |a, b, out| zip_block(a, b, out, &function)))
}

type HeldZip<T> = Box<dyn Fn(&[T], &[T], &mut [T]) + Send + Sync + UnwindSafe + RefUnwindSafe>;

fn zip_blocks_later<T: Lane>(
    later: bool,
    dtype: DType,
    way: &Broadcast<2>,
    (a, b): (&Tensor, &Tensor),
    function: HeldZip<T>,
) -> Result<Tensor, Decline> {
    if !later {
        return zip_blocks_to(dtype, way, &Reader::of(a)?, &Reader::of(b)?, &*function);
    }
    Reader::<T>::over(a.dtype(), &[], 0)?;
    Reader::<T>::over(b.dtype(), &[], 0)?;
    let (way, a, b) = (way.clone(), a.for_recipe(), b.for_recipe());
    let (shape, depth) = (way.shape().to_vec(), a.depth().saturating_add(b.depth()).saturating_add(1));
    let fill = move |first: usize, out: &mut [T]| {
        let range = first..first.saturating_add(out.len());
        let a = Part::of(&a, || way.reach(range.clone(), 0));
        let b = Part::of(&b, || way.reach(range.clone(), 1));
        if let (Ok(a), Ok(b)) = (a.reader(), b.reader()) {
            zip_piece(&way, (&a, &b), first, out, &*function);
        }
    };
    deferred(dtype, &shape, depth, Box::new(fill))
}

fn deferred<T: Lane>(dtype: DType, shape: &[usize], depth: usize, fill: Fill<T>) -> Result<Tensor, Decline> {
    if !T::stores(dtype) {
        return Err(wrong_dtype(dtype));
    }
    Ok(Tensor::deferred(dtype, shape, Box::new(Computed { dtype, depth, fill }))?)
}

/// Returns `true` if each element of the one type has a counterpart in the other, so that casts can be deferred.
pub(super) fn always_converts(from: DType, to: DType) -> bool {
    use DType::{Bfloat16, Double, Float, Float16};
    match to {
        Float | Double => !from.is_complex() && !from.is_packed() && from != DType::String,
        Float16 | Bfloat16 => matches!(from, Float | Float16 | Bfloat16),
        _ => false,
    }
}

/// A deferred conversion to another element type.
struct Converted {
    tensor: Tensor,
    to: DType,
    rounding: Rounding,
}

impl Recipe for Converted {
    fn depth(&self) -> usize {
        self.tensor.depth().saturating_add(1)
    }

    fn fill(&self, first: usize, out: &mut [u8]) {
        let len = self.to.byte_len(1).map_or(0, |width| out.len() / width.max(1));
        let part = Part::of(&self.tensor, || first..first.saturating_add(len));
        let width = part.dtype.byte_len(1).unwrap_or(1);
        let begin = first.saturating_sub(part.first).saturating_mul(width);
        let bytes = part.bytes.get(begin..begin.saturating_add(len.saturating_mul(width))).unwrap_or_default();
        let block = Tensor::from_bytes(part.dtype, &[len], bytes.to_vec().into());
        // Every element has a counterpart.
        if let Ok(converted) = block.map_err(Decline::from).and_then(|block| convert(&block, self.to, self.rounding)) {
            out.copy_from_slice(converted.bytes());
        }
    }
}

/// Like [`convert`], deferred if `later`, for types where [each element has a counterpart](always_converts).
pub(super) fn convert_later(later: bool, tensor: &Tensor, to: DType, rounding: Rounding) -> Result<Tensor, Decline> {
    if !later || tensor.dtype() == to {
        return convert(tensor, to, rounding);
    }
    let recipe = Converted { tensor: tensor.for_recipe(), to, rounding };
    Ok(Tensor::deferred(to, tensor.shape(), Box::new(recipe))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::smallfloat::RoundMode;
    use crate::tensor::{StridedView, gather_later};

    /// Numbers of all magnitudes and NaN in a type, in memory or deferred.
    fn numbers(dtype: DType, shape: &[usize], later: bool) -> Tensor {
        let number = |n: usize| match n % 1009 {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => -0.0,
            3 => 1e-40,
            n => (n as f64 - 500.0) * 0.37 * if n % 2 == 0 { 1.0 } else { 1e-5 },
        };
        let values = (0..shape.iter().product()).map(number).collect();
        let rounding = Rounding { saturate: true, mode: RoundMode::Up };
        let doubles = Tensor::from_vec::<f64>(shape, values).unwrap();
        let floats = convert(&doubles, DType::Float, rounding).unwrap();
        let here = if dtype == DType::Double { doubles } else { convert(&floats, dtype, rounding).unwrap() };
        if !later {
            return here;
        }
        let back = |tensor: &Tensor| {
            let view = StridedView::of(tensor).slice_axis(0, shape[0] - 1, -1, shape[0]).unwrap();
            gather_later(tensor, &view).unwrap()
        };
        back(&back(&here))
    }

    /// Checks that a deferred tensor equals the other bit for bit, in parts and as a whole.
    fn is_same(now: &Tensor, later: &Tensor) {
        assert!(later.unmade() > 0);
        for (at, len) in [(0, 2), (1, 7), (4090, 20_000), (now.byte_len() - 300_001, 300_001)] {
            let mut part = vec![0; len];
            later.read(at, &mut part);
            assert!(part == now.bytes()[at..at + len]);
        }
        assert!(later.unmade() > 0 && now.bytes() == later.bytes());
    }

    #[test]
    fn deferred_results_equal_immediate_ones() {
        for dtype in [DType::Float, DType::Float16, DType::Bfloat16] {
            let shapes: [[&[usize]; 2]; 4] =
                [[&[900, 700], &[900, 700]], [&[900, 700], &[700]], [&[900, 1], &[900, 700]], [&[30, 30, 700], &[]]];
            for [a, b] in shapes {
                let way = Broadcast::new([a, b]).unwrap();
                for later in [false, true] {
                    let large = |shape: &[usize]| later && shape.iter().product::<usize>() > 1000;
                    let operands = [a, b].map(|shape| numbers(dtype, shape, large(shape)));
                    let pair = (&operands[0], &operands[1]);
                    let now = zip_later::<f32>(false, dtype, &way, pair, |a, b| a * b - a).unwrap();
                    is_same(&now, &zip_later::<f32>(true, dtype, &way, pair, |a, b| a * b - a).unwrap());
                }
            }
            let x = numbers(dtype, &[900, 700], true);
            let now = map_later::<f32>(false, dtype, &x, |x| 1.0 / x).unwrap();
            is_same(&now, &map_later::<f32>(true, dtype, &x, |x| 1.0 / x).unwrap());
        }
        assert!(map_later::<f32>(true, DType::Float, &numbers(DType::Double, &[1000, 1000], false), |x| x).is_err());
    }

    #[test]
    fn casts_are_the_same_later() {
        use DType::{Bfloat16, Double, Float, Float16, Int8, Uint64};
        let rounding = Rounding { saturate: true, mode: RoundMode::Up };
        for from in [Float, Double, Float16, Bfloat16, Int8, Uint64, DType::Bool] {
            for to in [Float, Double, Float16, Bfloat16] {
                let shape = [1100, 1000];
                let bytes = (0..from.byte_len(1_100_000).unwrap()).map(|n| ((n * 2_654_435_761) >> 13) as u8);
                let whole = Tensor::from_bytes(from, &shape, bytes.collect()).unwrap();
                let x = if from.is_float() { numbers(from, &shape, true) } else { whole };
                if from == to || !always_converts(from, to) {
                    continue;
                }
                is_same(&convert(&x, to, rounding).unwrap(), &convert_later(true, &x, to, rounding).unwrap());
            }
        }
    }
}
