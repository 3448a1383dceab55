//! The directories that data files may lie below, and how a location is looked up in them.
//!
//! The roots are the directory of the model as given, the directory of the model's real path, and those that the user names
//! (`--external-data-root`). A location is looked up in one root after the other. A symbolic link is followed if the file that
//! it leads to lies below a root as well. A download cache is laid out so: `snapshots/REV/model.onnx` and
//! `snapshots/REV/model.onnx_data` are links to `blobs/HASH`, and the model's real directory is `blobs`.
//!
//! Every file is opened [below](Directory) a root and without following any link: a link is resolved to a path first, the
//! path is compared with the roots, and the names that remain are opened below that root. If links change in between,
//! another file below the root is opened, or none.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::ExternalProblem;
use crate::onnx::beneath::Directory;
use crate::onnx::file::{FileError, FileId};
use crate::onnx::save::directory_of;

/// The directories data files may lie below.
#[derive(Default)]
pub(super) struct Roots {
    /// The path by which the model was opened, and the file that was: the directory it really lies in is a root, too.
    model: Option<(PathBuf, Option<FileId>)>,
    /// The directories, as given.
    paths: Vec<PathBuf>,
    /// The same, opened; empty until the first file is looked up.
    open: Vec<Root>,
}

/// A directory, opened.
struct Root {
    directory: Directory,
    /// Its path without symbolic links.
    real: PathBuf,
}

/// Where a data file was found.
pub(super) struct Place {
    /// The root that has the location.
    root: usize,
    /// The path of the file without symbolic links.
    pub real: PathBuf,
}

impl Roots {
    /// The roots of the model at `path`.
    pub fn of_model(path: &Path, id: Option<FileId>) -> Self {
        Roots { model: Some((path.to_path_buf(), id)), paths: vec![directory_of(path).to_path_buf()], open: Vec::new() }
    }

    pub fn extend(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.paths.extend(paths);
    }

    /// The directories, in the order in which they are looked in.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    /// Opens all directories, once.
    ///
    /// # Errors
    /// One of them cannot be opened.
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

    /// Opens the file at a location, of which `name` has only the plain names; `None` if there is none, or only links that lead nowhere.
    ///
    /// # Errors
    /// A link leads out of the roots or in a circle, or the system refuses the file.
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

    /// Opens the file that a path with a symbolic link in it leads to.
    fn follow(&self, root: usize, path: &Path, location: &str) -> Result<Option<(File, Place)>, ExternalProblem> {
        let outside = |target| {
            let allowed = self.open.iter().map(|root| root.real.clone()).collect();
            Err(ExternalProblem::Outside { location: location.to_owned(), target, allowed })
        };
        let real = match std::fs::canonicalize(path) {
            Ok(real) => real,
            // A file without a path is no file below a root: a pipe, or another file that a process holds open.
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

    /// What to write before a location for a model in `directory`.
    pub fn way_from(&self, place: &Place, directory: &Path) -> Option<String> {
        place.real.starts_with(directory).then_some(())?;
        way(&self.open.get(place.root)?.real, directory)
    }

    /// The same for the location of a file that is missing: it belongs into the first root.
    pub fn way_of_missing(&self, directory: &Path) -> Option<String> {
        way(&self.open.first()?.real, directory)
    }
}

/// The directory that a model really lies in, unless its path leads to another file by now.
fn real_directory(model: &Path, id: Option<FileId>) -> Option<PathBuf> {
    let real = std::fs::canonicalize(model).ok()?;
    let now = FileId::of(&std::fs::metadata(&real).ok()?);
    if now == id { real.parent().map(Path::to_path_buf) } else { None }
}

/// The names that lead from a directory down to one in it, each with a separator after it.
fn way(inner: &Path, outer: &Path) -> Option<String> {
    let names = inner.strip_prefix(outer).ok()?.components();
    let names = names.map(|name| name.as_os_str().to_str().filter(|name| !name.contains('\\')));
    names.map(|name| name.map(|name| format!("{name}/"))).collect()
}

/// Explains an error of the system.
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
