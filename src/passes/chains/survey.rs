//! What there is of sizes in one graph: who computes them, who asks for them, and which tensors have them.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dim::{Dim, Symbol};
use crate::ir::{Broken, Fact, Facts, GraphId, Model, Node, NodeId, Scalar, ValueId};
use crate::tensor::DType;

/// Longer vectors are no shapes.
const MAX_LEN: usize = 64;

/// How many tensors are remembered for one size.
const MAX_SOURCES: usize = 16;

/// Where a size can be read: an axis of a tensor.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub tensor: ValueId,
    pub axis: usize,
    /// The tensor is there for nodes after this place.
    pub position: usize,
}

/// What there is of sizes in one graph.
pub(super) struct Survey {
    pub opset: i64,
    /// The nodes that compute nothing but sizes.
    pub chain: FxHashSet<NodeId>,
    /// Where each size can be read.
    pub sources: FxHashMap<Dim, Vec<Source>>,
    /// Who asks for sizes: node, operand, and its place in the order.
    pub asked: Vec<(NodeId, usize, ValueId, usize)>,
    /// The first node of the chain that computes some content, and its place in the order.
    pub computed: FxHashMap<Content, (NodeId, usize)>,
    /// How many of the sizes asked for a tensor has.
    pub score: FxHashMap<ValueId, usize>,
}

/// A rank, 0 or 1, and the elements.
pub(super) type Content = (bool, Vec<Dim>);

fn elements(fact: &Fact) -> Option<Vec<Scalar>> {
    let elements = fact.elements().filter(|elements| elements.len() <= MAX_LEN && !elements.is_empty())?;
    elements.iter().all(|element| matches!(element, Scalar::Int(_) | Scalar::Real { .. })).then_some(elements)
}

/// The content of an `int64` scalar or vector, if it is known as expressions.
pub(super) fn content(facts: &Facts, value: ValueId) -> Option<Content> {
    let fact = facts.get(value)?;
    if fact.dtype() != Some(DType::Int64) || fact.rank()? > 1 {
        return None;
    }
    let ints = fact.ints().filter(|ints| ints.len() <= MAX_LEN && !ints.is_empty())?;
    Some((fact.rank()? == 1, ints))
}

fn symbols_of(facts: &Facts, value: ValueId, into: &mut FxHashSet<Symbol>) {
    let Some(fact) = facts.get(value) else { return };
    for dim in fact.shape().into_iter().flatten() {
        into.extend(dim.symbols());
    }
    for element in fact.elements().into_iter().flatten() {
        match element {
            Scalar::Int(dim) | Scalar::Real { num: dim, .. } => into.extend(dim.symbols()),
            Scalar::Float(_) | Scalar::Unknown => {}
        }
    }
}

/// Whether a node computes nothing but sizes that its operands tell.
fn is_chain(model: &Model, facts: &Facts, node: &Node) -> bool {
    if !node.canonical_domain().is_empty() || node.subgraphs().next().is_some() || node.outputs().len() != 1 {
        return false;
    }
    let Some(output) = node.output(0) else { return false };
    if model.is_output(output) || model.value(output).pinned {
        return false;
    }
    let Some(fact) =
        facts.get(output).filter(|fact| fact.data().is_none() && fact.rank().is_some_and(|rank| rank <= 1))
    else {
        return false;
    };
    if elements(fact).is_none() {
        return false;
    }
    // A size nobody told is read from data.
    let (mut own, mut told) = (FxHashSet::default(), FxHashSet::default());
    symbols_of(facts, output, &mut own);
    for &input in node.inputs().iter().flatten() {
        symbols_of(facts, input, &mut told);
    }
    own.is_subset(&told)
}

impl Survey {
    pub fn of(model: &Model, facts: &Facts, graph: GraphId) -> Result<Option<Survey>, Broken> {
        let order = model.topological(graph)?;
        let mut survey = Survey {
            opset: model.opset(graph, "").unwrap_or(0),
            chain: FxHashSet::default(),
            sources: FxHashMap::default(),
            asked: Vec::new(),
            computed: FxHashMap::default(),
            score: FxHashMap::default(),
        };
        for &value in model.graph(graph).inputs() {
            survey.note_source(facts, value, 0);
        }
        let mut position = FxHashMap::default();
        for (place, &id) in order.iter().enumerate() {
            let Some(node) = model.node(id) else { continue };
            position.insert(id, place + 1);
            if is_chain(model, facts, node) {
                survey.chain.insert(id);
                if let Some(content) = node.output(0).and_then(|output| content(facts, output)) {
                    survey.computed.entry(content).or_insert((id, place + 1));
                }
            } else {
                for &output in node.outputs().iter().flatten() {
                    survey.note_source(facts, output, place + 1);
                }
            }
        }
        if survey.chain.len() < 2 || survey.opset < 1 {
            return Ok(None);
        }
        let mut wanted: FxHashSet<Dim> = FxHashSet::default();
        for &id in order.iter().filter(|id| survey.chain.contains(id)) {
            let Some(output) = model.node(id).and_then(|node| node.output(0)) else { continue };
            for (reader, slot) in model.users(output) {
                if survey.chain.contains(&reader) {
                    continue;
                }
                // A reader in a subgraph stands where the node stands that has the subgraph.
                let mut outer = reader;
                while let Some(holder) =
                    model.node(outer).map(Node::graph).filter(|&at| at != graph).and_then(|at| model.graph(at).parent())
                {
                    outer = holder;
                }
                let Some(&place) = position.get(&outer) else { return Ok(None) };
                survey.asked.push((reader, slot, output, place));
                wanted.extend(content(facts, output).into_iter().flat_map(|(_, elements)| elements));
            }
        }
        survey.asked.sort_by_key(|&(_, slot, value, place)| (place, slot, value));
        for dim in &wanted {
            for source in survey.sources.get(dim).into_iter().flatten() {
                *survey.score.entry(source.tensor).or_default() += 1;
            }
        }
        Ok(Some(survey))
    }

    fn note_source(&mut self, facts: &Facts, tensor: ValueId, position: usize) {
        let Some(shape) = facts.get(tensor).and_then(|fact| fact.shape()) else { return };
        for (axis, dim) in shape.iter().enumerate().filter(|(_, dim)| dim.as_const().is_none()) {
            let known = self.sources.entry(dim.clone()).or_default();
            if known.len() < MAX_SOURCES {
                known.push(Source { tensor, axis, position });
            }
        }
    }
}
