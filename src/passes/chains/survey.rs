//! The survey: finds the nodes of a graph that compute sizes, the content of their results, and the tensors with those sizes.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::order::as_late_as_possible;
use super::row::{Row, RowId};
use super::row_table::RowTable;
use super::terms::{TermTable, Terms, elementwise, is_followed, reduction};
use crate::dim::{Dim, Symbol};
use crate::ir::{Broken, Fact, Facts, GraphId, Model, Node, NodeId, Scalar, ValueId};
use crate::ops::traits::{Movement, traits_of};
use crate::ops::{self, Opset, is_strided};
use crate::rewrite::is_quantization;
use crate::sort;

/// Size nodes that are planned together.
#[derive(Default)]
pub(super) struct Group {
    /// The nodes, in topological order.
    pub nodes: Vec<NodeId>,
    /// The number of nodes that are needed only because a node of the group measures their results.
    pub shape_only: usize,
}

/// The most elements of a vector that may be a shape.
pub(super) const MAX_LEN: usize = 64;

/// The most tensors that are recorded for one size.
const MAX_SOURCES: usize = 16;

/// A tensor with a size as one of its dims.
#[derive(Clone, Copy)]
pub(super) struct SizedTensor {
    pub tensor: ValueId,
    /// The position of the node that computes the tensor.
    pub position: usize,
}

/// The sizes in one graph. A position is a node's place in a topological order, counted from 1. Values before the first node have position 0.
pub(super) struct Survey {
    pub graph: GraphId,
    pub opset: Opset,
    /// The nodes that compute only sizes, or numbers that follow from sizes.
    pub size_nodes: FxHashSet<NodeId>,
    /// The size nodes in topological order.
    pub order: Vec<NodeId>,
    /// The shapes of tensors that may be measured, each dim in its current form.
    pub shapes: Rc<FxHashMap<ValueId, Rc<[Dim]>>>,
    /// The tensors with each size, the earliest first.
    pub sources: Rc<FxHashMap<Dim, Vec<SizedTensor>>>,
    /// The first value with each row, and its position.
    pub first: FxHashMap<Row, (ValueId, usize)>,
    /// The nodes that results of the graph need even without size nodes.
    pub kept: Rc<FxHashSet<NodeId>>,
    /// The number of nodes that are needed only because a size node reads the shape of their result.
    pub shape_only: usize,
    pub terms: TermTable,
    /// The elements of the results and operands of size nodes, of any rank.
    pub(super) elements: FxHashMap<ValueId, Terms>,
    /// The rows of those of rank 0 and 1.
    pub(super) rows: FxHashMap<ValueId, Row>,
    /// The rows of the searches.
    pub numbered: RowTable,
    positions: Rc<FxHashMap<NodeId, usize>>,
}

impl Survey {
    /// Creates an empty survey of a graph.
    fn empty(graph: GraphId, opset: Opset) -> Survey {
        Survey {
            graph,
            opset,
            size_nodes: FxHashSet::default(),
            order: Vec::new(),
            shapes: Rc::default(),
            sources: Rc::default(),
            first: FxHashMap::default(),
            kept: Rc::default(),
            shape_only: 0,
            terms: TermTable::default(),
            elements: FxHashMap::default(),
            rows: FxHashMap::default(),
            numbered: RowTable::default(),
            positions: Rc::default(),
        }
    }

    /// Finds the size nodes of a graph and the tensors that may be measured, with positions in file order; `None` for fewer than two size nodes.
    /// [`part`](Self::part) finds the contents of the size nodes.
    ///
    /// # Errors
    /// The model is inconsistent.
    pub fn of(model: &Model, facts: &Facts, graph: GraphId) -> Result<Option<Survey>, Broken> {
        let order = model.topological(graph)?;
        let mut survey = Survey::empty(graph, Opset::of(model, graph));
        for (id, node) in order.iter().filter_map(|&id| Some((id, model.node(id)?))) {
            if survey.is_size_node(model, facts, node) {
                survey.size_nodes.insert(id);
                survey.order.push(id);
            }
        }
        // Most graphs have no such nodes, so everything else is computed later.
        if survey.size_nodes.len() < 2 || !survey.opset.is_known() {
            return Ok(None);
        }
        survey.kept = Rc::new(survey.find_kept(model));
        let measured = order.iter().filter(|id| !survey.size_nodes.contains(id)).filter_map(|&id| model.node(id));
        let measured = measured.flat_map(|node| node.outputs().iter().flatten());
        let tensors = model.graph(graph).inputs().iter().chain(measured);
        survey.shapes =
            Rc::new(tensors.filter_map(|&tensor| Some((tensor, shape_of(model, facts, tensor)?))).collect());
        survey.place(model, &order);
        Ok(Some(survey))
    }

