//! Nodes that are too expensive to evaluate are kept before memory or time is spent, and `explain` gives the reason.

use std::time::{Duration, Instant};

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{OnnxModel, Options};

/// Returns the explanation for a model whose nodes must be kept.
fn explained(body: &str) -> String {
    let source = format!("<ir_version: 10, opset_import: [\"\" : 20]>\n{body}");
    let model = text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let mut document = OnnxModel::of(model);
    let start = Instant::now();
    let report = document.fold(&Options::default()).expect("the model folds");
    // A generous limit: a refusal costs almost nothing, the work would take minutes or more memory than available.
    assert!(start.elapsed() < Duration::from_secs(60), "{body}");
    report.explanation()
}

fn declined(operator: &str, reason: &str, body: &str) {
    let told = explained(body);
    let line = told.lines().find(|line| line.starts_with(&format!("declined: {operator} node")));
    let line = line.unwrap_or_else(|| panic!("{body}\n{told}"));
    assert!(line.contains(reason), "{line}");
}

#[test]
fn results_of_terabytes() {
    const REASON: &str = "bytes is over the limit of";
    declined("ConstantOfShape", REASON, "g () => (y) <int64[2] s = {1000000, 1000000}> { y = ConstantOfShape (s) }");
    declined("Expand", REASON, "g () => (y) <float[1] x = {1}, int64[2] s = {1000000, 1000000}> { y = Expand (x, s) }");
    declined("Tile", REASON, "g () => (y) <float[2] x = {1, 2}, int64[1] s = {1000000000000}> { y = Tile (x, s) }");
    declined(
        "Range",
        REASON,
        "g () => (y) <int64 a = {0}, int64 b = {1000000000000}, int64 c = {1}> { y = Range (a, b, c) }",
    );
    declined("Pad", REASON, "g () => (y) <float[2] x = {1, 2}, int64[2] p = {0, 1000000000000}> { y = Pad (x, p) }");
    declined(
        "OneHot",
        REASON,
        "g () => (y) <int64[2] x = {1, 2}, int64 d = {1000000000000}, float[2] v = {0, 1}> { y = OneHot (x, d, v) }",
    );
    declined("HannWindow", REASON, "g () => (y) <int64 n = {1000000000000}> { y = HannWindow (n) }");
    declined(
        "DFT",
        REASON,
        "g () => (y) <float[1,2,1] x = {1, 2}, int64 n = {1000000000000}, int64 a = {1}> { y = DFT (x, n, a) }",
    );
    declined(
        "Resize",
        REASON,
        r#"g () => (y) <float[1,2] x = {1, 2}, int64[2] s = {1000000, 1000000}> { y = Resize (x, "", "", s) }"#,
    );
}

#[test]
fn work_of_minutes() {
    const REASON: &str = "operations are over the limit of";
    declined(
        "Conv",
        REASON,
        "g () => (y) <int64[4] sx = {1, 512, 96, 96}, int64[4] sw = {512, 512, 3, 3}> {
            x = ConstantOfShape (sx)  w = ConstantOfShape (sw)  y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
    );
    declined(
        "MatMul",
        REASON,
        "g () => (y) <int64[2] s = {3000, 3000}> { x = ConstantOfShape (s)  y = MatMul (x, x) }",
    );
}

#[test]
fn results_that_grow_the_model() {
    let told = explained("g () => (y) <int64[2] s = {1000, 1000}> { y = ConstantOfShape (s) }");
    assert!(told.contains("would make the model larger than allowed"), "{told}");
    let told = explained("g () => (y) <int64[2] s = {10, 10}> { y = ConstantOfShape (s) }");
    assert!(!told.contains("declined"), "{told}");
}

/// Returns the remaining operators and the bytes of the remaining initializers, if constants may add this many bytes.
fn left(body: &str, growth: usize) -> (Vec<String>, Vec<usize>) {
    let source = format!("<ir_version: 10, opset_import: [\"\" : 20]>\n{body}");
    let mut document = OnnxModel::of(text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}")));
    document.fold(&Options::default().free_growth(growth)).expect("the model folds");
    let model = document.model();
    let graph = model.graph(model.main());
    let operators = graph.nodes().filter_map(|id| model.node(id)).map(|node| node.op_type.to_string()).collect();
    let bytes =
        graph.initializers().iter().filter_map(|&value| model.value(value).tensor()).map(|tensor| tensor.byte_len());
    (operators, bytes.filter(|&bytes| bytes > 256).collect())
}

