//! Weights multiplied by a factor for each of their channels.

use crate::ops::Budget;
use crate::tensor::{Number, Tensor, dispatch_numeric, product};

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

/// The weight with each block multiplied by its factor. `None` if it is too large, or if the products are not as precise as
/// the weight was, or so large or small that a result might not be ([`Peak`]).
pub(super) fn scaled(budget: &Budget, weight: &Tensor, blocks: Blocks, factors: &[f64]) -> Option<Tensor> {
    if !has_arithmetic(weight.dtype()) {
        return None;
    }
    budget.take_bytes(weight.byte_len()).ok()?;
    budget.take_work(weight.len() as u64).ok()?;
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
