//! Loop-invariant code motion: computes invariant nodes of a subgraph once, before the subgraph.
//!
//! A subgraph that may not run needs care: the work would be wasted, and a node that fails would fail a model that runs.

use rustc_hash::FxHashSet;

use super::edits::EditCounter;
use super::inline::nodes_of;
use super::packing;
use super::quantization::is_quantization_operand;
use super::untouched::Untouched;
use crate::ir::{Attribute, Broken, Definition, Edit, Fact, Facts, GraphId, Model, NewNode, Node, NodeId, ValueId};
use crate::ops::traits::NodeFacts;
use crate::ops::{Opset, operator_of};
use crate::rewrite::is_quantization;

/// The name of the pass, under which its edits are counted.
pub(super) const NAME: &str = "hoisted-node";

/// The most elements that may be computed unnecessarily if the subgraph is not proved to run.
const FEW: usize = 64;

/// Moves nodes out of the subgraphs of Loop and Scan of the main graph and its subgraphs. `surely` are those whose subgraphs are proved to run.
///
/// Law: a deterministic operator on values from outside of a subgraph gives the same result in each iteration.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn hoist(
    model: &mut Model,
    facts: &Facts,
    surely: &FxHashSet<NodeId>,
    exact: bool,
    (untouched, edits): (&Untouched, &mut EditCounter),
) -> Result<(), Broken> {
    // Inner subgraphs come last, so a node moves by one subgraph a round; subgraphs nest at most 32 deep.
    for owner in nodes_of(model, &["Loop", "Scan"], false) {
        let Some(&Attribute::Graph(body)) = model.node(owner).and_then(|node| node.attribute("body")) else { continue };
        let Some(around) = model.node(owner).map(Node::graph) else { continue };
        for id in model.topological(body)? {
            let keeps_bits = |node| packing::may_be_taken_to(model, node, body, around);
            if exact && !model.node(id).is_some_and(keeps_bits) {
                continue;
            }
            if untouched.contains(id) || !may_move(model, facts, body, id, surely.contains(&owner)) {
                continue;
            }
            if !edits.take(NAME, || model.describe(id)) {
                return Ok(());
            }
            move_out(model, owner, body, id)?;
        }
    }
    Ok(())
}

/// Returns `true` if a node of a subgraph may be computed before the subgraph runs.
fn may_move(model: &Model, facts: &Facts, body: GraphId, id: NodeId, surely: bool) -> bool {
    let Some(node) = model.node(id) else { return false };
    let Some(operator) = operator_of(model, node) else { return false };
    let opset = Opset::of(model, body).version();
    // Sizes that do not match also make a node fail. Inference has checked those that are numbers.
    let is_static = |value: &ValueId| facts.get(*value).and_then(Fact::static_shape).is_some();
    let fits = || operator.traits.of_shape || node.inputs().iter().flatten().all(is_static);
    let cannot_fail =
        || fits() && NodeFacts::of(model, facts, id, opset).is_some_and(|view| operator.traits.cannot_fail(&view));
    operator.deterministic
        && !is_quantization(node)
        && node.subgraphs().next().is_none()
        && is_invariant(model, body, node)
        && node.outputs().iter().flatten().all(|&value| stays_unnamed(model, facts, value))
        && (surely || (node.outputs().iter().flatten().all(|&value| is_small(facts, value)) && cannot_fail()))
}

/// Returns `true` if a node only reads constants of the subgraph and values from outside, at least one of which is not constant.
fn is_invariant(model: &Model, body: GraphId, node: &Node) -> bool {
    let is_constant_here = |value: ValueId| {
        let is_here = model.value(value).definition() == Definition::Initializer(body) && !model.value(value).pinned;
        // An output of the subgraph must be defined in it.
        is_here && !model.is_output(value) && !is_quantization_operand(model, value)
    };
    let is_outside = |value: ValueId| model.graph_of(value).is_some_and(|graph| graph != body);
    let mut read = node.inputs().iter().flatten();
    read.clone().all(|&value| is_outside(value) || is_constant_here(value))
        && read.any(|&value| is_outside(value) && !model.value(value).is_constant())
}

/// Returns `true` if only nodes read a value: an output of a subgraph must be computed in it. Excludes sequences and strings, which runtimes may move
/// into a subgraph instead of copying them.
fn stays_unnamed(model: &Model, facts: &Facts, value: ValueId) -> bool {
    !model.is_output(value) && !model.is_named(value) && facts.get(value).is_some_and(Fact::is_copied)
}

fn is_small(facts: &Facts, value: ValueId) -> bool {
    let shape = facts.get(value).and_then(Fact::static_shape);
    let count = shape.and_then(|shape| shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size)));
    count.is_some_and(|count| count <= FEW)
}

/// Inserts a copy of the node before the owner of the subgraph. Its results are new values, because facts about those inside may hold only where the
/// subgraph runs.
fn move_out(model: &mut Model, owner: NodeId, body: GraphId, id: NodeId) -> Result<(), Broken> {
    let (Some(node), Some(mut edit)) = (model.node(id).cloned(), Edit::at(model, owner)) else { return Ok(()) };
    let mut moved = NewNode::like(&node);
    for output in node.outputs() {
        let value = output.map(|output| {
            let value = edit.new_value(output, "once");
            edit.replace.push((output, value));
            value
        });
        moved.outputs.push(value);
    }
    for &value in node.inputs().iter().flatten() {
        model.lift_initializer(value, body, owner);
    }
    edit.remove.push(id);
    model.apply(edit.inserting(moved))?;
    Ok(())
}
