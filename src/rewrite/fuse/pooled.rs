//! Guard: no edit puts a Pad before a pool that runtimes wrongly merge it with.
//!
//! ONNX Runtime merges a Pad with zeros into a convolution or pool that is its only consumer, without regard to the pool's own padding. A
//! MaxPool treats the padding as −∞, and an AveragePool may not count it, so both give wrong results. If a pad is as long as the window,
//! the model does not load. The author's own Pads are kept, but no edit creates this pattern.

use super::pad::is_zero;
use super::range::range;
use crate::ir::{Attribute, Edit, NamedAttribute, Node, Users, ValueId};
use crate::rewrite::place::Place;
use crate::tensor::Tensor;

/// A Pad of the model or of an edit.
#[derive(Clone, Copy)]
struct Pad<'a> {
    attributes: &'a [NamedAttribute],
    inputs: &'a [Option<ValueId>],
}

/// Returns `true` if the edit makes no pool read a Pad that a runtime would wrongly merge, unless the pool read a Pad before.
pub fn keeps_pads_from_pools(place: &Place<'_>, edit: &Edit) -> bool {
    // Values that pools read, and their replacements.
    let made = edit.insert.iter().flat_map(|node| &node.outputs).flatten().map(|&result| (result, result));
    let readers = |value: ValueId| if value.is_placeholder() { Users::new() } else { place.model.users(value) };
    let replaced = made.chain(edit.replace.iter().copied());
    let replaced = replaced.flat_map(|(old, new)| readers(old).into_iter().map(move |(id, slot)| (id, slot, old, new)));
    let rewired =
        edit.rewire.iter().filter_map(|&(id, slot, new)| Some((id, slot, place.model.node(id)?.input(slot)?, new?)));
    replaced.chain(rewired).all(|(id, slot, old, new)| {
        let pool = place.model.node(id).filter(|node| node.is("AveragePool") || node.is("MaxPool"));
        let Some(pool) = pool.filter(|_| slot == 0 && !edit.remove.contains(&id)) else { return true };
        let pad = pad(place, edit, new).filter(|pad| !was_padded(place, old) && is_taken(place, edit, *pad));
        pad.is_none_or(|pad| is_same(place, edit, pad, pool) == Some(true))
    })
}

/// Returns `true` if a Pad computes a value of the model. Nodes that the runtime removes first are skipped.
fn was_padded(place: &Place<'_>, value: ValueId) -> bool {
    let mut value = value;
    while let Some((_, node)) = place.producer_of(value, &["Identity", "Dropout"]) {
        let Some(input) = node.input(0) else { return false };
        value = input;
    }
    place.producer(value, "Pad").is_some()
}

/// Returns the Pad that computes a value.
fn pad<'a>(place: &Place<'a>, edit: &'a Edit, value: ValueId) -> Option<Pad<'a>> {
    if let Some(node) = edit.insert.iter().find(|node| node.outputs.contains(&Some(value))) {
        let pad = node.op_type == "Pad" && node.domain.is_empty();
        return pad.then_some(Pad { attributes: &node.attributes, inputs: &node.inputs });
    }
    let there = (!value.is_placeholder()).then(|| place.producer(value, "Pad")).flatten();
    there.map(|(_, node)| Pad { attributes: &node.attributes, inputs: node.inputs() })
}

impl Pad<'_> {
    fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
    }

    fn input(&self, slot: usize) -> Option<ValueId> {
        self.inputs.get(slot).copied().flatten()
    }
}

/// Returns `true` if the runtime merges a Pad into its consumer: it pads with a constant 0 along all axes.
fn is_taken(place: &Place<'_>, edit: &Edit, pad: Pad<'_>) -> bool {
    let mode = pad.attribute("mode");
    let is_constant = mode.is_none_or(|mode| matches!(mode, Attribute::String(mode) if mode.as_ref() == b"constant"));
    let fills_zero = match (pad.attribute("value"), pad.input(2)) {
        (Some(Attribute::Float(value)), _) => *value == 0.0,
        (_, Some(fill)) => constant(place, edit, fill).is_some_and(is_zero),
        _ => true,
    };
    is_constant && fills_zero && pad.input(3).is_none()
}

/// Returns `true` if a pool with its own padding gives the same result.
fn is_same(place: &Place<'_>, edit: &Edit, pad: Pad<'_>, pool: &Node) -> Option<bool> {
    let pads = match (pad.attribute("pads"), pad.input(1)) {
        (Some(Attribute::Ints(pads)), _) => pads.clone(),
        (_, Some(pads)) => constant(place, edit, pads)?.to_i64s()?,
        _ => return None,
    };
    let kernel = pool.ints("kernel_shape")?;
    let (begins, ends) = pads.split_at_checked(pads.len() / 2)?;
    let shorter = |pads: &[i64]| pads.iter().skip(2).zip(kernel).all(|(pad, taps)| pad < taps);
    let fits = shorter(begins) && shorter(ends) && !pool.flag("ceil_mode", false)?;
    let has_bound = || Some(range(place, data(edit, pad)?)?.low >= 0.0);
    Some(fits && if pool.is("MaxPool") { has_bound()? } else { pool.flag("count_include_pad", false)? })
}

/// Returns the existing value from which the data of a Pad is sliced or transposed.
fn data(edit: &Edit, pad: Pad<'_>) -> Option<ValueId> {
    let mut value = pad.input(0)?;
    for node in edit.insert.iter().rev() {
        if value.is_placeholder() && node.outputs.first() == Some(&Some(value)) {
            let moves = node.op_type == "Slice" || node.op_type == "Transpose";
            value = node.inputs.first().copied().flatten().filter(|_| moves)?;
        }
    }
    (!value.is_placeholder()).then_some(value)
}

/// Returns a constant of the model or of the edit.
fn constant<'a>(place: &'a Place<'_>, edit: &'a Edit, value: ValueId) -> Option<&'a Tensor> {
    let made = edit.constants.iter().find(|(made, _)| *made == value).map(|(_, tensor)| tensor);
    made.or_else(|| if value.is_placeholder() { None } else { place.tensor(value) })
}
