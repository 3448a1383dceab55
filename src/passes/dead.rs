//! Removes what nothing reads: nodes whose results are all unused, initializers without readers, optional results nobody
//! wants are left to their nodes.

use rustc_hash::FxHashSet;

use crate::ir::{Definition, GraphId, Model, NodeId, ValueId};

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub nodes: usize,
    pub initializers: usize,
}

/// Removes dead nodes and initializers from the main graph and every subgraph, in time linear in the model.
pub fn remove(model: &mut Model) -> Removed {
    let mut removed = Removed::default();
    let mut open: Vec<NodeId> =
        live_graphs(model).into_iter().flat_map(|graph| model.graph(graph).nodes().collect::<Vec<_>>()).collect();
    while let Some(id) = open.pop() {
        let Some(node) = model.node(id) else { continue };
        if !node.outputs().iter().flatten().all(|&value| model.is_unused(value)) || node.outputs().is_empty() {
            continue;
        }
        let mut reads: Vec<ValueId> = node.inputs().iter().flatten().copied().collect();
        for graph in node.subgraphs() {
            reads.extend(model.captures(graph));
        }
        open.extend(reads.into_iter().filter_map(|value| model.value(value).producer()));
        model.remove_node(id);
        removed.nodes += 1;
    }
    let mut unread = FxHashSet::default();
    for graph in live_graphs(model) {
        for &value in model.graph(graph).initializers() {
            if matches!(model.value(value).definition(), Definition::Initializer(_)) && model.is_unused(value) {
                unread.insert(value);
            }
        }
    }
    removed.initializers = unread.len();
    model.remove_initializers(&unread);
    removed
}

/// The main graph and every subgraph below it, outermost first.
pub(super) fn live_graphs(model: &Model) -> Vec<GraphId> {
    let mut graphs = vec![model.main()];
    let mut next = 0;
    while let Some(&graph) = graphs.get(next) {
        next += 1;
        let nodes = model.graph(graph).nodes().filter_map(|id| model.node(id));
        let inner: Vec<GraphId> = nodes.flat_map(|node| node.subgraphs()).collect();
        graphs.extend(inner);
    }
    graphs
}
