//! The layering of the source, as rules that fail with their own sentence.

#[path = "architecture/imports.rs"]
mod imports;

use std::fs;
use std::path::{Path, PathBuf};

use imports::{Sources, Uses, cycles, of_folders};

/// Who may import whom: a folder of `src`, and the folders it may use.
const LAYERS: &[(&str, &[&str])] = &[
    ("dim", &[]),
    ("tensor", &[]),
    ("slicing", &["dim", "tensor"]),
    ("ir", &["dim", "tensor"]),
    ("onnx", &["dim", "tensor", "slicing", "ir"]),
    ("ops", &["dim", "tensor", "slicing", "ir"]),
    ("rewrite", &["dim", "tensor", "slicing", "ir", "ops"]),
    ("passes", &["dim", "tensor", "slicing", "ir", "ops", "rewrite"]),
    ("report", &["dim", "tensor", "slicing", "ir", "ops", "rewrite", "passes"]),
];

/// Crates that have one home.
const HOMES: &[(&str, &[&str])] =
    &[("petgraph", &["src/ir"]), ("prost", &["src/onnx"]), ("clap", &["src/cli"]), ("indicatif", &["src/cli"])];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The code of a file: comments and what tests use left out.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("the file can be read");
    let body = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    body.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_imports_upward() {
    let folders: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    for (layer, allowed) in LAYERS {
        let folder = root().join("src").join(layer);
        assert!(folder.is_dir(), "the folder src/{layer} of the layering is gone");
        for path in sources(&folder) {
            let is_test = path.components().any(|part| part.as_os_str() == "tests")
                || path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
            if is_test {
                continue;
            }
            let code = code(&path);
            for other in folders.iter().filter(|other| *other != layer && !allowed.contains(other)) {
                let used =
                    code.contains(&format!("crate::{other}::")) || code.contains(&format!("use crate::{other};"));
                assert!(
                    !used,
                    "{} uses crate::{other}, but `{layer}` may import only {allowed:?}: nothing imports upward",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn crates_stay_in_their_homes() {
    for path in sources(&root().join("src")) {
        let code = code(&path);
        for (name, homes) in HOMES {
            let at_home = homes.iter().any(|home| path.starts_with(root().join(home)));
            let used = code.contains(&format!("{name}::"));
            assert!(at_home || !used, "{} uses {name}, whose only home is {homes:?}", path.display());
        }
    }
}

#[test]
fn the_command_line_knows_only_the_facade() {
    for path in sources(&root().join("src/cli")) {
        let code = code(&path);
        for inner in
            ["onnx_slice_fold::ir", "onnx_slice_fold::onnx::", "onnx_slice_fold::passes", "onnx_slice_fold::ops::"]
        {
            assert!(!code.contains(inner), "{} reaches past the façade into {inner}", path.display());
        }
    }
}

#[test]
fn unsafe_code_has_one_home() {
    for path in sources(&root().join("src")) {
        let home = path.ends_with("src/onnx/map.rs");
        let used = code(&path).lines().any(|line| line.contains("unsafe ") || line.contains("unsafe{"));
        assert!(home || !used, "{} has unsafe code, whose only home is src/onnx/map.rs", path.display());
    }
}

/// Uses that close a circle, from a file to those whose path begins so, and why they may. Without them no files use one another in a
/// circle, and no folders.
const BACKWARD: &[(&str, &str, &str)] = &[
    (
        "dim/monomial.rs",
        "dim/expr.rs",
        "an expression is a sum of products of atoms, and the operands of an atom are expressions",
    ),
    (
        "ops/engine/registry.rs",
        "ops/",
        "the table of all operators names their families; these call the walk for the graphs in their attributes",
    ),
    (
        "ops/engine/context.rs",
        "ops/engine/walk.rs",
        "an operator that holds a body has it walked by the walk that called the operator",
    ),
    ("ops/engine/context.rs", "ops/engine/interpret.rs", "and evaluated by the interpreter that called it"),
    ("passes/chains/asked.rs", "passes/chains/survey.rs", "the planner of sizes is to be taken apart"),
];

/// Which file uses which, but for the uses that are known to close a circle, or but for all of these but one.
fn forward(uses: &Uses, but: Option<usize>) -> Uses {
    let mut uses = uses.clone();
    for (at, (from, to, _)) in BACKWARD.iter().enumerate().filter(|(at, _)| Some(*at) != but) {
        let used = uses.get_mut(*from).unwrap_or_else(|| panic!("BACKWARD[{at}] names {from}, which is gone"));
        used.retain(|file| !file.starts_with(to));
    }
    uses
}

#[test]
fn files_and_folders_use_one_another_in_one_direction() {
    let uses = Sources::read(&root().join("src")).uses();
    let circles = cycles(&forward(&uses, None));
    assert!(circles.is_empty(), "these files use one another in a circle: {circles:#?}");
    let circles = cycles(&of_folders(&forward(&uses, None)));
    assert!(circles.is_empty(), "these folders use one another in a circle: {circles:#?}");
    for (at, (from, to, _)) in BACKWARD.iter().enumerate() {
        let closes = !cycles(&forward(&uses, Some(at))).is_empty();
        assert!(closes, "that {from} uses {to} closes no circle: take it off the list");
    }
}
