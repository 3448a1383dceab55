//! The real binary: what it prints, writes and exits with.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold")).args(arguments).output().expect("the binary starts")
}

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name)
}

fn copied(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::copy(model(name), &path).expect("the model is copied");
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).expect("the folder is listed");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn writes_beside_the_model_and_prints_a_table() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "focus_ts13d.onnx");
    let done = run(&[&path.to_string_lossy()]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(names(&folder), ["focus_ts13d.folded.onnx", "focus_ts13d.onnx"]);
    let out = text(&done.stdout);
    for row in ["all nodes", "initializers", "shapes known", "bytes", "wrote "] {
        assert!(out.contains(row), "{out}");
    }
    assert!(done.stderr.is_empty(), "{}", text(&done.stderr));
}

#[test]
fn writes_in_place() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "slice_zoo_ts13d.onnx");
    let before = std::fs::metadata(&path).expect("metadata").len();
    let name = path.to_string_lossy();
    assert!(run(&[&name, "-o", &name]).status.success());
    assert!(std::fs::metadata(&path).expect("metadata").len() < before);
    assert_eq!(names(&folder), ["slice_zoo_ts13d.onnx"]);
    assert!(run(&[&name, "-o", &name]).status.success());
}

#[test]
fn bad_input_is_one_message_and_exit_code_1() {
    let folder = TempDir::new().expect("a folder");
    let cases: [(&str, &[u8], &str); 4] = [
        ("empty.onnx", b"", "empty"),
        ("page.onnx", b"<!DOCTYPE html><p>not found", "HTML"),
        ("cut.onnx", &[0x3a, 0x7f, 0x0a], "truncated"),
        ("graphless.onnx", &[0x08, 0x08], "no graph"),
    ];
    for (name, bytes, reason) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("the file is written");
        let target = folder.path().join("out.onnx");
        let done = run(&[&path.to_string_lossy(), "-o", &target.to_string_lossy()]);
        assert_eq!(done.status.code(), Some(1), "{name}");
        let message = text(&done.stderr);
        assert!(message.starts_with("error: ") && message.contains(reason), "{name}: {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        assert!(done.stdout.is_empty() && !target.exists());
    }
    let done = run(&[&folder.path().join("missing.onnx").to_string_lossy()]);
    assert_eq!(done.status.code(), Some(1));
}

#[test]
fn every_truncation_of_a_model_is_refused_or_read() {
    let folder = TempDir::new().expect("a folder");
    let bytes = std::fs::read(model("tf_cond_slice_13d.onnx")).expect("the model is read");
    let target = folder.path().join("out.onnx");
    for end in (0..bytes.len()).step_by(37) {
        let path = folder.path().join("cut.onnx");
        std::fs::write(&path, &bytes[..end]).expect("the file is written");
        let done = run(&[&path.to_string_lossy(), "-o", &target.to_string_lossy()]);
        assert!(matches!(done.status.code(), Some(0 | 1)), "{end}: {:?} {}", done.status, text(&done.stderr));
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for arguments in
        [&[][..], &["--no-such-flag", "x.onnx"], &["a.onnx", "b.onnx"], &["a.onnx", "--slice-rule", "mine"]]
    {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(run(&["--help"]).status.code(), Some(0));
    assert_eq!(run(&["--version"]).status.code(), Some(0));
}

#[test]
fn an_output_that_cannot_be_written_leaves_nothing_behind() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "focus_ts13d.onnx");
    let done = run(&[&path.to_string_lossy(), "-o", &folder.path().to_string_lossy()]);
    assert_eq!(done.status.code(), Some(1));
    let done = run(&[&path.to_string_lossy(), "-o", &folder.path().join("no/such/folder.onnx").to_string_lossy()]);
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(names(&folder), ["focus_ts13d.onnx"]);
}

#[test]
fn show_prints_text_that_parses() {
    // These have no weights that are too long to be printed whole.
    for name in ["tf_cond_slice_13d.onnx", "scripted_loop_slice_ts16d.onnx", "tf_masks_17d_custom.onnx"] {
        let done = run(&["show", &model(name).to_string_lossy()]);
        assert!(done.status.success());
        let shown = text(&done.stdout);
        assert!(onnx_slice_fold::ir::text::parse(&shown).is_ok(), "{shown}");
    }
}

#[test]
fn explain_names_the_rules_that_fired() {
    let done = run(&["explain", &model("tf_masks_17d_custom.onnx").to_string_lossy()]);
    assert!(done.status.success());
    assert!(text(&done.stdout).contains("lower-strided-slice"), "{}", text(&done.stdout));
}

#[test]
fn assumptions_are_checked_and_used() {
    let folder = TempDir::new().expect("a folder");
    let path = copied(&folder, "bert_dy18d.onnx");
    let name = path.to_string_lossy();
    for (flag, value, reason) in [
        ("--dim", "nobody=3", "no input of the model has a dimension named 'nobody'"),
        ("--dim", "s50=", "is not a size"),
        ("--assume", "s50 s33", "is not a relation"),
        ("--overwrite-input-shape", "nobody:1", "no input named 'nobody'"),
        ("--overwrite-input-shape", "input_ids:1,2,3", "contradicts"),
        ("--skip", "nothing", "no rule named 'nothing'"),
    ] {
        let done = run(&[&name, flag, value]);
        assert_eq!(done.status.code(), Some(1), "{flag} {value}");
        assert!(text(&done.stderr).contains(reason), "{}", text(&done.stderr));
    }
    let frozen = run(&["show", "--folded", &name, "--dim", "s33=2", "--dim", "s6=2", "--dim", "s50=9"]);
    assert!(frozen.status.success(), "{}", text(&frozen.stderr));
    assert!(!text(&frozen.stdout).contains("Shape ("), "{}", text(&frozen.stdout));
}

#[test]
fn the_list_of_operators_is_up_to_date() {
    let done = run(&["ops"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("SUPPORTED_OPS.md");
    let file = std::fs::read_to_string(path).expect("SUPPORTED_OPS.md is read");
    let renew = "SUPPORTED_OPS.md is out of date; renew it with `cargo run -- ops > SUPPORTED_OPS.md`";
    assert!(text(&done.stdout) == file.replace("\r\n", "\n"), "{renew}");
}
