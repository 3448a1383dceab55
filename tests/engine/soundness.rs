//! Models that were once folded wrongly, and variants of them. The premise that failed is a comment above its tests.

use onnx_slice_fold::ir::{Data, DeclaredType, Model, text};
use onnx_slice_fold::tensor::Tensor;
use onnx_slice_fold::{OnnxModel, Options};

fn parse(opset: i64, body: &str) -> Model {
    let source = format!("<ir_version: 10, opset_import: [\"\" : {opset}]>\n{body}");
    text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

fn fold_with(model: &Model, options: &Options) -> Model {
    let mut document = OnnxModel::of(model.clone());
    document.fold(options).expect("the model folds");
    document.model().clone()
}

/// Returns the folded model as text.
fn folded(opset: i64, body: &str) -> String {
    crate::support::written(&fold_with(&parse(opset, body), &Options::default()))
}

/// Checks that the original and the folded model give equal results for these inputs, up to a relative error of 1e-5.
fn same(opset: i64, body: &str, given: &[Tensor]) {
    let model = parse(opset, body);
    let result = fold_with(&model, &Options::default());
    let run = |model: &Model| {
        let given = given.iter().cloned().map(Data::Tensor).collect();
        crate::support::run(model, given).unwrap_or_else(|error| panic!("{error}\n{}", text::print(model)))
    };
    for (before, after) in run(&model).iter().zip(&run(&result)) {
        let numbers = |data: &Data| data.tensor().and_then(Tensor::to_f64s).unwrap_or_default();
        let near = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-5 * a.abs();
        let (a, b) = (numbers(before), numbers(after));
        let alike = a.len() == b.len() && a.iter().zip(&b).all(near);
        assert!(alike && before.ty() == after.ty(), "{before:?}\n{after:?}\n{}", text::print(&result));
    }
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_vec(shape, values.to_vec()).unwrap()
}

fn int64(value: i64) -> Tensor {
    Tensor::from_vec(&[], vec![value]).unwrap()
}

#[track_caller]
fn keeps(opset: i64, body: &str, parts: &[&str]) {
    let result = folded(opset, body);
    for part in parts {
        assert!(result.contains(part), "'{part}' is gone:\n{result}");
    }
}

#[track_caller]
fn lacks(opset: i64, body: &str, part: &str) {
    let result = folded(opset, body);
    assert!(!result.contains(part), "'{part}' stays:\n{result}");
}

// A window of a padding pool may contain only padding, and one of a pool without padding only NaN. The result is then the lowest number of
// the type.

#[test]
fn a_cut_behind_a_padded_pool() {
    let body =
        |pool: &str| format!("g (float[n,1,w] x) => (y) {{ a = Relu (x)  b = MaxPool <{pool}> (a)  y = Relu (b) }}");
    keeps(20, &body("dilations = [3], kernel_shape = [2], pads = [1,1]"), &["y = Relu"]);
    keeps(20, &body("kernel_shape = [2], auto_pad = \"SAME_UPPER\""), &["y = Relu"]);
    keeps(20, &body("kernel_shape = [2], dilations = [3]"), &["y = Relu"]);
}

#[test]
fn a_pad_between_pools() {
    keeps(20, "g (float[n,1,2] x) => (y) <int64[6] p = {0,0,1,0,0,1}> { r = Relu (x)
        m = MaxPool <dilations = [3], kernel_shape = [2], pads = [1,1]> (r)  a = Pad (m, p)  y = MaxPool <kernel_shape = [2]> (a) }", &["Pad ("]);
}

// Runtimes refuse to pool over an empty axis, padded or not.

#[test]
fn a_pad_that_fills_an_empty_picture() {
    let body = |h: &str, pool: &str| {
        format!(
            "g (float[n,1,{h},4] x) => (y) <int64[8] p = {{0,0,1,1,0,0,1,1}}> {{ r = Relu (x)  a = Pad (r, p)  y = {pool} <kernel_shape = [2,2]> (a) }}"
        )
    };
    for pool in ["AveragePool", "MaxPool"] {
        keeps(20, &body("h", pool), &["Pad ("]);
        lacks(20, &body("5", pool), "Pad (");
    }
}

// A kernel with padding starts from the lowest finite number, so −∞ is not its neutral element.

#[test]
fn a_pad_of_minus_infinity() {
    let body = |x: &str| {
        format!(
            "g (float[n,1,3,3] x) => (y) <int64[8] p = {{0,0,1,1,0,0,1,1}}, float v = {{-inf}}> {{ r = {x} (x)  a = Pad (r, p, v)  y = MaxPool <kernel_shape = [2,2]> (a) }}"
        )
    };
    keeps(20, &body("Neg"), &["Pad ("]);
    lacks(20, &body("Relu"), "Pad (");
}

// Scaled weights are normal numbers, far enough from the limits of their type; computed values are scaled by small factors only.

const TINY: &str = "float[3,4] w = {1e-30,2e-30,3e-30,4e-30,5e-30,6e-30,7e-30,8e-30,9e-30,1e-29,1.1e-29,1.2e-29}";

#[test]
fn factors_that_make_weights_underflow() {
    let x = [floats(&[2, 3], &[1e30; 6])];
    same(
        20,
        &format!(
            "g (float[n,3] x) => (y) <{TINY}, float c = {{1e-20}}> {{ a = MatMul (x, w)  b = Transpose (a)  y = Mul (b, c) }}"
        ),
        &x,
    );
    same(
        20,
        &format!("g (float[n,3] x) => (y) <{TINY}, float c = {{1e-20}}> {{ a = MatMul (x, w)  y = Mul (a, c) }}"),
        &x,
    );
    same(
        20,
        &format!("g (float[n,3] x) => (y) <{TINY}, float c = {{1e20}}> {{ a = MatMul (x, w)  y = Div (a, c) }}"),
        &x,
    );
    // One weight of a column underflows, and it is the significant one.
    same(
        20,
        "g (float[n,2] x) => (y) <float[2,1] w = {1,1e-30}, float c = {1e-20}> { a = MatMul (x, w)  y = Mul (a, c) }",
        &[floats(&[1, 2], &[0.0, 1e30])],
    );
    same(
        20,
        "g (double[n,2] x) => (y) <double[2,1] w = {1e-200,2e-200}, double c = {1e-150}> { a = MatMul (x, w)  y = Mul (a, c) }",
        &[Tensor::from_vec(&[1, 2], vec![1e200f64, 1e200]).unwrap()],
    );
}

#[test]
fn factors_that_make_values_overflow() {
    let body = |factor: &str, dtype: &str| {
        format!("g ({dtype}[n,3] x, {dtype}[4,n] k) => (y) <{dtype}[3,4] w = {{1,0,0,0,0,1,0,0,0,0,1,0}}, {dtype} c = {{{factor}}}> {{
        q = MatMul (x, w)  t = Transpose (q)  p = Mul (t, k)  y = Mul (p, c) }}")
    };
    same(20, &body("1e30", "float"), &[floats(&[2, 3], &[1e10; 6]), floats(&[4, 2], &[1e-30; 8])]);
    let half = |shape: &[usize], value: f32| {
        Tensor::from_vec(shape, vec![half::f16::from_f32(value); shape.iter().product()]).unwrap()
    };
    same(20, &body("1000", "float16"), &[half(&[2, 3], 500.0), half(&[4, 2], 0.01)]);
    // An ordinary factor still moves into the weights.
    lacks(20, &body("0.125", "float"), "Mul (p");
}

// An exact sum becomes the difference of two large numbers.

#[test]
fn shifts_that_cancel() {
    let terms = |a: &str, b: &str| {
        format!("g (float[n] x) => (y) <float a = {{{a}}}, float b = {{{b}}}> {{ s = Add (x, a)  y = Add (s, b) }}")
    };
    same(20, &terms("1000000", "0.001"), &[floats(&[1], &[-1e6])]);
    same(20, &terms("1.5", "2"), &[floats(&[2], &[-3.5, 1e-9])]);
}

// Operators without a kernel for a type, and attributes that are less precise than constants.

#[test]
fn activations_of_doubles() {
    keeps(
        20,
        "g (double[n] x) => (y) <double three = {3}, double z = {0}, double six = {6}> {
        a = Add (x, three)  c = Clip (a, z, six)  m = Mul (x, c)  y = Div (m, six) }",
        &["Clip ("],
    );
    keeps(24, "g (double[n] x) => (y) { a = Sigmoid (x)  y = Mul (x, a) }", &["Sigmoid ("]);
}

