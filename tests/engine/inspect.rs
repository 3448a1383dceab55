//! `inspect`: multiply-accumulates and peak activation memory of a run, compared with numbers computed by hand.

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{Figure, Inspection, OnnxModel, Options};

fn with(source: &str, options: &Options) -> Inspection {
    let model = text::parse(&format!("<ir_version: 10, opset_import: [\"\" : 18, \"own\" : 1]> {source}"));
    OnnxModel::of(model.expect("it parses")).inspect(options).expect("it is inspected")
}

fn inspected(source: &str) -> Inspection {
    with(source, &Options::new())
}

fn number(figure: &Figure) -> u64 {
    match figure {
        Figure::Number(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}

fn peak(source: &str) -> u64 {
    let memory = inspected(source).memory;
    assert_eq!(memory.unsized_values, 0);
    number(&memory.bytes)
}

#[test]
fn activations_are_live_until_their_last_consumer() {
    // The input (16 bytes) is never released, and each node holds its operand and its result.
    assert_eq!(peak("g (float[4] x) => (float[4] y) { a = Relu (x)  b = Neg (a)  c = Abs (b)  y = Exp (c) }"), 48);
    // `a` is live until the sum.
    assert_eq!(peak("g (float[4] x) => (float[4] y) { a = Relu (x)  b = Neg (a)  y = Add (a, b) }"), 64);
    // An output is live to the end, and types count: 8 + 8·2 + 8·8 bytes.
    let two = "g (bool[8] x) => (float16[8] y, int64[8] z) { y = Cast <to = 10> (x)  z = Cast <to = 7> (x) }";
    assert_eq!(peak(two), 88);
    let data = inspected("g (float[4] x) => (y) { y = NonZero (x) }").memory;
    assert_eq!((number(&data.bytes), data.unsized_values), (16, 1));
}

#[test]
fn weights_and_views_take_no_memory() {
    let weight = "<float[4] w = {1, 2, 3, 4}>";
    assert_eq!(peak(&format!("g (float[4] x) => (float[4] y) {weight} {{ y = Add (x, w) }}")), 32);
    // The view keeps `a` live.
    let view = "g (float[4] x) => (float[4] y) <int64[2] s = {2, 2}, int64[1] t = {4}>
        { a = Relu (x)  b = Reshape (a, s)  c = Neg (b)  d = Reshape (c, t)  y = Exp (d) }";
    assert_eq!(peak(view), 48);
    // Constants computed from weights are weights.
    assert_eq!(peak(&format!("g (float[4] x) => (float[4] y) {weight} {{ v = Neg (w)  y = Add (x, v) }}")), 32);
}

#[test]
fn subgraphs_count_at_their_node() {
    // x and c (16 + 1), y (16), and in the costlier branch a and the branch's result (16 + 16).
    let branches = "g (float[4] x, bool c) => (float[4] y) {
        y = If <then_branch: graph = t () => (float[4] p) { p = Relu (x) },
            else_branch: graph = e () => (float[4] q) { a = Relu (x)  q = Neg (a) }> (c) }";
    assert_eq!(peak(branches), 65);
}

#[test]
fn products_are_counted_as_often_as_they_run() {
    let weight = "<float[2, 3] w = {1, 2, 3, 4, 5, 6}>";
    let macs = |source: &str| inspected(source).macs;
    let matmul = macs(&format!("g (float[5, 2] x) => (y) {weight} {{ y = MatMul (x, w) }}"));
    assert_eq!((number(&matmul.total), number(&matmul.operators["MatMul"])), (30, 30));
    let looped = |trips: &str| {
        format!(
            "g (float[5, 2] x) => (y) <int64 n = {{{trips}}}, float[2, 2] w = {{1, 2, 3, 4}}> {{
                y = Loop <body: graph = b (int64 i, bool c, float[5, 2] s) => (bool d, float[5, 2] t)
                    {{ d = Identity (c)  t = MatMul (s, w) }}> (n, \"\", x) }}"
        )
    };
    assert_eq!(number(&macs(&looped("7")).total), 140);
    let scanned = "g (float[n, 2] x) => (y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}> {
        y = Scan <num_scan_inputs = 1, body: graph = b (float[2] s) => (float[3] t) { t = MatMul (s, w) }> (x) }";
    assert_eq!(macs(scanned).total, Figure::Expression("6*n".into()));
    // The costlier of two branches counts.
    let branches = "g (float[5, 2] x, bool c) => (y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}> {
        y = If <then_branch: graph = t () => (p) { p = MatMul (x, w) },
            else_branch: graph = e () => (q) { a = Relu (x)  q = MatMul (a, w) }> (c) }";
    assert_eq!(number(&macs(branches).total), 30);
    // A function counts at each call.
    let called = "g (float[5, 2] x) => (y) { a = own.Twice (x)  y = own.Twice (a) }
        <domain: \"own\", opset_import: [\"\" : 18]> Twice (a) => (c) { t = Transpose (a)  s = MatMul (a, t)  c = MatMul (s, a) }";
    let called = inspected(called);
    assert_eq!(number(&called.macs.total), 200);
    assert_eq!((called.functions.len(), called.functions[0].nodes, called.census.nodes()), (1, 3, 5));
}

