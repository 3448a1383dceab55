//! Constant folding: replaces nodes whose results are all known by initializers, within a budget of bytes.
//!
//! A result becomes an initializer only if a kept node or an output reads it. If folding everything would add more bytes than allowed, the nodes that
//! would add most are kept. Their operands become initializers as far as the model does not grow. The kept nodes are retried when no other pass
//! applies.

use rustc_hash::{FxHashMap, FxHashSet};

use super::dead::live_graphs;
use super::edits::EditCounter;
use crate::ir::{
    Attribute, Broken, Constant, Data, Definition, Edit, Fact, Facts, Model, NewNode, Node, NodeId, Type, ValueId,
};
use crate::ops::traits::traits_of;
use crate::tensor::Tensor;

/// The largest size in bytes of a result that is never too large: a scalar, a shape.
const SMALL: usize = 256;

/// The name of the pass, under which its edits are counted.
const NAME: &str = "fold-constants";

/// Nodes that were not folded.
#[derive(Default)]
pub struct Kept {
    /// Nodes with a result above the size limit of a constant. This never changes.
    too_large: FxHashSet<NodeId>,
    /// Nodes whose results exceeded the growth budget at the last check.
    over_budget: FxHashSet<NodeId>,
}

impl Kept {
    /// Forgets the nodes over the budget: merged copies of a branch, an untaken branch, and removed readers let more be folded. Returns `true` if
    /// there were any.
    pub fn reconsider(&mut self) -> bool {
        let is_any = !self.over_budget.is_empty();
        self.over_budget.clear();
        is_any
    }

    fn contains(&self, id: NodeId) -> bool {
        self.too_large.contains(&id) || self.over_budget.contains(&id)
    }
}

/// Returns the bytes of the constants of the main graph and its subgraphs: initializers with readers, and tensors of Constant nodes.
pub fn bytes_held(model: &Model) -> usize {
    let mut bytes = 0usize;
    for graph in live_graphs(model) {
        for &value in model.graph(graph).initializers().iter().filter(|&&value| !model.is_unused(value)) {
            bytes = bytes.saturating_add(model.value(value).tensor().map_or(0, Tensor::byte_len));
        }
        for node in model.graph(graph).nodes().filter_map(|id| model.node(id)).filter(|node| node.is("Constant")) {
            bytes = bytes.saturating_add(bytes_of_attributes(node));
        }
    }
    bytes
}

/// Folds every node of the main graph and its subgraphs whose results are all known.
///
/// `growth` is the number of bytes by which the model may grow, without results of up to [`SMALL`] bytes. `largest` is the most bytes of a result
/// that the model does not contain. Returns the nodes kept because their results are too large, with the bytes of these.
pub fn fold(
    model: &mut Model,
    facts: &Facts,
    (growth, largest): (usize, usize),
    kept: &mut Kept,
    edits: &mut EditCounter,
) -> Vec<(NodeId, usize)> {
    let mut candidates: Vec<NodeId> = Vec::new();
    let mut too_large: Vec<(NodeId, usize)> = Vec::new();
    for graph in live_graphs(model) {
        for id in model.graph(graph).nodes() {
            if !kept.contains(id) && is_decided(model, facts, id) {
                match bytes_over(model, facts, id, largest) {
                    None => candidates.push(id),
                    Some(bytes) => too_large.push((id, bytes)),
                }
            }
        }
    }
    let mut decided: FxHashSet<NodeId> = candidates.iter().copied().collect();
    let mut declined = over_budget(model, facts, &candidates, &mut decided, growth);
    let before: Vec<NodeId> = kept.over_budget.iter().copied().collect();
    keep_beginnings(model, facts, &candidates, &mut decided, before, &mut declined);
    kept.over_budget.extend(declined.iter().map(|&(id, _)| id));
    kept.too_large.extend(too_large.iter().map(|&(id, _)| id));
    declined.append(&mut too_large);
    // Any subset of the candidates leaves the model consistent: a result that a kept node reads becomes an initializer.
    for &id in &candidates {
        if decided.contains(&id) && !edits.take(NAME, || model.describe(id)) {
            decided.remove(&id);
        }
    }
    // Removing a node with subgraphs removes the nodes in them, so some candidates may no longer exist.
    for id in candidates {
        if !decided.contains(&id) {
            continue;
        }
        let Some(node) = model.node(id) else { continue };
        let graph = node.graph();
        let outputs: Vec<ValueId> = node.outputs().iter().flatten().copied().collect();
        let wanted: Vec<(ValueId, Tensor)> = outputs
            .into_iter()
            .filter(|&value| must_exist(model, value, &decided))
            .filter_map(|value| Some((value, tensor_of(facts, value)?.clone())))
            .collect();
        model.remove_node(id);
        for (value, tensor) in wanted {
            // The value has just lost its producer, so nothing else defines it.
            let _ = model.add_initializer(graph, value, Constant::dense(tensor));
        }
    }
    declined
}

