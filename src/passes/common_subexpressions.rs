//! Common subexpressions: nodes that compute the same from the same become one, and initializers that hold the same.
//!
//! Law: a deterministic operator of equal attributes on equal operands, absent ones in the same places, gives equal
//! results; two operands may change places where the operator commutes (the trait `commutes`). A subgraph may use what a graph around it computes before; the other way round it may not.
//!
//! What was compared is kept, so that after the first time only nodes and initializers that have changed are compared with the rest, in
//! models without bodies and without quantizations, whose exceptions depend on more.
//!
//! Exceptions. A sequence, an optional or strings that a node with a body reads get no further readers, and those they have stay where they are:
//! ONNX Runtime moves such an operand into the body instead of copying it, so that a later reader finds it empty. Quantizations of constants stay apart, and what they read
//! in a body stays in it. No output is merged with what is transposed and quantized, see [`is_quantized_turned`]. Under `--exact` weights stay
//! where they are packed, see [`packing`].

use std::collections::BTreeSet;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::dead::live_graphs;
use super::edits::EditCounter;
use super::packing;
use super::quantization::is_quantization_operand;
use crate::dim::Scope;
use crate::ir::{Attribute, Broken, Definition, Edit, Fact, Facts, GraphId, Model, Node, NodeId, Part, ValueId};
use crate::ops::operator_of;
use crate::ops::traits::traits_of;
use crate::rewrite::{is_quantization, is_quantized_turned};

/// The pass's name, under which its edits are counted.
pub(super) const NAME: &str = "common-subexpression";

/// Merges nodes and initializers, time and again.
#[derive(Default)]
pub struct Merging {
    seen: Seen,
}

impl Merging {
    /// Merges equal nodes and initializers of the main graph and its subgraphs. `changed` is what has changed since this was called last,
    /// if that is known. If `exact`, results have the same bits afterwards.
    ///
    /// # Errors
    /// The model is inconsistent.
    pub fn merge(
        &mut self,
        model: &mut Model,
        facts: &Facts,
        changed: Option<Vec<Part>>,
        exact: bool,
        edits: &mut EditCounter,
    ) -> Result<(), Broken> {
        let main = model.main();
        let is_local = !model.has_subgraphs() && !self.seen.has_quantizations;
        let few = changed.filter(|parts| is_local && parts.len() < model.graph(main).node_count());
        match few.filter(|_| model.is_in_file_order(main)) {
            Some(changed) => again(model, facts, &changed, &mut self.seen, edits),
            None => {
                self.seen = Seen { moved: moved(model, facts), exact, ..Seen::default() };
                in_graph(model, facts, main, &mut self.seen, edits)
            }
        }
    }
}

/// Merges what has changed in the main graph of a model without subgraphs, whose nodes are in an order to compute in: the edits are those that
/// looking at all nodes would make.
fn again(
    model: &mut Model,
    facts: &Facts,
    changed: &[Part],
    seen: &mut Seen,
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let main = model.main();
    let mut nodes: Vec<NodeId> = Vec::new();
    let mut constants: FxHashSet<ValueId> = FxHashSet::default();
    for &part in changed {
        match part {
            Part::Node(id) => nodes.push(id),
            Part::Value(value) if model.value(value).definition() == Definition::Initializer(main) => {
                constants.insert(value);
            }
            _ => {}
        }
    }
    if !constants.is_empty() {
        nodes.extend(initializers(model, main, Some(&constants), (seen, &mut Vec::new()), edits));
    }
    let stand = |model: &Model, id: NodeId| {
        let is_here = model.node(id).is_some_and(|node| node.graph() == main);
        model.order_of(id).filter(|_| is_here).map(|order| (order, id))
    };
    let mut open: BTreeSet<((u32, u32), NodeId)> = nodes.into_iter().filter_map(|id| stand(model, id)).collect();
    while let Some((order, id)) = open.pop_first() {
        let Some(node) = model.node(id).filter(|node| seen.may_merge(model, node)) else { continue };
        let hash = hash_of(node);
        let found = seen.nodes.get(&hash).into_iter().flatten().copied();
        let is_same =
            |other: &NodeId| *other != id && model.node(*other).is_some_and(|other| same(model, facts, other, node));
        let alike: Vec<_> = found.filter(is_same).filter_map(|other| stand(model, other)).collect();
        match alike.iter().filter(|&&other| other < (order, id)).min() {
            Some(&(_, first)) => {
                let outputs: Vec<ValueId> = node.outputs().iter().flatten().copied().collect();
                let readers: Vec<_> = outputs.into_iter().flat_map(|value| model.users(value)).collect();
                unite(model, facts, &seen.moved, (first, id), edits)?;
                open.extend(readers.into_iter().filter_map(|(reader, _)| stand(model, reader)));
            }
            None => {
                seen.note_node(hash, id);
                open.extend(alike);
            }
        }
    }
    Ok(())
}

