//! A node as a general rule sees it: what it is, and what is proved of what it reads and gives.

use super::{Counting, Traits};
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Fact, Facts, Model, NamedAttribute, Node, NodeId, ValueId};
use crate::ops::{Site, axis_in, registry};
use crate::slicing::SliceRule;
use crate::tensor::DType;

/// A node with the facts about its operands and results.
#[derive(Clone, Copy)]
pub struct NodeFacts<'a> {
    /// The model.
    pub model: &'a Model,
    /// What is proved.
    pub facts: &'a Facts,
    /// The node's identity.
    pub id: NodeId,
    /// The node.
    pub node: &'a Node,
    /// The version of the default domain in force.
    pub opset: i64,
    /// The positions that a value holds, for whoever follows them.
    pub positions: &'a dyn Fn(ValueId) -> Option<Counting>,
    /// The place of the node, while it is inferred.
    pub place: Option<&'a Place<'a>>,
}

/// A node during inference: its attributes may be bound by a call, and its results are not recorded yet.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The node.
    pub site: Site<'a>,
    /// The inferred results.
    pub results: &'a [Fact],
}

impl<'a> NodeFacts<'a> {
    /// A node of a model.
    pub fn of(model: &'a Model, facts: &'a Facts, id: NodeId, opset: i64) -> Option<Self> {
        Some(NodeFacts { model, facts, id, node: model.node(id)?, opset, positions: &|_| None, place: None })
    }

    /// A node during inference, for which the opset in force is that of the main graph.
    pub(in crate::ops) fn at(place: &'a Place<'a>, facts: &'a Facts) -> Self {
        let Site { model, id, node, .. } = place.site;
        let opset = model.opset(model.main(), "").unwrap_or(0);
        NodeFacts { model, facts, id, node, opset, positions: &|_| None, place: Some(place) }
    }

    /// What the operator says of itself.
    pub fn traits(&self) -> &'static Traits {
        traits_of(self.model, self.node)
    }

    /// The symbols.
    pub fn scope(&self) -> &'a Scope {
        self.facts.scope()
    }

    /// Operand `i`.
    pub fn input(&self, i: usize) -> Option<ValueId> {
        self.node.input(i)
    }

    /// What is proved of operand `i`.
    pub fn fact(&self, i: usize) -> Option<&'a Fact> {
        self.facts.get(self.node.input(i)?)
    }

    /// The shape of operand `i`.
    pub fn shape(&self, i: usize) -> Option<&'a [Dim]> {
        self.fact(i)?.shape()
    }

    /// The element type of operand `i`.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        self.fact(i)?.dtype()
    }

    /// What is proved of the first result.
    pub fn result(&self) -> Option<&'a Fact> {
        self.facts.get(self.node.output(0)?)
    }

    /// The shape of the first result.
    pub fn result_shape(&self) -> Option<&'a [Dim]> {
        self.result()?.shape()
    }

    /// The one number of operand `i`, which has one element.
    pub fn single(&self, i: usize) -> Option<Dim> {
        <[Dim; 1]>::try_from(self.fact(i)?.ints()?).ok().map(|[number]| number)
    }

    /// The one element of constant operand `i`, whatever its rank.
    pub fn number(&self, i: usize) -> Option<f64> {
        let value = self.node.input(i)?;
        let known = self.facts.get(value).and_then(Fact::constant_tensor);
        // What this round made is in the model before anything is proved of it.
        let tensor = known.or_else(|| self.model.value(value).constant_tensor()).filter(|tensor| tensor.len() == 1)?;
        tensor.to_f64s()?.first().copied()
    }

    /// The node as inference sees it; `None` inside a function where the call decides on an attribute, and at other versions than
    /// those that are known.
    pub fn site(&self) -> Option<Site<'a>> {
        if let Some(place) = self.place {
            return Some(place.site);
        }
        let registry::Status::Known(_, version) = registry::status(self.model, self.node) else { return None };
        let given = |attribute: &NamedAttribute| matches!(attribute.value, Attribute::Reference { .. });
        let rule = SliceRule::default();
        let site = Site { model: self.model, id: self.id, node: self.node, version, slice_rule: rule, bindings: &[] };
        (!self.node.attributes.iter().any(given)).then_some(site)
    }

    /// An INT attribute, or its default.
    pub fn int(&self, name: &str, default: i64) -> Option<i64> {
        match self.node.attribute(name) {
            None => Some(default),
            Some(Attribute::Int(value)) => Some(*value),
            Some(_) => None,
        }
    }

    /// A FLOAT attribute, or its default.
    pub fn float(&self, name: &str, default: f32) -> Option<f32> {
        match self.node.attribute(name) {
            None => Some(default),
            Some(Attribute::Float(value)) => Some(*value),
            Some(_) => None,
        }
    }

    /// The axis of the first operand that attribute `axis` names, counted from the front.
    pub fn axis(&self, default: i64) -> Option<usize> {
        axis_in(self.int("axis", default)?, self.shape(0)?.len()).ok()
    }

    /// The axes among `rank` that attribute `axes` names or, where there is none, operand `slot`: ascending, each once. `None` where none
    /// are named.
    pub fn axes(&self, slot: usize, rank: usize) -> Option<Vec<usize>> {
        let axes = match (self.node.attribute("axes"), self.node.input(slot)) {
            (Some(Attribute::Ints(axes)), None) => axes.clone(),
            (None, Some(axes)) => self.facts.get(axes)?.const_ints()?,
            _ => return None,
        };
        let mut axes = axes.iter().map(|&axis| axis_in(axis, rank).ok()).collect::<Option<Vec<usize>>>()?;
        axes.sort_unstable();
        axes.dedup();
        Some(axes)
    }

    /// Whether two dims are proved to be equal.
    pub fn equal(&self, a: &Dim, b: &Dim) -> bool {
        self.scope().eq(a, b).is_yes()
    }

    /// Whether a dim is proved to be at least this.
    pub fn at_least(&self, dim: &Dim, least: i64) -> bool {
        self.scope().ge(dim, &Dim::constant(least)).is_yes()
    }
}

/// What the operator of a node says of itself; [`Traits::NONE`] where it is not known, or the model's own.
pub fn traits_of<'m>(model: &'m Model, node: &'m Node) -> &'static Traits {
    static NONE: Traits = Traits::NONE;
    if model.function_of(node).is_some() {
        return &NONE;
    }
    registry::operator_of(model, node).map_or(&NONE, |operator| &operator.traits)
}
