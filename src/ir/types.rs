//! Types: what the file declares of a value, and what is proved of one.

use std::fmt;

use super::Extra;
use crate::dim::Dim;
use crate::tensor::DType;

/// A dimension as the file declares it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum DimClaim {
    /// Nothing said, or a negative `dim_value`, which means the same.
    #[default]
    Unknown,
    /// `dim_value`, not negative.
    Value(i64),
    /// `dim_param`, not empty.
    Param(String),
}

impl DimClaim {
    /// What the size is called. "None", "?" and "-1" are how exporters write that they do not know: no two of them need be the same
    /// size, so they are no names.
    pub fn name(&self) -> Option<&str> {
        match self {
            DimClaim::Param(text) if text.chars().any(char::is_alphabetic) && text != "None" && text != "none" => {
                Some(text)
            }
            _ => None,
        }
    }
}

impl fmt::Display for DimClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DimClaim::Unknown => f.write_str("?"),
            DimClaim::Value(size) => write!(f, "{size}"),
            DimClaim::Param(label) => f.write_str(label),
        }
    }
}

/// A declared dimension with what else the file says about it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DeclaredDim {
    /// The size.
    pub claim: DimClaim,
    /// `denotation` and unknown fields, as wire bytes of the dimension's message.
    pub extra: Extra,
}

/// A declared shape; `None` in its place means that not even the rank is declared.
pub type DeclaredShape = Vec<DeclaredDim>;

/// A type as the file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredType {
    /// A dense tensor. `dtype` keeps the number as written, 0 (undefined) and numbers newer than this program included.
    Tensor { dtype: i32, shape: Option<DeclaredShape>, extra: Extra },
    /// A sparse tensor, likewise.
    SparseTensor { dtype: i32, shape: Option<DeclaredShape>, extra: Extra },
    /// A sequence; `None` when the element type is not declared.
    Sequence { elem: Option<Box<DeclaredType>>, extra: Extra },
    /// An optional; `None` when the element type is not declared.
    Optional { elem: Option<Box<DeclaredType>>, extra: Extra },
    /// A map from `key` (a data type number) to values.
    Map { key: i32, value: Option<Box<DeclaredType>>, extra: Extra },
    /// Anything else, kept as the wire bytes of its `TypeProto`.
    Opaque(Extra),
}

impl DeclaredType {
    /// The dense tensor type of a known data type.
    pub fn tensor(dtype: DType, shape: Option<Vec<DimClaim>>) -> Self {
        let shape =
            shape.map(|dims| dims.into_iter().map(|claim| DeclaredDim { claim, extra: Extra::new() }).collect());
        DeclaredType::Tensor { dtype: dtype.onnx(), shape, extra: Extra::new() }
    }

    /// The declared shape of a dense or sparse tensor.
    pub fn shape(&self) -> Option<&DeclaredShape> {
        match self {
            DeclaredType::Tensor { shape, .. } | DeclaredType::SparseTensor { shape, .. } => shape.as_ref(),
            _ => None,
        }
    }

    /// The declared element type of a dense or sparse tensor, if this program knows it.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            DeclaredType::Tensor { dtype, .. } | DeclaredType::SparseTensor { dtype, .. } => DType::from_onnx(*dtype),
            _ => None,
        }
    }
}

/// A proved type. `Hash`/`Eq` are structural.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A dense tensor.
    Tensor(TensorType),
    /// A sparse tensor.
    SparseTensor(TensorType),
    /// A sequence of elements that all have this type; `None`: element type not known.
    Sequence(Option<Box<Type>>),
    /// An optional of this type; `None`: element type not known.
    Optional(Option<Box<Type>>),
    /// A map.
    Map(DType, Option<Box<Type>>),
}

/// What is proved of a tensor's type.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TensorType {
    /// The element type.
    pub dtype: Option<DType>,
    /// The shape; a size nobody knows is a symbol of its own.
    pub shape: Option<Vec<Dim>>,
}

impl TensorType {
    /// A type from its parts.
    pub fn new(dtype: Option<DType>, shape: Option<Vec<Dim>>) -> Self {
        TensorType { dtype, shape }
    }
}

impl Type {
    /// The tensor type inside, dense or sparse.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(tensor) | Type::SparseTensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}
