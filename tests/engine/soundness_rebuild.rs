//! Rebuilt nodes keep unknown attributes: an attribute of a newer version or of a vendor is part of the node, and a rule that moves the
//! node must copy it.

use onnx_slice_fold::Options;
use onnx_slice_fold::ir::{Attribute, Model, Node, text};

use crate::support::{compare, folded_unrun};

/// Folds a model and runs it before and after. Returns the folded model, and the number of times that a rule fired.
fn fold(rule: &str, opset: i64, body: &str) -> (Model, usize) {
    let source = format!("<ir_version: 8, opset_import: [\"\" : {opset}]>\n{body}");
    let (model, report) = folded_unrun(&source, &Options::default());
    compare(&text::parse(&source).expect("it parsed before"), &model);
    (model, report.fired.get(rule).copied().unwrap_or(0))
}

/// Returns the remaining nodes of an operator.
fn nodes<'m>(model: &'m Model, operator: &str) -> Vec<&'m Node> {
    model.graph(model.main()).nodes().filter_map(|id| model.node(id)).filter(|node| node.is(operator)).collect()
}

/// Folds a model in which every node of `operator` has the attribute `stays = 7`; checks that `rule` fires, and that the remaining nodes
/// have it.
fn stays(rule: &str, opset: i64, operator: &str, body: &str) {
    let (model, fired) = fold(rule, opset, body);
    let printed = crate::support::written(&model);
    assert!(fired > 0, "{rule} does not fire:\n{printed}");
    let left = nodes(&model, operator);
    assert!(!left.is_empty(), "{rule} leaves no {operator}:\n{printed}");
    for node in left {
        let kept = matches!(node.attribute("stays"), Some(Attribute::Int(7)));
        assert!(kept, "{rule} builds a {operator} without the attribute:\n{printed}");
    }
}

macro_rules! keeps_the_attribute {
    ($($name:ident: $rule:literal, $opset:literal, $operator:literal, $body:expr;)*) => {
        $(#[test]
        fn $name() {
            stays($rule, $opset, $operator, $body);
        })*
    };
}

