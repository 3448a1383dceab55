//! What inference has to tell of single nodes.

use crate::ir::NodeId;

/// How a node fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// The node breaks a rule of the standard.
    Invalid,
    /// Nothing, or not everything, is stated about its results.
    Undetermined,
    /// Runtimes and the standard's text disagree about its results.
    Disputed,
    /// Its operands are all known and yet it is not evaluated.
    Declined,
    /// What the file declares contradicts what is proved.
    FalseClaim,
    /// What is written out rests on what the file declares.
    Claimed,
    /// An output keeps a declared dim whose text differs from the proved size.
    Declared,
    /// A name is written for a size whose expression is long.
    NamedSize,
    /// The passes were stopped before they had nothing left to do.
    Stopped,
    /// A limit on work ended an attempt that might have found more. The reason names the limit.
    Limited,
}

/// Something worth telling about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The node.
    pub node: NodeId,
    /// What kind of thing.
    pub kind: EventKind,
    /// In words.
    pub reason: String,
}
