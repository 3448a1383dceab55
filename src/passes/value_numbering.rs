//! Value numbering: merges values that are proved to have the same integers, whatever their producers.
//!
//! Law: two integer tensors of the same element type and shape, whose elements are equal as expressions in the symbols, are equal for every value of
//! the symbols. Tensors of symbolic size are compared by their counting pattern (see [`crate::rewrite::positions`]): an offset, and a step along each
//! axis.

use rustc_hash::FxHashMap;

use super::dead::live_graphs;
use super::edits::EditCounter;
use super::untouched::Untouched;
use crate::dim::Dim;
use crate::ir::{Broken, Facts, GraphId, Model, NodeId, ValueId};
use crate::ops::{Budget, Opset};
use crate::rewrite::{Place, Positions, Taken, positions};
use crate::tensor::DType;

/// The name of the pass, under which its edits are counted.
pub(super) const NAME: &str = "value-numbering";

/// The most elements of a vector that may be a shape.
const MAX_LEN: usize = 64;

/// The key of values with known content: element type, shape and elements.
type Key = (DType, Vec<usize>, Vec<Dim>);

/// Merges values of equal symbolic content in the main graph and its subgraphs. Results of untouched nodes are not merged, because a runtime may know
/// more of the other value's shape.
///
/// # Errors
/// The model is inconsistent.
pub fn number(model: &mut Model, facts: &Facts, untouched: &Untouched, edits: &mut EditCounter) -> Result<(), Broken> {
    for graph in live_graphs(model) {
        in_graph(model, (facts, untouched), graph, edits)?;
    }
    Ok(())
}

fn key(facts: &Facts, value: ValueId) -> Option<Key> {
    let fact = facts.get(value)?;
    if fact.data().is_some() {
        return None;
    }
    let elements = fact.ints().filter(|elements| elements.len() <= MAX_LEN && !elements.is_empty())?;
    Some((fact.dtype()?, fact.static_shape()?, elements))
}

fn in_graph(
    model: &mut Model,
    (facts, untouched): (&Facts, &Untouched),
    graph: GraphId,
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let mut first: FxHashMap<Key, ValueId> = FxHashMap::default();
    let mut counting: FxHashMap<Positions, ValueId> = FxHashMap::default();
    let opset = Opset::of(model, graph);
    let looks = Looks { opset, budget: Budget::default(), taken: Taken::default() };
    for &value in model.graph(graph).inputs() {
        if let Some(key) = key(facts, value) {
            first.entry(key).or_insert(value);
        }
    }
    for id in model.topological(graph)? {
        let Some(node) = model.node(id).filter(|_| !untouched.contains(id)) else { continue };
        for value in node.outputs().iter().flatten().copied().collect::<Vec<_>>() {
            let known = match key(facts, value) {
                Some(key) => *first.entry(key).or_insert(value),
                None => match counted(model, facts, id, value, &looks) {
                    Some(counted) => *counting.entry(counted).or_insert(value),
                    None => continue,
                },
            };
            if known != value {
                unite(model, value, known, edits);
            }
        }
    }
    Ok(())
}

/// Rewires every reader of a value to an equal one.
fn unite(model: &mut Model, value: ValueId, known: ValueId, edits: &mut EditCounter) {
    let is_free = !model.is_named(value) && !model.users(value).is_empty();
    if is_free && edits.take(NAME, || format!("'{}'", model.value(value).name)) {
        model.replace_uses(value, known);
    }
}

/// Returns the counting pattern of a tensor of symbolic size.
fn counted(model: &Model, facts: &Facts, id: NodeId, value: ValueId, looks: &Looks) -> Option<Positions> {
    let fact = facts.get(value)?;
    let symbolic = fact.shape()?.iter().any(|dim| dim.as_const().is_none());
    if !symbolic || !matches!(fact.dtype()?, DType::Int64 | DType::Int32 | DType::Bool) {
        return None;
    }
    let Looks { opset, budget, taken } = looks;
    positions(&Place { model, facts, id, opset: *opset, budget, taken, avoided: &[] }, value)
}

/// The context for matching positions at a node.
struct Looks {
    opset: Opset,
    budget: Budget,
    taken: Taken,
}
