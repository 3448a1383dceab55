use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use bytes::Bytes;

use super::*;
use crate::onnx::data::DataWriter;
use crate::onnx::encode::DeferredPayloads;
use crate::onnx::proto::ModelProto;
use crate::onnx::proto::{GraphProto, StringStringEntryProto, TensorProto};
use crate::onnx::wire::UnknownFields;
use crate::onnx::wire::tests::sample;
use crate::onnx::{Limits, Parts, Placement, decode, open, write_model};

fn files(dir: &Path) -> Vec<String> {
    let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = std::fs::read_dir(dir).unwrap().map(name).collect();
    names.sort();
    names
}

fn parts<'a>(model: &'a ModelProto, unknown: &'a UnknownFields) -> Parts<'a> {
    static NONE: DeferredPayloads = DeferredPayloads::new();
    Parts { model, unknown, deferred: &NONE, apart: None, measured: None, data: None, source: None }
}

fn save(target: &Path) -> Result<u64, String> {
    write_model(target, parts(&sample(), &UnknownFields::default())).map_err(|error| error.to_string())
}

fn sample_bytes() -> Vec<u8> {
    prost::Message::encode_to_vec(&sample())
}

/// Returns a model with this many bytes of weights.
fn large(len: usize) -> ModelProto {
    let tensor = TensorProto { raw_data: Some(vec![0; len].into()), ..Default::default() };
    ModelProto { graph: Some(GraphProto { initializer: vec![tensor], ..Default::default() }), ..Default::default() }
}

#[test]
fn a_new_model_is_a_file_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("o.onnx");
    assert_eq!(save(&target).unwrap(), sample_bytes().len() as u64);
    assert_eq!(std::fs::read(&target).unwrap(), sample_bytes());
    std::fs::write(dir.path().join("plain"), "").unwrap();
    let mode = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().mode();
    assert_eq!(mode("o.onnx"), mode("plain"));
    assert_eq!(std::fs::metadata(&target).unwrap().nlink(), 1);
    assert_eq!(files(dir.path()), ["o.onnx", "plain"]);
}

#[test]
fn a_name_of_any_length_or_alphabet() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    for name in [&b"n".repeat(255)[..], b"caf\xe9\xff.onnx", b"new\nline", b"-"] {
        let target = dir.path().join(std::ffi::OsStr::from_bytes(name));
        save(&target).unwrap();
        std::fs::remove_file(target).unwrap();
    }
    assert!(files(dir.path()).is_empty());
}

#[test]
fn a_target_that_exists_is_replaced_and_keeps_its_permissions() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("o.onnx");
    for mode in [0o600, 0o640, 0o666, 0o755] {
        std::fs::write(&target, "old").unwrap();
        std::fs::set_permissions(&target, Permissions::from_mode(mode)).unwrap();
        save(&target).unwrap();
        assert_eq!(std::fs::metadata(&target).unwrap().mode() & 0o7777, mode);
        assert_eq!(std::fs::read(&target).unwrap(), sample_bytes());
    }
    assert_eq!(files(dir.path()), ["o.onnx"]);
}

#[test]
fn a_link_is_replaced_and_its_target_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("real"), "old").unwrap();
    std::fs::set_permissions(inner.join("real"), Permissions::from_mode(0o640)).unwrap();
    for (name, target) in [("link", "inner/real"), ("dangling", "nowhere")] {
        let link = dir.path().join(name);
        symlink(target, &link).unwrap();
        save(&link).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(std::fs::read(&link).unwrap(), sample_bytes());
    }
    assert_eq!(std::fs::read(inner.join("real")).unwrap(), b"old");
    assert_eq!(std::fs::metadata(dir.path().join("link")).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(files(dir.path()), ["dangling", "inner", "link"]);
    assert_eq!(files(&inner), ["real"]);
}

#[test]
fn nothing_but_a_file_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("directory");
    std::fs::create_dir(&directory).unwrap();
    let pipe = dir.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(save(&directory).unwrap_err().ends_with("is a directory, not a regular file"));
    assert!(save(&pipe).unwrap_err().ends_with("is a pipe, not a regular file"));
    assert!(save(Path::new("/dev/null")).unwrap_err().ends_with("is a device, not a regular file"));
    symlink("/dev/null", dir.path().join("null")).unwrap();
    assert!(save(&dir.path().join("null")).unwrap_err().ends_with("is a device, not a regular file"));
    for name in ["", "/", ".", "..", "new/", "new/."] {
        let target = if name.is_empty() { PathBuf::new() } else { dir.path().join(name) };
        assert!(save(&target).unwrap_err().ends_with("is not the name of a file"), "{name:?}");
    }
    assert!(save(&dir.path().join("no/such/o.onnx")).unwrap_err().contains("cannot be written"));
    assert!(save(&dir.path().join("pipe/o.onnx")).unwrap_err().contains("cannot be written"));
    assert_eq!(files(dir.path()), ["directory", "null", "pipe"]);
}

