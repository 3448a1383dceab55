//! Nodes.

use super::{Attribute, Extra, GraphId, NamedAttribute, ValueId};

/// One application of an operator.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node's own name: often empty, not unique.
    pub name: String,
    /// The operator's domain; `ai.onnx` is kept as it is written, compare with [`Node::is`].
    pub domain: String,
    /// The operator.
    pub op_type: String,
    /// Which overload of a model function is called; mostly empty.
    pub overload: String,
    /// The attributes in file order.
    pub attributes: Vec<NamedAttribute>,
    /// Documentation, metadata, device configurations and unknown fields.
    pub extra: Extra,
    pub(super) graph: GraphId,
    pub(super) inputs: Vec<Option<ValueId>>,
    pub(super) outputs: Vec<Option<ValueId>>,
    /// Where the node stands among its neighbours when the wiring leaves a choice.
    pub(super) order: (u32, u32),
}

impl Node {
    /// The graph that holds the node.
    pub fn graph(&self) -> GraphId {
        self.graph
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

    /// The domain with the standard's two spellings of the default one made one: `""`.
    pub fn canonical_domain(&self) -> &str {
        if self.domain == "ai.onnx" { "" } else { &self.domain }
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
            self.op_type.clone()
        } else {
            format!("{}.{}", self.domain, self.op_type)
        }
    }
}
