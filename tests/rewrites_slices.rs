//! Slice algebra on models in text form: each is run before and after, and shown as a snapshot. Where a premise fails, the node stays.

mod support;

use onnx_slice_fold::Options;
use onnx_slice_fold::ir::{Model, text};
use support::folded;

const HEAD: &str = r#"<ir_version: 8, opset_import: ["" : 17]>"#;

fn fold(body: &str) -> Model {
    folded(&format!("{HEAD}\n{body}"), &Options::default())
}

/// The operators that are left, in an order to compute in.
fn left(body: &str) -> Vec<String> {
    operators(&fold(body))
}

fn operators(model: &Model) -> Vec<String> {
    let order = model.topological(model.main()).expect("the graph has no cycle");
    order.into_iter().filter_map(|id| model.node(id)).map(|node| node.op_type.clone()).collect()
}

macro_rules! rewrites {
    ($($name:ident: $body:literal;)*) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(text::print(&fold($body)));
        })*
    };
}

rewrites! {
    reverse_of_reverse: "g (float[n,3] x) => (y) <int64[2] s = {-1,-1}, int64[2] e = {-9223372036854775808,-9223372036854775808}, int64[2] t = {-1,-1}, int64[2] a = {0,1}> {
        r = Slice (x, s, e, a, t)  b = Slice (r, s, e, a, t)  y = Relu (b) }";
    slice_inside_of_one_piece: "g (float[n,4] a, float[n,6] b, float[n,2] c) => (y, z) <int64[1] s = {5}, int64[1] e = {9}, int64[1] one = {1}, int64[1] s2 = {9}, int64[1] e2 = {3}, int64[1] back = {-3}> {
        m = Concat <axis = 1> (a, b, c)  y = Slice (m, s, e, one, one)  z = Slice (m, s2, e2, one, back) }";
    slice_that_is_a_piece: "g (float[n,4] a, float[m,4] b) => (y) <int64[1] zero = {0}, int64[1] max = {9223372036854775807}> {
        c = Concat <axis = 0> (a, b)  s = Shape <start = 0, end = 1> (a)  p = Slice (c, s, max, zero)  y = Relu (p) }";
    slice_of_some_pieces: "g (float[n,4] a, float[n,6] b, float[n,2] c) => (y) <int64[1] s = {4}, int64[1] e = {12}, int64[1] one = {1}> {
        m = Concat <axis = 1> (a, b, c)  y = Slice (m, s, e, one) }";
    slice_over_some_pieces: "g (float[n,4] a, float[n,6] b, float[n,2] c) => (y) <int64[1] s = {6}, int64[1] e = {12}, int64[1] one = {1}> {
        m = Concat <axis = 1> (a, b, c)  y = Slice (m, s, e, one) }";
    slice_of_past_and_present: "g (float[past,4] a, float[n,4] b) => (y) <int64[1] zero = {0}, int64[1] minus = {-1}, int64[1] max = {9223372036854775807}> {
        m = Concat <axis = 0> (a, b)  s = Shape <start = 0, end = 1> (b)  k = Neg (s)  y = Slice (m, minus, max, zero)  u = Shape (m) }";
    slice_of_data_in_pad: "g (float[n,4] x) => (y) <int64[4] p = {1,2,3,4}, int64[2] s = {1,3}, int64[2] e = {-3,5}> {
        m = Pad (x, p)  y = Slice (m, s, e) }";
    slice_of_margin_in_pad: "g (float[n,4] x, float v) => (y) <int64[4] p = {1,2,3,4}, int64[2] s = {0,1}, int64[2] e = {-2,-5}> {
        m = Pad (x, p, v)  y = Slice (m, s, e) }";
    slice_inside_of_reflected_pad: "g (float[4,n] x) => (y) <int64[4] p = {2,0,1,0}, int64[1] s = {3}, int64[1] e = {5}, int64[1] zero = {0}> {
        m = Pad <mode = \"reflect\"> (x, p)  y = Slice (m, s, e, zero) }";
    slice_of_broadcast_axis: "g (float[n,1] x) => (y) <int64[3] to = {5,1,6}, int64[2] s = {1,2}, int64[2] e = {4,4}, int64[2] a = {0,2}> {
        m = Expand (x, to)  y = Slice (m, s, e, a) }";
    slice_of_own_axis: "g (float[n,1] x) => (y) <int64[2] to = {1,6}, int64[1] s = {1}, int64[1] e = {4}, int64[1] a = {0}> {
        m = Expand (x, to)  y = Slice (m, s, e, a) }";
    transpose_slice_transpose: "g (float[a,b,c] x) => (y) <int64[2] s = {1,0}, int64[2] e = {3,2}, int64[2] axes = {0,-1}, int64[2] steps = {1,2}> {
        t = Transpose <perm = [1,2,0]> (x)  m = Slice (t, s, e, axes, steps)  u = Transpose <perm = [2,0,1]> (m)  y = Relu (u) }";
    bounds_in_32_bits_stay_so: "g (float[4,a,b] x) => (y) <int32[1] s = {-1}, int32[1] e = {0}, int32[1] axis = {2}, int32[1] step = {-1}> {
        t = Transpose <perm = [1,2,0]> (x)  y = Slice (t, s, e, axis, step) }";
    transpose_slice_at_run_time: "g (float[a,b] x, int64[2] s, int64[2] e) => (y) {
        t = Transpose (x)  m = Slice (t, s, e)  y = Transpose (m) }";
    unsqueeze_slice_squeeze: "g (float[n,4] x) => (y) <int64[1] s = {1}, int64[1] e = {3}, int64[1] a = {2}, int64[1] one = {1}> {
        t = Unsqueeze (x, one)  m = Slice (t, s, e, a)  y = Squeeze (m, one) }";
    reshape_slice_reshape: "g (float[n,4,6] x) => (y) <int64[2] flat = {-1,6}, int64[3] whole = {-1,4,3}, int64[1] s = {1}, int64[1] e = {4}, int64[1] one = {1}> {
        t = Reshape (x, flat)  m = Slice (t, s, e, one)  y = Reshape (m, whole) }";
    slice_of_elementwise_chain: "g (float[n,4] x) => (y) <float half = {0.5}, float[4] c = {1,2,3,4}, int64[1] s = {1}, int64[1] e = {3}, int64[1] zero = {0}> {
        a = Mul (x, half)  b = Add (c, a)  d = Mul (b, b)  f = Clip (d, half)  y = Slice (f, s, e, zero) }";
    concat_of_adjacent_slices: "g (float[n,4] x) => (y) <int64[1] zero = {0}, int64[1] m = {3}, int64[1] max = {9223372036854775807}> {
        a = Slice (x, zero, m, zero)  b = Slice (x, m, max, zero)  c = Concat <axis = 0> (a, b)  y = Relu (c) }";
    concat_of_slices_that_are_one: "g (float[n,8] x) => (y) <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] seven = {7}, int64[1] one = {1}> {
        a = Slice (x, one, four, one)  b = Slice (x, four, seven, one)  y = Concat <axis = 1> (a, b) }";
    concat_of_split: "g (float[n,8] x) => (y) { a, b = Split <axis = 1> (x)  c = Concat <axis = -1> (a, b)  y = Relu (c) }";
    concat_of_split_at_run_time: "g (float[8,n] x, int64[1] d) => (y) <int64[2] half = {4,4}> { e = Neg (d)  f = Concat <axis = 0> (d, e)  k = Add (half, f)  a, b = Split (x, k)  c = Concat <axis = 0> (a, b)  y = Relu (c) }";
    equal_slices: "g (float[n,8] x) => (y) <int64[1] zero = {0}, int64[1] five = {5}, int64[1] minus = {-8}, int64[1] less = {-3}, int64[1] one = {1}> {
        a = Slice (x, zero, five, one)  b = Slice (x, minus, less, one)  y = Add (a, b) }";
    slices_that_are_a_split: "g (float[n,8] x) => (y) <int64[1] zero = {0}, int64[1] three = {3}, int64[1] five = {5}, int64[1] max = {9223372036854775807}, int64[1] last = {-1}> {
        a = Slice (x, zero, three, last)  b = Slice (x, five, max, last)  y = Mul (a, b) }";
    split_with_one_reader: "g (float[n,8] x) => (y) { a, b = Split <axis = 1> (x)  y = Relu (b) }";
    slice_that_is_a_part_of_a_split: "g (float[n,8] x) => (y, z, w) <int64[1] four = {4}, int64[1] max = {2147483647}, int64[1] one = {1}> {
        a, b = Split <axis = 1> (x)  c = Slice (x, four, max, one)  y = Relu (a)  z = Neg (b)  w = Abs (c) }";
    gather_of_consecutive_indices: "g (float[n,8] x) => (y, z) <int64[3] i = {2,3,4}, int64[3] j = {-1,-3,-5}> {
        y = Gather <axis = 1> (x, i)  z = Gather <axis = 1> (x, j) }";
    gather_of_range: "g (float[n,8] x) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}> {
        s = Shape <start = 0, end = 1> (x)  k = Squeeze (s, first)  r = Range (zero, k, one)  a = Gather (x, r)  y = Relu (a) }";
    slice_and_squeeze: "g (float[n,8] x) => (y, z) <int64[1] s = {-1}, int64[1] max = {9223372036854775807}, int64[1] zero = {0}, int64[1] two = {2}, int64[1] three = {3}, int64[1] one = {1}> {
        a = Slice (x, s, max, one)  y = Squeeze (a, one)  b = Slice (x, two, three, one)  z = Squeeze (b, one) }";
    gather_and_unsqueeze: "g (float[n,8] x) => (y) <int64 i = {3}, int64[1] one = {1}> { a = Gather <axis = 1> (x, i)  y = Unsqueeze (a, one) }";
    cast_sandwich: "g (bool[n,8] x) => (y) <int64[1] s = {1}, int64[1] e = {3}, int64[1] one = {1}> {
        a = Cast <to = 1> (x)  b = Slice (a, s, e, one)  t = Transpose (b)  y = Cast <to = 9> (t)  }";
    cast_sandwich_of_two: "g (bool[n,8] x) => (y, z) <int64[1] s = {1}, int64[1] e = {3}, int64[1] one = {1}> {
        a = Cast <to = 1> (x)  b = Slice (a, s, e, one)  c = Cast <to = 9> (b)  y = Not (c)  z = Neg (a) }";
    slices_of_a_slice_that_goes_away: "g (float[n,m] x) => (y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] max = {9223372036854775807}> {
        a = Slice (x, zero, max, zero, two)  b = Slice (a, zero, max, one, two)  c = Slice (a, one, max, one, two)  y = Concat <axis = 1> (b, c) }";
    slices_of_one_value_repeated: "g (float[n,8] x) => (y) <int64[1] two = {2}, int64[1] zero = {0}, int64[1] one = {1}> {
        s = Shape (x)  t = Concat <axis = 0> (two, s)  z = ConstantOfShape (t)  a = Slice (z, zero, one, zero)  b = Slice (z, one, two, zero)  c = Add (a, x)  y = Sub (c, b) }";
    slice_an_axis_at_a_time: "g (float[n,m,8] x) => (y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}> {
        a = Slice (x, one, three, zero)  b = Slice (a, zero, two, one)  y = Slice (b, two, three, two) }";
}

