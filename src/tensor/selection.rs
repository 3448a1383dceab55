//! A strided view of a tensor that is copied when it is read, in parts.
#![allow(
    clippy::indexing_slicing,
    reason = "the view was checked to stay inside the tensor, and parts are of axes that it has"
)]

use super::copy;
use super::deferred::{PIECE, Recipe};
use super::index::{Shape, Strides};
use super::storage::Tensor;
use super::strided::StridedView;

/// The elements of a view.
pub(super) struct Selection {
    source: Tensor,
    /// Coalesced, not empty, within the source.
    view: StridedView,
    /// The bytes of an element.
    width: usize,
    /// The result of [`Recipe::piece`].
    piece: usize,
}

/// The maximum bytes per piece.
const MOST: usize = 4 << 20;

/// The rows that are computed together if the source is contiguous across them: the 4-byte elements in four cache lines.
const ROWS: usize = 64;

/// The maximum ratio of read to needed elements, for a deferred source.
const SPARE: usize = 4;

impl Selection {
    /// Returns a view that passed `reach`, coalesced, with elements of this many whole bytes.
    pub fn new(source: &Tensor, view: StridedView, width: usize) -> Self {
        let turned = view.strides().last().is_some_and(|stride| stride.unsigned_abs() > 1);
        let row = view.shape().last().copied().unwrap_or(1).saturating_mul(width);
        #[allow(clippy::disallowed_methods, reason = "a number of bytes")]
        let piece = if turned { row.saturating_mul(ROWS).clamp(PIECE, MOST) } else { PIECE };
        Selection { source: source.for_recipe(), view, width, piece }
    }

    /// Copies a part of the view, which fills `out`.
    fn copy(&self, part: &StridedView, out: &mut [u8]) {
        let part = part.coalesced();
        if self.source.is_in_memory() {
            return copy::copy(self.source.bytes(), &part, self.width, out);
        }
        if matches!((part.shape(), part.strides()), ([], _) | ([_], [1])) {
            return self.source.read(part.offset() as usize * self.width, out);
        }
        self.copy_runs(&part, out);
    }

    /// Copies a part of a deferred source: reads adjacent elements in one piece, then reorders them.
    fn copy_runs(&self, part: &StridedView, out: &mut [u8]) {
        let (shape, strides) = (part.shape(), part.strides());
        // Axes by decreasing stride; repeated axes are read once.
        let mut axes: Vec<usize> = (0..shape.len()).filter(|&axis| strides[axis] != 0).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(strides[axis].unsigned_abs()));
        // The innermost axes that one read covers.
        let (mut outer, mut span, mut count) = (axes.len(), 1usize, 1usize);
        while let Some(&axis) = outer.checked_sub(1).and_then(|nearest| axes.get(nearest)) {
            let reach = span.saturating_add((shape[axis] - 1).saturating_mul(strides[axis].unsigned_abs()));
            let elements = count.saturating_mul(shape[axis]);
            if reach > elements.saturating_mul(SPARE) {
                break;
            }
            (outer, span, count) = (outer - 1, reach, elements);
        }
        // The offset of a run's lowest element from its first one.
        let backward = |axis: &usize| (shape[*axis] - 1) as isize * strides[*axis].min(0);
        let low: isize = axes[outer..].iter().map(backward).sum();
        let runs: usize = axes[..outer].iter().map(|&axis| shape[axis]).product();
        let mut read = vec![0; runs.saturating_mul(span).saturating_mul(self.width)];
        let mut order: Strides = part.strides().into();
        let mut pitch = span as isize;
        for &axis in axes[..outer].iter().rev() {
            order[axis] = pitch;
            pitch = pitch.saturating_mul(shape[axis] as isize);
        }
        for (run, out) in read.chunks_mut(span.saturating_mul(self.width).max(1)).enumerate() {
            let (mut rest, mut start) = (run, part.offset() + low);
            for &axis in axes[..outer].iter().rev() {
                start += (rest % shape[axis]) as isize * strides[axis];
                rest /= shape[axis];
            }
            self.source.read(start as usize * self.width, out);
        }
        if let Ok(ordered) = StridedView::new(shape, &order, -low) {
            copy::copy(&read, &ordered.coalesced(), self.width, out);
        }
    }
}

impl Recipe for Selection {
    fn depth(&self) -> usize {
        self.source.depth().saturating_add(1)
    }

    fn piece(&self) -> usize {
        self.piece
    }

