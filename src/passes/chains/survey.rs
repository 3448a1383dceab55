//! What there is of sizes in one graph: who computes them, who asks for them, and which tensors have them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::asked::{Asked, Place, ask};
use super::terms::{Lanes, Term, Terms, Way, elementwise, is_followed, reduction};
use crate::dim::{Dim, Symbol};
use crate::ir::{Attribute, Broken, Fact, Facts, GraphId, Model, Node, NodeId, Scalar, ValueId};
use crate::ops::{self, traits::Movement};
use crate::tensor::{DType, Tensor};

/// Longer vectors are no shapes.
const MAX_LEN: usize = 64;

/// How many tensors are remembered for one size.
const MAX_SOURCES: usize = 16;

/// Where a size can be read: an axis of a tensor.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub tensor: ValueId,
    /// The tensor is there for nodes after this place.
    pub position: usize,
}

/// A scalar or a vector that holds these elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Want {
    pub dtype: DType,
    pub is_vector: bool,
    pub lanes: Lanes,
}

/// What there is of sizes in one graph.
pub(super) struct Survey {
    pub opset: i64,
    /// The nodes that compute nothing but sizes.
    pub chain: FxHashSet<NodeId>,
    /// Where each size can be read.
    pub sources: FxHashMap<Dim, Vec<Source>>,
    /// Who asks for sizes, in the order of the places they are asked at.
    pub asked: Vec<Asked>,
    /// Operands of those who ask that are to be constants.
    pub constants: Vec<(NodeId, usize, Tensor)>,
    /// The first value that holds some elements, and its place in the order.
    pub computed: FxHashMap<Want, (ValueId, usize)>,
    /// The nodes that results need whatever becomes of the chain.
    pub kept: FxHashSet<NodeId>,
    /// How many nodes there are only for their results to be measured.
    pub measured: usize,
    /// How many of the sizes asked for a tensor has.
    pub score: FxHashMap<ValueId, usize>,
    pub terms: Terms,
    /// The elements of the values of the chain and of what they are computed from.
    elements: FxHashMap<ValueId, Lanes>,
    wants: FxHashMap<ValueId, Want>,
    positions: FxHashMap<NodeId, usize>,
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

/// How many elements a small tensor has.
fn small(fact: &Fact) -> Option<usize> {
    fact.static_len().filter(|&len| len > 0 && len <= MAX_LEN)
}

/// Whether a node gives nothing but sizes that its operands tell.
fn tells_sizes(facts: &Facts, node: &Node) -> bool {
    let (mut own, mut told) = (FxHashSet::default(), FxHashSet::default());
    for &output in node.outputs().iter().flatten() {
        let elements = facts.get(output).and_then(Fact::elements);
        let known = |element: &Scalar| matches!(element, Scalar::Int(_) | Scalar::Real { .. } | Scalar::Float(_));
        if !elements.is_some_and(|elements| elements.iter().all(known)) {
            return false;
        }
        symbols_of(facts, output, &mut own);
    }
    // A size nobody told is read from data.
    for &input in node.inputs().iter().flatten() {
        symbols_of(facts, input, &mut told);
    }
    own.is_subset(&told)
}

/// How an operator of the default domain moves elements, if it does nothing else.
fn movement(operator: &str) -> Option<Movement> {
    ops::operator("", operator)?.traits.moves
}

impl Survey {
    pub fn of(model: &Model, facts: &Facts, graph: GraphId) -> Result<Option<Survey>, Broken> {
        let order = model.topological(graph)?;
        let mut survey = Survey {
            opset: model.opset(graph, "").unwrap_or(0),
            chain: FxHashSet::default(),
            sources: FxHashMap::default(),
            asked: Vec::new(),
            constants: Vec::new(),
            computed: FxHashMap::default(),
            kept: FxHashSet::default(),
            measured: 0,
            score: FxHashMap::default(),
            terms: Terms::default(),
            elements: FxHashMap::default(),
            wants: FxHashMap::default(),
            positions: FxHashMap::default(),
        };
        for &value in model.graph(graph).inputs() {
            survey.note_source(facts, value, 0);
        }
        for (place, &id) in order.iter().enumerate() {
            let Some(node) = model.node(id) else { continue };
            survey.positions.insert(id, place + 1);
            if survey.is_chain(model, facts, node) {
                survey.chain.insert(id);
                survey.follow(model, facts, node, place + 1);
            } else {
                for &output in node.outputs().iter().flatten() {
                    survey.note_source(facts, output, place + 1);
                }
            }
        }
        if survey.chain.len() < 2 || survey.opset < 1 {
            return Ok(None);
        }
        survey.keep(model, graph);
        survey.measured = order.iter().filter(|id| !survey.chain.contains(id) && !survey.kept.contains(id)).count();
        let mut wanted: FxHashSet<Dim> = FxHashSet::default();
        for &id in &order {
            let Some(node) = model.node(id).filter(|_| survey.chain.contains(&id)) else { continue };
            for &output in node.outputs().iter().flatten() {
                for (reader, slot) in model.users(output) {
                    if survey.chain.contains(&reader) {
                        continue;
                    }
                    // A reader in a subgraph stands where the node stands that has the subgraph.
                    let mut outer = reader;
                    while let Some(holder) = model
                        .node(outer)
                        .map(Node::graph)
                        .filter(|&at| at != graph)
                        .and_then(|at| model.graph(at).parent())
                    {
                        outer = holder;
                    }
                    let Some(&place) = survey.positions.get(&outer) else { return Ok(None) };
                    let is_kept = survey.kept.contains(&outer);
                    ask(&mut survey, model, facts, Place { reader, slot, value: output, place, is_kept });
                    let lanes = survey.elements.get(&output).cloned().unwrap_or_default();
                    wanted.extend(lanes.iter().filter_map(|&lane| survey.terms.as_dim(lane).cloned()));
                }
            }
        }
        survey.asked.sort_by_key(|asked| (asked.place, asked.slot, asked.value));
        let scores = wanted.iter().flat_map(|dim| survey.sources.get(dim).into_iter().flatten());
        let mut score: FxHashMap<ValueId, usize> = FxHashMap::default();
        for source in scores {
            *score.entry(source.tensor).or_default() += 1;
        }
        survey.score = score;
        Ok(Some(survey))
    }

