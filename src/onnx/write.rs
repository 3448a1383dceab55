//! Writes a model to its target atomically.
//!
//! The bytes go to a new file in the target's directory. The file takes the target's name only after all bytes are on
//! the disk and the source files are known to be unchanged. Until then the target is unchanged, so it may be the file
//! that is being read. On Linux the new file has no name until it is complete, so that a killed process leaves no
//! file.
//!
//! The kernel copies unchanged payloads from file to file (`fill`).

use std::path::Path;

use super::data::DataWriter;
use super::encode::{Apart, DeferredPayloads, Encoded};
use super::fill::Filler;
use super::proto::ModelProto;
use super::save::{NewFile, SaveError};
use super::source::Source;
use super::wire::UnknownFields;

/// The input of [`write_model`].
pub struct Parts<'a> {
    /// The model.
    pub model: &'a ModelProto,
    /// Fields that the schema does not define, by their message in `model`.
    pub unknown: &'a UnknownFields,
    /// Tensors of `model` whose payload is computed during writing.
    pub deferred: &'a DeferredPayloads,
    /// The parts of the model that are written without messages.
    pub apart: Option<&'a Apart<'a>>,
    /// The measured model, if it was measured before.
    pub measured: Option<Encoded<'a>>,
    /// The external data of the model. It is put in place just before the model.
    pub(super) data: Option<DataWriter<'a>>,
    /// The source of the model: payloads in `model` and `data` may be ranges of its files.
    pub source: Option<&'a Source>,
}

/// Writes a model to `target`. Returns its size in bytes.
///
/// Replaces an existing target and keeps its permissions. Replaces a symbolic link by a file with the permissions of
/// the linked file. The linked file is not written: other links may lead to it. A new file gets default permissions.
///
/// With external data there are two files to put in place. A crash between the two can leave the new data with the
/// old model. Therefore `DataWriter` never uses the name of data that the source still reads.
///
/// # Errors
/// `target` is not a regular file or is a data file of the source; the model exceeds the size of a protobuf message;
/// the source changed; or the system fails. In each case `target` is unchanged and no file is left behind.
pub fn write_model(target: &Path, parts: Parts) -> Result<u64, SaveError> {
    let new = NewFile::create(target, parts.source)?;
    let measure = || Encoded::measure_with(parts.model, parts.unknown, parts.deferred, parts.apart);
    let encoded = parts.measured.map_or_else(measure, Ok).map_err(|error| new.failed(error))?;
    new.must_hold(encoded.len())?;
    let mut filler = Filler::new(new, parts.source);
    filler.expect(encoded.len());
    let written = encoded.write(&mut filler).and_then(|()| Ok(filler.finish()?));
    let new = filler.new;
    // Writing fails with the source's own error if the source was truncated.
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
