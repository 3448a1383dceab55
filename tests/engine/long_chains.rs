//! Long chains of nodes: time and recursion depth.

use std::time::{Duration, Instant};

use onnx_slice_fold::Options;

use crate::support::{folded_unrun, operators};

/// A chain is folded in linear time and without recursion.
#[test]
fn a_long_chain_of_terms() {
    let mut source = String::from(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n] x) => (y) <float zero = {0}> { v0 = Relu (x) ",
    );
    for i in 0..4000 {
        source.push_str(&format!("v{} = Add (v{i}, zero) ", i + 1));
    }
    source.push_str("y = Neg (v4000) }");
    let (model, report) = folded_unrun(&source, &Options::default());
    assert_eq!(report.fired.get("zero-term"), Some(&4000));
    assert_eq!(operators(&model), ["Relu", "Neg"]);
}

/// Each of very many consumers of one value is processed without visiting all others.
#[test]
fn many_columns_of_one_value() {
    let count = 6000;
    let mut constants = String::from("int64[1] axis = {1}");
    let mut nodes = String::from("v = Relu (x) ");
    for i in 0..count {
        constants.push_str(&format!(", float c{i} = {{{i}.5}}"));
        nodes.push_str(&format!("a{i} = Add (v, c{i}) u{i} = Unsqueeze (a{i}, axis) "));
    }
    let columns: Vec<String> = (0..count).map(|i| format!("u{i}")).collect();
    let source = format!(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n] x) => (y) <{constants}> {{ {nodes} y = Concat <axis = 1> ({}) }}",
        columns.join(", ")
    );
    let start = Instant::now();
    let (model, _) = folded_unrun(&source, &Options::default());
    // A generous limit: a linear algorithm takes a second, a quadratic one takes minutes.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(operators(&model).iter().filter(|name| *name == "Add").count(), count);
}
