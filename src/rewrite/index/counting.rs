//! Tensors that count.

use crate::ir::ValueId;
use crate::rewrite::place::Place;

pub(super) use crate::ops::traits::Counting;

/// A value as a counting tensor, if it is proved to be one.
pub(super) fn counting(place: &Place<'_>, value: ValueId) -> Option<Counting> {
    Counting::of(place.model, place.facts, place.opset.version(), value)
}