    /// Returns the survey with positions in the order with the latest possible nodes; `None` if that is file order.
    ///
    /// # Errors
    /// The model is inconsistent.
    pub fn late(&self, model: &Model) -> Result<Option<Survey>, Broken> {
        let order = model.topological(self.graph)?;
        let late = as_late_as_possible(model, self.graph, &order);
        if late == order {
            return Ok(None);
        }
        let mut survey = Survey {
            size_nodes: self.size_nodes.clone(),
            order: self.order.clone(),
            shapes: Rc::clone(&self.shapes),
            kept: Rc::clone(&self.kept),
            ..Survey::empty(self.graph, self.opset)
        };
        survey.place(model, &late);
        Ok(Some(survey))
    }

    /// Assigns positions to the nodes, and records the tensors with each size.
    fn place(&mut self, model: &Model, order: &[NodeId]) {
        self.positions = Rc::new(order.iter().enumerate().map(|(place, &id)| (id, place + 1)).collect());
        let (mut sources, mut seen) = (FxHashMap::default(), FxHashSet::default());
        let inputs = model.graph(self.graph).inputs().iter().map(|&input| (input, 0));
        let nodes = order.iter().enumerate().filter(|(_, id)| !self.size_nodes.contains(id));
        let results = nodes.filter_map(|(place, &id)| Some((place + 1, model.node(id)?)));
        let results =
            results.flat_map(|(position, node)| node.outputs().iter().flatten().map(move |&output| (output, position)));
        for (tensor, position) in inputs.chain(results) {
            self.add_source(model, SizedTensor { tensor, position }, &mut sources, &mut seen);
        }
        self.sources = Rc::new(sources);
    }

    /// Returns the survey of one group of size nodes, with their contents.
    pub fn part(&self, model: &Model, facts: &Facts, group: &Group) -> Survey {
        let mut part = Survey {
            size_nodes: group.nodes.iter().copied().collect(),
            order: group.nodes.clone(),
            shapes: Rc::clone(&self.shapes),
            sources: Rc::clone(&self.sources),
            kept: Rc::clone(&self.kept),
            positions: Rc::clone(&self.positions),
            shape_only: group.shape_only,
            ..Survey::empty(self.graph, self.opset)
        };
        let position = |&id: &NodeId| Some((self.position(id)?, id));
        let mut placed: Vec<(usize, NodeId)> = group.nodes.iter().filter_map(position).collect();
        sort::sort(&mut placed);
        for (position, id) in placed {
            if let Some(node) = model.node(id) {
                part.observe(model, facts, node, position);
            }
        }
        part
    }

    /// Returns the number of nodes that disappear if a plan replaces all size nodes and reads only kept tensors.
    pub fn cost(&self) -> usize {
        self.size_nodes.len() + self.shape_only
    }

    /// Returns the position of a node of the graph.
    pub fn position(&self, id: NodeId) -> Option<usize> {
        self.positions.get(&id).copied()
    }

    /// Returns the position of a value: that of its producer, or 0 for values that exist before the graph runs.
    pub fn position_of(&self, model: &Model, value: ValueId) -> usize {
        model.value(value).producer().and_then(|producer| self.position(producer)).unwrap_or(0)
    }

    /// Returns `true` if a size node computes the value.
    pub fn is_size(&self, model: &Model, value: ValueId) -> bool {
        model.value(value).producer().is_some_and(|producer| self.size_nodes.contains(&producer))
    }

