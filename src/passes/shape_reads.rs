//! Reads vectors of consecutive dims by one Shape instead of computing them, and reads shapes after operators that runtimes fuse.
//!
//! Law: `[d_i, …, d_(j-1)] = Shape(x, start = i, end = j)` where `x` has the shape `[d_0, …, d_(n-1)]`, each size equal as an expression in the
//! symbols.
//!
//! This pass needs no search and runs in every round; [`super::chains`] plans the remaining sizes.
//!
//! Law: `Shape(x) = Shape(f(x))` where `f(x)` has the shape of `x`. A product or convolution and the function after it are fused only if the values
//! between them have no other consumer. So the shape is read from the last such value.

use rustc_hash::{FxHashMap, FxHashSet};

use super::chains::{holder_in, is_inside_a_quantized_group};
use super::dead::live_graphs;
use super::edits::EditCounter;
use super::untouched::Untouched;
use crate::dim::Dim;
use crate::ir::{Broken, Content, Edit, Facts, GraphId, Model, Node, NodeId, Scalar, ValueId};
use crate::ops::traits::traits_of;
use crate::ops::{Opset, is_strided};
use crate::rewrite::build::Build;
use crate::tensor::DType;

/// The name of the pass, under which its edits are counted.
pub(super) const NAME: &str = "shape-read-off";

/// The name of the pass that reads shapes later.
pub(super) const BEHIND: &str = "shape-behind-function";

/// The most elements of a vector that may be a shape.
const MAX_LEN: usize = 64;

/// The most tensors that are recorded for one dim.
const MAX_SOURCES: usize = 8;

/// Reads vectors of sizes from tensors, in the main graph and its subgraphs.
///
/// # Errors
/// The model is inconsistent.
pub fn read_off(model: &mut Model, facts: &Facts, edits: &mut EditCounter) -> Result<(), Broken> {
    for graph in live_graphs(model) {
        in_graph(model, facts, graph, edits)?;
    }
    Ok(())
}

fn in_graph(model: &mut Model, facts: &Facts, graph: GraphId, edits: &mut EditCounter) -> Result<(), Broken> {
    let mut sources = sources(model, facts, graph);
    if sources.is_empty() {
        return Ok(());
    }
    // Value numbering merges a vector that exists already.
    let mut known: FxHashSet<Vec<Dim>> = FxHashSet::default();
    for &value in model.graph(graph).inputs() {
        note_source(model, facts, value, &mut sources);
        known.extend(sizes(facts, value));
    }
    for id in model.topological(graph)? {
        let Some(node) = model.node(id) else { continue };
        let outputs: Vec<ValueId> = node.outputs().iter().flatten().copied().collect();
        for &value in &outputs {
            let Some(elements) = sizes(facts, value) else { continue };
            if known.insert(elements.clone()) {
                read(model, facts, id, value, &elements, &sources, edits)?;
            }
        }
        for &value in &outputs {
            note_source(model, facts, value, &mut sources);
        }
    }
    Ok(())
}

/// Returns the expressions in a vector, if the vector could be a part of a shape.
fn sizes(facts: &Facts, value: ValueId) -> Option<Vec<Dim>> {
    let fact = facts.get(value).filter(|fact| fact.data().is_none() && fact.dtype() == Some(DType::Int64))?;
    fact.shape().filter(|shape| shape.len() == 1)?;
    fact.ints().filter(|elements| elements.len() <= MAX_LEN && !elements.is_empty())
}

/// The places of each dim that a readable vector begins with: tensors and their axes.
type Sources<'f> = FxHashMap<&'f Dim, Vec<(ValueId, usize)>>;

