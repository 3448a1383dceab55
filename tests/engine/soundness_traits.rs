//! Rules that depend on operator traits: nodes that must be kept because result bits depend on positions or scalars, because kernels leave
//! the range of the function, or because work for no element might fail.

use onnx_slice_fold::Options;

use crate::support::{self, folded};

fn operators(opset: i64, body: &str, exact: bool) -> Vec<String> {
    let source = format!("<ir_version: 8, opset_import: [\"\" : {opset}]>\n{body}");
    support::operators(&folded(&source, &Options::new().exact(exact)))
}

fn has(opset: i64, body: &str, exact: bool, operator: &str) -> bool {
    operators(opset, body, exact).iter().any(|own| own == operator)
}

/// A scalar exponent of 2 or 3 is computed as a product.
#[test]
fn a_single_exponent_rounds_otherwise() {
    let body = "g (float[N] x) => (y) <float e = {3.0}> { s = Shape (x)  ee = Expand (e, s)  y = Pow (x, ee) }";
    assert!(has(20, body, true, "Expand"));
    assert_eq!(operators(20, body, false), ["Pow"]);
    let filled = "g (float[N] x) => (y) { s = Shape (x)  ee = ConstantOfShape <value: tensor = float[1] {2.0}> (s)  y = Pow (x, ee) }";
    assert!(has(20, filled, true, "ConstantOfShape"));
    assert_eq!(operators(20, filled, false), ["Pow"]);
}

/// For integers it gives other numbers, so it is kept by default as well.
#[test]
fn a_scalar_exponent_of_integers_is_kept() {
    for exact in [false, true] {
        let body = "g (int64[N] x) => (y) <int64 e = {2}> { s = Shape (x)  ee = Expand (e, s)  y = Pow (x, ee) }";
        assert!(has(20, body, exact, "Expand"));
        let filled = "g (int64[N] x) => (y) { s = Shape (x)  ee = ConstantOfShape <value: tensor = int64[1] {2}> (s)  y = Pow (x, ee) }";
        assert!(has(20, filled, exact, "ConstantOfShape"));
        let sliced = "g (int64[N,4] x) => (y) <int64 e = {2}, int64[1] b = {0}, int64[1] u = {1}> { p = Pow (x, e)  y = Slice (p, b, u, u) }";
        assert_eq!(operators(20, sliced, exact), ["Pow", "Slice"]);
        let parts = "g (int64[N,4] x) => (y) <int64 e = {2}, int64[2] n = {2,2}> { a, b = Split <axis = 1> (x, n)  p = Pow (a, e)  q = Pow (b, e)  y = Mul (p, q) }";
        assert_eq!(operators(20, parts, exact), ["Split", "Pow", "Pow", "Mul"]);
    }
}

/// Kernels compute most elements of a vector together and the rest individually.
#[test]
fn functions_that_round_by_position_do_not_move_behind_a_slice() {
    let body = |function: &str| {
        format!(
            "g (float[N,13] x) => (y) <int64[1] b = {{1}}, int64[1] e = {{12}}, int64[1] ax = {{1}}, int64[1] st = {{3}}> {{ a = {function} (x)  y = Slice (a, b, e, ax, st) }}"
        )
    };
    for function in ["Acos", "Cos", "Exp", "Sigmoid", "Softplus", "Tanh", "Erf", "Gelu", "Log", "Mish"] {
        assert_eq!(operators(20, &body(function), true), [function, "Slice"]);
        assert_eq!(operators(20, &body(function), false), ["Slice", function]);
    }
    for function in ["Neg", "Relu", "Sqrt", "Floor", "Round", "IsNaN", "LeakyRelu"] {
        assert_eq!(operators(20, &body(function), true), ["Slice", function]);
    }
    // An expanded tensor has other positions as well.
    let spread = |function: &str| {
        format!(
            "g (float[1,N] x, float[M,N] w) => (y) {{ s = Shape (w)  e = Expand (x, s)  f = {function} (e)  y = Add (f, w) }}"
        )
    };
    assert_eq!(operators(20, &spread("Cos"), true), ["Shape", "Expand", "Cos", "Add"]);
    assert_eq!(operators(20, &spread("Cos"), false), ["Cos", "Add"]);
    assert_eq!(operators(20, &spread("Neg"), true), ["Neg", "Add"]);
}

/// The sign of a zero depends on which operand of Max is a scalar; integers have only one zero.
#[test]
fn a_single_operand_of_max_decides_on_zeros() {
    let body = |dtype: &str| {
        format!("g ({dtype} z, {dtype}[N] x) => (y) {{ s = Shape (x)  e = Expand (z, s)  y = Max (e, x) }}")
    };
    assert!(has(20, &body("float"), true, "Expand"));
    assert!(!has(20, &body("float"), false, "Expand"));
    assert!(!has(20, &body("int64"), true, "Expand"));
}

