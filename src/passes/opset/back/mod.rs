//! How nodes are written in an older version, by what differs: a function for each step that is more than fewer types or attributes.
//!
//! New nodes are written in the operator set of the target at once.

pub(super) mod attributes;
pub(super) mod image;
pub(super) mod integers;
pub(super) mod operands;
pub(super) mod pool;
pub(super) mod shape;
pub(super) mod softmax;
