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

/// A model's directory with 256 bytes of data, and a secret file next to the directory.
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
        let files = DataFiles::beside(&model.join("m.onnx"), None);
        Directory { root, files }
    }

    fn dir(&self) -> PathBuf {
        self.root.path().join("model")
    }

    fn read(&mut self, entries: &[StringStringEntryProto]) -> Result<Bytes, String> {
        let read = self.files.read("w", entries).map_err(|error| error.to_string());
        read.and_then(|bytes| bytes.ok_or_else(|| "missing".to_string()))
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
    // Every spelling of a location opens the same file once.
    assert_eq!(place.files.ids().count(), 2);
    let one = place.read(&at("w.bin", "0", "8")).unwrap();
    assert_eq!(one.as_ptr(), place.read(&at("././w.bin", "0", "8")).unwrap().as_ptr());
}

#[test]
fn a_bare_model_name_means_the_working_directory() {
    for (model, directory) in [("m.onnx", "."), ("a/m.onnx", "a")] {
        assert_eq!(Roots::of_model(Path::new(model), None).paths(), [Path::new(directory)]);
    }
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
        assert!(error.contains("'w.bin' has 256 bytes, but offset"), "{error}");
    }
    // An offset past the end without a length is an error, not an empty tensor.
    assert!(place.read(&entries(&[("location", "w.bin"), ("offset", "257")])).is_err());
}

#[test]
fn ambiguous_locations_are_refused() {
    let mut place = Directory::new();
    let twice = [("location", "w.bin"), ("offset", "0"), ("location", "../secret")];
    assert!(place.read(&entries(&twice)).unwrap_err().contains("lists location twice"));
    let twice = [("location", "w.bin"), ("offset", "0"), ("offset", "0")];
    assert!(place.read(&entries(&twice)).unwrap_err().contains("lists offset twice"));
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
        assert_eq!(place.read(&at(location, "0", "4")).unwrap_err(), "missing", "{location:?}");
    }
    place.refused("w.bin/x", "cannot be read");
    assert_eq!(place.files.ids().count(), 0);
}

#[test]
fn links_are_followed_to_files_beneath_a_root() {
    let mut place = Directory::new();
    let dir = place.dir();
    symlink("w.bin", dir.join("inside")).unwrap();
    symlink("sub/inner", dir.join("d")).unwrap();
    symlink("d/w.bin", dir.join("twice")).unwrap();
    symlink(dir.join("w.bin"), dir.join("absolute")).unwrap();
    for location in ["inside", "d/w.bin", "twice", "absolute"] {
        assert_eq!(place.read(&at(location, "3", "1")).unwrap(), [3u8][..], "{location}");
    }
    symlink("../secret", dir.join("outside")).unwrap();
    symlink("outside", dir.join("to_outside")).unwrap();
    symlink("..", dir.join("up")).unwrap();
    symlink("/", dir.join("root")).unwrap();
    symlink("/dev/zero", dir.join("device")).unwrap();
    for (location, target) in [
        ("outside", "/secret"),
        ("to_outside", "/secret"),
        ("up/secret", "/secret"),
        ("root/etc/passwd", "/etc/passwd"),
        ("device", "/dev/zero"),
    ] {
        place.refused(location, &format!("{target}', outside of '"));
        place.refused(location, "--external-data-root");
    }
    symlink("b", dir.join("a")).unwrap();
    symlink("a", dir.join("b")).unwrap();
    place.refused("a", "is a symbolic link that leads to itself");
    symlink("sub", dir.join("directory")).unwrap();
    place.refused("directory", "is a directory, not a regular file");
    symlink("nowhere", dir.join("dangling")).unwrap();
    assert_eq!(place.read(&at("dangling", "0", "4")).unwrap_err(), "missing");
    // A file with two names is rejected, with or without a link to it.
    std::fs::hard_link(place.root.path().join("secret"), dir.join("hard")).unwrap();
    symlink("hard", dir.join("to_hard")).unwrap();
    place.refused("hard", "has 2 hard links");
    place.refused("to_hard", "has 2 hard links");
}

#[test]
fn open_descriptors_are_no_files_below_a_root() {
    let mut place = Directory::new();
    let (reader, _writer) = std::io::pipe().unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
    symlink(format!("/proc/self/fd/{number}"), place.dir().join("pipe")).unwrap();
    place.refused("pipe", "outside of '");
}

#[test]
fn a_root_that_the_user_names_may_hold_data() {
    let place = Directory::new();
    let elsewhere = place.root.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("v.bin"), [9; 8]).unwrap();
    std::fs::write(elsewhere.join("w.bin"), [9; 8]).unwrap();
    symlink("../elsewhere/v.bin", place.dir().join("link")).unwrap();
    let mut files = DataFiles::beside(&place.dir().join("m.onnx"), None);
    files.also_beneath([elsewhere.clone()]);
    for (location, first) in [("v.bin", 9), ("link", 9), ("w.bin", 0)] {
        assert_eq!(files.read("w", &at(location, "0", "1")).unwrap().unwrap(), [first][..], "{location}");
    }
    assert_eq!(files.read("w", &at("u.bin", "0", "1")).unwrap(), None);
    assert_eq!(files.read("x", &at("./u.bin", "0", "1")).unwrap(), None);
    let missing: Vec<&MissingData> = files.missing().collect();
    assert_eq!((missing[0].location.as_str(), missing[0].tensors, missing[0].first.as_str()), ("u.bin", 2, "w"));
    assert_eq!(missing[0].looked_in, [place.dir(), elsewhere.clone()]);
    assert_eq!(missing.len(), 1);
    // A model in the directory of the first root finds its own files, but not those of other roots.
    let from = |location, directory: &Path| files.location_from(location, &directory.canonicalize().unwrap());
    assert_eq!(from("w.bin", &place.dir()).as_deref(), Some("w.bin"));
    assert_eq!(from("w.bin", place.root.path()).as_deref(), Some("model/w.bin"));
    assert_eq!(from("link", &place.dir()), None);
    assert_eq!(from("link", place.root.path()).as_deref(), Some("model/link"));
    assert_eq!(from("v.bin", &place.dir()), None);
    assert_eq!(from("v.bin", &elsewhere).as_deref(), Some("v.bin"));
    assert_eq!(from("u.bin", place.root.path()).as_deref(), Some("model/u.bin"));

    let mut files = DataFiles::beside(&place.dir().join("m.onnx"), None);
    files.also_beneath([place.root.path().join("nothing")]);
    let error = files.read("w", &at("w.bin", "0", "1")).unwrap_err().to_string();
    assert!(error.contains("nothing' cannot be opened to look for external data"), "{error}");
}

