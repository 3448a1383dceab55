//! The layering of the source, as rules with their own failure messages.

mod circles;
mod imports;
mod public;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use imports::{Code, module_of, test_modules};

/// The allowed imports: a folder of `src`, and the folders that it may use.
const LAYERS: &[(&str, &[&str])] = &[
    ("dim", &[]),
    ("tensor", &[]),
    ("index_map", &["dim", "tensor", "sort"]),
    ("slicing", &["dim", "tensor", "index_map"]),
    ("ir", &["dim", "tensor"]),
    ("onnx", &["dim", "tensor", "slicing", "ir", "sort"]),
    ("consumers", &["dim", "tensor", "ir"]),
    ("ops", &["dim", "tensor", "index_map", "slicing", "ir", "sort"]),
    ("rewrite", &["consumers", "dim", "tensor", "index_map", "slicing", "ir", "ops", "sort"]),
    ("passes", &["clock", "consumers", "dim", "tensor", "index_map", "slicing", "ir", "ops", "rewrite", "sort"]),
    ("check", &["clock", "dim", "tensor", "slicing", "ir", "ops", "passes", "sort"]),
    ("explain", &["consumers", "dim", "tensor", "index_map", "slicing", "ir", "ops", "rewrite", "passes", "sort"]),
    ("report", &["consumers", "dim", "tensor", "slicing", "ir", "onnx", "ops", "rewrite", "passes", "explain", "sort"]),
];

/// Crates that only one folder may use.
const HOMES: &[(&str, &[&str])] = &[
    ("petgraph", &["src/ir"]),
    ("prost", &["src/onnx"]),
    ("clap", &["src/cli"]),
    ("indicatif", &["src/cli"]),
    ("anyhow", &["src/cli"]),
];

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

fn text_of(path: &Path) -> String {
    fs::read_to_string(path).expect("the file can be read")
}

/// Returns the test modules in separate files.
fn modules_for_tests() -> &'static BTreeSet<Vec<String>> {
    static FOUND: OnceLock<BTreeSet<Vec<String>>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let src = root().join("src");
        let mut found = BTreeSet::new();
        for path in sources(&src) {
            let module = module_of(&path, &src);
            let names = test_modules(&text_of(&path));
            found.extend(names.into_iter().map(|name| [module.as_slice(), &[name]].concat()));
        }
        found
    })
}

/// Returns the files below a folder of `src` that are compiled outside of tests, with their code.
fn production(folder: &str) -> Vec<(PathBuf, Code)> {
    let (src, for_tests) = (root().join("src"), modules_for_tests());
    let mut found = Vec::new();
    for path in sources(&src).into_iter().filter(|path| path.starts_with(root().join(folder))) {
        let module = module_of(&path, &src);
        if !(1..=module.len()).any(|len| for_tests.contains(&module[..len])) {
            found.push((path.clone(), Code::new(&text_of(&path), module)));
        }
    }
    found
}

/// Returns the first path from the root of the crate that leaves `layer` for a folder that it may not use.
fn upward<'p>(paths: &'p [Vec<String>], layer: &str, allowed: &[&str]) -> Option<&'p Vec<String>> {
    let is_fine = |head: &str| head == layer || allowed.contains(&head);
    // The root's own names are the public API, above everything.
    paths.iter().find(|path| path.first().is_none_or(|head| !is_fine(head)))
}

#[test]
fn nothing_imports_upward() {
    for (layer, allowed) in LAYERS {
        let files = production(&format!("src/{layer}"));
        assert!(!files.is_empty(), "the folder src/{layer} of the layering is gone");
        for (file, code) in files {
            if let Some(path) = upward(&code.paths("crate"), layer, allowed) {
                let (file, path) = (file.display(), path.join("::"));
                panic!("{file} uses crate::{path}, but `{layer}` may import only {allowed:?}: nothing imports upward");
            }
        }
    }
}

