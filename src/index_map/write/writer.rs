//! The parameters of the search.

use std::cell::Cell;

use super::movement::Movement;
use crate::dim::Scope;
use crate::index_map::form::{Atom, Axis, Form, IndexMap, Term};

/// The movements that a written program may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Gather, where Slice, or Concat of a few slices, would do.
    pub gather: bool,
    /// Slices with a negative step.
    pub negative_step: bool,
    /// SpaceToDepth and DepthToSpace.
    pub blocks: bool,
    /// The operators that no program may contain.
    pub without: Operators,
    /// The most nodes.
    pub nodes: usize,
}

impl Allowed {
    /// All movements, and this many nodes.
    pub fn all(nodes: usize) -> Allowed {
        Allowed { gather: true, negative_step: true, blocks: true, without: Operators::NONE, nodes }
    }
}

/// A set of operators of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operators(u16);

/// The operators of programs, by their bit in [`Operators`].
const OPERATORS: [&str; 12] = [
    "Slice",
    "Transpose",
    "Reshape",
    "Expand",
    "Tile",
    "Gather",
    "Pad",
    "Concat",
    "ConstantOfShape",
    "SpaceToDepth",
    "DepthToSpace",
    "Split",
];

impl Operators {
    /// The empty set.
    pub const NONE: Operators = Operators(0);

    /// Returns the set of the operators with a name that fits. No program contains other operators.
    pub fn that(is_in: impl Fn(&str) -> bool) -> Operators {
        let bits = OPERATORS.iter().enumerate().filter(|(_, operator)| is_in(operator)).map(|(at, _)| 1 << at);
        Operators(bits.sum())
    }

    /// Returns `true` if the set has an operator.
    pub fn has(self, operator: &str) -> bool {
        OPERATORS.iter().position(|other| *other == operator).is_some_and(|at| self.0 >> at & 1 == 1)
    }

    /// Returns `true` if the set has the operator of a movement.
    pub(super) fn has_movement(self, movement: &Movement) -> bool {
        self != Operators::NONE && self.has(movement.operator())
    }
}

/// A search for one map.
pub(super) struct Writer<'s> {
    pub scope: &'s Scope,
    pub allowed: &'s Allowed,
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
