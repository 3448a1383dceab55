//! What calls the operators: the table they are found in ([`registry`]), the walk that infers over a graph ([`walk`]), the interpreter
//! that evaluates one ([`interpret`]), what an operator is given ([`context`]), what it answers with ([`outcome`]), and what ONNX
//! Runtime loads of them ([`loads`]).

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
