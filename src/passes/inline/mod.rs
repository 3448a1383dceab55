//! Inlining: replaces control flow and calls by the nodes that they run.
//!
//! * [`branches`]: replaces an If with a known condition by the branch that runs.
//! * [`loops`]: replaces a Loop or Scan that runs once by its subgraph, and one that never runs by its initial values.
//! * [`unroll`]: replaces one that runs a few times by copies of its subgraph if this saves nodes, as [`cost`] estimates; [`repeated`] reads both.
//! * [`carried`]: removes values that are carried unnecessarily from one iteration to the next.
//! * [`calls`]: replaces calls of the model's functions by the function's body; [`call_graph`] has the callers.
//! * [`functions`]: decides how many calls are inlined, by the nodes that remain after folding.
//!
//! [`crate::ir`] changes the graphs (`Model::inline_subgraph`, `Model::inline_call`).

pub(super) mod branches;
pub(super) mod call_graph;
pub(super) mod calls;
pub(super) mod carried;
mod cost;
pub(super) mod functions;
pub(super) mod loops;
mod repeated;
pub(super) mod unroll;

use super::dead::{graphs_below, live_graphs};
use super::packing::may_move_out;
use crate::dim::Dim;
use crate::ir::{Fact, Facts, GraphId, Model, Node, NodeId, ValueId};
use crate::ops::traits::traits_of;
use crate::ops::{Opset, has_kernel_for_narrow, operator_of};

/// Returns the nodes of these operators, outer ones first: a branch that moves up is in its new graph before its inner nodes are visited. With
/// `exact`, omits those whose subgraphs would compute other bits in the outer graph.
pub(super) fn nodes_of(model: &Model, operators: &[&str], exact: bool) -> Vec<NodeId> {
    // Each of these operators has a subgraph.
    if !model.has_subgraphs() {
        return Vec::new();
    }
    let nodes = live_graphs(model).into_iter().flat_map(|graph| model.graph(graph).nodes());
    let wanted = |&id: &NodeId| {
        model.node(id).is_some_and(|node| {
            operators.iter().any(|operator| node.is(operator))
                && operator_of(model, node).is_some()
                && (!exact || node.subgraphs().all(|body| may_move_out(model, body)))
        })
    };
    nodes.filter(wanted).collect()
}

/// Returns `true` if ONNX Runtime has a kernel of an operator that moves a value, as far as its element type is known. Loops and Scans slice and
/// stack elements that few operators support.
fn is_moved(model: &Model, facts: &Facts, graph: GraphId, operator: &str, value: ValueId) -> bool {
    let opset = Opset::of(model, graph).version();
    let dtype = facts.get(value).and_then(Fact::dtype);
    dtype.is_none_or(|dtype| has_kernel_for_narrow(operator, dtype, opset))
}

/// Returns `true` if a subgraph has initializers whose names must survive, and which would name other values outside.
fn holds_names(model: &Model, body: GraphId) -> bool {
    model.graph(body).initializers().iter().any(|&value| model.value(value).pinned)
}

/// Returns `true` if a node in the subgraphs divides integers by a value that may be 0, such as the iteration number. ONNX Runtime rejects a constant
/// divisor of 0 when it loads a model, even in a branch that is not taken.
fn divides_openly(model: &Model, facts: &Facts, id: NodeId) -> bool {
    let bodies = model.node(id).into_iter().flat_map(Node::subgraphs);
    let mut nodes = bodies.flat_map(|body| graphs_below(model, body)).flat_map(|graph| model.graph(graph).nodes());
    nodes.any(|id| {
        let Some(node) = model.node(id) else { return false };
        let Some(divisor) = traits_of(model, node).divisor.and_then(|slot| node.input(slot)) else { return false };
        let fact = facts.get(divisor);
        let is_float = fact.and_then(Fact::dtype).is_some_and(|dtype| dtype.is_float());
        let one = Dim::constant(1);
        let is_apart = |held: Vec<Dim>| held.iter().all(|size| facts.scope().ge(size, &one).is_yes());
        !is_float && !model.value(divisor).is_constant() && !fact.and_then(Fact::ints).is_some_and(is_apart)
    })
}
