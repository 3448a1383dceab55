//! Multiplies weights by one factor for each channel.

use std::marker::PhantomData;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::ops::Budget;
use crate::tensor::threads;
use crate::tensor::{DType, Number, Recipe, Tensor, dispatch_numeric, product};

use super::has_arithmetic;
use super::magnitude::Peak;

/// The blocks of a weight with one factor each: rows of `columns` blocks of `inner` elements. After every `rows` rows the next `columns`
/// factors apply; after the last factors the first ones apply again.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    inner: usize,
    columns: usize,
    rows: usize,
}

impl Blocks {
    /// Returns blocks with one factor for each index along `axis`.
    pub fn along(shape: &[usize], axis: usize) -> Option<Blocks> {
        let inner = product(shape.get(axis.checked_add(1)?..)?)?;
        Some(Blocks { inner, columns: *shape.get(axis)?, rows: usize::MAX })
    }

    /// Returns one block with all elements.
    pub fn whole(shape: &[usize]) -> Option<Blocks> {
        Some(Blocks { inner: product(shape)?, columns: 1, rows: usize::MAX })
    }

    /// Returns blocks with one factor for each index along axis 1, where each group of indices along axis 0 has its own factors.
    pub fn grouped(shape: &[usize], groups: usize) -> Option<Blocks> {
        let rows = *shape.first()?;
        let blocks = Blocks::along(shape, 1)?;
        (groups > 0 && rows % groups == 0).then_some(Blocks { rows: rows / groups, ..blocks })
    }

    /// Returns the factors of a row.
    fn row<'f, T>(&self, factors: &'f [T], row: usize) -> Option<&'f [T]> {
        let start = (row / self.rows.max(1)).checked_mul(self.columns)?;
        factors.get(start..start.checked_add(self.columns)?)
    }
}

/// Returns the weight with each block multiplied by its factor. `None` if the weight is too large, if a product loses digits, or if a
/// product is so large or small that a result might lose digits ([`Peak`]).
pub(super) fn scaled(budget: &Budget, weight: &Tensor, blocks: Blocks, factors: &[f64]) -> Option<Tensor> {
    if !has_arithmetic(weight.dtype()) {
        return None;
    }
    budget.take_bytes(weight.byte_len()).ok()?;
    budget.take_work(weight.len() as u64).ok()?;
    if Tensor::may_be_deferred(weight.dtype(), weight.shape()) {
        return dispatch_numeric!(weight.dtype(), T => deferred::<T>(weight, blocks, factors), else => None);
    }
    dispatch_numeric!(weight.dtype(), T => typed::<T>(weight, blocks, factors), else => None)
}

fn typed<T: Number>(weight: &Tensor, blocks: Blocks, factors: &[f64]) -> Option<Tensor> {
    let values = weight.elements::<T>()?;
    let mut products: Vec<T> = Vec::with_capacity(values.len());
    let mut peaks: Vec<Peak> =
        factors.iter().map(|&factor| Peak::new(weight.dtype(), factor)).collect::<Option<_>>()?;
    let width = blocks.columns.checked_mul(blocks.inner)?.max(1);
    for (row, values) in values.chunks(width).enumerate() {
        let start = (row / blocks.rows.max(1)).checked_mul(blocks.columns)?;
        let peaks = peaks.get_mut(start..start.checked_add(blocks.columns)?)?;
        let factors = blocks.row(factors, row)?;
        for ((values, factor), peak) in values.chunks(blocks.inner.max(1)).zip(factors).zip(peaks) {
            for value in values {
                let product = T::from_f64(value.to_f64() * factor)?;
                if !product.to_f64().is_finite() || !peak.note(value.to_f64()) {
                    return None;
                }
                products.push(product);
            }
        }
    }
    if !peaks.iter().all(Peak::has_room) {
        return None;
    }
    Tensor::from_vec(weight.shape(), products).ok()
}

/// Scales a large weight in the same way: the products are checked now and computed again when the model is written.
fn deferred<T: Number>(weight: &Tensor, blocks: Blocks, factors: &[f64]) -> Option<Tensor> {
    let recipe = Products::<T>::new(weight, blocks, factors)?;
    let fits = match T::DTYPE {
        DType::Double => recipe.fits::<f64>(),
        _ => recipe.fits::<f32>(),
    };
    fits.filter(|fits| *fits).and_then(|_| Tensor::deferred(weight.dtype(), weight.shape(), Box::new(recipe)).ok())
}

