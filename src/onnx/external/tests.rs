use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;

fn entries(pairs: &[(&str, &str)]) -> Vec<StringStringEntryProto> {
    let entry =
        |(key, value): &(&str, &str)| StringStringEntryProto { key: Some((*key).into()), value: Some((*value).into()) };
    pairs.iter().map(entry).collect()
}

fn at(location: &str, offset: &str, length: &str) -> Vec<StringStringEntryProto> {
    entries(&[("location", location), ("offset", offset), ("length", length)])
}

/// A model's directory with 256 bytes of data in it, and a secret beside it.
struct Directory {
    root: tempfile::TempDir,
    files: DataFiles,
}

impl Directory {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let model = root.path().join("model");
        std::fs::create_dir_all(model.join("sub/inner")).unwrap();
        let bytes: Vec<u8> = (0..=255).collect();
        std::fs::write(model.join("w.bin"), &bytes).unwrap();
        std::fs::write(model.join("sub/inner/w.bin"), &bytes).unwrap();
        std::fs::write(root.path().join("secret"), "secret").unwrap();
        let files = DataFiles::beside(&model.join("m.onnx"));
        Directory { root, files }
    }

    fn dir(&self) -> PathBuf {
        self.root.path().join("model")
    }

    fn read(&mut self, entries: &[StringStringEntryProto]) -> Result<Bytes, String> {
        self.files.read("w", entries).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(&mut self, location: &str, reason: &str) {
        let error = self.read(&at(location, "0", "4")).expect_err(location);
        assert!(error.starts_with("tensor 'w': external data "), "{error}");
        assert!(error.contains(reason), "{location:?}: {error}");
        assert!(error.len() < 400 && !error.contains(['\n', '\u{1b}', '\0']), "{error}");
    }
}

#[test]
fn reads_what_lies_in_the_file() {
    let mut place = Directory::new();
    assert_eq!(place.read(&at("w.bin", "3", "2")).unwrap(), [3u8, 4][..]);
    assert_eq!(place.read(&entries(&[("location", "w.bin")])).unwrap().len(), 256);
    assert_eq!(place.read(&entries(&[("location", "w.bin"), ("offset", "250")])).unwrap().len(), 6);
    assert_eq!(place.read(&at("./w.bin", "0", "256")).unwrap().len(), 256);
    assert_eq!(place.read(&at("sub//inner/./w.bin", "007", "1")).unwrap(), [7u8][..]);
    assert_eq!(place.read(&at("w.bin", "256", "0")).unwrap().len(), 0);
    let unknown_keys = [("__class__", "x"), ("location", "w.bin"), ("checksum", "00"), ("evil", "../secret")];
    assert_eq!(place.read(&entries(&unknown_keys)).unwrap().len(), 256);
    // However it is spelled, a file is opened once.
    assert_eq!(place.files.ids().count(), 2);
    let one = place.read(&at("w.bin", "0", "8")).unwrap();
    assert_eq!(one.as_ptr(), place.read(&at("././w.bin", "0", "8")).unwrap().as_ptr());
}

#[test]
fn a_bare_model_name_means_the_working_directory() {
    assert_eq!(DataFiles::beside(Path::new("m.onnx")).directory(), Some(Path::new(".")));
    assert_eq!(DataFiles::beside(Path::new("a/m.onnx")).directory(), Some(Path::new("a")));
}

#[test]
fn offset_and_length_are_numbers_of_bytes_within_the_file() {
    let mut place = Directory::new();
    for text in ["-1", "+1", " 1", "1 ", "", "abc", "0x10", "0.0", "1e2", "１", "18446744073709551616"] {
        assert!(place.read(&at("w.bin", text, "1")).unwrap_err().contains("for its offset, not a number of bytes"));
        assert!(place.read(&at("w.bin", "0", text)).unwrap_err().contains("for its length, not a number of bytes"));
    }
    for (offset, length) in [
        ("0", "257"),
        ("256", "1"),
        ("257", "0"),
        ("10000", "32"),
        ("9223372036854775807", "1"),
        ("18446744073709551600", "32"),
        ("16", "18446744073709551600"),
        ("0", "1125899906842624"),
    ] {
        let error = place.read(&at("w.bin", offset, length)).unwrap_err();
        assert!(error.contains("'w.bin' has 256 bytes, fewer than offset"), "{error}");
    }
    // Without a length, an offset past the end is no empty tensor.
    assert!(place.read(&entries(&[("location", "w.bin"), ("offset", "257")])).is_err());
}

#[test]
fn what_readers_understand_differently_is_refused() {
    let mut place = Directory::new();
    let twice = [("location", "w.bin"), ("offset", "0"), ("location", "../secret")];
    assert!(place.read(&entries(&twice)).unwrap_err().contains("gives location twice"));
    let twice = [("location", "w.bin"), ("offset", "0"), ("offset", "0")];
    assert!(place.read(&entries(&twice)).unwrap_err().contains("gives offset twice"));
    assert!(place.read(&[]).unwrap_err().contains("without a location"));
    assert!(place.read(&entries(&[("offset", "0")])).unwrap_err().contains("without a location"));
}

