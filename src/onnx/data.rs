//! Writing external data.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;

use super::fill::{Filler, NewData};
use super::proto::StringStringEntryProto;
use super::save::{NewFile, SaveError};
use super::source::Source;
use crate::tensor::{PayloadKey, Tensor};

/// Where a payload lies in a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// One data file of a model that is being written.
///
/// # Layout
/// A payload of a page or more begins at a multiple of 4096, as the standard advises, so that it can be mapped; a smaller
/// one at a multiple of 64. The gaps are zeros.
///
/// # Copying
/// A large payload that nobody changed is copied by the kernel from file to file. Where it begins on a page in its old file too and the
/// file system can share blocks, that takes no time, nor any space.
pub(super) struct DataWriter<'a, O = Filler<'a>> {
    name: String,
    source: Option<&'a Source>,
    out: O,
    /// The payloads written so far, by key. The map holds them, so that no address is used twice.
    written: BTreeMap<PayloadKey, (Placement, Held)>,
}

/// A payload that has been written.
enum Held {
    Bytes { _payload: Bytes },
    Deferred { _payload: Tensor },
}

/// Bytes from which on a payload begins on a page, and that page's size.
const PAGE: u64 = 4096;

/// Where a payload of `length` bytes begins in a data file that has `len` bytes so far.
pub(super) fn offset_after(len: u64, length: u64) -> u64 {
    len.next_multiple_of(if length >= PAGE { PAGE } else { 64 })
}

impl<'a, O: NewData> DataWriter<'a, O> {
    /// Begins the data file `<model file name>.data` in the directory of `model`, where a model is to be written; if that
    /// is a data file the source reads or misses, the first of `<model file name>.2.data`, `.3.data`, … that is not.
    ///
    /// # Errors
    /// If there cannot be such a file.
    pub fn begin(
        model: &Path,
        source: Option<&'a Source>,
        open: &mut dyn FnMut(&Path) -> Result<O, SaveError>,
    ) -> Result<Self, SaveError> {
        let refuse = |reason: &str| SaveError::Target { target: model.to_path_buf(), reason: reason.into() };
        // The location is a string in the model and a path beneath its directory.
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
            // A model that refers to a missing file must not find another in its place.
            let is_taken = source.is_some_and(|source| source.data.is_missing(&name) || source.data.is_hosted(&name));
            if is_taken || id.is_some() && source.is_some_and(read) {
                tried = tried.checked_add(1).ok_or_else(|| refuse("has too many data files"))?;
                continue;
            }
            return Ok(DataWriter { name, source, out: open(&path)?, written: BTreeMap::new() });
        }
    }

    /// The file's name, which is its location for the model beside it.
    pub fn location(&self) -> &str {
        &self.name
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        self.out.len()
    }

    /// Appends a payload, unless these very bytes have been appended before. Returns where they lie.
    ///
    /// # Errors
    /// If the source changed; otherwise what the system reports.
    pub fn place(&mut self, payload: &Bytes) -> Result<Placement, SaveError> {
        let key = (payload.as_ptr() as usize, 0, payload.len());
        self.append(key, Held::Bytes { _payload: payload.clone() }, &|out| out.payload(payload))
    }

    /// The same for the payload of a tensor, which need not be there yet.
    ///
    /// # Errors
    /// As [`place`](Self::place).
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

    /// When a source has been cut, writing from it fails with an error of its own.
    fn failed(&self, error: std::io::Error) -> SaveError {
        let verified = self.source.map_or(Ok(()), Source::verify);
        verified.err().map_or_else(|| self.out.failed(error), SaveError::from)
    }

    /// The `external_data` entries for a placement.
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
    /// Begins the data file in a new file.
    #[cfg(test)]
    pub fn create(model: &Path, source: Option<&'a Source>) -> Result<Self, SaveError> {
        DataWriter::begin(model, source, &mut |path| Ok(Filler::new(NewFile::create(path, source)?, source)))
    }

    /// All bytes to the disk.
    pub(super) fn finish(mut self) -> Result<NewFile, SaveError> {
        let finished = self.out.finish().and_then(|()| self.out.new.file.sync_all());
        finished.map_err(|error| self.failed(error))?;
        Ok(self.out.new)
    }
}
