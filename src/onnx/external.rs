//! Reads external data: tensors whose elements are in another file.
//!
//! The model chooses the file's name, so the name is hostile. It must lead to a regular file with one name, below a
//! directory that the user allows (`roots`). In the standard, it is a path relative to the model's directory.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use thiserror::Error;

use super::file::{Contents, FileError, FileId, Origin};
use super::outline::Outline;
use super::proto::StringStringEntryProto;
use super::{Quoted, QuotedPath};
use crate::tensor::{ByteRange, SharedSource};
use roots::{Place, Roots};

mod roots;

/// The position of a tensor's bytes, as its `external_data` declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// A path relative to the model's directory, as written.
    pub location: &'a str,
    /// The number of bytes before the data.
    pub offset: u64,
    /// The number of bytes; up to the end of the file if absent.
    pub length: Option<u64>,
}

/// An error for external data that cannot be read.
#[derive(Debug)]
pub struct ExternalError {
    /// The name of the tensor; `None` if the error concerns a file, which tensors may share.
    pub tensor: Option<String>,
    /// The reason.
    pub problem: ExternalProblem,
}

impl std::error::Error for ExternalError {}

impl fmt::Display for ExternalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tensor) = &self.tensor {
            write!(f, "tensor {}: ", Quoted(tensor))?;
        }
        self.problem.fmt(f)
    }
}

/// The reason why external data cannot be read.
#[derive(Debug, Error)]
pub enum ExternalProblem {
    #[error("external data without a location")]
    NoLocation,
    #[error("the external data entry lists {0} twice")]
    Twice(&'static str),
    #[error("external data has {} for its {key}, not a number of bytes", Quoted(.value))]
    NotANumber { key: &'static str, value: String },
    #[error("external data location {} {reason}", Quoted(.location))]
    Location { location: String, reason: &'static str },
    #[error("external data file {} {error}", Quoted(.location))]
    File { location: String, error: FileError },
    #[error("external data file {} {error}", Quoted(.location))]
    Host { location: String, error: std::io::Error },
    #[error("external data file {} has {links} hard links, so it may belong to another file", Quoted(.location))]
    HardLink { location: String, links: u64 },
    #[error("external data file {} has {size} bytes, but offset {offset} and length {length} need more", Quoted(.location))]
    OutOfRange { location: String, size: u64, offset: u64, length: u64 },
    #[error("external data location {} is a symbolic link that leads to {}, outside of {}; \
             if that file is to be read, allow its directory with --external-data-root DIR",
            Quoted(.location), QuotedPath(.target), Directories(.allowed))]
    Outside { location: String, target: PathBuf, allowed: Vec<PathBuf> },
    #[error("directory {} cannot be opened to look for external data: {error}", QuotedPath(.directory))]
    Directory { directory: PathBuf, error: std::io::Error },
}

/// Formats a list of directories for a message.
struct Directories<'a>(&'a [PathBuf]);

impl fmt::Display for Directories<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 4;
        for (at, directory) in self.0.iter().take(MOST).enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { ", " }, QuotedPath(directory))?;
        }
        match self.0.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// A data file that was not found. Its tensors have type and shape, but no elements.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingData {
    /// The path in the model.
    pub location: String,
    /// The number of tensors in the file.
    pub tensors: usize,
    /// The name of the first of these tensors.
    pub first: String,
    /// The directories that were searched, in order. Empty for a model that was loaded as bytes without a directory.
    pub looked_in: Vec<PathBuf>,
}

impl fmt::Display for MissingData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "external data file {} is missing", Quoted(&self.location))?;
        match self.looked_in.as_slice() {
            [] => f.write_str(" (the model was loaded without a directory for external data)")?,
            directories => write!(f, " (looked in {})", Directories(directories))?,
        }
        match self.tensors {
            1 => write!(f, ": tensor {} has no values", Quoted(&self.first)),
            many => write!(f, ": {many} tensors have no values, tensor {} is the first", Quoted(&self.first)),
        }
    }
}

