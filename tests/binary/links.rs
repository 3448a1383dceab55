//! External data behind symbolic links, in other directories, or missing.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use onnx_slice_fold::ir::text::parse;
use onnx_slice_fold::{ErrorKind, OnnxModel, OpenOptions, Options, SaveOptions};
use tempfile::TempDir;

fn run_in(directory: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
    program.args(arguments).current_dir(directory).output().expect("the binary starts")
}

/// Returns the text of both streams, and the exit code.
fn told(done: &Output) -> (String, Option<i32>) {
    let text = [&done.stdout[..], &done.stderr].map(String::from_utf8_lossy).concat();
    (text, done.status.code())
}

#[track_caller]
fn succeeds(directory: &Path, arguments: &[&str]) -> String {
    let (text, code) = told(&run_in(directory, arguments));
    assert_eq!(code, Some(0), "{arguments:?}: {text}");
    text
}

#[track_caller]
fn fails(directory: &Path, arguments: &[&str], message: &str) {
    let (text, code) = told(&run_in(directory, arguments));
    assert_eq!(code, Some(1), "{arguments:?}: {text}");
    assert!(text.contains(message), "{arguments:?}: {text}");
}

/// Two weights in `weights.data`; the first is multiplied by itself.
fn model() -> OnnxModel {
    let numbers = |from: usize| (from..from + 64 * 8).map(|n| format!("{}.5", n % 89)).collect::<Vec<_>>().join(", ");
    let source = format!(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n, 64] x) => (float[n, 8] y)
         <float[64, 8] v = {{{}}}, float[64, 8] w = {{{}}}>
         {{ u = Mul (v, v) s = Shape (x) t = Reshape (x, s) a = MatMul (t, u) b = MatMul (t, w) y = Add (a, b) }}",
        numbers(0),
        numbers(7)
    );
    OnnxModel::of(parse(&source).expect("a model"))
}

/// Writes a model at `model.onnx` in a directory, with its weights in `model.onnx.data`.
fn external(directory: &Path) {
    std::fs::create_dir_all(directory).expect("a directory");
    let options = SaveOptions::new().save_as_external_data(true).threshold(0);
    let saved = model().save_with(directory.join("model.onnx"), &options).expect("it is written");
    assert_eq!(saved.data.expect("there is a data file").path, directory.join("model.onnx.data"));
}

/// Creates a download cache: `snapshots/main/model.onnx` and its data are links to blobs.
fn cache() -> TempDir {
    let root = TempDir::new().expect("a directory");
    let (blobs, snapshot) = (root.path().join("blobs"), root.path().join("snapshots/main"));
    external(&blobs);
    std::fs::create_dir_all(&snapshot).expect("a directory");
    for (blob, name) in [("aa", "model.onnx"), ("bb", "model.onnx.data")] {
        std::fs::rename(blobs.join(name), blobs.join(blob)).expect("a blob");
        symlink(Path::new("../../blobs").join(blob), snapshot.join(name)).expect("a link");
    }
    root
}

/// Returns the names in a directory; links have an arrow.
fn names(directory: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let arrow = if entry.file_type().expect("a type").is_symlink() { "@" } else { "" };
        format!("{}{arrow}", entry.file_name().to_string_lossy())
    };
    let mut names: Vec<String> = std::fs::read_dir(directory).expect("a directory").map(name).collect();
    names.sort();
    names
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file")
}

/// Returns the folded model with all its data, as text.
fn folded(path: &Path) -> String {
    let mut model = OnnxModel::open(path).expect("it opens");
    assert_eq!(model.missing_data(), []);
    model.fold(&Options::new().stamp(false)).expect("it is folded");
    model.text()
}

