//! The README and the pages of docs/: the commands in them work, and the flags and pages that they name are complete.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A model for every command of docs/command-line.md: an input whose first dim has no name, symbols batch, past and seq, values `a` and
/// `b`, and an operator that is a strided slice.
const SOURCE: &str = r#"<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
    g (float[?,3,64,64] x, float[batch,past] p, float[batch,seq] s) => (z, b, t)
    <int64[2] start = {0,0}, int64[2] end = {2,2}, int64[2] step = {1,1}> {
        a = Relu (x)  z = Neg (a)  j = Concat <axis = 1> (p, s)  b = Neg (j)
        t = com.example.Crop (p, start, end, step) }"#;

/// A model for `--inputs a --outputs b`, which extracts the part between two values.
const CHAIN: &str = r#"<ir_version: 8, opset_import: ["" : 17]>
    g (float[n,3] x) => (float[n,3] y) { a = Relu (x)  b = Neg (a)  y = Exp (b) }"#;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("the page is read")
}

fn write(folder: &TempDir, name: &str, source: &str) {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
    let model = onnx_slice_fold::ir::text::parse(source).expect("the model is right");
    onnx_slice_fold::OnnxModel::of(model).save(path).expect("it is written");
}

/// Runs a command line like a shell.
fn run(folder: &TempDir, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
    let path =
        format!("{}:{}", program.parent().expect("a folder").display(), std::env::var("PATH").unwrap_or_default());
    Command::new("sh").args(["-c", line]).env("PATH", path).current_dir(folder.path()).output().expect("a shell")
}

#[test]
fn every_listed_command_works() {
    let listed = page("docs/command-line.md");
    let block = listed.split("```").nth(1).expect("a block");
    let commands: Vec<&str> = block
        .lines()
        .filter(|line| line.starts_with("onnx-slice-fold "))
        .map(|line| line.split("  ").next().unwrap_or(line))
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let folder = TempDir::new().expect("a folder");
        let source = if command.contains("--inputs a") { CHAIN } else { SOURCE };
        for name in ["model.onnx", "a.onnx", "b.onnx", "models/m.onnx"] {
            write(&folder, name, source);
        }
        let done = run(&folder, &command.replace("[NAME]", "movement"));
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// The two commands at the top set the project up: one runs the main task, the other the tests.
#[test]
fn the_readme_begins_with_the_main_job_and_the_tests() {
    let readme = page("README.md");
    let commands: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("$ ")).take(2).collect();
    let [job, tests] = commands[..] else { panic!("{commands:?}") };
    assert_eq!(tests, "cargo test");
    let model = job.rsplit(' ').next().expect("a model");
    let folder = TempDir::new().expect("a folder");
    let done = run(&folder, &format!("onnx-slice-fold '{}' small.onnx", root().join(model).display()));
    assert!(done.status.success());
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let shown = readme.split("```text").nth(1).and_then(|block| block.split("```").next()).expect("what it prints");
    // All lines except the size in bytes, which depends on the tool's version, and the last line with the time.
    let lines = |text: &str| -> Vec<String> {
        let kept = text.lines().filter(|line| !line.starts_with("wrote") && !line.starts_with("bytes"));
        kept.map(str::to_string).filter(|line| !line.is_empty()).collect()
    };
    assert_eq!(lines(shown), lines(&said));
}

/// Returns the long flags in a text.
fn flags(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let words = text.split(|letter| !is_part(letter)).filter(|word| word.starts_with("--") && word.len() > 3);
    words.map(|word| word.trim_end_matches('-').to_string()).collect()
}

#[test]
fn the_page_names_every_flag() {
    let folder = TempDir::new().expect("a folder");
    let help = run(&folder, "onnx-slice-fold --help");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let (own, _) = help.split_once("Flags of other tools").expect("the last section");
    let named = flags(&page("docs/command-line.md"));
    let forgotten: Vec<String> =
        flags(own).into_iter().filter(|flag| !named.contains(flag) && flag != "--version").collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

/// Every file that a page links to exists, and the contents list every page.
#[test]
fn links_have_targets() {
    let docs = std::fs::read_dir(root().join("docs")).expect("the folder");
    let mut pages: Vec<String> =
        docs.map(|entry| format!("docs/{}", entry.expect("an entry").file_name().to_string_lossy())).collect();
    let contents = page("docs/README.md");
    for name in pages.iter().filter(|name| name.ends_with(".md") && *name != "docs/README.md") {
        let own = name.trim_start_matches("docs/");
        assert!(contents.contains(&format!("({own})")), "docs/README.md does not name {own}");
    }
    pages.retain(|name| name.ends_with(".md"));
    for top in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "python/README.md"] {
        pages.push(top.to_string());
    }
    for name in pages {
        let folder = root().join(&name).parent().expect("a folder").to_path_buf();
        for target in page(&name).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let is_outside = file.is_empty() || file.contains("://");
            assert!(is_outside || folder.join(file).exists(), "{name} refers to {target}");
        }
    }
}