/// The list of rules is above the rules, so no file of `src/rewrite` imports it. A file does not import names that `mod.rs` exports for the
/// passes either: it imports them from the file that defines them.
#[test]
fn no_rule_imports_the_list() {
    let files = production("src/rewrite");
    let is_above =
        |file: &PathBuf| ["mod.rs", "list.rs"].iter().any(|name| file.ends_with(format!("src/rewrite/{name}")));
    assert!(files.len() > 20 && files.iter().filter(|(file, _)| is_above(file)).count() == 2, "src/rewrite has moved");
    for (file, code) in files.iter().filter(|(file, _)| !is_above(file)) {
        for path in code.paths("crate") {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let climbs = match path.as_slice() {
                ["rewrite", "list", ..] => true,
                // Names of modules and macros begin with a lowercase letter; the exports of `mod.rs` begin with a capital.
                ["rewrite", name, ..] => name.starts_with(char::is_uppercase),
                _ => false,
            };
            assert!(!climbs, "{} uses crate::{}, which stands above it", file.display(), path.join("::"));
        }
    }
}

#[test]
fn an_import_is_seen_in_every_spelling() {
    let seen = |text: &str| {
        let module = ["ir", "graph"].map(str::to_string).to_vec();
        let paths = Code::new(text, module).paths("crate");
        upward(&paths, "ir", &["dim", "tensor"]).map(|path| path.join("::"))
    };
    for (text, path) in [
        ("use crate::ops;", "ops"),
        ("use crate::{dim::Dim, ops::Walk};", "ops::Walk"),
        ("use crate::{dim::{Dim, Scope}, tensor::*, passes::{self, run}};", "passes"),
        ("use super::super::ops::Walk;", "ops::Walk"),
        ("use super::{edit, super::{ops}};", "ops"),
        ("fn f() { let x = crate::ops::walk::new(); }", "ops::walk::new"),
        ("fn f(x: Vec<crate::ops::Walk>) {}", "ops::Walk"),
        ("fn f() { vec![1, super::super::rewrite::RULES.len()] }", "rewrite::RULES"),
        ("#[cfg(test)] mod tests { use crate::onnx; } use crate::rewrite::*;", "rewrite"),
        ("mod inner { use super::super::super::ops::Walk; }", "ops::Walk"),
        ("use crate::Options;", "Options"),
        ("use crate::*;", ""),
        ("#[derive(Debug)] struct S { walk: Option<crate :: ops :: Walk> }", "ops::Walk"),
        ("macro_rules! m { () => { $crate::passes::run() } }", "passes::run"),
        ("pub(in crate::ir) use crate::ops as o;", "ops"),
    ] {
        assert_eq!(seen(text).as_deref(), Some(path), "{text}");
    }
    for text in [
        "use crate::dim::Dim; use super::edit; use super::super::tensor::Tensor; use self::x::y;",
        "// crate::ops\n/// [`crate::ops`]\nfn f() { \"crate::ops::x\"; r#\"crate::ops\"#; }",
        "#[cfg(test)] mod tests { use crate::ops; }",
        "#[cfg(all(test, unix))] mod tests { use crate::ops; }",
        "#[test] fn f() { crate::ops::x() }",
        "#[cfg(test)] use crate::ops::x;",
        "pub(in crate::ir) fn f() { other::crate_::ops() }",
        "mod inner { use super::x; use super::super::graph; }",
    ] {
        assert_eq!(seen(text), None, "{text}");
    }
}

#[test]
fn restricted_crates_are_used_in_one_folder() {
    for (file, code) in production("src") {
        let heads = code.heads();
        for (name, homes) in HOMES {
            let at_home = homes.iter().any(|home| file.starts_with(root().join(home)));
            let used = heads.iter().any(|head| head == name);
            assert!(at_home || !used, "{} uses {name}, whose only home is {homes:?}", file.display());
        }
    }
}

