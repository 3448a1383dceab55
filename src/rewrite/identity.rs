//! Operators that hand an operand through unchanged. Law of all rules here: `f(x) = x` for every `x` of the proved shape and
//! type, so `f(x)` may be read as `x`. Between a graph's input (or an initializer, or an outer value) and its output a node is needed
//! all the same: the output's name is its own.

use super::{Place, Rule};
use crate::ir::Edit;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "identity", operators: &["Identity"], exact: true, apply: identity },
    Rule { name: "dropout-inference", operators: &["Dropout"], exact: true, apply: dropout },
    Rule { name: "cast-same-type", operators: &["Cast", "CastLike"], exact: true, apply: cast },
    Rule {
        name: "same-shape",
        operators: &["Reshape", "Expand", "Flatten", "Squeeze", "Unsqueeze", "Tile"],
        exact: true,
        apply: same_shape,
    },
    Rule { name: "transpose-nothing", operators: &["Transpose"], exact: true, apply: transpose },
    Rule { name: "pad-nothing", operators: &["Pad"], exact: true, apply: pad },
    Rule { name: "single-concat", operators: &["Concat", "Sum", "Max", "Min", "Mean"], exact: true, apply: single },
    Rule { name: "single-split", operators: &["Split"], exact: true, apply: split },
];

/// `Identity(x) = x`.
fn identity(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    place.forward_freely(value)
}

/// `Dropout(x) = x` when not training: always before opset 12 (`is_test` aside), from then on unless `training_mode` may be true.
fn dropout(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    if place.this()?.dropout_is_inference()? { place.forward_freely(value) } else { None }
}

/// `Cast(x, to) = x` when `x` has type `to`.
fn cast(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let output = place.output(0)?;
    if place.dtype(value)? != place.dtype(output)? {
        return None;
    }
    place.forward_freely(value)
}

/// A reshape, broadcast or repetition to the shape `x` has is `x`: all of them keep the elements in order and, when the number of
/// elements is the same, add none.
fn same_shape(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let output = place.output(0)?;
    if !place.same_shape(value, output) {
        return None;
    }
    place.forward_freely(value)
}

/// `Transpose(x, perm) = x` where `perm` moves nothing.
fn transpose(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let perm = place.this()?.permutation(place.shape(value)?.len())?;
    if perm.is_sorted() { place.forward_freely(value) } else { None }
}

/// `Pad(x, 0) = x`.
fn pad(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let pads = place.this()?.pad_numbers()?;
    if pads.iter().any(|&pad| pad != 0) || !place.same_shape(value, place.output(0)?) {
        return None;
    }
    place.forward_freely(value)
}

/// A concatenation, sum, maximum, minimum or mean of one operand is that operand.
fn single(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    if node.inputs().len() != 1 {
        return None;
    }
    let value = node.input(0)?;
    place.forward_freely(value)
}

/// A split into one piece is the whole.
fn split(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let value = node.input(0)?;
    if node.outputs().len() != 1 || !place.same_shape(value, place.output(0)?) {
        return None;
    }
    place.forward_freely(value)
}