/// For `S = 0` nothing is looked up, and the index may be any.
#[test]
fn a_lookup_that_runs_for_no_index_is_not_run_once() {
    let body = |index: &str, size: &str| {
        format!(
            "g ({index}, float[4] d, float[{size}] w) => (y) {{ n = Shape (w)  e = Expand (i, n)  g = Gather (d, e)  y = Add (g, w) }}"
        )
    };
    assert!(has(18, &body("int64[1] i", "S"), false, "Expand"));
    assert!(!has(18, &body("int64[1] i", "3"), false, "Expand"), "three are looked up");
    let known = "g (float[4] d, float[S] w) => (y) <int64[1] i = {2}> { n = Shape (w)  e = Expand (i, n)  g = Gather (d, e)  y = Add (g, w) }";
    assert!(!has(18, known, false, "Expand"), "there is an entry 2 of 4");
    let beyond = "g (float[4] d, float[S] w) => (y) <int64[1] i = {7}> { n = Shape (w)  e = Expand (i, n)  g = Gather (d, e)  y = Add (g, w) }";
    assert!(has(18, beyond, false, "Gather"), "at S = 0 it runs");
}

/// For `S = 0` nothing is divided, and the divisor may be 0.
#[test]
fn a_division_of_nothing_is_not_run_once() {
    for operator in ["Div", "Mod"] {
        let body = |dtype: &str, size: &str| {
            format!(
                "g ({dtype}[1] i, {dtype}[{size}] w) => (y) {{ n = Shape (w)  e = Expand (i, n)  s = Constant <value: tensor = {dtype} {{7}}> ()  q = {operator} (s, e)  y = Add (q, w) }}"
            )
        };
        assert!(has(18, &body("int64", "S"), false, "Expand"), "{operator}");
    }
    let float = "g (float[1] i, float[S] w) => (y) <float s = {7.0}> { n = Shape (w)  e = Expand (i, n)  q = Div (s, e)  y = Add (q, w) }";
    assert!(!has(18, float, false, "Expand"), "floats are divided by anything");
    let known = "g (int64[1] i, int64[S] w) => (y) <int64 s = {7}> { n = Shape (w)  e = Expand (i, n)  q = Div (e, s)  y = Add (q, w) }";
    assert!(!has(18, known, false, "Expand"), "7 divides");
}

/// ONNX Runtime refuses a model with a constant integer 0 among divisors, even in a branch that is not taken, so such divisors are kept
/// computed.
#[test]
fn divisors_with_a_zero_are_kept_computed() {
    let branch = |divisor: &str, operator: &str| {
        format!(
            "g (bool c, int64[n] x) => (y) <int64[2] two = {{2, 0}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64 i = {{0}}, int64 j = {{1}}, int64[1] end = {{2}}> {{
                y = If <then_branch: graph = t () => (int64[k] o) {{ {divisor}  o = {operator} (x, d) }}, else_branch: graph = e () => (int64[k] p) {{ p = Identity (x) }}> (c) }}"
        )
    };
    for operator in ["Div", "Mod"] {
        for (divisor, stays) in [
            ("s = Shape (two)  z = Sub (s, two)  d = Slice (z, zero, one)", "Slice"),
            ("s = Size (x)  m = Add (s, end)  k = Squeeze (m)  r = Range (i, k, j)  d = Slice (r, zero, end)", "Slice"),
            ("s = Shape (two)  z = Sub (s, two)  u = Slice (z, zero, one)  d = Identity (u)", "Slice"),
        ] {
            assert!(inner_operators(&branch(divisor, operator)).contains(&stays.to_string()), "{operator} {divisor}");
        }
        let other = branch("s = Shape (two)  a = Add (s, two)  d = Slice (a, zero, one)", operator);
        assert!(!inner_operators(&other).contains(&"Slice".to_string()), "{operator}");
    }
}

/// Unrolling does not make the iteration number a constant divisor.
#[test]
fn loops_that_divide_by_their_iteration_number_are_kept() {
    let body = |operator: &str| {
        format!(
            "g (int64[n] x, bool[3] c) => (int64[a,n] y) <int64 three = {{3}}> {{
                w, y = Loop <body: graph = b (int64 i, bool d, int64[n] s) => (bool e, int64[n] t, int64[n] o) {{
                    e = Identity (d)  t = Identity (s)  q = Gather (c, i)
                    o = If <then_branch: graph = u () => (int64[n] p) {{ p = {operator} (x, i) }}, else_branch: graph = v () => (int64[n] r) {{ r = Mul (x, i) }}> (q)
                }}> (three, \"\", x) }}"
        )
    };
    let loops = |operator: &str| {
        let source = format!("<ir_version: 8, opset_import: [\"\" : 18]>\n{}", body(operator));
        support::operators(&folded(&source, &Options::new().unroll(64))).iter().filter(|own| *own == "Loop").count()
    };
    assert_eq!(["Div", "Mod", "Add"].map(loops), [1, 1, 0]);
}

/// Returns the operators in all graphs of the folded model.
fn inner_operators(body: &str) -> Vec<String> {
    let source = format!("<ir_version: 8, opset_import: [\"\" : 18]>\n{body}");
    let model = folded(&source, &Options::default());
    let nodes = model.graphs().flat_map(|graph| model.graph(graph).nodes().collect::<Vec<_>>());
    nodes.filter_map(|id| model.node(id)).map(|node| node.op_type.to_string()).collect()
}
