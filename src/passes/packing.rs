//! Checks moves of constant weights and their readers, because a runtime packs some weights and then sums in another order.
//!
//! ONNX Runtime packs weights that are initializers in the graph of their reader, or in the next outer graph; it reads others unpacked. A product of
//! one row is then summed differently (measured on 1.31: MatMul and Gemm, with all optimizations off). So under `--exact`, neither a weight nor its
//! reader is moved across that border. Traits list the operators that may sum differently.

use super::dead::graphs_below;
use crate::ir::{GraphId, Model, Node, ValueId};
use crate::ops::traits::{Variation, traits_of};

/// The number of outer graphs from which a node reads a packed weight.
const NEAR: usize = 1;

/// Returns `true` if the bits of a node's result may depend on the graph of this operand: a constant of an operator whose kernels differ in rounding.
fn depends(model: &Model, node: &Node, operand: ValueId) -> bool {
    let constant = model.value(operand).constant_tensor();
    constant.is_some_and(|tensor| traits_of(model, node).variation(tensor.dtype()) != Variation::None)
}

/// Returns how many graphs outside of `graph` the graph `home` is; `None` if it is not an outer graph.
fn distance(model: &Model, mut graph: GraphId, home: GraphId) -> Option<usize> {
    let mut steps = 0;
    while graph != home {
        graph = model.node(model.graph(graph).parent()?)?.graph();
        steps += 1;
    }
    Some(steps)
}

fn is_near(model: &Model, graph: GraphId, home: GraphId) -> bool {
    distance(model, graph, home).is_some_and(|steps| steps <= NEAR)
}

/// Returns `true` if a weight could move to `home` and be packed, or unpacked, for each of its readers as now.
pub(super) fn may_be_held_by(model: &Model, weight: ValueId, home: GraphId) -> bool {
    let Some(now) = model.graph_of(weight) else { return false };
    let keeps = |node: &Node| is_near(model, node.graph(), now) == is_near(model, node.graph(), home);
    let readers = model.users(weight);
    let mut readers = readers.iter().filter_map(|&(id, _)| model.node(id));
    readers.all(|node| keeps(node) || !depends(model, node, weight))
}

/// Returns `true` if a node could move to `graph` and find each weight packed, or unpacked, as now.
pub(super) fn may_stand_in(model: &Model, node: &Node, graph: GraphId) -> bool {
    let keeps = |weight: ValueId| {
        let home = model.graph_of(weight);
        home.is_some_and(|home| is_near(model, node.graph(), home) == is_near(model, graph, home))
    };
    node.inputs().iter().flatten().all(|&weight| !depends(model, node, weight) || keeps(weight))
}

/// Returns `true` if a node of a subgraph could move to the outer graph, together with weights of the subgraph.
pub(super) fn may_be_taken_to(model: &Model, node: &Node, body: GraphId, around: GraphId) -> bool {
    let keeps = |weight: ValueId| {
        let home = model.graph_of(weight);
        home == Some(body) || home.is_some_and(|home| is_near(model, body, home) == is_near(model, around, home))
    };
    node.inputs().iter().flatten().all(|&weight| keeps(weight) || !depends(model, node, weight))
}

/// Returns `true` if a subgraph could move to the outer graph and find each weight outside of the subgraph packed, or unpacked, as now.
pub(super) fn may_move_out(model: &Model, body: GraphId) -> bool {
    let keeps = |node: &Node, weight: ValueId| {
        let home = model.graph_of(weight).filter(|&home| !model.is_within(home, body));
        let steps = home.and_then(|home| distance(model, node.graph(), home));
        steps != Some(NEAR + 1) || !depends(model, node, weight)
    };
    let graphs = graphs_below(model, body);
    let mut nodes = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    nodes.all(|node| node.inputs().iter().flatten().all(|&weight| keeps(node, weight)))
}
