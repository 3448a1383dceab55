//! Shared test support for operators: models of one node ([`single`]), nodes with subgraphs ([`bodies`]), and operators that move
//! data ([`movement`]).

pub(super) mod bodies;
pub(super) mod movement;
pub(super) mod single;