#[test]
fn in_place_while_the_model_is_mapped() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("m.onnx");
    let unknown = UnknownFields::default();
    write_model(&target, parts(&large(3 << 20), &unknown)).unwrap();
    let before = std::fs::read(&target).unwrap();
    for how in ["m.onnx", "./m.onnx", "link", "hard"] {
        let path = dir.path().join(how);
        match how {
            "link" => symlink("m.onnx", &path).unwrap(),
            "hard" => std::fs::hard_link(&target, &path).unwrap(),
            _ => {}
        }
        let source = open(&target).unwrap();
        let (model, unknown) = decode(source.bytes(), &Limits::default()).unwrap();
        write_model(&path, Parts { source: Some(&source), ..parts(&model, &unknown) }).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read(&target).unwrap(), before);
    }
}

// A file that was read into memory cannot change later.
#[cfg(feature = "mmap")]
#[test]
fn a_source_that_changes_leaves_the_target_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (input, target) = (dir.path().join("m.onnx"), dir.path().join("o.onnx"));
    let unknown = UnknownFields::default();
    let len = 3 << 20;
    for cut in [0, 4096, len / 2, len - 1] {
        write_model(&input, parts(&large(len), &unknown)).unwrap();
        std::fs::write(&target, "old").unwrap();
        let source = open(&input).unwrap();
        let (model, unknown) = decode(source.bytes(), &Limits::default()).unwrap();
        File::options().write(true).open(&input).unwrap().set_len(cut as u64).unwrap();
        let error = write_model(&target, Parts { source: Some(&source), ..parts(&model, &unknown) }).unwrap_err();
        assert!(matches!(error, SaveError::Source(_)), "{error}");
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        assert_eq!(files(dir.path()), ["m.onnx", "o.onnx"]);
    }
}

#[test]
fn a_model_too_large_leaves_the_target_alone() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("o.onnx");
    std::fs::write(&target, "old").unwrap();
    let mut model = large(512 << 20);
    let graph = model.graph.as_mut().unwrap();
    graph.initializer = vec![graph.initializer[0].clone(); 4];
    let error = write_model(&target, parts(&model, &UnknownFields::default())).unwrap_err().to_string();
    assert!(error.contains("save its tensors as external data"), "{error}");
    assert_eq!(std::fs::read(&target).unwrap(), b"old");
    assert_eq!(files(dir.path()), ["o.onnx"]);
}

#[test]
fn without_nameless_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("plain"), "").unwrap();
    let plain = std::fs::metadata(dir.path().join("plain")).unwrap().mode();
    let (file, name) = temporary_named(dir.path()).unwrap();
    assert_eq!(file.metadata().unwrap().mode(), plain);
    assert_eq!(files(dir.path()).len(), 2);
    drop(name);
    assert_eq!(files(dir.path()), ["plain"]);
}

#[test]
fn without_hard_links() {
    let dir = tempfile::tempdir().unwrap();
    let mut new = NewFile::create(&dir.path().join("o.onnx"), None).unwrap();
    new.file.write_all(&[3; 100_000]).unwrap();
    new.file.set_permissions(Permissions::from_mode(0o640)).unwrap();
    new.name = Some(copy(&mut new.file, dir.path()).unwrap());
    new.put_in_place().unwrap();
    let target = dir.path().join("o.onnx");
    assert_eq!(std::fs::read(&target).unwrap(), [3; 100_000]);
    assert_eq!(std::fs::metadata(&target).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(files(dir.path()), ["o.onnx"]);
}

#[test]
fn a_data_file_of_the_source_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (input, weights) = (dir.path().join("m.onnx"), dir.path().join("w.bin"));
    std::fs::write(&input, sample_bytes()).unwrap();
    std::fs::write(&weights, "weights").unwrap();
    symlink("w.bin", dir.path().join("link")).unwrap();
    let mut source = open(&input).unwrap();
    let location = [StringStringEntryProto { key: Some("location".into()), value: Some("w.bin".into()) }];
    source.data.read("w", &location).unwrap();
    for name in ["w.bin", "link"] {
        let model = sample();
        let unknown = UnknownFields::default();
        let parts = Parts { source: Some(&source), ..parts(&model, &unknown) };
        let error = write_model(&dir.path().join(name), parts).unwrap_err().to_string();
        assert!(error.ends_with("contains data of the model that the program is reading"), "{error}");
    }
    assert_eq!(std::fs::read(&weights).unwrap(), b"weights");
}

