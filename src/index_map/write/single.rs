//! Maps that one node computes.

use smallvec::SmallVec;

use super::aligned::Aligned;
use super::movement::{Movement, is_same};
use super::writer::Writer;
use crate::dim::{Dim, Scope};
use crate::index_map::construct::BlockMode;
use crate::index_map::form::{Form, IndexMap, Shape, is_equal, one, over};

impl Writer<'_> {
    /// One node for the map.
    pub(super) fn single(&self, map: &IndexMap) -> Option<Movement> {
        self.spend(map)?;
        let scope = self.scope;
        let source = map.sources.first()?;
        if map.is_flat() {
            let reshape = Movement::Reshape(map.result.clone());
            let is_valid = reshape.check(scope, std::slice::from_ref(source)).is_ok();
            return (is_valid && !self.allowed.without.has_movement(&reshape)).then_some(reshape);
        }
        let is_right = |movement: &Movement| self.is_written(map, movement);
        let cheap = [expand(scope, map), tile(scope, map)].into_iter().flatten();
        if let Some(found) = cheap.chain(self.blocks(map)).find(&is_right) {
            return Some(found);
        }
        let is_open = self.allowed.gather || self.tables && has_table(map);
        if source.len() != map.result.len() && (!is_open || source.len() > map.result.len().saturating_add(1)) {
            return None;
        }
        let aligned = self.aligned(map)?;
        let shapes = [transpose(scope, map, &aligned), self.slice(scope, map, &aligned)];
        shapes.into_iter().flatten().find(&is_right).or_else(|| {
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
        self.allowed.permits(movement, &map.result)
            && movement.check(self.scope, operands).is_ok()
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

/// Returns `true` if a map reads positions that are computed at run time.
pub(super) fn has_lookup(map: &IndexMap) -> bool {
    let Form::Read(read) = &map.core.form else { return false };
    let is_lookup = |term: &crate::index_map::form::Term| matches!(term.atom, crate::index_map::form::Atom::Lookup(_));
    read.axes.iter().any(|axis| axis.at.terms.iter().any(is_lookup))
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
    let mut index = index.clone();
    let is_from_end = index.offset.as_const().is_none();
    if is_from_end {
        index.offset = scope.sub(&index.offset, source.get(axis)?);
    }
    let indices = index.values_over(&digits, &aligned.digits)?;
    (!is_from_end || indices.iter().all(|&index| index < 0)).then_some(Movement::Gather { axis, shape, indices })
}

/// Where the runs of an arithmetic progression with a positive step begin, if a table of at most a few of them is all that is not affine.
pub(super) fn runs_along(aligned: &Aligned, axis: usize) -> Option<Vec<i64>> {
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
