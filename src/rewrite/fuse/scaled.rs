//! Weights multiplied by a factor for each of their channels.

use std::marker::PhantomData;

use rayon::prelude::*;

use crate::ops::Budget;
use crate::tensor::{Number, Recipe, Tensor, dispatch_numeric, product};

use super::has_arithmetic;
use super::magnitude::Peak;

/// How a weight falls into blocks of one factor each: rows of `columns` blocks of `inner` elements. Every `rows` rows the next
/// `columns` factors are in turn; after the last the first ones again.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    inner: usize,
    columns: usize,
    rows: usize,
}

impl Blocks {
    /// A factor for each index along `axis`.
    pub fn along(shape: &[usize], axis: usize) -> Option<Blocks> {
        let inner = product(shape.get(axis.checked_add(1)?..)?)?;
        Some(Blocks { inner, columns: *shape.get(axis)?, rows: usize::MAX })
    }

    /// One factor for all elements.
    pub fn whole(shape: &[usize]) -> Option<Blocks> {
        Some(Blocks { inner: product(shape)?, columns: 1, rows: usize::MAX })
    }

    /// A factor for each index along axis 1, those of one group for its share of the indices along axis 0.
    pub fn grouped(shape: &[usize], groups: usize) -> Option<Blocks> {
        let rows = *shape.first()?;
        let blocks = Blocks::along(shape, 1)?;
        (groups > 0 && rows % groups == 0).then_some(Blocks { rows: rows / groups, ..blocks })
    }

    /// The factors of a row.
    fn row<'f, T>(&self, factors: &'f [T], row: usize) -> Option<&'f [T]> {
        let start = (row / self.rows.max(1)).checked_mul(self.columns)?;
        factors.get(start..start.checked_add(self.columns)?)
    }
}

/// Bytes from which on a weight is multiplied when it is written.
const DEFERRED: usize = 1 << 20;

/// How many times over a weight may be multiplied while it is written.
const DEEPEST: usize = 4;

/// The weight with each block multiplied by its factor. `None` if it is too large, or if the products are not as precise as
/// the weight was, or so large or small that a result might not be ([`Peak`]).
pub(super) fn scaled(budget: &Budget, weight: &Tensor, blocks: Blocks, factors: &[f64]) -> Option<Tensor> {
    if !has_arithmetic(weight.dtype()) {
        return None;
    }
    budget.take_bytes(weight.byte_len()).ok()?;
    budget.take_work(weight.len() as u64).ok()?;
    if weight.byte_len() >= DEFERRED {
        return dispatch_numeric!(weight.dtype(), T => deferred::<T>(weight, blocks, factors), else => None);
    }
    dispatch_numeric!(weight.dtype(), T => typed::<T>(weight, blocks, factors), else => None)
}

