//! Maps that one node computes.

use smallvec::SmallVec;

use super::movement::{AxisRange, Movement, is_same};
use super::writer::Writer;
use crate::dim::{Dim, Scope};
use crate::index_map::block::Affine;
use crate::index_map::construct::BlockMode;
use crate::index_map::form::{Atom, Form, Index, IndexMap, Shape, is_at_most, is_equal, one, over, zero};
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
            let term = index.terms.iter().find(|term| term.atom == crate::index_map::form::Atom::Digit(digit));
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

impl Writer<'_> {
    /// One node for the map.
    pub(super) fn single(&self, map: &IndexMap) -> Option<Movement> {
        self.spend(map)?;
        let scope = self.scope;
        let source = map.sources.first()?;
        if map.is_flat() {
            let reshape = Movement::Reshape(map.result.clone());
            return reshape.check(scope, std::slice::from_ref(source)).is_ok().then_some(reshape);
        }
        let is_right = |movement: &Movement| self.is_written(map, movement);
        let cheap = [expand(scope, map), tile(scope, map)].into_iter().flatten();
        if let Some(found) = cheap.chain(self.blocks(map)).find(&is_right) {
            return Some(found);
        }
        let aligned = Aligned::of(scope, map)?;
        let shapes = [transpose(scope, map, &aligned), self.slice(scope, map, &aligned)];
        shapes.into_iter().flatten().find(&is_right).or_else(|| {
            let is_open = self.allowed.gather || self.tables && has_table(map);
            let axes = if is_open { source.len() } else { 0 };
            (0..axes).filter_map(|axis| gather(scope, map, &aligned, axis)).find(&is_right)
        })
    }

    /// SpaceToDepth or DepthToSpace for the map.
    pub(super) fn block(&self, map: &IndexMap) -> Option<Movement> {
        self.blocks(map).into_iter().find(|movement| self.is_written(map, movement))
    }

    /// Returns `true` if a node is valid on the source and has the map.
    fn is_written(&self, map: &IndexMap, movement: &Movement) -> bool {
        let operands = map.sources.get(..1).unwrap_or_default();
        movement.check(self.scope, operands).is_ok()
            && movement.map(self.scope, operands).is_ok_and(|found| found.equals(self.scope, map))
    }

    fn slice(&self, scope: &Scope, map: &IndexMap, aligned: &Aligned) -> Option<Movement> {
        let source = map.sources.first()?;
        if source.len() != map.result.len() {
            return None;
        }
        let mut ranges = Vec::with_capacity(source.len());
        for (axis, (index, (size, len))) in aligned.axes.iter().zip(source.iter().zip(&map.result)).enumerate() {
            let range = aligned.range_along(scope, index, axis, len)?;
            if range.step == 0 || range.step < 0 && !self.allowed.negative_step {
                return None;
            }
            let is_whole = range.start.is_const(0) && range.step == 1 && is_equal(scope, len, size);
            ranges.push((!is_whole).then_some(range));
        }
        Some(Movement::Slice(ranges))
    }

    fn blocks(&self, map: &IndexMap) -> SmallVec<[Movement; 2]> {
        let scope = self.scope;
        let mut found = SmallVec::new();
        let (Some([_, _, h, w]), [_, _, to_h, to_w]) =
            (map.sources.first().map(Shape::as_slice), map.result.as_slice())
        else {
            return found;
        };
        if !self.allowed.blocks {
            return found;
        }
        let factor = |large: &Dim, small: &Dim| over(scope, large, small)?.as_const().filter(|&factor| factor > 1);
        if let (Some(rows), Some(columns)) = (factor(to_h, h), factor(to_w, w)) {
            if rows == columns {
                found.push(Movement::DepthToSpace(rows, BlockMode::DepthColumnRow));
                found.push(Movement::DepthToSpace(rows, BlockMode::ColumnRowDepth));
            }
        } else if let (Some(rows), Some(columns)) = (factor(h, to_h), factor(w, to_w))
            && rows == columns
        {
            found.push(Movement::SpaceToDepth(rows));
        }
        found
    }
}

/// Whether a table is in the map, so that some Gather is needed.
pub(super) fn has_table(map: &IndexMap) -> bool {
    let Form::Read(read) = &map.core.form else { return false };
    let is_table = |term: &crate::index_map::form::Term| matches!(term.atom, crate::index_map::form::Atom::Table(_));
    read.axes.iter().any(|axis| axis.at.terms.iter().any(is_table))
}

