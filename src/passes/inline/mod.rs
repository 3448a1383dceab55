//! Inlining: what a node stands for takes the node's place.
//!
//! * [`branches`]: an If whose condition is known becomes the branch that is taken.
//! * [`loops`]: a Loop or Scan whose body runs once becomes the body, and one whose body never runs becomes what it starts from.
//! * [`unroll`]: one whose body runs a few times becomes that many copies where this saves nodes, as [`cost`] tells; [`repeated`] reads both.
//! * [`carried`]: what is carried from one iteration to the next for nothing is not.
//! * [`calls`]: calls of the model's functions become the function's body; [`call_graph`] tells who calls whom.
//! * [`functions`]: how many calls become bodies, which is decided by what is left after folding.
//!
//! What is done to the graphs is the business of [`crate::ir`] (`Model::inline_subgraph`, `Model::inline_call`).

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

/// The nodes of these operators, outer ones first: a branch that moves up is in its new graph before what is inside it is
/// looked at. If `exact`, without those whose bodies would compute other bits in the graph around them.
pub(super) fn nodes_of(model: &Model, operators: &[&str], exact: bool) -> Vec<NodeId> {
    // Each of them has a body.
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

/// Whether ONNX Runtime moves a value by an operator in a graph, as far as the type of its elements tells: Loops and Scans take slices of, and
/// stack, elements that few operators take.
fn is_moved(model: &Model, facts: &Facts, graph: GraphId, operator: &str, value: ValueId) -> bool {
    let opset = Opset::of(model, graph).version();
    let dtype = facts.get(value).and_then(Fact::dtype);
    dtype.is_none_or(|dtype| has_kernel_for_narrow(operator, dtype, opset))
}

/// Whether a body has initializers whose names must survive, which stand for other values outside.
fn holds_names(model: &Model, body: GraphId) -> bool {
    model.graph(body).initializers().iter().any(|&value| model.value(value).pinned)
}

/// Whether something in the bodies of a node divides integers by what may be 0. The number of an iteration may be among them, and ONNX Runtime
/// does not load a constant of 0 there, be it in a branch that is not taken.
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