#[test]
fn unknown_operators_are_not_counted() {
    let unknown = inspected("g (float[5, 2] x) => (y) { b = own.Odd (x)  c = MatMul (b, x)  y = MatMul (c, x) }");
    assert_eq!(unknown.macs.uncounted.values().sum::<usize>(), 3);
    assert_eq!(unknown.census.unknown["own.Odd"], 1);
    let many = "g (float[n] x, int64 n) => (y) <float[2, 2] w = {1, 2, 3, 4}> {
        y = Loop <body: graph = b (int64 i, bool c, float[2, 2] s) => (bool d, float[2, 2] t)
            { d = Identity (c)  t = MatMul (s, w) }> (n, \"\", w) }";
    assert_eq!(inspected(many).macs.uncounted["Loop"], 1);
    let huge = format!("float[{0}, {0}, {0}]", 1_i64 << 30);
    let huge = inspected(&format!("g ({huge} x) => (y) {{ y = Relu (x) }}"));
    assert_eq!(huge.memory.bytes, Figure::Unknown);
    // Each of these has 2⁶² bytes.
    let large = format!("uint8[{0}, {0}]", 1_i64 << 31);
    let large = inspected(&format!("g ({large} x) => (y) {{ y = BitwiseNot (x) }}"));
    assert_eq!((large.memory.bytes, large.memory.unsized_values), (Figure::Unknown, 0));
}

#[test]
fn dynamic_dims_are_expressions_or_are_asked_for() {
    let source = "g (float[n, 4] x, float[?, n] z) => (y) <float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
        { y = MatMul (x, w) }";
    let open = inspected(source);
    assert_eq!(open.macs.total, Figure::Expression("12*n".into()));
    assert_eq!(open.dims[0].places, [("x".to_string(), 0), ("z".to_string(), 1)]);
    assert_eq!(open.dims.len(), 2);
    assert!(matches!(open.memory.bytes, Figure::Expression(_)), "{:?}", open.memory);
    let given = with(source, &Options::new().dim("n=2").dim("z[0]=1"));
    // x: 32, z: 8, y: 24.
    assert_eq!((number(&given.macs.total), number(&given.memory.bytes), given.dims.len()), (24, 64, 0));
    let long = (0..14).map(|at| format!("float[d{at}, e{at}] x{at}")).collect::<Vec<_>>().join(", ");
    match inspected(&format!("g ({long}) => (y) {{ y = Neg (x0) }}")).memory.bytes {
        Figure::Needs(dims) => assert_eq!(dims.len(), 28),
        other => panic!("{other:?}"),
    }
}

#[test]
fn long_chains_take_linear_time() {
    let nodes: Vec<String> = (0..20_000).map(|at| format!("v{} = Relu (v{at})", at + 1)).collect();
    let chain = inspected(&format!("g (float[n, 2] v0) => (v20000) {{ {} }}", nodes.join("\n")));
    assert_eq!(chain.memory.bytes, Figure::Expression("24*n".into()));
}