fn expand(scope: &Scope, map: &IndexMap) -> Option<Movement> {
    let source = map.sources.first()?;
    let more = map.result.len().checked_sub(source.len())?;
    let fits = |(a, b): (&Dim, &Dim)| a.is_const(1) || is_equal(scope, a, b);
    let own = map.result.get(more..)?;
    (source.iter().zip(own).all(fits) && !is_same(scope, source, &map.result))
        .then(|| Movement::Expand(map.result.clone()))
}

fn tile(scope: &Scope, map: &IndexMap) -> Option<Movement> {
    let source = map.sources.first()?;
    if source.len() != map.result.len() {
        return None;
    }
    let repeats = source.iter().zip(&map.result).map(|(own, result)| over(scope, result, own));
    let repeats: Shape = repeats.collect::<Option<_>>()?;
    (!repeats.iter().all(|count| count.is_const(1))).then_some(Movement::Tile(repeats))
}

fn transpose(scope: &Scope, map: &IndexMap, aligned: &Aligned) -> Option<Movement> {
    let source = map.sources.first()?;
    if source.len() != map.result.len() {
        return None;
    }
    let mut perm: Vec<Option<usize>> = vec![None; source.len()];
    let mut ones = Vec::new();
    for (axis, index) in aligned.axes.iter().enumerate() {
        match aligned.axis_of(index) {
            Some(to) => {
                if perm.get_mut(to)?.replace(axis).is_some() {
                    return None;
                }
            }
            None if is_equal(scope, source.get(axis)?, &one()) => ones.push(axis),
            None => return None,
        }
    }
    let mut ones = ones.into_iter();
    let perm = perm.into_iter().map(|axis| axis.or_else(|| ones.next())).collect::<Option<Vec<_>>>()?;
    Some(Movement::Transpose(perm))
}

fn gather(scope: &Scope, map: &IndexMap, aligned: &Aligned, axis: usize) -> Option<Movement> {
    let source = map.sources.first()?;
    let more = map.result.len().checked_add(1)?.checked_sub(source.len())?;
    let axes = axis..axis.checked_add(more)?;
    let shape = map.result.get(axes.clone())?.iter().map(Dim::as_const).collect::<Option<Vec<_>>>()?;
    let index = aligned.axes.get(axis)?;
    let digits: SmallVec<[usize; 8]> = aligned.ranges.get(axes)?.iter().flat_map(Clone::clone).collect();
    if !index.digits().iter().all(|digit| digits.contains(digit)) {
        return None;
    }
    let is_from_end = shape.is_empty() && index.terms.is_empty() && index.offset.as_const().is_none();
    let indices = if is_from_end {
        let back = scope.sub(&index.offset, source.get(axis)?).as_const().filter(|&back| back < 0)?;
        vec![back]
    } else {
        index.values_over(&digits, &aligned.digits)?
    };
    Some(Movement::Gather { axis, shape, indices })
}

/// Where the runs of an arithmetic progression with a positive step begin, if a table of at most a few of them is all that is not affine.
pub(super) fn runs_along(scope: &Scope, map: &IndexMap, axis: usize) -> Option<Vec<i64>> {
    let aligned = Aligned::of(scope, map)?;
    let digits: SmallVec<[usize; 8]> = aligned.ranges.get(axis)?.clone().collect();
    let mut own = aligned
        .axes
        .iter()
        .filter(|index| index.terms.iter().any(|term| matches!(term.atom, crate::index_map::form::Atom::Table(_))));
    let index = own.next()?;
    if own.next().is_some() || !index.digits().iter().all(|digit| digits.contains(digit)) {
        return None;
    }
    let values = index.values_over(&digits, &aligned.digits)?;
    let mut starts = vec![0];
    let mut step = None;
    for (at, pair) in (1i64..).zip(values.windows(2)) {
        let [a, b] = pair else { continue };
        let own = b.checked_sub(*a)?;
        if own <= 0 || step.is_some_and(|step| step != own) {
            starts.push(at);
            step = None;
        } else {
            step = Some(own);
        }
    }
    (starts.len() > 1 && starts.len() <= MOST_RUNS).then_some(starts)
}

/// The most slices that are written instead of a Gather.
const MOST_RUNS: usize = 4;
