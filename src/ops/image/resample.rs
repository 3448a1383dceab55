//! Resampling of a tensor along one axis: copied elements and weighted sums.

use crate::ops::lane::Lane;
use crate::ops::{Decline, EvalCx};
use crate::tensor::threads;
use crate::tensor::{DType, Tensor, product};

/// A tensor viewed along one axis: `outer` times `dim` rows of `inner` elements.
struct Along {
    outer: usize,
    dim: usize,
    inner: usize,
}

impl Along {
    fn of(shape: &[usize], axis: usize) -> Option<Along> {
        let outer = product(shape.get(..axis)?)?;
        Some(Along { outer, dim: *shape.get(axis)?, inner: product(shape.get(axis + 1..)?)? })
    }
}

/// Gathers the elements of a tensor at these positions of an axis.
///
/// # Errors
/// The result is over budget. All positions must be within the axis.
pub(super) fn pick(cx: &EvalCx<'_>, tensor: &Tensor, axis: usize, places: &[usize]) -> Result<Tensor, Decline> {
    let mut shape = tensor.shape().to_vec();
    let along = Along::of(&shape, axis).ok_or_else(|| Decline::invalid("an axis is out of range"))?;
    if let Some(dim) = shape.get_mut(axis) {
        *dim = places.len();
    }
    cx.claim(tensor.dtype(), &shape)?;
    if let Some(strings) = tensor.strings() {
        let mut picked = vec![bytes::Bytes::new(); product(&shape).unwrap_or(0)];
        copy_rows(strings, &mut picked, &along, places);
        return Ok(Tensor::from_strings(&shape, picked)?);
    }
    let width = tensor.dtype().byte_len(1).unwrap_or(1);
    let mut picked = vec![0u8; product(&shape).and_then(|count| count.checked_mul(width)).unwrap_or(0)];
    match width {
        1 => copy_cells::<1>(tensor.bytes(), &mut picked, &along, places),
        2 => copy_cells::<2>(tensor.bytes(), &mut picked, &along, places),
        4 => copy_cells::<4>(tensor.bytes(), &mut picked, &along, places),
        8 => copy_cells::<8>(tensor.bytes(), &mut picked, &along, places),
        _ => copy_cells::<16>(tensor.bytes(), &mut picked, &along, places),
    }
    Ok(Tensor::from_bytes(tensor.dtype(), &shape, picked.into())?)
}

fn copy_cells<const WIDTH: usize>(from: &[u8], to: &mut [u8], along: &Along, places: &[usize]) {
    let (from, to) = (from.as_chunks::<WIDTH>().0, to.as_chunks_mut::<WIDTH>().0);
    copy_rows(from, to, along, places);
}

fn copy_rows<E: Clone>(from: &[E], to: &mut [E], along: &Along, places: &[usize]) {
    let Along { outer, dim, inner } = *along;
    if inner == 0 || dim == 0 || places.is_empty() {
        return;
    }
    let blocks = to.chunks_exact_mut(places.len() * inner).zip(from.chunks_exact(dim * inner)).take(outer);
    for (to, from) in blocks {
        if inner == 1 {
            for (to, &place) in to.iter_mut().zip(places) {
                if let Some(cell) = from.get(place) {
                    to.clone_from(cell);
                }
            }
            continue;
        }
        for (to, &place) in to.chunks_exact_mut(inner).zip(places) {
            if let Some(row) = from.get(place * inner..place * inner + inner) {
                to.clone_from_slice(row);
            }
        }
    }
}

/// For each position of a result along an axis, the contributing elements of the data and their weights.
pub(super) struct Filter {
    /// The number of elements per result element.
    taps: usize,
    /// The elements: `taps` for each position.
    places: Vec<usize>,
    /// The weights of the elements.
    weights: Vec<f64>,
}

/// The weight of an element as a function of its distance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Bump {
    /// `1 − |x|`.
    Linear,
    /// The cubic convolution of Keys with this coefficient.
    Cubic(f64),
}

impl Bump {
    /// Returns the distance from which on the weight is zero.
    fn support(self) -> f64 {
        if self == Bump::Linear { 1.0 } else { 2.0 }
    }

    fn at(self, x: f64) -> f64 {
        let x = x.abs();
        match self {
            Bump::Linear => (1.0 - x).max(0.0),
            Bump::Cubic(a) if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
            Bump::Cubic(a) if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
            Bump::Cubic(_) => 0.0,
        }
    }
}

