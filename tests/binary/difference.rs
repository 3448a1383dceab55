//! The behaviour of the program when `--check` finds a difference: a rule has an injected fault.

use std::process::Command;

use tempfile::TempDir;

#[test]
fn a_difference_ends_with_3_and_writes_nothing() {
    let folder = TempDir::new().expect("a folder");
    let (model, output) = ("models/slice_zoo_ts13d.onnx", folder.path().join("out.onnx"));
    let run = |fault: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
        let command = command.args([model, "--check", "4", "-o"]).arg(&output).env("SEEDED_FAULT", fault);
        command.output().expect("the binary starts")
    };
    let done = run("movement:raised:0");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(3), "{told}");
    assert!(told.contains("is the first edit after which the output differs: movement at Slice node"), "{told}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder is listed").count(), 0);
    // Without the fault there is no difference.
    let done = run("no-rule:raised:0");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(output.exists());
}