keeps_the_attribute! {
    a_transpose_of_a_transpose: "movement", 13, "Transpose", "g (float[n,3,4] x) => (y) {
        a = Transpose <perm = [1, 0, 2], stays = 7> (x)  b = Transpose <perm = [0, 2, 1], stays = 7> (a)  y = Neg (b) }";
    a_concat_of_a_concat: "movement", 13, "Concat", "g (float[n,2] x, float[n,3] z) => (y) {
        a = Concat <axis = 1, stays = 7> (x, z)  b = Concat <axis = 1, stays = 7> (z, a)  y = Neg (b) }";
    a_reshape_to_a_constant: "reshape-to-constant", 15, "Reshape", "g (float[n,6,2] x) => (y) <int64[2] six = {2, 6}> {
        s = Shape <start: int = 0, end: int = 1> (x)  t = Concat <axis = 0> (s, six)
        a = Reshape <allowzero = 0, stays = 7> (x, t)  y = Neg (a) }";
    a_reshape_of_a_reshape: "movement", 13, "Reshape", "g (float[n,6] x) => (y) <int64[3] three = {0, 3, 2}, int64[3] two = {0, 2, 3}> {
        a = Reshape <stays = 7> (x, three)  b = Reshape <stays = 7> (a, two)  y = Neg (b) }";
    a_slice_of_a_slice: "movement", 13, "Slice", "g (float[n,8] x) => (y) <int64[1] one = {1}, int64[1] six = {6}, int64[1] three = {3}> {
        a = Slice <stays = 7> (x, one, six, one)  b = Slice <stays = 7> (a, one, three, one)  y = Neg (b) }";
    a_slice_of_a_slice_of_old: "movement", 9, "Slice", "g (float[n,8] x) => (y) {
        a = Slice <starts = [1], ends = [6], axes = [1], stays = 7> (x)
        b = Slice <starts = [1], ends = [3], axes = [1], stays = 7> (a)  y = Neg (b) }";
    a_slice_in_a_part_of_a_concat: "movement", 13, "Slice", "g (float[n,2] a, float[n,4] b) => (y) <int64[1] one = {1}, int64[1] three = {3}, int64[1] five = {5}> {
        d = Concat <axis = 1> (a, b)  e = Slice <stays = 7> (d, three, five, one)  y = Neg (e) }";
    a_slice_of_a_pad: "movement", 13, "Pad", "g (float[n,4] x) => (y) <int64[4] pads = {0, 2, 0, 2}, int64[1] one = {1}, int64[1] seven = {7}> {
        a = Pad <stays = 7> (x, pads)  b = Slice (a, one, seven, one)  y = Neg (b) }";
    a_slice_of_a_pad_of_old: "movement", 9, "Pad", "g (float[n,4] x) => (y) {
        a = Pad <pads = [0, 2, 0, 2], stays = 7> (x)  b = Slice <starts = [1], ends = [7], axes = [1]> (a)  y = Neg (b) }";
    a_slice_of_a_function: "slice-of-elementwise", 13, "LeakyRelu", "g (float[n,4] x) => (y) <int64[1] one = {1}, int64[1] three = {3}> {
        a = LeakyRelu <alpha = 0.5, stays = 7> (x)  y = Slice (a, one, three, one) }";
    a_function_of_every_part: "split-behind", 13, "Relu", "g (float[n,4] x) => (y, z) <int64[2] sizes = {1, 3}> {
        p, q = Split <axis = 1> (x, sizes)  y = Relu <stays = 7> (p)  z = Relu <stays = 7> (q) }";
    a_transpose_of_every_part: "split-behind", 13, "Transpose", "g (float[n,4,2] x) => (y, z) <int64[2] sizes = {1, 3}> {
        p, q = Split <axis = 1> (x, sizes)
        y = Transpose <perm = [2, 0, 1], stays = 7> (p)  z = Transpose <perm = [2, 0, 1], stays = 7> (q) }";
    a_slice_of_fewer_axes: "movement", 13, "Slice", "g (float[n,8] x) => (y) <int64[2] from = {0, 1}, int64[2] to = {9223372036854775807, 4}, int64[2] axes = {0, 1}> {
        a = Slice <stays = 7> (x, from, to, axes)  y = Neg (a) }";
    parallel_products: "parallel-weights", 13, "MatMul", "g (float[n,2] x) => (y, z, u) <float[2,2] a = {1, 2, 3, 4}, float[2,2] b = {2, 1, 3, 4}, float[2,2] c = {5, 2, 3, 4}> {
        y = Neg (p)  p = MatMul <stays = 7> (x, a)  z = Neg (q)  q = MatMul <stays = 7> (x, b)  u = Neg (r)  r = MatMul <stays = 7> (x, c) }";
    a_product_of_flattened_rows: "product-of-rows", 15, "MatMul", "g (float[n,3,2] x) => (y) <float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[2] rows = {-1, 2}> {
        a = Reshape (x, rows)  b = MatMul <stays = 7> (a, w)  s = Shape <start: int = 0, end: int = 2> (x)
        c = Concat <axis = 0> (s, four)  y = Reshape (b, c)  four = Constant <value_ints = [4]> () }";
    a_convolution_behind_a_pad: "pad-into-window", 13, "Conv", "g (float[n,1,4,4] x) => (y) <float[1,1,2,2] w = {1, 2, 3, 4}, int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
        p = Pad (x, pads)  y = Conv <stays = 7> (p, w) }";
    a_product_with_a_factor_behind_it: "affine-after-weights", 13, "Conv", "g (float[n,1,4,4] x) => (y) <float[1,1,2,2] w = {1, 2, 3, 4}, float two = {2}> {
        c = Conv <stays = 7> (x, w)  y = Mul (c, two) }";
}

/// A rule treats parts as equal only if all their attributes are equal, known or not.
#[test]
fn parts_with_different_attributes_are_not_merged() {
    let bodies = [
        "y = Relu <stays = 7> (p)  z = Relu <stays = 8> (q)",
        "y = Transpose <perm = [2, 0, 1], stays = 7> (p)  z = Transpose <perm = [2, 0, 1]> (q)",
        "y = Add <stays = 7> (p, one)  z = Add (q, one)",
    ];
    for body in bodies {
        let body = format!(
            "g (float[n,4,2] x) => (y, z) <int64[2] sizes = {{1, 3}}, float one = {{1}}> {{
            p, q = Split <axis = 1> (x, sizes)  {body} }}"
        );
        let (model, fired) = fold("split-behind", 13, &body);
        assert_eq!(fired, 0, "{}", text::print(&model));
    }
}