    /// Returns `true` if a tensor exists even without size nodes.
    pub fn is_kept(&self, model: &Model, tensor: ValueId) -> bool {
        model.value(tensor).producer().is_none_or(|id| self.kept.contains(&id) || !self.positions.contains_key(&id))
    }

    /// Returns the row of a result or an operand of a size node, if it is a scalar or a vector.
    pub fn row(&self, value: ValueId) -> Option<&Row> {
        self.rows.get(&value)
    }

    /// Returns the number of a row.
    pub fn number(&mut self, row: &Row) -> RowId {
        match self.numbered.find(row) {
            Some(known) => known,
            None => self.numbered.add(row.clone(), row.as_constant(&self.terms)),
        }
    }

    /// Returns the row of a tensor's shape.
    pub fn number_of_shape(&mut self, tensor: ValueId) -> Option<RowId> {
        if let Some(&known) = self.numbered.shapes.get(&tensor) {
            return Some(known);
        }
        let row = Row::of_shape(&mut self.terms, self.shapes.get(&tensor)?);
        let row = self.number(&row);
        self.numbered.shapes.insert(tensor, row);
        Some(row)
    }

    /// Returns the elements of a result or an operand of a size node.
    pub fn elements(&self, value: ValueId) -> Option<&Terms> {
        self.elements.get(&value)
    }

    /// Adds a tensor to the sources of its sizes.
    fn add_source(
        &self,
        model: &Model,
        source: SizedTensor,
        sources: &mut FxHashMap<Dim, Vec<SizedTensor>>,
        seen: &mut FxHashSet<(Rc<[Dim]>, bool)>,
    ) {
        let Some(shape) = self.shapes.get(&source.tensor).cloned() else { return };
        // Of tensors with one shape, only the earliest and the earliest kept one are recorded.
        if seen.insert((Rc::clone(&shape), self.is_kept(model, source.tensor))) {
            for dim in shape.iter().filter(|dim| dim.as_const().is_none()) {
                let known = sources.entry(dim.clone()).or_default();
                if known.len() < MAX_SOURCES && known.last().is_none_or(|last| last.tensor != source.tensor) {
                    known.push(source);
                }
            }
        }
    }

    /// Returns the nodes that results need, on paths without size nodes.
    fn find_kept(&self, model: &Model) -> FxHashSet<NodeId> {
        let mut kept = FxHashSet::default();
        let mut open: Vec<ValueId> = model.graph(self.graph).outputs().to_vec();
        while let Some(value) = open.pop() {
            let Some(id) = model.value(value).producer() else { continue };
            let Some(node) = model.node(id).filter(|node| node.graph() == self.graph) else { continue };
            if self.size_nodes.contains(&id) || !kept.insert(id) {
                continue;
            }
            open.extend(node.inputs().iter().flatten());
            node.subgraphs().for_each(|inner| open.extend(model.captures(inner)));
        }
        kept
    }

