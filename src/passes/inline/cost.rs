//! How many nodes a body leaves that is written out once for each iteration.

use rustc_hash::{FxHashMap, FxHashSet};

use super::repeated::{Needed, Repeated};
use crate::ir::{DeclaredType, Fact, Facts, GraphId, Model, Node, NodeId, Type, ValueId};
use crate::ops::operator_of;
use crate::passes::dead::graphs_below;
use crate::rewrite::is_quantization;

/// Larger bodies are not looked at: each value carried on may take a look at all nodes.
const MOST_NODES: usize = 256;

/// Results of so many elements are folded without a second thought.
const MOST_ELEMENTS: usize = 1024;

/// What becomes of a value where a body is written out for each iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It is a constant, the same in all.
    Constant,
    /// It is a constant in each.
    Numbered,
    /// It is computed once for all.
    Once,
    /// It is computed in each.
    Each,
}

/// What the values of a body become.
pub(super) struct Cost {
    /// How many nodes the body has, those of graphs inside it included.
    pub(super) nodes: usize,
    kinds: FxHashMap<ValueId, Kind>,
    needed: Needed,
    /// The body's results beside the condition, and whether anything reads them outside.
    results: Vec<(ValueId, bool)>,
}

impl Cost {
    /// Looks at a body of which these results are read. `None` if it is large, or if copies of a node of it might not do what the node
    /// does time and again.
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

    /// How many nodes there are in the end, after so many iterations.
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
                // A node for the part of each iteration, and one for the whole.
                () if is_stacked && !is_constant => trips + 1,
                // The node that computes it computes it under the result's name, unless another has that already.
                () => usize::from(named && (is_constant || self.kind(output) != Kind::Each || !taken.insert(output))),
            }
        };
        let put_out: usize = self.results.iter().zip(node.outputs()).enumerate().map(put_out).sum();
        nodes + trips * sliced.count() + put_out
    }

    /// What comes from outside of the body is the same in all iterations, or a constant.
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

    /// States the kinds of a node's results by those of what it reads.
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
        // Nodes with bodies are not compared with each other.
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

    /// Whether a carried value is something else in later iterations than was thought. Kinds only rise, so this ends.
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

/// Whether copies of the nodes do what the nodes do time and again: random ones would not, and of an operator that is not known nobody
/// knows. A sequence that a body inside takes leaves nothing for other readers, so that there must be none.
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