/// What the open graphs have computed so far, by hash. Entries of a subgraph are dropped when it closes.
#[derive(Default)]
struct Seen {
    nodes: FxHashMap<u64, SmallVec<[NodeId; 2]>>,
    tensors: FxHashMap<u64, SmallVec<[ValueId; 2]>>,
    log: Vec<(bool, u64)>,
    /// Initializers of subgraphs that are closed, which those of others may equal. Smaller ones than [`WORTH_SHARING`] are not kept.
    elsewhere: FxHashMap<u64, Vec<ValueId>>,
    /// Operands of nodes with bodies that must get no further readers.
    moved: FxHashSet<ValueId>,
    /// Whether there are quantizations, which may come to read constants without being changed.
    has_quantizations: bool,
    /// Whether results must have the same bits afterwards.
    exact: bool,
}

impl Seen {
    /// Whether a node may become one with another.
    fn may_merge(&mut self, model: &Model, node: &Node) -> bool {
        self.has_quantizations |= is_quantization(node);
        operator_of(model, node).is_some_and(|operator| operator.deterministic) && !is_quantized_constant(model, node)
    }

    fn note_node(&mut self, hash: u64, id: NodeId) {
        let alike = self.nodes.entry(hash).or_default();
        if !alike.contains(&id) {
            alike.push(id);
            self.log.push((true, hash));
        }
    }

    fn close(&mut self, mark: usize) {
        for (is_node, hash) in self.log.drain(mark..).rev() {
            if is_node {
                self.nodes.get_mut(&hash).map(SmallVec::pop);
            } else {
                self.tensors.get_mut(&hash).map(SmallVec::pop);
            }
        }
    }
}

/// The operands of nodes with bodies that a runtime may move into the body.
fn moved(model: &Model, facts: &Facts) -> FxHashSet<ValueId> {
    let is_copied = |value: ValueId| facts.get(value).is_some_and(Fact::is_copied);
    let graphs = live_graphs(model);
    let nodes = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    let owners = nodes.filter(|node| node.subgraphs().next().is_some());
    owners.flat_map(|node| node.inputs().iter().flatten().copied()).filter(|&value| !is_copied(value)).collect()
}

// Graphs nest at most 32 deep, which the verifier has checked, so recursion is bounded.
fn in_graph(
    model: &mut Model,
    facts: &Facts,
    graph: GraphId,
    seen: &mut Seen,
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let mark = seen.log.len();
    // Most nodes and initializers are one of a kind.
    seen.nodes.reserve(model.graph(graph).node_count());
    seen.tensors.reserve(model.graph(graph).initializers().len());
    let mut own = Vec::new();
    initializers(model, graph, None, (seen, &mut own), edits);
    for id in model.topological(graph)? {
        let Some(node) = model.node(id) else { continue };
        let inner: Vec<GraphId> = node.subgraphs().collect();
        if !inner.is_empty() {
            for graph in inner {
                in_graph(model, facts, graph, seen, edits)?;
            }
            continue;
        }
        if seen.may_merge(model, node) {
            merge_node(model, facts, id, seen, edits)?;
        }
    }
    if graph != model.main() {
        seen.close(mark);
        for (hash, value) in own {
            let alike = seen.elsewhere.entry(hash).or_default();
            if alike.len() < MOST_ALIKE {
                alike.push(value);
            }
        }
    }
    Ok(())
}

/// Lets one that was seen before stand for a node, or notes the node.
fn merge_node(
    model: &mut Model,
    facts: &Facts,
    id: NodeId,
    seen: &mut Seen,
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let Some(node) = model.node(id) else { return Ok(()) };
    let hash = hash_of(node);
    let first = seen.nodes.get(&hash).and_then(|found| {
        let exact = seen.exact;
        let keeps_bits = |other: &Node| !exact || packing::may_stand_in(model, node, other.graph());
        let is_same = |other: &Node| same(model, facts, other, node) && keeps_bits(other);
        found.iter().copied().find(|&other| model.node(other).is_some_and(is_same))
    });
    match first {
        Some(first) => unite(model, facts, &seen.moved, (first, id), edits),
        None => {
            seen.note_node(hash, id);
            Ok(())
        }
    }
}

