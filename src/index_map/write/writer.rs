//! The parameters of the search.

use std::cell::Cell;

use crate::dim::Scope;

/// The movements that a written program may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A search for one map.
pub(super) struct Writer<'s> {
    pub scope: &'s Scope,
    pub allowed: &'s Allowed,
    /// Whether tables may be written as Gather.
    pub tables: bool,
    /// The number of maps that may still be compared with one node.
    pub left: &'s Cell<usize>,
}

impl Writer<'_> {
    /// Counts a comparison of a map with one node. `None` after the last one.
    pub fn spend(&self) -> Option<()> {
        self.left.set(self.left.get().checked_sub(1)?);
        Some(())
    }
}
