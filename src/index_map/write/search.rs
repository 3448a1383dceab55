//! The parameters and the state of searches.

use super::movement::Movement;
use crate::index_map::form::IndexMap;

/// The movements that a written program may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allowed {
    /// Gather, where Slice, or Concat of a few slices, would do.
    pub gather: bool,
    /// Slices with a negative step.
    pub negative_step: bool,
    /// SpaceToDepth and DepthToSpace.
    pub blocks: bool,
    /// The most nodes.
    pub nodes: usize,
}

impl Allowed {
    /// All movements, and this many nodes.
    pub fn all(nodes: usize) -> Allowed {
        Allowed { gather: true, negative_step: true, blocks: true, nodes }
    }
}

/// The map of a chain, and the movements that the chain may contain.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::index_map) struct Chain {
    pub map: IndexMap,
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
