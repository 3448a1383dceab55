//! Opens models.

use std::fs::File;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use thiserror::Error;

use super::decode::{DecodeError, decode_parts};
use super::external::{DataFiles, ExternalError, FindFile};
use super::file::{self, Contents, FileError, FileId, Origin};
use super::outline::Outline;
use super::parts::ModelParts;
use super::wire::{Limits, UnknownFields, WireError};
use super::{MESSAGE_BYTES, QuotedPath};
use crate::tensor::{SharedSource, Tensor};

/// An opened model with its data files.
pub struct Source {
    bytes: Bytes,
    len: u64,
    /// `None` for a model that was given as bytes.
    file: Option<Opened>,
    /// Its external data.
    pub data: DataFiles,
}

/// Options for opening a model.
///
/// ```no_run
/// use onnx_slice_fold::{OnnxModel, OpenOptions};
///
/// let options = OpenOptions::new().external_data_root("/data/weights");
/// let model = OnnxModel::open_with("model.onnx", &options)?;
/// assert_eq!(model.missing_data(), []);
/// # Ok::<(), onnx_slice_fold::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Directories of data files, in addition to the directories of the model as given and of its real path.
    pub external_data_roots: Vec<PathBuf>,
}

impl OpenOptions {
    /// Creates options without further directories.
    pub fn new() -> Self {
        OpenOptions::default()
    }

    /// Adds a directory to [`external_data_roots`](Self::external_data_roots).
    #[must_use]
    pub fn external_data_root(mut self, directory: impl Into<PathBuf>) -> Self {
        self.external_data_roots.push(directory.into());
        self
    }
}

/// The file of the model.
struct Opened {
    path: PathBuf,
    file: File,
    contents: Contents,
}

/// An error for a model that cannot be opened or changed later.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The error concerns the model file.
    #[error("{} {error}", QuotedPath(.path))]
    Model {
        /// The path as given.
        path: PathBuf,
        /// The reason.
        error: FileError,
    },
    /// The error concerns a data file.
    #[error(transparent)]
    External(#[from] ExternalError),
}

impl SourceError {
    /// Returns the error of a host's model that cannot be read.
    pub fn of_host(error: std::io::Error) -> Self {
        SourceError::Model { path: "model".into(), error: error.into() }
    }
}

/// Opens a model, which must be a regular file or a link to one. Searches external data in the directory of `path`,
/// and in the directory of the linked file.
///
/// Reads files below 1 MiB, and maps larger ones with the feature `mmap`. Changes of a mapped file do not crash the
/// process; [`Source::verify`] reports them.
///
/// # Errors
/// The file is not regular or cannot be read.
pub fn open(path: &Path) -> Result<Source, SourceError> {
    let (file, contents) = read(path).map_err(|error| SourceError::Model { path: path.to_path_buf(), error })?;
    let (bytes, data) = (contents.bytes.clone(), DataFiles::beside(path, contents.stamp.id));
    let (len, file) = (bytes.len() as u64, Some(Opened { path: path.to_path_buf(), file, contents }));
    Ok(Source { bytes, len, file, data })
}

