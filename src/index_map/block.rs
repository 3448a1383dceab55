//! Constructors of lookups and assignments at affine positions.

use super::construct::{Builder, Selected};
use super::form::{Atom, Index, IndexMap, Shape, is_at_most, minus, number, one, plus, times, zero};
use super::refine::holds;
use super::undecided::Undecided;
use crate::dim::{Dim, Scope};

/// An index on one axis of the source: `offset + Σ coefficient · position` over axes of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The index at the first position of all axes.
    pub offset: Dim,
    /// An axis of the result, and the coefficient of its position.
    pub terms: Vec<(usize, Dim)>,
}

impl IndexMap {
    /// A lookup by affine indices, one for each axis of the source.
    ///
    /// # Errors
    /// An index is not proved to lie on its axis, or the rank is over the limit.
    pub fn affine(scope: &Scope, source: &[Dim], result: &[Dim], indices: &[Affine]) -> Result<IndexMap, Undecided> {
        if source.len() != indices.len() {
            return Err(Undecided::Rank);
        }
        let mut built = Builder::new();
        for size in result {
            built.digit(size);
        }
        for (size, index) in source.iter().zip(indices) {
            let mut at = Index::constant(index.offset.clone());
            for (digit, coefficient) in &index.terms {
                at.add_term(scope, coefficient.clone(), Atom::Digit(*digit));
            }
            let least = at.least(scope, &built.digits).ok_or(Undecided::Symbolic)?;
            let most = at.most(scope, &built.digits).ok_or(Undecided::Symbolic)?;
            let end = minus(scope, size, &one());
            if !holds(scope, &built.digits, &[(&zero(), &least), (&most, &end)]) {
                return Err(Undecided::AtMost(most, end));
            }
            built.axis(size, at);
        }
        built.map(scope, source, result.into())
    }

    /// An assignment to a block: the positions that `block` selects along each axis of the data, in steps of at least 1, are those of the updates, source 1.
    ///
    /// # Errors
    /// A position is not proved to lie on its axis, or there are too many pieces.
    pub fn assign(scope: &Scope, source: &[Dim], block: &[Selected]) -> Result<IndexMap, Undecided> {
        let mut updates = Shape::new();
        for (size, selected) in source.iter().zip(block) {
            match selected {
                Selected::All => updates.push(size.clone()),
                Selected::Range { start, step, len } => {
                    let end = plus(
                        scope,
                        start,
                        &plus(scope, &times(scope, &minus(scope, len, &one()), &number(*step)), &one()),
                    );
                    if *step < 1 || !is_at_most(scope, &zero(), start) || !is_at_most(scope, &end, size) {
                        return Err(Undecided::AtMost(end, size.clone()));
                    }
                    updates.push(len.clone());
                }
                Selected::At(_) | Selected::New => return Err(Undecided::Rank),
            }
        }
        let sources = [Shape::from(source), updates];
        let [data, updates] = &sources;
        let data = IndexMap::identity(scope, data).with_sources(scope, &sources, &[0])?;
        let updates = IndexMap::identity(scope, updates).with_sources(scope, &sources, &[1])?;
        Block { scope, sources: &sources, selected: block }.written(&data, &updates, 0)
    }
}

/// A block of positions that an assignment writes.
struct Block<'b> {
    scope: &'b Scope,
    sources: &'b [Shape; 2],
    selected: &'b [Selected],
}

