//! Writes constants as Constant nodes: where the file format has no initializers, and where optimizers do not fuse them (see [`constant_addend`]).

use rustc_hash::FxHashSet;

use super::dead::live_graphs;
use super::edits::EditCounter;
use crate::ir::{Broken, Definition, Facts, GraphId, Model, NewNode, NodeId, ValueId};
use crate::ops::{Budget, Opset};
use crate::rewrite::{Place, Taken, constant_addend};
use crate::tensor::Tensor;

/// The name of the pass over addends, under which its edits are counted.
pub(super) const ADDENDS: &str = "addends";

/// The most bytes of the Constant node of an addend: it is in the model file even if weights are in a data file, and a model file has at most 2 GiB.
/// A table of 4,096 positions with 1,024 floats each has this size.
const MOST_BYTES: usize = 16 << 20;

/// Returns the initializers of the main graph and its subgraphs.
pub(super) fn initializers(model: &Model) -> FxHashSet<ValueId> {
    let graphs = live_graphs(model);
    graphs.iter().flat_map(|&graph| model.graph(graph).initializers().iter().copied()).collect()
}

/// Turns the constants that are added before a normalization into Constant nodes, except initializers of the file (`given`).
///
/// # Errors
/// The model is inconsistent.
pub(super) fn spell_addends(
    model: &mut Model,
    facts: &Facts,
    given: &FxHashSet<ValueId>,
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let (budget, taken) = (Budget::default(), Taken::default());
    for graph in live_graphs(model) {
        let opset = Opset::of(model, graph);
        let nodes: Vec<NodeId> = model.graph(graph).nodes().collect();
        let at = |id| constant_addend(&Place { model, facts, id, opset, budget: &budget, taken: &taken, avoided: &[] });
        let found: FxHashSet<ValueId> = nodes.into_iter().filter_map(at).collect();
        let mut found: Vec<ValueId> = found.into_iter().filter(|value| !given.contains(value)).collect();
        found.sort_unstable();
        let mut addends = Vec::new();
        for value in found.into_iter().filter(|&value| model.graph_of(value) == Some(graph)) {
            let bytes = model.value(value).constant_tensor().map(Tensor::byte_len);
            if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
                continue;
            }
            if !edits.take(ADDENDS, || format!("initializer '{}'", model.value(value).name)) {
                break;
            }
            addends.push(value);
        }
        make_nodes(model, &addends)?;
    }
    Ok(())
}

/// Turns the constants of one graph into Constant nodes, except those in `given`: functions have no initializers, and before version 4 of the file
/// format every initializer is an input. An initializer of an edit has no other spelling there, so this counts no edit.
///
/// # Errors
/// The model is inconsistent.
pub(super) fn spell_initializers(model: &mut Model, graph: GraphId, given: &FxHashSet<ValueId>) -> Result<(), Broken> {
    let held = model.graph(graph).initializers().iter().copied();
    let made: Vec<ValueId> = held.filter(|value| !given.contains(value)).collect();
    make_nodes(model, &made)
}

/// Turns the constants among these values into Constant nodes in their graphs.
fn make_nodes(model: &mut Model, values: &[ValueId]) -> Result<(), Broken> {
    let constant = |&value: &ValueId| match model.value(value).definition() {
        Definition::Initializer(graph) => Some((value, graph, model.value(value).constant_tensor()?.clone())),
        _ => None,
    };
    let constants: Vec<(ValueId, GraphId, Tensor)> = values.iter().filter_map(constant).collect();
    model.remove_initializers(&constants.iter().map(|&(value, ..)| value).collect());
    for (value, graph, tensor) in constants {
        model.add_node(graph, NewNode::new("Constant", []).with("value", tensor).output(value))?;
    }
    Ok(())
}
