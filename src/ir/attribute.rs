//! Attributes of nodes.

use bytes::Bytes;

use super::{DeclaredType, Extra, GraphId, Name};
use crate::tensor::{DType, Tensor};

/// A sparse tensor in coordinate form: `values` of shape `[NNZ]`, `indices` of shape `[NNZ]` (linear) or `[NNZ, rank]`.
#[derive(Clone, Debug)]
pub struct SparseTensor {
    /// The non-default elements.
    pub values: Tensor,
    /// The positions of these elements.
    pub indices: Tensor,
    /// The dense shape.
    pub shape: Vec<usize>,
    /// The unmodelled fields of the messages of the tensor, its values and its indices.
    pub extra: [Extra; 3],
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attribute {
    Float(f32),
    Int(i64),
    String(Bytes),
    /// A tensor, with its name and the unmodelled fields of its message.
    Tensor(Tensor, Extra),
    Graph(GraphId),
    SparseTensor(Box<SparseTensor>),
    Type(DeclaredType),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Strings(Vec<Bytes>),
    Tensors(Vec<(Tensor, Extra)>),
    Graphs(Vec<GraphId>),
    SparseTensors(Vec<SparseTensor>),
    Types(Vec<DeclaredType>),
    /// In a function: the calling node's attribute of this name. `kind` is the number of the attribute's type.
    Reference {
        name: String,
        kind: i32,
    },
    /// A tensor or attribute of an unknown kind or data type, as the wire bytes of its message.
    Opaque(Bytes),
}

/// The kinds of attributes, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    Float,
    Int,
    String,
    Tensor,
    Graph,
    SparseTensor,
    Type,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    SparseTensors,
    Types,
    Reference,
    Opaque,
}

impl Attribute {
    /// Returns the kind of the value.
    pub fn kind(&self) -> AttributeKind {
        match self {
            Attribute::Float(_) => AttributeKind::Float,
            Attribute::Int(_) => AttributeKind::Int,
            Attribute::String(_) => AttributeKind::String,
            Attribute::Tensor(..) => AttributeKind::Tensor,
            Attribute::Graph(_) => AttributeKind::Graph,
            Attribute::SparseTensor(_) => AttributeKind::SparseTensor,
            Attribute::Type(_) => AttributeKind::Type,
            Attribute::Floats(_) => AttributeKind::Floats,
            Attribute::Ints(_) => AttributeKind::Ints,
            Attribute::Strings(_) => AttributeKind::Strings,
            Attribute::Tensors(_) => AttributeKind::Tensors,
            Attribute::Graphs(_) => AttributeKind::Graphs,
            Attribute::SparseTensors(_) => AttributeKind::SparseTensors,
            Attribute::Types(_) => AttributeKind::Types,
            Attribute::Reference { .. } => AttributeKind::Reference,
            Attribute::Opaque(_) => AttributeKind::Opaque,
        }
    }

    /// Returns the graphs in this attribute.
    pub fn graphs(&self) -> &[GraphId] {
        match self {
            Attribute::Graph(graph) => std::slice::from_ref(graph),
            Attribute::Graphs(graphs) => graphs,
            _ => &[],
        }
    }

    /// Returns `true` if both values are equal bit for bit. Graphs only equal themselves.
    pub fn same(&self, other: &Attribute) -> bool {
        use Attribute::*;
        fn bits(a: &[f32], b: &[f32]) -> bool {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits())
        }
        fn sparse(a: &super::SparseTensor, b: &super::SparseTensor) -> bool {
            a.shape == b.shape && a.values.same(&b.values) && a.indices.same(&b.indices)
        }
        match (self, other) {
            (Float(a), Float(b)) => a.to_bits() == b.to_bits(),
            (Int(a), Int(b)) => a == b,
            (String(a), String(b)) => a == b,
            (Tensor(a, _), Tensor(b, _)) => a.same(b),
            (Graph(a), Graph(b)) => a == b,
            (SparseTensor(a), SparseTensor(b)) => sparse(a, b),
            (Type(a), Type(b)) => a == b,
            (Floats(a), Floats(b)) => bits(a, b),
            (Ints(a), Ints(b)) => a == b,
            (Strings(a), Strings(b)) => a == b,
            (Tensors(a), Tensors(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0.same(&y.0)),
            (Graphs(a), Graphs(b)) => a == b,
            (SparseTensors(a), SparseTensors(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| sparse(x, y)),
            (Types(a), Types(b)) => a == b,
            (Reference { name: a, kind: i }, Reference { name: b, kind: j }) => a == b && i == j,
            (Opaque(a), Opaque(b)) => a == b,
            _ => false,
        }
    }
}

/// An attribute with its name.
#[derive(Clone, Debug)]
pub struct NamedAttribute {
    /// The attribute's name.
    pub name: Name,
    /// Its value.
    pub value: Attribute,
    /// Documentation and unknown fields of the message.
    pub extra: Extra,
}

impl NamedAttribute {
    /// Creates an attribute without documentation.
    pub fn new(name: impl Into<Name>, value: Attribute) -> Self {
        NamedAttribute { name: name.into(), value, extra: Extra::new() }
    }
}

impl From<i64> for Attribute {
    fn from(value: i64) -> Self {
        Attribute::Int(value)
    }
}

impl From<DType> for Attribute {
    fn from(value: DType) -> Self {
        Attribute::Int(i64::from(value.onnx()))
    }
}

impl From<Vec<i64>> for Attribute {
    fn from(value: Vec<i64>) -> Self {
        Attribute::Ints(value)
    }
}

impl From<Tensor> for Attribute {
    fn from(value: Tensor) -> Self {
        Attribute::Tensor(value, Extra::new())
    }
}