#[test]
fn a_download_cache_is_read_and_its_blobs_are_unchanged() {
    let root = cache();
    let (blobs, snapshot) = (root.path().join("blobs"), root.path().join("snapshots/main"));
    let before = [bytes(&blobs.join("aa")), bytes(&blobs.join("bb"))];
    let mut expected = model();
    expected.fold(&Options::new().stamp(false)).expect("it is folded");
    let expected = expected.text();
    for (result, how) in
        [("../../out.onnx", "keep"), ("beside.onnx", "keep"), ("copy.onnx", "copy"), ("inline.onnx", "inline")]
    {
        succeeds(&snapshot, &["model.onnx", "-o", result, "--external-data", how]);
        assert_eq!(folded(&snapshot.join(result)), expected, "{result}");
    }
    assert!(!snapshot.join("inline.onnx.data").exists());
    assert!(snapshot.join("beside.onnx.data").exists(), "a result beside the links must not depend on them");
    let (text, code) = told(&run_in(&snapshot, &["model.onnx", "-o", "l.onnx", "--external-data", "link"]));
    assert!(code == Some(2) && text.contains("cannot refer to the data of the model"), "{text}");

    // Writes in place twice: the links are replaced, the blobs are not changed.
    symlink("../../blobs/aa", snapshot.join("model.onnx.2.data")).expect("a link");
    for data in ["model.onnx.2.data", "model.onnx.data"] {
        // A data file that is longer than a new one would be is copied again.
        if let Ok(mut file) = std::fs::File::options().append(true).open(snapshot.join("model.onnx.2.data"))
            && data == "model.onnx.data"
        {
            file.write_all(&[0]).expect("it is written");
        }
        succeeds(&snapshot, &["model.onnx", "-o", "model.onnx", "--external-data", "copy"]);
        assert_eq!(folded(&snapshot.join("model.onnx")), expected);
        assert!(
            !names(&snapshot).iter().any(|name| name.trim_end_matches('@') == data && name.ends_with('@')),
            "{data}"
        );
        assert_eq!([bytes(&blobs.join("aa")), bytes(&blobs.join("bb"))], before);
        assert_eq!(names(&blobs), ["aa", "bb"]);
    }
    assert!(names(&snapshot).contains(&"model.onnx".to_string()));
}

#[test]
fn a_link_beneath_the_models_directory_is_followed_and_kept() {
    let root = TempDir::new().expect("a directory");
    external(root.path());
    std::fs::create_dir(root.path().join("blobs")).expect("a directory");
    std::fs::rename(root.path().join("model.onnx.data"), root.path().join("blobs/bb")).expect("moved");
    symlink("blobs/bb", root.path().join("model.onnx.data")).expect("a link");
    succeeds(root.path(), &["model.onnx", "-o", "small.onnx", "--exact"]);
    // One weight is new; the other is still in the file behind the link.
    assert_eq!(names(root.path()), ["blobs", "model.onnx", "model.onnx.data@", "small.onnx", "small.onnx.data"]);
    assert_eq!(folded(&root.path().join("small.onnx")), folded(&root.path().join("model.onnx")));
}

#[test]
fn links_to_other_directories_need_a_root() {
    let root = cache();
    let (blobs, snapshot) = (root.path().join("blobs"), root.path().join("snapshots/main"));
    // A copy of the model next to the links does not allow the blobs' directory.
    std::fs::copy(blobs.join("aa"), snapshot.join("copied.onnx")).expect("copied");
    let copied = ["copied.onnx", "-o", "/dev/null"];
    fails(&snapshot, &copied, "outside of '");
    fails(&snapshot, &copied, "--external-data-root DIR");
    let root_flag = ["--external-data-root", "nothing", "--external-data-root", "../../blobs"];
    fails(&snapshot, &[&copied[..], &root_flag].concat(), "'nothing' cannot be opened to look for external data");
    succeeds(&snapshot, &[&copied[..], &root_flag[2..]].concat());
    for command in ["show", "explain"] {
        succeeds(&snapshot, &[command, "copied.onnx", "--external-data-root", "../../blobs"]);
    }
    assert_eq!(succeeds(&snapshot, &["diff", "copied.onnx", "model.onnx", "--external-data-root", "../../blobs"]), "");

    let data = snapshot.join("model.onnx.data");
    let replace = |target: &str| {
        std::fs::remove_file(&data).expect("removed");
        symlink(target, &data).expect("a link");
    };
    for (target, message) in [
        ("/etc/passwd", "leads to '/etc/passwd', outside of '"),
        ("/dev/zero", "leads to '/dev/zero', outside of '"),
        ("../../blobs", "is a directory, not a regular file"),
        ("model.onnx.data", "is a symbolic link that leads to itself"),
    ] {
        replace(target);
        fails(&snapshot, &["model.onnx", "-o", "/dev/null"], message);
    }
    // A file with two hard links is no data file, even through a link.
    replace("../../blobs/bb");
    std::fs::hard_link(blobs.join("bb"), root.path().join("other")).expect("a hard link");
    fails(&snapshot, &["model.onnx", "-o", "/dev/null"], "has 2 hard links");
}