/// Merges equal nodes of the main graph before anything is known of values, so that what a file computes many times is inferred once: half of
/// Longformer's nodes.
///
/// Others are left to later passes: nodes with bodies, quantizations (their exceptions ask what is constant), large constants, and results
/// that the file declares a type of, which may be false or name a size.
///
/// # Errors
/// The graph has a cycle.
pub fn merge_first(model: &mut Model, exact: bool, edits: &mut EditCounter) -> Result<(), Broken> {
    let facts = Facts::new(Rc::new(Scope::new()));
    let mut seen = Seen { moved: moved(model, &facts), exact, ..Seen::default() };
    seen.nodes.reserve(model.graph(model.main()).node_count());
    for id in model.topological(model.main())? {
        let Some(node) = model.node(id) else { continue };
        let is_large = |attribute: &Attribute| match attribute {
            Attribute::Tensor(tensor, _) => tensor.byte_len() > SMALL,
            _ => false,
        };
        let waits = node.subgraphs().next().is_some()
            || is_quantization(node)
            || node.attributes.iter().any(|held| is_large(&held.value))
            || node.outputs().iter().flatten().any(|&value| model.value(value).declared.is_some());
        if !waits && seen.may_merge(model, node) {
            merge_node(model, &facts, id, &mut seen, edits)?;
        }
    }
    Ok(())
}

/// Whether a node quantizes a constant, or a result computed from constants alone. Such nodes are not merged: runtimes look for a QuantizeLinear and
/// a DequantizeLinear of its own at each reader.
fn is_quantized_constant(model: &Model, node: &Node) -> bool {
    let is_given = |value: ValueId| model.value(value).is_constant();
    let follows = |value: ValueId| {
        let producer = model.value(value).producer().and_then(|id| model.node(id));
        producer.is_some_and(|node| node.inputs().iter().flatten().all(|&value| is_given(value)))
    };
    is_quantization(node) && node.input(0).is_some_and(|value| is_given(value) || follows(value))
}

/// Lets every reader of the second node's results read those of the first, and removes the second. Declines where the name of a graph
/// output would need an Identity, where a result must get no further readers, and where an operand must be read where it is.
fn unite(
    model: &mut Model,
    facts: &Facts,
    moved: &FxHashSet<ValueId>,
    (first, second): (NodeId, NodeId),
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let (Some(kept), Some(gone)) = (model.node(first), model.node(second)) else { return Ok(()) };
    let same_graph = kept.graph() == gone.graph();
    let pairs: Vec<(ValueId, ValueId)> =
        gone.outputs().iter().zip(kept.outputs()).filter_map(|(gone, kept)| Some(((*gone)?, (*kept)?))).collect();
    if pairs.iter().any(|&(gone, kept)| model.is_named(gone) && (model.is_named(kept) || !same_graph))
        || pairs.iter().any(|(gone, kept)| moved.contains(gone) || moved.contains(kept))
        || gone.inputs().iter().flatten().any(|operand| moved.contains(operand))
        || pairs.iter().any(|&(gone, kept)| turns_output(model, gone, kept) || turns_output(model, kept, gone))
    {
        return Ok(());
    }
    let Some(mut edit) = Edit::at(model, second) else { return Ok(()) };
    if !edits.take(NAME, || model.describe(second)) {
        return Ok(());
    }
    edit.remove.push(second);
    // What is known inside a body may hold only where the body runs.
    let always = same_graph && gone.graph() == model.main();
    for &(gone, kept) in pairs.iter().filter(|_| always) {
        equal_sizes(facts, gone, kept);
    }
    edit.replace = pairs;
    model.apply(edit)?;
    Ok(())
}

/// Whether one of two values that become one is an output, and the other is turned and quantized, which ONNX Runtime would show as well.
fn turns_output(model: &Model, shown: ValueId, other: ValueId) -> bool {
    model.is_output(shown) && is_quantized_turned(model, other) && !is_quantized_turned(model, shown)
}

/// Tells the scope that two values that are the same have the same sizes: facts that were derived before may speak of the sizes of
/// either.
fn equal_sizes(facts: &Facts, a: ValueId, b: ValueId) {
    let shape = |value| facts.get(value).and_then(Fact::shape);
    let (Some(a), Some(b)) = (shape(a), shape(b)) else { return };
    for (a, b) in a.iter().zip(b).filter(|(a, b)| a != b) {
        facts.scope().assume_eq(a, b);
    }
}

fn same(model: &Model, facts: &Facts, a: &Node, b: &Node) -> bool {
    // How many results a node lists may decide what they are: Split parts by it.
    let present = a.outputs().len() == b.outputs().len()
        && a.outputs().iter().zip(b.outputs()).all(|(a, b)| a.is_some() || b.is_none());
    present
        && a.op_type == b.op_type
        && a.canonical_domain() == b.canonical_domain()
        && a.overload == b.overload
        && (a.inputs() == b.inputs() || are_swapped(model, facts, a, b))
        && a.attributes.len() == b.attributes.len()
        && a.attributes.iter().all(|held| b.attribute(&held.name).is_some_and(|other| held.value.same(other)))
        && (a.graph() == b.graph() || model.opset(a.graph(), &a.domain) == model.opset(b.graph(), &b.domain))
}

