//! Removes operators that return an operand unchanged, and empty operands of a Concat. Law of all rules in this file: `f(x) = x` for every
//! `x` of the proved shape and type, so consumers of `f(x)` can read `x`. An Identity between an output of a graph and an input, an
//! initializer or an outer value is kept, because the output needs its own name.

use super::build::{Build, rebuilt};
use super::miss::{Miss, ensure, prove};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::dim::Dim;
use crate::ir::{Edit, ValueId};
use crate::ops::may_be_misread;
use crate::ops::traits::{IN_ORDER, VARIADIC};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "identity",
        law: "Identity(x) = Dropout(x) = Transpose(x; perm = 0, 1, …) = Pad(x, 0) = Split(x) = x",
        sentence: "Removes a node that returns the input unchanged: consumers of the output read the input instead.",
        premises: &[
            (
                "name-is-free",
                "the output is not a graph output, or the producer of the input can give its result the name of the output",
            ),
            (
                "not-taken",
                "no node with a subgraph reads the input or the output, if the two are sequences, optionals or string tensors. Runtimes may move these values into the subgraph instead of copying the values",
            ),
            (
                "inference",
                "a Dropout is in inference mode: before operator set 7, is_test is 1; since operator set 12, training_mode is absent or false",
            ),
            ("mask-unread", "the output mask of a Dropout has no consumer"),
            ("axes-in-order", "the permutation of a Transpose maps every axis to itself"),
            ("pads-zero", "every element of the operand pads of a Pad is known to be 0"),
            ("one-part", "a Split has one output"),
        ],
        exact: true,
        operators: &["Identity", "Dropout", "Transpose", "Pad", "Split"],
        apply: identity,
    },
    Rule {
        name: "cast-same-type",
        law: "Cast(x, to) = x where x has the type to",
        sentence: "Removes a Cast to the type of its input.",
        premises: &[("same-type", "the input is proved to have the target type of the Cast")],
        exact: true,
        operators: &["Cast", "CastLike"],
        apply: cast,
    },
    Rule {
        name: "same-shape",
        law: "f(x) = x where f is one of these operators, and f(x) has the shape of x",
        sentence: "Removes a Reshape, Expand, Tile, Squeeze, Unsqueeze or Flatten that does not change the shape.",
        premises: &[
            ("same-shape", "input and output are proved to have the same dims"),
            (
                "read-right",
                "the input is not the result of a reduction over negative axes of a tensor that may be empty, because ONNX Runtime infers a wrong shape for this reduction",
            ),
        ],
        exact: true,
        operators: IN_ORDER,
        apply: same_shape,
    },
    Rule {
        name: "single-concat",
        law: "Concat(x) = Sum(x) = Max(x) = Min(x) = Mean(x) = x",
        sentence: "Removes a variadic operator with a single operand.",
        premises: &[("one-operand", "the node has exactly one operand")],
        exact: true,
        operators: VARIADIC,
        apply: single,
    },
    Rule {
        name: "concat-of-nothing",
        law: "Concat(…, p, …) = Concat(…, …) where p has size 0 along the axis",
        sentence: "Removes empty operands of a Concat.",
        premises: &[
            ("nothing", "the removed operand is proved to have size 0 along the concatenation axis"),
            (
                "agrees",
                "on every other axis, the removed operand is proved to have the dims of the remaining operands, so that the shape of the result does not change",
            ),
        ],
        exact: true,
        operators: &["Concat"],
        apply: concat_of_nothing,
    },
];

/// Removes a node whose parameters make it an identity: `f(x) = x`.
fn identity(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let value = place.operand(0)?;
    let keeps_shape = || Ok(place.same_shape(value, place.result()?));
    match node.op_type.as_str() {
        "Identity" => {}
        // A Dropout trains unless `is_test` is set (before opset 7) or `training_mode` is false (since opset 12).
        "Dropout" => {
            let is_inference = place.this().and_then(|node| node.dropout_is_inference());
            ensure(is_inference == Some(true), miss!("inference"))?;
            let mut masks = node.outputs().iter().skip(1).flatten();
            ensure(masks.all(|&mask| place.model.is_unused(mask)), miss!("mask-unread"))?;
        }
        "Transpose" => {
            let rank = place.dims(value)?.len();
            let permutation = place.this().and_then(|node| node.permutation(rank));
            ensure(permutation.is_some_and(|axes| axes.is_sorted()), miss!("axes-in-order"))?;
        }
        "Pad" => {
            let pads = place.this().and_then(|node| node.pad_numbers());
            ensure(pads.is_some_and(|pads| pads.iter().all(|&pad| pad == 0)), miss!("pads-zero"))?;
            ensure(keeps_shape()?, miss!("pads-zero").of(value))?;
        }
        "Split" => {
            ensure(node.outputs().len() == 1, miss!("one-part"))?;
            ensure(keeps_shape()?, miss!("one-part").of(value))?;
        }
        _ => return Err(Miss::ROOT),
    }
    place.forward(value)
}

/// `Cast(x, to) = x` when `x` has type `to`.
fn cast(place: &Place<'_>) -> Result<Edit, Miss> {
    let value = place.operand(0)?;
    let output = place.result()?;
    ensure(
        place.dtype(value).ok_or(miss!("same-type").of(value))?
            == place.dtype(output).ok_or(miss!("same-type").of(output))?,
        miss!("same-type").of(output),
    )?;
    place.forward(value)
}

/// Removes a reshape, broadcast or repetition to the shape of its operand. All of them keep the order of the elements, and they add no
/// elements if the number of elements is the same.
fn same_shape(place: &Place<'_>) -> Result<Edit, Miss> {
    let value = place.operand(0)?;
    let output = place.result()?;
    prove(place.compare_shapes(value, output), miss!("same-shape").of(value))?;
    ensure(!may_be_misread(place.model, place.facts, value), miss!("read-right").of(value))?;
    place.forward(value)
}

/// Removes a Concat, Sum, Max, Min or Mean with one operand.
fn single(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    ensure(node.inputs().len() == 1, miss!("one-operand"))?;
    let value = node.input(0).ok_or(Miss::ROOT)?;
    place.forward(value)
}

/// Removes the empty operands of a Concat whose other dims equal those of the first non-empty operand. If all are empty, the first one is
/// kept.
fn concat_of_nothing(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let inputs: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>().ok_or(Miss::ROOT)?;
    let shapes: Vec<&[Dim]> =
        inputs.iter().map(|&input| place.shape(input)).collect::<Option<_>>().ok_or(miss!("nothing"))?;
    let axis = place.read(node).axis(shapes.first().ok_or(Miss::ROOT)?.len()).ok_or(Miss::ROOT)?;
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
        _ if left.len() == inputs.len() => {
            let is_empty = shapes.iter().any(|shape| holds_nothing(shape));
            return Err(if is_empty { miss!("agrees") } else { miss!("nothing") });
        }
        _ => {}
    }
    place.instead(place.begin()?, rebuilt(node, Build::concat(left, axis)))
}