/// The parameters of a [`Filter`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Design {
    pub bump: Bump,
    /// The factor by which the bump is widened; 1 without antialiasing.
    pub stretch: f64,
    /// `true` if elements outside of the data have weight 0; else the border element repeats.
    pub exclude_outside: bool,
}

impl Filter {
    /// Builds the filter that samples data of `dim` elements at these coordinates.
    ///
    /// # Errors
    /// The filter is over budget, or the weights of some position add up to 0.
    pub(super) fn new(cx: &EvalCx<'_>, design: Design, dim: usize, coordinates: &[f64]) -> Result<Filter, Decline> {
        let before = (-design.bump.support() * design.stretch).floor() + 1.0;
        let taps = 2.0 - 2.0 * before;
        let too_wide = || Decline::OverBudget("the interpolation filter is too wide".into());
        let taps = if taps <= 1e9 { taps as usize } else { return Err(too_wide()) };
        let len = taps.checked_mul(coordinates.len()).ok_or_else(too_wide)?;
        cx.claim(DType::Complex128, &[len])?;
        cx.budget().take_work(len as u64)?;
        let (mut places, mut weights) = (Vec::with_capacity(len), Vec::with_capacity(len));
        let last = dim.saturating_sub(1) as f64;
        for &x in coordinates {
            let first = x.ceil() - 1.0 + before;
            let start = weights.len();
            for tap in 0..taps {
                let at = first + tap as f64;
                let outside = !(0.0..=last).contains(&at);
                places.push(at.clamp(0.0, last) as usize);
                weights.push(if outside && design.exclude_outside {
                    0.0
                } else {
                    design.bump.at((at - x) / design.stretch)
                });
            }
            let own = weights.get_mut(start..).unwrap_or_default();
            let sum: f64 = own.iter().sum();
            // Keys' weights add up to 1; normalize the other ones.
            if sum.abs() < 1e-6 || !sum.is_finite() {
                return Err(Decline::unsupported("the interpolation weights of an element add up to 0"));
            }
            own.iter_mut().for_each(|weight| *weight /= sum);
        }
        Ok(Filter { taps, places, weights })
    }

    /// Returns `true` if the result equals the data.
    pub(super) fn is_identity(&self, dim: usize) -> bool {
        let each = self.places.chunks_exact(self.taps).zip(self.weights.chunks_exact(self.taps));
        let copies = |(own, (places, weights)): (usize, (&[usize], &[f64]))| {
            places.iter().zip(weights).all(|(&place, &weight)| weight == if place == own { 1.0 } else { 0.0 })
        };
        self.places.len() == dim.saturating_mul(self.taps) && each.enumerate().all(copies)
    }

    /// Filters the data along an axis. The caller must have claimed the memory of the result.
    pub(super) fn apply<T: Lane>(
        &self,
        cx: &EvalCx<'_>,
        data: &[T],
        shape: &[usize],
        axis: usize,
    ) -> Result<Vec<T>, Decline> {
        let along = Along::of(shape, axis).ok_or_else(|| Decline::invalid("an axis is out of range"))?;
        let len = self.places.len() / self.taps.max(1);
        let block = len.checked_mul(along.inner);
        let size = block.and_then(|block| block.checked_mul(along.outer));
        let (block, size) =
            block.zip(size).ok_or_else(|| Decline::OverBudget("the result exceeds the address space".into()))?;
        cx.budget().take_work((size as u64).saturating_mul(self.taps as u64))?;
        let mut result = vec![T::default(); size];
        let source = along.dim * along.inner;
        if size == 0 || source == 0 {
            return Ok(result);
        }
        let weights: Vec<T> = self.weights.iter().map(|&weight| T::of(weight)).collect();
        threads::for_each(result.chunks_exact_mut(block).zip(data.chunks_exact(source)), |(to, from)| {
            let each = self.places.chunks_exact(self.taps).zip(weights.chunks_exact(self.taps));
            for (row, (places, weights)) in to.chunks_exact_mut(along.inner).zip(each) {
                for (&place, &weight) in places.iter().zip(weights) {
                    let from = from.get(place * along.inner..).unwrap_or_default();
                    row.iter_mut().zip(from).for_each(|(sum, &value)| *sum = sum.accumulate(weight, value));
                }
            }
        });
        Ok(result)
    }
}
