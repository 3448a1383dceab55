//! Requirements of successful runs on sizes, and the resulting shapes.

use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{OnnxModel, Options};

use crate::support::{folded, folded_unrun, shape};

fn model(source: &str) -> Model {
    folded(&format!("<ir_version: 8, opset_import: [\"\" : 17]> {source}"), &Options::default())
}

#[test]
fn next_to_its_minimum_a_dim_is_not_larger() {
    // 64 positions and a sequence: in successful runs, the number of positions equals the length of the sequence.
    let table = |rows: i64, opened: &str| {
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : 17]> g (float[batch,seq,2] x, float[{rows},2] table) => (y, positions) <int64[1] first = {{0}}> {{
            whole = Shape (x) size = Shape <start = 1, end = 2> (x) positions = Slice (table, first, size) y = {opened} }}"
        );
        shape(&folded_unrun(&source, &Options::default()).0, "positions")
    };
    assert_eq!(table(64, "Add (x, positions)"), "seq,2");
    // The same for positions that are expanded to the whole shape.
    assert_eq!(table(64, "Expand (positions, whole)"), "seq,2");
    assert_eq!(table(1, "Expand (positions, whole)"), "min(1, seq),2");
    // A single row is broadcast to every position.
    assert_eq!(table(1, "Add (x, positions)"), "min(1, seq),2");
    // No node requires that the numbers are equal.
    assert_eq!(table(64, "Concat <axis = 0> (positions, positions)"), "min(64, seq),2");
}

#[test]
fn next_to_a_constant_dim_no_dim_is_0() {
    let cut = |fixed: &str| {
        let graph = format!(
            "g (float[n] x, float[{fixed}] z) => (y, w) <int64[1] first = {{0}}, int64[1] one = {{1}}, int64[1] most = {{7}}> {{
            y = Add (x, z) v = Slice (x, first, most) w = Abs (v) }}"
        );
        shape(&model(&graph), "w")
    };
    assert_eq!(cut("7"), "n");
    assert_eq!(cut("8"), "min(7, n)");
    assert_eq!(cut("1"), "min(7, n)");
    // Any of them may be broadcast.
    assert_eq!(cut("m"), "min(7, n)");
}

#[test]
fn a_branch_that_is_not_run_needs_nothing() {
    let graph = "g (bool c, float[n] x, float[7] z) => (y, w) <int64[1] first = {0}, int64[1] most = {7}> {
        y = If <then_branch: graph = t () => (float a) { s = Add (x, z) a = ReduceSum <keepdims = 0> (s) },
                else_branch: graph = e () => (float b) { b = ReduceSum <keepdims = 0> (x) }> (c)
        v = Slice (x, first, most) w = Abs (v) }";
    assert_eq!(shape(&model(graph), "w"), "min(7, n)");
}

#[test]
fn dead_nodes_have_no_requirements() {
    let graph = "g (float[n] x, float[7] z) => (w) <int64[1] first = {0}, int64[1] most = {7}> {
        dead = Add (x, z) v = Slice (x, first, most) w = Abs (v) }";
    assert_eq!(shape(&model(graph), "w"), "min(7, n)");
    let gather = "g (float[n] x) => (w) <int64[1] first = {0}, int64[1] most = {2}, int64 third = {2}> {
        dead = Gather (x, third) v = Slice (x, first, most) w = Abs (v) }";
    assert_eq!(shape(&model(gather), "w"), "min(2, n)");
    // A value that a subgraph reads is computed.
    let read = "g (bool c, float[n] x, float[7] z) => (y, w) <int64[1] first = {0}, int64[1] most = {7}> {
        s = Add (x, z)
        y = If <then_branch: graph = t () => (float a) { a = ReduceSum <keepdims = 0> (s) },
                else_branch: graph = e () => (float b) { b = ReduceSum <keepdims = 0> (x) }> (c)
        v = Slice (x, first, most) w = Abs (v) }";
    assert_eq!(shape(&model(read), "w"), "n");
}

#[test]
fn facts_about_run_time_sizes_are_learned() {
    let graph = "g (float[k] x) => (y) <int64 second = {1}, int64[1] first = {0}> {
        places = NonZero (x) size = Shape (places) n = Gather (size, second) one = Div (n, n)
        times = Unsqueeze (one, first) v = Tile (x, times) y = Abs (v) }";
    assert_eq!(shape(&model(graph), "y"), "k");
}