// For a Loop without iterations, runtimes give the empty result the shape that they infer for a row.

#[test]
fn rows_of_a_loop_that_may_not_run() {
    let body = |trips: &str| {
        format!(
            "g (float[n,4] x, int64 m) => (y, float[] z) <bool c = {{1}}, int64 two = {{2}}> {{
        y, z = Loop ({trips}, c, x) <body: graph = b (int64 i, bool d, float[] s) => (bool e, float[] t, float[] o) {{
            t = Neg (s)  e = Identity (d)  o = Abs (t) }}> }}"
        )
    };
    let result = folded(17, &body("m"));
    assert!(result.contains("float[] o") && !result.contains("float[n, 4] o"), "{result}");
    let unsized_rows = fold_with(&parse(17, &body("m")), &Options::default());
    let named = unsized_rows.graphs().flat_map(|graph| unsized_rows.graph(graph).outputs().to_vec());
    let rows: Vec<_> = named.filter(|&value| unsized_rows.value(value).name == "o").collect();
    assert!(
        rows.iter().all(|&value| unsized_rows.value(value).declared.as_ref().is_none_or(|ty| ty.shape().is_none()))
    );
}

// A size that makes two entries of a target 0 may copy two dims, one of which is not 0.

#[test]
fn entries_of_a_target_that_become_zero_together() {
    let source = "g (float[n,m,2] x) => (y) <int64[1] z = {0}, int64[1] o = {1}, int64[1] t = {2}, int64[1] ax = {3}> {
        s = Shape (x)  n0 = Slice (s, z, o)  m0 = Slice (s, o, t)  m2 = Mul (m0, t)  sh = Concat <axis = 0> (n0, m2, n0)
        es = Concat <axis = 0> (n0, m0, t, n0)  u = Unsqueeze (x, ax)  e = Expand (u, es)  v = Reshape (e, sh)  w = Shape (v)  y = Cast <to = 7> (w) }";
    for n in [0, 1, 4] {
        let x = floats(&[n, 3, 2], &vec![1.0; n * 6]);
        same(17, source, &[x]);
    }
}

