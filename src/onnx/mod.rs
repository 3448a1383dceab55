//! Model files: reading them without trusting them, and writing them without tearing them.
//!
//! ```text
//! open ─ Source ─ decode ─ (ModelProto, UnknownFields) ─ … ─ encode ─ save
//!   │      └ DataFiles: the external data a model names, below its directory and those the user names
//!   └ small files are read, large ones mapped (with the feature `mmap`, else read, too); payloads are slices of either, never copies
//! ```
//!
//! What a file can choose is bounded here, once: [`wire`] walks the bytes before prost sees them and refuses what is
//! malformed, nested too deeply, or would take memory out of proportion to the file. [`external`] opens nothing outside
//! the model's directory and those the user names. [`write_model`] replaces its target whole or not at all.
//!
//! This is the only home of prost, and of the one `unsafe` module, `map`.

mod beneath;
pub mod data;
pub mod decode;
mod encode;
pub mod export;
pub mod external;
mod file;
mod fill;
mod heading;
pub mod import;
#[cfg(test)]
mod lossless;
#[cfg(feature = "mmap")]
mod map;
mod other_format;
mod outline;
mod parts;
mod rest;
mod save;
mod schema;
pub mod source;
mod store;
mod tensor;
mod types;
pub mod wire;
mod write;

/// The messages of `proto/onnx.proto`, as prost makes them. A `bytes` field is a reference-counted slice of the file.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
}

use std::fmt::Write;

pub use data::Placement;
pub use decode::{DecodeError, decode, decode_parts};
pub use encode::{Destination, EncodeError, Encoded};
pub use export::export;
pub use external::{DataFiles, ExternalError, FindFile, MissingData, Payload, Reference};
pub use file::{FileError, FileId};
pub use heading::{heading, producer};
pub use import::{ImportError, ImportReason, import, import_parts};
pub use parts::{ModelParts, count_nodes};
pub use save::SaveError;
pub use source::{OpenOptions, Source, SourceError, open};
pub use store::{
    ExternalData, ModelSink, SaveOptions, Saved, SavedFile, external_bytes, length, store, store_to, to_bytes,
};
pub use wire::{Descent, Limits, UnknownFields, WireError};
pub use write::{Parts, write_model};

/// The most bytes one protobuf message may have, a model included: lengths are signed 32-bit integers to most readers.
pub const MESSAGE_BYTES: u64 = i32::MAX as u64;

/// A path, fit for a message: quoted, control characters escaped.
pub(crate) struct QuotedPath<'a>(pub &'a std::path::Path);

impl std::fmt::Display for QuotedPath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('\'')?;
        for letter in self.0.to_string_lossy().chars() {
            if letter.is_control() { write!(f, "{}", letter.escape_default())? } else { f.write_char(letter)? }
        }
        f.write_char('\'')
    }
}

/// Text that a file chose, fit for a message: quoted, control characters escaped, cut to a readable length.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const MOST: usize = 96;
        let cut = self.0.char_indices().nth(MOST).map_or(self.0.len(), |(at, _)| at);
        let (head, tail) = self.0.split_at_checked(cut).unwrap_or((self.0, ""));
        write!(f, "'{}'", head.escape_debug().to_string().replace("\\\"", "\""))?;
        if tail.is_empty() { Ok(()) } else { write!(f, "… ({} bytes)", self.0.len()) }
    }
}