impl<'a> Reference<'a> {
    /// Reads the entries of `TensorProto.external_data`. Ignores the checksum and keys that the standard does not
    /// define.
    ///
    /// # Errors
    /// The location is missing; location, offset or length occurs twice, since readers disagree which one applies; or
    /// an offset or length is not decimal.
    pub fn parse(entries: &'a [StringStringEntryProto]) -> Result<Self, ExternalProblem> {
        let (mut location, mut offset, mut length) = (None, None, None);
        for entry in entries {
            let (place, key) = match entry.key.as_deref() {
                Some("location") => (&mut location, "location"),
                Some("offset") => (&mut offset, "offset"),
                Some("length") => (&mut length, "length"),
                _ => continue,
            };
            if place.replace(entry.value.as_deref().unwrap_or_default()).is_some() {
                return Err(ExternalProblem::Twice(key));
            }
        }
        Ok(Reference {
            location: location.ok_or(ExternalProblem::NoLocation)?,
            offset: offset.map(|value| number("offset", value)).transpose()?.unwrap_or(0),
            length: length.map(|value| number("length", value)).transpose()?,
        })
    }

    /// Returns the components of the path from the model's directory to the file.
    fn components(&self) -> Result<Vec<&'a str>, ExternalProblem> {
        let refuse = |reason| Err(ExternalProblem::Location { location: self.location.to_owned(), reason });
        let location = self.location;
        if location.is_empty() {
            return refuse("is empty");
        }
        if location.len() > 4096 {
            return refuse("is longer than a path can be");
        }
        if location.contains("_ORT_MEM_ADDR_") {
            return refuse("refers to an address in memory, which a model file cannot provide");
        }
        if location.contains('\0') {
            return refuse("contains a NUL");
        }
        if location.contains('\\') {
            return refuse("contains a backslash, which is not the separator of a path");
        }
        if location.starts_with('/') || cfg!(windows) && location.contains(':') {
            return refuse("is not relative to the model's directory");
        }
        let mut components = Vec::new();
        for component in location.split('/') {
            match component {
                ".." => return refuse("leads out of a directory"),
                "" | "." => {}
                name => components.push(name),
            }
        }
        // The last component must be a name, so there is at least one.
        if matches!(location.rsplit('/').next(), Some("" | ".")) { refuse("names a directory") } else { Ok(components) }
    }
}

fn number(key: &'static str, value: &str) -> Result<u64, ExternalProblem> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| value.parse().ok()).flatten();
    number.ok_or_else(|| ExternalProblem::NotANumber { key, value: value.to_owned() })
}

/// The data files of one model, each opened once. The default has no directories, so that all files are missing.
#[derive(Default)]
pub struct DataFiles {
    roots: Roots,
    /// The opened files, by the joined components of their path.
    open: BTreeMap<String, (Place, Contents)>,
    /// The files that no root contains, by the same key.
    missing: BTreeMap<String, MissingData>,
    /// The host that provides the files instead of a file system.
    host: Option<Host>,
}

/// A host that stores the model and its data files outside of memory.
struct Host {
    model: SharedSource,
    outline: Outline,
    find: FindFile,
    /// The opened files, by the joined components of their path.
    open: BTreeMap<String, SharedSource>,
}

/// Returns the data file at a location.
pub type FindFile = Box<dyn FnMut(&str) -> std::io::Result<Option<SharedSource>> + Send>;

/// A data file.
enum Whole {
    Bytes(Bytes),
    Source(SharedSource),
}

impl Whole {
    fn slice(self, start: u64, end: u64) -> Option<Payload> {
        let len = usize::try_from(end.checked_sub(start)?).ok()?;
        match self {
            Whole::Bytes(bytes) => {
                let start = usize::try_from(start).ok()?;
                Some(Payload::Here(bytes.slice(start..start.checked_add(len)?)))
            }
            Whole::Source(source) => Some(Payload::Outside(ByteRange::new(source, start, len)?)),
        }
    }
}

/// The payload of a tensor.
pub enum Payload {
    /// In memory, or mapped.
    Here(Bytes),
    /// Outside of memory.
    Outside(ByteRange),
}

impl Payload {
    /// Returns the first `len` bytes of the payload.
    pub(super) fn truncated(self, len: usize) -> Self {
        match self {
            Payload::Here(mut bytes) => {
                bytes.truncate(len);
                Payload::Here(bytes)
            }
            Payload::Outside(range) => Payload::Outside(range.truncated(len)),
        }
    }

    /// Returns the payload in memory.
    pub(super) fn bytes(self) -> Bytes {
        match self {
            Payload::Here(bytes) => bytes,
            Payload::Outside(range) => range.bytes().clone(),
        }
    }
}

impl DataFiles {
    /// Returns the data files of the model at `model`. Its roots are the directory of this path and the directory of
    /// the real path. `id` is the file that was opened at that path.
    pub fn beside(model: &Path, id: Option<FileId>) -> Self {
        DataFiles { roots: Roots::of_model(model, id), ..DataFiles::default() }
    }

