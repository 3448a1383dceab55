//! External data: tensors whose elements lie in a file beside the model.
//!
//! The model chooses the name of that file, so the name is hostile: it must lead to a regular file with one name, beneath
//! the model's own directory, without passing a link. The standard asks for a path relative to that directory.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use thiserror::Error;

use super::beneath::Directory;
use super::file::{Contents, FileError, FileId, Origin};
use super::proto::StringStringEntryProto;
use super::{Quoted, QuotedPath};

/// Where a tensor's bytes lie, as its `external_data` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// A path relative to the model's directory, as written.
    pub location: &'a str,
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// Bytes; to the end of the file if absent.
    pub length: Option<u64>,
}

/// A tensor's external data cannot be had.
#[derive(Debug)]
pub struct ExternalError {
    /// The name of the tensor, unless it is about a file that several may share.
    pub tensor: Option<String>,
    /// Why.
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

/// Why external data cannot be had.
#[derive(Debug, Error)]
pub enum ExternalProblem {
    #[error("its data lies in a file, and a model that is given as bytes has no directory to look for files in")]
    NoDirectory,
    #[error("external data without a location")]
    NoLocation,
    #[error("external data gives {0} twice")]
    Twice(&'static str),
    #[error("external data has {} for its {key}, not a number of bytes", Quoted(.value))]
    NotANumber { key: &'static str, value: String },
    #[error("external data location {} {reason}", Quoted(.location))]
    Location { location: String, reason: &'static str },
    #[error("external data file {} {error}", Quoted(.location))]
    File { location: String, error: FileError },
    #[error("external data file {} has {links} names; its data could be another file's", Quoted(.location))]
    HardLink { location: String, links: u64 },
    #[error("external data file {} has {size} bytes, fewer than offset {offset} and length {length} ask for", Quoted(.location))]
    OutOfRange { location: String, size: u64, offset: u64, length: u64 },
    #[error("the model's directory {} cannot be opened: {error}", QuotedPath(.directory))]
    Directory { directory: PathBuf, error: std::io::Error },
}

impl<'a> Reference<'a> {
    /// Reads the entries of `TensorProto.external_data`. Keys the standard does not name, and the checksum, say nothing
    /// about where the data lies.
    ///
    /// # Errors
    /// A location that is missing; one of location, offset and length twice, since readers differ in which they
    /// believe; an offset or length that is not digits.
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

    /// The names that lead from the model's directory to the file.
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
            return refuse("stands for an address in memory, which a file cannot give");
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
        // What follows the last separator must be a name; then there is at least one.
        if matches!(location.rsplit('/').next(), Some("" | ".")) { refuse("names a directory") } else { Ok(components) }
    }
}

fn number(key: &'static str, value: &str) -> Result<u64, ExternalProblem> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| value.parse().ok()).flatten();
    number.ok_or_else(|| ExternalProblem::NotANumber { key, value: value.to_owned() })
}

/// The data files of one model, each opened once.
pub struct DataFiles {
    /// The directory they lie beneath; a model that came from no file may have none.
    path: Option<PathBuf>,
    directory: Option<Directory>,
    /// By the names that lead to the file, joined.
    open: BTreeMap<String, Contents>,
}

impl DataFiles {
    /// Those of the model at `model`: beneath the directory of that path, which need not be where a link leads.
    pub fn beside(model: &Path) -> Self {
        let parent = model.parent().filter(|parent| !parent.as_os_str().is_empty());
        DataFiles::beneath(Some(parent.unwrap_or(Path::new("."))))
    }

    /// Those beneath a directory; without one, external data is an error.
    pub fn beneath(directory: Option<&Path>) -> Self {
        DataFiles { path: directory.map(Path::to_path_buf), directory: None, open: BTreeMap::new() }
    }

    /// The bytes a tensor's `external_data` refers to: a slice of the file, whatever its size.
    ///
    /// # Errors
    /// Names `tensor` and why the data cannot be had.
    pub fn read(&mut self, tensor: &str, entries: &[StringStringEntryProto]) -> Result<Bytes, ExternalError> {
        self.slice(entries).map_err(|problem| ExternalError { tensor: Some(tensor.to_owned()), problem })
    }

    fn slice(&mut self, entries: &[StringStringEntryProto]) -> Result<Bytes, ExternalProblem> {
        let reference = Reference::parse(entries)?;
        let bytes = self.file(&reference)?.bytes.clone();
        let size = bytes.len() as u64;
        let length = reference.length.unwrap_or(size.saturating_sub(reference.offset));
        let end = reference.offset.checked_add(length).filter(|end| *end <= size);
        match (usize::try_from(reference.offset), end.map(usize::try_from)) {
            (Ok(start), Some(Ok(end))) => Ok(bytes.slice(start..end)),
            _ => Err(ExternalProblem::OutOfRange {
                location: reference.location.to_owned(),
                size,
                offset: reference.offset,
                length,
            }),
        }
    }

    fn file(&mut self, reference: &Reference) -> Result<&Contents, ExternalProblem> {
        let components = reference.components()?;
        let name = components.join("/");
        if !self.open.contains_key(&name) {
            if self.directory.is_none() {
                let path = self.path.as_deref().ok_or(ExternalProblem::NoDirectory)?;
                let directory = Directory::open(path)
                    .map_err(|error| ExternalProblem::Directory { directory: path.to_path_buf(), error })?;
                self.directory = Some(directory);
            }
            let file = self.open_file(&components).map_err(|error| explain(reference.location, error))?;
            one_name(&file, reference.location)?;
            let contents = Contents::of(&file)
                .map_err(|error| ExternalProblem::File { location: reference.location.to_owned(), error })?;
            self.open.insert(name.clone(), contents);
        }
        self.open.get(&name).ok_or(ExternalProblem::NoLocation)
    }

    fn open_file(&self, components: &[&str]) -> std::io::Result<std::fs::File> {
        match &self.directory {
            Some(directory) => directory.read(components),
            None => Err(std::io::ErrorKind::NotFound.into()),
        }
    }

    /// The data file a payload lies in, if it lies in one that is mapped.
    pub(super) fn origin(&self, payload: &[u8]) -> Option<Origin> {
        let (name, contents) = self.open.iter().find(|(_, contents)| contents.has(payload))?;
        let file = self.open_file(&name.split('/').collect::<Vec<_>>()).ok()?;
        contents.origin(file)
    }

    /// The directory locations are relative to, if there is one.
    pub fn directory(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether a model at `target` would find the same files by the same locations.
    pub fn serve(&self, target: &Path) -> bool {
        self.way_from(target).is_some_and(|way| way.is_empty())
    }

    /// What to write before the locations so that a model at `target` finds the same files: nothing if it is in the same directory, `weights/`
    /// if it is in the one above that is called so. `None` if it is in neither that directory nor one above: a model is not to look
    /// for data anywhere else.
    pub fn way_from(&self, target: &Path) -> Option<String> {
        let theirs = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let ours = std::fs::canonicalize(self.path.as_deref()?).ok()?;
        let way = ours.strip_prefix(std::fs::canonicalize(theirs).ok()?).ok()?.to_path_buf();
        let names = way.components().map(|name| name.as_os_str().to_str().filter(|name| !name.contains('\\')));
        names.map(|name| name.map(|name| format!("{name}/"))).collect()
    }

    /// Which files have been opened. Nothing may be written over them.
    pub fn ids(&self) -> impl Iterator<Item = FileId> {
        self.open.values().filter_map(|contents| contents.stamp.id)
    }

    /// Whether all files opened are still there and did not change. No descriptor is kept for that, since a model may
    /// have more data files than a process may have open: each is looked up again.
    ///
    /// # Errors
    /// Names the file.
    pub fn verify(&self) -> Result<(), ExternalError> {
        for (name, contents) in self.open.iter().filter(|(_, contents)| !contents.is_copy()) {
            let components: Vec<&str> = name.split('/').collect();
            let verified = match self.open_file(&components).and_then(|file| file.metadata()) {
                Ok(now) => contents.verify(&now),
                Err(error) if error.kind() == ErrorKind::NotFound => Err(FileError::Changed),
                Err(error) => Err(error.into()),
            };
            verified.map_err(|error| ExternalError {
                tensor: None,
                problem: ExternalProblem::File { location: name.clone(), error },
            })?;
        }
        Ok(())
    }
}

/// What the system's refusal means here.
fn explain(location: &str, error: std::io::Error) -> ExternalProblem {
    let location = location.to_owned();
    #[cfg(unix)]
    match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::LOOP) => {
            return ExternalProblem::Location { location, reason: "leads through a symbolic link" };
        }
        Some(rustix::io::Errno::XDEV) => {
            return ExternalProblem::Location { location, reason: "leads out of the model's directory" };
        }
        Some(rustix::io::Errno::NXIO) => {
            return ExternalProblem::File { location, error: FileError::NotRegular("a socket or device") };
        }
        _ => {}
    }
    ExternalProblem::File { location, error: error.into() }
}

/// A second name may lie outside the model's directory: data that the model was not given.
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
