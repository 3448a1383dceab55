//! Runs the operators: their table ([`registry`]), inference over a graph ([`walk`]), evaluation of a graph
//! ([`interpret`]), the operators' input ([`context`]) and output ([`outcome`]), and the operators' support in ONNX
//! Runtime ([`loads`]).

pub(super) mod context;
mod custom;
pub(super) mod declared;
pub(super) mod event;
pub(super) mod interpret;
pub(super) mod loads;
mod nominal;
pub(super) mod outcome;
pub(super) mod registry;
mod signature;
mod signatures;
pub(super) mod walk;