/// ONNX Runtime's Gather copies only the first string of each entry, so no rule writes one for strings.
#[test]
fn slices_of_strings_do_not_become_gathers() {
    let bodies = |dtype: &str| {
        [
            format!(
                "g ({dtype}[3,b] x) => ({dtype}[b] y) <int64[1] s = {{1}}, int64[1] e = {{2}}, int64[1] a = {{0}}> {{
                    p = Slice (x, s, e, a)  y = Squeeze (p, a) }}"
            ),
            format!(
                "g ({dtype}[2,b] x) => ({dtype}[b] y, {dtype}[b] z) <int64[1] a = {{0}}> {{
                    p, q = Split <axis = 0> (x)  y = Squeeze (p, a)  z = Squeeze (q, a) }}"
            ),
            format!(
                "g ({dtype}[4,b] x) => ({dtype}[4,b] y) {{ p, q = Split <axis = 0> (x)  y = Concat <axis = 0> (q, p) }}"
            ),
            format!(
                "g ({dtype}[2,b] x) => ({dtype}[b] y) <int64 at = {{1}}> {{
                    s = SplitToSequence <axis = 0, keepdims = 0> (x)  y = SequenceAt (s, at) }}"
            ),
            format!(
                "g ({dtype}[b,2,3,16] x) => ({dtype}[b,3,32] y) <int64[2] i = {{1, 0}}, int64[3] s = {{0, 3, 32}}> {{
                    r = Gather <axis = 1> (x, i)  h, k = Split <axis = 1> (r)  c = Concat <axis = 3> (h, k)  y = Reshape (c, s) }}"
            ),
            format!(
                "g ({dtype}[9,4] x, int64[n,1] i) => ({dtype}[n,4] y) <int64[2] sizes = {{1, 4}}> {{
                    e = Expand (i, sizes)  y = GatherElements <axis = 0> (x, e) }}"
            ),
            format!(
                "g ({dtype}[2,3] x) => ({dtype}[2,3] y) {{
                    y = Scan <num_scan_inputs = 1, body: graph = t ({dtype}[3] r) => ({dtype}[3] o) {{ o = Identity (r) }}> (x) }}"
            ),
        ]
    };
    let lookups = |body: &str| {
        let source = format!("<ir_version: 8, opset_import: [\"\" : 17]>\n{body}");
        let before = text::parse(&source).expect("it parses");
        let (model, _) = folded_unrun(&source, &Options::new().unroll(9));
        (nodes(&before, "Gather").len(), nodes(&model, "Gather").len())
    };
    for body in bodies("string") {
        let (before, after) = lookups(&body);
        assert!(after <= before, "{body}");
    }
    // Lookups of numbers are written, so the models above are meaningful.
    let more = bodies("float").iter().filter(|body| lookups(body).1 > lookups(body).0).count();
    assert!(more >= 3, "{more}");
}

/// ONNX Runtime turns a lookup by a Range into a Slice with the same bounds: negative ones count from the end.
#[test]
fn ranges_that_end_below_zero_are_not_looked_up() {
    let body = |from: &str, number: &str| {
        format!(
            "g (float[n,m] x) => (float[n,m] y) <int64 axis = {{1}}, int64 zero = {{0}}, int64 one = {{1}}> {{
                s = Shape (x)  m = Gather (s, axis)  l = Sub (m, one)  r = Range (zero, m, one)  q = {from} ({number}, r)
                y = Gather <axis = 1> (x, q) }}"
        )
    };
    let sums = |body: &str| {
        let source = format!("<ir_version: 8, opset_import: [\"\" : 17]>\n{body}");
        let model = folded_unrun(&source, &Options::new()).0;
        nodes(&model, "Range").len() + nodes(&model, "Sub").len() + nodes(&model, "Slice").len()
    };
    assert_eq!(sums(&body("Sub", "l")), 3);
    assert_eq!(sums(&body("Add", "zero")), 0);
}

/// ONNX Runtime merges a Transpose into the next product. It crashes if the Transpose moves the first axis of float16 and the other operand
/// is a constant matrix.
#[test]
fn float16_products_read_no_transpose_of_the_first_axis() {
    let products = |dtype: &str, perm: &str| {
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : 17]>
            g ({dtype}[2,n,s] x) => (y) <{dtype}[2,3] w = {{1, 2, 3, 4, 5, 6}}, int64[2] flat = {{-1, 2}}, int64[1] three = {{3}},
                int64[1] zero = {{0}}, int64[1] two = {{2}}> {{
                t = Transpose <perm = {perm}> (x)  r = Reshape (t, flat)  m = MatMul (r, w)
                q = Shape (t)  front = Slice (q, zero, two)  sizes = Concat <axis = 0> (front, three)
                z = Reshape (m, sizes)  y = Sigmoid (z) }}"
        );
        let model = folded_unrun(&source, &Options::new()).0;
        nodes(&model, "Reshape").len()
    };
    assert_eq!(products("float", "[1,2,0]"), 0);
    assert_eq!(products("float16", "[1,2,0]"), 2);
    assert_eq!(products("float16", "[2,1,0]"), 0);
}
