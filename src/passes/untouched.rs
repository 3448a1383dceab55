//! Nodes that are left exactly as they are, with what computes their operands.
//!
//! A node that cannot work, or of which runtimes and the standard's text disagree, may still be in a model that runs: in a branch that
//! is not taken, in a body that does not run, on the way to a result that nobody asks for, or because the runtime is lax.
//! Runtimes infer shapes when they load a model, and refuse it where they see that such a node cannot work, or settle on a
//! shape that the run then does not have. Whether they see it depends on which operands are constants. So operands that
//! nodes compute are not folded into initializers, even if they are known, and no rule looks at such a node.
//!
//! Shapes flow through nodes whose results nobody knows, too: a Reshape with a constant for a target has a rank, and rows that a Loop stacks
//! have one more than what is computed of constants in its body. So everything that a node which cannot work is computed from stays, as well
//! as what the bodies on the way hold; except where the node cannot work whatever its operands are, which shapes tell nobody. Of what is computed
//! from its results the known operands stay. A disputed node is common in models that work, so there only what is known stays as well.

use rustc_hash::FxHashSet;

use super::dead::{graphs_below, live_graphs};
use super::rows::{always_runs, collects_rows, has_unlike_branches, never_runs, telling_rows};
use crate::ir::{Fact, Facts, GraphId, Model, Node, NodeId, ValueId};
use crate::ops::{Event, EventKind, Opset};

/// The nodes that are not to be touched, as far as the walks have told.
#[derive(Default)]
pub struct Untouched {
    /// Those that cannot work or are disputed.
    sources: FxHashSet<NodeId>,
    /// Those of them that ONNX Runtime must be told no more of: nodes that cannot work, Loops that never run, before operator set 11 Ifs of unlike
    /// branches, and Resizes by an open number of sizes.
    broken: FxHashSet<NodeId>,
    /// The Loops for the sake of whose rows nodes stay.
    telling: FxHashSet<NodeId>,
    /// What computes these rows.
    rows: FxHashSet<NodeId>,
    /// The sources, the nodes that those which cannot work are computed from, and the nodes with known results that compute operands of disputed
    /// ones. A node once found stays here until `let_go`: `hold` forgets what is known of its results, so a later call could not find it
    /// again.
    nodes: FxHashSet<NodeId>,
}

impl Untouched {
    /// Takes note of what a walk told.
    pub fn note(&mut self, event: &Event) {
        if matches!(event.kind, EventKind::Invalid | EventKind::Disputed) {
            self.sources.insert(event.node);
        }
        if event.kind == EventKind::Invalid {
            self.broken.insert(event.node);
        }
    }

    /// The nodes that cannot work, and others whose operands' shapes ONNX Runtime must not be told.
    pub fn broken(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.broken.iter().copied().collect();
        nodes.sort_unstable();
        nodes
    }

    /// Begins anew if one of the nodes is gone for whose sake others stay. Returns what those compute, to be inferred again.
    pub fn let_go(&mut self, model: &Model) -> Vec<ValueId> {
        if self.sources.is_empty() && self.telling.is_empty() {
            return Vec::new();
        }
        // What is inside a node that is gone stays in the model, but in no graph that is live.
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

    /// Whether a node is not to be touched.
    pub fn contains(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    /// Whether a node computes rows of a Loop that may have none, by which ONNX Runtime tells their shape.
    pub fn tells_rows(&self, node: NodeId) -> bool {
        self.rows.contains(&node)
    }

    /// Whether a node of a body, or of one inside it, cannot work.
    pub fn has_broken(&self, model: &Model, body: GraphId) -> bool {
        let mut nodes = graphs_below(model, body).into_iter().flat_map(|graph| model.graph(graph).nodes());
        !self.broken.is_empty() && nodes.any(|node| self.broken.contains(&node))
    }

    /// Notes the nodes whose operands tell ONNX Runtime shapes that it then gives or checks: rows of Loops that may not run, and all that Loops
    /// read that never run; before operator set 11, branches that differ; and what a Resize reads whose number of sizes is open, which
    /// ONNX Runtime takes for 0.
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

    /// Finds what is to stay beside such nodes, and forgets the contents of its results, so that nothing is folded. To be called after
    /// each walk, with the nodes that cannot work whatever their operands are.
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
        // A Loop that never runs may itself compute what another of them reads.
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

/// The nodes that read what others compute, directly or by way of others, and all in the bodies of these. ONNX Runtime may take the results of a
/// node that cannot work for another shape than they have, and whether it then refuses a reader depends on whether what else that reads is
/// constant.
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

/// Whether a node resizes by a vector of sizes, or of scales, whose length is not known.
fn counts_openly(facts: &Facts, node: &Node) -> bool {
    let is_open = |value: &ValueId| {
        let fact = facts.get(*value);
        fact.is_some_and(|fact| !matches!(fact.shape(), Some([length]) if length.as_const().is_some()))
    };
    (node.is("Resize") || node.is("Upsample")) && node.inputs().iter().skip(1).flatten().any(is_open)
}

/// Whether it is known which branch an If takes: the other one goes, and nothing is compared any more.
fn is_decided(facts: &Facts, node: &Node) -> bool {
    node.input(0).and_then(|condition| facts.get(condition)).is_some_and(|fact| fact.data().is_some())
}

/// Every value that nodes are computed from, in the graphs they stand in and in bodies on the way.
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
            // What a body is given depends on the node that holds it.
            let holder = || model.graph_of(value).and_then(|graph| model.graph(graph).parent());
            open.extend(model.value(value).producer().or_else(holder).filter(|&node| seen.insert(node)));
        }
    }
    found
}