/// Returns `true` if all results with readers are known and can be initializers.
fn is_decided(model: &Model, facts: &Facts, id: NodeId) -> bool {
    let Some(node) = model.node(id) else { return false };
    if node.outputs().iter().flatten().all(|&value| tensor_of(facts, value).is_none()) {
        return false;
    }
    let mut wanted = node.outputs().iter().flatten().filter(|&&value| !model.is_unused(value)).peekable();
    wanted.peek().is_some() && wanted.all(|&value| tensor_of(facts, value).is_some() && !model.value(value).pinned)
}

/// Returns the bytes of the node's largest result if they exceed `largest`; `None` for a Constant, which holds it already.
fn bytes_over(model: &Model, facts: &Facts, id: NodeId, largest: usize) -> Option<usize> {
    let node = model.node(id).filter(|node| !node.is("Constant"))?;
    let bytes = node.outputs().iter().flatten().filter_map(|&value| tensor_of(facts, value)).map(Tensor::byte_len);
    bytes.max().filter(|bytes| *bytes > largest)
}

fn tensor_of(facts: &Facts, value: ValueId) -> Option<&Tensor> {
    facts.get(value).and_then(Fact::data).and_then(Data::tensor)
}

/// Returns `true` if the value is an output of its graph, or a node outside `decided` reads it.
fn must_exist(model: &Model, value: ValueId, decided: &FxHashSet<NodeId>) -> bool {
    model.is_output(value) || model.users(value).into_iter().any(|(user, _)| !decided.contains(&user))
}

/// Returns the bytes that folding `decided` frees: initializers without other readers, and tensors in the nodes' attributes.
fn freed(model: &Model, decided: &FxHashSet<NodeId>, candidates: &[NodeId]) -> usize {
    let mut seen = FxHashSet::default();
    let mut bytes = 0usize;
    for id in candidates.iter().filter(|id| decided.contains(id)) {
        let Some(node) = model.node(*id) else { continue };
        for &value in node.inputs().iter().flatten() {
            let place = model.value(value);
            let owned = matches!(place.definition(), Definition::Initializer(_));
            if owned && seen.insert(value) && !must_exist(model, value, decided) {
                bytes = bytes.saturating_add(place.tensor().map_or(0, Tensor::byte_len));
            }
        }
        bytes = bytes.saturating_add(bytes_of_attributes(node));
    }
    bytes
}

fn bytes_of_attributes(node: &Node) -> usize {
    let tensors = node.attributes.iter().filter_map(|attribute| match &attribute.value {
        Attribute::Tensor(tensor, _) => Some(tensor.byte_len()),
        _ => None,
    });
    tensors.fold(0, usize::saturating_add)
}

/// Returns the bytes that folding a node always frees: initializers that it alone reads, and the tensors in its attributes.
fn freed_by(model: &Model, node: &Node, id: NodeId) -> usize {
    let mut seen = FxHashSet::default();
    let owned = node.inputs().iter().flatten().filter(|&&value| {
        let is_its_own =
            matches!(model.value(value).definition(), Definition::Initializer(_)) && !model.is_output(value);
        // Avoids listing the readers of a value with many.
        is_its_own
            && seen.insert(value)
            && !model.has_more_readers(value, node.inputs().len())
            && model.users(value).into_iter().all(|(user, _)| user == id)
    });
    let bytes = owned.filter_map(|&value| model.value(value).tensor()).map(Tensor::byte_len);
    bytes.fold(bytes_of_attributes(node), usize::saturating_add)
}

/// The effect of folding `decided` on the bytes that the model holds.
struct Balance {
    /// The bytes of results that become initializers. `growing` has each such node with the growth it causes alone, and its bytes.
    stored: usize,
    growing: Vec<(usize, usize, NodeId)>,
    /// The bytes that are freed.
    freed: usize,
}