fn typed<T: Number>(weight: &Tensor, blocks: Blocks, factors: &[f64]) -> Option<Tensor> {
    let values = weight.elements::<T>()?;
    let mut products: Vec<T> = Vec::with_capacity(values.len());
    let mut peaks: Vec<Peak> = factors.iter().map(|_| Peak::new(weight.dtype())).collect::<Option<_>>()?;
    let width = blocks.columns.checked_mul(blocks.inner)?.max(1);
    for (row, values) in values.chunks(width).enumerate() {
        let start = (row / blocks.rows.max(1)).checked_mul(blocks.columns)?;
        let peaks = peaks.get_mut(start..start.checked_add(blocks.columns)?)?;
        let factors = blocks.row(factors, row)?;
        for ((values, factor), peak) in values.chunks(blocks.inner.max(1)).zip(factors).zip(peaks) {
            for value in values {
                let product = T::from_f64(value.to_f64() * factor)?;
                if !product.to_f64().is_finite() || !peak.note(value.to_f64(), *factor) {
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

/// The same for a large weight: its products are looked at now and computed again when they are written.
fn deferred<T: Number>(weight: &Tensor, blocks: Blocks, factors: &[f64]) -> Option<Tensor> {
    let recipe = Products::<T>::new(weight, blocks, factors)?;
    let none = || factors.iter().map(|_| Peak::new(weight.dtype())).collect::<Option<Vec<Peak>>>();
    let begins: Vec<usize> = (0..weight.len()).step_by(Products::<T>::PIECE).collect();
    let peaks = begins
        .par_chunks(begins.len().div_ceil(rayon::current_num_threads().max(1)).max(1))
        .map(|begins| {
            let mut peaks = none()?;
            begins.iter().try_for_each(|&begin| recipe.look(begin, &mut peaks))?;
            Some(peaks)
        })
        .collect::<Option<Vec<_>>>()?;
    let mut all = none()?;
    for peaks in &peaks {
        all.iter_mut().zip(peaks).for_each(|(all, peak)| all.join(peak));
    }
    if !all.iter().all(Peak::has_room) {
        return None;
    }
    Tensor::deferred(weight.dtype(), weight.shape(), Box::new(recipe)).ok()
}

/// The products of a weight and the factors of its blocks.
struct Products<T> {
    weight: Tensor,
    blocks: Blocks,
    factors: Vec<f64>,
    elements: PhantomData<fn() -> T>,
}

impl<T: Number> Products<T> {
    /// Elements that are read at a time.
    const PIECE: usize = 16 << 10;

    /// `None` if there is no factor for some block.
    fn new(weight: &Tensor, blocks: Blocks, factors: &[f64]) -> Option<Self> {
        let width = blocks.columns.checked_mul(blocks.inner)?;
        let last_row = weight.len().checked_sub(1)?.checked_div(width)?;
        blocks.row(factors, last_row)?;
        // Products of products of products are no deep recursion: those in the middle are computed.
        if weight.depth() >= DEEPEST {
            weight.bytes();
        }
        Some(Products { weight: weight.clone(), blocks, factors: factors.to_vec(), elements: PhantomData })
    }

    /// Calls `each` with the weights from number `first` on, in runs of one channel, and the channel.
    fn runs(&self, first: usize, len: usize, mut each: impl FnMut(&[T], usize) -> Option<()>) -> Option<()> {
        let mut values = vec![T::zeroed(); len.min(Self::PIECE)];
        let (mut at, end) = (first, first.checked_add(len)?.min(self.weight.len()));
        while at < end {
            let values = values.get_mut(..(end - at).min(Self::PIECE))?;
            self.weight.read(at.checked_mul(size_of::<T>())?, bytemuck::cast_slice_mut(values));
            if cfg!(target_endian = "big") {
                bytemuck::cast_slice_mut::<T, u8>(values).chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
            }
            let mut rest = &*values;
            while !rest.is_empty() {
                let block = at.checked_div(self.blocks.inner)?;
                let (row, column) = (block / self.blocks.columns.max(1), block % self.blocks.columns.max(1));
                let channel = (row / self.blocks.rows.max(1)).checked_mul(self.blocks.columns)?.checked_add(column)?;
                let (run, tail) = rest.split_at((self.blocks.inner - at % self.blocks.inner).min(rest.len()));
                each(run, channel)?;
                at += run.len();
                rest = tail;
            }
        }
        Some(())
    }

    /// Takes note of the products of a piece. `None` if one is not as precise as the weight was.
    fn look(&self, first: usize, peaks: &mut [Peak]) -> Option<()> {
        self.runs(first, Self::PIECE, |weights, channel| {
            let (factor, peak) = (*self.factors.get(channel)?, peaks.get_mut(channel)?);
            weights.iter().try_for_each(|weight| {
                let product = T::from_f64(weight.to_f64() * factor)?;
                (product.to_f64().is_finite() && peak.note(weight.to_f64(), factor)).then_some(())
            })
        })
    }
}

impl<T: Number> Recipe for Products<T> {
    fn depth(&self) -> usize {
        self.weight.depth().saturating_add(1)
    }

    fn fill(&self, first: usize, out: &mut [u8]) {
        let len = out.len() / size_of::<T>();
        let mut out = out.chunks_exact_mut(size_of::<T>());
        // All of it has been computed once, and nothing was missing.
        let _ = self.runs(first, len, |weights, channel| {
            let factor = *self.factors.get(channel)?;
            for (weight, out) in weights.iter().zip(&mut out) {
                let mut product = [T::from_f64(weight.to_f64() * factor)?];
                let product: &mut [u8] = bytemuck::cast_slice_mut(&mut product);
                if cfg!(target_endian = "big") {
                    product.reverse();
                }
                out.copy_from_slice(product);
            }
            Some(())
        });
    }
}

/// For each of `count` channels the sum of `weight · of block`, where `place` says of a block, by its number, which channel it
/// adds to and which of `factors` belongs to it.
pub(super) fn sums(
    budget: &Budget,
    weight: &Tensor,
    inner: usize,
    count: usize,
    place: impl Fn(usize) -> Option<(usize, f64)>,
) -> Option<Vec<f64>> {
    budget.take_work(weight.len() as u64).ok()?;
    budget.take_bytes(weight.len().checked_mul(size_of::<f64>())?).ok()?;
    let values = weight.to_f64s()?;
    let mut sums = vec![0.0; count];
    for (block, values) in values.chunks(inner.max(1)).enumerate() {
        let (channel, factor) = place(block)?;
        *sums.get_mut(channel)? += factor * values.iter().sum::<f64>();
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::DType;

    /// A weight without a pattern, whose numbers are of ordinary size.
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
    fn what_is_computed_later_is_the_same() {
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
                // Every part, on an element or not.
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
                // Too few factors, and none that keeps the digits.
                assert!(both(&weight, blocks, &factors[1..]).iter().all(Option::is_none));
                assert!(both(&weight, blocks, &vec![1e-300; count]).iter().all(Option::is_none));
                assert!(both(&weight, blocks, &vec![1e300; count]).iter().all(Option::is_none));
            }
        }
    }

    #[test]
    fn many_times_over_is_no_deep_recursion() {
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
