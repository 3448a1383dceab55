//! Operators that hand an operand through unchanged, and operands of a concatenation that hold nothing. Law of all other rules here:
//! `f(x) = x` for every `x` of the proved shape and type, so `f(x)` may be read as `x`. Between a graph's input (or an initializer, or an
//! outer value) and its output an Identity is needed still: the output's name is its own.

use super::build::{Build, rebuilt};
use super::{Place, Rule};
use crate::dim::Dim;
use crate::ir::{Edit, ValueId};
use crate::ops::may_be_misread;
use crate::ops::traits::{IN_ORDER, VARIADIC};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "identity",
        law: "Identity(x) = x",
        sentence: "Rewires consumers of an Identity to its input.",
        premises: &[
            (
                "name-is-free",
                "the result is not a graph output, or the node of the operand can compute it under that name",
            ),
            (
                "not-taken",
                "neither is a sequence, an optional or strings that a Loop or Scan consumes, because these move the value",
            ),
        ],
        exact: true,
        operators: &["Identity"],
        apply: identity,
    },
    Rule {
        name: "dropout-inference",
        law: "Dropout(x; training_mode = false) = x",
        sentence: "Removes Dropout in inference mode.",
        premises: &[
            (
                "inference",
                "the node does not train: is_test is set before operator set 7, training_mode is absent or false \
                    since 12",
            ),
            ("mask-unread", "the mask has no consumer"),
        ],
        exact: true,
        operators: &["Dropout"],
        apply: dropout,
    },
    Rule {
        name: "cast-same-type",
        law: "Cast(x, to) = x where x has the type to",
        sentence: "Removes a Cast to the type of its input.",
        premises: &[("same-type", "the operand is proved to have the type")],
        exact: true,
        operators: &["Cast", "CastLike"],
        apply: cast,
    },
    Rule {
        name: "same-shape",
        law: "f(x) = x where f(x) has the shape of x, for f that reshape, broadcast or repeat",
        sentence: "Removes a Reshape, Expand, Tile, Squeeze, Unsqueeze or Flatten that does not change the shape.",
        premises: &[
            ("same-shape", "operand and result are proved to have the same shape, size for size"),
            (
                "read-right",
                "the operand is not a reduction over negative axes of a tensor that may be empty, for which ONNX Runtime computes another shape",
            ),
        ],
        exact: true,
        operators: IN_ORDER,
        apply: same_shape,
    },
    Rule {
        name: "transpose-nothing",
        law: "Transpose(x; perm = 0, 1, 2, …) = x",
        sentence: "Removes a Transpose with the identity permutation.",
        premises: &[("axes-in-order", "perm leaves every axis where it is")],
        exact: true,
        operators: &["Transpose"],
        apply: transpose,
    },
    Rule {
        name: "pad-nothing",
        law: "Pad(x, 0) = x",
        sentence: "Removes a Pad that adds no element.",
        premises: &[("pads-zero", "every pad is known to be 0")],
        exact: true,
        operators: &["Pad"],
        apply: pad,
    },
    Rule {
        name: "single-concat",
        law: "Concat(x) = Sum(x) = Max(x) = Min(x) = Mean(x) = x",
        sentence: "Removes a variadic operator with a single operand.",
        premises: &[("one-operand", "there is one operand")],
        exact: true,
        operators: VARIADIC,
        apply: single,
    },
    Rule {
        name: "concat-of-nothing",
        law: "Concat(…, p, …) = Concat(…, …) where p has size 0 along the axis",
        sentence: "Removes empty operands of a Concat.",
        premises: &[
            ("nothing", "an operand is proved to have size 0 along the axis"),
            (
                "agrees",
                "along every other axis it is proved to have the dims of the remaining operands, so that the shape of the result does not change",
            ),
        ],
        exact: true,
        operators: &["Concat"],
        apply: concat_of_nothing,
    },
    Rule {
        name: "single-split",
        law: "Split(x) = x where there is one part",
        sentence: "Removes a Split with a single output.",
        premises: &[("one-part", "there is one part")],
        exact: true,
        operators: &["Split"],
        apply: split,
    },
];

/// `Identity(x) = x`.
fn identity(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    place.forward(value)
}

/// `Dropout(x) = x` when not training: always before opset 12 (`is_test` aside), from then on unless `training_mode` may be true.
fn dropout(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    if place.this()?.dropout_is_inference()? { place.forward(value) } else { None }
}

/// `Cast(x, to) = x` when `x` has type `to`.
fn cast(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let output = place.output(0)?;
    if place.dtype(value)? != place.dtype(output)? {
        return None;
    }
    place.forward(value)
}

/// A reshape, broadcast or repetition to the shape `x` has is `x`: all of them keep the elements in order and, when the number of
/// elements is the same, add none.
fn same_shape(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let output = place.output(0)?;
    if !place.same_shape(value, output) || may_be_misread(place.model, place.facts, value) {
        return None;
    }
    place.forward(value)
}

/// `Transpose(x, perm) = x` where `perm` moves nothing.
fn transpose(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let perm = place.this()?.permutation(place.shape(value)?.len())?;
    if perm.is_sorted() { place.forward(value) } else { None }
}

/// `Pad(x, 0) = x`.
fn pad(place: &Place<'_>) -> Option<Edit> {
    let value = place.input(0)?;
    let pads = place.this()?.pad_numbers()?;
    if pads.iter().any(|&pad| pad != 0) || !place.same_shape(value, place.output(0)?) {
        return None;
    }
    place.forward(value)
}

/// A concatenation, sum, maximum, minimum or mean of one operand is that operand.
fn single(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    if node.inputs().len() != 1 {
        return None;
    }
    let value = node.input(0)?;
    place.forward(value)
}

/// A split into one piece is the whole.
fn split(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let value = node.input(0)?;
    if node.outputs().len() != 1 || !place.same_shape(value, place.output(0)?) {
        return None;
    }
    place.forward(value)
}

/// The operands of a Concat that hold something; the first, if none is known to.
fn concat_of_nothing(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let inputs: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>()?;
    let shapes: Vec<&[Dim]> = inputs.iter().map(|&input| place.shape(input)).collect::<Option<_>>()?;
    let axis = place.read(node).axis(shapes.first()?.len())?;
    let holds_nothing = |shape: &[Dim]| shape.get(axis).is_some_and(|size| size.is_const(0));
    let agree = |a: &[Dim], b: &[Dim]| {
        let mut pairs = a.iter().zip(b).enumerate().filter(|(at, _)| *at != axis);
        a.len() == b.len() && pairs.all(|(_, (a, b))| place.scope().eq(a, b).is_yes())
    };
    let is_left = |shape: &[Dim]| !holds_nothing(shape);
    let first = shapes.iter().position(|shape| is_left(shape)).unwrap_or(0);
    let goes = |at: usize| {
        let shape = shapes.get(at).copied().unwrap_or_default();
        at != first && holds_nothing(shape) && shapes.get(first).is_some_and(|left| agree(shape, left))
    };
    let left: Vec<ValueId> = (0..).zip(&inputs).filter(|(at, _)| !goes(*at)).map(|(_, &input)| input).collect();
    match left.as_slice() {
        [one] => return place.forward(*one),
        _ if left.len() == inputs.len() => return None,
        _ => {}
    }
    place.instead(place.edit()?, rebuilt(node, Build::concat(left, axis)))
}