#[test]
fn data_and_model_are_put_in_place_together() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("o.onnx");
    let mut data = DataWriter::create(&target, None).unwrap();
    assert_eq!(data.location(), "o.onnx.data");
    let (small, page, large) =
        (Bytes::from(vec![1; 10]), Bytes::from(vec![2; 4096]), Bytes::from(vec![3; (1 << 20) + 1]));
    let place = |data: &mut DataWriter, payload: &Bytes| data.place(payload).unwrap();
    assert_eq!(place(&mut data, &small), Placement { offset: 0, length: 10 });
    assert_eq!(place(&mut data, &page), Placement { offset: 4096, length: 4096 });
    assert_eq!(place(&mut data, &large), Placement { offset: 8192, length: (1 << 20) + 1 });
    assert_eq!(place(&mut data, &small.clone()), Placement { offset: 0, length: 10 });
    let tail = place(&mut data, &Bytes::from(vec![4; 3]));
    assert_eq!(tail, Placement { offset: 8192 + (1 << 20) + 64, length: 3 });
    let entries = data.entries(tail);
    assert!(files(dir.path()).is_empty(), "nothing has a name yet");

    let model = sample();
    let unknown = UnknownFields::default();
    write_model(&target, Parts { data: Some(data), ..parts(&model, &unknown) }).unwrap();
    assert_eq!(files(dir.path()), ["o.onnx", "o.onnx.data"]);
    let mut source = open(&target).unwrap();
    assert_eq!(source.data.read("w", &entries).unwrap().unwrap(), [4u8; 3][..]);
    let bytes = std::fs::read(dir.path().join("o.onnx.data")).unwrap();
    assert_eq!(bytes.len() as u64, tail.offset + 3);
    assert!(bytes[10..4096].iter().all(|byte| *byte == 0));
    assert!(bytes[8192..][..(1 << 20) + 1].iter().all(|byte| *byte == 3));

    // The next version, written in place, keeps the data that the source still reads, and so on.
    let next = DataWriter::create(&target, Some(&source)).unwrap();
    assert_eq!(next.location(), "o.onnx.2.data");
    drop(next);
    assert_eq!(DataWriter::create(&target, None).unwrap().location(), "o.onnx.data");
    assert_eq!(files(dir.path()), ["o.onnx", "o.onnx.data"]);
}

#[test]
fn payloads_of_the_source_are_copied_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    std::fs::create_dir_all(&from).unwrap();
    std::fs::create_dir_all(&to).unwrap();
    std::fs::write(from.join("m.onnx"), sample_bytes()).unwrap();
    let bytes: Vec<u8> = (0..5u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(from.join("w.bin"), &bytes).unwrap();
    let mut source = open(&from.join("m.onnx")).unwrap();
    let mut read = |offset: usize, length: usize| {
        let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.into()), value: Some(value) };
        let [offset, length] = [entry("offset", offset.to_string()), entry("length", length.to_string())];
        source.data.read("w", &[entry("location", "w.bin".into()), offset, length]).unwrap().unwrap()
    };
    // Page-aligned or not, of whole pages or not, large and small, up to the end of the file.
    let places = [(0, 2 << 20), (4096, (1 << 20) + 7), (100, 2 << 20), (8192, 100), (3 << 20, 2 << 20)];
    let payloads = places.map(|(offset, length)| read(offset, length));
    let target = to.join("o.onnx");
    let mut data = DataWriter::create(&target, Some(&source)).unwrap();
    let placed = payloads.each_ref().map(|payload| data.place(payload).unwrap());
    let (model, unknown) = (sample(), UnknownFields::default());
    let parts = Parts { data: Some(data), source: Some(&source), ..parts(&model, &unknown) };
    write_model(&target, parts).unwrap();
    let written = std::fs::read(to.join("o.onnx.data")).unwrap();
    for ((offset, length), place) in places.into_iter().zip(placed) {
        let at = usize::try_from(place.offset).unwrap();
        assert!(written[at..at + length] == bytes[offset..offset + length], "{offset} {length}");
    }
}

// A file that was read into memory cannot change later.
#[cfg(feature = "mmap")]
#[test]
fn data_from_a_source_that_changes_is_not_put_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    std::fs::create_dir_all(&from).unwrap();
    std::fs::create_dir_all(&to).unwrap();
    std::fs::write(from.join("m.onnx"), sample_bytes()).unwrap();
    for cut in [0u64, 1 << 20, (4 << 20) - 1] {
        std::fs::write(from.join("w.bin"), vec![1; 4 << 20]).unwrap();
        let mut source = open(&from.join("m.onnx")).unwrap();
        let location = [StringStringEntryProto { key: Some("location".into()), value: Some("w.bin".into()) }];
        let payload = source.data.read("w", &location).unwrap().unwrap();
        File::options().write(true).open(from.join("w.bin")).unwrap().set_len(cut).unwrap();
        let target = to.join("o.onnx");
        let mut data = DataWriter::create(&target, Some(&source)).unwrap();
        let error = data.place(&payload).and_then(|_| {
            let (model, unknown) = (sample(), UnknownFields::default());
            write_model(&target, Parts { data: Some(data), source: Some(&source), ..parts(&model, &unknown) })
        });
        let error = error.unwrap_err();
        assert!(matches!(error, SaveError::Source(_)), "{error}");
        assert!(files(&to).is_empty());
    }
}

#[test]
fn data_without_a_model_is_not_put_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("o.onnx");
    let mut data = DataWriter::create(&target, None).unwrap();
    data.place(&Bytes::from(vec![1; 1 << 20])).unwrap();
    let mut model = large(512 << 20);
    let graph = model.graph.as_mut().unwrap();
    graph.initializer = vec![graph.initializer[0].clone(); 4];
    let unknown = UnknownFields::default();
    write_model(&target, Parts { data: Some(data), ..parts(&model, &unknown) }).unwrap_err();
    assert!(files(dir.path()).is_empty());
}
