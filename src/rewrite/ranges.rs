//! Guard for a Gather whose indices are a Range.
//!
//! ONNX Runtime turns a Gather by a Range without other consumers into a Slice with the same bounds (GatherToSliceFusion). Negative bounds
//! have another meaning there: `Range(n − 1, −1, −1)` counts down to 0, but a Slice from `n − 1` to `−1` is empty. So an edit makes a
//! Gather read a Range only if both bounds are proved to be 0 or above.

use super::place::Place;
use crate::dim::Dim;
use crate::ir::{Edit, ValueId};

/// Returns `true` if the edit makes no Gather read a Range with a bound that may be negative. A Gather that read the Range before is
/// exempt.
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

/// Returns the bounds of the Range that computes the value, in the model or in the edit.
fn range<'a>(place: &Place<'a>, edit: &'a Edit, value: ValueId) -> Option<&'a [Option<ValueId>]> {
    let inputs = match edit.insert.iter().find(|node| node.outputs.contains(&Some(value))) {
        Some(node) => Some(&node.inputs[..]).filter(|_| node.op_type == "Range" && node.domain.is_empty()),
        None if value.is_placeholder() => None,
        None => place.producer(value, "Range").map(|(_, node)| node.inputs()),
    };
    inputs?.get(..2)
}

/// Returns `true` if a bound is proved to be 0 or above.
fn may_bound(place: &Place<'_>, edit: &Edit, number: Option<ValueId>) -> bool {
    let Some(number) = number else { return false };
    if let Some((_, tensor)) = edit.constants.iter().find(|(own, _)| *own == number) {
        return tensor.every_i64(|at| at >= 0) == Some(true);
    }
    let known = if number.is_placeholder() { None } else { place.fact(number).and_then(crate::ir::Fact::ints) };
    known.is_some_and(|held| held.iter().all(|at| place.scope().ge(at, &Dim::constant(0)).is_yes()))
}
