//! Rewrites on models in text form: each is run before and after, and shown as a snapshot.

mod support;

use onnx_slice_fold::Options;
use onnx_slice_fold::ir::text;
use support::folded;

/// Folds, compares, and gives the text of what is left.
fn shown(source: &str) -> String {
    text::print(&folded(source, &Options::default()))
}

/// How many nodes of an operator are left.
fn count(source: &str, operator: &str) -> usize {
    let model = folded(source, &Options::default());
    let graph = model.graph(model.main());
    graph.nodes().filter(|&id| model.node(id).is_some_and(|node| node.is(operator))).count()
}

const HEAD: &str = r#"<ir_version: 8, opset_import: ["" : 17]>"#;

macro_rules! rewrites {
    ($($name:ident: $body:literal;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(shown(&format!("{HEAD}\n{}", $body)));
        })*
    };
}

rewrites! {
    reshape_by_shape_chain: "g (float[batch,seq,32] x) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}, int64[1] heads = {4}, int64[1] depth = {8}> {
        s = Shape (x)  b = Gather (s, zero)  bu = Unsqueeze (b, axis)
        s2 = Shape (x)  t = Gather (s2, one)  tu = Unsqueeze (t, axis)
        target = Concat <axis = 0> (bu, tu, heads, depth)
        y = Reshape (x, target) }";
    reshape_with_one_open_size: "g (float[seq,6] x) => (y) <int64 zero = {0}, int64 two = {2}, int64[1] axis = {0}, int64[1] three = {3}> {
        s = Shape (x)  n = Gather (s, zero)  m = Mul (n, two)  mu = Unsqueeze (m, axis)
        target = Concat <axis = 0> (mu, three)
        y = Reshape (x, target) }";
    reshape_that_adds_axes: "g (float[batch,seq] x) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}, int64[2] ones = {1,1}> {
        s = Shape (x)  b = Gather (s, zero)  bu = Unsqueeze (b, axis)  t = Gather (s, one)  tu = Unsqueeze (t, axis)
        target = Concat <axis = 0> (bu, ones, tu)
        y = Reshape (x, target) }";
    expand_to_own_shape: "g (float[batch,seq] x) => (y) { s = Shape (x)  e = Expand (x, s)  y = Relu (e) }";
    neutral_elements: "g (int64[n] x, float[n] f) => (y, z) <int64 zero = {0}, int64 one = {1}, float fone = {1.0}> {
        a = Add (x, zero)  b = Mul (one, a)  c = Sub (b, zero)  y = Neg (c)
        d = Mul (f, fone)  e = Div (d, fone)  z = Neg (e) }";
    transposes: "g (float[a,b,c] x) => (y) { t = Transpose <perm = [1,2,0]> (x)  u = Transpose <perm = [2,0,1]> (t)  y = Relu (u) }";
    reshapes: "g (float[n,12] x) => (y) <int64[3] s = {0,3,4}, int64[3] t = {0,4,3}> { a = Reshape (x, s)  b = Reshape (a, t)  y = Relu (b) }";
    decided_where: "g (float[n] x, float[n] y) => (z) <bool[1] c = {1}> { w = Where (c, x, y)  z = Relu (w) }";
    comparison_of_sizes: "g (float[n] x) => (y) <int64[1] minus = {-1}> {
        s = Shape (x)  e = Equal (s, minus)  one = ConstantOfShape <value: tensor = int64[1] {7}> (minus2)  t = Where (e, one, s)  z = Expand (x, t)  y = Relu (z)
        minus2 = Constant <value: tensor = int64[1] {1}> () }";
    common_subexpressions: "g (float[n] x) => (y) { a = Exp (x)  b = Exp (x)  c = Add (a, b)  y = Relu (c) }";
    clips_with_absent_operands_differ: "g (float[n] x) => (y) <float c = {0.5}> { a = Clip (x, \"\", c)  b = Clip (x, c, \"\")  y = Add (a, b) }";
    decided_branch: "g (float[n] x) => (y) <bool c = {0}> {
        b = If <then_branch: graph = a () => (t) { t = Relu (x) }, else_branch: graph = b () => (e) { e1 = Neg (x)  e = Exp (e1) }> (c)
        y = Abs (b) }";
    slice_bounds_beyond_the_end: "g (float[n,8] x) => (y) <int64[1] zero = {0}, int64[1] axis = {0}> { s = Shape <end: int = 1> (x)  y = Slice (x, zero, s, axis) }";
    products_of_rows: "g (float[batch,seq,4] x) => (y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[3] c = {1,2,3}, int64[2] flat = {-1,4}, int64[1] three = {3}> {
        r = Reshape (x, flat)  g1 = Gemm (r, w, c)
        s = Shape <end: int = 2> (x)  t = Concat <axis = 0> (s, three)
        y = Reshape <allowzero = 1> (g1, t) }";
    concats: "g (float[n] a, float[n] b, float[n] c) => (y) { d = Concat <axis = 0> (a, b)  y = Concat <axis = -1> (d, c) }";
    expand_before_addition: "g (float[1,seq] x, float[batch,seq] y) => (z) { s = Shape (y)  e = Expand (x, s)  z = Add (e, y) }";
    casts: "g (int32[n] x) => (y) { a = Cast <to = 7> (x)  b = Cast <to = 6> (a)  c = Cast <to = 6> (b)  y = Neg (c) }";
    resize_to_twice_the_size: "g (float[1,2,h,w] x) => (y) <int64[4] k = {1,1,2,2}> {
        s = Shape (x)  t = Mul (s, k)  y = Resize <mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"> (x, \"\", \"\", t) }";
    sizes_read_again_and_again: "g (float[n,s,8] x, float[4] b) => (y, z) <int64 zero = {0}, int64 one = {1}, int64[1] at = {0}, int64[1] four = {4}, int64[1] two = {2}> {
        a = Add (x, x)  s1 = Shape (a)  n1 = Gather (s1, zero)  s2 = Shape (x)  l1 = Gather (s2, one)  n2 = Unsqueeze (n1, at)  l2 = Unsqueeze (l1, at)
        t = Concat <axis = 0> (n2, four, l2, two)  r = Transpose <perm = [0,2,1]> (a)  y = Reshape (r, t)
        e = Abs (a)  s3 = Shape (e)  n3 = Gather (s3, zero)  n4 = Unsqueeze (n3, at)  s4 = Shape (e)  l3 = Gather (s4, one)  l4 = Unsqueeze (l3, at)
        u = Concat <axis = 0> (l4, n4, four)  z = Expand (b, u) }";
    arithmetic_on_sizes_of_one_rank: "g (float[n,s,8] x) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] at = {0}, int64 four = {4}> {
        s1 = Shape (x)  l1 = Gather (s1, one)  m = Mod (l1, four)  d = Sub (four, m)  k = Mod (d, four)  k1 = Unsqueeze (k, at)
        s2 = Shape (x)  l2 = Gather (s2, one)  p = Add (l2, k)  p1 = Unsqueeze (p, at)  q = Concat <axis = 0> (k1, p1)  f = Cast <to = 1> (q)
        w = ReduceSum <keepdims = 0> (f)  y = Mul (x, w) }";
}

