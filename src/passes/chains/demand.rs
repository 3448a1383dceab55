//! A demand: one operand of a node that computes no size, and what would serve there.

use super::row::Row;
use crate::ir::{NodeId, ValueId};

/// An operand of a node that computes no size, which a size node computes.
pub(super) struct Demand {
    pub reader: NodeId,
    pub slot: usize,
    /// What is read now.
    pub value: ValueId,
    /// The position of the reader, or of the node whose subgraph has the reader.
    pub position: usize,
    /// Whether that node is needed even if no size node is left.
    pub is_kept: bool,
    /// The rows that serve, of equally cheap ones the first before the others; if there are none, only what holds the same as `value` does.
    pub rows: Vec<Row>,
}
