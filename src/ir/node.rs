//! Nodes of a graph.

use std::cell::Cell;

use smallvec::SmallVec;

use super::{Attribute, Extra, GraphId, Name, NamedAttribute, ValueId};
use crate::tensor::Tensor;

/// Operands or results. Up to four are stored inline, in the space of a vector's pointers: every sweep reads them.
pub(super) type Values = SmallVec<[Option<ValueId>; 4]>;

/// One application of an operator.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's name: in files often empty or not unique; see [`Model::name_nodes`](super::Model::name_nodes).
    pub name: Name,
    /// The operator's domain; `ai.onnx` is kept as written, so compare with [`Node::is`].
    pub domain: Name,
    /// The operator.
    pub op_type: Name,
    /// The overload of a model function; usually empty.
    pub overload: Name,
    /// The attributes in file order.
    pub attributes: Vec<NamedAttribute>,
    /// Documentation, metadata, device configurations and unknown fields.
    pub extra: Extra,
    pub(super) graph: GraphId,
    pub(super) inputs: Values,
    pub(super) outputs: Values,
    /// The position among the graph's nodes, which breaks ties of the topological order.
    pub(super) order: (u32, u32),
    pub(super) mark: Mark,
}

/// A number by which the owner of an operator table finds a node's operator again. A copy of the node, which may get
/// another operator, has no number.
#[derive(Debug, Default)]
pub(super) struct Mark(Cell<Option<u16>>);

impl Clone for Mark {
    fn clone(&self) -> Self {
        Mark::default()
    }
}

impl Node {
    /// Returns the graph that contains the node.
    pub fn graph(&self) -> GraphId {
        self.graph
    }

    /// Returns the number that was set since the operator could last change.
    pub fn mark(&self) -> Option<u16> {
        self.mark.0.get()
    }

    /// Sets the node's number.
    pub fn set_mark(&self, mark: u16) {
        self.mark.0.set(Some(mark));
    }

    /// Returns the operands; `None` is an omitted optional input.
    pub fn inputs(&self) -> &[Option<ValueId>] {
        &self.inputs
    }

    /// Returns the results; `None` is an omitted optional output.
    pub fn outputs(&self) -> &[Option<ValueId>] {
        &self.outputs
    }

    /// Returns operand `i`, if present.
    pub fn input(&self, i: usize) -> Option<ValueId> {
        self.inputs.get(i).copied().flatten()
    }

    /// Returns result `i`, if present.
    pub fn output(&self, i: usize) -> Option<ValueId> {
        self.outputs.get(i).copied().flatten()
    }

    /// Returns the attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
    }

    /// Returns the attribute of this name; a reference in a function resolves to the call's binding, and is absent
    /// without one.
    pub fn bound_attribute<'a>(&'a self, name: &str, bindings: &'a [NamedAttribute]) -> Option<&'a Attribute> {
        match self.attribute(name)? {
            Attribute::Reference { name, .. } => {
                bindings.iter().find(|bound| bound.name == *name).map(|bound| &bound.value)
            }
            value => Some(value),
        }
    }

    /// Returns the INT attribute of this name, or the default if absent; `None` if it has another kind or is required
    /// and absent.
    pub fn int_or(&self, name: &str, default: Option<i64>) -> Option<i64> {
        match self.attribute(name) {
            None => default,
            Some(Attribute::Int(value)) => Some(*value),
            Some(_) => None,
        }
    }

    /// Returns the INT attribute of this name, or the default if absent; `None` if it has another kind.
    pub fn int(&self, name: &str, default: i64) -> Option<i64> {
        self.int_or(name, Some(default))
    }

    /// Returns the INT attribute of this name as a flag; `None` if it is neither 0 nor 1: runtimes disagree about
    /// other values.
    pub fn flag(&self, name: &str, default: bool) -> Option<bool> {
        match self.int(name, i64::from(default))? {
            flag @ (0 | 1) => Some(flag == 1),
            _ => None,
        }
    }

    /// Returns the FLOAT attribute of this name, or the default if absent; `None` if it has another kind.
    pub fn float(&self, name: &str, default: f32) -> Option<f32> {
        match self.attribute(name) {
            None => Some(default),
            Some(Attribute::Float(value)) => Some(*value),
            Some(_) => None,
        }
    }

    /// Returns the INTS attribute of this name, empty if absent; `None` if it has another kind.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attribute(name) {
            None => Some(&[]),
            Some(Attribute::Ints(values)) => Some(values),
            Some(_) => None,
        }
    }

    /// Returns the STRING attribute of this name, or the default if absent; `None` if it has another kind.
    pub fn text<'t>(&'t self, name: &str, default: &'t [u8]) -> Option<&'t [u8]> {
        match self.attribute(name) {
            None => Some(default),
            Some(Attribute::String(value)) => Some(value),
            Some(_) => None,
        }
    }

    /// Returns the TENSOR attribute of this name, if present.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        match self.attribute(name) {
            Some(Attribute::Tensor(tensor, _)) => Some(tensor),
            _ => None,
        }
    }

    /// Returns the number of operands that are this value.
    pub fn times_read(&self, value: ValueId) -> usize {
        self.inputs.iter().filter(|&&input| input == Some(value)).count()
    }

    /// Returns `true` if both nodes have equal attributes, bit for bit, in any order.
    pub fn same_attributes(&self, other: &Node) -> bool {
        let same = |held: &NamedAttribute| other.attribute(&held.name).is_some_and(|value| held.value.same(value));
        self.attributes.len() == other.attributes.len() && self.attributes.iter().all(same)
    }

    /// Returns the domain; both spellings of the default one give `""`.
    pub fn canonical_domain(&self) -> &str {
        canonical(&self.domain)
    }

    /// Returns `true` if the operator is `op_type` of the default domain.
    pub fn is(&self, op_type: &str) -> bool {
        self.op_type == op_type && self.canonical_domain().is_empty()
    }

    /// Returns the subgraphs, in attribute order.
    pub fn subgraphs(&self) -> impl Iterator<Item = GraphId> + '_ {
        self.attributes.iter().flat_map(|attribute| attribute.value.graphs().iter().copied())
    }

    /// Returns domain and operator, for messages.
    pub fn operator(&self) -> String {
        if self.canonical_domain().is_empty() {
            self.op_type.to_string()
        } else {
            format!("{}.{}", self.domain, self.op_type)
        }
    }
}

/// Returns the canonical form of a domain: both spellings of the default one give `""`.
pub(crate) fn canonical(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_take_no_more_room_than_a_vector_does() {
        assert_eq!(size_of::<Option<ValueId>>(), size_of::<u32>());
        assert_eq!(size_of::<Values>(), size_of::<Vec<ValueId>>());
    }
}
