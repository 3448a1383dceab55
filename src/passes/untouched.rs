//! Selects the nodes that are kept exactly as they are, with the producers of their operands.
//!
//! An invalid node, or one that runtimes and the standard interpret differently, may be in a model that runs. The branch of the node may not be
//! taken, its subgraph may not run, its result may be unused, or the runtime may be lax. Runtimes infer shapes when they load a model. They reject it
//! if they see that such a node is invalid, or assume a shape that the run does not have. The detection depends on the operands that are constants.
//! So known operands of such a node are not folded into initializers, and no rule edits it.
//!
//! Shapes flow through nodes with unknown results, too: a Reshape with a constant target has a rank, and stacked rows of a Loop have one more axis
//! than their constant source in the subgraph. So all ancestors of an invalid node are kept, with the subgraphs on the way, unless the node is
//! invalid whatever its operands are. For nodes that depend on its results, known operands are kept. Disputed nodes are common in models that run, so
//! only their known operands are kept.

use rustc_hash::FxHashSet;

use super::dead::{graphs_below, live_graphs};
use super::rows::{always_runs, collects_rows, has_unlike_branches, never_runs, telling_rows};
use crate::ir::{Fact, Facts, GraphId, Model, Node, NodeId, ValueId};
use crate::ops::{Event, EventKind, Opset};

/// The nodes that must not be edited, as found by the walks so far.
#[derive(Default)]
pub struct Untouched {
    /// The invalid and disputed nodes.
    sources: FxHashSet<NodeId>,
    /// Those about which ONNX Runtime must not learn more: invalid nodes, Loops that never run, before operator set 11 Ifs with different branches,
    /// and Resizes by an unknown number of sizes.
    broken: FxHashSet<NodeId>,
    /// The Loops for whose rows nodes are kept.
    telling: FxHashSet<NodeId>,
    /// The nodes that compute these rows.
    rows: FxHashSet<NodeId>,
    /// The sources, the ancestors of invalid nodes, and the nodes with known results that are operands of disputed ones. A node is kept here until
    /// `let_go`: `hold` forgets the facts about its results, so a later call could not find it again.
    nodes: FxHashSet<NodeId>,
}

impl Untouched {
    /// Records an event of a walk.
    pub fn note(&mut self, event: &Event) {
        if matches!(event.kind, EventKind::Invalid | EventKind::Disputed) {
            self.sources.insert(event.node);
        }
        if event.kind == EventKind::Invalid {
            self.broken.insert(event.node);
        }
    }

    /// Returns the invalid nodes, and others whose operand shapes ONNX Runtime must not learn.
    pub fn broken(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.broken.iter().copied().collect();
        nodes.sort_unstable();
        nodes
    }

    /// Starts over if a source was removed. Returns the results of the nodes kept for it, to be inferred again.
    pub fn let_go(&mut self, model: &Model) -> Vec<ValueId> {
        if self.sources.is_empty() && self.telling.is_empty() {
            return Vec::new();
        }
        // The inner nodes of a removed node are still in the model, but in no live graph.
        let graphs: FxHashSet<GraphId> = live_graphs(model).into_iter().collect();
        let is_there = |id: &NodeId| model.node(*id).is_some_and(|node| graphs.contains(&node.graph()));
        if self.sources.iter().chain(&self.telling).all(is_there) {
            return Vec::new();
        }
        self.sources.retain(is_there);
        self.broken.retain(is_there);
        self.telling.retain(is_there);
        self.rows.clear();
        let mut held: Vec<NodeId> = std::mem::take(&mut self.nodes).into_iter().collect();
        held.sort_unstable();
        let held = held.into_iter().filter(|id| !self.sources.contains(id)).filter_map(|id| model.node(id));
        held.flat_map(|node| node.outputs().iter().flatten()).copied().collect()
    }

