//! Opening a model.

use std::fs::File;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use thiserror::Error;

use super::external::{DataFiles, ExternalError};
use super::file::{self, Contents, FileError, FileId};

/// A model file as opened, with the data files it names.
pub struct Source {
    path: PathBuf,
    file: File,
    contents: Contents,
    /// Its external data.
    pub data: DataFiles,
}

/// A model that cannot be opened, or did not stay what it was.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The model file.
    #[error("{path:?} {error}")]
    Model {
        /// As given.
        path: PathBuf,
        /// Why.
        error: FileError,
    },
    /// One of its data files.
    #[error(transparent)]
    External(#[from] ExternalError),
}

/// Opens a model: a regular file, by whatever name or link leads to it. External data is looked for beside that name.
///
/// Files below 1 MiB are read, others mapped. What becomes of a mapped file while it is used is noticed by
/// [`Source::verify`], never a crash.
///
/// # Errors
/// If it is not a regular file or cannot be read.
pub fn open(path: &Path) -> Result<Source, SourceError> {
    let (file, contents) = read(path).map_err(|error| SourceError::Model { path: path.to_path_buf(), error })?;
    Ok(Source { path: path.to_path_buf(), file, contents, data: DataFiles::beside(path) })
}

fn read(path: &Path) -> Result<(File, Contents), FileError> {
    // Opening a device can do things by itself, and opening a pipe waits: look first. What is there may change in
    // between, so the open does not wait either, and what was opened is looked at again.
    file::regular(&std::fs::metadata(path)?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let file = options.open(path)?;
    let contents = Contents::of(&file)?;
    Ok((file, contents))
}

impl Source {
    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of the model file.
    pub fn bytes(&self) -> &Bytes {
        &self.contents.bytes
    }

    /// Which file the model is.
    pub fn id(&self) -> Option<FileId> {
        self.contents.stamp.id
    }

    /// Whether all bytes handed out so far, of the model and of its data files, were those of files that did not change.
    /// Must hold before anything made from them is put in place.
    ///
    /// # Errors
    /// Which file was cut, rewritten or, for a data file, replaced.
    pub fn verify(&self) -> Result<(), SourceError> {
        let now = self.file.metadata().map_err(FileError::from);
        now.and_then(|now| self.contents.verify(&now))
            .map_err(|error| SourceError::Model { path: self.path.clone(), error })?;
        Ok(self.data.verify()?)
    }
}
