//! What operators of several families compute with: broadcasting ([`broadcast`]), numbers by element type ([`lane`]),
//! windows that slide over axes ([`window`]), loops for wide vectors ([`vector`]), and what holds of several facts at once ([`join`]).

pub(super) mod broadcast;
pub(super) mod join;
pub(super) mod lane;
pub(super) mod vector;
pub(super) mod window;
