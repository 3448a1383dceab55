//! Reads whose axes and digits are those of source and result.

use smallvec::SmallVec;

use super::movement::AxisRange;
use crate::dim::{Dim, Scope};
use crate::index_map::block::Affine;
use crate::index_map::form::{Atom, Form, Index, IndexMap, is_at_most, is_equal, one, over, zero};
use crate::index_map::refine::{Refined, merged};

/// A read whose axes are those of the source, and whose digits are split at the axes of the result.
pub(super) struct Aligned {
    pub digits: SmallVec<[Dim; 6]>,
    /// The position on each axis of the source.
    pub axes: SmallVec<[Index; 6]>,
    /// The digits of each axis of the result.
    pub ranges: SmallVec<[std::ops::Range<usize>; 6]>,
}

impl Aligned {
    pub fn of(scope: &Scope, map: &IndexMap) -> Option<Aligned> {
        let Form::Read(read) = &map.core.form else { return None };
        let source = map.sources.get(read.source)?;
        let mut refined = Refined::new(scope, &map.core.digits, &read.axes).align(source).ok()?;
        let counts = refined.align_digits(&map.result).ok()?;
        let mut from = 0usize;
        let mut range = |count: usize| {
            let range = from..from.saturating_add(count);
            from = range.end;
            range
        };
        let ranges = counts.into_iter().map(&mut range).collect();
        let axes = refined.groups.iter().map(|group| merged(scope, group).at).collect();
        Some(Aligned { digits: refined.digits, axes, ranges })
    }

    /// The same, where digits need not end at the axes of the result.
    pub fn with_source(scope: &Scope, map: &IndexMap) -> Option<Aligned> {
        let Form::Read(read) = &map.core.form else { return None };
        let refined = Refined::new(scope, &map.core.digits, &read.axes).align(map.sources.get(read.source)?).ok()?;
        let axes = refined.groups.iter().map(|group| merged(scope, group).at).collect();
        Some(Aligned { digits: refined.digits, axes, ranges: SmallVec::new() })
    }

    /// Returns `true` if an axis of the source is these digits from `next` on as they are.
    pub fn is_whole(&self, scope: &Scope, (index, size): (&Index, &Dim), next: usize) -> bool {
        let mut weight = one();
        for digit in (next..next.saturating_add(index.terms.len())).rev() {
            let term = index.terms.iter().find(|term| term.atom == Atom::Digit(digit));
            let (Some(term), Some(own)) = (term, self.digits.get(digit)) else { return false };
            if !is_equal(scope, &term.coefficient, &weight) {
                return false;
            }
            weight = scope.mul(&weight, own);
        }
        index.offset.is_const(0) && is_equal(scope, &weight, size)
    }

    /// The axis of the result that has all digits of an index; `None` if there is none.
    pub fn axis_of(&self, index: &Index) -> Option<usize> {
        let digits = index.digits();
        let first = digits.first()?;
        let axis = self.ranges.iter().position(|range| range.contains(first))?;
        digits.iter().all(|digit| self.ranges.get(axis).is_some_and(|range| range.contains(digit))).then_some(axis)
    }

    /// The step of an index along an axis of the result, if it is constant; `Some(None)` if the axis has one position.
    fn step_along(&self, scope: &Scope, index: &Index, axis: usize) -> Option<Option<Dim>> {
        let mut step: Option<Dim> = None;
        let mut weight = one();
        for digit in self.ranges.get(axis)?.clone().rev() {
            let size = self.digits.get(digit)?;
            if size.is_const(1) || size.as_const().is_none() && is_at_most(scope, size, &one()) {
                continue;
            }
            let term = index.terms.iter().find(|term| term.atom == Atom::Digit(digit));
            let own = over(scope, term.map_or(&zero(), |term| &term.coefficient), &weight)?;
            if step.as_ref().is_some_and(|step| !is_equal(scope, step, &own)) {
                return None;
            }
            step = Some(own);
            weight = scope.mul(&weight, size);
        }
        Some(step)
    }

    /// `start + step · position` on an axis of the result, if the index is that.
    pub fn range_along(&self, scope: &Scope, index: &Index, axis: usize, len: &Dim) -> Option<AxisRange> {
        let step = self.step_along(scope, index, axis)?.map_or(Some(1), |step| step.as_const())?;
        Some(AxisRange { start: index.offset.clone(), step, len: len.clone() })
    }
}

impl IndexMap {
    /// Returns the elements of the result as an affine form of their positions, if those of the only source are `numbers`. `None` if the source and the
    /// result have no common digits, or if a step is not constant.
    pub fn affine_result(&self, scope: &Scope, numbers: &Affine) -> Option<Affine> {
        let aligned = Aligned::of(scope, self)?;
        let mut sum = Index::constant(numbers.offset.clone());
        for (axis, step) in &numbers.terms {
            sum.add(scope, aligned.axes.get(*axis)?, step);
        }
        let mut terms = Vec::new();
        for axis in 0..self.result.len() {
            let step = aligned.step_along(scope, &sum, axis)?;
            terms.extend(step.filter(|step| !step.is_const(0)).map(|step| (axis, step)));
        }
        let is_affine = sum.terms.iter().all(|term| matches!(term.atom, Atom::Digit(_)));
        is_affine.then_some(Affine { offset: sum.offset, terms })
    }
}
