//! Control flow that is decided: an If whose condition is known becomes its branch.

use super::dead::live_graphs;
use crate::ir::{Attribute, Broken, Facts, GraphId, Model, NodeId};

/// Inlines every If of the main graph and its subgraphs whose condition is proved. Returns how many there were.
///
/// Law: `If(true, a, b) = a`, `If(false, a, b) = b`.
///
/// # Errors
/// The model is inconsistent.
pub fn decided_branches(model: &mut Model, facts: &Facts) -> Result<usize, Broken> {
    let mut inlined = 0;
    let mut places: Vec<NodeId> =
        live_graphs(model).into_iter().flat_map(|graph| model.graph(graph).nodes().collect::<Vec<_>>()).collect();
    // Outer nodes come first, so a branch that moves up is in its new graph before what is inside it is looked at.
    places.retain(|&id| model.node(id).is_some_and(|node| node.is("If")));
    for id in places {
        if let Some(branch) = decided(model, facts, id) {
            model.inline(id, branch, &[])?;
            inlined += 1;
        }
    }
    Ok(inlined)
}

fn decided(model: &Model, facts: &Facts, id: NodeId) -> Option<GraphId> {
    let node = model.node(id)?;
    let condition = facts.get(node.input(0)?)?.const_ints()?;
    let [flag] = condition.as_slice() else { return None };
    let branch = match node.attribute(if *flag != 0 { "then_branch" } else { "else_branch" })? {
        Attribute::Graph(branch) => *branch,
        _ => return None,
    };
    (model.graph(branch).inputs().is_empty() && model.graph(branch).outputs().len() == node.outputs().len())
        .then_some(branch)
}