    /// Returns the data files of a host that also stores the model.
    pub fn of_host(model: SharedSource, outline: Outline, find: FindFile) -> Self {
        let host = Some(Host { model, outline, find, open: BTreeMap::new() });
        DataFiles { host, ..DataFiles::default() }
    }

    /// Returns the outline of a model that a host stores.
    pub(super) fn outline(&self) -> Option<&Outline> {
        self.host.as_ref().map(|host| &host.outline)
    }

    /// Adds directories to search for data files.
    pub fn also_beneath(&mut self, directories: impl IntoIterator<Item = PathBuf>) {
        self.roots.extend(directories);
    }

    /// Returns the bytes that a tensor's `external_data` refers to, as a slice of the file. `None` if there is no
    /// such file, which is then recorded as missing.
    ///
    /// # Errors
    /// Contains `tensor` and the reason why the data cannot be read.
    pub fn locate(
        &mut self,
        tensor: &str,
        entries: &[StringStringEntryProto],
    ) -> Result<Option<Payload>, ExternalError> {
        self.slice(tensor, entries).map_err(|problem| ExternalError { tensor: Some(tensor.to_owned()), problem })
    }

    /// Reads the data into memory.
    #[cfg(test)]
    pub fn read(&mut self, tensor: &str, entries: &[StringStringEntryProto]) -> Result<Option<Bytes>, ExternalError> {
        Ok(self.locate(tensor, entries)?.map(Payload::bytes))
    }

    fn slice(&mut self, tensor: &str, entries: &[StringStringEntryProto]) -> Result<Option<Payload>, ExternalProblem> {
        let reference = Reference::parse(entries)?;
        let Some(whole) = self.whole(tensor, &reference)? else { return Ok(None) };
        let size = match &whole {
            Whole::Bytes(bytes) => bytes.len() as u64,
            Whole::Source(source) => source.size(),
        };
        let length = reference.length.unwrap_or(size.saturating_sub(reference.offset));
        let end = reference.offset.checked_add(length).filter(|end| *end <= size);
        let slice = end.and_then(|end| whole.slice(reference.offset, end));
        let out_of_range = || ExternalProblem::OutOfRange {
            location: reference.location.to_owned(),
            size,
            offset: reference.offset,
            length,
        };
        slice.map(Some).ok_or_else(out_of_range)
    }

    /// Returns the data file, in memory or outside of it.
    fn whole(&mut self, tensor: &str, reference: &Reference) -> Result<Option<Whole>, ExternalProblem> {
        let Some(host) = &mut self.host else {
            return Ok(self.file(tensor, reference)?.map(|contents| Whole::Bytes(contents.bytes.clone())));
        };
        let name = reference.components()?.join("/");
        if self.missing.contains_key(&name) {
            self.miss(name, tensor, reference);
            return Ok(None);
        }
        if !host.open.contains_key(&name) {
            let location = reference.location;
            let found = (host.find)(&name);
            let found = found.map_err(|error| ExternalProblem::Host { location: location.to_owned(), error })?;
            let Some(source) = found else {
                self.miss(name, tensor, reference);
                return Ok(None);
            };
            host.open.insert(name.clone(), source);
        }
        Ok(host.open.get(&name).cloned().map(Whole::Source))
    }

    /// Records that a file is missing.
    fn miss(&mut self, name: String, tensor: &str, reference: &Reference) {
        let new = || MissingData {
            location: reference.location.to_owned(),
            tensors: 0,
            first: tensor.to_owned(),
            looked_in: self.roots.paths(),
        };
        let missing = self.missing.entry(name).or_insert_with(new);
        missing.tensors = missing.tensors.saturating_add(1);
    }

    /// Returns the payload of the model file that a slice of its outline represents.
    pub(super) fn payload(&self, slice: &[u8]) -> Option<&ByteRange> {
        self.host.as_ref()?.outline.payload(slice)
    }

    /// Returns `true` if a payload is a range of the model file of the host.
    pub(super) fn has(&self, range: &ByteRange) -> bool {
        self.host.as_ref().is_some_and(|host| host.model.is(range.source()))
    }

    /// Returns `true` if a host holds a data file of this name.
    pub(super) fn is_hosted(&self, name: &str) -> bool {
        self.host.as_ref().is_some_and(|host| host.open.contains_key(name))
    }

