//! Operators that an older operator set lacks, by those that it has: what the standard's own definitions compute, at all sizes.
//!
//! Nodes are written for the set before the one that brought the operator, and are taken further down as all others. Axes and steps that
//! later versions spell differently are left to [`Build`](crate::rewrite::Build).

pub(super) mod activation;
pub(super) mod attention;
pub(super) mod compare;
pub(super) mod normalization;
