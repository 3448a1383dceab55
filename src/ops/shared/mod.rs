//! Computations shared by operator families: broadcasting ([`broadcast`]), numbers by element type ([`lane`]), sliding windows
//! ([`window`]), vectorized loops ([`vector`]), and joins of facts ([`join`]).

pub(super) mod broadcast;
pub(super) mod join;
pub(super) mod lane;
pub(super) mod vector;
pub(super) mod window;
