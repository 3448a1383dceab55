//! Value numbering over contents: integer tensors that are proved to hold the same expressions are one value, whatever
//! computed them, and a vector that is a run of some tensor's dimensions is read off that tensor.
//!
//! Law: equal type, shape and elements, each element equal as an expression in the symbols, for every value of those. Tensors of
//! symbolic size are compared by the positions they count; where the numbers a Range would need are there,
//! `Range(a, b, d) + c = Range(a + c, b + c, d)`.

use rustc_hash::FxHashMap;

use super::dead::live_graphs;
use crate::dim::Dim;
use crate::ir::{Broken, Content, Edit, Facts, GraphId, Model, NewNode, Node, NodeId, Scalar, ValueId};
use crate::ops::{Budget, Opset};
use crate::rewrite::build::Build;
use crate::rewrite::{Place, Positions, Taken, positions};
use crate::tensor::{DType, Tensor};

/// Longer vectors are no shapes.
const MAX_LEN: usize = 64;

/// How many tensors are remembered for one dimension.
const MAX_SOURCES: usize = 8;

/// How many nodes are looked at to tell that a number does not depend on a tensor.
const MAX_ABOVE: usize = 64;

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
    let mut places: FxHashMap<Positions, ValueId> = FxHashMap::default();
    let mut shifted: Vec<Shifted> = Vec::new();
    let opset = Opset::of(model, graph);
    let looks = Looks { opset, budget: Budget::default(), taken: Taken::default() };
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
            let Some(key) = key(facts, value) else {
                let Some(counted) = counted(model, facts, id, value, &looks) else { continue };
                match places.get(&counted) {
                    Some(&known) => replaced += usize::from(unite(model, value, known)),
                    None => {
                        shifted.extend(shift(model, id, value, &counted));
                        places.insert(counted, value);
                    }
                }
                continue;
            };
            match first.get(&key) {
                Some(&known) if known != value => replaced += usize::from(unite(model, value, known)),
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
    for shifted in shifted {
        replaced += usize::from(start_elsewhere(model, facts, &first, shifted)?);
    }
    Ok(replaced)
}

/// Lets every reader of a value read one that holds the same.
fn unite(model: &mut Model, value: ValueId, known: ValueId) -> bool {
    let free = !model.is_named(value) && !model.users(value).is_empty();
    if free {
        model.replace_uses(value, known);
    }
    free
}

/// What a tensor of symbolic size counts.
fn counted(model: &Model, facts: &Facts, id: NodeId, value: ValueId, looks: &Looks) -> Option<Positions> {
    let fact = facts.get(value)?;
    let symbolic = fact.shape()?.iter().any(|dim| dim.as_const().is_none());
    if !symbolic || !matches!(fact.dtype()?, DType::Int64 | DType::Int32 | DType::Bool) {
        return None;
    }
    let Looks { opset, budget, taken } = looks;
    positions(&Place { model, facts, id, opset: *opset, budget, taken }, value)
}

/// What looking at a node takes.
struct Looks {
    opset: Opset,
    budget: Budget,
    taken: Taken,
}

/// A Range and the sum that moves it.
struct Shifted {
    sum: NodeId,
    range: NodeId,
    value: ValueId,
    start: Dim,
    step: i64,
    len: Dim,
}

/// A sum that only moves the start of a Range nothing else reads.
fn shift(model: &Model, id: NodeId, value: ValueId, counted: &Positions) -> Option<Shifted> {
    let node = model.node(id).filter(|node| node.is("Add") || node.is("Sub"))?;
    let ([len], [step]) = (&counted.shape[..], &counted.steps[..]) else { return None };
    let range = node.inputs().iter().flatten().find_map(|&operand| {
        let range = model.value(operand).producer()?;
        let is_range = model.node(range).is_some_and(|above| above.is("Range") && above.graph() == node.graph());
        let alone = model.is_read_only_by(operand, &[id]);
        (is_range && alone).then_some(range)
    })?;
    let step = step.as_const().filter(|step| *step != 0)?;
    let wide = counted.dtype == DType::Int64;
    wide.then(|| Shifted { sum: id, range, value, start: counted.offset.clone(), step, len: len.clone() })
}

/// Puts one Range in the place of both, if the numbers it starts and ends at are there.
fn start_elsewhere(
    model: &mut Model,
    facts: &Facts,
    first: &FxHashMap<Key, ValueId>,
    shifted: Shifted,
) -> Result<bool, Broken> {
    let Shifted { sum, range, value, start, step, len } = shifted;
    // Readers of another Range may have come to read this one meanwhile.
    let counted = model.node(range).and_then(|node| node.output(0));
    if !counted.is_some_and(|counted| model.is_read_only_by(counted, &[sum])) {
        return Ok(false);
    }
    let scope = facts.scope();
    let end = scope.add(&start, &scope.mul(&len, &Dim::constant(step)));
    let Some(mut edit) = Edit::at(model, sum) else { return Ok(false) };
    let mut operands = Vec::new();
    for number in [start, end, Dim::constant(step)] {
        let operand = match (number.as_const(), first.get(&(DType::Int64, Vec::new(), vec![number]))) {
            (Some(number), _) => edit.constant(value, "number", Tensor::scalar(number)),
            (None, Some(&known)) if is_apart(model, known, sum) => known,
            _ => return Ok(false),
        };
        operands.push(Some(operand));
    }
    let Some(name) = model.node(sum).map(|node| node.name.clone()) else { return Ok(false) };
    let node = NewNode::new("Range", operands).named(name).output(value);
    model.apply(edit.removing(sum).removing(range).inserting(node))?;
    Ok(true)
}

/// Whether a value is computed without a node.
fn is_apart(model: &Model, value: ValueId, from: NodeId) -> bool {
    let mut waiting = vec![value];
    let mut seen: Vec<NodeId> = Vec::new();
    while let Some(value) = waiting.pop() {
        let Some(id) = model.value(value).producer() else { continue };
        if id == from || seen.len() >= MAX_ABOVE {
            return false;
        }
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let Some(node) = model.node(id).filter(|node| node.subgraphs().next().is_none()) else { return false };
        waiting.extend(node.inputs().iter().flatten());
    }
    true
}

/// Where each dimension stands that a vector begins with which might be read off: tensors and their axes.
type Sources<'f> = FxHashMap<&'f Dim, Vec<(ValueId, usize)>>;

/// The dimensions to look out for, standing nowhere yet.
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
    let Some(mut edit) = Edit::at(model, id) else { return Ok(false) };
    let run = axis..axis.saturating_add(elements.len());
    let build = Build::after(&mut edit, Opset::of(model, node.graph()), value);
    let Some(shape) = build.shape_of_run(tensor, run) else { return Ok(false) };
    model.apply(edit.removing(id).inserting(shape.named(name).output(value)))?;
    Ok(true)
}

/// Whether the dimensions of `tensor` from `axis` on are `elements`.
fn is_run(facts: &Facts, tensor: ValueId, axis: usize, elements: &[Dim]) -> bool {
    let shape = facts.get(tensor).and_then(|fact| fact.shape());
    shape.and_then(|shape| shape.get(axis..)?.get(..elements.len())).is_some_and(|run| run == elements)
}
