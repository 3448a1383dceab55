//! Axes of size 1 that a node can make, keep or drop itself.
//!
//! An element that is taken out of an axis, and the axis put back or taken away by the next node, is one node:
//!
//! * `Squeeze(x[i:i+1] on a, a) = Gather(x, i; a)`, where that is a part of a Split
//! * `Unsqueeze(Reduce(x; A, keepdims = 0), A) = Reduce(x; A, keepdims = 1)`, and vice versa for Squeeze

use super::{Place, Rule};
use crate::ir::{Edit, NewNode, Node, NodeId, ValueId};
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "split-to-gather",
        law: "Squeeze(part i of Split(x), a) = Gather(x, i; axis = a)",
        sentence: "Replaces an output of a Split with a removed axis of size 1 by a Gather.",
        premises: &[
            ("one-element", "the part is one element at a constant index"),
            ("all-squeezed", "every used part loses this axis, and no other"),
            ("no-strings", "the data is not a string tensor, for which ONNX Runtime's Gather returns wrong elements"),
        ],
        exact: true,
        operators: &["Squeeze"],
        apply: split_squeeze,
    },
    Rule {
        name: "reduction-keeping-axes",
        law: "Unsqueeze(Reduce(x, A; keepdims = 0), A) = Reduce(x, A; keepdims = 1), and the other way round for \
            Squeeze",
        sentence: "Merges Squeeze or Unsqueeze into the keepdims attribute of a reduction.",
        premises: &[
            ("those-axes", "the axes put back or taken away are those that are reduced"),
            ("axes-known", "they are known, and at least one exists"),
            ("one-reader", "the reduced value has no other consumer"),
        ],
        exact: true,
        operators: &["Unsqueeze", "Squeeze"],
        apply: reduction,
    },
];

/// The parts of a Split along an axis: which of its results `value` is, how far into the axis it begins, and how long it is.
fn part(place: &Place<'_>, split: &Node, value: ValueId, axis: usize) -> Option<(i64, i64)> {
    let mut begin = 0i64;
    for output in split.outputs() {
        let size = place.shape((*output)?)?.get(axis)?.as_const()?;
        if *output == Some(value) {
            return Some((begin, size));
        }
        begin = begin.checked_add(size)?;
    }
    None
}

/// A Split whose parts have one element, or are not read, and lose the axis: each of them is an element of the axis.
fn split_squeeze(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let middle = node.input(0)?;
    let (_, split) = place.producer(middle, "Split")?;
    let data = split.input(0)?;
    let axis = place.read(split).axis(place.shape(data)?.len())?;
    if !split.outputs().iter().flatten().all(|&part| place.model.is_unused(part) || is_only_squeezed(place, part, axis))
    {
        return None;
    }
    let (begin, size) = part(place, split, middle, axis)?;
    if size != 1 || !place.may_be_looked_up(data) || place.read(node).ones()? != [axis] {
        return None;
    }
    let mut edit = place.edit()?;
    let node = place.build(&mut edit, place.output(0)?).gather_at(data, Tensor::scalar(begin), axis);
    place.instead(edit, node)
}

/// Whether all that reads a value takes this axis of it away.
fn is_only_squeezed(place: &Place<'_>, value: ValueId, axis: usize) -> bool {
    let squeezes = |id: NodeId| {
        let node = place.model.node(id).filter(|node| node.is("Squeeze") && Some(node.graph()) == place.graph());
        node.is_some_and(|node| place.read(node).ones().is_some_and(|axes| axes == [axis]))
    };
    !place.model.is_named(value) && place.model.users(value).iter().all(|&(id, slot)| slot == 0 && squeezes(id))
}

/// Axes that are reduced and then put back or taken away: the reduction does it.
fn reduction(place: &Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (middle, output) = (node.input(0)?, node.output(0)?);
    let keeps = node.is("Unsqueeze");
    let (id, inner) = place.producer_with(middle, |own| own.reduces.is_some())?;
    if !place.has_one_reader(middle) {
        return None;
    }
    let view = place.view(id)?;
    let (axes, now) = (view.traits().reduces?.axes)(&view)?;
    if now == keeps || axes.is_empty() || place.read(node).ones()? != axes {
        return None;
    }
    let reduction = NewNode::like(inner).set("keepdims", i64::from(keeps)).output(output);
    Some(place.edit()?.removing(place.id).inserting(reduction))
}
