//! Writes nodes in a newer version: one function for each step that changes more than types or attributes.

pub(super) mod attributes;
pub(super) mod broadcast;
pub(super) mod image;
pub(super) mod normalization;
pub(super) mod operands;
pub(super) mod scan;
pub(super) mod softmax;
