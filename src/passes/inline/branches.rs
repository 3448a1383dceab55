//! Replaces an If with a known condition by the branch that runs.

use super::{holds_names, nodes_of};
use crate::ir::{Attribute, Broken, Facts, GraphId, Model, NodeId};
use crate::passes::edits::EditCounter;
use crate::passes::untouched::Untouched;

/// The name of the pass, under which its edits are counted.
pub(in crate::passes) const NAME: &str = "decided-if";

/// Inlines every If of the main graph and its subgraphs whose condition is proved.
///
/// Law: `If(true, a, b) = a`, `If(false, a, b) = b`. A branch with an invalid node is kept as a branch, because runtimes check subgraphs less
/// strictly.
///
/// # Errors
/// The model is inconsistent.
pub fn inline(
    model: &mut Model,
    facts: &Facts,
    untouched: &Untouched,
    exact: bool,
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    for id in nodes_of(model, &["If"], exact).into_iter().filter(|&id| !untouched.contains(id)) {
        let branch = decided(model, facts, id).filter(|&branch| !untouched.has_broken(model, branch));
        if let Some(branch) = branch.filter(|_| edits.take(NAME, || model.describe(id))) {
            let outputs = model.graph(branch).outputs().to_vec();
            model.inline_subgraph(id, branch, &[], &outputs)?;
        }
    }
    Ok(())
}

fn decided(model: &Model, facts: &Facts, id: NodeId) -> Option<GraphId> {
    let node = model.node(id)?;
    let condition = facts.get(node.input(0)?)?.const_ints()?;
    let [flag] = condition.as_slice() else { return None };
    let branch = match node.attribute(if *flag != 0 { "then_branch" } else { "else_branch" })? {
        Attribute::Graph(branch) => *branch,
        _ => return None,
    };
    let fits = model.graph(branch).inputs().is_empty() && model.graph(branch).outputs().len() == node.outputs().len();
    (fits && !holds_names(model, branch)).then_some(branch)
}
