//! Computes a topological order in which most tensors precede the reads of sizes.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{GraphId, Model, NodeId};
use crate::sort;

/// Reorders the nodes of a graph from one topological order to another: each node is as late as possible, when its first reader needs it. Of a
/// reader's operands, those with the longest chain of nodes come first. So nodes that compute only from sizes, such as positions and masks, follow
/// the tensors that they are used with, and may read their shapes.
pub(super) fn as_late_as_possible(model: &Model, graph: GraphId, order: &[NodeId]) -> Vec<NodeId> {
    let within: FxHashSet<NodeId> = order.iter().copied().collect();
    let mut depth: FxHashMap<NodeId, usize> = FxHashMap::default();
    for &id in order {
        let deepest = reads(model, id, &within).into_iter().filter_map(|read| depth.get(&read).copied()).max();
        depth.insert(id, deepest.map_or(0, |deepest| deepest + 1));
    }
    let ends = model.graph(graph).outputs().iter().filter_map(|&output| model.value(output).producer());
    let mut found = Vec::with_capacity(order.len());
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    for end in ends.filter(|end| within.contains(end)).chain(order.iter().copied()) {
        // Each open node with its remaining producers, the deepest last.
        let mut open: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
        let enter = |id: NodeId, open: &mut Vec<(NodeId, Vec<NodeId>)>| {
            let mut operands = reads(model, id, &within);
            operands.reverse();
            sort::by_key(&mut operands, |read| depth.get(read).copied());
            open.push((id, operands));
        };
        if seen.insert(end) {
            enter(end, &mut open);
        }
        while let Some((id, operands)) = open.last_mut() {
            match operands.pop() {
                Some(read) if seen.insert(read) => enter(read, &mut open),
                Some(_) => {}
                None => {
                    found.push(*id);
                    open.pop();
                }
            }
        }
    }
    found
}

/// Returns the producers of a node's operands, including those of its subgraphs.
fn reads(model: &Model, id: NodeId, within: &FxHashSet<NodeId>) -> Vec<NodeId> {
    let Some(node) = model.node(id) else { return Vec::new() };
    let captured = node.subgraphs().flat_map(|inner| model.captures(inner));
    let values = node.inputs().iter().flatten().copied().chain(captured);
    values.filter_map(|value| model.value(value).producer()).filter(|read| within.contains(read)).collect()
}