    /// Elements `first..end` in row-major order form boxes: first the rest of a row, then of the axes around it, then whole ones, and
    /// the reverse at the end.
    fn fill(&self, first: usize, out: &mut [u8]) {
        let dims = self.view.shape();
        let mut inner: Shape = dims.iter().map(|_| 1).collect();
        for axis in (1..dims.len()).rev() {
            inner[axis - 1] = inner[axis] * dims[axis];
        }
        let (mut at, end) = (first, first + out.len() / self.width);
        let mut out = out;
        while at < end {
            // The outermost axis with whole indices to copy.
            let whole = (0..dims.len()).find(|&axis| at.is_multiple_of(inner[axis]) && end - at >= inner[axis]);
            let axis = whole.unwrap_or(dims.len());
            let mut offset = self.view.offset();
            for (fixed, stride) in self.view.strides().iter().enumerate().take(axis.saturating_add(1)) {
                offset += (at / inner[fixed] % dims[fixed]) as isize * stride;
            }
            let (mut shape, mut strides) = (Shape::new(), Strides::new());
            let mut len = 1;
            if let Some(&dim) = dims.get(axis) {
                let count = ((end - at) / inner[axis]).min(dim - at / inner[axis] % dim);
                shape.push(count);
                shape.extend_from_slice(&dims[axis + 1..]);
                strides.extend_from_slice(&self.view.strides()[axis..]);
                len = count * inner[axis];
            }
            let (now, rest) = out.split_at_mut(len * self.width);
            if let Ok(part) = StridedView::new(&shape, &strides, offset) {
                self.copy(&part, now);
            }
            (at, out) = (at + len, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{DType, gather, gather_later};

    /// Returns numbers of a 4-byte type, in memory or deferred.
    fn numbers(shape: &[usize], later: bool) -> Tensor {
        let len: usize = shape.iter().product();
        let here = Tensor::from_vec(shape, (0..len as u32).map(|n| n.wrapping_mul(2_654_435_761)).collect()).unwrap();
        if !later {
            return here;
        }
        // Two reversals.
        let back = |tensor: &Tensor| {
            let view = StridedView::of(tensor).slice_axis(0, shape[0] - 1, -1, shape[0]).unwrap();
            gather_later(tensor, &view).unwrap()
        };
        let there = back(&back(&here));
        assert!(there.unmade() > 0 && there.same(&here));
        there
    }

    #[test]
    fn deferred_copies_equal_immediate_ones() {
        let shape = [12, 5, 70, 181];
        let views: [fn(StridedView) -> StridedView; 8] = [
            |view| view.permute(&[3, 2, 1, 0]).unwrap(),
            |view| view.permute(&[0, 2, 1, 3]).unwrap(),
            |view| view.permute(&[1, 3, 0, 2]).unwrap(),
            |view| view.slice_axis(3, 180, -1, 181).unwrap(),
            |view| {
                view.slice_axis(2, 1, 1, 69)
                    .unwrap()
                    .slice_axis(0, 1, 2, 6)
                    .unwrap()
                    .broadcast_to(&[2, 6, 5, 69, 181])
                    .unwrap()
            },
            |view| view.slice_axis(3, 3, 1, 1).unwrap().broadcast_to(&[12, 5, 70, 200]).unwrap(),
            |view| {
                view.slice_axis(1, 1, 1, 4).unwrap().slice_axis(3, 0, 2, 91).unwrap().permute(&[2, 3, 1, 0]).unwrap()
            },
            |view| view.slice_axis(0, 1, 1, 5).unwrap(),
        ];
        for (number, make) in views.into_iter().enumerate() {
            for from_later in [false, true] {
                let source = numbers(&shape, from_later);
                let view = make(StridedView::of(&source));
                let now = gather(&numbers(&shape, false), &view).unwrap();
                let later = gather_later(&source, &view).unwrap();
                // A contiguous part of a tensor in memory is shared.
                assert_eq!(later.is_deferred(), number < 7 || from_later, "view {number}");
                for (at, len) in [(0, 4), (3, 9), (723, 724), (4, 300_000), (now.byte_len() - 100_001, 100_001)] {
                    let mut part = vec![0; len];
                    later.read(at, &mut part);
                    assert!(part == now.bytes()[at..at + len], "view {number}, from {at}");
                }
                assert!(now.same(&later) && source.unmade() == if from_later { source.byte_len() } else { 0 });
                assert!(!later.is_made());
                assert_eq!(now.bytes(), later.bytes());
            }
        }
    }

    #[test]
    fn small_or_packed_tensors_are_copied_at_once() {
        let small = numbers(&[100, 100], false);
        let view = StridedView::of(&small).permute(&[1, 0]).unwrap();
        assert!(!gather_later(&small, &view).unwrap().is_deferred());
        let packed = Tensor::zeros(DType::Int4, &[2000, 2000]).unwrap();
        let view = StridedView::of(&packed).permute(&[1, 0]).unwrap();
        assert!(!gather_later(&packed, &view).unwrap().is_deferred());
        let empty = numbers(&[1000, 0, 1000], false);
        let view = StridedView::of(&empty).permute(&[2, 1, 0]).unwrap();
        assert_eq!(gather_later(&empty, &view).unwrap().shape(), [1000, 0, 1000]);
    }

    #[test]
    fn repeated_selection_does_not_recurse() {
        let source = numbers(&[600, 501], false);
        let mut turned = source.clone();
        for _ in 0..20 {
            turned = gather_later(&turned, &StridedView::of(&turned).permute(&[1, 0]).unwrap()).unwrap();
            assert!(turned.depth() <= crate::tensor::DEEPEST);
        }
        assert!(turned.same(&source));
    }
}
