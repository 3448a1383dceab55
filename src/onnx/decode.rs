//! Decodes bytes to messages.

use bytes::Bytes;
use prost::Message;
use thiserror::Error;

use super::MESSAGE_BYTES;
use super::other_format::other_format;
use super::parts::{ModelParts, NoMessage};
use super::proto::ModelProto;
use super::wire::{self, Limits, UnknownFields, WireError};

/// Bytes that do not decode to a model.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file exceeds protobuf's limit of one message.
    #[error("{0} bytes exceed the protobuf limit of 2 GiB")]
    TooLarge(u64),
    /// The file has another format. The text names the format and how to get a model.
    #[error("this is {0}")]
    Other(&'static str),
    /// The bytes are malformed or exceed a limit.
    #[error("not a readable ONNX model: {0}")]
    Wire(WireError),
    /// The walk accepted bytes that are not a message; this is a defect of the walk.
    #[error("not a readable ONNX model: {0}")]
    Passed(#[from] NoMessage),
}

/// Decodes a model, and the fields that the schema does not define.
///
/// Payloads (`raw_data`, strings of tensors) remain slices of `file`; names, numbers and structure are copied.
/// Enum-typed fields keep values that are not in the enum.
///
/// # Errors
/// The bytes are not a protobuf message, not a `ModelProto`, or exceed `limits`.
pub fn decode(file: &Bytes, limits: &Limits) -> Result<(ModelProto, UnknownFields), DecodeError> {
    let unknown = walked(file, limits)?;
    let model = ModelProto::decode(file.clone()).map_err(NoMessage::from)?;
    Ok((model, unknown))
}

/// Decodes a model, but leaves the nodes of the main graph in the file unless the file has unknown fields.
///
/// # Errors
/// The errors of [`decode`].
pub fn decode_parts(file: &Bytes, limits: &Limits) -> Result<(ModelParts, UnknownFields), DecodeError> {
    let unknown = walked(file, limits)?;
    if unknown.is_empty() {
        return Ok((ModelParts::of(file)?, unknown));
    }
    Ok((ModelProto::decode(file.clone()).map_err(NoMessage::from)?.into(), unknown))
}

fn walked(file: &Bytes, limits: &Limits) -> Result<UnknownFields, DecodeError> {
    if file.is_empty() {
        return Err(DecodeError::Empty);
    }
    let len = u64::try_from(file.len()).unwrap_or(u64::MAX);
    if len > MESSAGE_BYTES {
        return Err(DecodeError::TooLarge(len));
    }
    wire::walk(file, limits).map_err(|error| match other_format(file) {
        Some(kind) => DecodeError::Other(kind),
        None => DecodeError::Wire(error),
    })
}
