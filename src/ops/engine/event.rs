//! Events that inference reports about nodes.

use crate::ir::NodeId;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// The node violates the standard.
    Invalid,
    /// The facts of its results are incomplete.
    Undetermined,
    /// Runtimes and the standard disagree about its results.
    Disputed,
    /// Its operands are constant, but it is not evaluated.
    Declined,
    /// The declared type contradicts the proved one.
    FalseClaim,
    /// The written type rests on a declared type of the file.
    Claimed,
    /// An output keeps a declared dim whose text differs from the proved dim.
    Declared,
    /// A name is written for a dim whose expression is long.
    NamedSize,
    /// The passes were stopped before the fixed point.
    Stopped,
    /// A work limit ended an attempt early. The reason contains the limit.
    Limited,
}

/// An event of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The node.
    pub node: NodeId,
    /// The kind.
    pub kind: EventKind,
    /// The reason as text.
    pub reason: String,
}