// Proofs about integers of any sign.

#[test]
fn comparisons_of_run_time_integers() {
    let cubes = |c: &str| {
        format!(
            "g (int64 k) => (g) <int64 z = {{{c}}}> {{ a = Mul (k, k)  b = Mul (a, k)  d = Sub (b, a)  g = GreaterOrEqual (d, z) }}"
        )
    };
    for (c, k) in [("0", -1), ("-2000000000", -2000), ("0", 3), ("0", 0)] {
        same(18, &cubes(c), &[int64(k)]);
    }
}

#[test]
fn arithmetic_that_wraps() {
    let wide = "g (int64 k) => (g, h) <int64 z = {0}, int64 o = {1}> { a = Mul (k, k)  g = GreaterOrEqual (a, z)  b = Add (k, o)  h = Greater (b, k) }";
    for k in [0, 5, 3_037_000_500, i64::MAX] {
        same(18, wide, &[int64(k)]);
    }
    let narrow = "g (int32 k) => (g) <int32 z = {0}> { a = Mul (k, k)  g = GreaterOrEqual (a, z) }";
    for k in [50_000, 3, -46_341] {
        same(18, narrow, &[Tensor::from_vec(&[], vec![k]).unwrap()]);
    }
    let cast = "g (int64 k) => (g) { a = Cast <to = 6> (k)  b = Cast <to = 7> (a)  g = Equal (b, k) }";
    same(18, cast, &[int64(1 << 40)]);
    // For sizes it is still assumed.
    lacks(
        18,
        "g (float[n,m] x) => (g) <int64 z = {0}> { s = Size (x)  g = GreaterOrEqual (s, z) }",
        "GreaterOrEqual (",
    );
}

// Some kernels treat only 1 as true, or refuse other numbers than 0 and 1.