impl Balance {
    fn of(model: &Model, facts: &Facts, candidates: &[NodeId], decided: &FxHashSet<NodeId>) -> Balance {
        let mut balance = Balance { stored: 0, growing: Vec::new(), freed: freed(model, decided, candidates) };
        // Equal results are stored once.
        let mut seen: FxHashSet<u64> = FxHashSet::default();
        for &id in candidates.iter().filter(|id| decided.contains(id)) {
            let Some(node) = model.node(id) else { continue };
            let results = node.outputs().iter().flatten().filter(|&&value| must_exist(model, value, decided));
            let bytes = results.fold(0usize, |sum, &value| {
                let tensor = tensor_of(facts, value).filter(|tensor| seen.insert(tensor.hash_sample()));
                sum.saturating_add(tensor.map_or(0, |tensor| tensor.byte_len().saturating_sub(SMALL)))
            });
            balance.stored = balance.stored.saturating_add(bytes);
            if bytes > 0 {
                balance.growing.push((bytes.saturating_sub(freed_by(model, node, id)), bytes, id));
            }
        }
        balance
    }

    fn exceeds(&self, growth: usize) -> bool {
        self.stored > self.freed.saturating_add(growth)
    }

    /// Returns `true` if this balance leaves fewer bytes in the model than the other.
    fn is_less_than(&self, other: &Balance) -> bool {
        self.stored.saturating_add(other.freed) < other.stored.saturating_add(self.freed)
    }
}

/// The most, and always allowed, number of nodes with a separate decision.
const MOST_ROUNDS: usize = 256;
const LEAST_ROUNDS: usize = 8;

/// The most candidates that all decisions together visit. Each decision visits all candidates.
const MOST_LOOKS: usize = 1 << 17;

/// Returns the number of nodes with a separate decision among this many candidates.
fn rounds(candidates: usize) -> usize {
    MOST_ROUNDS.min(LEAST_ROUNDS + MOST_LOOKS / candidates.max(1))
}

/// Removes nodes from `decided`, those that add most first, until the rest fits the budget. Returns them with the bytes of their results.
fn over_budget(
    model: &Model,
    facts: &Facts,
    candidates: &[NodeId],
    decided: &mut FxHashSet<NodeId>,
    growth: usize,
) -> Vec<(NodeId, usize)> {
    let mut declined = Vec::new();
    // Each round removes a node with stored results, so the loop ends.
    loop {
        let balance = Balance::of(model, facts, candidates, decided);
        // The first of equals is removed.
        let most = balance.growing.iter().rev().max_by_key(|&&(growth, bytes, _)| (growth, bytes));
        let Some(&(_, bytes, id)) = most.filter(|_| balance.exceeds(growth)) else { return declined };
        decided.remove(&id);
        declined.push((id, bytes));
        if declined.len() > rounds(candidates.len()) {
            // After the last round, keeps every node with a large result, instead of a round for each.
            for &id in candidates {
                let large = model.node(id).is_some_and(|node| {
                    let results = node.outputs().iter().flatten();
                    results.into_iter().any(|&value| tensor_of(facts, value).is_some_and(|t| t.byte_len() > SMALL))
                });
                if large && decided.remove(&id) {
                    declined.push((id, 0));
                }
            }
            return declined;
        }
    }
}

/// Removes nodes from `decided` that are operands of a node declined now or `before`, if the model would hold more bytes with them. The budget is for
/// complete computations, and not for their first steps.
fn keep_beginnings(
    model: &Model,
    facts: &Facts,
    candidates: &[NodeId],
    decided: &mut FxHashSet<NodeId>,
    mut before: Vec<NodeId>,
    declined: &mut Vec<(NodeId, usize)>,
) {
    if before.is_empty() && declined.is_empty() {
        return;
    }
    before.sort_unstable();
    let mut readers: Vec<NodeId> = before.into_iter().chain(declined.iter().map(|&(id, _)| id)).collect();
    let mut balance = Balance::of(model, facts, candidates, decided);
    let mut looks = 0;
    // A node declined here may only have declined readers, so its operands are visited as well.
    while let Some(reader) = readers.pop() {
        let operands = model.node(reader).map(|node| node.inputs().to_vec()).unwrap_or_default();
        for id in operands.into_iter().flatten().filter_map(|value| model.value(value).producer()) {
            if looks == rounds(candidates.len()) {
                return;
            }
            if !decided.contains(&id) {
                continue;
            }
            let grown = balance.growing.iter().find(|&&(_, _, other)| other == id);
            let Some(bytes) = grown.map(|&(_, bytes, _)| bytes).filter(|_| decided.remove(&id)) else { continue };
            looks += 1;
            let without = Balance::of(model, facts, candidates, decided);
            if without.is_less_than(&balance) {
                readers.push(id);
                declined.push((id, bytes));
                balance = without;
            } else {
                decided.insert(id);
            }
        }
    }
}