    /// Returns `true` if a node must not be edited.
    pub fn contains(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    /// Returns `true` if ONNX Runtime infers the shape of a Loop's rows, of which there may be none, from a node.
    pub fn tells_rows(&self, node: NodeId) -> bool {
        self.rows.contains(&node)
    }

    /// Returns `true` if a subgraph or one inside it has an invalid node.
    pub fn has_broken(&self, model: &Model, body: GraphId) -> bool {
        let mut nodes = graphs_below(model, body).into_iter().flat_map(|graph| model.graph(graph).nodes());
        !self.broken.is_empty() && nodes.any(|node| self.broken.contains(&node))
    }

    /// Records the nodes from whose operands ONNX Runtime infers shapes that it returns or checks: rows of Loops that may not run, and everything
    /// that Loops read which never run. Before operator set 11, also branches that differ. Also operands of a Resize with an unknown number of sizes,
    /// which ONNX Runtime reads as 0.
    fn note_shapes_told(&mut self, model: &Model, facts: &Facts) {
        for graph in live_graphs(model) {
            let differing = Opset::of(model, graph).version() < 11;
            for id in model.graph(graph).nodes() {
                let Some(node) = model.node(id) else { continue };
                if node.is("Loop") && collects_rows(model, node) && !always_runs(facts, node) {
                    if never_runs(facts, node) {
                        self.sources.insert(id);
                        self.broken.insert(id);
                    }
                    let telling = telling_rows(model, facts, node);
                    if !telling.is_empty() {
                        self.telling.insert(id);
                    }
                    self.rows.extend(&telling);
                    self.nodes.extend(telling);
                } else if differing && has_unlike_branches(model, facts, node) && !is_decided(facts, node)
                    || counts_openly(facts, node)
                {
                    self.sources.insert(id);
                    self.broken.insert(id);
                }
            }
        }
    }

    /// Finds the nodes to keep for such nodes, and forgets the contents of their results, so that they are not folded. Must be called after each
    /// walk, with the nodes that are invalid whatever their operands are (`hopeless`).
    pub fn hold(&mut self, model: &Model, facts: &mut Facts, hopeless: &FxHashSet<NodeId>) {
        self.note_shapes_told(model, facts);
        if self.sources.is_empty() && self.nodes.is_empty() {
            return;
        }
        self.nodes.extend(self.sources.iter().copied());
        let mut open: Vec<NodeId> = self.nodes.iter().copied().collect();
        open.extend(readers_of(model, &self.broken));
        open.sort_unstable();
        while let Some(node) = open.pop().and_then(|id| model.node(id)) {
            for &operand in node.inputs().iter().flatten() {
                let Some(producer) = model.value(operand).producer() else { continue };
                if facts.get(operand).is_some_and(|fact| fact.data().is_some()) && self.nodes.insert(producer) {
                    open.push(producer);
                }
            }
        }
        let mut broken = self.broken();
        broken.retain(|node| !hopeless.contains(node));
        let broken = computed_from(model, &broken);
        self.nodes.extend(broken.iter().filter_map(|&value| model.value(value).producer()));
        let producers = self.nodes.iter().filter(|id| !self.sources.contains(id)).filter_map(|&id| model.node(id));
        let mut results: Vec<ValueId> = producers.flat_map(|node| node.outputs().iter().flatten()).copied().collect();
        // A Loop that never runs may compute an operand of another one.
        let read = self.broken.iter().filter_map(|&id| model.node(id)).flat_map(|node| node.inputs().iter().flatten());
        let of_source = |&&value: &&ValueId| model.value(value).producer().is_some_and(|id| self.sources.contains(&id));
        results.extend(read.filter(of_source));
        results.sort_unstable();
        for value in results {
            let Some(ty) = facts.get(value).and_then(|fact| fact.ty.clone()) else { continue };
            facts.set(value, Fact::of(ty));
        }
    }
}

/// Returns the transitive readers of nodes' results, and all nodes in the subgraphs of these. ONNX Runtime may infer a wrong shape for a result of an
/// invalid node. Whether it then rejects a reader depends on which other operands of that reader are constants.
pub fn readers_of(model: &Model, nodes: &FxHashSet<NodeId>) -> FxHashSet<NodeId> {
    let mut found = FxHashSet::default();
    let mut open: Vec<NodeId> = nodes.iter().copied().collect();
    while let Some(node) = open.pop().and_then(|id| model.node(id)) {
        let readers = node.outputs().iter().flatten().flat_map(|&value| model.users(value)).map(|(id, _)| id);
        let holder = model.graph(node.graph()).parent();
        let inner = node.subgraphs().flat_map(|body| model.graph(body).nodes());
        open.extend(readers.chain(holder).chain(inner).filter(|&id| found.insert(id)));
    }
    found
}

/// Returns `true` if a node resizes by a vector of sizes or scales of unknown length.
fn counts_openly(facts: &Facts, node: &Node) -> bool {
    let is_open = |value: &ValueId| {
        let fact = facts.get(*value);
        fact.is_some_and(|fact| !matches!(fact.shape(), Some([length]) if length.as_const().is_some()))
    };
    (node.is("Resize") || node.is("Upsample")) && node.inputs().iter().skip(1).flatten().any(is_open)
}

/// Returns `true` if the taken branch of an If is known: the other one is removed, and no shapes are compared.
fn is_decided(facts: &Facts, node: &Node) -> bool {
    node.input(0).and_then(|condition| facts.get(condition)).is_some_and(|fact| fact.data().is_some())
}

/// Returns all ancestors of nodes, in their graphs and in subgraphs on the way.
pub fn computed_from(model: &Model, nodes: &[NodeId]) -> FxHashSet<ValueId> {
    let mut found = FxHashSet::default();
    let mut open = nodes.to_vec();
    let mut seen: FxHashSet<NodeId> = nodes.iter().copied().collect();
    while let Some(node) = open.pop().and_then(|id| model.node(id)) {
        let mut read: Vec<ValueId> = node.inputs().iter().flatten().copied().collect();
        let mut bodies: Vec<GraphId> = node.subgraphs().collect();
        while let Some(body) = bodies.pop() {
            read.extend(model.graph(body).outputs());
            for inner in model.graph(body).nodes().filter_map(|id| model.node(id)) {
                read.extend(inner.inputs().iter().flatten());
                bodies.extend(inner.subgraphs());
            }
        }
        for value in read.into_iter().filter(|&value| found.insert(value)) {
            // Inputs of a subgraph depend on its owner.
            let holder = || model.graph_of(value).and_then(|graph| model.graph(graph).parent());
            open.extend(model.value(value).producer().or_else(holder).filter(|&node| seen.insert(node)));
        }
    }
    found
}
