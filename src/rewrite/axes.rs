//! Replaces the consumers of a Split that each squeeze a part of size 1 by Gathers of single indices.
//!
//! Law: `Squeeze(x[i:i+1] on a, a) = Gather(x, i; a)`, where the slice is a part of a Split.

use super::miss::{Miss, ensure};
use super::place::Place;
use super::rule::{Rule, miss};
use crate::ir::{Edit, Node, NodeId, ValueId};
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "split-to-gather",
    law: "Squeeze(part i of Split(x), a) = Gather(x, i; axis = a)",
    sentence: "Replaces an output of a Split with size 1, and the Squeeze that removes this axis, by a Gather.",
    premises: &[
        ("one-element", "the part has one element along the axis, at a constant index i"),
        (
            "all-squeezed",
            "a Squeeze removes the axis a, and no other axis, from every output of the Split that has consumers",
        ),
        ("no-strings", "the data is not a string tensor, for which ONNX Runtime's Gather returns wrong elements"),
    ],
    exact: true,
    operators: &["Squeeze"],
    apply: split_squeeze,
}];

/// Returns the first position and the size of a result of a Split along the axis, if they are numbers.
pub(super) fn part(place: &Place<'_>, split: &Node, value: ValueId, axis: usize) -> Option<(i64, i64)> {
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

/// Replaces a Split by Gathers where each part has size 1 or is unread, and every consumer of a part squeezes the axis.
fn split_squeeze(place: &Place<'_>) -> Result<Edit, Miss> {
    let node = place.root()?;
    let middle = node.input(0).ok_or(Miss::ROOT)?;
    let (_, split) = place.producer(middle, "Split").ok_or(Miss::ROOT)?;
    let data = split.input(0).ok_or(Miss::ROOT)?;
    let axis = place.read(split).axis(place.dims(data)?.len()).ok_or(Miss::ROOT)?;
    ensure(
        split
            .outputs()
            .iter()
            .flatten()
            .all(|&part| place.model.is_unused(part) || is_only_squeezed(place, part, axis)),
        miss!("all-squeezed"),
    )?;
    let (begin, size) = part(place, split, middle, axis).ok_or(miss!("one-element"))?;
    ensure(size == 1, miss!("one-element"))?;
    ensure(place.may_be_looked_up(data), miss!("no-strings").of(data))?;
    ensure(place.read(node).ones().ok_or(miss!("all-squeezed"))? == [axis], miss!("all-squeezed"))?;
    let mut edit = place.begin()?;
    let node = place.build(&mut edit, place.result()?).gather_at(data, Tensor::scalar(begin), axis);
    place.instead(edit, node)
}

/// Returns `true` if every consumer of a value is a Squeeze of this axis.
fn is_only_squeezed(place: &Place<'_>, value: ValueId, axis: usize) -> bool {
    let squeezes = |id: NodeId| {
        let node = place.model.node(id).filter(|node| node.is("Squeeze") && Some(node.graph()) == place.graph());
        node.is_some_and(|node| place.read(node).ones().is_some_and(|axes| axes == [axis]))
    };
    !place.model.is_named(value) && place.model.users(value).iter().all(|&(id, slot)| slot == 0 && squeezes(id))
}
