//! Subgraphs of control flow: renamed inner values, values that are not shared, and initializers that shadow others.

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{OnnxModel, Options};

use crate::support;

/// Folds a model, prints it with names as the only identity of values, and checks that this text computes the same. Returns the text.
fn as_written(source: &str) -> String {
    let written = crate::support::written(&support::folded(source, &Options::default()));
    let read = text::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    read.verify_names().unwrap_or_else(|error| panic!("{error}\n{written}"));
    support::compare(&text::parse(source).expect("it parsed before"), &read);
    written
}

macro_rules! captures {
    ($($name:ident: $opset:literal, $body:expr;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(as_written(&format!("<ir_version: 8, opset_import: [\"\" : {}]> {}", $opset, $body)));
        })*
    };
}

captures! {
    an_input_gives_way_to_what_a_loop_reads: 17, "g (float[N] a) => (y) {
        k = Constant <value = int64 {5}> ()  g = Identity (a)
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c)  e = Add (a, g) }> (k, \"\", a) }";
    an_input_gives_way_to_the_number_of_an_outer_iteration: 17, "g (float[N] x) => (y) {
        k = Constant <value = int64 {5}> ()  l = Constant <value = int64 {6}> ()
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c)  t = Identity (i)
            e = Loop <body: graph = h (int64 i, bool c, float[N] a) => (bool f, float[N] o) {
                f = Identity (c)  u = Add (i, t)  v = Mul (u, i)  r = Cast <to = 1> (v)  o = Add (a, r) }> (l, \"\", a) }> (k, \"\", x) }";
    a_value_in_between_is_renamed: 17, "g (float[N] x, int64 n) => (y) {
        r = Exp (x)  g = Identity (r)
        y = Loop <body: graph = b (int64 i, bool c, float[N] r) => (bool d, float[N] e) {
            d = Identity (c)  p = Cast <to = 9> (i)
            e = If <then_branch: graph = h () => (float[N] o) { o = Add (r, g) },
                    else_branch: graph = k () => (float[N] q) { q = Sub (r, x) }> (p) }> (n, \"\", r) }";
    a_computed_value_gives_way: 17, "g (float[N] x, int64 n) => (y, w) {
        s = Sin (x)  g = Identity (s)  w = Neg (s)
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c)  s = Exp (a)  f = Mul (s, g)  e = Add (f, s) }> (n, \"\", x) }";
    an_input_of_a_scan_gives_way: 17, "g (float[3, 2] x, float[2] t) => (z, v, w) {
        a = Sin (t)  w = Relu (a)
        z, v = Scan <num_scan_inputs = 1, body: graph = b (float[2] a, float[2] y) => (float[2] d, float[2] f) {
            s = Sin (t)  e = Exp (a)  d = Add (s, e)  f = Identity (y) }> (w, x) }";
    an_input_of_a_map_gives_way: 17, "g (float[N] x, float[M] z) => (y) {
        s = SequenceConstruct (x, x)  r = Sin (z)  g = Identity (r)
        q = SequenceMap <body: graph = b (float[N] r) => (float[K] o) { o = Concat <axis = 0> (r, g, r) }> (s)
        y = ConcatFromSequence <axis = 0> (q) }";
    names_that_hide_nothing_that_is_read_give_way: 17, "g (float[N] x, int64 n) => (y, w) {
        w = Relu (x)
        y = Loop <body: graph = b (int64 n, bool w, float[N] x) => (bool d, float[N] y) {
            d = Identity (w)  y = Exp (x) }> (n, \"\", w) }";
    // The folded constant exists before the subgraph, in which no runtime accepts a second value with its name.
    a_name_in_a_body_gives_way_to_what_is_folded_behind_it: 17, "g (float[N] x, bool k) => (y, z) {
        y = If <then_branch: graph = b () => (float[N] o) { v = Exp (x)  o = Neg (v) }, else_branch: graph = e () => (float[N] p) { p = Neg (x) }> (k)
        s = Constant <value = float {1}> ()  v = Add (s, s)  z = Sub (x, v) }";
}

#[test]
fn names_give_way_in_the_bodies_of_functions() {
    insta::assert_snapshot!(as_written(
        r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x, int64 n) => (y, z) { y = own.Repeat (x, n)  z = own.Repeat (y, n) }
        <domain: "own", opset_import: ["" : 18]> Repeat (a, n) => (y) {
            p = Exp (a)  q = Sin (p)  r = Cos (q)  s = Add (r, p)  t = Neg (s)  u = Mul (t, q)  g = Identity (u)  h = Identity (g)
            y = Loop <body: graph = b (int64 i, bool c, float[N] u) => (bool d, float[N] e) {
                d = Identity (c)  f = Identity (h)  e = Add (u, f) }> (n, "", a) }"#
    ));
}

