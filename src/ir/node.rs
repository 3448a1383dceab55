//! Nodes.

use std::cell::Cell;

use smallvec::SmallVec;

use super::{Attribute, Extra, GraphId, Name, NamedAttribute, ValueId};
use crate::tensor::Tensor;

/// Operands or results. Up to four lie in the node itself, in the room that a vector takes to say where they lie: every sweep reads them.
pub(super) type Values = SmallVec<[Option<ValueId>; 4]>;

/// One application of an operator.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's own name: in a file often empty, or not unique; see [`Model::name_nodes`](super::Model::name_nodes).
    pub name: Name,
    /// The operator's domain; `ai.onnx` is kept as it is written, compare with [`Node::is`].
    pub domain: Name,
    /// The operator.
    pub op_type: Name,
    /// Which overload of a model function is called; mostly empty.
    pub overload: Name,
    /// The attributes in file order.
    pub attributes: Vec<NamedAttribute>,
    /// Documentation, metadata, device configurations and unknown fields.
    pub extra: Extra,
    pub(super) graph: GraphId,
    pub(super) inputs: Values,
    pub(super) outputs: Values,
    /// Where the node stands among its neighbours when the wiring leaves a choice.
    pub(super) order: (u32, u32),
    pub(super) mark: Mark,
}

/// A number that the owner of a table of operators leaves at a node to find its operator again. A copy of the node, which may become one
/// of another operator, has none.
#[derive(Debug, Default)]
pub(super) struct Mark(Cell<Option<u16>>);

impl Clone for Mark {
    fn clone(&self) -> Self {
        Mark::default()
    }
}

impl Node {
    /// The graph that holds the node.
    pub fn graph(&self) -> GraphId {
        self.graph
    }

    /// The number that was left at the node since its operator could change last.
    pub fn mark(&self) -> Option<u16> {
        self.mark.0.get()
    }

    /// Leaves a number at the node.
    pub fn set_mark(&self, mark: u16) {
        self.mark.0.set(Some(mark));
    }

    /// The operands; `None` is an optional input left out.
    pub fn inputs(&self) -> &[Option<ValueId>] {
        &self.inputs
    }

    /// The results; `None` is an optional output left out.
    pub fn outputs(&self) -> &[Option<ValueId>] {
        &self.outputs
    }

    /// Operand `i`, if it is there.
    pub fn input(&self, i: usize) -> Option<ValueId> {
        self.inputs.get(i).copied().flatten()
    }

    /// Result `i`, if it is there.
    pub fn output(&self, i: usize) -> Option<ValueId> {
        self.outputs.get(i).copied().flatten()
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
    }

    /// The attribute of this name. Inside a function a reference stands for what the call binds; what the call leaves out is absent.
    pub fn bound_attribute<'a>(&'a self, name: &str, bindings: &'a [NamedAttribute]) -> Option<&'a Attribute> {
        match self.attribute(name)? {
            Attribute::Reference { name, .. } => {
                bindings.iter().find(|bound| bound.name == *name).map(|bound| &bound.value)
            }
            value => Some(value),
        }
    }

    /// The INT attribute of this name, or the default if it is left out; `None` if it is of another kind, or must be there.
    pub fn int_or(&self, name: &str, default: Option<i64>) -> Option<i64> {
        match self.attribute(name) {
            None => default,
            Some(Attribute::Int(value)) => Some(*value),
            Some(_) => None,
        }
    }

    /// The INT attribute of this name, or the default if it is left out; `None` if it is of another kind.
    pub fn int(&self, name: &str, default: i64) -> Option<i64> {
        self.int_or(name, Some(default))
    }

    /// The INT attribute of this name as a flag; `None` if it is neither 0 nor 1, which runtimes take as either.
    pub fn flag(&self, name: &str, default: bool) -> Option<bool> {
        match self.int(name, i64::from(default))? {
            flag @ (0 | 1) => Some(flag == 1),
            _ => None,
        }
    }

    /// The FLOAT attribute of this name, or the default if it is left out; `None` if it is of another kind.
    pub fn float(&self, name: &str, default: f32) -> Option<f32> {
        match self.attribute(name) {
            None => Some(default),
            Some(Attribute::Float(value)) => Some(*value),
            Some(_) => None,
        }
    }

    /// The INTS attribute of this name, empty if it is left out; `None` if it is of another kind.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attribute(name) {
            None => Some(&[]),
            Some(Attribute::Ints(values)) => Some(values),
            Some(_) => None,
        }
    }

    /// The STRING attribute of this name, or the default if it is left out; `None` if it is of another kind.
    pub fn text<'t>(&'t self, name: &str, default: &'t [u8]) -> Option<&'t [u8]> {
        match self.attribute(name) {
            None => Some(default),
            Some(Attribute::String(value)) => Some(value),
            Some(_) => None,
        }
    }

    /// The TENSOR attribute of this name, if it is there.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        match self.attribute(name) {
            Some(Attribute::Tensor(tensor, _)) => Some(tensor),
            _ => None,
        }
    }

    /// How many operands are this value.
    pub fn times_read(&self, value: ValueId) -> usize {
        self.inputs.iter().filter(|&&input| input == Some(value)).count()
    }

    /// Whether both have the same attributes, bit for bit, in whatever order.
    pub fn same_attributes(&self, other: &Node) -> bool {
        let same = |held: &NamedAttribute| other.attribute(&held.name).is_some_and(|value| held.value.same(value));
        self.attributes.len() == other.attributes.len() && self.attributes.iter().all(same)
    }

    /// The domain with the standard's two spellings of the default one made one: `""`.
    pub fn canonical_domain(&self) -> &str {
        canonical(&self.domain)
    }

    /// Whether this is `op_type` of the default domain.
    pub fn is(&self, op_type: &str) -> bool {
        self.op_type == op_type && self.canonical_domain().is_empty()
    }

    /// The subgraphs, in attribute order.
    pub fn subgraphs(&self) -> impl Iterator<Item = GraphId> + '_ {
        self.attributes.iter().flat_map(|attribute| attribute.value.graphs().iter().copied())
    }

    /// Domain and operator, as messages name them.
    pub fn operator(&self) -> String {
        if self.canonical_domain().is_empty() {
            self.op_type.to_string()
        } else {
            format!("{}.{}", self.domain, self.op_type)
        }
    }
}

/// A domain as messages and tables name it: both spellings of the default one are `""`.
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