/// The bounds of the weights of each channel, in a type that represents all weights.
struct Extents<R> {
    /// The largest magnitude; 0 if all are 0.
    largest: Vec<R>,
    /// The least magnitude that is a normal number of the weights' type; infinite if there is none.
    least: Vec<R>,
    /// `true` if all weights are finite.
    is_finite: bool,
    /// The smallest normal number.
    smallest: R,
}

/// The channels of consecutive weights.
#[derive(Clone, Copy)]
enum Channels {
    /// All weights belong to this channel.
    One(usize),
    /// Each weight belongs to the next channel, from this one on.
    From(usize),
}

impl<R: Number> Extents<R> {
    fn none(channels: usize, smallest: f64) -> Option<Self> {
        let (none, infinite) = (vec![R::zero(); channels], vec![R::from_f64(f64::INFINITY)?; channels]);
        Some(Extents { largest: none, least: infinite, is_finite: true, smallest: R::from_f64(smallest)? })
    }

    /// Updates the largest and the least magnitude with another weight; NaN is ignored.
    fn with(&self, (largest, least): (R, R), size: R) -> (R, R) {
        let largest = if size > largest { size } else { largest };
        let is_less = size >= self.smallest && size < least;
        (largest, if is_less { size } else { least })
    }

    fn note(&mut self, weights: &[R], channels: Channels) -> Option<()> {
        let mut is_finite = true;
        match channels {
            Channels::From(first) => {
                let range = first..first.checked_add(weights.len())?;
                let (mut largest, mut least) = (std::mem::take(&mut self.largest), std::mem::take(&mut self.least));
                let each = largest.get_mut(range.clone())?.iter_mut().zip(least.get_mut(range)?);
                for (weight, (largest, least)) in weights.iter().zip(each) {
                    let size = weight.abs();
                    is_finite &= size.sub(size) == R::zero();
                    (*largest, *least) = self.with((*largest, *least), size);
                }
                (self.largest, self.least) = (largest, least);
            }
            Channels::One(channel) => {
                // Processes several weights at a time, so that the compiler vectorizes the loop.
                const LANES: usize = 8;
                let ends = (*self.largest.get(channel)?, *self.least.get(channel)?);
                let mut lanes = [ends; LANES];
                let (blocks, rest) = weights.as_chunks::<LANES>();
                for block in blocks {
                    for (lane, weight) in lanes.iter_mut().zip(block) {
                        let size = weight.abs();
                        is_finite &= size.sub(size) == R::zero();
                        *lane = self.with(*lane, size);
                    }
                }
                for (lane, weight) in lanes.iter_mut().zip(rest) {
                    let size = weight.abs();
                    is_finite &= size.sub(size) == R::zero();
                    *lane = self.with(*lane, size);
                }
                let ends = lanes.into_iter().fold(ends, |ends, lane| self.joined(ends, lane));
                (*self.largest.get_mut(channel)?, *self.least.get_mut(channel)?) = ends;
            }
        }
        self.is_finite &= is_finite;
        Some(())
    }

    fn joined(&self, a: (R, R), b: (R, R)) -> (R, R) {
        (if b.0 > a.0 { b.0 } else { a.0 }, if b.1 < a.1 { b.1 } else { a.1 })
    }

    /// Merges the bounds of another part of the same weights.
    fn join(mut self, other: &Self) -> Self {
        for channel in 0..self.largest.len().min(self.least.len()) {
            let ends = |of: &Self| Some((*of.largest.get(channel)?, *of.least.get(channel)?));
            let (Some(mine), Some(others)) = (ends(&self), ends(other)) else { continue };
            let (largest, least) = self.joined(mine, others);
            self.largest.get_mut(channel).into_iter().for_each(|mine| *mine = largest);
            self.least.get_mut(channel).into_iter().for_each(|mine| *mine = least);
        }
        self.is_finite &= other.is_finite;
        self
    }
}

/// The products of a weight and the factors of its blocks.
struct Products<T> {
    weight: Tensor,
    blocks: Blocks,
    factors: Vec<f64>,
    elements: PhantomData<fn() -> T>,
}

impl<T: Number> Products<T> {
    /// The number of elements that are read at a time.
    const PIECE: usize = 64 << 10;

    /// Returns `None` if a block has no factor.
    fn new(weight: &Tensor, blocks: Blocks, factors: &[f64]) -> Option<Self> {
        let width = blocks.columns.checked_mul(blocks.inner)?;
        let last_row = weight.len().checked_sub(1)?.checked_div(width)?;
        blocks.row(factors, last_row)?;
        Some(Products { weight: weight.for_recipe(), blocks, factors: factors.to_vec(), elements: PhantomData })
    }