/// Before IR version 4 every initializer is an input, and runtimes treat all of them as constants. A newer IR version would change that.
#[test]
fn before_version_4_new_constants_are_nodes() {
    let source = "<ir_version: 3, opset_import: [\"\" : 8]> g (float[N] x, bool n) => (y) {
        y = If <then_branch: graph = b () => (float[N] o) {
                two = Constant <value = float[1] {2}> ()  three = Constant <value = float[1] {3}> ()
                k = Add (two, three)  o = Add (x, k) },
            else_branch: graph = e () => (float[N] p) { p = Neg (x) }> (n) }";
    let whole = "<ir_version: 3, opset_import: [\"\" : 8]> g (float[N,4] x, float[4] w = {1,2,3,4}) => (float[M,2] y) {
        s = Constant <value = int64[1] {2}> ()  t = Constant <value = int64[1] {-1}> ()  k = Concat <axis = 0> (t, s)
        z = Add (x, w)  y = Reshape (z, k) }";
    for source in [source, whole] {
        let model = support::folded(source, &Options::default());
        assert_eq!(model.ir_version, 3);
        for graph in model.graphs().filter(|&graph| model.is_live(graph)) {
            let own = model.graph(graph).initializers().iter().filter(|&&value| model.value(value).is_constant());
            assert_eq!(own.count(), 0);
        }
        let graphs = model.graphs().filter(|&graph| model.is_live(graph));
        let mut nodes = graphs.flat_map(|graph| model.graph(graph).nodes()).filter_map(|id| model.node(id));
        assert!(nodes.any(|node| node.op_type == "Constant"));
    }
}

#[test]
fn sequences_that_a_loop_consumes_are_not_shared() {
    let source = |first: &str| {
        format!(
            "<ir_version: 9, opset_import: [\"\" : 19]> g (float[N] x, int64 n) => (y, z, q) {{
            s = SequenceConstruct (x, x)  t = SequenceConstruct (x, x)  u = SequenceConstruct (x, x)
            q, e = Loop <body: graph = b (int64 i, bool c, seq(float[N]) a) => (bool d, seq(float[N]) a, float[N] f) {{
                d = Identity (c)  f = Relu (x) }}> (n, \"\", {first})
            y = ConcatFromSequence <axis = 0> (s)  z = ConcatFromSequence <axis = 1, new_axis = 1> (u) }}"
        )
    };
    for (first, sequences) in [("t", 2), ("s", 2)] {
        let model = support::folded(&source(first), &Options::default());
        let written = crate::support::written(&model);
        assert_eq!(written.matches("SequenceConstruct").count(), sequences, "{written}");
    }
}

#[test]
fn an_initializer_that_shadows_an_outer_value_is_kept() {
    // Runtimes disagree on which of the two is added, so the result is unknown.
    let source = "<ir_version: 9, opset_import: [\"\" : 19]> g (float[N, 2] x, bool k) => (z, w)
            <float[2] q = {1, 2}, float[2] r = {1, 2}, bool t = {1}> {
        w = Mul (x, r)
        y = If <then_branch: graph = b () => (float[N, 2] p) <float[2] q = {0, 0}> { p = Add (x, q) },
                else_branch: graph = e () => (float[N, 2] s) { s = Add (x, q) }> (k)
        z = If <then_branch: graph = c () => (float[N, 2] u) <float[2] q = {3, 4}, float[2] v = {3, 4}> {
                    o = Add (y, q)  u = Mul (o, v) },
                else_branch: graph = f () => (float[N, 2] h) { h = Neg (y) }> (t) }";
    let mut document = OnnxModel::of(text::parse(source).expect("it parses"));
    document.fold(&Options::default()).expect("it folds");
    insta::assert_snapshot!(document.text());
}

