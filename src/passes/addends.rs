//! Constants that are written as nodes, since optimizers look for none among the initializers: see [`constant_addend`].

use rustc_hash::FxHashSet;

use super::dead::live_graphs;
use super::outcome::RunError;
use crate::ir::{Definition, Facts, Model, NewNode, NodeId, ValueId};
use crate::ops::{Budget, Opset};
use crate::rewrite::{Place, Taken, constant_addend};

/// The initializers that a model has.
pub(super) fn initializers(model: &Model) -> FxHashSet<ValueId> {
    let graphs = live_graphs(model);
    graphs.iter().flat_map(|&graph| model.graph(graph).initializers().iter().copied()).collect()
}

/// How many bytes may be in such nodes, all together: they stand in the file itself, wherever other weights go.
const MOST_BYTES: usize = 16 << 20;

/// Makes Constant nodes of what is added before a normalization, but for what was an initializer in the file.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn spell_out(model: &mut Model, facts: &Facts, given: &FxHashSet<ValueId>) -> Result<(), RunError> {
    let (budget, taken, mut left) = (Budget::default(), Taken::default(), MOST_BYTES);
    for graph in live_graphs(model) {
        let opset = Opset::of(model, graph);
        let nodes: Vec<NodeId> = model.graph(graph).nodes().collect();
        let at = |id| constant_addend(&Place { model, facts, id, opset, budget: &budget, taken: &taken });
        let found: FxHashSet<ValueId> = nodes.into_iter().filter_map(at).collect();
        let mut found: Vec<ValueId> = found.into_iter().filter(|value| !given.contains(value)).collect();
        found.sort_unstable();
        for value in found {
            let is_own = matches!(model.value(value).definition(), Definition::Initializer(home) if home == graph);
            let Some(tensor) = model.value(value).tensor().filter(|_| is_own).cloned() else { continue };
            let Some(rest) = left.checked_sub(tensor.byte_len()) else { continue };
            left = rest;
            model.remove_initializer(value);
            model.add_node(graph, NewNode::new("Constant", []).with("value", tensor).output(value))?;
        }
    }
    Ok(())
}
