//! What a body computes time and again from what does not change is computed once, before.
//!
//! A body that may not run at all is the reason for care: then the work would be in vain, and a node that fails would fail a model that
//! does not.

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

/// The pass's name, under which its edits are counted.
pub(super) const NAME: &str = "hoisted-node";

/// As many elements are computed in vain where it is not proved that the body runs.
const FEW: usize = 64;

/// Moves nodes out of the bodies of Loop and Scan of the main graph and its subgraphs. `surely` are those whose bodies are proved to run.
///
/// Law: what a deterministic operator makes of values from outside of a body is the same in each iteration.
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
    // Inner bodies come last, so a node moves by one body a round; bodies nest at most 32 deep.
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

/// Whether a node of a body may be computed before the body runs.
fn may_move(model: &Model, facts: &Facts, body: GraphId, id: NodeId, surely: bool) -> bool {
    let Some(node) = model.node(id) else { return false };
    let Some(operator) = operator_of(model, node) else { return false };
    let opset = Opset::of(model, body).version();
    // Sizes that do not fit make a node fail as well; inference has compared those that are numbers.
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

/// Whether a node reads nothing of the body but constants, and something else.
fn is_invariant(model: &Model, body: GraphId, node: &Node) -> bool {
    let is_constant_here = |value: ValueId| {
        let is_here = model.value(value).definition() == Definition::Initializer(body) && !model.value(value).pinned;
        // What the body gives away it must hold itself.
        is_here && !model.is_output(value) && !is_quantization_operand(model, value)
    };
    let is_outside = |value: ValueId| model.graph_of(value).is_some_and(|graph| graph != body);
    let mut read = node.inputs().iter().flatten();
    read.clone().all(|&value| is_outside(value) || is_constant_here(value))
        && read.any(|&value| is_outside(value) && !model.value(value).is_constant())
}

/// Whether nothing but nodes reads a value: a body gives nothing away that it has not computed. Sequences and strings stay too, which
/// runtimes may move into a body instead of copying them.
fn stays_unnamed(model: &Model, facts: &Facts, value: ValueId) -> bool {
    !model.is_output(value) && !model.is_named(value) && facts.get(value).is_some_and(Fact::is_copied)
}

fn is_small(facts: &Facts, value: ValueId) -> bool {
    let shape = facts.get(value).and_then(Fact::static_shape);
    let count = shape.and_then(|shape| shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size)));
    count.is_some_and(|count| count <= FEW)
}

/// Puts a copy of the node before the one that has the body. Its results are values of their own: what is known of those inside may hold
/// only where the body runs.
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