#[test]
fn flags_that_are_neither_0_nor_1() {
    keeps(
        13,
        "g (float[n] x) => (y, z) <int64[1] most = {2}, int64[1] one = {1}> {
        s = Shape (x)  c = Concat <axis = 0> (most, s)  m = ReduceMin <keepdims = 2> (c)  k = Reshape (m, one)  y, z = TopK (x, k) }",
        &["Reshape (m", "ReduceMin <keepdims"],
    );
}

// A node may read the same value as data and as a bound.

// Products of sizes fit their type because they count elements. Multiplied by a number of the model, they may wrap.

#[test]
fn sizes_that_meet_large_numbers() {
    let steps = ["r = Mul (m, big)", "q = Div (m, n)  r = Mul (q, big)", "p = Add (m, big)  r = Add (p, big)"];
    for ((dtype, code, big), steps) in
        [("int32", 6, 1i64 << 30), ("int64", 7, 1 << 62)].into_iter().flat_map(|of| steps.map(|steps| (of, steps)))
    {
        let body = format!(
            "g (float[a,b] x) => (y) <int64 i = {{0}}, int64 j = {{1}}, {dtype} big = {{{big}}}, int64[1] zero = {{0}}, int64[1] all = {{-1}}>
            {{ s = Shape (x)  t = Cast <to = {code}> (s)  m = Gather (t, i)  n = Gather (t, j)  {steps}
            e = Cast <to = 7> (r)  f = Reshape (e, all)  y = Slice (x, zero, f, zero) }}"
        );
        for rows in [1, 2, 4] {
            same(17, &body, &[floats(&[rows, 1], &vec![1.0; rows])]);
        }
    }
}

#[test]
fn a_slice_of_itself() {
    let body =
        |slice: &str| format!("g (int64[1] x) => (z) <int64[1] e = {{5}}> {{ y = Neg (x)  z = Slice ({slice}) }}");
    for slice in ["y, y, e", "y, x, y", "y, e, y, y"] {
        let _ = folded(17, &body(slice));
    }
    same(17, &body("y, y, e"), &[Tensor::vector(vec![0i64])]);
    same(17, "g (int64[2] x) => (z) { y = Neg (x)  z = Gather (y, y) }", &[Tensor::vector(vec![0i64, -1])]);
}

// Runtimes skip empty operands of a Concat.

#[test]
fn dims_of_a_concat_with_an_empty_operand() {
    let sized = |x: &str, w: &str| format!("g (float[{x}] x, float[{w}] w) => (y) {{ y = Concat <axis = 0> (x, w) }}");
    for open in [["a,b", "c,d"], ["a,b", "2,d"]] {
        let result = folded(18, &sized(open[0], open[1]));
        assert!(!["b", "d"].iter().any(|dim| result.contains(&format!(",{dim}] y"))), "{result}");
    }
    keeps(18, &sized("a,b", "c,b"), &["b] y"]);
    keeps(18, &sized("a,b", "2,3"), &["3] y"]);
}

// Operands of failing or disputed nodes are not made constant.

#[test]
fn operands_of_nodes_that_cannot_work() {
    keeps(18, "g (bool p) => (y, e, s) <int64[1] o = {1}> { d = Sub (o, o)
        y, w = If (p) <then_branch: graph = tb () => (ta, ty) { ta = Constant <value_ints = [2147483647]> ()  st = Constant <value_ints = [-2]> ()
            dd = Constant <value_ints = [0]> ()  ty = Slice (d, d, ta, dd, st) }, else_branch: graph = f () => (fa, fy) {
            fa = Identity (o)  fy = Constant <value_int = 1> () }>
        e = Neg (d)  s = Shape (w) }", &["Sub (o, o)", "Slice (d, d"]);
    keeps(17, "g (float[3] x, bool p) => (float[] y) <int64[1] one = {1}> { s = Add (one, one)
        y = If (p) <then_branch: graph = t () => (float[] a) { a = Expand (x, s) }, else_branch: graph = e () => (float[] b) { b = Neg (x) }> }",
        &["Add (one, one)", "Expand (x, s)"]);
}

