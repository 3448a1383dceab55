//! A C program that is compiled against the header, linked with the library, and run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use onnx_slice_fold::{OnnxModel, Options, Shapes};

#[test]
fn a_c_program_folds_a_model() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The test runs from target/PROFILE/deps, where the library's files are, too.
    let program = env::current_exe().expect("the test has a path");
    let built = program.parent().expect("it is in a folder");
    let library = built.join("libonnx_slice_fold_c.a");
    assert!(library.exists(), "{} was not built", library.display());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (binary, target) = (folder.join("fold"), folder.join("folded.onnx"));
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiled = Command::new(compiler)
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(root.join("include"))
        .arg(root.join("tests/fold.c"))
        .arg(&library)
        .args(["-o".as_ref(), binary.as_os_str()])
        .args(["-lm", "-lpthread", "-ldl"])
        .status()
        .expect("a C compiler is there");
    assert!(compiled.success());
    let model = root.join("../models/bert_dy18d.onnx");
    let done = Command::new(&binary).args([&model, &target]).arg("s33=2").output().expect("the program starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut wanted = OnnxModel::from_bytes(std::fs::read(&model).expect("the model is there")).expect("it is one");
    wanted.fold(&Options::new().exact(true).shapes(Shapes::All).dim("s33=2")).expect("it can be folded");
    let is_equal =
        std::fs::read(&target).expect("the program wrote it") == wanted.to_bytes().expect("it can be written");
    assert!(is_equal, "the results differ");
}