/// Each of these has a premise that does not hold for every size, or would need more nodes.
#[test]
fn slices_stay_where_a_premise_fails() {
    let consts = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[1] five = {5}, int64[1] minus = {-1}, int64[1] min = {-9223372036854775808}, int64[1] max = {9223372036854775807}";
    let cases: &[(&str, &str, &[&str])] = &[
        // The last row is of the second piece only if that has one.
        (
            "float[m,4] a, float[n,4] b",
            "c = Concat <axis = 0> (a, b)  y = Slice (c, minus, max, zero)",
            &["Concat", "Slice"],
        ),
        // Where the first piece is shorter than the slice, the second is reached.
        (
            "float[m,4] a, float[n,4] b",
            "c = Concat <axis = 0> (a, b)  y = Slice (c, zero, two, zero)",
            &["Concat", "Slice"],
        ),
        // Two pieces cut would be a node more.
        (
            "float[4,n] a, float[4,n] b",
            "c = Concat <axis = 0> (a, b)  y = Slice (c, one, three, one)",
            &["Concat", "Slice"],
        ),
        // There may be fewer than three elements, and then the middle is doubled.
        (
            "float[n,4] x",
            "a = Slice (x, zero, three, zero)  b = Slice (x, two, max, zero)  y = Concat <axis = 0> (a, b)",
            &["Slice", "Slice", "Concat"],
        ),
        // Another order is no slice, but a choice of elements.
        ("float[4,n] x", "a, b = Split <axis = 0> (x)  y = Concat <axis = 0> (b, a)", &["Gather"]),
        ("float[4,n] x", "a, b = Split <axis = 0> (x)  y = Concat <axis = 1> (a, b)", &["Split", "Concat"]),
        // Overlapping slices are no Split.
        (
            "float[4,n] x",
            "a = Slice (x, zero, three, zero)  b = Slice (x, one, max, zero)  y = Mul (a, b)",
            &["Slice", "Slice", "Mul"],
        ),
        // Cut in two, an axis of unknown size is no Split.
        (
            "float[n,4] x",
            "a = Slice (x, zero, one, zero)  b = Slice (x, one, two, zero)  y = Mul (a, b)",
            &["Slice", "Slice", "Mul"],
        ),
        // Two operands of full size would need two slices.
        ("float[n,4] a, float[n,4] b", "c = Mul (a, b)  y = Slice (c, one, two, one)", &["Mul", "Slice"]),
        // Something else reads the whole.
        (
            "float[n,4] a",
            "c = Exp (a)  d = Slice (c, one, three, one)  e = ReduceSum (c)  y = Mul (d, e)",
            &["Exp", "Slice", "ReduceSum", "Mul"],
        ),
        // A reshaped axis that is not one of the data.
        (
            "float[n,6] x",
            "s = Concat <axis = 0> (minus, two, three)  t = Transpose (x)  r = Reshape (t, s)  c = Slice (r, one, two, one)  y = Reshape (c, minus)",
            &["Transpose", "Reshape", "Slice", "Reshape"],
        ),
        // What is reflected depends on the data beside it.
        (
            "float[4,n] x",
            "p = Concat <axis = 0> (two, zero, one, zero)  r = Pad <mode = \"reflect\"> (x, p)  y = Slice (r, one, five, zero)",
            &["Pad", "Slice"],
        ),
        // Indices that are not all there fail, and a slice would not.
        ("float[n,4] x", "i = Concat <axis = 0> (zero, one, two)  y = Gather (x, i)", &["Gather"]),
        ("float[4,n] x", "i = Concat <axis = 0> (minus, zero, one)  y = Gather (x, i)", &["Gather"]),
        // The first of how many there are is not the last of one.
        (
            "float[4,n] x",
            "c = Slice (x, zero, max, one)  d = Slice (c, zero, two, zero)  y = Relu (d)",
            &["Slice", "Relu"],
        ),
    ];
    for (inputs, body, expected) in cases {
        let body = format!("g ({inputs}) => (y) <{consts}> {{ {body} }}");
        assert_eq!(left(&body), *expected, "{body}");
    }
}

