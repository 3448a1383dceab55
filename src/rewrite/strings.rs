//! Lookups of strings that an edit would make.
//!
//! ONNX Runtime's Gather takes of each entry the first string alone and leaves the others empty; every other operator moves strings as it
//! moves numbers. So no edit makes a Gather of strings, be it of others that were there.

use super::place::Place;
use crate::ir::{Edit, ValueId};
use crate::tensor::DType;

/// Whether an edit makes no Gather of strings.
pub(super) fn looks_up_no_strings(place: &Place<'_>, edit: &Edit) -> bool {
    let is_string = |value: ValueId| place.dtype(value) == Some(DType::String);
    // Of a value that the edit itself makes it is told by what is made in the end.
    let results = || place.node().is_some_and(|node| node.outputs().iter().flatten().copied().any(is_string));
    let data = edit.insert.iter().filter(|node| node.op_type == "Gather" && node.domain.is_empty());
    let mut data = data.filter_map(|node| node.inputs.first().copied().flatten());
    !data.any(|data| if data.is_placeholder() { results() } else { is_string(data) })
}