#[test]
fn without_a_directory_all_data_are_missing() {
    let mut files = DataFiles::default();
    assert_eq!(files.read("w", &at("w.bin", "0", "1")).unwrap(), None);
    let told = files.missing().next().unwrap().to_string();
    let expected = "external data file 'w.bin' is missing (the model was loaded without a directory for external data): tensor 'w' has no values";
    assert_eq!(told, expected);
}

#[test]
fn a_constant_node_without_its_data_has_a_type() {
    use crate::onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
    let tensor = TensorProto {
        dims: vec![2, 3],
        data_type: Some(1),
        data_location: Some(1),
        external_data: at("gone.bin", "0", "24"),
        ..TensorProto::default()
    };
    let value = AttributeProto { name: Some("value".into()), t: Some(Box::new(tensor)), ..AttributeProto::default() };
    let node = |op: &str, input: &[&str], output: &str, attribute| NodeProto {
        op_type: Some(op.into()),
        input: input.iter().map(|name| (*name).into()).collect(),
        output: vec![output.into()],
        attribute,
        ..NodeProto::default()
    };
    let output = ValueInfoProto { name: Some("y".into()), ..ValueInfoProto::default() };
    let nodes = vec![node("Constant", &[], "k", vec![value]), node("Neg", &["k"], "y", Vec::new())];
    let graph = GraphProto { node: nodes, output: vec![output], ..GraphProto::default() };
    let proto = ModelProto { ir_version: Some(8), graph: Some(graph), ..ModelProto::default() };
    let mut files = DataFiles::default();
    let model = crate::onnx::import(proto, &crate::onnx::UnknownFields::default(), &mut files).unwrap();
    assert_eq!(files.missing().map(|missing| missing.tensors).collect::<Vec<_>>(), [1]);
    assert!(crate::ir::text::print(&model).contains("<float[2,3] k>"), "{}", crate::ir::text::print(&model));
    let bytes = crate::onnx::to_bytes(&model, None).unwrap();
    assert!(bytes.windows(8).any(|part| part == b"gone.bin"));
}

#[test]
fn the_directory_itself_may_be_reached_by_a_link() {
    let place = Directory::new();
    let link = place.root.path().join("link");
    symlink("model", &link).unwrap();
    let mut files = DataFiles::beside(&link.join("m.onnx"), None);
    assert_eq!(files.read("w", &at("w.bin", "0", "4")).unwrap().unwrap().len(), 4);
    let from = |directory: &Path| files.location_from("w.bin", &directory.canonicalize().unwrap());
    assert_eq!(from(&place.dir()).as_deref(), Some("w.bin"));
    assert_eq!(from(&place.dir().join("sub")), None);
}

#[test]
fn data_may_lie_where_the_model_really_lies() {
    let place = Directory::new();
    let snapshot = place.root.path().join("snapshot");
    std::fs::create_dir(&snapshot).unwrap();
    let (real, link) = (place.dir().join("m.onnx"), snapshot.join("m.onnx"));
    std::fs::write(&real, "").unwrap();
    symlink(&real, &link).unwrap();
    symlink("../model/sub/inner/w.bin", snapshot.join("v.bin")).unwrap();
    let id = FileId::of(&std::fs::metadata(&real).unwrap());
    for location in ["w.bin", "v.bin"] {
        let mut files = DataFiles::beside(&link, id);
        assert_eq!(files.read("w", &at(location, "5", "1")).unwrap().unwrap(), [5u8][..]);
        files.verify().unwrap();
        // If the path leads to another file by now, its directory is not a root.
        let mut files = DataFiles::beside(&link, None);
        assert!(!matches!(files.read("w", &at(location, "5", "1")), Ok(Some(_))));
    }
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

// A file that was read into memory cannot change later.
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
    for ((what, change), location) in changes.iter().flat_map(|change| [(*change, "big.bin"), (*change, "link")]) {
        let mut place = Directory::new();
        let path = place.dir().join("big.bin");
        std::fs::write(&path, &big).unwrap();
        symlink("big.bin", place.dir().join("link")).unwrap();
        let bytes = place.read(&entries(&[("location", location)])).unwrap();
        place.files.verify().unwrap();
        change(&path);
        assert!(bytes.iter().all(|byte| *byte <= 1));
        let error = place.files.verify().expect_err(what).to_string();
        assert_eq!(error, format!("external data file '{location}' changed during reading"));
    }
    // Bytes that were read, not mapped, do not depend on the file.
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
    // Other tests open files concurrently.
    assert!(open() < before + 100, "{:?}", getrlimit(Resource::Nofile));
}
