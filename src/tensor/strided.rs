//! Strided views, which select the elements of one tensor that form another.
#![allow(clippy::indexing_slicing, reason = "axes are checked against the rank first")]

use super::error::TensorError;
use super::index::{Shape, Strides, product, strides_of};
use super::storage::Tensor;

/// A shape over the elements of a tensor: element `(i, j, …)` is the tensor's element `offset + i·strides[0] + j·strides[1] + …`
/// in row-major order. A zero stride repeats (broadcast), a negative one reverses. Nothing is copied until
/// [`gather`](fn@super::gather), which also checks that the view is within the tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StridedView {
    shape: Shape,
    strides: Strides,
    offset: isize,
}

impl StridedView {
    /// Returns the view of the whole tensor.
    pub fn of(tensor: &Tensor) -> StridedView {
        // A tensor's shape has strides, because its number of elements is addressable.
        let strides = strides_of(tensor.shape()).unwrap_or_default();
        StridedView { shape: tensor.shape().into(), strides, offset: 0 }
    }

    /// Returns a view with any shape, strides and offset, all in elements.
    ///
    /// # Errors
    /// The numbers of dims and strides differ.
    pub fn new(shape: &[usize], strides: &[isize], offset: isize) -> Result<StridedView, TensorError> {
        if shape.len() != strides.len() {
            return Err(TensorError::StrideCount { dims: shape.len(), strides: strides.len() });
        }
        Ok(StridedView { shape: shape.into(), strides: strides.into(), offset })
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    pub fn offset(&self) -> isize {
        self.offset
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements; `None` if it is not addressable.
    pub fn len(&self) -> Option<usize> {
        product(&self.shape)
    }

    /// Returns `true` if some dim is 0.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Permutes the axes: axis `k` of the result is axis `permutation[k]` of this view, like Transpose's `perm`.
    ///
    /// # Errors
    /// The list is not a permutation of the axes.
    pub fn permute(&self, permutation: &[usize]) -> Result<StridedView, TensorError> {
        let rank = self.rank();
        let mut seen: Shape = smallvec::SmallVec::from_elem(0, rank);
        for &axis in permutation {
            if let Some(count) = seen.get_mut(axis) {
                *count += 1;
            }
        }
        if permutation.len() != rank || seen.iter().any(|&count| count != 1) {
            return Err(TensorError::Permutation { permutation: permutation.into(), rank });
        }
        let shape = permutation.iter().map(|&axis| self.shape[axis]).collect();
        let strides = permutation.iter().map(|&axis| self.strides[axis]).collect();
        Ok(StridedView { shape, strides, offset: self.offset })
    }

    /// Broadcasts the view to a shape, as in the standard's multidirectional broadcasting: axes align at the end, leading axes are
    /// new, and a dim of 1 repeats.
    ///
    /// # Errors
    /// A dim is neither 1 nor equal to the target's, or the target has fewer axes.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<StridedView, TensorError> {
        let fails = || TensorError::Broadcast { from: self.shape.clone(), to: shape.into() };
        let new = shape.len().checked_sub(self.rank()).ok_or_else(fails)?;
        let mut strides: Strides = smallvec::SmallVec::from_elem(0, new);
        for ((&to, &from), &stride) in shape.iter().skip(new).zip(&self.shape).zip(&self.strides) {
            match from {
                _ if from == to => strides.push(stride),
                1 => strides.push(0),
                _ => return Err(fails()),
            }
        }
        Ok(StridedView { shape: shape.into(), strides, offset: self.offset })
    }

    /// Selects elements `start + k·step` of an axis, for `k` in `0..len`. Does not clamp; an empty selection may have any start.
    ///
    /// # Errors
    /// The axis does not exist, or an element is out of its range.
    pub fn slice_axis(&self, axis: usize, start: usize, step: isize, len: usize) -> Result<StridedView, TensorError> {
        let (&dim, &stride) = self.axis(axis)?;
        let mut view = self.clone();
        view.shape[axis] = len;
        if len == 0 {
            return Ok(view);
        }
        let fails = || TensorError::Slice { start, step, len, dim };
        let last = step.unsigned_abs().checked_mul(len - 1).and_then(|distance| match step < 0 {
            true => start.checked_sub(distance),
            false => start.checked_add(distance),
        });
        if start >= dim || last.is_none_or(|last| last >= dim) {
            return Err(fails());
        }
        if self.is_empty() {
            // Another dim is 0: nothing is addressed, and this dim may exceed all offsets.
            return Ok(view);
        }
        view.offset = self.offset_at(start, stride).ok_or_else(fails)?;
        // The step of a single element is unused and may have any size.
        view.strides[axis] = if len == 1 { 0 } else { stride.checked_mul(step).ok_or_else(fails)? };
        Ok(view)
    }

    /// Selects one index of an axis, and removes the axis.
    ///
    /// # Errors
    /// The axis or the index does not exist.
    pub fn select(&self, axis: usize, index: usize) -> Result<StridedView, TensorError> {
        let mut view = self.slice_axis(axis, index, 1, 1)?;
        view.shape.remove(axis);
        view.strides.remove(axis);
        Ok(view)
    }

    /// Inserts an axis of dim 1 before this one; `axis` may be the rank.
    ///
    /// # Errors
    /// `axis` exceeds the rank.
    pub fn insert_axis(&self, axis: usize) -> Result<StridedView, TensorError> {
        if axis > self.rank() {
            return Err(TensorError::Axis { axis, rank: self.rank() });
        }
        let mut view = self.clone();
        view.shape.insert(axis, 1);
        view.strides.insert(axis, 0);
        Ok(view)
    }

    fn axis(&self, axis: usize) -> Result<(&usize, &isize), TensorError> {
        let fails = TensorError::Axis { axis, rank: self.rank() };
        self.shape.get(axis).zip(self.strides.get(axis)).ok_or(fails)
    }

    fn offset_at(&self, index: usize, stride: isize) -> Option<isize> {
        self.offset.checked_add(isize::try_from(index).ok()?.checked_mul(stride)?)
    }

    /// Returns the first and last position in the tensor that the view reads; `None` if it reads none. Returns an error if a position
    /// exceeds `elements`.
    pub(super) fn reach(&self, elements: usize) -> Result<Option<(usize, usize)>, TensorError> {
        if self.is_empty() {
            return Ok(None);
        }
        let outside = || TensorError::ViewOutOfBounds { elements };
        let (mut low, mut high) = (self.offset, self.offset);
        for (&dim, &stride) in self.shape.iter().zip(&self.strides) {
            if dim == 1 {
                continue;
            }
            let distance =
                isize::try_from(dim - 1).ok().and_then(|last| last.checked_mul(stride)).ok_or_else(outside)?;
            let end = if distance < 0 { &mut low } else { &mut high };
            *end = end.checked_add(distance).ok_or_else(outside)?;
        }
        let (low, high) = (usize::try_from(low).map_err(|_| outside())?, usize::try_from(high).map_err(|_| outside())?);
        if high >= elements { Err(outside()) } else { Ok(Some((low, high))) }
    }

    /// Returns the same elements in the same order with as few axes as possible.
    ///
    /// Removes axes of dim 1, and merges axes `i` and `j` of `x[i][j]` if a step of the outer equals all steps of the inner:
    /// `stride(i) = dim(j)·stride(j)`. Only for views that passed [`reach`](Self::reach) and are not empty.
    pub(super) fn coalesced(&self) -> StridedView {
        let mut shape = Shape::new();
        let mut strides = Strides::new();
        for (&dim, &stride) in self.shape.iter().zip(&self.strides).filter(|&(&dim, _)| dim != 1) {
            if let (Some(outer_dim), Some(outer_stride)) = (shape.last_mut(), strides.last_mut())
                && stride.checked_mul(dim as isize) == Some(*outer_stride)
            {
                *outer_dim *= dim;
                *outer_stride = stride;
            } else {
                shape.push(dim);
                strides.push(stride);
            }
        }
        StridedView { shape, strides, offset: self.offset }
    }
}
