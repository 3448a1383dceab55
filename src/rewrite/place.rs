//! A node with its facts, as the input of a rule.

use super::cache::Taken;
use super::miss::Miss;
use crate::consumers::Construct;
use crate::dim::{Answer, Dim, Scope};
use crate::ir::{Content, Edit, Fact, Facts, GraphId, Model, Node, NodeId, Scalar, ValueId};
use crate::ops::traits::{Movement, NodeFacts, Traits, traits_of};
use crate::ops::{Budget, NodeView, Opset, concat, concat_later, has_kernel_for_narrow};
use crate::tensor::{DType, Tensor};

/// The node that a rule inspects, with all information that the rule may use.
pub struct Place<'a> {
    /// The model.
    pub model: &'a Model,
    /// The proved facts.
    pub facts: &'a Facts,
    /// The node.
    pub id: NodeId,
    /// The operator set of the default domain in force.
    pub opset: Opset,
    /// The cost budget for computing new constants.
    pub budget: &'a Budget,
    /// The cache of analyzed slices.
    pub taken: &'a Taken,
    /// The constructs that the consumer of the result lacks.
    pub avoided: &'a [Construct],
}

impl<'a> Place<'a> {
    /// Returns the node; `None` if it has been removed.
    pub fn node(&self) -> Option<&'a Node> {
        self.model.node(self.id)
    }

    /// Returns the graph of the node.
    pub fn graph(&self) -> Option<GraphId> {
        self.node().map(Node::graph)
    }

    /// Returns a view of a node of this graph under the opset in force.
    pub fn read(&self, node: &'a Node) -> NodeView<'a> {
        NodeView { node, facts: self.facts, opset: self.opset }
    }

    /// Returns a view of the current node under the opset in force.
    pub fn this(&self) -> Option<NodeView<'a>> {
        self.node().map(|node| self.read(node))
    }

    /// Returns operand `i` of the node.
    pub fn input(&self, i: usize) -> Option<ValueId> {
        self.node()?.input(i)
    }

    /// Returns result `i` of the node.
    pub fn output(&self, i: usize) -> Option<ValueId> {
        self.node()?.output(i)
    }

    /// Returns the node; [`Miss::ROOT`] if it has been removed.
    pub fn root(&self) -> Result<&'a Node, Miss> {
        self.node().ok_or(Miss::ROOT)
    }

    /// Returns a view of the node under the opset in force, or [`Miss::ROOT`].
    pub fn reading(&self) -> Result<NodeView<'a>, Miss> {
        self.this().ok_or(Miss::ROOT)
    }

    /// Returns operand `i` of the node; [`Miss::ROOT`] if it is absent.
    pub fn operand(&self, i: usize) -> Result<ValueId, Miss> {
        self.input(i).ok_or(Miss::ROOT)
    }

    /// Returns the first result of the node, or [`Miss::ROOT`].
    pub fn result(&self) -> Result<ValueId, Miss> {
        self.output(0).ok_or(Miss::ROOT)
    }

    /// Returns an empty edit at this node, or [`Miss::ROOT`].
    pub fn begin(&self) -> Result<Edit, Miss> {
        self.edit().ok_or(Miss::ROOT)
    }

    /// Returns the scope of the symbols.
    pub fn scope(&self) -> &'a Scope {
        self.facts.scope()
    }

    /// Returns the fact about a value.
    pub fn fact(&self, value: ValueId) -> Option<&'a Fact> {
        self.facts.get(value)
    }

    /// Returns the shape of a value.
    pub fn shape(&self, value: ValueId) -> Option<&'a [Dim]> {
        self.fact(value).and_then(Fact::shape)
    }

    /// Returns the shape of a value, or [`Miss::SHAPE`].
    pub fn dims(&self, value: ValueId) -> Result<&'a [Dim], Miss> {
        self.shape(value).ok_or(Miss::SHAPE.of(value))
    }

    /// Returns the element type of a value.
    pub fn dtype(&self, value: ValueId) -> Option<DType> {
        self.fact(value).and_then(Fact::dtype)
    }

    /// Returns the content of a value, if all of it is known.
    pub fn constant(&self, value: ValueId) -> Option<&'a Tensor> {
        self.fact(value).and_then(Fact::constant_tensor)
    }

    /// Returns the constant integers of a value.
    pub fn const_ints(&self, value: ValueId) -> Option<Vec<i64>> {
        self.fact(value).and_then(Fact::const_ints)
    }

    /// Returns `true` if a value holds dims: it is a constant, has integer elements, or has floats that derive from dims. Floats that are
    /// known at some positions only, for example after a Pad, are data.
    pub fn holds_dims(&self, value: ValueId) -> bool {
        let is_dim = |element: &Scalar| match element {
            Scalar::Int(_) => true,
            Scalar::Real { num, .. } => num.as_const().is_none(),
            Scalar::Float(_) | Scalar::Unknown => false,
        };
        match self.fact(value).and_then(|fact| fact.content.as_ref()) {
            Some(Content::Constant(_)) => true,
            Some(Content::Elements(elements)) => elements.iter().any(is_dim),
            None => false,
        }
    }

    /// Returns `true` if both values are proved to have the same shape, dimension for dimension.
    pub fn same_shape(&self, a: ValueId, b: ValueId) -> bool {
        self.compare_shapes(a, b).is_yes()
    }

    /// Compares the shapes of two values.
    pub fn compare_shapes(&self, a: ValueId, b: ValueId) -> Answer {
        match (self.shape(a), self.shape(b)) {
            (Some(a), Some(b)) => self.compare_dims(a, b),
            _ => Answer::No,
        }
    }

    /// Returns `true` if a new Gather may read a value. ONNX Runtime's Gather returns only the first string of each entry.
    pub fn may_be_looked_up(&self, value: ValueId) -> bool {
        self.dtype(value).is_some_and(|dtype| dtype != DType::String)
    }

    /// Returns `true` if both lists have the same length and their dims are proved to be equal in pairs.
    pub fn same_dims(&self, a: &[Dim], b: &[Dim]) -> bool {
        self.compare_dims(a, b).is_yes()
    }

    /// Compares two lists of dims in pairs. The answer is that of the first pair that is not proved to be equal.
    pub fn compare_dims(&self, a: &[Dim], b: &[Dim]) -> Answer {
        if a.len() != b.len() {
            return Answer::No;
        }
        let answers = a.iter().zip(b).map(|(a, b)| self.scope().eq(a, b));
        answers.into_iter().find(|answer| !answer.is_yes()).unwrap_or(Answer::Yes)
    }

    /// Returns `true` if both lists have the same dims in the same order, dims of size 1 aside.
    pub fn same_but_ones(&self, a: &[Dim], b: &[Dim]) -> bool {
        let long = |dims: &[Dim]| dims.iter().filter(|dim| !dim.is_const(1)).cloned().collect::<Vec<_>>();
        self.same_dims(&long(a), &long(b))
    }

    /// Returns `true` if the second list consists of one or more dims of size 1 and the dims of the first list.
    pub fn is_led_by_ones(&self, dims: &[Dim], led: &[Dim]) -> bool {
        let parts = led.len().checked_sub(dims.len()).filter(|&at| at > 0).and_then(|at| led.split_at_checked(at));
        parts.is_some_and(|(front, rest)| front.iter().all(|dim| dim.is_const(1)) && self.same_dims(dims, rest))
    }

    /// Returns a node with the facts about its operands and results.
    pub fn view(&self, id: NodeId) -> Option<NodeFacts<'a>> {
        NodeFacts::of(self.model, self.facts, id, self.opset.version())
    }

    /// Returns the producer of a value, if it is in the same graph, its operator is in the default domain, and `has` accepts the operator's
    /// traits.
    pub fn producer_with(&self, value: ValueId, has: impl Fn(&Traits) -> bool) -> Option<(NodeId, &'a Node)> {
        let id = self.model.value(value).producer()?;
        let node = self.model.node(id)?;
        let fits = node.graph() == self.node()?.graph() && node.canonical_domain().is_empty();
        (fits && has(traits_of(self.model, node))).then_some((id, node))
    }

    /// Returns `true` if runtimes compute products of an operand with these dims best on flattened rows: they do so for static shapes. From
    /// the first opset with Attention on, which takes unflattened values, this is `false`.
    pub fn runs_in_rows(&self, dims: &[Dim]) -> bool {
        let is_number = |dim: &Dim| dim.as_const().is_some_and(|size| size > 0);
        !self.opset.has("Attention") && dims.iter().all(is_number)
    }

    /// Returns the layout node that computes a value, if it is in the same graph.
    pub fn layout(&self, value: ValueId) -> Option<(NodeId, &'a Node)> {
        self.producer_with(value, |traits| traits.moves == Some(Movement::Layout))
    }

    /// Returns the producer of a value, if it has this operator of the default domain and is in the same graph.
    pub fn producer(&self, value: ValueId, operator: &str) -> Option<(NodeId, &'a Node)> {
        self.producer_of(value, &[operator])
    }

    /// Returns the producer of a value, if it has one of these operators of the default domain and is in the same graph.
    pub fn producer_of(&self, value: ValueId, operators: &[&str]) -> Option<(NodeId, &'a Node)> {
        let id = self.model.value(value).producer()?;
        let node = self.model.node(id).filter(|node| Some(node.graph()) == self.graph())?;
        operators.iter().any(|operator| node.is(operator)).then_some((id, node))
    }

    /// Concatenates constants along an axis; the other dims are equal.
    pub(super) fn concatenated(&self, tensors: &[&Tensor], axis: usize) -> Option<Tensor> {
        let dtype = tensors.first()?.dtype();
        let elements = tensors.iter().try_fold(0usize, |sum, tensor| sum.checked_add(tensor.len()))?;
        if Tensor::may_be_deferred(dtype, &[elements]) && tensors.iter().all(|tensor| tensor.dtype() == dtype) {
            return concat_later(tensors, axis).ok();
        }
        let bytes = tensors.iter().try_fold(0usize, |sum, tensor| sum.checked_add(tensor.byte_len()))?;
        self.budget.take_bytes(bytes).ok()?;
        concat(tensors, axis).ok()
    }

    /// Returns `true` if exactly one operand of one node reads a value.
    pub fn has_one_reader(&self, value: ValueId) -> bool {
        self.model.is_read_once(value)
    }

    /// Returns `true` if exactly one node reads a value, once or more often.
    pub fn has_one_reader_node(&self, value: ValueId) -> bool {
        let users = self.model.users(value);
        let first = users.first().map(|&(node, _)| node);
        let all = users.iter().all(|&(node, _)| Some(node) == first);
        !self.model.is_named(value) && first.is_some() && all
    }

    /// Returns an empty edit at this node.
    pub fn edit(&self) -> Option<Edit> {
        Edit::at(self.model, self.id)
    }

    /// Returns the edit that removes this node and rewires the consumers of its first result to `value`. The other results must be unread.
    /// If a graph output needs the result's name and the producer of `value` cannot take it, for example because `value` is a graph input,
    /// the edit inserts an Identity.
    pub fn forward(&self, value: ValueId) -> Result<Edit, Miss> {
        let (node, output) = (self.root()?, self.result()?);
        if !self.may_forward(value) && (node.is("Identity") || !self.may_be_copied(value)) {
            return Err(Miss::NAME.of(output));
        }
        let mut rest = node.outputs().iter().skip(1).flatten();
        if let Some(&read) = rest.find(|&&other| !self.model.is_unused(other)) {
            return Err(Miss::RESULTS.of(read));
        }
        Ok(self.begin()?.replacing(output, value).removing(self.id))
    }

    /// Returns `true` if runtimes have an Identity for the type of a value.
    fn may_be_copied(&self, value: ValueId) -> bool {
        self.dtype(value).is_none_or(|dtype| has_kernel_for_narrow("Identity", dtype, self.opset.version()))
    }

    /// Returns `true` if a quantization and a dequantization have the same scale, zero point, axis and blocks.
    pub fn same_grid(&self, outer: &Node, inner: &Node) -> bool {
        let same = |slot: usize| match (outer.input(slot), inner.input(slot)) {
            (None, None) => true,
            (Some(a), Some(b)) => a == b || self.constant(a).zip(self.constant(b)).is_some_and(|(a, b)| a.same(b)),
            _ => false,
        };
        let alike = |name: &str, default: i64| {
            outer.int(name, default).is_some_and(|own| inner.int(name, default) == Some(own))
        };
        same(1) && same(2) && alike("axis", 1) && alike("block_size", 0)
    }

    /// Returns `true` if a value can replace the node's first result without an Identity for the result's name.
    pub fn may_forward(&self, value: ValueId) -> bool {
        let at = self.output(0).zip(self.graph());
        at.is_some_and(|(output, graph)| self.model.may_replace(output, value, graph))
    }
}
