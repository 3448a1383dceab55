//! Functions of a model: bodies that are folded in place, functions that are kept, and invalid models.

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{OnnxModel, Options};

use crate::support::{self, left};

fn left_without(source: &str, skip: &[&str]) -> String {
    let options = Options::new().skip(skip.iter().copied());
    crate::support::written(&support::folded(source, &options))
}

const LARGE: &str = r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
    g (float[N, 4] x) => (float[N, 4] y) {
        a = own.Block <slope = 0.5, power = 2.0> (x)  b = own.Block <slope = 0.5, power = 3.0> (a)
        c = own.Block <slope = 0.5, power = 2.0> (b)  y = own.Block <slope = 0.5> (c) }
    <domain: "own", opset_import: ["" : 18]> Block <slope, power> (a) => (l) {
        one = Constant <value = int64[1] {2}> ()  two = Cast <to = 1> (one)  s = Shape (a)  r = Reshape (a, s)  i = Identity (r)
        b = LeakyRelu <alpha : float = @slope> (i)  c = Mul (b, two)  d = Elu <alpha : float = @power> (c)
        e = Exp (d)  f = Softmax <axis = 1> (e)  g = Sigmoid (f)  h = Elu <alpha : float = @power> (g)
        j = Softplus (h)  k = Add (j, a)  unused = Neg (k)  l = Softmax <axis = 1> (k) }"#;

#[test]
fn a_large_body_is_folded_where_it_is() {
    insta::assert_snapshot!(left(LARGE));
}

#[test]
fn bodies_can_be_left_alone() {
    assert!(left_without(LARGE, &["fold-function"]).contains("unused = Neg"));
    let once = r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x) => (float[N] y) { y = own.Block (x) }
        <domain: "own", opset_import: ["" : 18]> Block (a) => (c) { b = Identity (a)  c = Exp (b) }"#;
    insta::assert_snapshot!(left_without(once, &["inline-function"]));
}

#[test]
fn facts_that_differ_between_calls_are_not_used() {
    insta::assert_snapshot!(left_without(
        r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[N, 4] x, float[4] w) => (y, z) { y = own.Block (x, x)  z = own.Block (w, w) }
        <domain: "own", opset_import: ["" : 18]> Block (a, b) => (g) {
            s = Shape (a)  c = Exp (a)  d = Exp (b)  e = Reshape (c, s)  f = Identity (e)  g = Add (f, d) }"#,
        &["inline-function"]
    ));
}

#[test]
fn operands_left_out() {
    // The interpreter does not support calls with absent operands.
    let (model, _) = support::folded_unrun(
        r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x, float high) => (y, z) { y = own.Limit (x, "", high)  z = own.Limit (x) }
        <domain: "own", opset_import: ["" : 18]> Limit (x, low, high) => (z) { y = Exp (x)  z = Clip (y, low, high) }"#,
        &Options::default(),
    );
    insta::assert_snapshot!(crate::support::written(&model));
}

#[test]
fn other_operator_sets() {
    // ReduceMax has changed in version 18, Exp and Add have not.
    let source = |operator: &str| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
            g (float[N, 2, 2] x) => (y) {{ y = own.Block (x) }}
            <domain: "own", opset_import: ["" : 17]> Block (a) => (d) {{ i = Exp (a)  b = {operator} (i)  c = Add (b, i)  d = Add (c, b) }}"#
        )
    };
    insta::assert_snapshot!("other_operator_sets_kept", left(&source("ReduceMax <axes = [1]>")));
    insta::assert_snapshot!("other_operator_sets_inlined", left(&source("Exp")));
}

#[test]
fn unused_functions_are_removed() {
    let model = support::folded(
        r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x) => (y) { y = Exp (x) }
        <domain: "own", opset_import: ["" : 18, "own" : 1]> One (a) => (b) { b = own.Two (a) }
        <domain: "own", opset_import: ["" : 18]> Two (a) => (b) { b = Neg (a) }"#,
        &Options::default(),
    );
    assert_eq!(model.functions().count(), 0);
}

#[test]
fn functions_without_end_are_no_model() {
    let source = r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x) => (y) { y = own.One (x) }
        <domain: "own", opset_import: ["" : 18, "own" : 1]> One (a) => (b) { b = own.Two (a) }
        <domain: "own", opset_import: ["" : 18, "own" : 1]> Two (a) => (c) { b = own.One (a)  c = Neg (b) }"#;
    assert!(text::parse(source).is_err());
}

#[test]
fn an_operand_left_out_at_the_end_stays_left_out() {
    // A Loop has two operands, even if they are absent; ONNX Runtime refuses it with one.
    let source = r#"<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x) => (float[M, N] y) { y = own.Rows (x) }
        <domain: "own", opset_import: ["" : 18]> Rows (a) => (d) {
            times = Constant <value = int64 {3}> ()  i = Identity (a)
            d = Loop <body: graph = b (int64 n, bool go) => (stay, c) { stay = Identity (go)  c = Exp (i) }> (times, "") }"#;
    assert!(left_without(source, &["inline-function", "decided-loop"]).contains(r#"(times, "")"#));
}

#[test]
fn functions_named_like_operators() {
    // ONNX Runtime uses the operator, other runtimes the function: nodes between the calls are folded, the calls are not.
    let source = r#"<ir_version: 8, opset_import: ["" : 18]>
        g (float[N, 4] x) => (float[N, 4] y, z) { s = Shape (x)  a = Reshape (x, s)  b = Relu (a)  y = Identity (b)  z = Shape (b) }
        <opset_import: ["" : 18]> Relu (a) => (b) { b = Neg (a) }"#;
    let mut document = OnnxModel::of(text::parse(source).unwrap_or_else(|error| panic!("{error}")));
    let report = document.fold(&Options::default()).expect("the model folds");
    insta::assert_snapshot!(crate::support::written(document.model()));
    assert!(format!("{report:?}").contains("another function or an operator of this name"));
}

#[test]
fn calls_of_overloads_in_functions_are_kept() {
    // ONNX Runtime confuses F with the overload when a function calls it, and does not load the model without F.
    let source = r#"<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        g (float[N] x) => (y, z) { y = own.Calls (x)  w = own.F:other (x)  z = Identity (w) }
        <domain: "own", opset_import: ["" : 18, "own" : 1]> Calls (a) => (b) { b = own.F:other (a) }
        <domain: "own", opset_import: ["" : 18]> F (a) => (b) { b = Neg (a) }
        <domain: "own", overload: "other", opset_import: ["" : 18]> F (a) => (b) { b = Exp (a) }"#;
    for skipped in [[].as_slice(), &["inline-function"]] {
        let written = left_without(source, skipped);
        assert_eq!(written.matches("domain: \"own\"").count(), 3, "{written}");
        assert!(written.contains("y = own.Calls (x)"), "{written}");
    }
}

#[test]
fn a_loop_is_written_out_where_more_nodes_are_allowed() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[N] x, float[N, 3] z) => (y, s) {
            y, s = Scan <num_scan_inputs = 1, scan_input_axes = [-1], scan_input_directions = [1], scan_output_axes = [1],
                    scan_output_directions = [1], body: graph = b (float[N] a, float[N] v) => (float[N] e, float[N] u) {
                e = Sub (a, v)
                u = Mul (e, v)
            }> (x, z)
        }"#;
    let with = |extra| support::folded(source, &Options::new().unroll(extra));
    // One node in each of two places becomes three: three slices and three parts, concatenated once.
    assert!(support::written(&with(9)).contains("Scan"));
    insta::assert_snapshot!(support::written(&with(10)));
}
