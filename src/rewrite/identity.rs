//! Operators that hand an operand through unchanged. Law of all rules here: `f(x) = x` for every `x` of the proved shape and
//! type, so `f(x)` may be read as `x`.

use super::{Place, Rule};
use crate::ir::Edit;
use crate::ops::traits::{IN_ORDER, VARIADIC};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "identity", operators: &["Identity"], exact: true, apply: identity },
    Rule { name: "dropout-inference", operators: &["Dropout"], exact: true, apply: dropout },
    Rule { name: "cast-same-type", operators: &["Cast", "CastLike"], exact: true, apply: cast },
    Rule { name: "same-shape", operators: IN_ORDER, exact: true, apply: same_shape },
    Rule { name: "transpose-nothing", operators: &["Transpose"], exact: true, apply: transpose },
    Rule { name: "pad-nothing", operators: &["Pad"], exact: true, apply: pad },
    Rule { name: "single-concat", operators: VARIADIC, exact: true, apply: single },
    Rule { name: "single-split", operators: &["Split"], exact: true, apply: split },
];

/// `Identity(x) = x`.
fn identity(place: &mut Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    keeps_interface(place, value)?;
    place.forward("identity", value)
}

/// Between a graph's input (or initializer, or an outer value) and its output a node is needed: the output's name is its own.
fn keeps_interface(place: &Place<'_>, value: crate::ir::ValueId) -> Option<()> {
    let graph = place.node()?.graph();
    let output = place.output(0)?;
    if !place.model.is_output(output) && !place.model.value(output).pinned {
        return Some(());
    }
    let producer = place.model.value(value).producer().and_then(|id| place.model.node(id))?;
    let free = producer.graph() == graph && !place.model.is_output(value) && !place.model.value(value).pinned;
    free.then_some(())
}

/// `Dropout(x) = x` when not training: always before opset 12 (`is_test` aside), from then on unless `training_mode` may be true.
fn dropout(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let value = node.input(0)?;
    if place.opset < 7 {
        match node.attribute("is_test") {
            Some(crate::ir::Attribute::Int(test)) if *test != 0 => {}
            _ => return None,
        }
    }
    if let Some(mode) = node.input(2)
        && place.const_ints(mode)? != [0]
    {
        return None;
    }
    keeps_interface(place, value)?;
    place.forward("dropout-inference", value)
}

/// `Cast(x, to) = x` when `x` has type `to`.
fn cast(place: &mut Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let output = place.output(0)?;
    if place.dtype(value)? != place.dtype(output)? {
        return None;
    }
    keeps_interface(place, value)?;
    place.forward("cast-same-type", value)
}

/// A reshape, broadcast or repetition to the shape `x` has is `x`: all of them keep the elements in order and, when the number of
/// elements is the same, add none.
fn same_shape(place: &mut Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let output = place.output(0)?;
    if !place.same_shape(value, output) {
        return None;
    }
    keeps_interface(place, value)?;
    place.forward("same-shape", value)
}

/// `Transpose(x, perm) = x` when `perm` only moves axes of size 1, or nothing, with respect to the others.
fn transpose(place: &mut Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let rank = place.shape(value)?.len();
    let perm: Vec<usize> = match place.node()?.attribute("perm") {
        None => (0..rank).rev().collect(),
        Some(crate::ir::Attribute::Ints(perm)) => {
            perm.iter().map(|&axis| usize::try_from(axis).ok().filter(|&axis| axis < rank)).collect::<Option<_>>()?
        }
        Some(_) => return None,
    };
    if perm.len() != rank || perm.iter().enumerate().any(|(i, &axis)| i != axis) {
        return None;
    }
    keeps_interface(place, value)?;
    place.forward("transpose-nothing", value)
}

/// `Pad(x, 0) = x`.
fn pad(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let value = node.input(0)?;
    let pads = match node.input(1) {
        Some(pads) => place.const_ints(pads)?,
        None => match node.attribute("pads").or_else(|| node.attribute("paddings"))? {
            crate::ir::Attribute::Ints(pads) => pads.clone(),
            _ => return None,
        },
    };
    if pads.iter().any(|&pad| pad != 0) || !place.same_shape(value, place.output(0)?) {
        return None;
    }
    keeps_interface(place, value)?;
    place.forward("pad-nothing", value)
}

/// A concatenation, sum, maximum, minimum or mean of one operand is that operand.
fn single(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    if node.inputs().len() != 1 {
        return None;
    }
    let value = node.input(0)?;
    keeps_interface(place, value)?;
    place.forward("single-concat", value)
}

/// A split into one piece is the whole.
fn split(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let value = node.input(0)?;
    if node.outputs().len() != 1 || !place.same_shape(value, place.output(0)?) {
        return None;
    }
    keeps_interface(place, value)?;
    place.forward("single-split", value)
}