/// ONNX Runtime increments the tensor with the iteration number in place, so three rows of it are 3, 3, 3. For an operand that the body of
/// a Scan takes, and for the second of two equal results, it returns uninitialized memory.
#[test]
fn body_results_that_runtimes_get_wrong_are_kept() {
    let looped = |results: &str| {
        format!(
            "g (float[N] x) => (y, w) {{ k = Constant <value = int64 {{3}}> ()  z = Constant <value = int64 {{7}}> ()
            y, w = Loop <body: graph = b (int64 i, bool c, int64 a) => (bool d, {results}) {{
                d = Identity (c)  e = Add (a, i)  j = Identity (i) }}> (k, \"\", z) }}"
        )
    };
    let scanned = |results: &str| {
        format!(
            "g (float[N] x, float[1, N] r) => (y, w) {{
            y, w = Scan <num_scan_inputs = 1, body: graph = b (float[N] s, float[N] p) => ({results}) {{
                t = Add (s, p)  u = Identity (s)  q = Identity (p)  v = Neg (p)
                d1 = Exp (s)  d2 = Exp (d1)  d3 = Exp (p)  d4 = Exp (d3) }}> (x, r) }}"
        )
    };
    let branched = |results: &str| {
        format!(
            "g (float[N] x) => (y, w) {{ k = Constant <value = bool {{1}}> ()
            y, w = If <then_branch: graph = b () => ({results}) {{ a = Exp (x)  b = Neg (x) }},
                else_branch: graph = e () => (c, d) {{ c = Sin (x)  d = Cos (x) }}> (k) }}"
        )
    };
    let cases = [
        (looped("int64 e, int64 i"), true),
        (looped("int64 i, int64 e"), true),
        (looped("int64 e, int64 e"), false),
        (looped("int64 e, int64 j"), false),
        (scanned("float[N] t, float[N] p"), true),
        (scanned("float[N] s, float[N] t"), true),
        (scanned("float[N] t, float[N] t"), true),
        (scanned("float[N] t, float[N] v"), false),
        (scanned("float[N] u, float[N] q"), false),
        (branched("a, a"), false),
        (branched("a, b"), false),
    ];
    for (graph, stays) in cases {
        let source = format!("<ir_version: 8, opset_import: [\"\" : 17]> {graph}");
        let written = crate::support::written(&support::folded(&source, &Options::default()));
        let is_there = ["Loop (", "Scan <", "If ("].iter().any(|name| written.contains(name));
        assert_eq!(is_there, stays, "{graph}:\n{written}");
    }
}

/// Rows of a Loop that may not run have the shape that ONNX Runtime infers for one row. It infers nothing for the result of a nested Loop,
/// even if that never runs, but it infers the initial value of that result.
#[test]
fn a_loop_that_never_runs_is_kept_if_it_hides_the_shape_of_rows() {
    let source = |row: &str| {
        format!(
            "<ir_version: 8, opset_import: [\"\" : 14]> g (float[4] z, int64 n) => (y) <int64 zero = {{0}}, bool t = {{1}}> {{
            y = Loop <body: graph = b (int64 i, bool c) => (bool d, {row}) {{
                d = Identity (c)  row = Softsign (e)
                e = Loop <body: graph = h (int64 j, bool f, a) => (bool k, o) {{
                    k = Identity (f)  o = Softsign (a) }}> (zero, t, z) }}> (n, \"\") }}"
        )
    };
    for (row, loops) in [("row", 2), ("float[4] row", 1)] {
        let written = crate::support::written(&support::folded(&source(row), &Options::default()));
        assert_eq!(written.matches("Loop").count(), loops, "{written}");
    }
}

/// If no iteration determines the length of a row, runtimes use the declared shape and their inference of the body. An axis without a
/// declared size gets no size if the body makes it constant.
#[test]
fn rows_of_a_loop_that_never_runs_are_as_open_as_declared() {
    let folded = |row: &str| {
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : 15]> g (float[4,n,4] x, float[4] z) => (w, y)
            <int64 never = {{0}}, int64[2] parts = {{2,2}}, int64[8] pads = {{0,0,0,0,0,0,0,2}}> {{
            w, rows = Loop <body: graph = b (int64 i, bool c, float[4] s) => (bool d, float[4] t, float[4,n,{row}] a) {{
                d = Identity (c)  t = Neg (s)  a, b = Split <axis = -1> (x, parts) }}> (never, \"\", z)
            y = Pad (rows, pads) }}"
        );
        // The program's own evaluator does not compute such rows.
        let mut document = OnnxModel::of(text::parse(&source).expect("it parses"));
        document.fold(&Options::default()).expect("it folds");
        crate::support::written(document.model())
    };
    assert!(folded("?").contains("Pad ("), "{}", folded("?"));
    assert!(!folded("2").contains("Pad ("), "{}", folded("2"));
}

/// ONNX Runtime skips empty operands of a Concat, whatever their sizes are, but refuses a Concat of declared sizes that do not match.
#[test]
fn rows_of_a_loop_that_never_runs_are_kept_if_they_do_not_fit() {
    let folded = |axis: i64| {
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : 13]> g (float[n] x, int64 m) => (y, w) <bool never = {{0}}, float[1,2] k = {{3,4}}> {{
            y, rows = Loop <body: graph = b (int64 i, bool c, float[n] a) => (bool d, float[n] e, float[2] u) {{
                d = Identity (c)  e = Exp (a)  u = Constant <value = float[2] {{1,2}}> () }}> (m, never, x)
            w = Concat <axis = {axis}> (rows, k, k) }}"
        );
        let mut document = OnnxModel::of(text::parse(&source).expect("it parses"));
        document.fold(&Options::default()).expect("it folds");
        crate::support::written(document.model())
    };
    assert!(folded(1).contains("Concat") && folded(1).contains("Loop"), "{}", folded(1));
    assert!(!folded(0).contains("Concat") && !folded(0).contains("Loop"), "{}", folded(0));
}

