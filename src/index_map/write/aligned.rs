//! Reads whose axes and digits are those of source and result.

use smallvec::SmallVec;

use super::movement::AxisRange;
use crate::dim::{Dim, Scope};
use crate::index_map::form::{Atom, Form, Index, IndexMap, is_at_most, is_equal, one, over};
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

    /// `start + step · position` on an axis of the result, if the index is that.
    pub fn range_along(&self, scope: &Scope, index: &Index, axis: usize, len: &Dim) -> Option<AxisRange> {
        let mut step = None;
        let mut weight = one();
        for digit in self.ranges.get(axis)?.clone().rev() {
            let size = self.digits.get(digit)?;
            if size.is_const(1) || size.as_const().is_none() && is_at_most(scope, size, &one()) {
                continue;
            }
            let term = index.terms.iter().find(|term| term.atom == Atom::Digit(digit))?;
            let own = over(scope, &term.coefficient, &weight)?.as_const()?;
            if step.is_some_and(|step| step != own) {
                return None;
            }
            step = Some(own);
            weight = scope.mul(&weight, size);
        }
        Some(AxisRange { start: index.offset.clone(), step: step.unwrap_or(1), len: len.clone() })
    }
}