    /// Notes which nodes the results need, but for what the chain measures.
    fn keep(&mut self, model: &Model, graph: GraphId) {
        let mut open: Vec<ValueId> = model.graph(graph).outputs().to_vec();
        while let Some(value) = open.pop() {
            let Some(id) = model.value(value).producer() else { continue };
            let Some(node) = model.node(id).filter(|node| node.graph() == graph) else { continue };
            if self.chain.contains(&id) || !self.kept.insert(id) {
                continue;
            }
            open.extend(node.inputs().iter().flatten());
            node.subgraphs().for_each(|inner| open.extend(model.captures(inner)));
        }
    }

    /// Whether a tensor is there whatever becomes of the chain.
    pub fn is_kept(&self, model: &Model, tensor: ValueId) -> bool {
        model.value(tensor).producer().is_none_or(|id| self.kept.contains(&id) || !self.positions.contains_key(&id))
    }

    /// The place of a node in the order.
    pub fn position(&self, id: NodeId) -> Option<usize> {
        self.positions.get(&id).copied()
    }

    /// What a value of the chain holds, if it is a scalar or a vector.
    pub fn want(&self, value: ValueId) -> Option<&Want> {
        self.wants.get(&value)
    }

    /// What a small value holds.
    pub fn elements(&self, value: ValueId) -> Option<&Lanes> {
        self.elements.get(&value)
    }

    fn note_source(&mut self, facts: &Facts, tensor: ValueId, position: usize) {
        let Some(shape) = facts.get(tensor).and_then(|fact| fact.shape()) else { return };
        for dim in shape.iter().filter(|dim| dim.as_const().is_none()) {
            let known = self.sources.entry(dim.clone()).or_default();
            if known.len() < MAX_SOURCES && known.last().is_none_or(|last| last.tensor != tensor) {
                known.push(Source { tensor, position });
            }
        }
    }

