//! The cost model of unrolling: estimates the nodes that remain of a subgraph after a copy for each iteration.

use rustc_hash::{FxHashMap, FxHashSet};

use super::repeated::{Needed, Repeated};
use crate::ir::{DeclaredType, Fact, Facts, GraphId, Model, Node, NodeId, Type, ValueId};
use crate::ops::operator_of;
use crate::passes::dead::graphs_below;
use crate::rewrite::is_quantization;

/// The most nodes of a subgraph that is analyzed: each carried value may cause a visit of all nodes.
const MOST_NODES: usize = 256;

/// The most elements of a result that is always folded.
const MOST_ELEMENTS: usize = 1024;

/// The fate of a value when a subgraph is unrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A constant, the same in all iterations.
    Constant,
    /// A constant in each iteration.
    Numbered,
    /// Computed once for all iterations.
    Once,
    /// Computed in each iteration.
    Each,
}

/// The kinds of the values of a subgraph.
pub(super) struct Cost {
    /// The number of nodes of the subgraph, including its subgraphs.
    pub(super) nodes: usize,
    kinds: FxHashMap<ValueId, Kind>,
    needed: Needed,
    /// The subgraph's results without the condition, each with `true` if it has readers outside.
    results: Vec<(ValueId, bool)>,
}

impl Cost {
    /// Analyzes a subgraph with the `wanted` results. Returns `None` if it is large, or if copies of a node may behave differently from the repeated
    /// node.
    pub(super) fn of(model: &Model, facts: &Facts, repeated: &Repeated, wanted: &[bool]) -> Option<Cost> {
        let body = repeated.body;
        let graphs = graphs_below(model, body);
        let nodes = graphs.iter().map(|&graph| model.graph(graph).node_count()).sum();
        if nodes > MOST_NODES || !may_be_copied(model, facts, repeated, &graphs) {
            return None;
        }
        let outputs = model.graph(body).outputs().get(repeated.carried_outputs()..)?;
        let wanted = wanted.iter().copied().chain(std::iter::repeat(false));
        let results: Vec<(ValueId, bool)> = outputs.iter().copied().zip(wanted).collect();
        let states: Vec<ValueId> = model.graph(body).inputs().iter().skip(repeated.leading).copied().collect();
        let states = states.get(..repeated.initial.len())?;
        let needed = Needed::in_any(model, body, states, std::iter::empty(), &results);
        let mut cost = Cost { nodes, kinds: FxHashMap::default(), needed, results };
        cost.inputs(model, facts, repeated);
        let order = model.topological(body).ok()?;
        while {
            order.iter().for_each(|&id| cost.node(model, facts, body, id));
            cost.carries_on(model, repeated)
        } {}
        Some(cost)
    }

    /// Returns the number of nodes that remain after this many iterations.
    pub(super) fn unrolled(&self, model: &Model, trips: usize, repeated: &Repeated, node: &Node) -> usize {
        let body = model.graph(repeated.body);
        let of_node = |id: NodeId| {
            let Some(node) = model.node(id) else { return 0 };
            let kind = node.outputs().iter().flatten().map(|value| self.kind(*value)).max();
            let inside: usize = node
                .subgraphs()
                .flat_map(|graph| graphs_below(model, graph))
                .collect::<Vec<_>>()
                .into_iter()
                .map(|graph| model.graph(graph).node_count())
                .sum();
            match kind {
                Some(Kind::Constant | Kind::Numbered) => 0,
                Some(Kind::Once) => 1,
                _ => trips * (1 + inside),
            }
        };
        let unneeded: FxHashSet<NodeId> = self.needed.unneeded.iter().copied().collect();
        let nodes: usize = body.nodes().filter(|id| !unneeded.contains(id)).map(of_node).sum();
        let sliced = body.inputs().iter().skip(repeated.leading + repeated.initial.len());
        let sliced = sliced.filter(|input| self.needed.values.contains(input) && self.kind(**input) == Kind::Each);
        let mut taken = FxHashSet::default();
        let put_out = |(index, (&(output, wanted), result)): (usize, (&(ValueId, bool), &Option<ValueId>))| {
            let named = result.is_some_and(|result| model.is_named(result));
            let is_stacked = index >= repeated.initial.len();
            let is_constant = self.kind(output) <= Kind::Numbered;
            match () {
                () if !wanted => 0,
                // One node for the part of each iteration, and one for the whole.
                () if is_stacked && !is_constant => trips + 1,
                // Its producer takes the result's name, unless the producer has another already.
                () => usize::from(named && (is_constant || self.kind(output) != Kind::Each || !taken.insert(output))),
            }
        };
        let put_out: usize = self.results.iter().zip(node.outputs()).enumerate().map(put_out).sum();
        nodes + trips * sliced.count() + put_out
    }

