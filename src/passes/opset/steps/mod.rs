//! How nodes are written in a newer version, by what differs: a function for each step that is more than more types or attributes.

pub(super) mod attributes;
pub(super) mod broadcast;
pub(super) mod image;
pub(super) mod normalization;
pub(super) mod operands;
pub(super) mod scan;
pub(super) mod softmax;
