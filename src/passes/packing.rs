//! Where a runtime packs constant weights before it runs, and so sums in another order.
//!
//! ONNX Runtime packs the weights that are initializers of the graph of the node that reads them, or of the next graph around it; those
//! further away it reads as they are. A product of one row is then summed otherwise (measured on 1.31: MatMul and Gemm, with all
//! optimizations off). So under `--exact` neither a weight nor a node that reads it is moved across that border. Which operators may sum
//! otherwise, their traits tell.

use super::dead::graphs_below;
use crate::ir::{GraphId, Model, Node, ValueId};
use crate::ops::traits::{Variation, traits_of};

/// How many graphs around its own a node reads a packed weight from.
const NEAR: usize = 1;

/// Whether the bits of what a node computes may depend on where this operand is held: a constant of an operator whose kernels round by more
/// than the elements.
fn depends(model: &Model, node: &Node, operand: ValueId) -> bool {
    let constant = model.value(operand).constant_tensor();
    constant.is_some_and(|tensor| traits_of(model, node).variation(tensor.dtype()) != Variation::None)
}

/// How many graphs further out `home` is than `graph`; `None` if it is not around it.
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

/// Whether a weight could be held by `home` and each of its readers find it packed as now, or not packed as now.
pub(super) fn may_be_held_by(model: &Model, weight: ValueId, home: GraphId) -> bool {
    let Some(now) = model.graph_of(weight) else { return false };
    let keeps = |node: &Node| is_near(model, node.graph(), now) == is_near(model, node.graph(), home);
    let readers = model.users(weight);
    let mut readers = readers.iter().filter_map(|&(id, _)| model.node(id));
    readers.all(|node| keeps(node) || !depends(model, node, weight))
}

/// Whether a node could stand in `graph`, and find each weight packed as now, or not packed as now.
pub(super) fn may_stand_in(model: &Model, node: &Node, graph: GraphId) -> bool {
    let keeps = |weight: ValueId| {
        let home = model.graph_of(weight);
        home.is_some_and(|home| is_near(model, node.graph(), home) == is_near(model, graph, home))
    };
    node.inputs().iter().flatten().all(|&weight| !depends(model, node, weight) || keeps(weight))
}

/// Whether a node of a body could stand in the graph around it, weights of the body's own beside it.
pub(super) fn may_be_taken_to(model: &Model, node: &Node, body: GraphId, around: GraphId) -> bool {
    let keeps = |weight: ValueId| {
        let home = model.graph_of(weight);
        home == Some(body) || home.is_some_and(|home| is_near(model, body, home) == is_near(model, around, home))
    };
    node.inputs().iter().flatten().all(|&weight| keeps(weight) || !depends(model, node, weight))
}

/// Whether what is in a body could be in the graph around it, and find each weight from there or further out packed as now.
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
