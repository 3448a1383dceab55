//! Common subexpression elimination: merges nodes with equal results, and equal initializers.
//!
//! Law: a deterministic operator with equal attributes on equal operands, absent ones in the same places, gives equal results. Two operands may be
//! swapped if the operator commutes (the trait `commutes`). A subgraph may use earlier results of an outer graph, but not the reverse.
//!
//! The table of compared nodes is kept. In models without subgraphs and quantizations, whose exceptions depend on more, later calls only compare
//! changed nodes and initializers with the rest.
//!
//! Exceptions. A sequence, an optional or strings that a node with a subgraph reads get no further readers, and their readers are not moved: ONNX
//! Runtime moves such an operand into the subgraph instead of copying it, so that a later reader finds it empty. Quantizations of constants are not
//! merged, nor initializers of a subgraph that they read with those outside. No output is merged with a transposed and quantized value, see
//! [`is_quantized_turned`]. Under `--exact`, weights are kept where they are packed, see [`packing`].

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

/// The name of the pass, under which its edits are counted.
pub(super) const NAME: &str = "common-subexpression";

/// Merges nodes and initializers repeatedly.
#[derive(Default)]
pub struct Merging {
    seen: Seen,
}

impl Merging {
    /// Merges equal nodes and initializers of the main graph and its subgraphs. `changed` lists the changes since the last call, if they are known.
    /// With `exact`, results keep their bits.
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

/// Merges the changed nodes and initializers of the main graph, in a model without subgraphs whose nodes are in topological order. The edits are
/// those that a comparison of all nodes would make.
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

/// The nodes and tensors of the open graphs so far, by hash. Entries of a subgraph are dropped when it closes.
#[derive(Default)]
struct Seen {
    nodes: FxHashMap<u64, SmallVec<[NodeId; 2]>>,
    tensors: FxHashMap<u64, SmallVec<[ValueId; 2]>>,
    log: Vec<(bool, u64)>,
    /// Initializers of closed subgraphs, which may equal those of others. Those smaller than [`WORTH_SHARING`] are omitted.
    elsewhere: FxHashMap<u64, Vec<ValueId>>,
    /// Operands of nodes with subgraphs that must get no further readers.
    moved: FxHashSet<ValueId>,
    /// `true` if there are quantizations, whose operands may become constant without a change of the node.
    has_quantizations: bool,
    /// `true` if results must keep their bits.
    exact: bool,
}

impl Seen {
    /// Returns `true` if a node may be merged with another.
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

/// Returns the operands of nodes with subgraphs that a runtime may move into the subgraph.
fn moved(model: &Model, facts: &Facts) -> FxHashSet<ValueId> {
    let is_copied = |value: ValueId| facts.get(value).is_some_and(Fact::is_copied);
    let graphs = live_graphs(model);
    let nodes = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    let owners = nodes.filter(|node| node.subgraphs().next().is_some());
    owners.flat_map(|node| node.inputs().iter().flatten().copied()).filter(|&value| !is_copied(value)).collect()
}

// The verifier limits the nesting of graphs to 32, so the recursion is bounded.
fn in_graph(
    model: &mut Model,
    facts: &Facts,
    graph: GraphId,
    seen: &mut Seen,
    edits: &mut EditCounter,
) -> Result<(), Broken> {
    let mark = seen.log.len();
    // Most nodes and initializers are unique.
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

/// Merges a node into an equal one seen before, or records the node.
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

/// Merges equal nodes of the main graph before inference, so that repeated computations are inferred once: half of Longformer's nodes.
///
/// Leaves these to later passes: nodes with subgraphs, quantizations (their exceptions depend on constants), large constants, and results with a
/// declared type, which may be false or name a size.
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

/// Returns `true` if a node quantizes a constant, or a result computed only from constants. Such nodes are not merged: runtimes look for a separate
/// QuantizeLinear and DequantizeLinear at each reader.
fn is_quantized_constant(model: &Model, node: &Node) -> bool {
    let is_given = |value: ValueId| model.value(value).is_constant();
    let follows = |value: ValueId| {
        let producer = model.value(value).producer().and_then(|id| model.node(id));
        producer.is_some_and(|node| node.inputs().iter().flatten().all(|&value| is_given(value)))
    };
    is_quantization(node) && node.input(0).is_some_and(|value| is_given(value) || follows(value))
}

/// Rewires every reader of the second node's results to those of the first, and removes the second. Declines if the name of a graph output would need
/// an Identity. Also declines if a result must get no further readers, or a read of an operand must not move.
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
    // Facts inside a subgraph may hold only where the subgraph runs.
    let always = same_graph && gone.graph() == model.main();
    for &(gone, kept) in pairs.iter().filter(|_| always) {
        equal_sizes(facts, gone, kept);
    }
    edit.replace = pairs;
    model.apply(edit)?;
    Ok(())
}

/// Returns `true` if one of two values to merge is an output, and the other is transposed and quantized. ONNX Runtime would quantize the output, too.
fn turns_output(model: &Model, shown: ValueId, other: ValueId) -> bool {
    model.is_output(shown) && is_quantized_turned(model, other) && !is_quantized_turned(model, shown)
}

/// Records in the scope that two equal values have the same sizes: earlier facts may use the sizes of either.
fn equal_sizes(facts: &Facts, a: ValueId, b: ValueId) {
    let shape = |value| facts.get(value).and_then(Fact::shape);
    let (Some(a), Some(b)) = (shape(a), shape(b)) else { return };
    for (a, b) in a.iter().zip(b).filter(|(a, b)| a != b) {
        facts.scope().assume_eq(a, b);
    }
}

fn same(model: &Model, facts: &Facts, a: &Node, b: &Node) -> bool {
    // The number of results may determine their content, as for Split.
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

/// Returns `true` if two nodes of a commutative operator have each other's operands in swapped order.
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
        // The operands may be swapped.
        [Some(a), Some(b)] => (a.min(b), a.max(b)).hash(&mut hasher),
        ref inputs => inputs.hash(&mut hasher),
    }
    // Attributes may have any order, so their hashes are added up.
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

/// Larger constants, in bytes, are only compared as initializers.
const SMALL: usize = 256;

/// The most different tensors with equal samples that are compared; more are not merged.
const MOST_ALIKE: usize = 16;

/// Initializers of this many bytes in two subgraphs are merged into one of the root graph. Smaller ones are kept near their readers.
const WORTH_SHARING: usize = 256;

/// Merges the initializers of a graph, or only the `changed` ones, with equal ones. Adds those kept in a subgraph to `inner`. Returns the nodes with
/// new operands.
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