    /// Calls `each` with runs of `len` weights from index `first` on, and with their channels.
    fn runs(&self, first: usize, len: usize, mut each: impl FnMut(&[T], Channels) -> Option<()>) -> Option<()> {
        let mut values = vec![T::zeroed(); len.min(Self::PIECE)];
        let (mut at, end) = (first, first.checked_add(len)?.min(self.weight.len()));
        let Blocks { inner, columns, rows } = self.blocks;
        while at < end {
            let values = values.get_mut(..(end - at).min(Self::PIECE))?;
            read_elements(&self.weight, at, values)?;
            let mut rest = &*values;
            while !rest.is_empty() {
                let block = at.checked_div(inner)?;
                let (row, column) = (block / columns.max(1), block % columns.max(1));
                let channel = (row / rows.max(1)).checked_mul(columns)?.checked_add(column)?;
                let (most, channels) = match inner {
                    1 => (columns - column, Channels::From(channel)),
                    _ => (inner - at % inner, Channels::One(channel)),
                };
                let (run, tail) = rest.split_at(most.min(rest.len()));
                each(run, channels)?;
                at += run.len();
                rest = tail;
            }
        }
        Some(())
    }

    /// Returns `true` if the products are as precise as the weights, and not so large or small that a result might lose digits. `R`
    /// represents all weights.
    ///
    /// A product grows with the weight, rounded or not. So the largest weight of a channel decides if some product is too large, and the
    /// least normal one decides if some product has lost digits.
    fn fits<R: Number>(&self) -> Option<bool> {
        let smallest = Peak::smallest(T::DTYPE)?;
        let begins: Vec<usize> = (0..self.weight.len()).step_by(Self::PIECE).collect();
        let parts = begins.chunks(begins.len().div_ceil(threads::count()).max(1));
        let extents = threads::map(parts, |begins| {
            let mut extents = Extents::<R>::none(self.factors.len(), smallest)?;
            let mut wide = Vec::new();
            for &begin in begins {
                self.runs(begin, Self::PIECE, |weights, channels| {
                    extents.note(widened(weights, &mut wide)?, channels)
                })?;
            }
            Some(extents)
        });
        let extents =
            extents.into_iter().collect::<Option<Vec<_>>>()?.into_iter().reduce(|all, some| all.join(&some))?;
        let fits = |((factor, largest), least): ((&f64, R), R)| {
            let (mut peak, largest, least) = (Peak::new(T::DTYPE, *factor)?, largest.to_f64(), least.to_f64());
            let product = T::from_f64(largest * factor)?.to_f64();
            let keeps = peak.note(largest) && (least.is_infinite() || peak.note(least));
            Some(factor.is_finite() && product.is_finite() && keeps && peak.has_room())
        };
        let channels = self.factors.iter().zip(extents.largest).zip(extents.least);
        let all = channels.map(fits).collect::<Option<Vec<_>>>()?;
        Some(extents.is_finite && all.into_iter().all(|fits| fits))
    }
}

/// Reads the elements of a tensor from index `first` on.
fn read_elements<T: Number>(tensor: &Tensor, first: usize, out: &mut [T]) -> Option<()> {
    tensor.read(first.checked_mul(size_of::<T>())?, bytemuck::cast_slice_mut(out));
    if cfg!(target_endian = "big") {
        bytemuck::cast_slice_mut::<T, u8>(out).chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    }
    Some(())
}

/// Returns weights in a type that represents all of them: their own, or `float` for those of 16 bits.
fn widened<'w, T: Number, R: Number>(weights: &'w [T], wide: &'w mut Vec<R>) -> Option<&'w [R]> {
    if T::DTYPE == R::DTYPE {
        return bytemuck::try_cast_slice(weights).ok();
    }
    wide.clear();
    wide.resize(weights.len(), R::zero());
    let floats: &mut [f32] = bytemuck::try_cast_slice_mut(wide).ok()?;
    match T::DTYPE {
        DType::Float16 => bytemuck::try_cast_slice::<T, f16>(weights).ok()?.convert_to_f32_slice(floats),
        DType::Bfloat16 => bytemuck::try_cast_slice::<T, bf16>(weights).ok()?.convert_to_f32_slice(floats),
        _ => return None,
    }
    Some(wide)
}

impl<T: Number> Recipe for Products<T> {
    fn depth(&self) -> usize {
        self.weight.depth().saturating_add(1)
    }

