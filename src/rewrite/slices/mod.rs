//! Slice algebra. What a slice takes and how slices compose is the business of [`crate::slicing`]; here it becomes edits.
//!
//! Slices move towards where the data comes from, and meet there what they cancel with. Every rule here leaves as many nodes as there
//! were or fewer, and of those that only move a slice each makes the operators behind it work on less; so they come to an
//! end. A value that something else reads as well stays, and a slice is moved across it only where that costs no node.

pub(super) mod apart;
pub(super) mod compose;
pub(super) mod concat;
pub(super) mod cuts;
pub(super) mod elementwise;
pub(super) mod gather;
pub(super) mod pad;
pub(super) mod places;
pub(super) mod select;
pub(super) mod split;
pub(super) mod transpose;

use super::build;
use super::place::Place;
use crate::ir::{Edit, Fact, NewNode, Node, NodeId, ValueId};
use crate::ops::axis_in;
use crate::rewrite::limits::READERS;
use crate::tensor::DType;

/// The other nodes of these operators, in the same graph, that read a value as their data.
fn siblings(place: &Place<'_>, data: ValueId, operators: &[&str]) -> Vec<NodeId> {
    let users = place.model.users(data);
    if users.len() > READERS {
        return Vec::new();
    }
    let graph = place.node().map(Node::graph);
    let is_one = |id: NodeId| {
        let node = place.model.node(id).filter(|node| Some(node.graph()) == graph);
        node.is_some_and(|node| operators.iter().any(|operator| node.is(operator)))
    };
    users.into_iter().filter(|&(id, slot)| slot == 0 && id != place.id && is_one(id)).map(|(id, _)| id).collect()
}

/// How many parts a Split of this value must have to pay. It ends ONNX Runtime's symbolic inference of shapes, which follows sizes through
/// Gather and Slice, but not through Split, and gives up at an Expand to sizes it does not know.
fn fewest_parts(place: &Place<'_>, data: ValueId) -> usize {
    let are_sizes = |fact: &Fact| fact.dtype().is_some_and(DType::is_integer) && fact.content.is_some();
    if place.fact(data).is_some_and(are_sizes) { 3 } else { 2 }
}

/// The Slice `id` on other data of which axis `a` is axis `to(a)`, with operands as they are, known or not.
fn moved(
    place: &Place<'_>,
    edit: &mut Edit,
    id: NodeId,
    data: ValueId,
    rank: usize,
    to: &dyn Fn(usize) -> Option<usize>,
) -> Option<NewNode> {
    // An axis may be counted from the end.
    let stays = place.shape(data)?.len() == rank && (0..rank).all(|axis| to(axis) == Some(axis));
    let node = place.model.node(id)?;
    let new = NewNode::like(node).reading(0, data);
    if stays {
        return Some(new);
    }
    let own = |&axis: &i64| to(axis_in(axis, rank).ok()?);
    let axes = place.read(node).slice_axes()?.iter().map(own).collect::<Option<Vec<usize>>>()?;
    let bounds = node.input(1).and_then(|starts| place.dtype(starts));
    place.build(edit, data).slice_along(new, build::axes(axes), bounds)
}

/// Whether every runtime moves elements of this type.
fn is_common(dtype: DType) -> bool {
    use DType::*;
    matches!(
        dtype,
        Bool | Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64 | Float16 | Float | Double | String
    )
}