#[test]
fn operands_of_a_failing_node() {
    // Rows of a Loop that may not run have the shape that a runtime infers for one, if it can.
    keeps(17, "g (int64 n, int64[2] pads) => (y) <int64[0,0,0,1] e = {}, int64[2] none = {2,0}> { d = Concat <axis = 1> (e, e)
        s, rows = Loop (n, \"\", d) <body: graph = b (int64 i, bool c, int64[] s) => (bool go, int64[] t, int64[] u) {
            go = Identity (c)  t = Mul (s, d)  u = Abs (t) }>
        y = Pad (rows, none) }", &["Concat <", "Mul (s, d)", "Abs (t)"]);
    // A Reshape with a constant target determines the rank.
    keeps(17, "g (float[a,b] x) => (y) <int64[3] none = {0,0,0}, int64[1] one = {1}> { s = Shape (x)  t = Concat <axis = 0> (s, one)  r = Reshape (x, t)
        y = Pad (r, none) }", &["Reshape (x, t)", "Concat <"]);
    // This one fails for every operand of the Reshape.
    lacks(17, "g (float[a,b] x) => (y) <int64[1] one = {1}> { s = Shape (x)  t = Concat <axis = 0> (s, one)  r = Reshape (x, t)
        y = Cast (r) }", "Concat <");
}

#[test]
fn equal_values_are_not_exchanged_before_a_failing_node() {
    // A runtime knows the rank of the Reshape's result, but not that of the equal Expand's.
    keeps(18, "g (float[n,1] x) => (k) <int64 zero = {0}, int64 one = {1}, int64[2] rows = {-1,1}, int64[4,1] b = {3,3,3,3}, int64[1] last = {-1}> {
        s = Shape (x)  n = Gather (s, zero)  i = Range (zero, n, one)  r = Reshape (i, rows)  e = Expand (r, s)  t = Transpose (b)
        u = Unsqueeze (e, last)  v = Unsqueeze (t, last)  w = Expand (v, one)  k = Concat <axis = -1> (u, w) }", &["Expand (r, s)"]);
}

/// A runtime inlines the nodes of a function: the result of the call may be an operand on which an inner node fails.
#[test]
fn shapes_on_which_a_node_in_a_function_fails_are_not_declared() {
    let source = |axis: i64| {
        format!("<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]>
        g (float[n,4] x, int64[1] given, bool p) => (z, float[] r) <int64[1] at = {{{axis}}}> {{
            y, r = own.F (x, given, at)  z = If (p) <then_branch: graph = t () => (a) {{ a = Abs (y) }}, else_branch: graph = e () => (b) {{ b = Neg (y) }}> }}
        <domain: \"own\", opset_import: [\"\" : 17]>
        F (x, given, at) => (y, r) {{ r = ReduceSum <keepdims = 0> (x, given)  y = Unsqueeze (r, at) }}")
    };
    let options = Options::new().only(["identity"]);
    let declared = |axis: i64| {
        let (model, _) = crate::support::folded_unrun(&source(axis), &options);
        let output = model.graph(model.main()).outputs()[1];
        model.value(output).declared.as_ref().and_then(DeclaredType::shape).is_some()
    };
    assert!(declared(-2));
    assert!(!declared(-3));
}

/// The third operand is undefined; a Gemm would read it as its bias, and the bias as a fourth operand.
#[test]
fn operands_that_an_operator_does_not_have() {
    keeps(
        17,
        "g (float[2,3] x) => (y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] b = {1,2,3,4}> { m = MatMul (x, w, b)  y = Add (m, b) }",
        &["MatMul (x, w, b)", "Add (m, b)"],
    );
}

#[test]
fn a_model_without_outputs_stays() {
    keeps(17, "g (float[3] x) => () <float c = {1}> { y = Neg (x)  z = Add (y, c) }", &["Neg (x)", "Add (y, c)"]);
}

// Premise: a node that dequantizes weights in a subgraph has its scale in the same subgraph. ONNX Runtime searches only there when it fuses
// the two, and refuses the model if the scale is elsewhere.

#[test]
fn scales_in_a_body_are_not_shared_with_the_graph_around_it() {
    let body = "g (float[s,3,4] x) => (float[s,3,4] w, float[s,3,3] y) <float scale = {2.5}> {
        w = Pow (x, scale)
        y = Scan <num_scan_inputs = 1, body: graph = b (float[3,4] row) => (float[3,3] r)
            <uint8[4,3] q = {1,2,3,4,5,6,7,8,9,10,11,12}, float k = {2.5}, uint8 z = {4}> {
            d = DequantizeLinear (q, k, z)
            r = MatMul (row, d)
        }> (x)
    }";
    keeps(15, body, &["float k = {2.5}", "DequantizeLinear (q, k, z)"]);
}