    fn fill(&self, first: usize, out: &mut [u8]) {
        let len = out.len() / size_of::<T>();
        let mut out = out;
        // Every product has been checked, and every block has a factor.
        let _ = self.runs(first, len, |weights, channels| {
            let mut products = weights.to_vec();
            let times =
                |weight: &mut T, factor: f64| *weight = T::from_f64(weight.to_f64() * factor).unwrap_or(*weight);
            match channels {
                Channels::One(channel) => {
                    let factor = *self.factors.get(channel)?;
                    products.iter_mut().for_each(|weight| times(weight, factor));
                }
                Channels::From(first) => {
                    let factors = self.factors.get(first..)?;
                    products.iter_mut().zip(factors).for_each(|(weight, factor)| times(weight, *factor));
                }
            }
            if cfg!(target_endian = "big") {
                bytemuck::cast_slice_mut::<T, u8>(&mut products)
                    .chunks_exact_mut(size_of::<T>())
                    .for_each(<[u8]>::reverse);
            }
            let (now, rest) = std::mem::take(&mut out).split_at_mut_checked(size_of_val(weights))?;
            now.copy_from_slice(bytemuck::cast_slice(&products));
            out = rest;
            Some(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DEEPEST;

    /// A weight of irregular numbers of ordinary size.
    fn weight(dtype: DType, shape: &[usize]) -> Tensor {
        let len = product(shape).unwrap();
        let number = |n: usize| (n.wrapping_mul(2_654_435_761) % 1000) as f64 / 100.0 - 5.0;
        let values: Vec<f64> = (0..len).map(number).collect();
        super::super::rounded(dtype, shape, &values).unwrap()
    }

    fn both(weight: &Tensor, blocks: Blocks, factors: &[f64]) -> [Option<Tensor>; 2] {
        dispatch_numeric!(weight.dtype(), T => [
            typed::<T>(weight, blocks, factors),
            deferred::<T>(weight, blocks, factors),
        ], else => [None, None])
    }

    #[test]
    fn deferred_products_equal_immediate_ones() {
        let factors = |count: usize| (0..count).map(|n| 0.5 + n as f64 / 64.0).collect::<Vec<f64>>();
        for dtype in [DType::Float, DType::Double, DType::Float16, DType::Bfloat16] {
            let shape = [6, 10, 3, 37];
            let weight = weight(dtype, &shape);
            let cases = [
                (Blocks::along(&shape, 0).unwrap(), 6),
                (Blocks::along(&shape, 1).unwrap(), 10),
                (Blocks::along(&shape, 3).unwrap(), 37),
                (Blocks::whole(&shape).unwrap(), 1),
                (Blocks::grouped(&shape, 3).unwrap(), 30),
            ];
            for (blocks, count) in cases {
                let [now, later] = both(&weight, blocks, &factors(count)).map(Option::unwrap);
                assert!(later.is_deferred() && !later.is_made());
                assert!(now.same(&later) && later.same(&now));
                assert_eq!(now.hash_sample(), later.hash_sample());
                assert!(later.uniform().is_none());
                // Reads parts at aligned and unaligned offsets.
                let mut part = vec![0; 1001];
                for at in [0, 1, 7, 4096, now.byte_len() - 1001] {
                    later.read(at, &mut part);
                    assert!(now.bytes()[at..at + 1001] == part);
                }
                assert!(!later.is_made());
                let factors = factors(count);
                let [now_again, _] = both(&now, blocks, &factors).map(Option::unwrap);
                let later_again = dispatch_numeric!(dtype, T => deferred::<T>(&later, blocks, &factors), else => None);
                assert!(now_again.same(&later_again.unwrap()));
                assert!(!later.is_made());
                assert_eq!(now.bytes(), later.bytes());
                assert!(later.is_made());
                // Too few factors, and factors that lose digits.
                assert!(both(&weight, blocks, &factors[1..]).iter().all(Option::is_none));
                assert!(both(&weight, blocks, &vec![1e-300; count]).iter().all(Option::is_none));
                assert!(both(&weight, blocks, &vec![1e300; count]).iter().all(Option::is_none));
            }
        }
    }

    #[test]
    fn repeated_scaling_does_not_recurse() {
        let mut scaled = weight(DType::Float, &[600, 500]);
        let blocks = Blocks::along(scaled.shape(), 1).unwrap();
        let mut now = scaled.clone();
        for _ in 0..12 {
            scaled = super::scaled(&Budget::default(), &scaled, blocks, &[1.01; 500]).unwrap();
            now = typed::<f32>(&now, blocks, &[1.01; 500]).unwrap();
            assert!(scaled.depth() <= DEEPEST);
        }
        assert!(scaled.same(&now));
    }
}
