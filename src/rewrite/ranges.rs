//! Lookups by a Range that an edit would make.
//!
//! ONNX Runtime makes a Slice of a Gather whose indices are a Range that nothing else reads, with the numbers of the Range for its bounds
//! (GatherToSliceFusion). Below 0 these mean something else: `Range(n − 1, −1, −1)` counts down to 0, and a Slice from `n − 1` to `−1` is
//! empty. So no edit lets a Gather read a Range that is not proved to begin and to end at 0 or above.

use super::place::Place;
use crate::dim::Dim;
use crate::ir::{Edit, ValueId};

/// Whether an edit lets no Gather read a Range that may begin or end below 0, unless it read that one before.
pub(super) fn looks_up_by_no_negative_range(place: &Place<'_>, edit: &Edit) -> bool {
    let model = place.model;
    let looks_up =
        |&(id, slot, _): &(_, usize, ValueId)| slot == 1 && model.node(id).is_some_and(|node| node.is("Gather"));
    let inserted = edit.insert.iter().filter(|node| node.op_type == "Gather" && node.domain.is_empty());
    let inserted = inserted.filter_map(|node| node.inputs.get(1).copied().flatten());
    let mut indices = edit.changed_operands(model).filter(looks_up).map(|(.., new)| new).chain(inserted);
    indices
        .all(|index| range(place, edit, index).is_none_or(|bounds| bounds.iter().all(|&at| may_bound(place, edit, at))))
}

/// Where a Range that computes the value begins and ends, be it there or made by the edit.
fn range<'a>(place: &Place<'a>, edit: &'a Edit, value: ValueId) -> Option<&'a [Option<ValueId>]> {
    let inputs = match edit.insert.iter().find(|node| node.outputs.contains(&Some(value))) {
        Some(node) => Some(&node.inputs[..]).filter(|_| node.op_type == "Range" && node.domain.is_empty()),
        None if value.is_placeholder() => None,
        None => place.producer(value, "Range").map(|(_, node)| node.inputs()),
    };
    inputs?.get(..2)
}

/// Whether a number is proved not to be negative.
fn may_bound(place: &Place<'_>, edit: &Edit, number: Option<ValueId>) -> bool {
    let Some(number) = number else { return false };
    if let Some((_, tensor)) = edit.constants.iter().find(|(own, _)| *own == number) {
        return tensor.every_i64(|at| at >= 0) == Some(true);
    }
    let known = if number.is_placeholder() { None } else { place.fact(number).and_then(crate::ir::Fact::ints) };
    known.is_some_and(|held| held.iter().all(|at| place.scope().ge(at, &Dim::constant(0)).is_yes()))
}