// Premise: before opset 11 a Loop has a carried value.

#[test]
fn an_old_loop_has_a_carried_value() {
    let body = "g (int64 x) => (int64[2] y) <int64 trips = {2}, bool go = {1}> {
        last, y = Loop <body: graph = b (int64 i, bool c, int64 s) => (bool again, int64 t, int64 row) {
            again = Identity (c)
            t = Identity (s)
            row = Add (s, i)
        }> (trips, go, x)
    }";
    let looped = |opset| {
        let model = parse(opset, body);
        crate::support::written(&fold_with(&model, &Options::new().skip(["unrolled-loop"])))
    };
    assert!(looped(10).contains("(trips, go, x)"), "{}", looped(10));
    assert!(looped(11).contains("(trips, go)"), "{}", looped(11));
}

// Premise: for a Loop that may have no rows, the runtime knows no more about a row than before.

#[test]
fn rows_of_no_iteration_have_the_inferred_shape() {
    let body = "g (float[n,4] x, int64 m) => (y) <bool go = {1}> {
        last, y = Loop <body: graph = b (int64 i, bool c, float[] s) => (bool again, float[] t, float[] row) {
            again = Identity (c)
            t = Identity (s)
            row = Softmax (s)
        }> (m, go, x)
    }";
    keeps(17, body, &["Softmax (s)"]);
}

// Premise: before opset 11 the branches of an If have results of equal shape, which ONNX Runtime checks where it knows the shapes.

#[test]
fn differing_old_branches_have_no_declared_shape() {
    let body = "g (bool c, float[3] x) => (y) <bool[1] first = {1}> {
        y = If <then_branch: graph = t () => (a) { a = Compress <axis = 0> (x, first) },
                else_branch: graph = e () => (b) { b = Neg (x) }> (c)
    }";
    lacks(10, body, "float[1] a");
    keeps(11, body, &["float[1] a"]);
}

// Premise: for a Loop that never runs, the runtime knows no more about its rows than before.

#[test]
fn operands_of_rows_of_no_iteration_are_kept() {
    let body = "g (float[2,4] x) => (y) <int64 three = {3}, bool stop = {0}> {
        s = Shape (x)
        last, y = Loop <body: graph = b (int64 i, bool c, int64[] v) => (bool again, int64[] w, int64[] row) {
            again = Identity (c)
            w = Identity (v)
            row = Identity (v)
        }> (three, stop, s)
    }";
    keeps(17, body, &["s = Shape (x)", "row = Identity (v)"]);
}

/// A consumer that ignores the version reads an attribute of another version. Runtimes refuse or ignore it.
#[test]
fn attributes_of_other_versions_are_not_read() {
    // Since version 18 the axes are an operand, and without it all axes are reduced.
    let unknown = "g (float[N,8] x) => (y) { m = ReduceMean <axes = [1]> (x)  y = Abs (m) }";
    let shape = |body: &str| {
        let model = fold_with(&parse(18, body), &Options::default());
        let output = model.graph(model.main()).outputs()[0];
        model.value(output).declared.as_ref().and_then(DeclaredType::shape).is_some()
    };
    assert!(!shape(unknown));
    assert!(shape("g (float[N,8] x) => (y) <int64[1] axes = {1}> { m = ReduceMean (x, axes)  y = Abs (m) }"));
    keeps(
        18,
        "g (float[N,8] x) => (y) { m = ReduceMean <axes = [1], keepdims = 0> (x)  y = Unsqueeze <axes = [1]> (m) }",
        &["Unsqueeze <axes"],
    );
    keeps(
        13,
        "g (float[3,1] x) => (y) { a = Unsqueeze <axes = [0]> (x)  y = Squeeze <axes = [0]> (a) }",
        &["Unsqueeze", "Squeeze"],
    );
    keeps(13, "g (float[4] x) => (y, z) { y, z = Split <split = [1, 3]> (x) }", &["Split"]);
    keeps(
        11,
        "g (float[3] x) => (y) <float six = {6}, float nine = {9}> { a = Clip <max = 1.0> (x, \"\", six)  y = Clip (a, \"\", nine) }",
        &["(x, \"\", six)", "(a, \"\", nine)"],
    );
    keeps(13, "g (float[2,2] x) => (y) { a = Pad <pads = [0, 0, 0, 0]> (x)  y = Neg (a) }", &["Pad <pads"]);
    keeps(10, "g (float[4] x) => (y) { y = Slice <starts = [0], ends = [9]> (x) }", &["Slice"]);
    // Up to version 13 there is one operand.
    keeps(13, "g (float[2,1] x) => (y) <int64[1] one = {1}> { y = ReduceMean (x, one) }", &["ReduceMean (x, one)"]);
    // An attribute of no version is kept and ignored.
    lacks(13, "g (float[2,2] x) => (y) { y = Identity <stays = 7> (z)  z = Neg (x) }", "Identity");
}