/// Looked-up positions are in range, so the last one gives a lower bound of the data's length, if there is one.
#[test]
fn a_table_is_as_long_as_its_positions() {
    let front = |mask: &str, indices: &str, first: &str| {
        let graph = format!(
            "g (float[seq] x, float[past] z, float[{mask}] mask) => (y, w, f) <int64 none = {{0}}, int64[1] start = {{0}}, int64 step = {{1}}, int64[1] along = {{0}}> {{
            sx = Shape (x) sz = Shape (z) s = Squeeze (sx, along) p = Squeeze (sz, along) all = Add (p, s) size = Add (sz, sx)
            positions = Range (none, all, step) next = Add (positions, step) i = {indices} y = Gather (mask, i) v = Slice (mask, start, size) w = Abs (v) f = {first} }}"
        );
        let source = format!("<ir_version: 8, opset_import: [\"\" : 17]> {graph}");
        shape(&folded_unrun(&source, &Options::default()).0, "w")
    };
    assert_eq!(front("m", "Identity (positions)", "Gather (x, none)"), "seq + past");
    // The same for positions from the end.
    assert_eq!(front("m", "Sub (none, positions)", "Gather (x, none)"), "min(m, seq + past)");
    assert_eq!(front("m", "Neg (next)", "Gather (x, none)"), "seq + past");
    // Without positions nothing is looked up.
    assert_eq!(front("m", "Identity (positions)", "Abs (x)"), "min(m, seq + past)");
    // A table of constant length is not shorter.
    assert_eq!(front("64", "Identity (positions)", "Gather (x, none)"), "seq + past");
    // Runtimes differ on checking the indices if another axis is empty.
    assert_eq!(front("m,k", "Identity (positions)", "Gather (x, none)"), "min(m, seq + past),k");
    assert_eq!(front("m,m", "Identity (positions)", "Gather (x, none)"), "min(m, seq + past),m");
    assert_eq!(front("m,2", "Identity (positions)", "Gather (x, none)"), "seq + past,2");
}

/// A negative size fails in every run, in every operator.
#[test]
fn negative_sizes_are_refused_by_a_strict_reader() {
    let is_refused = |opset: i64, body: &str| {
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : {opset}]> g (float[4,3] x, float[1,4,4] v, float[1,1,2,2] w) => (y) {{ {body} }}"
        );
        let mut model = OnnxModel::of(text::parse(&source).unwrap());
        model.fold(&Options::new().strict(true)).is_err()
    };
    for (opset, good, bad) in [
        (2, "y, z = Split <split = [3, 1]> (x)", "y, z = Split <split = [6, -2]> (x)"),
        (11, "y, z = Split <axis = -2, split = [4, 0]> (x)", "y, z = Split <axis = -2, split = [-2, 6]> (x)"),
        (
            13,
            "s = Constant <value_ints = [3, 1]> ()  y, z = Split (x, s)",
            "s = Constant <value_ints = [6, -2]> ()  y, z = Split (x, s)",
        ),
        (
            18,
            "s = Constant <value_ints = [3, 1]> ()  y, z = Split (x, s)",
            "s = Constant <value_ints = [6, -2]> ()  y, z = Split (x, s)",
        ),
        (13, "y = LRN <size = 1> (w)", "y = LRN <size = -1> (w)"),
        (
            18,
            "i = Constant <value_ints = [3, 3]> ()  k = Constant <value_ints = [2, 2]> ()  y = Col2Im (v, i, k)",
            "i = Constant <value_ints = [-3, 3]> ()  k = Constant <value_ints = [2, 2]> ()  y = Col2Im (v, i, k)",
        ),
        (
            13,
            "s = Constant <value_ints = [1, 1, 4, 4]> ()  e = Constant <value = float[0] {}> ()  y = Resize (w, e, e, s)",
            "s = Constant <value_ints = [1, 1, -4, 4]> ()  e = Constant <value = float[0] {}> ()  y = Resize (w, e, e, s)",
        ),
        (
            17,
            "n = Constant <value_int = 4> ()  y = DFT <axis = 1> (v, n)",
            "n = Constant <value_int = 0> ()  y = DFT <axis = 1> (v, n)",
        ),
    ] {
        assert!(!is_refused(opset, good), "{opset}: {good}");
        assert!(is_refused(opset, bad), "{opset}: {bad}");
    }
}