    /// Whether a node computes nothing but sizes, or numbers that follow from them.
    fn is_chain(&self, model: &Model, facts: &Facts, node: &Node) -> bool {
        if !node.canonical_domain().is_empty() || node.subgraphs().next().is_some() {
            return false;
        }
        if node.outputs().len() != 1 && !node.is("Split") {
            return false;
        }
        for &output in node.outputs().iter().flatten() {
            if model.is_output(output) || model.value(output).pinned {
                return false;
            }
            let fact = facts.get(output).filter(|fact| fact.data().is_none() && fact.dtype().is_some());
            if fact.and_then(small).is_none() {
                return false;
            }
        }
        if node.outputs().iter().flatten().all(|&output| facts.get(output).and_then(Fact::rank) <= Some(1))
            && tells_sizes(facts, node)
        {
            return true;
        }
        let operator = node.op_type.as_str();
        let moves = movement(operator).is_some();
        let known = moves || elementwise(operator).is_some() || reduction(operator).is_some();
        let is_constant = |value: ValueId| facts.get(value).is_some_and(|fact| fact.data().is_some());
        let of_chain =
            |value: ValueId| model.value(value).producer().is_some_and(|producer| self.chain.contains(&producer));
        known
            && node.inputs().iter().flatten().any(|&input| of_chain(input))
            && node.inputs().iter().flatten().all(|&input| of_chain(input) || is_constant(input))
    }

    /// Notes what the results of a node of the chain hold, and how it computes them.
    fn follow(&mut self, model: &Model, facts: &Facts, node: &Node, place: usize) {
        for &input in node.inputs().iter().flatten() {
            self.lanes_of(facts, input);
            // What is not of the chain is there as it is.
            let outside = !model.value(input).producer().is_some_and(|producer| self.chain.contains(&producer));
            if outside && facts.get(input).is_some_and(|fact| fact.data().is_none()) {
                let position = model.value(input).producer().and_then(|producer| self.position(producer)).unwrap_or(0);
                self.note_computed(facts, input, position);
            }
        }
        for &output in node.outputs().iter().flatten() {
            let Some(fact) = facts.get(output) else { continue };
            let Some(count) = small(fact) else { continue };
            let scalars = fact.elements();
            let ways = self.ways_of(facts, node, count);
            let moved = self.moved(facts, node, count);
            let mut lanes = Lanes::new();
            for at in 0..count {
                let scalar = scalars.as_ref().and_then(|scalars| scalars.get(at)).unwrap_or(&Scalar::Unknown);
                let way = ways.get(at);
                let lane = match (self.terms.of_scalar(scalar), way, moved.as_ref().and_then(|moved| moved.get(at))) {
                    (Some(lane), ..) => lane,
                    (None, Some(way), _) => self.terms.intern(Term::Applied(way.clone())),
                    (None, None, Some(&lane)) => lane,
                    (None, None, None) => self.terms.intern(Term::Element(output, at)),
                };
                if let Some(way) = way
                    && (fact.dtype() == Some(way.to) || self.holds(facts, way, lane))
                {
                    self.terms.note(lane, way.clone());
                }
                lanes.push(lane);
            }
            self.elements.insert(output, lanes);
            self.note_computed(facts, output, place);
        }
    }

    fn note_computed(&mut self, facts: &Facts, value: ValueId, place: usize) {
        let Some(fact) = facts.get(value).filter(|fact| fact.rank() <= Some(1)) else { return };
        let (Some(dtype), Some(lanes)) = (fact.dtype(), self.elements.get(&value)) else { return };
        let want = Want { dtype, is_vector: fact.rank() == Some(1), lanes: lanes.clone() };
        self.wants.insert(value, want.clone());
        self.computed.entry(want).or_insert((value, place));
    }

    /// What a small value holds.
    fn lanes_of(&mut self, facts: &Facts, value: ValueId) -> Option<Lanes> {
        if let Some(lanes) = self.elements.get(&value) {
            return Some(lanes.clone());
        }
        let fact = facts.get(value)?;
        let count = small(fact)?;
        let scalars = fact.elements();
        let mut lanes = Lanes::new();
        for at in 0..count {
            let scalar = scalars.as_ref().and_then(|scalars| scalars.get(at)).unwrap_or(&Scalar::Unknown);
            let lane = self.terms.of_scalar(scalar);
            lanes.push(lane.unwrap_or_else(|| self.terms.intern(Term::Element(value, at))));
        }
        self.elements.insert(value, lanes.clone());
        Some(lanes)
    }

    /// What the node does for each element of its result, if it is an operation that is followed.
    fn ways_of(&mut self, facts: &Facts, node: &Node, count: usize) -> Vec<Way> {
        self.try_ways_of(facts, node, count).unwrap_or_default()
    }