/// Each decision visits all results, so the number of individual decisions must fall with the number of results.
#[test]
fn thousands_of_results_that_do_not_fit() {
    let names: Vec<String> = (0..2000).map(|number| format!("e{number}")).collect();
    let nodes: String = names.iter().map(|name| format!("{name} = Expand (c{name}, s) ")).collect();
    let constants: String = names.iter().map(|name| format!(", float[1] c{name} = {{1.{}}}", &name[1..])).collect();
    let told = explained(&format!(
        "g (float[1] x) => (y) <int64[1] s = {{1024}}{constants}> {{ {nodes} k = Concat <axis = 0> ({}) y = Mul (x, k) }}",
        names.join(", ")
    ));
    assert!(told.contains("would make the model larger than allowed"), "{told}");
}

fn numbers(count: usize) -> String {
    (0..count).map(|number| (number * number % 97).to_string()).collect::<Vec<_>>().join(",")
}

/// A result that is over the budget only because a branch that is never taken reads the weights. It is folded after the branch is removed.
#[test]
fn a_result_that_fits_after_a_branch_is_removed() {
    let body = format!(
        "g (float[n,16] x) => (y) <float[16,24] w = {{{}}}> {{
            r = Shape (x)  rank = Size (r)  two = Constant <value_int = 2> ()  c = Equal (rank, two)
            y = If (c) <then_branch: graph = a () => (float[n,24] p) {{
                v = Mul (w, w)  p = MatMul (x, v) }},
              else_branch: graph = b () => (float[n,24] q) {{ q = MatMul (x, w) }}> }}",
        numbers(384)
    );
    assert_eq!(left(&body, 0), (vec!["MatMul".to_string()], vec![384 * 4]));
}

/// Intermediate results of a computation whose end is over the budget use none of it.
#[test]
fn intermediate_results_of_a_result_over_budget() {
    let body = format!(
        "g (float[n,16] x) => (y, z) <float[16,24] w = {{{}}}, int64[3] k = {{4, 8, 4}}> {{
            a, b, c = Split <axis = 0> (w, k)  d = Concat <axis = 0> (b, c, a)  e = Concat <axis = 1> (d, w)
            y = MatMul (x, w)  z = MatMul (x, e) }}",
        numbers(384)
    );
    let (operators, bytes) = left(&body, 1600);
    assert_eq!((operators.len(), bytes), (5, vec![384 * 4]), "{operators:?}");
    // With enough budget everything is folded.
    assert_eq!(left(&body, 3000), (vec!["MatMul".to_string(); 2], vec![384 * 4, 768 * 4]));
}

/// A rule that lists one index per batch entry must not do so for a batch that only a shape can have.
#[test]
fn a_batch_larger_than_memory() {
    let source = "<ir_version: 10, opset_import: [\"\" : 23]>
        g (float[1099511627776,2,3,4] x) => (y, w, u)
        <float[1,1,3,4] cos = {1,1,1,1,0.5,0.25,0.5,0.25,-0.5,0,-0.5,0},
         float[3,4] sin = {0,0,0,0,0.75,1,0.75,1,0.125,-1,0.125,-1}, int64[2] h = {2, 2}>
        { p = Mul (x, cos) x1, x2 = Split <axis = -1> (x, h) n = Neg (x2) r = Concat <axis = -1> (n, x1) q = Mul (sin, r)
          y = Add (p, q) w = Sub (cos, y) u = Sub (sin, y) }";
    let mut document = OnnxModel::of(text::parse(source).expect("the text is well formed"));
    document.fold(&Options::default()).expect("the model folds");
    let bytes = document.to_bytes().expect("the model is written").len();
    assert!(bytes < 10_000, "{bytes}");
}

/// Lanes with several operands at each level: the number of visited groups per Concat is bounded.
#[test]
fn lanes_with_many_ways_back() {
    const LEVELS: usize = 14;
    const OPERANDS: usize = 5;
    let (mut inputs, mut nodes, mut values) =
        (vec!["float[n,1] x0, float[n,1] x1".to_string()], String::new(), ["x0".to_string(), "x1".to_string()]);
    for level in 0..LEVELS {
        for (lane, value) in values.iter_mut().enumerate() {
            let scales: Vec<String> = (0..OPERANDS).map(|at| format!("{lane}_{level}_{at}")).collect();
            inputs.extend(scales.iter().map(|scale| format!("float s{scale}")));
            nodes.extend(scales.iter().map(|scale| format!("a{scale} = Add ({value}, s{scale})\n")));
            let sums: Vec<String> = scales.iter().map(|scale| format!("a{scale}")).collect();
            *value = format!("c{lane}_{level}");
            nodes.push_str(&format!("{value} = Max ({})\n", sums.join(", ")));
        }
    }
    let told = explained(&format!(
        "g ({}) => (y) {{ {nodes} y = Concat <axis = 1> ({}) }}",
        inputs.join(", "),
        values.join(", ")
    ));
    assert!(!told.contains("concat-of-functions"), "{told}");
}