/// A kept node keeps its domain when its subgraph replaces the If.
#[test]
fn attributes_of_other_versions_are_kept_in_a_taken_branch() {
    let body = "g (float[N,8] x) => (y) <bool yes = {1}> {
        y = If (yes) <then_branch: graph = t () => (a) { a = ReduceMean <axes = [1]> (x) }, else_branch: graph = e () => (b) { b = Neg (x) }> }";
    let model = fold_with(&parse(18, body), &Options::default());
    let nodes: Vec<_> = model.graph(model.main()).nodes().filter_map(|id| model.node(id)).collect();
    assert!(matches!(nodes.as_slice(), [node] if node.is("ReduceMean")), "{}", text::print(&model));
}

/// ONNX Runtime does not pack weights that are two graphs further out, and then sums a single row in another order.
#[test]
fn weights_stay_where_they_are_packed_if_results_are_to_be_exact() {
    let weight = |name: &str| {
        format!("float[8,8] {name} = {{{}}}", (0..64).map(|i| (i % 9).to_string()).collect::<Vec<_>>().join(", "))
    };
    let branches = format!(
        "y = If (c) <then_branch: graph = p () => (o) <{}> {{ r = MatMul (x, w)  o = Tanh (r) }},
            else_branch: graph = n () => (u) <{}> {{ q = MatMul (x, v)  u = Neg (q) }}>",
        weight("w"),
        weight("v")
    );
    let nested = format!(
        "g (float[N,8] x, bool c, bool d) => (z) {{
            z = If (d) <then_branch: graph = t () => (y) {{ {branches} }}, else_branch: graph = e () => (a) {{ a = Neg (x) }}> }}"
    );
    let beside = format!("g (float[N,8] x, bool c) => (y) {{ {branches} }}");
    let weights = |body: &str, exact: bool| {
        let model = fold_with(&parse(17, body), &Options::new().exact(exact));
        model
            .graphs()
            .filter(|&graph| model.is_live(graph))
            .map(|graph| model.graph(graph).initializers().len())
            .sum::<usize>()
    };
    assert_eq!([weights(&nested, false), weights(&nested, true)], [1, 2]);
    // Those of the next graph are packed.
    assert_eq!([weights(&beside, false), weights(&beside, true)], [1, 1]);
    // A consumer of a weight does not move closer to it either.
    let decided = "g (float[N,8] x, bool d) => (z) <bool c = {1}, WEIGHT> {
        z = If (d) <then_branch: graph = t () => (y) {
            y = If (c) <then_branch: graph = p () => (o) { r = MatMul (x, w)  o = Tanh (r) }, else_branch: graph = n () => (u) { u = Neg (x) }> },
            else_branch: graph = e () => (a) { a = Neg (x) }> }"
        .replace("WEIGHT", &weight("w"));
    let ifs = |exact: bool| {
        let model = fold_with(&parse(17, &decided), &Options::new().exact(exact));
        crate::support::written(&model).matches("If (").count()
    };
    assert_eq!([ifs(false), ifs(true)], [1, 2]);
}

// Premise: the same for a Loop that may not run.

