//! The view of a node for general rules: the node, and the facts of its operands and results.

use super::{Counting, Traits};
use crate::dim::{Dim, Scope};
use crate::ir::{Attribute, Fact, Facts, Model, NamedAttribute, Node, NodeId, ValueId};
use crate::ops::{Site, axis_in, registry};
use crate::slicing::SliceRule;
use crate::tensor::DType;

/// A node with the facts of its operands and results.
#[derive(Clone, Copy)]
pub struct NodeFacts<'a> {
    /// The model.
    pub model: &'a Model,
    /// The facts.
    pub facts: &'a Facts,
    /// The node's id.
    pub id: NodeId,
    /// The node.
    pub node: &'a Node,
    /// The version of the default domain that applies.
    pub opset: i64,
    /// Returns the affine form of a value, for callers that track it.
    pub positions: &'a dyn Fn(ValueId) -> Option<Counting>,
    /// The node's state, while it is inferred.
    pub place: Option<&'a Place<'a>>,
}

/// A node during inference or evaluation: a call may bind its attributes, and its results are not recorded yet.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The node.
    pub site: Site<'a>,
    /// The facts of its operands.
    pub inputs: &'a [Option<Fact>],
    /// The inferred results.
    pub results: &'a [Fact],
}

impl<'a> NodeFacts<'a> {
    /// Returns the view of a node of a model.
    pub fn of(model: &'a Model, facts: &'a Facts, id: NodeId, opset: i64) -> Option<Self> {
        Some(NodeFacts { model, facts, id, node: model.node(id)?, opset, positions: &|_| None, place: None })
    }

    /// Returns the view of a node during inference. The opset is that of the main graph.
    pub(in crate::ops) fn at(place: &'a Place<'a>, facts: &'a Facts) -> Self {
        let Site { model, id, node, .. } = place.site;
        let opset = model.opset(model.main(), "").unwrap_or(0);
        NodeFacts { model, facts, id, node, opset, positions: &|_| None, place: Some(place) }
    }

    /// Returns the operator's traits.
    pub fn traits(&self) -> &'static Traits {
        traits_of(self.model, self.node)
    }

    /// Returns the scope of the symbols.
    pub fn scope(&self) -> &'a Scope {
        self.facts.scope()
    }

    /// Returns operand `i`.
    pub fn input(&self, i: usize) -> Option<ValueId> {
        self.node.input(i)
    }

    /// Returns the fact of operand `i`.
    pub fn fact(&self, i: usize) -> Option<&'a Fact> {
        match self.place {
            Some(place) => place.inputs.get(i)?.as_ref(),
            None => self.facts.get(self.node.input(i)?),
        }
    }

    /// Returns the shape of operand `i`.
    pub fn shape(&self, i: usize) -> Option<&'a [Dim]> {
        self.fact(i)?.shape()
    }

    /// Returns the element type of operand `i`.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        self.fact(i)?.dtype()
    }

    /// Returns the fact of the first result.
    pub fn result(&self) -> Option<&'a Fact> {
        self.facts.get(self.node.output(0)?)
    }

    /// Returns the shape of the first result.
    pub fn result_shape(&self) -> Option<&'a [Dim]> {
        self.result()?.shape()
    }

    /// Returns the integer of operand `i`, if it has exactly one element.
    pub fn single(&self, i: usize) -> Option<Dim> {
        <[Dim; 1]>::try_from(self.fact(i)?.ints()?).ok().map(|[number]| number)
    }

    /// Returns the only element of constant operand `i`, for any rank.
    pub fn number(&self, i: usize) -> Option<f64> {
        let value = self.node.input(i)?;
        let known = self.facts.get(value).and_then(Fact::constant_tensor);
        // Constants created in this round are in the model, but have no fact yet.
        let tensor = known.or_else(|| self.model.value(value).constant_tensor()).filter(|tensor| tensor.len() == 1)?;
        tensor.to_f64s()?.first().copied()
    }

    /// Returns the node as inference sees it; `None` for unsupported versions, and in a function if the call
    /// determines an attribute.
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

    /// Returns an INT attribute, or its default.
    pub fn int(&self, name: &str, default: i64) -> Option<i64> {
        match self.node.attribute(name) {
            None => Some(default),
            Some(Attribute::Int(value)) => Some(*value),
            Some(_) => None,
        }
    }

    /// Returns a FLOAT attribute, or its default.
    pub fn float(&self, name: &str, default: f32) -> Option<f32> {
        match self.node.attribute(name) {
            None => Some(default),
            Some(Attribute::Float(value)) => Some(*value),
            Some(_) => None,
        }
    }

    /// Returns the axis of the first operand in attribute `axis`, counted from the front.
    pub fn axis(&self, default: i64) -> Option<usize> {
        axis_in(self.int("axis", default)?, self.shape(0)?.len()).ok()
    }

    /// Returns the axes in attribute `axes`, or else in operand `slot`: ascending, without duplicates. `None` if
    /// neither is present.
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

    /// Returns `true` if two dims are provably equal.
    pub fn equal(&self, a: &Dim, b: &Dim) -> bool {
        self.scope().eq(a, b).is_yes()
    }

    /// Returns `true` if a dim is provably at least `least`.
    pub fn at_least(&self, dim: &Dim, least: i64) -> bool {
        self.scope().ge(dim, &Dim::constant(least)).is_yes()
    }
}

/// Returns the traits of a node's operator; [`Traits::NONE`] if it is unknown or a function of the model.
pub fn traits_of<'m>(model: &'m Model, node: &'m Node) -> &'static Traits {
    static NONE: Traits = Traits::NONE;
    if model.function_of(node).is_some() {
        return &NONE;
    }
    registry::operator_of(model, node).map_or(&NONE, |operator| &operator.traits)
}
