//! The parameters and the state of searches.

use super::movement::Movement;
use crate::dim::Dim;
use crate::index_map::form::{IndexMap, Shape};

/// The movements that a written program may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The operators that no program may contain.
    pub without: Operators,
    /// The most nodes.
    pub nodes: usize,
}

impl Allowed {
    /// The fewest elements that a Gather copies together at least as fast as a Slice or a Tile does.
    pub const FEWEST_IN_ROW: i64 = 8;

    /// All movements, and this many nodes.
    pub fn all(nodes: usize) -> Allowed {
        let (elements, rows, without) = (usize::MAX, usize::MAX, Operators::NONE);
        Allowed { gather: true, negative_step: true, blocks: true, elements, rows, without, nodes }
    }

    /// Returns `true` if a program may contain a node with a result of this shape. A dim that is not a number is large.
    pub(super) fn permits(&self, movement: &Movement, result: &[Dim]) -> bool {
        if self.without.has_movement(movement) {
            return false;
        }
        let Movement::Gather { axis, shape, indices } = movement else { return true };
        let moves_rows = Allowed::moves_rows(*axis, shape.len(), result);
        indices.len() <= if moves_rows { self.rows } else { self.elements }
    }

    /// Returns `true` if a Gather by indices of this rank moves [`FEWEST_IN_ROW`](Allowed::FEWEST_IN_ROW) elements or more together. A dim that is not a
    /// number is large.
    pub fn moves_rows(axis: usize, rank: usize, result: &[Dim]) -> bool {
        let mut row = result.get(axis.saturating_add(rank)..).unwrap_or_default().iter().map(Dim::as_const);
        row.try_fold(1i64, |row, size| row.checked_mul(size?)).is_none_or(|row| row >= Allowed::FEWEST_IN_ROW)
    }
}

/// A set of operators of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// The map of a chain, and the movements that the chain may contain.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::index_map) struct Chain {
    pub map: IndexMap,
    /// The shapes of the sources that hold run-time positions; empty if the map reads none.
    pub positions: Vec<Shape>,
    pub allowed: Allowed,
    pub tables: bool,
}

/// A search for a chain.
pub(in crate::index_map) struct Search {
    /// The length up to which chains were searched for, or the length at which one was found.
    pub length: usize,
    pub found: Option<Vec<Movement>>,
    /// The remaining units of work.
    pub work: usize,
}

impl Default for Search {
    fn default() -> Self {
        Search { length: 0, found: None, work: MOST_WORK }
    }
}

/// The work of one search. A unit is a map that is examined as one node; a table costs one more for each 1024 entries. Chains of
/// four movements that have a shorter program take 3 units, 99 of 100 at most 42; a search in vain takes all.
const MOST_WORK: usize = 48;
