//! `inspect` in the binary: text, columns, JSON, and models with missing data.

use std::path::Path;
use std::process::{Command, Output};

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{OnnxModel, SaveOptions};
use tempfile::TempDir;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onnx-slice-fold"));
    command.args(arguments).arg("--no-config").current_dir(folder).output().expect("the binary starts")
}

fn told(folder: &Path, arguments: &[&str]) -> String {
    let done = run(folder, arguments);
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("it is text")
}

fn models() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/models"))
}

#[test]
fn a_transformer() {
    insta::assert_snapshot!(told(models(), &["inspect", "bert_dy18d.onnx"]));
}

#[test]
fn a_recurrent_network_at_given_sizes() {
    insta::assert_snapshot!(told(models(), &["inspect", "lstm_last_ts14d.onnx", "--dim", "n=2,t=50"]));
}

#[test]
fn models_side_by_side() {
    let columns = told(models(), &["inspect", "focus_ts13d.onnx", "tf_masks_17d_custom.onnx"]);
    insta::assert_snapshot!(columns);
    // OnnxSlim's flag.
    assert_eq!(told(models(), &["focus_ts13d.onnx", "tf_masks_17d_custom.onnx", "--inspect"]), columns);
}

#[test]
fn json() {
    let objects = |arguments: &[&str]| -> Vec<serde_json::Value> {
        let lines = told(models(), &[&["inspect", "--json"], arguments].concat());
        lines.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    };
    let both = objects(&["bert_dy18d.onnx", "lstm_last_ts14d.onnx"]);
    assert_eq!(both.len(), 2);
    assert_eq!(both[0]["model"], "bert_dy18d.onnx");
    assert_eq!(both[0]["nodes"], 104);
    // docs/report.md lists exactly the existing fields.
    let docs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/report.md")).expect("the schema is read");
    let section = docs.split_once("\n## Inspections").expect("the section").1.split("\n## ").next().expect("a text");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let documented: std::collections::BTreeSet<String> =
        cells.flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`').to_string())).collect();
    assert_eq!(documented, both[0].as_object().expect("an object").keys().cloned().collect());
    assert_eq!(both[0]["macs"]["total"], "128*s33*s50*(s50 + 112)");
    assert_eq!(both[0]["macs"]["total"], both[0]["macs"]["operators"]["MatMul"]);
    assert_eq!(both[0]["dynamic_dims"][1]["places"][1], serde_json::json!({ "input": "attention_mask", "axis": 1 }));
    assert_eq!(both[1]["opsets"]["ai.onnx"], 14);
    let given = objects(&["bert_dy18d.onnx", "--overwrite-input-shape", "input_ids:2,10", "attention_mask:2,10"]);
    assert_eq!(given[0]["macs"]["total"], 128 * 2 * 10 * 122);
    assert!(given[0]["peak_memory"]["bytes"].is_u64() && given[0]["peak_memory"]["node"].is_string());
    assert_eq!(given[0]["dynamic_dims"], serde_json::json!([]));
}

/// A model whose weight is in a data file, which is missing later.
#[test]
fn missing_data() {
    let folder = TempDir::new().expect("a folder");
    let source = "<ir_version: 10, opset_import: [\"\" : 17]> g (float[n, 2] x) => (float[n, 3] y)
        <float[2, 3] w = {1, 2, 3, 4, 5, 6}> { y = MatMul (x, w) }";
    let model = OnnxModel::of(text::parse(source).expect("it parses"));
    let options = SaveOptions::new().save_as_external_data(true).threshold(0);
    model.save_with(folder.path().join("m.onnx"), &options).expect("it is written");
    let there: serde_json::Value =
        serde_json::from_str(&told(folder.path(), &["inspect", "--json", "m.onnx"])).expect("it is JSON");
    let file = &there["data_files"][0];
    assert_eq!((file["bytes"].as_u64(), file["missing"].as_bool()), (Some(24), Some(false)));
    let location = file["location"].as_str().expect("a path");
    std::fs::remove_file(folder.path().join(location)).expect("it is removed");
    let lines = told(folder.path(), &["inspect", "--json", "m.onnx"]);
    let missing: serde_json::Value = serde_json::from_str(&lines).expect("it is JSON");
    assert_eq!(missing["data_files"][0]["missing"], true);
    for field in ["macs", "peak_memory", "parameters", "largest_tensors", "inputs", "operators"] {
        assert_eq!(there[field], missing[field], "{field}");
    }
    assert_eq!(missing["macs"]["total"], "6*n");
    assert_eq!(missing["parameters"]["float"]["bytes"], 24);
}