#[test]
fn standard_input_has_the_roots_that_are_named() {
    let root = TempDir::new().expect("a directory");
    external(root.path());
    let run = |arguments: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
        let streams = program.args(arguments).current_dir(root.path()).stdin(Stdio::piped());
        let mut program = streams.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let model = bytes(&root.path().join("model.onnx"));
        program.stdin.take().expect("a pipe").write_all(&model).expect("it reads");
        told(&program.wait_with_output().expect("it ends"))
    };
    let (text, code) = run(&["-", "-o", "a.onnx", "--external-data-root", "."]);
    assert_eq!((code, text.contains("warning")), (Some(0), false), "{text}");
    assert_eq!(folded(&root.path().join("a.onnx")), folded(&root.path().join("model.onnx")));
    let (text, code) = run(&["-", "-o", "b.onnx"]);
    let warning = "'model.onnx.data' is missing (the model was loaded without a directory for external data): 2 tensors have no values";
    assert!(code == Some(0) && text.contains(warning), "{text}");
}

#[test]
fn a_model_without_its_data_is_partly_folded() {
    let root = TempDir::new().expect("a directory");
    let (given, away) = (root.path().join("given"), root.path().join("away"));
    external(&given);
    std::fs::create_dir(&away).expect("a directory");
    std::fs::rename(given.join("model.onnx.data"), away.join("model.onnx.data")).expect("moved");
    let warning = "warning: external data file 'model.onnx.data' is missing (looked in '.'): 2 tensors have no values, tensor 'v' is the first";
    for command in [&["show", "model.onnx"][..], &["explain", "model.onnx"], &["-q", "model.onnx", "-o", "/dev/null"]] {
        let text = succeeds(&given, command);
        assert!(text.contains(warning), "{text}");
    }
    let text = succeeds(&given, &["show", "model.onnx", "--folded"]);
    assert!(text.contains("float[64,8] v") && text.contains("= Mul (v, v)") && !text.contains("Reshape"), "{text}");
    fails(&given, &["model.onnx", "--strict"], "--strict refuses");
    let text = succeeds(&given, &["model.onnx", "-o", "/dev/null", "--check"]);
    assert!(text.contains("equal on 0 of 8 inputs") && text.contains("the elements of 'v' are unknown"), "{text}");
    let text = succeeds(&given, &["model.onnx", "-o", "/dev/null", "--report", "json"]);
    assert!(
        text.contains(r#""missing_data":[{"location":"model.onnx.data","looked_in":["."],"tensors":2}]"#),
        "{text}"
    );
    assert_eq!(succeeds(&given, &["diff", "model.onnx", "model.onnx"]).matches('\n').count(), 2);

    // Each result refers to the file, and is complete once the file exists. No new file takes its name.
    for (result, flags) in [
        ("folded.onnx", &[][..]),
        ("../away/folded.onnx", &["--external-data", "copy"]),
        ("../model.onnx", &["--external-data", "link"]),
    ] {
        let more = ["--save-as-external-data", "--external-data-threshold", "0"];
        succeeds(&given, &[&["model.onnx", "-o", result][..], flags, &more].concat());
    }
    assert_eq!(names(&given), ["folded.onnx", "model.onnx"]);
    let once = OnnxModel::open(given.join("folded.onnx")).expect("it opens");
    assert_eq!(once.missing_data().first().expect("a missing file").tensors, 2);
    succeeds(&given, &["folded.onnx", "-o", "again.onnx"]);
    assert_eq!(bytes(&given.join("again.onnx")), bytes(&given.join("folded.onnx")));
    std::fs::copy(away.join("model.onnx.data"), given.join("model.onnx.data")).expect("copied");
    let expected = folded(&given.join("model.onnx"));
    for result in ["given/folded.onnx", "away/folded.onnx", "model.onnx"] {
        assert_eq!(folded(&root.path().join(result)), expected, "{result}");
    }
}

#[test]
fn new_data_do_not_take_the_name_of_missing_data() {
    let root = TempDir::new().expect("a directory");
    let numbers = |count: usize| (0..count).map(|n| format!("{n}.0")).collect::<Vec<_>>().join(", ");
    let source = format!(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n, 64] x) => (float[n, 8] y)
         <float[64, 8] w = {{{}}}, float[64] k = {{{}}}> {{ a = Add (x, k) y = MatMul (a, w) }}",
        numbers(512),
        numbers(64)
    );
    let model = OnnxModel::of(parse(&source).expect("a model"));
    let path = root.path().join("model.onnx");
    model.save_with(&path, &SaveOptions::new().save_as_external_data(true)).expect("it is written");
    std::fs::create_dir(root.path().join("out")).expect("a directory");
    std::fs::rename(root.path().join("model.onnx.data"), root.path().join("away")).expect("moved");
    // The addend is in the model file. In a data file it would be searched next to the weight.
    let more = ["--save-as-external-data", "--external-data-threshold", "0"];
    succeeds(root.path(), &[&["model.onnx", "-o", "out/model.onnx"], &more[..]].concat());
    assert_eq!(names(&root.path().join("out")), ["model.onnx", "model.onnx.2.data"]);
    std::fs::rename(root.path().join("away"), root.path().join("out/model.onnx.data")).expect("moved");
    assert_eq!(OnnxModel::open(root.path().join("out/model.onnx")).expect("it opens").missing_data(), []);
    let mut expected = model;
    expected.fold(&Options::new().stamp(false)).expect("it is folded");
    assert_eq!(folded(&root.path().join("out/model.onnx")), expected.text());
}

#[test]
fn the_library_opens_with_roots() {
    let root = cache();
    let snapshot = root.path().join("snapshots/main");
    std::fs::copy(root.path().join("blobs/aa"), snapshot.join("copied.onnx")).expect("copied");
    let error = OnnxModel::open(snapshot.join("copied.onnx")).expect_err("a link leads away");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let options = OpenOptions::new().external_data_root(root.path().join("blobs"));
    let opened = OnnxModel::open_with(snapshot.join("copied.onnx"), &options).expect("it opens");
    assert_eq!(opened.missing_data(), []);
    let bytes = bytes(&root.path().join("blobs/aa"));
    let options = OpenOptions::new().external_data_root(&snapshot).external_data_root(root.path().join("blobs"));
    let from_bytes = OnnxModel::from_bytes_with(bytes.clone(), &options).expect("it opens");
    assert_eq!(from_bytes.text(), opened.text());
    let mut missing = OnnxModel::from_bytes(bytes).expect("it opens");
    assert_eq!(missing.missing_data().first().expect("a missing file").tensors, 2);
    let error = missing.fold(&Options::new().strict(true)).expect_err("it is not complete");
    assert_eq!(error.kind(), ErrorKind::Impossible);
}