/// Replaces nodes whose result is a known sequence or optional by one node that builds it from initializers, because no initializer can be one.
///
/// # Errors
/// The model is inconsistent.
pub fn fold_containers(model: &mut Model, facts: &Facts, edits: &mut EditCounter) -> Result<(), Broken> {
    for graph in live_graphs(model) {
        for id in model.graph(graph).nodes().collect::<Vec<_>>() {
            let Some(node) = model.node(id) else { continue };
            if node.outputs().len() != 1 {
                continue;
            }
            let Some(value) = node.output(0) else { continue };
            let Some(fact) = facts.get(value) else { continue };
            let (Some(data), Some(ty)) = (fact.data().filter(|data| data.tensor().is_none()), &fact.ty) else {
                continue;
            };
            if is_plain_container(model, node) || model.is_unused(value) {
                continue;
            }
            let (data, ty) = (data.clone(), ty.clone());
            if !edits.allows_more() {
                return Ok(());
            }
            if let Some(edit) = container(model, id, value, &data, &ty) {
                edits.take("fold-containers", || model.describe(id));
                model.apply(edit)?;
            }
        }
    }
    Ok(())
}

/// Returns `true` if a node already builds a sequence or optional from initializers.
fn is_plain_container(model: &Model, node: &Node) -> bool {
    let constant = |value: &Option<ValueId>| value.is_some_and(|value| model.value(value).is_constant());
    traits_of(model, node).makes_container && node.inputs().iter().all(constant)
}

/// Returns the edit that builds `value` from initializers, if it is a sequence of tensors (also an empty one) or an optional with a tensor.
fn container(model: &Model, id: NodeId, value: ValueId, data: &Data, ty: &Type) -> Option<Edit> {
    let (operator, items): (&str, Vec<&Tensor>) = match data {
        Data::Sequence(items) if items.is_empty() => ("SequenceEmpty", Vec::new()),
        Data::Sequence(items) => ("SequenceConstruct", items.iter().map(Data::tensor).collect::<Option<_>>()?),
        Data::Optional(Some(item)) => ("Optional", vec![item.tensor()?]),
        _ => return None,
    };
    if items.iter().map(|item| item.byte_len()).sum::<usize>() > MAX_CONTAINER {
        return None;
    }
    let dtype = match ty {
        Type::Sequence(Some(elem)) => elem.as_tensor().and_then(|elem| elem.dtype),
        _ => None,
    };
    let mut edit = Edit::at(model, id)?.removing(id);
    let mut inputs = Vec::with_capacity(items.len());
    for item in items {
        inputs.push(Some(edit.constant(value, "item", item.clone())));
    }
    let mut node = NewNode::new(operator, inputs).output(value);
    if operator == "SequenceEmpty" {
        node = node.with("dtype", dtype?);
    }
    Some(edit.inserting(node))
}

/// The most bytes of a container that is built from initializers.
const MAX_CONTAINER: usize = 16 << 10;

/// Replaces a small known result by an initializer for its readers, if other results of its node are unknown.
pub fn fold_partly(model: &mut Model, facts: &Facts, edits: &mut EditCounter) {
    let mut found: FxHashMap<ValueId, Tensor> = FxHashMap::default();
    let mut order = Vec::new();
    for graph in live_graphs(model) {
        for id in model.graph(graph).nodes() {
            let Some(node) = model.node(id).filter(|node| node.outputs().len() > 1) else { continue };
            let unknown = node
                .outputs()
                .iter()
                .flatten()
                .any(|&value| !model.is_unused(value) && tensor_of(facts, value).is_none());
            if !unknown {
                continue;
            }
            for &value in node.outputs().iter().flatten() {
                let small = tensor_of(facts, value).filter(|tensor| tensor.byte_len() <= SMALL);
                if let Some(tensor) = small.filter(|_| !model.users(value).is_empty()) {
                    found.insert(value, tensor.clone());
                    order.push((graph, value));
                }
            }
        }
    }
    for (graph, value) in &order {
        let Some(tensor) = found.remove(value) else { continue };
        if !edits.take("fold-results", || format!("'{}'", model.value(*value).name)) {
            return;
        }
        let constant = model.new_value(&format!("{}_folded", model.value(*value).name));
        if model.add_initializer(*graph, constant, Constant::dense(tensor)).is_ok() {
            model.replace_uses(*value, constant);
        }
    }
}
