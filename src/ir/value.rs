//! Values of a model.

use super::{DeclaredType, Extra, GraphId, Name, NodeId};
use crate::tensor::Tensor;

/// The origin of an external payload, so that it can be kept in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalOrigin {
    /// The `external_data` entries of the file.
    pub entries: Vec<(String, String)>,
}

impl ExternalOrigin {
    /// Returns the path of the data file, relative to the model's directory.
    pub fn location(&self) -> Option<&str> {
        self.entries.iter().find(|(key, _)| key == "location").map(|(_, location)| location.as_str())
    }
}

/// The content of an initializer.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The dense value. A small enough sparse initializer is expanded.
    pub tensor: Option<Tensor>,
    /// The wire bytes of a message that must be written unchanged: a sparse initializer, or an unreadable tensor
    /// (unknown data type or missing data file). The value's declared type is then the tensor's.
    pub verbatim: Option<bytes::Bytes>,
    /// `true` if `verbatim` is a `SparseTensorProto`.
    pub sparse: bool,
    /// The origin of a payload in another file.
    pub origin: Option<ExternalOrigin>,
    /// Documentation, metadata and unknown fields of the tensor's message.
    pub extra: Extra,
}

impl Constant {
    /// Creates a dense constant without further data.
    pub fn dense(tensor: Tensor) -> Self {
        Constant { tensor: Some(tensor), verbatim: None, sparse: false, origin: None, extra: Extra::new() }
    }
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// An input of the graph. A [`Constant`] of the value is only its default, which a caller may override.
    Input(GraphId),
    /// An initializer of the graph.
    Initializer(GraphId),
    /// The output of the node at this position.
    Node(NodeId, usize),
    /// No definition: the node was removed, or the file never defines the value.
    Nothing,
}

/// A value: an edge of the graph, with a name.
#[derive(Clone, Debug)]
pub struct Value {
    /// The name in the file.
    pub name: Name,
    /// The declared type in the file: a fact for graph inputs, a claim for other values.
    pub declared: Option<DeclaredType>,
    /// The content of an initializer, or the default of an input.
    pub constant: Option<Box<Constant>>,
    /// Documentation, metadata and unknown fields of the `ValueInfoProto`.
    pub extra: Extra,
    /// `true` if something outside the wiring refers to the name, such as training information or quantization
    /// annotations. The value is then kept and is not a constant.
    pub pinned: bool,
    pub(super) definition: Definition,
}

impl Value {
    /// Returns the definition of the value.
    pub fn definition(&self) -> Definition {
        self.definition
    }

    /// Returns the node that computes the value, if any.
    pub fn producer(&self) -> Option<NodeId> {
        match self.definition {
            Definition::Node(node, _) => Some(node),
            _ => None,
        }
    }

    /// Returns `true` if the content is equal in every run: an initializer that no caller and no training step can
    /// change. Only this method and its users ([`Value::constant_tensor`], `Model::constant_of`, facts) decide
    /// whether a value is constant.
    pub fn is_constant(&self) -> bool {
        matches!(self.definition, Definition::Initializer(_)) && !self.pinned && self.tensor().is_some()
    }

    /// Returns the content, if [`Value::is_constant`] returns `true`.
    pub fn constant_tensor(&self) -> Option<&Tensor> {
        if self.is_constant() { self.tensor() } else { None }
    }

    /// Returns the stored tensor, constant or default. A caller may override a default, so only its type and size
    /// hold in every run.
    pub fn tensor(&self) -> Option<&Tensor> {
        self.constant.as_ref().and_then(|constant| constant.tensor.as_ref())
    }
}
