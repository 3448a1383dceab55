//! Replaces a file by a new one atomically; `write` writes the content.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};
use thiserror::Error;

use super::QuotedPath;
use super::encode::EncodeError;
use super::file::{self, FileId};
use super::source::{Source, SourceError};
use crate::ir::Broken;

/// An error for a file that was not written. Its target is unchanged.
#[derive(Debug, Error)]
pub enum SaveError {
    /// A file cannot have this name.
    #[error("{} {reason}", QuotedPath(.target))]
    Target {
        /// The path of the file.
        target: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Writing failed.
    #[error("{} cannot be written: {error}", QuotedPath(.target))]
    Write {
        /// The path of the file.
        target: PathBuf,
        /// The reason.
        error: EncodeError,
    },
    /// The model exceeds the size of one message, and there is no data file for its tensors.
    #[error("the model has {0} bytes, above the protobuf limit of 2 GiB; save it to a file with external data")]
    TooLarge(u64),
    /// Source files changed during writing.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The nodes have no topological order; this is a defect of an earlier edit.
    #[error("the folded model is inconsistent")]
    Broken(#[from] Broken),
}

/// A new file that will replace its target.
pub(super) struct NewFile {
    /// The path of the new file. A symbolic link at this path is replaced; the file that it leads to is not written.
    target: PathBuf,
    pub file: File,
    /// The temporary name, if the file needs one; removed on drop.
    name: Option<NamedTempFile<()>>,
}

impl NewFile {
    /// Creates a file in the directory of `target`, which must not be a data file of the source.
    pub fn create(target: &Path, source: Option<&Source>) -> Result<Self, SaveError> {
        let refuse = |reason: String| SaveError::Target { target: target.to_path_buf(), reason };
        let old = replaceable(target).map_err(refuse)?;
        let id = old.as_ref().and_then(FileId::of);
        if let (Some(id), Some(source)) = (id, source)
            && source.data.ids().any(|data| data == id)
        {
            return Err(refuse("contains data of the model that the program is reading".into()));
        }
        let directory = directory_of(target);
        let cannot = |error: io::Error| SaveError::Write { target: target.to_path_buf(), error: error.into() };
        let (file, name) = temporary(directory).map_err(cannot)?;
        if let Some(old) = old {
            keep_permissions(&file, &old).map_err(cannot)?;
        }
        Ok(NewFile { target: target.to_path_buf(), file, name })
    }

    /// Checks that the process may write a file of `len` bytes: exceeding the limit would kill it.
    pub fn must_hold(&self, len: u64) -> Result<(), SaveError> {
        #[cfg(unix)]
        {
            use rustix::process::{Resource, getrlimit};
            if getrlimit(Resource::Fsize).current.is_some_and(|limit| len > limit) {
                return Err(self.failed(io::Error::from(ErrorKind::FileTooLarge)));
            }
        }
        #[cfg(not(unix))]
        let _ = len;
        Ok(())
    }

    pub fn failed(&self, error: impl Into<EncodeError>) -> SaveError {
        SaveError::Write { target: self.target.clone(), error: error.into() }
    }

    /// Gives the file its name, and replaces an existing file.
    pub fn put_in_place(mut self) -> Result<(), SaveError> {
        let directory = directory_of(&self.target).to_path_buf();
        let named = match self.name.take() {
            Some(name) => Ok(name),
            None => name(&mut self.file, &directory),
        };
        let named = named.map_err(|error| self.failed(error))?;
        named.persist(&self.target).map_err(|error| self.failed(error.error))?;
        // The file is in place and complete in any case. The sync makes its name as durable as the bytes, where the
        // system can synchronize a directory.
        #[cfg(unix)]
        if let Ok(directory) = File::open(&directory) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

pub(super) fn directory_of(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the metadata of the file at a path, whose permissions the new file gets. `None` for no file, or a dangling
/// link.
///
/// # Errors
/// A file cannot have this name, or the path is not a regular file.
fn replaceable(target: &Path) -> Result<Option<Metadata>, String> {
    let bytes = target.as_os_str().as_encoded_bytes();
    if target.file_name().is_none() || bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
        return Err("is not the name of a file".into());
    }
    match std::fs::metadata(target) {
        Ok(metadata) => file::regular(&metadata).map(|()| Some(metadata)).map_err(|error| error.to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot be written: {error}")),
    }
}

/// Creates a file with default permissions in a directory; without a name if the system supports that.
fn temporary(directory: &Path) -> io::Result<(File, Option<NamedTempFile<()>>)> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666)) {
            let file = File::from(file);
            if std::fs::exists(unnamed(&file)).unwrap_or(false) {
                return Ok((file, None));
            }
        }
        // Not every file system supports that, and not every process can name the file later. The fallback reports
        // other errors.
    }
    temporary_named(directory)
}

fn temporary_named(directory: &Path) -> io::Result<(File, Option<NamedTempFile<()>>)> {
    let made = builder().make_in(directory, |path| File::options().write(true).create_new(true).open(path))?;
    let (file, path) = made.into_parts();
    Ok((file, Some(NamedTempFile::from_parts((), path))))
}

/// Returns the path under `/proc` of an open file without a name.
#[cfg(target_os = "linux")]
fn unnamed(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Names an unnamed file.
#[cfg(target_os = "linux")]
fn name(file: &mut File, directory: &Path) -> io::Result<NamedTempFile<()>> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let unnamed = unnamed(file);
    let linked = builder().make_in(directory, |path| Ok(linkat(CWD, &unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?));
    // Some systems forbid all hard links, including this one.
    if linked.is_ok() { linked } else { copy(file, directory) }
}

/// Copies the file to a new one with a name.
#[cfg(target_os = "linux")]
fn copy(file: &mut File, directory: &Path) -> io::Result<NamedTempFile<()>> {
    use std::io::Seek;
    let (mut copy, name) = temporary_named(directory)?;
    copy.set_permissions(file.metadata()?.permissions())?;
    file.rewind()?;
    io::copy(file, &mut copy)?;
    copy.sync_all()?;
    name.ok_or_else(|| ErrorKind::NotFound.into())
}

#[cfg(not(target_os = "linux"))]
fn name(_: &mut File, _: &Path) -> io::Result<NamedTempFile<()>> {
    Err(ErrorKind::Unsupported.into())
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".onnx-slice-fold-").suffix(".tmp");
    builder
}

/// Gives the new file the permissions of the one that it replaces.
fn keep_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::PermissionsExt;
        let wanted = old.permissions().mode() & 0o777;
        if file.metadata()?.permissions().mode() & 0o777 != wanted {
            file.set_permissions(Permissions::from_mode(wanted))?;
        }
    }
    #[cfg(not(unix))]
    let _ = (file, old);
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