#[test]
fn nodes_that_reveal_the_shape_of_missing_rows_are_kept() {
    let body = |row: &str, declared: &str| {
        format!(
            "g (int64 trips, float[6] x) => (y) <int64[1] two = {{2}}, int64[1] three = {{3}}> {{
                k = Concat <axis = 0> (two, three)
                y = Loop <body: graph = b (int64 i, bool c) => (bool again, {declared} row) {{
                    again = Identity (c)  m = Concat <axis = 0> (three, two)  {row}
                }}> (trips, \"\")
            }}"
        )
    };
    // Without a row ONNX Runtime gives [0] or [0, 3, 2], depending on its knowledge of a row's shape; knowledge outside of the Loop counts
    // as well.
    keeps(17, &body("row = Reshape (x, m)", "float[]"), &["m = Concat", "Reshape (x, m)"]);
    keeps(17, &body("row = Reshape (x, k)", "float[]"), &["k = Concat", "Reshape (x, k)"]);
    // It always knows the declarations of the file.
    lacks(17, &body("row = Reshape (x, m)", "float[3, 2]"), "m = Concat");
    keeps(17, &body("row = Reshape (x, m)", "float[3, k]"), &["m = Concat"]);
    let once = body("row = Reshape (x, m)", "float[]")
        .replace("int64 trips, ", "")
        .replace("two = {2}", "two = {2}, int64 trips = {1}");
    lacks(17, &once, "m = Concat");
}

// Premise: before opset 11 a runtime that knows different shapes of an If's branches refuses the model, so it must know no more than
// before.

#[test]
fn nodes_that_reveal_differing_old_branches_are_kept() {
    let body = "g (bool c, float[6] x) => (y) <int64[1] two = {2}, int64[1] three = {3}> {
        y = If (c) <then_branch: graph = t () => (float[] a) { k = Concat <axis = 0> (two, three)  a = Reshape (x, k) },
                    else_branch: graph = e () => (float[] b) { m = Concat <axis = 0> (three, two)  b = Reshape (x, m) }>
    }";
    keeps(10, body, &["k = Concat", "m = Concat"]);
    lacks(11, body, "k = Concat");
}

// Premise: ONNX Runtime uses 0 for an unknown number of sizes, and compares it with the rank of the Resize's operand if it knows that.

#[test]
fn the_rank_of_a_resize_with_an_unknown_number_of_sizes_is_not_declared() {
    let body = "g (float[1,16,4] x, int64[1] first, int64[n] rest) => (y) <int64[1] one = {1}, int64[1] four = {4}, int64[1] two = {2}, int64[1] zero = {0}> {
        into = Concat <axis = 0> (one, four, four, rest)
        image = Reshape (x, into)
        turned = Transpose <perm = [0, 3, 1, 2]> (image)
        s = Shape (turned)
        front = Slice (s, first, two, zero)
        sizes = Concat <axis = 0> (front, four, four)
        y = Resize (turned, \"\", \"\", sizes)
    }";
    let result = folded(17, body);
    for name in ["] turned", "] image"] {
        let before: Vec<&str> = result.split(name).collect();
        let stated = before.len() > 1 && !before.first().is_some_and(|text| text.ends_with('['));
        assert!(!stated, "{result}");
    }
}

// Premise: a false shape in a subgraph that may not run is kept, if it hides a rank or type that a node refuses.

#[test]
fn a_false_shape_that_hides_a_refused_operand_is_kept() {
    let body = "g (int64 trips, float[1,2,3,4] x, float[4,4] w) => (y) {
        y = Loop <body: graph = b (int64 i, bool c, float[2,4] v) => (bool again, float[] next) {
            again = Identity (c)  next = Gemm (v, w)
        }> (trips, \"\", x)
    }";
    keeps(17, body, &["float[2,4] v"]);
}

// Premise: facts that a runtime does not know inside of a taken branch are still unknown to it afterwards.

#[test]
fn a_branch_with_a_failing_node_is_kept() {
    let body = "g (float[4] x) => (y) <bool c = {1}, int64 once = {1}> {
        y = If (c) <then_branch: graph = t () => (float[] p) {
            s = SequenceConstruct (x, x)  p = ConcatFromSequence <axis = 0, new_axis = 3> (s) },
            else_branch: graph = e () => (float[] q) { q = Relu (x) }>
    }";
    keeps(17, body, &["y = If (c)"]);
}
