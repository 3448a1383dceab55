//! Axes of size 1 that a node can make, keep or drop itself.
//!
//! An element that is taken out of an axis, and the axis put back or taken away by the next node, is one node:
//!
//! * `Squeeze(x[i:i+1] on a, a) = Gather(x, i; a)`, where that is a part of a Split
//! * `Unsqueeze(Reduce(x; A, keepdims = 0), A) = Reduce(x; A, keepdims = 1)`, and the other way round for Squeeze

use super::{Place, Rule};
use crate::ir::{Attribute, Edit, NewNode, Node, NodeId, ValueId};
use crate::ops::axis_in;
use crate::tensor::Tensor;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "split-to-gather", operators: &["Squeeze"], exact: true, apply: split_squeeze },
    Rule { name: "reduction-keeping-axes", operators: &["Unsqueeze", "Squeeze"], exact: true, apply: reduction },
];

/// Axes among `rank`, in order.
fn sorted(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = axes.iter().map(|&axis| axis_in(axis, rank).ok()).collect::<Option<_>>()?;
    axes.sort_unstable();
    axes.dedup();
    Some(axes)
}

/// The axes that an Unsqueeze makes, counted in its result, or a Squeeze takes away, counted in its operand.
fn ones(place: &Place<'_>, node: &Node) -> Option<Vec<usize>> {
    let (from, to) = (place.shape(node.input(0)?)?, place.shape(node.output(0)?)?);
    let rank = from.len().max(to.len());
    match (node.attribute("axes"), node.input(1)) {
        (Some(Attribute::Ints(axes)), None) => sorted(axes, rank),
        (None, Some(axes)) => sorted(&place.const_ints(axes)?, rank),
        // A Squeeze that names none takes away all that have size 1.
        (None, None) if node.is("Squeeze") => {
            let ones: Vec<usize> =
                (0..rank).filter(|&axis| from.get(axis).is_some_and(|dim| dim.is_const(1))).collect();
            (ones.len() == rank.checked_sub(to.len())?).then_some(ones)
        }
        _ => None,
    }
}

/// The axis of a Gather, Split or Concat of a tensor of this rank.
fn axis_of(node: &Node, default: i64, rank: usize) -> Option<usize> {
    match node.attribute("axis") {
        None => axis_in(default, rank).ok(),
        Some(Attribute::Int(axis)) => axis_in(*axis, rank).ok(),
        Some(_) => None,
    }
}

/// A Gather of one element along an axis in place of the node.
fn gather(place: &mut Place<'_>, rule: &'static str, data: ValueId, index: Tensor, axis: usize) -> Option<Edit> {
    let output = place.output(0)?;
    let name = place.node()?.name.clone();
    let indices = place.new_value(output, "index");
    let mut edit = place.edit(rule)?.removing(place.id);
    edit.constants.push((indices, index));
    let node = NewNode::new("Gather", [Some(data), Some(indices)]).with("axis", i64::try_from(axis).ok()?);
    Some(edit.inserting(node.named(name).output(output)))
}

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
fn split_squeeze(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let middle = node.input(0)?;
    let (_, split) = place.producer(middle, "Split")?;
    let data = split.input(0)?;
    let axis = axis_of(split, 0, place.shape(data)?.len())?;
    if !split.outputs().iter().flatten().all(|&part| place.model.is_unused(part) || is_only_squeezed(place, part, axis))
    {
        return None;
    }
    let (begin, size) = part(place, split, middle, axis)?;
    if size != 1 || ones(place, node)? != [axis] {
        return None;
    }
    gather(place, "split-to-gather", data, Tensor::scalar(begin), axis)
}

/// Whether all that reads a value takes this axis of it away.
fn is_only_squeezed(place: &Place<'_>, value: ValueId, axis: usize) -> bool {
    let squeezes = |id: NodeId| {
        let node = place.model.node(id).filter(|node| node.is("Squeeze") && Some(node.graph()) == place.graph());
        node.is_some_and(|node| ones(place, node).is_some_and(|axes| axes == [axis]))
    };
    !place.model.is_output(value)
        && !place.model.value(value).pinned
        && place.model.users(value).iter().all(|&(id, slot)| slot == 0 && squeezes(id))
}

/// Axes that are reduced and then put back or taken away: the reduction does it.
fn reduction(place: &mut Place<'_>) -> Option<Edit> {
    let node = place.node()?;
    let (middle, output) = (node.input(0)?, node.output(0)?);
    let keeps = node.is("Unsqueeze");
    let (id, inner) = place.producer_with(middle, |own| own.reduces.is_some())?;
    if !place.has_one_reader(middle) {
        return None;
    }
    let view = place.view(id)?;
    let (axes, now) = (view.traits().reduces?.axes)(&view)?;
    if now == keeps || axes.is_empty() || ones(place, node)? != axes {
        return None;
    }
    let mut reduction = NewNode::like(inner);
    reduction.attributes.retain(|attribute| attribute.name != "keepdims");
    let reduction = reduction.with("keepdims", i64::from(keeps)).output(output);
    Some(place.edit("reduction-keeping-axes")?.removing(place.id).inserting(reduction))
}
