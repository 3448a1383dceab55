//! Models for each family of operators, in `families/`: a branch of constants, which is folded, and a branch of dynamic sizes, whose types
//! the snapshot shows. Operators with several versions have a model at an older opset, too.
//!
//! A file is a model in the text syntax, named after the family and the opset. To add one, write the file and review the snapshot.
//! `scripts/compare_onnxruntime.py` runs the same files in ONNX Runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::support::{compare, inputs, run, trials};
use onnx_slice_fold::dim::Scope;
use onnx_slice_fold::ir::{Data, DeclaredType, DimClaim, Model, NodeId, ValueId, text};
use onnx_slice_fold::ops::{operator_of, operators};
use onnx_slice_fold::{OnnxModel, Options, Shapes};

/// Returns the fixtures in the order of their names.
fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/families");
    let entries = std::fs::read_dir(folder).expect("the folder is listed");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "onnxtxt"));
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_stem().expect("a file has a name").to_string_lossy().into_owned()
}

fn parsed(path: &Path) -> Model {
    let source = std::fs::read_to_string(path).expect("the fixture is read");
    text::parse(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn processed(model: &Model, fold: bool) -> Model {
    let mut document = OnnxModel::of(model.clone());
    document.fold(&Options::new().fold(fold).shapes(Shapes::All)).expect("the model folds");
    document.model().clone()
}

/// Returns all nodes, including those of subgraphs and functions.
fn nodes(model: &Model) -> Vec<NodeId> {
    model.graphs().filter(|&graph| model.is_live(graph)).flat_map(|graph| model.graph(graph).nodes()).collect()
}

/// Returns `true` if this program evaluates the node.
fn is_evaluated(model: &Model, id: NodeId) -> bool {
    let Some(node) = model.node(id) else { return false };
    model.function_of(node).is_some()
        || operator_of(model, node).is_some_and(|operator| operator.eval.is_some() && operator.deterministic)
}

/// Checks that each result of the main graph has its declared shape when the model runs. A name that is no dim of an input gets the size of
/// its first occurrence.
fn check_stated_shapes(model: &Model) {
    let mut all = model.clone();
    let graph = model.graph(model.main());
    let mut values: Vec<ValueId> = graph.outputs().to_vec();
    for id in model.topological(model.main()).expect("the nodes have an order") {
        for &value in model.node(id).iter().flat_map(|node| node.outputs().iter().flatten()) {
            if !values.contains(&value) {
                values.push(value);
                all.add_output(all.main(), value);
            }
        }
    }
    let scope = Scope::new();
    for (seed, sizes) in trials(model).iter().enumerate() {
        let Ok(results) = run(&all, inputs(model, sizes, 7 + seed as u64)) else { continue };
        let mut bound: BTreeMap<_, i64> = sizes
            .iter()
            .map(|(name, &size)| (scope.named(name), i64::try_from(size).expect("sizes are small")))
            .collect();
        for (&value, result) in values.iter().zip(&results) {
            let value = model.value(value);
            let (Some(dims), Data::Tensor(tensor)) = (value.declared.as_ref().and_then(DeclaredType::shape), result)
            else {
                continue;
            };
            assert_eq!(dims.len(), tensor.rank(), "the rank of '{}' at {sizes:?}", value.name);
            for (dim, &size) in dims.iter().zip(tensor.shape()) {
                let size = i64::try_from(size).expect("sizes are small");
                let stated = match &dim.claim {
                    DimClaim::Unknown => continue,
                    DimClaim::Value(stated) => *stated,
                    DimClaim::Param(text) => {
                        let dim = scope.parse(text).unwrap_or_else(|| panic!("'{text}' is no expression"));
                        match dim.as_symbol() {
                            Some(symbol) => *bound.entry(symbol).or_insert(size),
                            None => match dim.evaluate(&|symbol| bound.get(&symbol).copied()) {
                                Some(stated) => stated,
                                None => continue,
                            },
                        }
                    }
                };
                assert_eq!(stated, size, "'{}' is {:?} at {sizes:?}: {dims:?}", value.name, tensor.shape());
            }
        }
    }
}

/// Checks that no remaining node could have been computed.
fn check_nothing_is_left(folded: &Model) {
    let constant = |value: ValueId| folded.value(value).is_constant();
    for id in folded.graph(folded.main()).nodes() {
        let node = folded.node(id).expect("a node of the graph");
        // A known sequence is written as the node that builds it, because there are no initializers of such types.
        let builds = ["SequenceConstruct", "SequenceEmpty", "Optional", "Constant"].contains(&node.op_type.as_str());
        let decided = node.inputs().iter().flatten().all(|&value| constant(value));
        assert!(!decided || builds || !is_evaluated(folded, id), "{} is left", folded.describe(id));
    }
}

fn check(path: &Path) {
    let original = parsed(path);
    let before = processed(&original, false);
    let after = processed(&original, true);
    let shown =
        format!("# As it is\n{}\n# Folded\n{}", crate::support::written(&before), crate::support::written(&after));
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(name(path), shown) });
    check_nothing_is_left(&after);
    if nodes(&original).into_iter().all(|id| is_evaluated(&original, id)) {
        compare(&original, &after);
        check_stated_shapes(&before);
        check_stated_shapes(&after);
    }
}

/// Runs every fixture; only those whose name begins with `FAMILY`, if that is set.
#[test]
fn before_and_after() {
    let wanted = std::env::var("FAMILY").unwrap_or_default();
    let chosen = fixtures().into_iter().filter(|path| name(path).starts_with(&wanted));
    let failed: Vec<String> =
        chosen.filter(|path| catch_unwind(AssertUnwindSafe(|| check(path))).is_err()).map(|path| name(&path)).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Every operator of the table has a fixture; of ONNX Runtime's own domain, which is only inferred, the frequent ones.
#[test]
fn every_operator_has_a_fixture() {
    let mut met = BTreeSet::new();
    for path in fixtures() {
        let model = parsed(&path);
        let found = nodes(&model).into_iter().filter_map(|id| operator_of(&model, model.node(id)?));
        met.extend(found.map(|operator| (operator.domain, operator.name)));
    }
    let wanted = operators().filter(|operator| operator.domain != "com.microsoft");
    let missing: Vec<_> =
        wanted.map(|operator| (operator.domain, operator.name)).filter(|known| !met.contains(known)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Printing and parsing a fixture changes nothing.
#[test]
fn fixtures_are_read_as_they_are_printed() {
    for path in fixtures() {
        let printed = text::print(&parsed(&path));
        let again = text::parse(&printed).unwrap_or_else(|error| panic!("{}: {error}\n{printed}", path.display()));
        assert_eq!(printed, text::print(&again), "{}", path.display());
    }
}
