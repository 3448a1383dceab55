//! Reads regular files as bytes, and verifies that these bytes did not change.

use std::fs::{File, Metadata};
use std::io::{self, Read};
#[cfg(feature = "mmap")]
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use thiserror::Error;

#[cfg(feature = "mmap")]
use super::map::Mapped;

/// An error for a file that cannot be read as bytes.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file is not regular; the text names its kind.
    #[error("is {0}, not a regular file")]
    NotRegular(&'static str),
    /// The file was modified, truncated or replaced.
    #[error("changed during reading")]
    Changed,
    /// The system reports an error.
    #[error("cannot be read: {0}")]
    Io(io::Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        FileError::Io(error)
    }
}

/// The identity of a file, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the id; `None` on systems without file ids.
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(FileId { device: metadata.dev(), inode: metadata.ino() })
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            None
        }
    }
}

/// The metadata that changes with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub id: Option<FileId>,
    pub len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub fn of(metadata: &Metadata) -> Self {
        Stamp { id: FileId::of(metadata), len: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// Smaller files are read; others are mapped. Without the feature `mmap`, all files are read: truncation of a mapped
/// file kills the process unless our SIGBUS handler is installed, and a library does not install one unasked.
#[cfg(feature = "mmap")]
const MAP_FROM: u64 = 1 << 20;

/// The bytes of a file, and the data to verify them.
pub(super) struct Contents {
    pub bytes: Bytes,
    pub stamp: Stamp,
    #[cfg(feature = "mmap")]
    mapped: Option<Arc<Mapped>>,
}

/// The owner of mapped bytes.
#[cfg(feature = "mmap")]
struct Pages(Arc<Mapped>);

#[cfg(feature = "mmap")]
impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl Contents {
    /// # Errors
    /// The file is not regular, changes during reading, or the system fails.
    pub fn of(file: &File) -> Result<Self, FileError> {
        let metadata = file.metadata()?;
        regular(&metadata)?;
        let stamp = Stamp::of(&metadata);
        #[cfg(feature = "mmap")]
        if stamp.len >= MAP_FROM {
            let len = usize::try_from(stamp.len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            let mapped = Arc::new(Mapped::new(file, len)?);
            let bytes = Bytes::from_owner(Pages(Arc::clone(&mapped)));
            return Ok(Contents { bytes, stamp, mapped: Some(mapped) });
        }
        let mut bytes = Vec::new();
        let mut reader = file;
        (&mut reader).take(stamp.len.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).ok() != Some(stamp.len) || Stamp::of(&file.metadata()?) != stamp {
            return Err(FileError::Changed);
        }
        Ok(Contents {
            bytes: bytes.into(),
            stamp,
            #[cfg(feature = "mmap")]
            mapped: None,
        })
    }

    /// Returns `true` if a payload is part of the mapped file.
    pub fn has(&self, payload: &[u8]) -> bool {
        !self.is_copy() && place_in(&self.bytes, payload).is_some()
    }

    /// Returns the file to copy payloads from, if it is unchanged since it was mapped.
    pub fn origin(&self, file: File) -> Option<Origin> {
        self.verify(&file.metadata().ok()?).ok()?;
        Some(Origin { file, bytes: self.bytes.clone() })
    }

    /// Returns `true` if the bytes were copied, so that later changes of the file do not matter.
    pub fn is_copy(&self) -> bool {
        #[cfg(feature = "mmap")]
        return self.mapped.is_none();
        #[cfg(not(feature = "mmap"))]
        true
    }

    /// Checks that the returned bytes were those of the file, given its current metadata.
    ///
    /// # Errors
    /// [`FileError::Changed`].
    pub fn verify(&self, now: &Metadata) -> Result<(), FileError> {
        #[cfg(feature = "mmap")]
        if self.mapped.as_ref().is_some_and(|mapped| mapped.faulted() || Stamp::of(now) != self.stamp) {
            return Err(FileError::Changed);
        }
        let _ = now;
        Ok(())
    }
}

/// A mapped file that contains payloads.
pub(super) struct Origin {
    pub file: File,
    bytes: Bytes,
}

impl Origin {
    /// Returns the offset of a payload in the file, by its address.
    pub fn find(&self, payload: &[u8]) -> Option<u64> {
        place_in(&self.bytes, payload)
    }

    /// Returns `true` if the file has these bytes at offset `at`.
    pub fn starts_with(&self, at: u64, bytes: &[u8]) -> bool {
        let there = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..));
        there.is_some_and(|there| there.starts_with(bytes))
    }
}

/// Returns the offset of a slice in `whole`, by address; `None` if it is not a slice of `whole`.
pub(super) fn place_in(whole: &[u8], part: &[u8]) -> Option<u64> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    if end <= whole.len() { u64::try_from(start).ok() } else { None }
}

/// # Errors
/// [`FileError::NotRegular`], with the file's kind.
pub(super) fn regular(metadata: &Metadata) -> Result<(), FileError> {
    if metadata.is_file() { Ok(()) } else { Err(FileError::NotRegular(kind(metadata))) }
}

fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_dir() {
        return "a directory";
    }
    if kind.is_symlink() {
        return "a symbolic link";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    "something else"
}