#[test]
fn the_command_line_imports_only_the_public_api() {
    let inner: Vec<&str> = LAYERS.iter().map(|(layer, _)| *layer).collect();
    let files: Vec<_> = production("src/cli").into_iter().chain(production("src/main.rs")).collect();
    assert!(files.len() > 1, "the folder src/cli is gone");
    for (file, code) in files {
        for path in code.paths("onnx_slice_fold") {
            let reaches = path.first().is_none_or(|head| inner.contains(&head.as_str()));
            assert!(!reaches, "{} reaches past the façade into {}", file.display(), path.join("::"));
        }
    }
}

#[test]
fn the_library_does_not_import_the_command_line() {
    for (file, code) in production("src") {
        let is_program = file.starts_with(root().join("src/cli")) || file.ends_with("src/main.rs");
        let used = code.paths("crate").iter().any(|path| path.first().is_some_and(|head| head == "cli"));
        assert!(is_program || !used, "{} uses the command line", file.display());
    }
}

#[test]
fn unsafe_code_has_one_home() {
    for (file, code) in production("src") {
        let home = file.ends_with("src/onnx/map.rs");
        assert!(
            home || !code.has_word("unsafe"),
            "{} has unsafe code, whose only home is src/onnx/map.rs",
            file.display()
        );
    }
}

/// A pass that chooses a name itself could reuse the name of a removed value, or one that another graph reads.
#[test]
fn names_of_values_have_one_home() {
    // `extract` gives an input the name of the result that it replaces.
    let homes = ["src/ir", "src/onnx", "src/passes/extract.rs"].map(|home| root().join(home));
    for (file, code) in production("src") {
        let is_at_home = homes.iter().any(|home| file.starts_with(home));
        let names = code.has_word("add_value");
        assert!(is_at_home || !names, "{} names a value itself: call Model::new_value", file.display());
    }
}

/// `Cargo.toml` lists the test binaries, so a file that no `main.rs` declares would never be compiled.
#[test]
fn every_test_file_belongs_to_a_binary() {
    let tests = root().join("tests");
    let is_source = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let files = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("the folder can be listed");
        entries.map(|entry| entry.expect("the entry can be read").path()).filter(is_source).collect()
    };
    let stray = files(&tests);
    assert!(
        stray.is_empty(),
        "{stray:?} is in no test binary: move it to tests/engine or tests/binary, and name it in main.rs"
    );
    for binary in ["engine", "binary"] {
        let main = fs::read_to_string(tests.join(binary).join("main.rs")).expect("main.rs can be read");
        for path in files(&tests.join(binary)) {
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            let named = name == "main" || main.lines().any(|line| line == format!("mod {name};"));
            assert!(named, "{} is not named in tests/{binary}/main.rs", path.display());
        }
    }
}

/// Each law in `laws/` names the source that relies on it in `at="FILE: FUNCTION"`. The proofs need Python and Z3. This test checks that
/// the functions exist, so that moving one fails early.
#[test]
fn every_law_names_a_function_that_exists() {
    let mut asked = 0;
    for entry in fs::read_dir(root().join("laws")).expect("the folder can be listed") {
        let laws = entry.expect("the entry can be read").path();
        if laws.extension().is_none_or(|extension| extension != "py") {
            continue;
        }
        for place in text_of(&laws).split("at=\"").skip(1) {
            let place = place.split('"').next().unwrap_or_default();
            let Some((file, function)) = place.split_once(": ") else { continue };
            let source = root().join(file);
            assert!(source.is_file(), "{} rests on {file}, which is no file", laws.display());
            let defined = [format!("fn {function}("), format!("fn {function}<")];
            let text = text_of(&source);
            let found = defined.iter().any(|start| text.contains(start.as_str()));
            assert!(found, "{} rests on {function} in {file}, where there is no such function", laws.display());
            asked += 1;
        }
    }
    assert!(asked > 100, "only {asked} places were found in laws/, so their form must have changed");
}
