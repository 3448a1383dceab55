//! Opening a model.

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

/// A model as opened, with the data files it names.
pub struct Source {
    bytes: Bytes,
    len: u64,
    /// `None` for a model that was given as bytes.
    file: Option<Opened>,
    /// Its external data.
    pub data: DataFiles,
}

/// How a model is opened.
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
    /// Directories that data files may lie below, besides that of the model as given and that of the model's real path.
    pub external_data_roots: Vec<PathBuf>,
}

impl OpenOptions {
    /// Options without further directories.
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

/// The file a model was read from.
struct Opened {
    path: PathBuf,
    file: File,
    contents: Contents,
}

/// A model that cannot be opened, or did not stay what it was.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The model file.
    #[error("{} {error}", QuotedPath(.path))]
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

impl SourceError {
    /// The model of a host cannot be read.
    pub fn of_host(error: std::io::Error) -> Self {
        SourceError::Model { path: "model".into(), error: error.into() }
    }
}

/// Opens a model: a regular file, by whatever name or link leads to it. External data is looked for in the directory of that name, and in
/// that of the file that a link leads to.
///
/// Files below 1 MiB are read, others mapped if the feature `mmap` is on. What becomes of a mapped file while it is used is noticed by
/// [`Source::verify`], never a crash.
///
/// # Errors
/// If it is not a regular file or cannot be read.
pub fn open(path: &Path) -> Result<Source, SourceError> {
    let (file, contents) = read(path).map_err(|error| SourceError::Model { path: path.to_path_buf(), error })?;
    let (bytes, data) = (contents.bytes.clone(), DataFiles::beside(path, contents.stamp.id));
    let (len, file) = (bytes.len() as u64, Some(Opened { path: path.to_path_buf(), file, contents }));
    Ok(Source { bytes, len, file, data })
}

fn read(path: &Path) -> Result<(File, Contents), FileError> {
    // Opening a device can do things by itself, and opening a pipe waits: look first. What is there may change in
    // between, so the open does not wait either, and what was opened is looked at again.
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
    /// A model that is in memory. Its external data is missing until it is [looked for](DataFiles::also_beneath) in a directory.
    pub fn of_bytes(bytes: Bytes) -> Self {
        Source { len: bytes.len() as u64, bytes, file: None, data: DataFiles::default() }
    }

    /// A model that a host holds outside of memory, with a function that finds its data files.
    ///
    /// # Errors
    /// The model cannot be read.
    pub fn of_host(model: SharedSource, find: FindFile) -> std::io::Result<Self> {
        let outline = Outline::of(&model)?;
        let (bytes, len) = (outline.bytes.clone(), outline.size);
        Ok(Source { bytes, len, file: None, data: DataFiles::of_host(model, outline, find) })
    }

    /// The bytes of the model, or of its outline.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The number of bytes of the model.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Decodes the model, and separately the fields that the schema does not know.
    ///
    /// # Errors
    /// As [`decode_parts`].
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

    /// Returns `true` for a model that a host holds.
    pub(super) fn is_hosted(&self) -> bool {
        self.data.outline().is_some()
    }

    /// Returns `true` for a model without any bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Which file the model is.
    pub fn id(&self) -> Option<FileId> {
        self.file.as_ref()?.contents.stamp.id
    }

    /// Whether the payload of a tensor is a part of the model's own bytes.
    pub(super) fn holds(&self, tensor: &Tensor) -> bool {
        match tensor.range() {
            Some(range) => self.data.has(range),
            None => !tensor.is_deferred() && file::place_in(&self.bytes, tensor.bytes()).is_some(),
        }
    }

    /// The file a payload lies in, if it lies in one that is mapped.
    pub(super) fn origin(&self, payload: &[u8]) -> Option<Origin> {
        if let Some(Opened { file, contents, .. }) = &self.file
            && contents.has(payload)
        {
            return contents.origin(file.try_clone().ok()?);
        }
        self.data.origin(payload)
    }

    /// Whether all bytes handed out so far, of the model and of its data files, were those of files that did not change.
    /// Must hold before anything made from them is put in place.
    ///
    /// # Errors
    /// Which file was cut, rewritten or, for a data file, replaced.
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
        // A file that says it is empty and is not: taken at its word.
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
        // Replacing it is no change: the one that was opened is still what it was.
        std::fs::write(&path, vec![1; len]).unwrap();
        let source = open(&path).unwrap();
        std::fs::write(dir.path().join("new"), b"new").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        source.verify().unwrap();
        assert!(source.bytes().iter().all(|byte| *byte == 1));
    }
}
