//! What the tests of operators share: a model of one node ([`single`]), nodes with bodies ([`bodies`]), and operators that move data
//! ([`movement`]).

pub(super) mod bodies;
pub(super) mod movement;
pub(super) mod single;
