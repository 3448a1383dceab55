//! Writes external data.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;

use super::fill::{Filler, NewData};
use super::proto::StringStringEntryProto;
use super::save::{NewFile, SaveError};
use super::source::Source;
use crate::tensor::{PayloadKey, Tensor};

/// The position of a payload in a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The number of bytes before the payload.
    pub offset: u64,
    /// The number of bytes of the payload.
    pub length: u64,
}

/// A data file of a model that is being written.
///
/// # Layout
/// A payload of a page or more begins at a multiple of 4096, as the standard recommends for mapping. A smaller
/// payload begins at a multiple of 64. Zeros fill the gaps.
///
/// # Copying
/// The kernel copies large unchanged payloads from file to file. It shares the blocks if the file system can and the
/// payload begins on a page in its old file, too; that needs neither time nor space.
pub(super) struct DataWriter<'a, O = Filler<'a>> {
    name: String,
    source: Option<&'a Source>,
    out: O,
    /// The written payloads, by key. Holding them keeps their addresses from being reused.
    written: BTreeMap<PayloadKey, (Placement, Held)>,
}

/// Keeps a written payload alive.
enum Held {
    Bytes { _payload: Bytes },
    Deferred { _payload: Tensor },
}

/// The size of a page, and the smallest payload that begins on a page.
const PAGE: u64 = 4096;

/// Returns the offset of a payload of `length` bytes in a data file that has `len` bytes.
pub(super) fn offset_after(len: u64, length: u64) -> u64 {
    len.next_multiple_of(if length >= PAGE { PAGE } else { 64 })
}

impl<'a, O: NewData> DataWriter<'a, O> {
    /// Begins the data file `<model file name>.data` in the directory of `model`, the target path. If the source
    /// reads or misses a data file of this name, the name is the first free one of `<model file name>.2.data`,
    /// `.3.data`, ….
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(
        model: &Path,
        source: Option<&'a Source>,
        open: &mut dyn FnMut(&Path) -> Result<O, SaveError>,
    ) -> Result<Self, SaveError> {
        let refuse = |reason: &str| SaveError::Target { target: model.to_path_buf(), reason: reason.into() };
        // The location is a string in the model and a path below the model's directory.
        let stem = model.file_name().ok_or_else(|| refuse("is not the name of a file"))?;
        let stem = stem.to_str().ok_or_else(|| refuse("is not UTF-8, so its external data could not be named"))?;
        if stem.contains('\\') {
            return Err(refuse("contains a backslash, so its external data could not be named"));
        }
        let mut tried = 1u32;
        loop {
            let name = if tried == 1 { format!("{stem}.data") } else { format!("{stem}.{tried}.data") };
            let path = model.with_file_name(&name);
            let id = std::fs::metadata(&path).ok().as_ref().and_then(super::file::FileId::of);
            let read = |source: &Source| source.data.ids().any(|data| Some(data) == id);
            // A model with a missing data file must not read this new file in its place.
            let is_taken = source.is_some_and(|source| source.data.is_missing(&name) || source.data.is_hosted(&name));
            if is_taken || id.is_some() && source.is_some_and(read) {
                tried = tried.checked_add(1).ok_or_else(|| refuse("has too many data files"))?;
                continue;
            }
            return Ok(DataWriter { name, source, out: open(&path)?, written: BTreeMap::new() });
        }
    }

    /// Returns the file's name, which is its location relative to the model.
    pub fn location(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes so far.
    pub fn len(&self) -> u64 {
        self.out.len()
    }

    /// Appends a payload unless the same payload was appended before. Returns its position.
    ///
    /// # Errors
    /// The source changed, or the system reports an error.
    pub fn place(&mut self, payload: &Bytes) -> Result<Placement, SaveError> {
        let key = (payload.as_ptr() as usize, 0, payload.len());
        self.append(key, Held::Bytes { _payload: payload.clone() }, &|out| out.payload(payload))
    }

    /// Appends the payload of a tensor, which may still have to be computed.
    ///
    /// # Errors
    /// The errors of [`place`](Self::place).
    pub fn place_tensor(&mut self, tensor: &Tensor) -> Result<Placement, SaveError> {
        if !tensor.is_deferred() {
            return self.place(tensor.bytes());
        }
        self.append(tensor.payload_key(), Held::Deferred { _payload: tensor.clone() }, &|out| out.deferred(tensor))
    }

    fn append(
        &mut self,
        key: PayloadKey,
        held: Held,
        write: &dyn Fn(&mut O) -> std::io::Result<()>,
    ) -> Result<Placement, SaveError> {
        if let Some((placement, _)) = self.written.get(&key) {
            return Ok(*placement);
        }
        let (at, length) = (self.out.len(), key.2 as u64);
        let offset = offset_after(at, length);
        self.out.must_hold(offset.saturating_add(length))?;
        let gap = [0; PAGE as usize];
        let gap = usize::try_from(offset - at).ok().and_then(|len| gap.get(..len)).unwrap_or_default();
        if let Err(error) = self.out.bytes(gap).and_then(|()| write(&mut self.out)) {
            return Err(self.failed(error));
        }
        let placement = Placement { offset, length };
        self.written.insert(key, (placement, held));
        Ok(placement)
    }

    /// Returns the source's own error if the source was truncated.
    fn failed(&self, error: std::io::Error) -> SaveError {
        let verified = self.source.map_or(Ok(()), Source::verify);
        verified.err().map_or_else(|| self.out.failed(error), SaveError::from)
    }

    /// Returns the `external_data` entries of a placement.
    pub fn entries(&self, placement: Placement) -> Vec<StringStringEntryProto> {
        let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.into()), value: Some(value) };
        vec![
            entry("location", self.name.clone()),
            entry("offset", placement.offset.to_string()),
            entry("length", placement.length.to_string()),
        ]
    }
}

impl<'a> DataWriter<'a> {
    /// Creates the data file.
    #[cfg(test)]
    pub fn create(model: &Path, source: Option<&'a Source>) -> Result<Self, SaveError> {
        DataWriter::begin(model, source, &mut |path| Ok(Filler::new(NewFile::create(path, source)?, source)))
    }

    /// Writes all bytes to the disk.
    pub(super) fn finish(mut self) -> Result<NewFile, SaveError> {
        let finished = self.out.finish().and_then(|()| self.out.new.file.sync_all());
        finished.map_err(|error| self.failed(error))?;
        Ok(self.out.new)
    }
}