    fn try_ways_of(&mut self, facts: &Facts, node: &Node, count: usize) -> Option<Vec<Way>> {
        let inputs: Vec<ValueId> = node.inputs().iter().copied().collect::<Option<_>>()?;
        let &first = inputs.first()?;
        let dtype = facts.get(first)?.dtype().filter(|&dtype| is_followed(dtype))?;
        let to = facts.get(node.output(0)?)?.dtype().filter(|&dtype| is_followed(dtype))?;
        // Integers are computed in 64 bits.
        let wide = |dtype: DType| if dtype == DType::Int32 { DType::Int64 } else { dtype };
        let from = wide(dtype);
        if let Some(operator) = reduction(&node.op_type) {
            let vector = facts.get(first)?.rank()? == 1 && count == 1;
            if !vector || node.attribute("noop_with_empty_axes").is_some() {
                return None;
            }
            let operands = self.lanes_of(facts, first)?;
            return Some(vec![Way { operator, from, to: wide(to), operands }]);
        }
        let operator = elementwise(&node.op_type)?;
        let plain = match operator {
            "Mod" => !matches!(node.attribute("fmod"), Some(Attribute::Int(flag)) if *flag != 0),
            "Cast" => !(dtype.is_float() && to == DType::Int32) && to != DType::Bool && dtype != DType::Bool,
            _ => true,
        };
        if !plain {
            return None;
        }
        let to = if operator == "Cast" || dtype.is_integer() { wide(to) } else { to };
        let result = facts.get(node.output(0)?)?.static_shape()?;
        let mut columns = Vec::with_capacity(inputs.len());
        for &input in &inputs {
            let fact = facts.get(input)?;
            let shape = fact.static_shape()?;
            // Broadcasting beyond that of one element is left to the node.
            if fact.dtype() != Some(dtype) || (shape != result && fact.static_len() != Some(1)) {
                return None;
            }
            columns.push(self.lanes_of(facts, input)?);
        }
        (0..count)
            .map(|at| {
                let operands = columns.iter().map(|lanes| lanes.get(if lanes.len() == 1 { 0 } else { at }).copied());
                Some(Way { operator, from, to, operands: operands.collect::<Option<Lanes>>()? })
            })
            .collect()
    }

    /// Whether the operation in 64 bits gives the term. What a shorter one gives where it overflows is another number.
    fn holds(&self, facts: &Facts, way: &Way, lane: super::terms::TermId) -> bool {
        let scope = facts.scope();
        let dims: Option<Vec<&Dim>> = way.operands.iter().map(|&operand| self.terms.as_dim(operand)).collect();
        if way.from != DType::Int64 {
            return true;
        }
        let Some(dims) = dims else { return false };
        let (Some(result), [a, b]) = (self.terms.as_dim(lane), dims.as_slice()) else {
            return way.to != DType::Int64 || reduction(way.operator).is_some() || way.operands.len() == 1;
        };
        let expected = match way.operator {
            "Add" => scope.add(a, b),
            "Sub" => scope.sub(a, b),
            "Mul" => scope.mul(a, b),
            "Div" => scope.trunc_div(a, b),
            "Mod" => scope.modulo(a, b),
            "Min" => scope.min(a, b),
            "Max" => scope.max(a, b),
            _ => return way.to != DType::Int64 || reduction(way.operator).is_some(),
        };
        expected == *result
    }

    /// The elements of the result of a movement whose elements are not all known by what they are.
    fn moved(&mut self, facts: &Facts, node: &Node, count: usize) -> Option<Lanes> {
        let first = node.input(0)?;
        let lanes = match node.op_type.as_str() {
            operator if matches!(movement(operator), Some(Movement::Through | Movement::Layout)) => {
                self.lanes_of(facts, first)?
            }
            "Concat" if facts.get(first)?.rank()? == 1 => {
                let mut all = Lanes::new();
                for &input in node.inputs() {
                    all.extend(self.lanes_of(facts, input?)?);
                }
                all
            }
            "Gather" if facts.get(first)?.rank()? == 1 => {
                let data = self.lanes_of(facts, first)?;
                let length = i64::try_from(data.len()).ok()?;
                let indices = facts.get(node.input(1)?)?.const_ints()?;
                let entry = |index: i64| {
                    let index = if index < 0 { index.checked_add(length)? } else { index };
                    data.get(usize::try_from(index).ok()?).copied()
                };
                indices.into_iter().map(entry).collect::<Option<Lanes>>()?
            }
            _ => return None,
        };
        (lanes.len() == count).then_some(lanes)
    }
}
