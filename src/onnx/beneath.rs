//! Opens files below a directory and nowhere else.
//!
//! Where the kernel has `openat2`, one call opens the path, so that no component can be replaced in between.
//! Elsewhere each component is opened relative to the previous one without following links.

use std::fs::File;
use std::io;
use std::path::{Component, Path};

/// A directory below which files are opened.
pub(super) struct Directory {
    #[cfg(unix)]
    handle: rustix::fd::OwnedFd,
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

/// The flags of every open: without blocking, and without acquiring a controlling terminal.
#[cfg(unix)]
const READ: rustix::fs::OFlags = rustix::fs::OFlags::RDONLY
    .union(rustix::fs::OFlags::NONBLOCK)
    .union(rustix::fs::OFlags::NOCTTY)
    .union(rustix::fs::OFlags::CLOEXEC);

#[cfg(unix)]
impl Directory {
    /// Opens the directory; follows links in its own path.
    pub fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        #[cfg(target_os = "linux")]
        let access = OFlags::PATH;
        #[cfg(not(target_os = "linux"))]
        let access = OFlags::RDONLY;
        let handle = rustix::fs::open(path, access | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Directory { handle })
    }

    /// Opens the file at a relative path of plain names for reading; `None` if a component is a symbolic link.
    ///
    /// # Errors
    /// The system cannot open the file.
    pub fn read(&self, path: &Path) -> io::Result<Option<File>> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{Mode, ResolveFlags, openat2};
            use rustix::io::Errno;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.handle, path, READ, Mode::empty(), resolve) {
                Ok(file) => return Ok(Some(file.into())),
                Err(Errno::LOOP) => return Ok(None),
                // Old kernels and sandboxes do not support `openat2`.
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.walk(path)
    }

    /// Opens the path one component at a time.
    fn walk(&self, path: &Path) -> io::Result<Option<File>> {
        use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
        use rustix::io::Errno;
        let names = plain_names(path)?;
        let Some((name, directories)) = names.split_last() else { return Err(Errno::NOENT.into()) };
        let mut inner: Option<rustix::fd::OwnedFd> = None;
        for (name, is_last) in directories.iter().map(|name| (name, false)).chain([(name, true)]) {
            let outer = inner.as_ref().unwrap_or(&self.handle);
            let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let flags = OFlags::NOFOLLOW | if is_last { READ } else { directory };
            inner = match openat(outer, *name, flags, Mode::empty()) {
                Ok(opened) => Some(opened),
                // The component is a link or not a directory; nothing was opened.
                Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
                    let found = statat(outer, *name, AtFlags::SYMLINK_NOFOLLOW)?;
                    let is_link = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
                    return if is_link { Ok(None) } else { Err(error.into()) };
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok(inner.map(File::from))
    }
}

/// Returns the components of a relative path.
///
/// # Errors
/// The path is absolute or contains `..`.
fn plain_names(path: &Path) -> io::Result<Vec<&std::ffi::OsStr>> {
    let plain = |component| match component {
        Component::Normal(name) => Ok(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    path.components().map(plain).collect()
}

#[cfg(not(unix))]
impl Directory {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Directory { path: path.to_path_buf() })
    }

    /// Opens the file at a relative path of plain names for reading; `None` if a component is a symbolic link.
    pub fn read(&self, path: &Path) -> io::Result<Option<File>> {
        let mut whole = self.path.clone();
        for name in plain_names(path)? {
            whole.push(name);
            if std::fs::symlink_metadata(&whole)?.file_type().is_symlink() {
                return Ok(None);
            }
        }
        File::open(whole).map(Some)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Checks that both implementations accept and reject the same paths.
    fn both(directory: &Directory, path: &str) -> Result<Option<String>, ()> {
        let text = |file: io::Result<Option<File>>| {
            let Some(mut file) = file.map_err(|_| ())? else { return Ok(None) };
            let mut text = String::new();
            file.read_to_string(&mut text).map_err(|_| ())?;
            Ok(Some(text))
        };
        let (one, other) = (text(directory.read(path.as_ref())), text(directory.walk(path.as_ref())));
        assert_eq!(one, other, "{path:?}");
        one
    }

    #[test]
    fn opens_what_is_inside_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("model");
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::fs::write(dir.join("w"), "w").unwrap();
        std::fs::write(dir.join("a/b/w"), "abw").unwrap();
        std::fs::write(root.path().join("secret"), "secret").unwrap();
        symlink("w", dir.join("link")).unwrap();
        symlink("../secret", dir.join("out")).unwrap();
        symlink("a", dir.join("d")).unwrap();
        symlink("..", dir.join("up")).unwrap();
        let directory = Directory::open(&dir).unwrap();
        assert_eq!(both(&directory, "w"), Ok(Some("w".into())));
        assert_eq!(both(&directory, "a/b/w"), Ok(Some("abw".into())));
        for link in ["link", "out", "d/b/w", "up/secret"] {
            assert_eq!(both(&directory, link), Ok(None), "{link:?}");
        }
        for refused in ["nothing", "w/w", "a", ""] {
            assert_eq!(both(&directory, refused), Err(()), "{refused:?}");
        }
        for leads_out in ["../secret", "/etc/passwd"] {
            assert!(directory.walk(leads_out.as_ref()).is_err());
            assert!(!matches!(directory.read(leads_out.as_ref()), Ok(Some(_))));
        }
    }
}
