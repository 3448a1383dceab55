//! Writing external data.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;

use bytes::Bytes;

use super::proto::StringStringEntryProto;
use super::save::{NewFile, SaveError};
use super::source::Source;

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
/// # Which tensors need one
/// A reference to external data is relative to the directory of the model that holds it. So when the output lies in the
/// directory of the source, a tensor nobody changed keeps the reference it has, and its data file is not touched,
/// however large. In any other directory the reference would lead somewhere else: what was external is written anew,
/// to a data file of the output's own, and the tensors that shared bytes share them there too. Nothing is inlined that
/// was external, and nothing goes outside that was inline, unless the model would exceed the 2 GiB of a protobuf
/// message.
///
/// # Layout
/// A payload of a page or more begins at a multiple of 4096, as the standard advises, so that it can be mapped; a smaller
/// one at a multiple of 64. The gaps are zeros.
///
/// # Copying
/// A large payload that begins on a page in its old file too is copied by the kernel from file to file: that took half
/// the time of writing it from memory, and where the file system can share blocks it takes none, nor any space.
pub struct DataWriter<'a> {
    name: String,
    source: Option<&'a Source>,
    out: BufWriter<Out>,
    at: u64,
    /// What has been written, by address and length. It is held, so that an address means one thing only.
    written: BTreeMap<(usize, usize), (Placement, Bytes)>,
}

/// The file below the buffer.
struct Out(NewFile);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes from which on a payload begins on a page, and that page's size.
const PAGE: u64 = 4096;

impl<'a> DataWriter<'a> {
    /// Begins the data file `<model file name>.data` in the directory of `model`, where a model is to be written; if that
    /// is a data file the source reads, the first of `<model file name>.2.data`, `.3.data`, … that is not.
    ///
    /// # Errors
    /// If there cannot be such a file.
    pub fn create(model: &Path, source: Option<&'a Source>) -> Result<Self, SaveError> {
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
            if id.is_some() && source.is_some_and(read) {
                tried = tried.checked_add(1).ok_or_else(|| refuse("has too many data files"))?;
                continue;
            }
            let new = NewFile::create(&path, source)?;
            let out = BufWriter::with_capacity(256 << 10, Out(new));
            return Ok(DataWriter { name, source, out, at: 0, written: BTreeMap::new() });
        }
    }

    /// The file's name, which is its location for the model beside it.
    pub fn location(&self) -> &str {
        &self.name
    }

    /// Appends a payload, unless these very bytes have been appended before. Returns where they lie.
    ///
    /// # Errors
    /// If the source changed; otherwise what the system reports.
    pub fn place(&mut self, payload: &Bytes) -> Result<Placement, SaveError> {
        let key = (payload.as_ptr() as usize, payload.len());
        if let Some((placement, _)) = self.written.get(&key) {
            return Ok(*placement);
        }
        let length = payload.len() as u64;
        let offset = self.at.next_multiple_of(if length >= PAGE { PAGE } else { 64 });
        let end = offset.saturating_add(length);
        self.out.get_ref().0.must_hold(end)?;
        let gap = [0; PAGE as usize];
        let gap = usize::try_from(offset - self.at).ok().and_then(|len| gap.get(..len)).unwrap_or_default();
        if let Err(error) = self.out.write_all(gap).and_then(|()| self.write(payload)) {
            // When a source has been cut, writing from it fails with an error of its own.
            self.source.map_or(Ok(()), Source::verify)?;
            return Err(self.out.get_ref().0.failed(error));
        }
        self.at = end;
        let placement = Placement { offset, length };
        self.written.insert(key, (placement, payload.clone()));
        Ok(placement)
    }

    fn write(&mut self, payload: &[u8]) -> std::io::Result<()> {
        let copied = self.copy(payload)?;
        self.out.write_all(payload.get(copied..).unwrap_or_default())
    }

    /// Lets the kernel copy as much of a payload as it will. What is left is written, or found out why not.
    #[cfg(target_os = "linux")]
    fn copy(&mut self, payload: &[u8]) -> std::io::Result<usize> {
        const WORTH_IT: usize = 1 << 20;
        if payload.len() < WORTH_IT {
            return Ok(0);
        }
        let Some((file, mut from)) = self.source.and_then(|source| source.data.origin(payload)) else { return Ok(0) };
        if !from.is_multiple_of(PAGE) {
            return Ok(0);
        }
        self.out.flush()?;
        let mut copied = 0;
        while copied < payload.len() {
            let to = &self.out.get_ref().0.file;
            match rustix::fs::copy_file_range(&file, Some(&mut from), to, None, payload.len() - copied) {
                Ok(0) | Err(_) => break,
                Ok(more) => copied += more,
            }
        }
        Ok(copied)
    }

    #[cfg(not(target_os = "linux"))]
    fn copy(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Ok(0)
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

    /// All bytes to the disk.
    pub(super) fn finish(self) -> Result<NewFile, SaveError> {
        let Out(new) = match self.out.into_inner() {
            Ok(out) => out,
            Err(failed) => {
                let (error, out) = failed.into_parts();
                return Err(out.get_ref().0.failed(error));
            }
        };
        new.file.sync_all().map_err(|error| new.failed(error))?;
        Ok(new)
    }
}