fn read(path: &Path) -> Result<(File, Contents), FileError> {
    // Opening a device can have side effects, and opening a pipe blocks, so the kind is checked first. The file may
    // change in between; so the open does not block either, and the opened file is checked again.
    file::regular(&std::fs::metadata(path)?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let contents = Contents::of(&file)?;
    Ok((file, contents))
}

impl Source {
    /// Creates a model in memory. Its external data is missing until a directory is [added](DataFiles::also_beneath).
    pub fn of_bytes(bytes: Bytes) -> Self {
        Source { len: bytes.len() as u64, bytes, file: None, data: DataFiles::default() }
    }

    /// Creates a model that a host stores outside of memory. `find` returns its data files.
    ///
    /// # Errors
    /// The model cannot be read.
    pub fn of_host(model: SharedSource, find: FindFile) -> std::io::Result<Self> {
        let outline = Outline::of(&model)?;
        let (bytes, len) = (outline.bytes.clone(), outline.size);
        Ok(Source { bytes, len, file: None, data: DataFiles::of_host(model, outline, find) })
    }

    /// Returns the bytes of the model, or of its outline.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the number of bytes of the model.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Decodes the model, and separately the fields that the schema does not define.
    ///
    /// # Errors
    /// The errors of [`decode_parts`].
    pub fn decode(&self, limits: &Limits) -> Result<(ModelParts, UnknownFields), DecodeError> {
        let Some(outline) = self.data.outline() else { return decode_parts(&self.bytes, limits) };
        if self.len > MESSAGE_BYTES {
            return Err(DecodeError::TooLarge(self.len));
        }
        // The size includes payloads outside the outline.
        let hidden = self.len.saturating_sub(self.bytes.len() as u64);
        let memory = limits.memory.saturating_add(limits.memory_per_byte.saturating_mul(hidden));
        decode_parts(&self.bytes, &Limits { memory, ..*limits }).map_err(|error| match error {
            DecodeError::Wire(error) => {
                DecodeError::Wire(WireError { offset: outline.position(error.offset), ..error })
            }
            other => other,
        })
    }

    /// Returns `true` if a host stores the model.
    pub(super) fn is_hosted(&self) -> bool {
        self.data.outline().is_some()
    }

    /// Returns `true` if the model has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the id of the model file.
    pub fn id(&self) -> Option<FileId> {
        self.file.as_ref()?.contents.stamp.id
    }

    /// Returns `true` if the payload of a tensor is part of the model's own bytes.
    pub(super) fn holds(&self, tensor: &Tensor) -> bool {
        match tensor.range() {
            Some(range) => self.data.has(range),
            None => !tensor.is_deferred() && file::place_in(&self.bytes, tensor.bytes()).is_some(),
        }
    }

    /// Returns the mapped file that contains a payload.
    pub(super) fn origin(&self, payload: &[u8]) -> Option<Origin> {
        if let Some(Opened { file, contents, .. }) = &self.file
            && contents.has(payload)
        {
            return contents.origin(file.try_clone().ok()?);
        }
        self.data.origin(payload)
    }

    /// Checks that the files of the model and its data did not change since they were opened. This must hold before
    /// output made from them is put in place.
    ///
    /// # Errors
    /// Contains the file that was truncated, rewritten or, if a data file, replaced.
    pub fn verify(&self) -> Result<(), SourceError> {
        if self.data.has_failed() {
            return Err(SourceError::Model { path: "model".into(), error: FileError::Changed });
        }
        if let Some(Opened { path, file, contents }) = &self.file {
            let now = file.metadata().map_err(FileError::from);
            now.and_then(|now| contents.verify(&now))
                .map_err(|error| SourceError::Model { path: path.clone(), error })?;
        }
        Ok(self.data.verify()?)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        open(path).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_are_models() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refused(dir.path()).ends_with("is a directory, not a regular file"));
        assert!(refused(Path::new("/dev/zero")).ends_with("is a device, not a regular file"));
        assert!(refused(&dir.path().join("nothing")).contains("cannot be read: No such file"));
        assert!(refused(Path::new("")).contains("cannot be read"));
        let pipe = dir.path().join("pipe\u{1b}[31m");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        let error = refused(&pipe);
        assert!(error.ends_with("is a pipe, not a regular file") && !error.contains('\u{1b}'), "{error}");
        // The file reports length 0 but has content: the reported length is used.
        assert!(open(Path::new("/proc/self/environ")).is_err_and(|e| e.to_string().contains("changed")));
    }

    #[test]
    fn a_link_leads_to_the_model() {
        let dir = tempfile::tempdir().unwrap();
        let blob = dir.path().join("blob");
        std::fs::write(&blob, b"\x08\x0a").unwrap();
        let inside = dir.path().join("snapshot");
        std::fs::create_dir(&inside).unwrap();
        let link = inside.join("m.onnx");
        std::os::unix::fs::symlink("../blob", &link).unwrap();
        let source = open(&link).unwrap();
        assert_eq!(source.bytes(), &b"\x08\x0a"[..]);
        assert_eq!(source.id(), open(&blob).unwrap().id());
    }

    #[cfg(feature = "mmap")]
    #[test]
    fn a_large_model_that_changes_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.onnx");
        let len = 4 << 20;
        for cut in [0, 5000, len / 2, len - 1] {
            std::fs::write(&path, vec![1; len]).unwrap();
            let source = open(&path).unwrap();
            source.verify().unwrap();
            File::options().write(true).open(&path).unwrap().set_len(cut as u64).unwrap();
            let read: u64 = source.bytes().iter().map(|byte| u64::from(*byte)).sum();
            assert!(read <= len as u64);
            assert!(source.verify().unwrap_err().to_string().ends_with("changed during reading"));
        }
        // Replacing the path is no change: the opened file still exists.
        std::fs::write(&path, vec![1; len]).unwrap();
        let source = open(&path).unwrap();
        std::fs::write(dir.path().join("new"), b"new").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        source.verify().unwrap();
        assert!(source.bytes().iter().all(|byte| *byte == 1));
    }
}