impl Block<'_> {
    /// The data with the block written along these axes and all after them.
    fn written(&self, data: &IndexMap, updates: &IndexMap, first: usize) -> Result<IndexMap, Undecided> {
        let scope = self.scope;
        let partial = self.selected.iter().enumerate().skip(first).find_map(|(axis, selected)| match selected {
            Selected::Range { start, step, len } => Some((axis, start, *step, len)),
            _ => None,
        });
        let Some((axis, start, step, len)) = partial else { return Ok(updates.reshaped(data.result())) };
        let next = axis.saturating_add(1);
        let size = data.result().get(axis).ok_or(Undecided::Rank)?.clone();
        let after = |from: &Dim| minus(scope, &size, from);
        if step == 1 {
            let end = plus(scope, start, len);
            let inner = self.written(&self.part(data, axis, start, len)?, updates, next)?;
            let parts = [self.part(data, axis, &zero(), start)?, inner, self.part(data, axis, &end, &after(&end))?];
            return self.join(axis, &parts);
        }
        // Periods of `step` positions, the same ones whatever the first position is. The last one may be cut off.
        let position = start.as_const().ok_or(Undecided::Symbolic)?;
        let (skipped, phase) = (position.div_euclid(step), position.rem_euclid(step));
        let front = number(skipped.checked_mul(step).ok_or(Undecided::Overflow)?);
        let end_of = |periods: &Dim| plus(scope, &front, &times(scope, periods, &number(step)));
        let is_whole = is_at_most(scope, &end_of(len), &size);
        let periods = if is_whole { len.clone() } else { minus(scope, len, &one()) };
        let end = end_of(&periods);
        let middle = self.part(data, axis, &front, &minus(scope, &end, &front))?;
        let rows =
            self.periods(&middle, &self.part(updates, axis, &zero(), &periods)?, (axis, step, phase), &periods)?;
        let mut parts = vec![self.part(data, axis, &zero(), &front)?, rows];
        let mut rest = end;
        if !is_whole {
            let last = plus(scope, &rest, &number(phase));
            parts.push(self.part(data, axis, &rest, &number(phase))?);
            let update = self.part(updates, axis, &periods, &one())?;
            parts.push(self.written(&self.part(data, axis, &last, &one())?, &update, next)?);
            rest = plus(scope, &last, &one());
        }
        parts.push(self.part(data, axis, &rest, &after(&rest))?);
        self.join(axis, &parts)
    }

    /// Whole periods, each with one position written.
    fn periods(
        &self,
        data: &IndexMap,
        updates: &IndexMap,
        (axis, step, phase): (usize, i64, i64),
        periods: &Dim,
    ) -> Result<IndexMap, Undecided> {
        let (scope, inner) = (self.scope, axis.saturating_add(1));
        let mut split = data.result().to_vec();
        split.splice(axis..inner, [periods.clone(), number(step)]);
        let rows = data.reshaped(&split);
        let column = self.part(&rows, inner, &number(phase), &one())?;
        let mut narrow = data.result().to_vec();
        *narrow.get_mut(axis).ok_or(Undecided::Rank)? = periods.clone();
        let written = self.written(&column.reshaped(&narrow), updates, inner)?.reshaped(column.result());
        let behind = number(phase.saturating_add(1));
        let rest = minus(scope, &number(step), &behind);
        let parts =
            [self.part(&rows, inner, &zero(), &number(phase))?, written, self.part(&rows, inner, &behind, &rest)?];
        Ok(self.join(inner, &parts)?.reshaped(data.result()))
    }

    fn part(&self, map: &IndexMap, axis: usize, start: &Dim, len: &Dim) -> Result<IndexMap, Undecided> {
        let range = IndexMap::range(self.scope, map.result(), axis, start.clone(), 1, len.clone())?;
        map.then(self.scope, &range)
    }

    fn join(&self, axis: usize, parts: &[IndexMap]) -> Result<IndexMap, Undecided> {
        let is_there = |map: &&IndexMap| map.result().get(axis).is_some_and(|len| !len.is_const(0));
        let parts: Vec<&IndexMap> = parts.iter().filter(is_there).collect();
        let shapes: Vec<Shape> = parts.iter().map(|part| part.result.clone()).collect();
        let map = IndexMap::concat(self.scope, &shapes, axis)?.applied_to(self.scope, &parts)?;
        map.with_sources(self.scope, self.sources, &[0, 1].repeat(parts.len()))
    }
}