    /// Returns `true` if a node computes only sizes, or numbers that follow from sizes.
    fn is_size_node(&self, model: &Model, facts: &Facts, node: &Node) -> bool {
        if !node.canonical_domain().is_empty() || node.subgraphs().next().is_some() {
            return false;
        }
        if node.outputs().len() != 1 && !node.is("Split") {
            return false;
        }
        for &output in node.outputs().iter().flatten() {
            if model.is_named(output) {
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
        known
            && node.inputs().iter().flatten().any(|&input| self.is_size(model, input))
            && node
                .inputs()
                .iter()
                .flatten()
                .all(|&input| self.is_size(model, input) || is_constant(input) || !moves && is_number(facts, input))
    }
}

/// Returns the shape of a tensor, if the tensor may be measured.
fn shape_of(model: &Model, facts: &Facts, tensor: ValueId) -> Option<Rc<[Dim]>> {
    let shape = facts.get(tensor).and_then(Fact::shape)?;
    let is_misread = || is_inside_a_normalization(model, tensor) || is_strided(model, facts, tensor);
    let is_measured = !is_inside_a_quantized_group(model, tensor) && !is_misread();
    is_measured.then(|| shape.iter().map(|dim| facts.scope().current(dim)).collect())
}

/// Returns `true` if a value is one number of a followed type. In an operation with sizes, any producer of it is accepted.
fn is_number(facts: &Facts, value: ValueId) -> bool {
    let fact = facts.get(value);
    let followed = fact.and_then(Fact::dtype).is_some_and(is_followed);
    followed && fact.is_some_and(|fact| fact.rank() <= Some(1) && small(fact) == Some(1))
}

/// Returns how an operator of the default domain moves elements, if it only moves them.
pub(super) fn movement(operator: &str) -> Option<Movement> {
    ops::operator("", operator)?.traits.moves
}

/// Returns the number of elements of a small tensor that is not empty.
pub(super) fn small(fact: &Fact) -> Option<usize> {
    fact.static_len().filter(|&len| len > 0 && len <= MAX_LEN)
}

/// Returns `true` if every element of the results is known by symbols in the operands: then the results do not depend on data.
fn tells_sizes(facts: &Facts, node: &Node) -> bool {
    let (mut own, mut told) = (FxHashSet::default(), FxHashSet::default());
    for &output in node.outputs().iter().flatten() {
        let elements = facts.get(output).and_then(Fact::elements);
        let known = |element: &Scalar| *element != Scalar::Unknown;
        if !elements.is_some_and(|elements| elements.iter().all(known)) {
            return false;
        }
        add_symbols(facts, output, &mut own);
    }
    for &input in node.inputs().iter().flatten() {
        add_symbols(facts, input, &mut told);
    }
    own.is_subset(&told)
}

/// Adds the symbols in the shape and in the elements of a value.
pub(super) fn add_symbols(facts: &Facts, value: ValueId, into: &mut impl Extend<Symbol>) {
    let Some(fact) = facts.get(value) else { return };
    let symbols = |dim: &Dim| facts.scope().current(dim).symbols();
    for dim in fact.shape().into_iter().flatten() {
        into.extend(symbols(dim));
    }
    for element in fact.elements().into_iter().flatten() {
        match element {
            Scalar::Int(dim) | Scalar::Real { num: dim, .. } => into.extend(symbols(&dim)),
            Scalar::Float(_) | Scalar::Unknown => {}
        }
    }
}

/// Returns `true` if a value is an intermediate of a quantized operation: its result before or after quantization. Runtimes compute such a group on
/// integers only while nothing else reads these values. A clipping function may be in between, which they fuse into the bounds. Any reader of a graph
/// input is allowed.
pub(in crate::passes) fn is_inside_a_quantized_group(model: &Model, value: ValueId) -> bool {
    let Some(producer) = model.value(value).producer() else { return false };
    let quantizes = |id: NodeId| model.node(id).is_some_and(is_quantization);
    let clips = |node: &&Node| ["Relu", "Clip"].iter().any(|operator| node.is(operator));
    let readers = || model.users(value).into_iter().map(|(id, _)| id);
    let clipped = readers().filter_map(|id| model.node(id)).filter(clips).filter_map(|node| node.output(0));
    quantizes(producer)
        || readers().any(quantizes)
        || clipped.flat_map(|value| model.users(value)).any(|(id, _)| quantizes(id))
}

/// Returns `true` if a value is a mean that is added or subtracted, or is computed from one with constants, such as a deviation. Runtimes compute a
/// normalization with one kernel only while nothing else reads these. All their sizes are those of the averaged tensor.
fn is_inside_a_normalization(model: &Model, value: ValueId) -> bool {
    const MOST: usize = 4;
    let is_moved = |id: NodeId| model.node(id).is_some_and(|node| node.is("Sub") || node.is("Add"));
    let (mut value, mut steps) = (value, 0);
    while let Some(node) = model.value(value).producer().and_then(|id| model.node(id)).filter(|_| steps < MOST) {
        if node.is("ReduceMean") {
            return model.users(value).into_iter().any(|(id, _)| is_moved(id));
        }
        if traits_of(model, node).pointwise.is_none() {
            return false;
        }
        let mut operands = node.inputs().iter().flatten().filter(|&&operand| !model.value(operand).is_constant());
        let (Some(&operand), None) = (operands.next(), operands.next()) else { return false };
        (value, steps) = (operand, steps + 1);
    }
    false
}