    fn file(&mut self, tensor: &str, reference: &Reference) -> Result<Option<&Contents>, ExternalProblem> {
        let name = reference.components()?.join("/");
        if self.missing.contains_key(&name) {
            self.miss(name, tensor, reference);
            return Ok(None);
        }
        if !self.open.contains_key(&name) {
            let location = reference.location;
            self.roots.open()?;
            let Some((file, place)) = self.roots.find(&name, location)? else {
                self.miss(name, tensor, reference);
                return Ok(None);
            };
            one_name(&file, location)?;
            let contents =
                Contents::of(&file).map_err(|error| ExternalProblem::File { location: location.to_owned(), error })?;
            self.open.insert(name.clone(), (place, contents));
        }
        Ok(self.open.get(&name).map(|(_, contents)| contents))
    }

    /// Returns the mapped data file that contains a payload.
    pub(super) fn origin(&self, payload: &[u8]) -> Option<Origin> {
        let (name, (_, contents)) = self.open.iter().find(|(_, (_, contents))| contents.has(payload))?;
        let (file, _) = self.roots.find(name, name).ok()??;
        contents.origin(file)
    }

    /// Returns the location by which a model in `directory`, a path without symbolic links, refers to the data at `location`.
    /// Adds a prefix such as `weights/` if the opened model is in that subdirectory. `None` if no model in `directory` may
    /// read the file: the file is outside `directory`, or a symbolic link leads out of it.
    pub fn location_from(&self, location: &str, directory: &Path) -> Option<String> {
        let reference = Reference { location, offset: 0, length: None };
        let name = reference.components().ok()?.join("/");
        let way = match self.open.get(&name) {
            Some((place, _)) => self.roots.way_from(place, directory)?,
            None => self.roots.way_of_missing(directory)?,
        };
        Some(format!("{way}{location}"))
    }

    /// Returns the length of the data file at `location`, if it is in `directory` itself and no link leads to it.
    pub(super) fn len_beside(&self, location: &str, directory: &Path) -> Option<u64> {
        let (place, contents) = self.open.get(location)?;
        (place.real == directory.join(location) && !location.contains('/')).then_some(contents.stamp.len)
    }

    /// Returns the missing data files, in the order of their locations.
    pub fn missing(&self) -> impl Iterator<Item = &MissingData> {
        self.missing.values()
    }

    /// Returns `true` if the model refers to a missing file of this name in its own directory.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        self.missing.contains_key(name)
    }

    /// Returns `true` if the model file of a host could not be read.
    pub(super) fn has_failed(&self) -> bool {
        self.host.as_ref().is_some_and(|host| host.model.has_failed())
    }

    /// Returns `true` if data files were found.
    pub(super) fn are_some(&self) -> bool {
        !self.open.is_empty() || self.host.as_ref().is_some_and(|host| !host.open.is_empty())
    }

    /// Returns the ids of opened files, which must not be overwritten.
    pub fn ids(&self) -> impl Iterator<Item = FileId> {
        self.open.values().filter_map(|(_, contents)| contents.stamp.id)
    }

    /// Checks that all opened files still exist and are unchanged. Looks up each file again: a model may have more
    /// data files than a process can keep open.
    ///
    /// # Errors
    /// The error contains the file.
    pub fn verify(&self) -> Result<(), ExternalError> {
        let failed = self.host.as_ref().and_then(|host| host.open.iter().find(|(_, source)| source.has_failed()));
        if let Some((name, _)) = failed {
            let error = FileError::Changed;
            let problem = ExternalProblem::File { location: name.clone(), error };
            return Err(ExternalError { tensor: None, problem });
        }
        for (name, (_, contents)) in self.open.iter().filter(|(_, (_, contents))| !contents.is_copy()) {
            let located = |error| ExternalProblem::File { location: name.clone(), error };
            let verified = match self.roots.find(name, name) {
                Ok(Some((file, _))) => file.metadata().map_err(FileError::from).and_then(|now| contents.verify(&now)),
                Ok(None) => Err(FileError::Changed),
                Err(problem) => return Err(ExternalError { tensor: None, problem }),
            };
            verified.map_err(|error| ExternalError { tensor: None, problem: located(error) })?;
        }
        Ok(())
    }
}

/// Rejects a file with several names: one may be outside the roots, and its data would be disclosed.
fn one_name(file: &std::fs::File, location: &str) -> Result<(), ExternalProblem> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let located = |error: FileError| ExternalProblem::File { location: location.to_owned(), error };
        let metadata = file.metadata().map_err(|error| located(error.into()))?;
        super::file::regular(&metadata).map_err(located)?;
        if metadata.nlink() != 1 {
            return Err(ExternalProblem::HardLink { location: location.to_owned(), links: metadata.nlink() });
        }
    }
    #[cfg(not(unix))]
    let _ = (file, location);
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
