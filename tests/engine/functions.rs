//! Calls of functions, of the model or of the standard, fold like other nodes.

use onnx_slice_fold::Options;
use onnx_slice_fold::ir::text;

use crate::support::folded_unrun;

/// Returns the only output of a model that folds to no nodes.
fn constant(source: &str) -> Vec<f64> {
    let (model, _) = folded_unrun(source, &Options::default());
    let graph = model.graph(model.main());
    assert_eq!(graph.nodes().count(), 0, "{}", text::print(&model));
    let tensor = model.value(graph.outputs()[0]).tensor().expect("an initializer");
    tensor.to_f64s().unwrap_or_else(|| tensor.to_i64s().expect("numbers").into_iter().map(|int| int as f64).collect())
}

#[test]
fn own_functions_that_call_one_another() {
    let source = r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g () => (y) <float[2] x = {1, 2}> { y = own.Twice (x) }
        <domain: "own", opset_import: ["" : 18, "own" : 1]> Twice (a) => (c) { b = own.Grow (a)  c = own.Grow (b) }
        <domain: "own", opset_import: ["" : 18]> Grow (a) => (c) { b = Mul (a, a)  c = Add (a, b) }"#;
    // x + x² of 1 and 2, twice.
    assert_eq!(constant(source), [6.0, 42.0]);
}

#[test]
fn attributes_of_the_call() {
    let source = r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g () => (y) <float[2] x = {1, -2}> { y = own.Leak <slope = 0.5> (x) }
        <domain: "own", opset_import: ["" : 18]> Leak <slope> (a) => (b) { b = LeakyRelu <alpha : float = @slope> (a) }"#;
    assert_eq!(constant(source), [1.0, -1.0]);
}

#[test]
fn operators_that_are_functions() {
    let source = |node: &str| {
        format!("<ir_version: 10, opset_import: [\"\" : 21]> g () => (y) <float[2] x = {{0, 4}}> {{ {node} }}")
    };
    for (node, result) in [
        ("y = ThresholdedRelu (x)", vec![0.0, 4.0]),
        ("y = HardSwish (x)", vec![0.0, 4.0]),
        ("y = Celu (x)", vec![0.0, 4.0]),
        ("y = ReduceSumSquare (x)", vec![16.0]),
        ("y = Clip (x)", vec![0.0, 4.0]),
        ("one = Constant <value_float = 1.0> ()  y = GreaterOrEqual (x, one)", vec![0.0, 1.0]),
        ("y = Shrink <lambd = 1.0, bias = 1.0> (x)", vec![0.0, 3.0]),
    ] {
        assert_eq!(constant(&source(node)), result, "{node}");
    }
}

/// Returns the domains that the model and its functions import after folding.
fn imports(source: &str) -> Vec<String> {
    let (model, _) = folded_unrun(source, &Options::default());
    let functions = model.functions().flat_map(|(_, function)| &function.opsets);
    model.opsets.iter().chain(functions).map(|import| import.domain.to_string()).collect()
}

#[test]
fn domains_without_nodes_are_not_imported() {
    let head = |nodes: &str| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : 18, "gone" : 1, "other" : 1, "ai.onnx.ml" : 3]> g (float[2] x, bool b) => (y) {{ {nodes} }}"#
        )
    };
    // The last node of a domain is folded or dead.
    assert_eq!(imports(&head("y = Abs (x)  z = gone.Strange (x)")), [""]);
    // Nodes of subgraphs count.
    let body = "y = If (b) <then_branch: graph = t () => (u) { u = other.Strange (x) }, else_branch: graph = e () => (v) { v = Abs (x) }>";
    assert_eq!(imports(&head(body)), ["", "other"]);
    // The model keeps a domain that only a function uses. The function drops a domain that it does not use.
    let function = r#"<domain: "own", opset_import: ["" : 18, "other" : 1, "gone" : 1]> Twice (a) => (c) { r = other.Strange (a)  p = other.Strange (r)  q = Abs (p)
        s = other.Strange (q)  t = other.Strange (s)  v = other.Strange (t)  w = other.Strange (v)  c = Mul (w, w) }"#;
    let calls = head("u = own.Twice (x)  w = own.Twice (u)  y = own.Twice (w)")
        .replace("\"gone\" : 1", "\"own\" : 1, \"gone\" : 1");
    assert_eq!(imports(&format!("{calls} {function}")), ["", "own", "other", "", "other"]);
}

#[test]
fn no_domain_is_dropped_without_folding() {
    let source = r#"<ir_version: 8, opset_import: ["" : 18, "gone" : 1]> g (float[2] x) => (y) { y = Abs (x) }"#;
    for options in [Options::new().fold(false), Options::new().stop_after(0), Options::new().skip(["dead-code"])] {
        let (model, _) = folded_unrun(source, &options);
        assert_eq!(model.opsets.len(), 2);
    }
}
