//! Guard for a Gather of strings.
//!
//! ONNX Runtime's Gather copies only the first string of each entry and leaves the others empty. Every other operator moves strings
//! correctly. So no edit adds a Gather of strings, not even in place of another one.

use super::place::Place;
use crate::ir::{Edit, ValueId};
use crate::tensor::DType;

/// Returns `true` if the edit adds no Gather of strings.
pub(super) fn looks_up_no_strings(place: &Place<'_>, edit: &Edit) -> bool {
    let is_string = |value: ValueId| place.dtype(value) == Some(DType::String);
    // The type of a value that the edit makes is that of the node's result.
    let results = || place.node().is_some_and(|node| node.outputs().iter().flatten().copied().any(is_string));
    let data = edit.insert.iter().filter(|node| node.op_type == "Gather" && node.domain.is_empty());
    let mut data = data.filter_map(|node| node.inputs.first().copied().flatten());
    !data.any(|data| if data.is_placeholder() { results() } else { is_string(data) })
}