/// `[N, -1, 4]` says nothing when N is 0, so with two sizes open the chain stays.
#[test]
fn a_reshape_that_zero_would_break_keeps_its_chain() {
    let source = format!(
        "{HEAD} g (float[n,s,8] x) => (y) <int64[3] k = {{1,2,1}}, int64[3] d = {{1,1,2}}> {{ s0 = Shape (x)  a = Mul (s0, k)  t = Div (a, d)  y = Reshape (x, t) }}"
    );
    // The sizes are said anew, in a row: N as it was, and the two that Shape tells.
    assert_eq!(count(&source, "Shape"), 1);
}

/// An initializer that is also an input is only a default.
#[test]
fn what_a_caller_may_override_is_not_folded() {
    let source =
        format!("{HEAD} g (float[2] x, float[2] w) => (y) <float[2] w = {{1,2}}> {{ a = Neg (w)  y = Add (x, a) }}");
    assert_eq!(count(&source, "Neg"), 1);
}

/// Splits into other numbers of parts are other nodes.
#[test]
fn splits_are_told_apart_by_their_parts() {
    let source = format!(
        "{HEAD} g (float[n,6] x) => (a, b, c, d, e) {{ a, b = Split <axis = 1> (x)  c, d, e = Split <axis = 1> (x) }}"
    );
    assert_eq!(count(&source, "Split"), 2);
}

/// `-0 + 0` is `0`: dropping the zero keeps values equal, but not their bits.
#[test]
fn a_float_zero_that_is_added_stays_where_bits_count() {
    let source = format!("{HEAD} g (float[n] f) => (z) <float zero = {{0.0}}> {{ a = Add (f, zero)  z = Neg (a) }}");
    let model = folded(&source, &Options::new().exact(true));
    assert_eq!(model.graph(model.main()).node_count(), 2);
    assert_eq!(count(&source, "Add"), 0);
}

#[test]
fn rules_can_be_left_out_by_name() {
    let source = format!("{HEAD} g (float[n] x) => (y) {{ a = Identity (x)  y = Relu (a) }}");
    let options = Options::new().skip(["identity"]);
    let model = folded(&source, &options);
    assert_eq!(model.graph(model.main()).node_count(), 2);
    assert_eq!(count(&source, "Identity"), 0);
}

#[test]
fn an_expand_that_adds_an_axis_stays() {
    // Broadcasting without it would give a result of lower rank.
    let body = "g (float[2,h] x) => (y) <int64[3] target = {1,1,1}, float two = {2}> { e = Expand (x, target)  y = Mul (e, two) }";
    assert_eq!(count(&format!("{HEAD}\n{body}"), "Expand"), 1);
    let body = "g (float[2,h] x, float[1,2,h] z) => (y) <int64[3] target = {1,1,1}> { e = Expand (x, target)  y = Mul (e, z) }";
    assert_eq!(count(&format!("{HEAD}\n{body}"), "Expand"), 0);
}

/// ONNX Runtime computes powers of integers in doubles.
#[test]
fn a_first_power_goes_only_of_floats() {
    let source = format!(
        "{HEAD} g (int64[n] x, float[n] f) => (y, z) <int64 one = {{1}}> {{ a = Pow (x, one)  y = Neg (a)  b = Pow (f, one)  z = Neg (b) }}"
    );
    assert_eq!(count(&source, "Pow"), 1);
}
