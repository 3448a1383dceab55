//! Values.

use super::{DeclaredType, Extra, GraphId, Name, NodeId};
use crate::tensor::Tensor;

/// Where a payload that lives outside the model file came from, so that it can stay there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalOrigin {
    /// The `external_data` entries as the file has them.
    pub entries: Vec<(String, String)>,
}

impl ExternalOrigin {
    /// The path of the data file, relative to the model's directory.
    pub fn location(&self) -> Option<&str> {
        self.entries.iter().find(|(key, _)| key == "location").map(|(_, location)| location.as_str())
    }
}

/// An initializer's content.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The dense value. A sparse initializer is expanded here when it is small enough.
    pub tensor: Option<Tensor>,
    /// The wire bytes of the whole message, when it must be written as it was: a sparse initializer, or a tensor that cannot be
    /// read (a data type newer than this program, or a data file that is missing). Then the value's declared type is the tensor's.
    pub verbatim: Option<bytes::Bytes>,
    /// Whether `verbatim` is a `SparseTensorProto`.
    pub sparse: bool,
    /// Set when the payload lives in another file.
    pub origin: Option<ExternalOrigin>,
    /// Documentation, metadata and unknown fields of the tensor's message.
    pub extra: Extra,
}

impl Constant {
    /// A dense constant without further data.
    pub fn dense(tensor: Tensor) -> Self {
        Constant { tensor: Some(tensor), verbatim: None, sparse: false, origin: None, extra: Extra::new() }
    }
}

/// What gives a value its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// An input of the graph. When the value also has a [`Constant`], that is only its default: a caller may override it.
    Input(GraphId),
    /// An initializer of the graph.
    Initializer(GraphId),
    /// Output number `usize` of the node.
    Node(NodeId, usize),
    /// Nothing any more: its node is gone, or the file names it and never defines it.
    Nothing,
}

/// A value: an edge of the graph, with a name.
#[derive(Clone, Debug)]
pub struct Value {
    /// The name in the file.
    pub name: Name,
    /// The type the file declares: a fact for graph inputs, a claim for everything else.
    pub declared: Option<DeclaredType>,
    /// Initializer content, or the default of an input.
    pub constant: Option<Box<Constant>>,
    /// Documentation, metadata and unknown fields of the `ValueInfoProto`.
    pub extra: Extra,
    /// Whether something outside the wiring refers to the name (training information, quantization annotations): the value
    /// must survive and, when `training` state, is no constant.
    pub pinned: bool,
    pub(super) definition: Definition,
}

impl Value {
    /// What defines the value.
    pub fn definition(&self) -> Definition {
        self.definition
    }

    /// The node that computes the value, if one does.
    pub fn producer(&self) -> Option<NodeId> {
        match self.definition {
            Definition::Node(node, _) => Some(node),
            _ => None,
        }
    }

    /// Returns `true` if every run sees the same content: an initializer that no caller can override and no training step changes. Only this
    /// and what rests on it ([`Value::constant_tensor`], `Model::constant_of`, facts) decides whether a value is a constant.
    pub fn is_constant(&self) -> bool {
        matches!(self.definition, Definition::Initializer(_)) && !self.pinned && self.tensor().is_some()
    }

    /// The content, when the value is a constant in the sense of [`Value::is_constant`].
    pub fn constant_tensor(&self) -> Option<&Tensor> {
        if self.is_constant() { self.tensor() } else { None }
    }

    /// The stored tensor, constant or default. A caller may override a default, so only type and size of it hold in every run.
    pub fn tensor(&self) -> Option<&Tensor> {
        self.constant.as_ref().and_then(|constant| constant.tensor.as_ref())
    }
}