/// Returns the first dims of readable vectors, without places yet.
fn sources<'f>(model: &Model, facts: &'f Facts, graph: GraphId) -> Sources<'f> {
    let mut sources = Sources::default();
    if !Opset::of(model, graph).shape_of_a_run() {
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

/// Returns `true` if a Shape could replace a node.
fn is_readable(node: &Node) -> bool {
    node.outputs().len() == 1 && !node.is("Shape")
}

/// Records a tensor as a source of each dim that a readable vector begins with.
fn note_source(model: &Model, facts: &Facts, value: ValueId, sources: &mut Sources<'_>) {
    if sources.is_empty() || is_inside_a_quantized_group(model, value) || is_strided(model, facts, value) {
        return;
    }
    let Some(shape) = facts.get(value).and_then(|fact| fact.shape()) else { return };
    for (axis, dim) in shape.iter().enumerate() {
        if let Some(known) = sources.get_mut(dim).filter(|known| known.len() < MAX_SOURCES) {
            known.push((value, axis));
        }
    }
}

/// Computes a vector of dims by one Shape of a tensor with these consecutive dims, unless its node is a Shape already.
fn read(
    model: &mut Model,
    facts: &Facts,
    id: NodeId,
    value: ValueId,
    elements: &[Dim],
    sources: &Sources<'_>,
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let Some(node) = model.node(id).filter(|node| is_readable(node)) else { return Ok(()) };
    let Some(candidates) = elements.first().and_then(|dim| sources.get(dim)) else { return Ok(()) };
    let found = candidates.iter().copied().find(|&(tensor, axis)| is_run(facts, tensor, axis, elements));
    let Some((tensor, axis)) = found else { return Ok(()) };
    let name = node.name.clone();
    let Some(mut edit) = Edit::at(model, id) else { return Ok(()) };
    let run = axis..axis.saturating_add(elements.len());
    let build = Build::after(&mut edit, Opset::of(model, node.graph()), value);
    let Some(shape) = build.shape_of_run(tensor, run) else { return Ok(()) };
    if !edits.take(NAME, || model.describe(id)) {
        return Ok(());
    }
    model.apply(edit.removing(id).inserting(shape.named(name).output(value)))?;
    Ok(())
}

/// Returns `true` if the dims of `tensor` from `axis` on are `elements`.
fn is_run(facts: &Facts, tensor: ValueId, axis: usize, elements: &[Dim]) -> bool {
    let shape = facts.get(tensor).and_then(|fact| fact.shape());
    shape.and_then(|shape| shape.get(axis..)?.get(..elements.len())).is_some_and(|run| run == elements)
}

/// Reads shapes after functions that runtimes fuse with the producer of their operand, in the main graph and its subgraphs.
///
/// # Errors
/// The model is inconsistent.
pub fn read_behind(
    model: &mut Model,
    (facts, untouched): (&Facts, &Untouched),
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    for graph in live_graphs(model) {
        let order = model.topological(graph)?;
        let places: FxHashMap<NodeId, usize> = order.iter().enumerate().map(|(place, &id)| (id, place)).collect();
        for &id in order.iter().filter(|id| !untouched.contains(**id)) {
            let Some(later) = behind(model, facts, &places, id) else { continue };
            let Some(mut edit) = Edit::at(model, id).filter(|_| edits.take(BEHIND, || model.describe(id))) else {
                continue;
            };
            edit.rewire.push((id, 0, Some(later)));
            model.apply(edit)?;
        }
    }
    Ok(())
}

/// Returns a value after functions with the shape that a node reads from a value before them.
fn behind(model: &Model, facts: &Facts, places: &FxHashMap<NodeId, usize>, id: NodeId) -> Option<ValueId> {
    let node = model.node(id).filter(|&node| traits_of(model, node).of_shape)?;
    let value = node.input(0)?;
    let producer = model.node(model.value(value).producer()?).filter(|other| other.graph() == node.graph())?;
    if !traits_of(model, producer).fused_with_next {
        return None;
    }
    // In topological order, a function before all dependents of the shape does not depend on the shape.
    let readers = node.outputs().iter().flatten().flat_map(|&output| model.users(output));
    let first = readers.filter_map(|(reader, _)| places.get(&holder_in(model, node.graph(), reader))).min();
    let (mut last, mut best) = (value, value);
    while let Some((function, result)) = only_function(model, facts, node.graph(), last) {
        let is_free = |other: &ValueId| *other == last || model.value(*other).producer().is_none();
        let is_alone = model.node(function)?.inputs().iter().flatten().all(is_free);
        if !is_alone && places.get(&function).is_none_or(|place| first.is_some_and(|first| place >= first)) {
            break;
        }
        last = result;
        if !is_inside_a_quantized_group(model, last) {
            best = last;
        }
    }
    (best != value).then_some(best)
}

/// Returns the only function that reads the elements of a value, and its result of the same type and shape.
fn only_function(model: &Model, facts: &Facts, graph: GraphId, value: ValueId) -> Option<(NodeId, ValueId)> {
    let mut found = None;
    for (reader, _) in model.users(value) {
        let node = model.node(reader)?;
        if traits_of(model, node).of_shape || found == Some(reader) {
            continue;
        }
        if found.replace(reader).is_some() {
            return None;
        }
    }
    let function = found.filter(|_| !model.is_output(value))?;
    let node = model.node(function).filter(|node| node.graph() == graph && node.outputs().len() == 1)?;
    let pointwise = traits_of(model, node).pointwise?;
    let result = node.output(0)?;
    let [before, after] = [facts.get(value)?, facts.get(result)?];
    let is_same = before.shape().is_some() && before.shape() == after.shape() && before.dtype() == after.dtype();
    (is_same && pointwise.meets(Opset::of(model, graph))).then_some((function, result))
}
