//! The directories that data files may be below, and the lookup of a location in them.
//!
//! The roots are the model's directory as given, the directory of its real path, and the user's directories
//! (`--external-data-root`). A location is looked up in the roots in order. A symbolic link is followed if its target
//! is below a root, too. Download caches need this: `snapshots/REV/model.onnx` and `snapshots/REV/model.onnx_data`
//! are links to `blobs/HASH`, and the model's real directory is `blobs`.
//!
//! Every file is opened [below](Directory) a root without following links. A link is first resolved to a path; the
//! path is compared with the roots; the remaining components are opened below that root. If links change in between,
//! another file below the root is opened, or none.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::ExternalProblem;
use crate::onnx::beneath::Directory;
use crate::onnx::file::{FileError, FileId};
use crate::onnx::save::directory_of;

/// The directories that data files may be below.
#[derive(Default)]
pub(super) struct Roots {
    /// The path and id of the opened model; the directory of its real path is a root, too.
    model: Option<(PathBuf, Option<FileId>)>,
    /// The directories, as given.
    paths: Vec<PathBuf>,
    /// The opened directories; empty until the first lookup.
    open: Vec<Root>,
}

/// An opened directory.
struct Root {
    directory: Directory,
    /// Its path without symbolic links.
    real: PathBuf,
}

/// The place of a data file.
pub(super) struct Place {
    /// The root that contains the location.
    root: usize,
    /// The path of the file without symbolic links.
    pub real: PathBuf,
}

impl Roots {
    /// Returns the roots of the model at `path`.
    pub fn of_model(path: &Path, id: Option<FileId>) -> Self {
        Roots { model: Some((path.to_path_buf(), id)), paths: vec![directory_of(path).to_path_buf()], open: Vec::new() }
    }

    pub fn extend(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.paths.extend(paths);
    }

    /// Returns the directories, in lookup order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    /// Opens all directories, once.
    ///
    /// # Errors
    /// A directory cannot be opened.
    pub fn open(&mut self) -> Result<(), ExternalProblem> {
        if !self.open.is_empty() {
            return Ok(());
        }
        if let Some((model, id)) = self.model.take()
            && let Some(real) = real_directory(&model, id)
        {
            let after_own = self.paths.len().min(1);
            self.paths.insert(after_own, real);
        }
        let (mut paths, mut open) = (Vec::new(), Vec::<Root>::new());
        for path in std::mem::take(&mut self.paths) {
            let cannot = |error| ExternalProblem::Directory { directory: path.clone(), error };
            let real = std::fs::canonicalize(&path).map_err(cannot)?;
            if open.iter().all(|root| root.real != real) {
                open.push(Root { directory: Directory::open(&real).map_err(cannot)?, real });
                paths.push(path);
            }
        }
        (self.paths, self.open) = (paths, open);
        Ok(())
    }

    /// Opens the file at a location whose plain names are `name`; `None` if there is no file, or only dangling links.
    ///
    /// # Errors
    /// A link leads out of the roots or to itself, or the system reports an error.
    pub fn find(&self, name: &str, location: &str) -> Result<Option<(File, Place)>, ExternalProblem> {
        for (at, root) in self.open.iter().enumerate() {
            let found = match root.directory.read(name.as_ref()) {
                Ok(Some(file)) => Some((file, Place { root: at, real: root.real.join(name) })),
                Ok(None) => self.follow(at, &root.real.join(name), location)?,
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(explain(location, error)),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Opens the target of a path that contains a symbolic link.
    fn follow(&self, root: usize, path: &Path, location: &str) -> Result<Option<(File, Place)>, ExternalProblem> {
        let outside = |target| {
            let allowed = self.open.iter().map(|root| root.real.clone()).collect();
            Err(ExternalProblem::Outside { location: location.to_owned(), target, allowed })
        };
        let real = match std::fs::canonicalize(path) {
            Ok(real) => real,
            // The target has no path, so it is not below a root: a pipe, or a file that only a process holds open.
            Err(error) if error.kind() == ErrorKind::NotFound => match std::fs::metadata(path) {
                Ok(_) => return outside(std::fs::read_link(path).unwrap_or_else(|_| path.to_path_buf())),
                Err(_) => return Ok(None),
            },
            Err(error) => return Err(explain(location, error)),
        };
        let beneath = self.open.iter().find_map(|root| Some((root, real.strip_prefix(&root.real).ok()?)));
        let Some((holder, rest)) = beneath else { return outside(real) };
        if rest.as_os_str().is_empty() {
            let error = FileError::NotRegular("a directory");
            return Err(ExternalProblem::File { location: location.to_owned(), error });
        }
        match holder.directory.read(rest) {
            Ok(Some(file)) => Ok(Some((file, Place { root, real }))),
            Ok(None) => Err(ExternalProblem::File { location: location.to_owned(), error: FileError::Changed }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(explain(location, error)),
        }
    }

    /// Returns the prefix of a location for a model in `directory`.
    pub fn way_from(&self, place: &Place, directory: &Path) -> Option<String> {
        place.real.starts_with(directory).then_some(())?;
        way(&self.open.get(place.root)?.real, directory)
    }

    /// Returns the prefix of a missing file's location, relative to the first root.
    pub fn way_of_missing(&self, directory: &Path) -> Option<String> {
        way(&self.open.first()?.real, directory)
    }
}

/// Returns the directory of a model's real path; `None` if the path now leads to another file.
fn real_directory(model: &Path, id: Option<FileId>) -> Option<PathBuf> {
    let real = std::fs::canonicalize(model).ok()?;
    let now = FileId::of(&std::fs::metadata(&real).ok()?);
    if now == id { real.parent().map(Path::to_path_buf) } else { None }
}

/// Returns the components from `outer` down to `inner`, each with a trailing separator.
fn way(inner: &Path, outer: &Path) -> Option<String> {
    let names = inner.strip_prefix(outer).ok()?.components();
    let names = names.map(|name| name.as_os_str().to_str().filter(|name| !name.contains('\\')));
    names.map(|name| name.map(|name| format!("{name}/"))).collect()
}

/// Converts an error of the system.
fn explain(location: &str, error: io::Error) -> ExternalProblem {
    let location = location.to_owned();
    #[cfg(unix)]
    match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::LOOP) => {
            return ExternalProblem::Location { location, reason: "is a symbolic link that leads to itself" };
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
