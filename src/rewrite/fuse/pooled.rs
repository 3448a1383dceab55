//! Pads that a runtime would take into a pool that is not the same with them.
//!
//! ONNX Runtime moves a Pad of zeros into the convolution or pool that alone reads it, whatever the pool does with its own padding: a
//! MaxPool takes it for −∞, and an AveragePool may not count it. Both then give other results, and where a pad is as long as the
//! window, the model does not even load. So no edit puts such a Pad before such a pool. Where an author has put one, it stays.

use super::Place;
use super::pad::is_zero;
use super::range::range;
use crate::ir::{Attribute, Edit, NewNode, Node, ValueId};
use crate::tensor::Tensor;

/// Whether no Pad that an edit makes is one that a runtime would wrongly take into a pool.
pub fn keeps_pads_from_pools(place: &Place<'_>, edit: &Edit) -> bool {
    let mut pads = edit.insert.iter().filter(|node| node.op_type == "Pad");
    pads.all(|pad| {
        // What only this edit's own nodes read is for a pool of its own making.
        let result = pad.outputs.first().copied().flatten().filter(|result| !result.is_placeholder());
        let Some(result) = result.filter(|_| is_taken(place, edit, pad)) else { return true };
        if place.producer(result, "Pad").is_some() {
            return true;
        }
        let pools =
            place.model.users(result).into_iter().filter_map(|(id, slot)| place.model.node(id).filter(|_| slot == 0));
        let mut pools = pools.filter(|node| node.is("AveragePool") || node.is("MaxPool"));
        pools.all(|pool| is_same(place, edit, pad, pool) == Some(true))
    })
}

/// Whether the runtime takes a Pad into what reads it: it pads with a constant 0 along all axes.
fn is_taken(place: &Place<'_>, edit: &Edit, pad: &NewNode) -> bool {
    let mode = pad.attributes.iter().find(|attribute| attribute.name == "mode").map(|mode| &mode.value);
    let is_constant = mode.is_none_or(|mode| matches!(mode, Attribute::String(mode) if mode.as_ref() == b"constant"));
    let fill = pad.inputs.get(2).copied().flatten();
    let fills_zero = fill.is_none_or(|fill| constant(place, edit, fill).is_some_and(is_zero));
    let names_axes = pad.inputs.get(3).copied().flatten().is_some();
    is_constant && fills_zero && !names_axes
}

/// Whether a pool that pads itself gives the same.
fn is_same(place: &Place<'_>, edit: &Edit, pad: &NewNode, pool: &Node) -> Option<bool> {
    let stored = pad.attributes.iter().find(|attribute| attribute.name == "pads").map(|pads| &pads.value);
    let pads = match (stored, pad.inputs.get(1).copied().flatten()) {
        (Some(Attribute::Ints(pads)), _) => pads.clone(),
        (_, Some(pads)) => constant(place, edit, pads)?.to_i64s()?,
        _ => return None,
    };
    let kernel = pool.ints("kernel_shape")?;
    let (begins, ends) = pads.split_at_checked(pads.len() / 2)?;
    let shorter = |pads: &[i64]| pads.iter().skip(2).zip(kernel).all(|(pad, taps)| pad < taps);
    let fits = shorter(begins) && shorter(ends) && !pool.flag("ceil_mode", false)?;
    Some(
        fits && if pool.is("MaxPool") {
            range(place, data(edit, pad)?)?.low >= 0.0
        } else {
            pool.flag("count_include_pad", false)?
        },
    )
}

/// The value that is there already of whose elements a Pad that an edit makes takes some.
fn data(edit: &Edit, pad: &NewNode) -> Option<ValueId> {
    let mut value = pad.inputs.first().copied().flatten()?;
    for node in edit.insert.iter().rev() {
        if value.is_placeholder() && node.outputs.first() == Some(&Some(value)) {
            let moves = node.op_type == "Slice" || node.op_type == "Transpose";
            value = node.inputs.first().copied().flatten().filter(|_| moves)?;
        }
    }
    (!value.is_placeholder()).then_some(value)
}

/// A constant that is there, or that the edit makes.
fn constant<'a>(place: &'a Place<'_>, edit: &'a Edit, value: ValueId) -> Option<&'a Tensor> {
    let made = edit.constants.iter().find(|(made, _)| *made == value).map(|(_, tensor)| tensor);
    made.or_else(|| if value.is_placeholder() { None } else { place.tensor(value) })
}
