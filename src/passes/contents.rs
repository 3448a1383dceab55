//! Value numbering over contents: integer tensors that are proved to hold the same expressions are one value, whatever
//! computed them, and a vector that is a run of some tensor's dimensions is read off that tensor.
//!
//! Law: equal type, shape and elements, each element equal as an expression in the symbols, for every value of those.

use rustc_hash::FxHashMap;

use super::dead::live_graphs;
use crate::dim::Dim;
use crate::ir::{Broken, Content, Edit, Facts, GraphId, Model, NewNode, Node, NodeId, Scalar, ValueId};
use crate::tensor::DType;

/// Longer vectors are no shapes.
const MAX_LEN: usize = 64;

/// How many tensors are remembered for one dimension.
const MAX_SOURCES: usize = 8;

type Key = (DType, Vec<usize>, Vec<Dim>);

/// Merges values of equal symbolic content in the main graph and its subgraphs. Returns how many were replaced.
///
/// # Errors
/// The model is inconsistent.
pub fn number(model: &mut Model, facts: &Facts) -> Result<usize, Broken> {
    let mut replaced = 0;
    for graph in live_graphs(model) {
        replaced += in_graph(model, facts, graph)?;
    }
    Ok(replaced)
}

fn key(facts: &Facts, value: ValueId) -> Option<Key> {
    let fact = facts.get(value)?;
    if fact.data().is_some() {
        return None;
    }
    let elements = fact.ints().filter(|elements| elements.len() <= MAX_LEN && !elements.is_empty())?;
    Some((fact.dtype()?, fact.static_shape()?, elements))
}

fn in_graph(model: &mut Model, facts: &Facts, graph: GraphId) -> Result<usize, Broken> {
    let mut first: FxHashMap<Key, ValueId> = FxHashMap::default();
    let mut sources = sources(model, facts, graph);
    let mut replaced = 0;
    for &value in model.graph(graph).inputs() {
        note_source(facts, value, &mut sources);
        if let Some(key) = key(facts, value) {
            first.entry(key).or_insert(value);
        }
    }
    for id in model.topological(graph)? {
        let Some(node) = model.node(id) else { continue };
        let outputs: Vec<ValueId> = node.outputs().iter().flatten().copied().collect();
        for &value in &outputs {
            let Some(key) = key(facts, value) else { continue };
            match first.get(&key) {
                Some(&known) if known != value => {
                    if !model.is_output(value) && !model.value(value).pinned && !model.users(value).is_empty() {
                        model.replace_uses(value, known);
                        replaced += 1;
                    }
                }
                Some(_) => {}
                None => {
                    replaced += usize::from(read_off(model, facts, id, value, &key, &sources)?);
                    first.insert(key, value);
                }
            }
        }
        for &value in &outputs {
            note_source(facts, value, &mut sources);
        }
    }
    Ok(replaced)
}

/// Where each dimension stands that a vector begins with which might be read off: tensors and their axes.
type Sources<'f> = FxHashMap<&'f Dim, Vec<(ValueId, usize)>>;

/// The dimensions to look out for, standing nowhere yet.
fn sources<'f>(model: &Model, facts: &'f Facts, graph: GraphId) -> Sources<'f> {
    let mut sources = Sources::default();
    if model.opset(graph, "").unwrap_or(0) < SHAPE_OF_A_RUN {
        return sources;
    }
    for node in model.graph(graph).nodes().filter_map(|id| model.node(id)).filter(|node| is_readable(node)) {
        let fact = node.output(0).and_then(|value| facts.get(value)).filter(|fact| fact.data().is_none());
        let vector =
            fact.filter(|fact| fact.dtype() == Some(DType::Int64) && fact.shape().is_some_and(|dims| dims.len() == 1));
        let Some(Content::Elements(elements)) = vector.and_then(|fact| fact.content.as_ref()) else { continue };
        if let Some(first) = elements.first().and_then(Scalar::as_int).filter(|dim| dim.as_const().is_none()) {
            sources.entry(first).or_default();
        }
    }
    sources
}

/// Since this version of the operator set Shape takes a range of axes.
const SHAPE_OF_A_RUN: i64 = 15;

/// Whether a node could be replaced by a Shape.
fn is_readable(node: &Node) -> bool {
    node.outputs().len() == 1 && !node.is("Shape")
}

/// Remembers the tensor under each dimension a shape read off it could begin with.
fn note_source(facts: &Facts, value: ValueId, sources: &mut Sources<'_>) {
    if sources.is_empty() {
        return;
    }
    let Some(shape) = facts.get(value).and_then(|fact| fact.shape()) else { return };
    for (axis, dim) in shape.iter().enumerate() {
        if let Some(known) = sources.get_mut(dim).filter(|known| known.len() < MAX_SOURCES) {
            known.push((value, axis));
        }
    }
}

/// Computes a vector of dimensions by one Shape of a tensor that has them in a row, when something longer computes it now.
fn read_off(
    model: &mut Model,
    facts: &Facts,
    id: NodeId,
    value: ValueId,
    key: &Key,
    sources: &Sources<'_>,
) -> Result<bool, Broken> {
    let (dtype, shape, elements) = key;
    let Some(node) = model.node(id) else { return Ok(false) };
    let is_vector = *dtype == DType::Int64 && shape.len() == 1;
    if !is_vector || !is_readable(node) {
        return Ok(false);
    }
    let Some(candidates) = elements.first().and_then(|dim| sources.get(dim)) else { return Ok(false) };
    let found = candidates.iter().copied().find(|&(tensor, axis)| is_run(facts, tensor, axis, elements));
    let Some((tensor, axis)) = found else { return Ok(false) };
    let name = node.name.clone();
    let Some(edit) = Edit::at(model, "shape-read-off", id) else { return Ok(false) };
    let (Ok(start), Ok(end)) = (i64::try_from(axis), i64::try_from(axis.saturating_add(elements.len()))) else {
        return Ok(false);
    };
    let node = NewNode::new("Shape", [Some(tensor)]).with("start", start).with("end", end).named(name).output(value);
    model.apply(edit.removing(id).inserting(node))?;
    Ok(true)
}

/// Whether the dimensions of `tensor` from `axis` on are `elements`.
fn is_run(facts: &Facts, tensor: ValueId, axis: usize, elements: &[Dim]) -> bool {
    let shape = facts.get(tensor).and_then(|fact| fact.shape());
    shape.and_then(|shape| shape.get(axis..)?.get(..elements.len())).is_some_and(|run| run == elements)
}
