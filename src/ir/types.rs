//! Types: declared ones of the file, and proved ones.

use std::fmt;

use super::Extra;
use crate::dim::Dim;
use crate::tensor::DType;

/// A dim as the file declares it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum DimClaim {
    /// Undeclared, or an equivalent negative `dim_value`.
    #[default]
    Unknown,
    /// A `dim_value` that is not negative.
    Value(i64),
    /// A `dim_param` that is not empty.
    Param(String),
}

impl DimClaim {
    /// Returns the name of the dim. Exporters write "None", "?" and "-1" for unknown dims, which need not be equal;
    /// so these are not names.
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

/// A declared dim with its unmodelled fields.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DeclaredDim {
    /// The declared value.
    pub claim: DimClaim,
    /// `denotation` and unknown fields, as wire bytes of the dim's message.
    pub extra: Extra,
}

/// A declared shape; `None` instead of it is an undeclared rank.
pub type DeclaredShape = Vec<DeclaredDim>;

/// A type as the file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredType {
    /// A dense tensor. `dtype` is the number as written, including 0 (undefined) and unknown numbers.
    Tensor { dtype: i32, shape: Option<DeclaredShape>, extra: Extra },
    /// A sparse tensor, with `dtype` as for a dense one.
    SparseTensor { dtype: i32, shape: Option<DeclaredShape>, extra: Extra },
    /// A sequence; `None` is an undeclared element type.
    Sequence { elem: Option<Box<DeclaredType>>, extra: Extra },
    /// An optional; `None` is an undeclared element type.
    Optional { elem: Option<Box<DeclaredType>>, extra: Extra },
    /// A map from `key` (a data type number) to values.
    Map { key: i32, value: Option<Box<DeclaredType>>, extra: Extra },
    /// Any other type, as the wire bytes of its `TypeProto`.
    Opaque(Extra),
}

impl DeclaredType {
    /// Creates the dense tensor type of a known data type.
    pub fn tensor(dtype: DType, shape: Option<Vec<DimClaim>>) -> Self {
        let shape =
            shape.map(|dims| dims.into_iter().map(|claim| DeclaredDim { claim, extra: Extra::new() }).collect());
        DeclaredType::Tensor { dtype: dtype.onnx(), shape, extra: Extra::new() }
    }

    /// Returns the declared shape of a dense or sparse tensor.
    pub fn shape(&self) -> Option<&DeclaredShape> {
        match self {
            DeclaredType::Tensor { shape, .. } | DeclaredType::SparseTensor { shape, .. } => shape.as_ref(),
            _ => None,
        }
    }

    /// Returns the declared element type of a dense or sparse tensor, if it is known.
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
    /// A sequence whose elements all have this type; `None` is an unknown type.
    Sequence(Option<Box<Type>>),
    /// An optional of this type; `None` is an unknown type.
    Optional(Option<Box<Type>>),
    /// A map.
    Map(DType, Option<Box<Type>>),
}

/// The proved type of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TensorType {
    /// The element type.
    pub dtype: Option<DType>,
    /// The shape; an unknown dim is a separate symbol.
    pub shape: Option<Vec<Dim>>,
}

impl TensorType {
    /// Creates a type from its parts.
    pub fn new(dtype: Option<DType>, shape: Option<Vec<Dim>>) -> Self {
        TensorType { dtype, shape }
    }
}

impl Type {
    /// Returns the tensor type, dense or sparse.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(tensor) | Type::SparseTensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}
