//! Reads counting tensors, as such and as the columns of an index tensor.

use crate::ir::ValueId;
use crate::ops::columns_of;
use crate::rewrite::place::Place;

pub(super) use crate::ops::traits::Counting;

/// Returns a value as a counting tensor, if it is proved to be one.
pub(super) fn counting(place: &Place<'_>, value: ValueId) -> Option<Counting> {
    Counting::of(place.model, place.facts, place.opset.version(), value)
}

/// Returns the columns of an index tensor `[…, k]`, each as a counting tensor over the other axes. The tensor is constant, or a Concat of
/// `k` values along the last axis.
pub(super) fn columns(place: &Place<'_>) -> Option<Vec<(Counting, ValueId)>> {
    columns_of(&place.view(place.id)?, 1)
}
