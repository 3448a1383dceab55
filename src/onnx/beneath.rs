//! Opening a file beneath a directory and nowhere else.
//!
//! The kernel does it in one step where it can (`openat2`), so that nothing can be swapped in between; where it cannot,
//! each component is opened from the one before without following a link.

use std::fs::File;
use std::io;
use std::path::Path;

/// A directory that files are opened beneath.
pub(super) struct Directory {
    #[cfg(unix)]
    handle: rustix::fd::OwnedFd,
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

/// What every open here asks for: never to wait, never to become a terminal's owner.
#[cfg(unix)]
const READ: rustix::fs::OFlags = rustix::fs::OFlags::RDONLY
    .union(rustix::fs::OFlags::NONBLOCK)
    .union(rustix::fs::OFlags::NOCTTY)
    .union(rustix::fs::OFlags::CLOEXEC);

#[cfg(unix)]
impl Directory {
    /// Links in the path to the directory itself are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        #[cfg(target_os = "linux")]
        let access = OFlags::PATH;
        #[cfg(not(target_os = "linux"))]
        let access = OFlags::RDONLY;
        let handle = rustix::fs::open(path, access | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Directory { handle })
    }

    /// Opens what `components` name, one inside the other, for reading. Each must be a plain name.
    ///
    /// # Errors
    /// `FilesystemLoop` if a link is in the way; otherwise what the system says.
    pub fn read(&self, components: &[&str]) -> io::Result<File> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{Mode, ResolveFlags, openat2};
            use rustix::io::Errno;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.handle, components.join("/"), READ, Mode::empty(), resolve) {
                Ok(file) => return Ok(file.into()),
                // Kernels and sandboxes that do not have it.
                Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.walk(components)
    }

    /// One component at a time.
    fn walk(&self, components: &[&str]) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, openat};
        use rustix::io::Errno;
        let Some((name, directories)) = components.split_last() else { return Err(Errno::NOENT.into()) };
        let mut inner: Option<rustix::fd::OwnedFd> = None;
        for directory in directories {
            let outer = inner.as_ref().unwrap_or(&self.handle);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            inner = Some(openat(outer, *directory, flags, Mode::empty())?);
        }
        let outer = inner.as_ref().unwrap_or(&self.handle);
        Ok(openat(outer, *name, READ | OFlags::NOFOLLOW, Mode::empty())?.into())
    }
}

#[cfg(not(unix))]
impl Directory {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Directory { path: path.to_path_buf() })
    }

    /// Opens what `components` name, one inside the other, for reading. Each must be a plain name.
    pub fn read(&self, components: &[&str]) -> io::Result<File> {
        let mut path = self.path.clone();
        for component in components {
            path.push(component);
            if std::fs::symlink_metadata(&path)?.file_type().is_symlink() {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
        File::open(path)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Both ways must open the same and refuse the same.
    fn both(directory: &Directory, components: &[&str]) -> Option<String> {
        let text = |file: io::Result<File>| {
            let mut text = String::new();
            file.ok()?.read_to_string(&mut text).ok()?;
            Some(text)
        };
        let (one, other) = (text(directory.read(components)), text(directory.walk(components)));
        assert_eq!(one, other, "{components:?}");
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
        assert_eq!(both(&directory, &["w"]).as_deref(), Some("w"));
        assert_eq!(both(&directory, &["a", "b", "w"]).as_deref(), Some("abw"));
        for refused in
            [&["link"][..], &["out"], &["d", "b", "w"], &["up", "secret"], &["nothing"], &["w", "w"], &["a"], &[]]
        {
            assert_eq!(both(&directory, refused), None, "{refused:?}");
        }
    }
}