    /// Returns the kind of a value. Values from outside of the subgraph are the same in all iterations, or constants.
    fn kind(&self, value: ValueId) -> Kind {
        self.kinds.get(&value).copied().unwrap_or(Kind::Once)
    }

    fn inputs(&mut self, model: &Model, facts: &Facts, repeated: &Repeated) {
        let is_known = |value| facts.get(value).is_some_and(|fact| fact.data().is_some());
        let inputs = model.graph(repeated.body).inputs();
        let leading = inputs.iter().take(repeated.leading).map(|&input| (input, Kind::Numbered));
        let states = inputs
            .iter()
            .skip(repeated.leading)
            .zip(&repeated.initial)
            .map(|(&input, &initial)| (input, if is_known(initial) { Kind::Constant } else { Kind::Once }));
        let scans = inputs.iter().skip(repeated.leading + repeated.initial.len()).zip(&repeated.sliced);
        let scans =
            scans.map(|(&input, &(operand, _))| (input, if is_known(operand) { Kind::Numbered } else { Kind::Each }));
        self.kinds.extend(leading.chain(states).chain(scans));
        for graph in graphs_below(model, repeated.body) {
            for id in model.graph(graph).nodes() {
                let Some(node) = model.node(id) else { continue };
                for value in node.inputs().iter().flatten().filter(|value| is_known(**value)) {
                    self.kinds.entry(*value).or_insert(Kind::Constant);
                }
            }
        }
    }

    /// Computes the kinds of a node's results from those of its operands.
    fn node(&mut self, model: &Model, facts: &Facts, body: GraphId, id: NodeId) {
        let Some(node) = model.node(id) else { return };
        let captured: Vec<ValueId> = node.subgraphs().flat_map(|graph| model.captures(graph)).collect();
        let read = || node.inputs().iter().flatten().chain(&captured);
        let reads = |kind| read().any(|&value| self.kind(value) == kind);
        let is_evaluated = operator_of(model, node).is_some_and(|operator| operator.eval.is_some());
        let is_small = |value: &ValueId| {
            let shape = facts.get(*value).and_then(Fact::static_shape);
            let count = shape.and_then(|shape| shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size)));
            count.is_some_and(|count| count <= MOST_ELEMENTS)
        };
        let is_folded = is_evaluated && node.outputs().iter().flatten().all(is_small) && !is_quantization(node);
        // Nodes with subgraphs are not merged.
        let is_merged = node.subgraphs().next().is_none() && !is_quantization(node);
        let varies = reads(Kind::Numbered);
        let kind = match () {
            () if reads(Kind::Each) || (reads(Kind::Once) && varies) => Kind::Each,
            () if !reads(Kind::Once) && is_folded => {
                if varies {
                    Kind::Numbered
                } else {
                    Kind::Constant
                }
            }
            () if varies || !is_merged => Kind::Each,
            () => Kind::Once,
        };
        debug_assert_eq!(node.graph(), body);
        self.kinds.extend(node.outputs().iter().flatten().map(|&value| (value, kind)));
    }

    /// Updates the kinds of carried values for later iterations. Returns `true` if one rises. Kinds only rise, so the loop ends.
    fn carries_on(&mut self, model: &Model, repeated: &Repeated) -> bool {
        let inputs = model.graph(repeated.body).inputs();
        let mut rises = false;
        for (&input, &(output, _)) in
            inputs.iter().skip(repeated.leading).zip(&self.results).take(repeated.initial.len())
        {
            let before = self.kind(input);
            let after = match (before, self.kind(output)) {
                _ if input == output => before,
                (Kind::Constant | Kind::Numbered, Kind::Constant | Kind::Numbered) => Kind::Numbered,
                _ => Kind::Each,
            };
            rises |= after != before;
            self.kinds.insert(input, after);
        }
        rises
    }
}

/// Returns `true` if copies of the nodes behave like the repeated nodes: random and unknown operators may not. A sequence that an inner subgraph
/// reads is moved there and lost for other readers, so there must be none.
fn may_be_copied(model: &Model, facts: &Facts, repeated: &Repeated, graphs: &[GraphId]) -> bool {
    let is_known = |node: &Node| operator_of(model, node).is_some_and(|operator| operator.deterministic);
    let mut nodes = graphs.iter().flat_map(|&graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
    let wraps = |&input: &ValueId| matches!(model.value(input).declared, Some(DeclaredType::Optional { .. }));
    let is_tensor =
        |&value: &ValueId| matches!(facts.get(value).and_then(|fact| fact.ty.as_ref()), Some(Type::Tensor(_)));
    let pins = |&graph: &GraphId| model.graph(graph).initializers().iter().any(|&value| model.value(value).pinned);
    nodes.all(is_known)
        && !graphs.iter().any(pins)
        && !model.graph(repeated.body).inputs().iter().any(wraps)
        && (graphs.len() == 1
            || (repeated.initial.iter().all(is_tensor) && model.captures(repeated.body).iter().all(is_tensor)))
}
