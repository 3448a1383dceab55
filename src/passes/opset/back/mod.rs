//! Writes nodes in an older version: one function for each step that changes more than types or attributes.
//!
//! New nodes are written directly in the target's operator set.

pub(super) mod attributes;
pub(super) mod image;
pub(super) mod integers;
pub(super) mod operands;
pub(super) mod pool;
pub(super) mod shape;
pub(super) mod softmax;