/// Without an iteration, ONNX Runtime uses 0 for each size of a row that it does not infer, and it infers less than is proved here.
#[test]
fn rows_of_a_loop_that_may_not_run_have_the_sizes_that_runtimes_infer() {
    let rows = |row: &str, declared: &str| {
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : 23]> g (int64 trips, float[n,4] x, float[n,c,k] z, float[1,2,8,8] image, float[4,2,k,3] w) => (y, size) {{
            y = Loop <body: graph = b (int64 i, bool c) => (bool d, {declared}) {{ d = Identity (c) {row} }}> (trips, \"\")
            sizes = Shape (y)
            last = Constant <value_int = -1> ()
            size = Gather (sizes, last) }}"
        );
        let mut model = OnnxModel::of(text::parse(&source).unwrap());
        model.fold(&Options::new().stamp(false)).unwrap();
        let written = model.text();
        (written.contains("Gather ("), written)
    };
    // A size that only a run determines: 4 in an iteration, 0 without one.
    let computed = "s = Shape <start = 1> (x) h = Constant <value_floats = [0.5]> () e = Expand (h, s)";
    let counted = "a = Constant <value_int = 0> () o = Constant <value_int = 4> () p = Identity (o) q = Constant <value_int = 1> () e = Range (a, p, q)";
    let nested = "t = Constant <value_int = 2> () e = Loop <body: graph = h (int64 j, bool f) => (bool k, o) { k = Identity (f) o = Constant <value_ints = [1, 2]> () }> (t, \"\")";
    let pooled = "o = Constant <value_ints = [0]> () u = Unsqueeze (x, o) e = MaxPool <kernel_shape = [1]> (u)";
    // An operator for which the runtime infers less than the standard defines.
    let attended = "o = Constant <value_ints = [0]> () u = Unsqueeze (x, o) e = Attention <q_num_heads = 2, kv_num_heads = 2> (u, u, u)";
    // An operand that the runtime's inference does not use.
    let normal = "s = Constant <value_floats = [1., 2., 3., 4.]> () u = InstanceNormalization (z, s, s) e = Transpose <perm = [0, 2, 1]> (u)";
    // An operand with an unknown size.
    let topped = "k = Constant <value_ints = [4]> () e, places = TopK (x, k)";
    let grouped = "s = Constant <value_floats = [1., 2., 3., 4.]> () o = Constant <value_ints = [2]> () u = Unsqueeze (x, o) v = GroupNormalization <num_groups = 2> (u, s, s) e = Transpose <perm = [0, 2, 1]> (v)";
    let convolved = "e = Conv (image, w)";
    let rounded = "e = MaxPool <kernel_shape = [1, 1], strides = [2, 2], ceil_mode = 1> (image)";
    // A shape of another rank.
    let leaky = "s = Constant <value_floats = [1., 2., 3., 4.]> () e = PRelu (s, x)";
    for row in [computed, counted, nested, pooled, attended, normal, topped, grouped, convolved, rounded, leaky] {
        let (is_open, written) = rows(row, "e");
        assert!(is_open, "{written}");
    }
    // A shape that the file declares.
    for (row, declared) in [("e = Relu (x)", "e"), ("e = Transpose <perm = [0, 1]> (x)", "e"), (computed, "float[4] e")]
    {
        let (is_open, written) = rows(row, declared);
        assert!(!is_open, "{written}");
    }
}

/// ONNX Runtime uses 0 for the unknown hidden size of an Attention's values, and allocates a branch's result once all other sizes are
/// known.
#[test]
fn results_of_a_branch_with_values_of_unknown_size_have_no_declared_shape() {
    let branches = |hidden: &str| {
        let source = format!(
            "<ir_version: 10, opset_import: [\"\" : 23]> g (bool c, float[2,4,24] q, float[2,6,24] k, float[2,6,{hidden}] v) => (y) {{
            y = If <then_branch: graph = yes () => (a) {{ a = Attention <q_num_heads = 3, kv_num_heads = 3> (q, k, v) }},
                else_branch: graph = no () => (b) {{ n = Neg (q) m = Attention <q_num_heads = 3, kv_num_heads = 3> (n, k, v) b = Relu (m) }}> (c) }}"
        );
        let mut model = OnnxModel::of(text::parse(&source).unwrap());
        model.fold(&Options::new().stamp(false)).unwrap();
        model.text()
    };
    let (open, known) = (branches("h"), branches("30"));
    assert!(open.contains("=> (float[] a)") && open.contains("=> (float[] b)"), "{open}");
    assert!(known.contains("=> (float[2,4,30] a)") && known.contains("=> (float[2,4,30] b)"), "{known}");
}
