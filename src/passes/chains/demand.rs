//! A demand: one operand of a node that computes no size, and the rows that can replace it.

use super::row::Row;
use crate::ir::{NodeId, ValueId};

/// An operand of a node that computes no size, with a size node as producer.
pub(super) struct Demand {
    pub reader: NodeId,
    pub slot: usize,
    /// The current operand.
    pub value: ValueId,
    /// The position of the reader, or of the node whose subgraph has the reader.
    pub position: usize,
    /// `true` if that node is needed even without any size node.
    pub is_kept: bool,
    /// The rows that can replace it, in order of preference at equal cost. If empty, only an equal value can replace it.
    pub rows: Vec<Row>,
}
