//! Command lines of other tools, as docs/migration.md lists them.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const SOURCE: &str = r#"<ir_version: 8, opset_import: ["" : 17]>
    g (float[n,3,8,8] x) => (float[n,4,8,8] y, float[n,4,8,8] z) <float[4,3,1,1] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] s = {1,2,3,4}, float[4] m = {0,0,0,0}> {
        a = Conv (x, w)  b = BatchNormalization (a, s, m, m, s)  y = Identity (b)  z = Sigmoid (y) }"#;

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
    command.args(arguments).current_dir(folder.path()).output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let model = onnx_slice_fold::ir::text::parse(SOURCE).expect("the model is right");
    onnx_slice_fold::OnnxModel::of(model).save(folder.path().join("in.onnx")).expect("it is written");
    folder
}

/// Returns the lines of the table: flag, tool, and effect.
fn lines() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/migration.md");
    let file = std::fs::read_to_string(path).expect("the table is read");
    let cells = |line: &str| -> Option<(String, String)> {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let flag = cells.next()?.trim_end_matches('`').to_string();
        Some((flag, cells.nth(1)?.trim_end_matches(" |").to_string()))
    };
    file.lines().filter_map(cells).collect()
}

#[test]
fn every_line_of_the_table_is_true() {
    let lines = lines();
    assert!(lines.len() > 70, "{}", lines.len());
    for (flag, becomes) in lines {
        let folder = folder();
        let given: Vec<&str> = match flag.as_str() {
            "IN OUT" => vec!["in.onnx", "out.onnx"],
            "IN OUT 3" => vec!["in.onnx", "out.onnx", "3"],
            "surgeon sanitize IN -o OUT" => vec!["surgeon", "sanitize", "in.onnx", "-o", "out.onnx"],
            flag => ["in.onnx", "out.onnx"].into_iter().chain(flag.split(' ')).collect(),
        };
        // Commands that only print have no output file.
        let given: Vec<&str> = match flag.as_str() {
            "--inspect" => given.into_iter().filter(|word| *word != "out.onnx").collect(),
            _ => given,
        };
        let done = run(&folder, &given);
        let said = text(&done.stderr);
        let is_written = folder.path().join("out.onnx").exists();
        if becomes.starts_with("refused: ") {
            assert_eq!(done.status.code(), Some(2), "{flag}: {said}");
            assert!(said.starts_with("error: '--") && said.contains("is not supported"), "{flag}: {said}");
            assert!(!is_written, "{flag}");
            continue;
        }
        assert!(done.status.success(), "{flag}: {said}");
        assert_eq!(is_written, flag != "--inspect", "{flag}");
        assert_eq!(said.contains("note: "), becomes.contains("note: "), "{flag}: {said}");
    }
}

/// A rule that is disabled by another tool's name for it does not run.
#[test]
fn skipped_rules_do_not_run() {
    for (flags, stays) in [
        (&["--skip-fuse-bn"][..], &["BatchNormalization"][..]),
        (&["--skip-optimization", "fuse_bn_into_conv"], &["BatchNormalization"]),
        (&["--skip-fusion-patterns", "FusionConvBN"], &["BatchNormalization"]),
        (&["--skip-optimization"], &["BatchNormalization", "Identity"]),
        (&["--skip-optimizer", "eliminate_identity"], &["Identity"]),
        (&[], &[]),
    ] {
        let folder = folder();
        let done = run(&folder, &[&["show", "--folded", "in.onnx"][..], flags].concat());
        let shown = text(&done.stdout);
        for operator in ["BatchNormalization", "Identity"] {
            assert_eq!(shown.contains(&format!("{operator} ")), stays.contains(&operator), "{flags:?}: {shown}");
        }
    }
}

#[test]
fn a_result_over_the_threshold_is_left_to_its_node() {
    let folder = TempDir::new().expect("a folder");
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[n] x) => (y, z) <int64[1] size = {1000}, int64[1] four = {4}> {
            a = ConstantOfShape (size)  y = Add (x, a)  b = ConstantOfShape (four)  z = Add (x, b) }"#;
    let model = onnx_slice_fold::ir::text::parse(source).expect("the model is right");
    onnx_slice_fold::OnnxModel::of(model).save(folder.path().join("in.onnx")).expect("it is written");
    for (flags, left) in [
        (&["--no-rules"][..], 0),
        (&["--no-rules", "--no-large-tensor"], 1),
        (&["--no-rules", "--no-large-tensor", "1M"], 0),
        (&["--no-rules", "--size-threshold", "15"], 2),
        (&["--no-rules", "--size-threshold", "16"], 1),
        (&["--no-rules", "--skip-constant-folding"], 2),
    ] {
        let shown = text(&run(&folder, &[&["show", "--folded", "in.onnx"][..], flags].concat()).stdout);
        assert_eq!(shown.matches("ConstantOfShape (").count(), left, "{flags:?}: {shown}");
    }
}
