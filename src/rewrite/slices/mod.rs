//! Slices before functions, and several selections from one tensor as one Split. The rule [`movement`](super::movement) composes Slices with other
//! data movement; a rule here needs to know more than one path of nodes, or moves a Slice over nodes that compute.
//!
//! No edit adds nodes, and a moved Slice makes the operators after it compute fewer elements, so the rules terminate.

pub(super) mod apart;
pub(super) mod cuts;
pub(super) mod elementwise;
pub(super) mod places;
pub(super) mod split;

use super::place::Place;
use crate::ir::{Node, NodeId, ValueId};
use crate::rewrite::limits::READERS;
use crate::tensor::DType;

/// Returns the other nodes with these operators, in the same graph, that read a value as their data.
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

/// Returns the least number of parts for which a Split of this value pays. A Split ends ONNX Runtime's symbolic shape inference. That
/// follows sizes through Gather and Slice, but not through Split, and gives up at an Expand with unknown sizes.
fn fewest_parts(place: &Place<'_>, data: ValueId) -> usize {
    if place.dtype(data).is_some_and(DType::is_integer) && place.holds_dims(data) { 3 } else { 2 }
}

/// Returns `true` if every runtime moves elements of this type.
fn is_common(dtype: DType) -> bool {
    use DType::*;
    matches!(
        dtype,
        Bool | Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64 | Float16 | Float | Double | String
    )
}