#[test]
fn a_location_stays_in_the_model_directory() {
    let mut place = Directory::new();
    for location in
        ["..", "../secret", "sub/../../secret", "sub/../w.bin", "./.././secret", "..//..//x", "a/b/../../.."]
    {
        place.refused(location, "leads out of a directory");
    }
    for location in ["/", "/etc/passwd", "//etc/passwd", "/dev/zero", "/proc/self/mem"] {
        place.refused(location, "is not relative to the model's directory");
    }
    let secret = place.root.path().join("secret");
    place.refused(secret.to_str().unwrap(), "is not relative");
    for location in ["..\\..\\secret", "C:\\Windows\\win.ini", "\\\\srv\\share\\x"] {
        place.refused(location, "contains a backslash");
    }
    for location in [".", "./", "w.bin/", "sub/", "sub/.", "a/./"] {
        place.refused(location, "names a directory");
    }
    place.refused("", "is empty");
    place.refused("w.bin\0/../secret", "contains a NUL");
    place.refused(&"a".repeat(100_000), "is longer than a path can be");
    place.refused(&"d/".repeat(5000), "is longer than a path can be");
    place.refused("*/_ORT_MEM_ADDR_/*", "an address in memory");
    for location in
        ["nope.bin", "file:///etc/passwd", "~/.bashrc", "$HOME/x", "%2e%2e/secret", "．．/secret", "w\n.bin"]
    {
        place.refused(location, "cannot be read");
    }
    assert_eq!(place.files.ids().count(), 0);
}

#[test]
fn links_are_not_followed() {
    let mut place = Directory::new();
    let dir = place.dir();
    symlink("w.bin", dir.join("inside")).unwrap();
    symlink("../secret", dir.join("outside")).unwrap();
    symlink("..", dir.join("up")).unwrap();
    symlink("/", dir.join("root")).unwrap();
    symlink("b", dir.join("a")).unwrap();
    symlink("a", dir.join("b")).unwrap();
    for location in ["inside", "outside", "up/secret", "root/etc/hostname", "a"] {
        place.refused(location, "leads through a symbolic link");
    }
    std::fs::hard_link(place.root.path().join("secret"), dir.join("hard")).unwrap();
    place.refused("hard", "has 2 names");
}

#[test]
fn the_directory_itself_may_be_reached_by_a_link() {
    let place = Directory::new();
    let link = place.root.path().join("link");
    symlink("model", &link).unwrap();
    let mut files = DataFiles::beside(&link.join("m.onnx"));
    assert_eq!(files.read("w", &at("w.bin", "0", "4")).unwrap().len(), 4);
    assert!(files.serve(&place.dir().join("other.onnx")));
    assert!(!files.serve(&place.root.path().join("other.onnx")));
    assert!(!files.serve(&place.root.path().join("nothing/other.onnx")));
}

#[test]
fn only_regular_files_are_data() {
    let mut place = Directory::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.dir().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    place.refused("pipe", "is a pipe, not a regular file");
    place.refused("sub", "is a directory, not a regular file");
    let _socket = std::os::unix::net::UnixListener::bind(place.dir().join("s")).unwrap();
    place.refused("s", "is a socket or device, not a regular file");
}

// What was read whole cannot change any more.
#[cfg(feature = "mmap")]
#[test]
fn a_data_file_that_changes_is_noticed() {
    let big = vec![1; 3 << 20];
    type Change = (&'static str, fn(&Path));
    let changes: [Change; 4] = [
        ("cut", |path| std::fs::File::options().write(true).open(path).unwrap().set_len(5000).unwrap()),
        ("cut by a byte", |path| {
            std::fs::File::options().write(true).open(path).unwrap().set_len((3 << 20) - 1).unwrap();
        }),
        ("replaced", |path| {
            std::fs::rename(path, path.with_extension("old")).unwrap();
            std::fs::write(path, vec![2; 3 << 20]).unwrap();
        }),
        ("removed", |path| std::fs::remove_file(path).unwrap()),
    ];
    for (what, change) in changes {
        let mut place = Directory::new();
        let path = place.dir().join("big.bin");
        std::fs::write(&path, &big).unwrap();
        let bytes = place.read(&entries(&[("location", "big.bin")])).unwrap();
        place.files.verify().unwrap();
        change(&path);
        assert!(bytes.iter().all(|byte| *byte <= 1));
        let error = place.files.verify().expect_err(what).to_string();
        assert_eq!(error, "external data file 'big.bin' was changed while it was being read");
    }
    // What was read rather than mapped is ours.
    let mut place = Directory::new();
    let bytes = place.read(&at("w.bin", "0", "256")).unwrap();
    std::fs::remove_file(place.dir().join("w.bin")).unwrap();
    place.files.verify().unwrap();
    assert_eq!(bytes[255], 255);
}

#[test]
fn many_files_need_no_descriptors() {
    use rustix::process::{Resource, getrlimit};
    let mut place = Directory::new();
    let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = open();
    for n in 0..200 {
        let name = format!("{n}.bin");
        std::fs::File::create(place.dir().join(&name)).unwrap().set_len(1 << 20).unwrap();
        place.read(&at(&name, "0", "16")).unwrap();
    }
    place.files.verify().unwrap();
    // Other tests open files meanwhile.
    assert!(open() < before + 100, "{:?}", getrlimit(Resource::Nofile));
}
