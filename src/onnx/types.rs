//! Converts types from and to `TypeProto`.

use bytes::Bytes;
use prost::Message;

use super::proto::{TensorShapeProto, TypeProto, tensor_shape_proto, type_proto};
use super::wire::{Descent, UnknownFields};
use crate::ir::{DeclaredDim, DeclaredShape, DeclaredType, DimClaim, Extra};

/// Returns all unknown fields of the message at `path`, concatenated.
pub(super) fn unknown_at(unknown: &UnknownFields, path: &[Descent]) -> Bytes {
    match unknown.at(path) {
        [] => Bytes::new(),
        [one] => one.clone(),
        pieces => pieces.concat().into(),
    }
}

/// Concatenates two field lists.
pub(super) fn joined(a: Extra, b: Bytes) -> Extra {
    if b.is_empty() {
        a
    } else if a.is_empty() {
        b
    } else {
        [a, b].concat().into()
    }
}

/// Returns the type that a message declares, if any.
pub(super) fn declared(proto: &TypeProto) -> Option<DeclaredType> {
    use type_proto::Value;
    let extra: Extra = match &proto.denotation {
        None => Extra::new(),
        Some(_) => TypeProto { value: None, denotation: proto.denotation.clone() }.encode_to_vec().into(),
    };
    let inner = |ty: &Option<Box<TypeProto>>| ty.as_deref().and_then(declared).map(Box::new);
    Some(match proto.value.as_ref()? {
        Value::TensorType(tensor) => DeclaredType::Tensor {
            dtype: tensor.elem_type.unwrap_or_default(),
            shape: tensor.shape.as_ref().map(shape),
            extra,
        },
        Value::SparseTensorType(tensor) => DeclaredType::SparseTensor {
            dtype: tensor.elem_type.unwrap_or_default(),
            shape: tensor.shape.as_ref().map(shape),
            extra,
        },
        Value::SequenceType(sequence) => DeclaredType::Sequence { elem: inner(&sequence.elem_type), extra },
        Value::OptionalType(optional) => DeclaredType::Optional { elem: inner(&optional.elem_type), extra },
        Value::MapType(map) => {
            DeclaredType::Map { key: map.key_type.unwrap_or_default(), value: inner(&map.value_type), extra }
        }
        Value::OpaqueType(_) => DeclaredType::Opaque(proto.encode_to_vec().into()),
    })
}

fn shape(proto: &TensorShapeProto) -> DeclaredShape {
    proto.dim.iter().map(dim).collect()
}

fn dim(proto: &tensor_shape_proto::Dimension) -> DeclaredDim {
    use tensor_shape_proto::dimension::Value;
    let claim = match &proto.value {
        // Exporters write -1 or an empty text for an unknown dim.
        Some(Value::DimValue(size)) if *size >= 0 => DimClaim::Value(*size),
        Some(Value::DimParam(name)) if !name.is_empty() => DimClaim::Param(name.clone()),
        _ => DimClaim::Unknown,
    };
    let extra = match &proto.denotation {
        None => Extra::new(),
        Some(_) => {
            let rest = tensor_shape_proto::Dimension { value: None, denotation: proto.denotation.clone() };
            rest.encode_to_vec().into()
        }
    };
    DeclaredDim { claim, extra }
}

/// Returns the message of a declared type.
pub(super) fn message(ty: &DeclaredType) -> TypeProto {
    use type_proto::Value;
    let denotation = |extra: &Extra| TypeProto::decode(extra.clone()).ok().and_then(|rest| rest.denotation);
    let inner = |ty: &Option<Box<DeclaredType>>| ty.as_deref().map(|ty| Box::new(message(ty)));
    let (value, extra) = match ty {
        DeclaredType::Tensor { dtype, shape, extra } => {
            let shape = shape.as_ref().map(shape_message);
            (Value::TensorType(type_proto::Tensor { elem_type: Some(*dtype), shape }), extra)
        }
        DeclaredType::SparseTensor { dtype, shape, extra } => {
            let shape = shape.as_ref().map(shape_message);
            (Value::SparseTensorType(type_proto::SparseTensor { elem_type: Some(*dtype), shape }), extra)
        }
        DeclaredType::Sequence { elem, extra } => {
            (Value::SequenceType(Box::new(type_proto::Sequence { elem_type: inner(elem) })), extra)
        }
        DeclaredType::Optional { elem, extra } => {
            (Value::OptionalType(Box::new(type_proto::Optional { elem_type: inner(elem) })), extra)
        }
        DeclaredType::Map { key, value, extra } => {
            (Value::MapType(Box::new(type_proto::Map { key_type: Some(*key), value_type: inner(value) })), extra)
        }
        DeclaredType::Opaque(bytes) => return TypeProto::decode(bytes.clone()).unwrap_or_default(),
    };
    TypeProto { value: Some(value), denotation: denotation(extra) }
}

fn shape_message(shape: &DeclaredShape) -> TensorShapeProto {
    use tensor_shape_proto::{Dimension, dimension::Value};
    let dim = |dim: &DeclaredDim| Dimension {
        value: match &dim.claim {
            DimClaim::Unknown => None,
            DimClaim::Value(size) => Some(Value::DimValue(*size)),
            DimClaim::Param(name) => Some(Value::DimParam(name.clone())),
        },
        denotation: Dimension::decode(dim.extra.clone()).ok().and_then(|rest| rest.denotation),
    };
    TensorShapeProto { dim: shape.iter().map(dim).collect() }
}
