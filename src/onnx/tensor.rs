//! Converts tensors from and to `TensorProto`. All payloads enter through this module, which returns only valid
//! tensors.

use bytes::Bytes;
use prost::Message;
use thiserror::Error;

use super::external::{DataFiles, ExternalError, Payload};
use super::proto::{SparseTensorProto, StringStringEntryProto, TensorProto, tensor_proto};
use crate::ir::{ExternalOrigin, Extra, SparseTensor};
use crate::tensor::{DType, Tensor, TensorError, pack, product};

/// The largest number of elements for which a sparse tensor is expanded.
const MAX_DENSE: usize = 1 << 20;

/// The largest number of an element type: one byte on the wire.
const MAX_TYPE: i32 = 127;

/// An error for a tensor that cannot be imported.
#[derive(Debug, Error)]
pub enum TensorProtoError {
    /// The number is not an element type: it is "undefined" or far above the standard's numbers.
    #[error("{0} is not an element type")]
    NoType(i32),
    /// A negative dim.
    #[error("dimension {0} is negative")]
    NegativeDim(i64),
    /// A dim larger than the address space, on 32-bit targets.
    #[error("dimension {0} is larger than memory")]
    LargeDim(i64),
    /// Several fields contain elements, or one that the element type does not use.
    #[error("elements of type {dtype} cannot be in {field}")]
    WrongField { dtype: &'static str, field: &'static str },
    /// An element is out of range for the element type.
    #[error("{0} does not fit an element of type {1}")]
    OutOfRange(i64, &'static str),
    /// Size and content disagree, or the size overflows.
    #[error(transparent)]
    Content(#[from] TensorError),
    /// The external data cannot be read.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// The tensor is a segment of one that is split into several messages.
    #[error("it is a segment of a tensor; segmented tensors are not supported")]
    Segment,
    /// The parts of a sparse tensor are inconsistent.
    #[error("{0}")]
    Sparse(String),
}

/// An imported tensor.
pub(super) enum Decoded {
    /// The value, its origin if external, and the unmodelled fields of its message.
    Dense(Tensor, Option<ExternalOrigin>, Extra),
    /// The data type is unknown; the message is kept unchanged.
    Foreign,
    /// The data file is missing: type and shape are known, elements are not.
    Missing,
}

/// Returns the shape that a message declares.
pub(super) fn shape_of(dims: &[i64]) -> Result<Vec<usize>, TensorProtoError> {
    let refused = |dim| if dim < 0 { TensorProtoError::NegativeDim(dim) } else { TensorProtoError::LargeDim(dim) };
    dims.iter().map(|&dim| usize::try_from(dim).map_err(|_| refused(dim))).collect()
}

/// Accepts numbers of element types newer than this program. The standard assigns them consecutively, so they are
/// little larger than the known ones.
fn foreign(number: i32) -> Result<(), TensorProtoError> {
    if (1..=MAX_TYPE).contains(&number) { Ok(()) } else { Err(TensorProtoError::NoType(number)) }
}

/// Imports a tensor. Does not copy payloads in `raw_data` or external files.
pub(super) fn take(name: &str, proto: &TensorProto, files: &mut DataFiles) -> Result<Decoded, TensorProtoError> {
    let number = proto.data_type.unwrap_or_default();
    let Some(dtype) = DType::from_onnx(number) else { return foreign(number).map(|()| Decoded::Foreign) };
    if proto.segment.is_some() {
        return Err(TensorProtoError::Segment);
    }
    let shape = shape_of(&proto.dims)?;
    let external = proto.data_location == Some(tensor_proto::DataLocation::External as i32);
    let mut origin = None;
    let tensor = if external {
        if dtype == DType::String {
            return Err(TensorProtoError::WrongField { dtype: dtype.name(), field: "external data" });
        }
        let needed = Tensor::byte_len_of(dtype, &shape)?;
        let Some(payload) = files.locate(name, &proto.external_data)? else { return Ok(Decoded::Missing) };
        // Without a length entry, the shape determines the length; later bytes of the file are ignored.
        let is_told = proto.external_data.iter().any(|entry| entry.key.as_deref() == Some("length"));
        origin = Some(origin_of(proto));
        over(dtype, &shape, if is_told { payload } else { payload.truncated(needed) })?
    } else if let Some(range) = proto.raw_data.as_deref().and_then(|payload| files.payload(payload)) {
        over(dtype, &shape, Payload::Outside(range.clone()))?
    } else {
        dense(dtype, &shape, proto)?
    };
    Ok(Decoded::Dense(tensor, origin, leftover(proto)))
}

/// Creates a tensor over a payload. Reads small and packed payloads into memory.
fn over(dtype: DType, shape: &[usize], payload: Payload) -> Result<Tensor, TensorError> {
    match payload {
        Payload::Outside(range) if !dtype.is_packed() => Tensor::outside(dtype, shape, range),
        payload => Tensor::from_bytes(dtype, shape, payload.bytes()),
    }
}

/// Returns the origin of a tensor's external data.
pub(super) fn origin_of(proto: &TensorProto) -> ExternalOrigin {
    let entry = |entry: &StringStringEntryProto| {
        (entry.key.clone().unwrap_or_default(), entry.value.clone().unwrap_or_default())
    };
    ExternalOrigin { entries: proto.external_data.iter().map(entry).collect() }
}

/// Returns the fields of a tensor's message other than value and name.
fn leftover(proto: &TensorProto) -> Extra {
    if proto.doc_string.is_none() && proto.metadata_props.is_empty() {
        return Extra::new();
    }
    let rest = TensorProto {
        doc_string: proto.doc_string.clone(),
        metadata_props: proto.metadata_props.clone(),
        ..TensorProto::default()
    };
    rest.encode_to_vec().into()
}

fn dense(dtype: DType, shape: &[usize], proto: &TensorProto) -> Result<Tensor, TensorProtoError> {
    use DType::*;
    let fields = [
        ("float_data", proto.float_data.is_empty()),
        ("int32_data", proto.int32_data.is_empty()),
        ("string_data", proto.string_data.is_empty()),
        ("int64_data", proto.int64_data.is_empty()),
        ("double_data", proto.double_data.is_empty()),
        ("uint64_data", proto.uint64_data.is_empty()),
        ("raw_data", proto.raw_data.as_ref().is_none_or(Bytes::is_empty)),
    ];
    let home = match dtype {
        Float | Complex64 => "float_data",
        Double | Complex128 => "double_data",
        Int64 => "int64_data",
        Uint64 | Uint32 => "uint64_data",
        String => "string_data",
        _ => "int32_data",
    };
    let mut used = fields.iter().filter(|(_, empty)| !empty).map(|(name, _)| *name);
    let field = used.next().unwrap_or(home);
    if used.next().is_some() || (field != home && field != "raw_data") || (field == "raw_data" && dtype == String) {
        return Err(TensorProtoError::WrongField { dtype: dtype.name(), field });
    }
    if field == "raw_data" {
        return Ok(Tensor::from_bytes(dtype, shape, proto.raw_data.clone().unwrap_or_default())?);
    }
    let count = product(shape);
    let ints = &proto.int32_data;
    Ok(match dtype {
        String => Tensor::from_strings(shape, proto.string_data.clone())?,
        Float | Complex64 => Tensor::from_bytes(dtype, shape, le_bytes(&proto.float_data, |v| v.to_le_bytes()))?,
        Double | Complex128 => Tensor::from_bytes(dtype, shape, le_bytes(&proto.double_data, |v| v.to_le_bytes()))?,
        Int64 => Tensor::from_bytes(dtype, shape, le_bytes(&proto.int64_data, |v| v.to_le_bytes()))?,
        Uint64 => Tensor::from_bytes(dtype, shape, le_bytes(&proto.uint64_data, |v| v.to_le_bytes()))?,
        Uint32 => {
            let narrow = |&v: &u64| u32::try_from(v).map_err(|_| TensorProtoError::OutOfRange(v as i64, "uint32"));
            let values = proto.uint64_data.iter().map(narrow).collect::<Result<Vec<_>, _>>()?;
            Tensor::from_vec(shape, values)?
        }
        Int32 => Tensor::from_bytes(dtype, shape, le_bytes(ints, |v| v.to_le_bytes()))?,
        Int16 => Tensor::from_vec(shape, narrowed::<i16>(ints, dtype)?)?,
        Int8 => Tensor::from_vec(shape, narrowed::<i8>(ints, dtype)?)?,
        Uint16 => Tensor::from_vec(shape, narrowed::<u16>(ints, dtype)?)?,
        Float16 | Bfloat16 => {
            let bits = narrowed::<u16>(ints, dtype)?;
            Tensor::from_bytes(dtype, shape, le_bytes(&bits, |v| v.to_le_bytes()))?
        }
        Bool => Tensor::from_bytes(dtype, shape, ints.iter().map(|&v| u8::from(v != 0)).collect::<Vec<_>>().into())?,
        Uint8 | Float8E4M3FN | Float8E4M3FNUZ | Float8E5M2 | Float8E5M2FNUZ | Float8E8M0 => {
            Tensor::from_bytes(dtype, shape, narrowed::<u8>(ints, dtype)?.into())?
        }
        Uint4 | Int4 | Float4E2M1 | Uint2 | Int2 | Float6E2M3 | Float6E3M2 => {
            let bytes = ints
                .iter()
                .map(|&v| u8::try_from(v).or_else(|_| i8::try_from(v).map(|v| v as u8)))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|_| TensorProtoError::OutOfRange(0, dtype.name()))?;
            // Some writers store one element per integer; the standard packs several.
            let bits = dtype.bits().unwrap_or(8);
            let packed = count.and_then(|count| dtype.byte_len(count));
            if packed != Some(bytes.len()) && count == Some(bytes.len()) {
                let mask = ((1u16 << bits) - 1) as u8;
                let codes: Vec<u8> = bytes.iter().map(|byte| byte & mask).collect();
                Tensor::from_bytes(dtype, shape, pack(&codes, bits).into())?
            } else {
                Tensor::from_bytes(dtype, shape, bytes.into())?
            }
        }
    })
}

fn le_bytes<T: Copy, const N: usize>(values: &[T], encode: impl Fn(T) -> [u8; N]) -> Bytes {
    let mut bytes = Vec::with_capacity(values.len().saturating_mul(N));
    for &value in values {
        bytes.extend_from_slice(&encode(value));
    }
    bytes.into()
}

fn narrowed<T: TryFrom<i32>>(values: &[i32], dtype: DType) -> Result<Vec<T>, TensorProtoError> {
    let narrow = |&v: &i32| T::try_from(v).map_err(|_| TensorProtoError::OutOfRange(i64::from(v), dtype.name()));
    values.iter().map(narrow).collect()
}

/// Imports a sparse tensor; `None` if its data type is unknown or its data file is missing.
pub(super) fn take_sparse(
    name: &str,
    proto: &SparseTensorProto,
    files: &mut DataFiles,
) -> Result<Option<SparseTensor>, TensorProtoError> {
    let missing = |what: &str| TensorProtoError::Sparse(format!("the sparse tensor has no {what}"));
    let values = proto.values.as_deref().ok_or_else(|| missing("values"))?;
    let indices = proto.indices.as_deref().ok_or_else(|| missing("indices"))?;
    let shape = shape_of(&proto.dims)?;
    if shape.is_empty() {
        return Err(TensorProtoError::Sparse("a scalar cannot be sparse".into()));
    }
    let (values, values_extra) = match take(name, values, files)? {
        Decoded::Dense(tensor, _, extra) => (tensor, extra),
        Decoded::Foreign | Decoded::Missing => return Ok(None),
    };
    let (indices, indices_extra) = match take(name, indices, files)? {
        Decoded::Dense(tensor, _, extra) => (tensor, extra),
        Decoded::Foreign | Decoded::Missing => return Ok(None),
    };
    let sparse = SparseTensor { values, indices, shape, extra: [Extra::new(), values_extra, indices_extra] };
    positions(&sparse)?;
    Ok(Some(sparse))
}

/// Moves the elements of a tensor into its message if the message refers to a data file.
pub(super) fn take_in(proto: Option<&mut TensorProto>, tensor: &Tensor) {
    if let Some(proto) = proto.filter(|proto| proto.data_location.is_some()) {
        proto.data_location = None;
        proto.external_data.clear();
        proto.raw_data = Some(tensor.bytes().clone());
    }
}

/// Returns the linear position of each value. Checks that they are in range and strictly ascending, as the standard
/// requires.
fn positions(sparse: &SparseTensor) -> Result<Vec<usize>, TensorProtoError> {
    let bad = |reason: &str| TensorProtoError::Sparse(format!("sparse tensor: {reason}"));
    let count = sparse.values.len();
    let size = product(&sparse.shape).ok_or_else(|| bad("the dense shape overflows"))?;
    if sparse.values.rank() != 1 {
        return Err(bad("values are not one-dimensional"));
    }
    if sparse.indices.dtype() != DType::Int64 {
        return Err(bad("indices are not int64"));
    }
    let indices = sparse.indices.to_i64s().ok_or_else(|| bad("indices are not int64"))?;
    let linear: Option<Vec<usize>> = match sparse.indices.shape() {
        [n] if *n == count => indices.iter().map(|&index| usize::try_from(index).ok().filter(|&i| i < size)).collect(),
        [n, rank] if *n == count && *rank == sparse.shape.len() => {
            let rank = (*rank).max(1);
            let place = |coordinates: &[i64]| {
                coordinates.iter().zip(&sparse.shape).try_fold(0usize, |sum, (&index, &dim)| {
                    let index = usize::try_from(index).ok().filter(|&index| index < dim)?;
                    sum.checked_mul(dim)?.checked_add(index)
                })
            };
            indices.chunks(rank).map(place).collect()
        }
        _ => return Err(bad("indices have neither the shape [NNZ] nor [NNZ, rank]")),
    };
    let linear = linear.ok_or_else(|| bad("an index is out of range"))?;
    if linear.windows(2).any(|pair| matches!(pair, [a, b] if a >= b)) {
        return Err(bad("indices are not in ascending order, or repeat"));
    }
    Ok(linear)
}

/// Returns the dense form, unless it is too large.
pub(super) fn densify(sparse: &SparseTensor) -> Option<Tensor> {
    let size = product(&sparse.shape).filter(|&size| size <= MAX_DENSE)?;
    let at = positions(sparse).ok()?;
    let dtype = sparse.values.dtype();
    if dtype == DType::String {
        let mut strings = vec![Bytes::new(); size];
        for (&place, text) in at.iter().zip(sparse.values.strings()?) {
            *strings.get_mut(place)? = text.clone();
        }
        return Tensor::from_strings(&sparse.shape, strings).ok();
    }
    if dtype.is_packed() {
        let mut codes = vec![0u8; size];
        let mask = ((1u16 << dtype.bits()?) - 1) as u8;
        for (&place, &code) in at.iter().zip(&sparse.values.unpacked()?) {
            *codes.get_mut(place)? = code & mask;
        }
        return Tensor::from_bytes(dtype, &sparse.shape, pack(&codes, dtype.bits()?).into()).ok();
    }
    let width = dtype.byte_len(1)?;
    let mut bytes = vec![0u8; size.checked_mul(width)?];
    for (&place, element) in at.iter().zip(sparse.values.bytes().chunks_exact(width)) {
        let start = place.checked_mul(width)?;
        bytes.get_mut(start..start.checked_add(width)?)?.copy_from_slice(element);
    }
    Tensor::from_bytes(dtype, &sparse.shape, bytes.into()).ok()
}

/// Returns the message of a tensor without `extra`, which the caller appends to the fields.
pub(super) fn message(name: Option<&str>, tensor: &Tensor) -> TensorProto {
    let mut proto = message_without_payload(name, tensor);
    match tensor.strings() {
        Some(strings) => proto.string_data = strings.to_vec(),
        None => proto.raw_data = Some(tensor.bytes().clone()),
    }
    proto
}

/// Returns the message of a tensor without its elements.
pub(super) fn message_without_payload(name: Option<&str>, tensor: &Tensor) -> TensorProto {
    TensorProto {
        name: name.map(str::to_string),
        data_type: Some(tensor.dtype().onnx()),
        dims: tensor.shape().iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)).collect(),
        ..TensorProto::default()
    }
}
