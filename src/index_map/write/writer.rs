//! The parameters of the search.

use std::cell::Cell;

use super::movement::Movement;
use crate::dim::{Dim, Scope};
use crate::index_map::form::{Atom, Axis, Form, IndexMap, Shape, Term};

/// The movements that a written program may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Gather, where Slice, or Concat of a few slices, would do.
    pub gather: bool,
    /// Slices with a negative step.
    pub negative_step: bool,
    /// SpaceToDepth and DepthToSpace.
    pub blocks: bool,
    /// The most indices of a Gather that moves fewer than [`FEWEST_IN_ROW`](Allowed::FEWEST_IN_ROW) elements together.
    pub elements: usize,
    /// The most indices of a Gather that moves more.
    pub rows: usize,
    /// The most nodes.
    pub nodes: usize,
}

impl Allowed {
    /// The fewest elements that a Gather copies together at least as fast as a Slice or a Tile does.
    pub const FEWEST_IN_ROW: i64 = 8;

    /// All movements, and this many nodes.
    pub fn all(nodes: usize) -> Allowed {
        Allowed { gather: true, negative_step: true, blocks: true, elements: usize::MAX, rows: usize::MAX, nodes }
    }

    /// Returns `true` if a node with a result of this shape is no Gather of more indices than allowed. A dim that is not a number is large.
    pub(super) fn permits(&self, movement: &Movement, result: &[Dim]) -> bool {
        let Movement::Gather { axis, shape, indices } = movement else { return true };
        let mut row = result.get(axis.saturating_add(shape.len())..).unwrap_or_default().iter().map(Dim::as_const);
        let is_row =
            row.try_fold(1i64, |row, size| row.checked_mul(size?)).is_none_or(|row| row >= Allowed::FEWEST_IN_ROW);
        indices.len() <= if is_row { self.rows } else { self.elements }
    }
}

/// A search for one map.
pub(super) struct Writer<'s> {
    pub scope: &'s Scope,
    pub allowed: &'s Allowed,
    /// The shapes of the sources. The map of a chain numbers its data 0, and source `i` with run-time positions `i + 1`.
    pub sources: &'s [Shape],
    /// Whether tables may be written as Gather.
    pub tables: bool,
    /// The remaining units of work.
    pub work: &'s Cell<usize>,
}

/// The work of one search. A unit is a map that is examined as one node; a table costs one more for each [`ENTRIES_PER_UNIT`] entries. Chains of
/// four movements that have a shorter program take 3 units, 99 of 100 at most 42; a search in vain takes all.
pub(super) const MOST_WORK: usize = 48;
const ENTRIES_PER_UNIT: usize = 1024;

impl Writer<'_> {
    /// Takes the work of examining a map; `None` if not enough remains.
    pub fn spend(&self, map: &IndexMap) -> Option<()> {
        let entries_of = |term: &Term| match &term.atom {
            Atom::Table(table) => table.values.len(),
            _ => 0,
        };
        let axes: &[Axis] = if let Form::Read(read) = &map.core.form { &read.axes } else { &[] };
        let entries: usize = axes.iter().flat_map(|axis| &axis.at.terms).map(entries_of).sum();
        let units = (entries / ENTRIES_PER_UNIT).saturating_add(1);
        self.work.set(self.work.get().checked_sub(units)?);
        Some(())
    }
}
