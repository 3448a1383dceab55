//! Putting a model in its place, whole or not at all.
//!
//! The bytes go to a new file in the target's directory, which takes the target's name only when they are all on the
//! disk and the files they were made from are known not to have changed meanwhile. Until then the target is untouched,
//! so it may be the very file that is being read. On Linux the new file has no name at all until it is complete, so
//! that even a kill leaves nothing behind.
//!
//! Payloads that nobody changed are copied by the kernel from file to file (`fill`).

use std::path::Path;

use super::data::DataWriter;
use super::encode::{Apart, DeferredPayloads, Encoded};
use super::fill::Filler;
use super::proto::ModelProto;
use super::save::{NewFile, SaveError};
use super::source::Source;
use super::wire::UnknownFields;

/// What [`write_model`] writes.
pub struct Parts<'a> {
    /// The model.
    pub model: &'a ModelProto,
    /// Fields the schema does not know, by the message of `model` they go to.
    pub unknown: &'a UnknownFields,
    /// Tensors of `model` whose payload is computed while it is written.
    pub deferred: &'a DeferredPayloads,
    /// What of `model` is no message.
    pub apart: Option<&'a Apart<'a>>,
    /// All of this as it has been measured, if it has.
    pub measured: Option<Encoded<'a>>,
    /// The external data written for it. It gets its place just before the model does.
    pub(super) data: Option<DataWriter<'a>>,
    /// Where the model came from: payloads in `model` and `data` may lie in its files.
    pub source: Option<&'a Source>,
}

/// Writes a model to `target`. Returns its size in bytes.
///
/// A target that exists is replaced and keeps its permissions. A symbolic link is replaced as well, by a file with the permissions of the one it
/// leads to, which is not written: other links may lead to it. A new file has the permissions any new file has.
///
/// With external data there are two files to put in place, and between the two a crash can leave the new data beside the
/// old model. `DataWriter` therefore never takes the name of data that the source still reads.
///
/// # Errors
/// If `target` is something other than a regular file, or one of the source's data files; if the model is over the size
/// of a protobuf message; if the source changed; or if the system fails. In each case `target` is untouched and
/// nothing is left beside it.
pub fn write_model(target: &Path, parts: Parts) -> Result<u64, SaveError> {
    let new = NewFile::create(target, parts.source)?;
    let measure = || Encoded::measure_with(parts.model, parts.unknown, parts.deferred, parts.apart);
    let encoded = parts.measured.map_or_else(measure, Ok).map_err(|error| new.failed(error))?;
    new.must_hold(encoded.len())?;
    let mut filler = Filler::new(new, parts.source);
    filler.expect(encoded.len());
    let written = encoded.write(&mut filler).and_then(|()| Ok(filler.finish()?));
    let new = filler.new;
    // When a source has been cut, writing from it fails with an error of its own.
    let data = parts.data.map(|data| data.finish());
    if let Some(source) = parts.source {
        source.verify()?;
    }
    let size = encoded.len();
    written.map_err(|error| new.failed(error))?;
    new.file.sync_all().map_err(|error| new.failed(error))?;
    if let Some(data) = data {
        data?.put_in_place()?;
    }
    new.put_in_place()?;
    Ok(size)
}