/// Returns `true` if the two operands of a node are those of another of the same operator in the other order, which makes no difference.
fn are_swapped(model: &Model, facts: &Facts, a: &Node, b: &Node) -> bool {
    let (&[Some(first), Some(second)], &[own, other]) = (a.inputs(), b.inputs()) else { return false };
    let dtype = facts.get(first).and_then(Fact::dtype);
    let commutes = |opset| traits_of(model, a).commutes_for(dtype, opset);
    (own, other) == (Some(second), Some(first)) && model.opset(a.graph(), &a.domain).is_some_and(commutes)
}

fn hash_of(node: &Node) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    node.op_type.hash(&mut hasher);
    node.canonical_domain().hash(&mut hasher);
    match *node.inputs() {
        // The operands may change places.
        [Some(a), Some(b)] => (a.min(b), a.max(b)).hash(&mut hasher),
        ref inputs => inputs.hash(&mut hasher),
    }
    // Attributes may come in any order, so their hashes are added up.
    let attributes = node.attributes.iter().fold(0u64, |sum, held| {
        let mut hasher = rustc_hash::FxHasher::default();
        held.name.hash(&mut hasher);
        match &held.value {
            Attribute::Int(value) => value.hash(&mut hasher),
            Attribute::Ints(values) => values.hash(&mut hasher),
            Attribute::Float(value) => value.to_bits().hash(&mut hasher),
            Attribute::String(value) => value.hash(&mut hasher),
            Attribute::Tensor(tensor, _) => tensor.hash_content().hash(&mut hasher),
            _ => {}
        }
        sum.wrapping_add(hasher.finish())
    });
    attributes.hash(&mut hasher);
    hasher.finish()
}

/// Constants of more bytes are compared when they are initializers.
const SMALL: usize = 256;

/// How many different tensors of one sample are told apart; more are left alone.
const MOST_ALIKE: usize = 16;

/// Initializers of so many bytes in two bodies become one of the root graph; smaller ones may stay beside their readers.
const WORTH_SHARING: usize = 256;

/// Merges the initializers of a graph, or those of them that have changed, with equal ones. `inner` gets what is kept in a subgraph. Returns the nodes that read others now.
fn initializers(
    model: &mut Model,
    graph: GraphId,
    changed: Option<&FxHashSet<ValueId>>,
    (seen, inner): (&mut Seen, &mut Vec<(u64, ValueId)>),
    edits: &mut EditCounter,
) -> Vec<NodeId> {
    let mut gone = FxHashSet::default();
    let mut readers = Vec::new();
    let is_wanted = |value: &ValueId| changed.is_none_or(|changed| changed.contains(value));
    let values: Vec<ValueId> = model.graph(graph).initializers().iter().copied().filter(is_wanted).collect();
    for value in values {
        let place = model.value(value);
        let Some(tensor) = place.constant_tensor().filter(|_| !model.is_output(value)) else { continue };
        let hash = tensor.hash_sample();
        let stays = graph != model.main() && is_quantization_operand(model, value);
        let is_near = |other: ValueId| !stays || model.graph_of(other) == Some(graph);
        let is_same = |other: ValueId| {
            is_near(other) && model.value(other).constant_tensor().is_some_and(|other| other.same(tensor))
        };
        let exact = seen.exact;
        let may_be_held = |home: Option<GraphId>, weight: ValueId| {
            !exact || home.is_some_and(|home| packing::may_be_held_by(model, weight, home))
        };
        let may_become = |other: ValueId| is_same(other) && may_be_held(model.graph_of(other), value);
        let visible = seen.tensors.get(&hash);
        let first = visible.and_then(|found| found.iter().copied().find(|&other| other != value && may_become(other)));
        let root = Some(model.root(graph));
        let may_join = |other: ValueId| is_same(other) && may_be_held(root, other) && may_be_held(root, value);
        let apart = || seen.elsewhere.get(&hash).and_then(|found| found.iter().copied().find(|&other| may_join(other)));
        let (first, hidden) = match first {
            None => (apart(), true),
            visible => (visible, false),
        };
        match first {
            Some(first) => {
                if !edits.take(NAME, || format!("initializer '{}'", model.value(value).name)) {
                    break;
                }
                if hidden {
                    model.raise_initializer(first);
                    seen.tensors.entry(hash).or_default().insert(0, first);
                }
                readers.extend(model.users(value).into_iter().map(|(reader, _)| reader));
                model.replace_uses(value, first);
                gone.insert(value);
            }
            None => {
                let alike = seen.tensors.entry(hash).or_default();
                if alike.len() < MOST_ALIKE && !alike.contains(&value) {
                    alike.push(value);
                    seen.log.push((false, hash));
                    if graph != model.main() && !stays && tensor.byte_len() >= WORTH_SHARING {
                        inner.push((hash, value));
                    }
                }
            }
        }
    }
    model.remove_initializers(&gone);
    readers
}