/// What goes on at operator sets where Slice has attributes, and Squeeze has.
#[test]
fn old_operator_sets_have_their_own_forms() {
    let old = |opset: i64, body: &str| {
        operators(&folded(&format!("<ir_version: 4, opset_import: [\"\" : {opset}]>\n{body}"), &Options::default()))
    };
    for opset in [9, 10] {
        let split = "g (float[n,8] x) => (y) { a, b = Split <axis = 1> (x)  y = Relu (b) }";
        assert_eq!(old(opset, split), ["Slice", "Relu"], "{opset}");
        let concat = "g (float[n,4] a, float[m,4] b) => (y) <int64[1] i = {1}> { c = Concat <axis = 1> (a, a)  d, e = Split <axis = 1> (c)  y = Relu (e) }";
        assert_eq!(old(opset, concat), ["Relu"], "{opset}");
    }
    let slice = "g (float[n,4] x) => (y) { t = Transpose (x)  s = Slice <axes = [0], starts = [1], ends = [3]> (t)  y = Transpose (s) }";
    assert_eq!(old(9, slice), ["Slice"]);
    let unsaid =
        "g (float[3,4] x) => (y) { t = Transpose (x)  s = Slice <starts = [1], ends = [3]> (t)  y = Transpose (s) }";
    assert_eq!(old(9, unsaid), ["Slice"]);
    let squeeze = "g (float[n,4] x) => (y) { s = Slice <axes = [1], starts = [1], ends = [2]> (x)  y = Squeeze <axes = [1]> (s) }";
    assert_eq!(old(9, squeeze), ["Gather"]);
    // Gather counts from the end since version 11.
    let last = "g (float[4,n] x) => (y) { s = Slice <axes = [1], starts = [-1], ends = [9223372036854775807]> (x)  y = Squeeze <axes = [1]> (s) }";
    assert_eq!(old(9, last), ["Slice", "Squeeze"]);
    assert_eq!(old(9, &last.replace("[4,n]", "[n,4]")), ["Gather"]);
    let pad = "g (float[n,4] x) => (y) { p = Pad <pads = [1,1,1,1]> (x)  y = Slice <axes = [0,1], starts = [1,0], ends = [-1,4]> (p) }";
    assert_eq!(old(9, pad), ["Slice", "Pad"]);
}

/// `Expand` to one more axis of size 1 is not nothing.
#[test]
fn broadcasting_keeps_the_rank() {
    let body =
        "g (float[5,n] y) => (z) <int64[3] to = {1,1,1}, float three = {3}> { e = Expand (y, to)  z = Add (e, three) }";
    assert_eq!(left(body), ["Expand", "Add"]);
}

#[test]
fn outputs_of_the_graph_keep_their_names() {
    let model = fold(
        "g (float[n,8] x) => (c, a) <int64[1] zero = {0}, int64[1] four = {4}, int64[1] max = {9223372036854775807}, int64[1] one = {1}> {
        a = Slice (x, zero, four, one)  b = Slice (x, four, max, one)  c = Concat <axis = 1> (a, b) }",
    );
    let outputs = model.graph(model.main()).outputs().iter().map(|&value| model.value(value).name.clone());
    assert_eq!(outputs.collect::<Vec<_>>(), ["c", "a"]);
}
