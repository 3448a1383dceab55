//! Expands operators that an older operator set lacks into operators that it has, as the standard defines them, at all sizes.
//!
//! New nodes are in the set before the one that introduced the operator. Later levels convert them like all others. [`Build`](crate::rewrite::Build)
//! writes operands that differ between versions.

pub(super) mod activation;
pub(super) mod attention;
pub(super) mod compare;
pub(super) mod normalization;
