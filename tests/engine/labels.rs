//! Labels of inputs are opaque names: equal labels are equal sizes, and relations between labels hold only if the user trusts them.

use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{CustomOperator, CustomType, OnnxModel, Options};

use crate::support::{folded_unrun, operators, shape};

fn with(source: &str, options: &Options) -> Model {
    folded_unrun(&format!("<ir_version: 8, opset_import: [\"\" : 17]> {source}"), options).0
}

fn trusting() -> Options {
    Options::new().trust_input_names(true)
}

/// A model that computes the length of `x` from those of `p` and `q`.
fn compared(label: &str, parts: [&str; 2], computed: &str) -> String {
    format!(
        "g (float[\"{label}\"] x, float[{}] p, float[{}] q) => (e) <int64[1] one = {{1}}, int64[1] two = {{2}}> {{
            a = Shape (x) b = Shape (p) c = Shape (q) d = {computed} e = Equal (a, d) }}",
        parts[0], parts[1]
    )
}

#[test]
fn a_label_that_reads_as_arithmetic_is_a_name() {
    let cases = [
        ("n + 1", ["n", "m"], "Add (b, one)"),
        ("n+1", ["n", "m"], "Add (b, one)"),
        ("2*n", ["n", "m"], "Mul (two, b)"),
        ("h*w", ["h", "w"], "Mul (b, c)"),
        ("seq-len", ["seq", "len"], "Sub (b, c)"),
        ("n//2", ["n", "m"], "Div (b, two)"),
        (" n", ["n", "m"], "Identity (b)"),
        ("(n)", ["n", "m"], "Identity (b)"),
        ("max(n, m)", ["n", "m"], "Max (b, c)"),
    ];
    for (label, parts, computed) in cases {
        let source = compared(label, parts, computed);
        let model = with(&source, &Options::new());
        assert!(operators(&model).contains(&"Equal".to_string()), "{label}: {}", text::print(&model));
        let model = with(&source, &trusting());
        assert_eq!(operators(&model), [""; 0], "{label}: {}", text::print(&model));
    }
}

#[test]
fn equal_labels_are_equal_sizes() {
    let source = compared("n + 1", ["\"n + 1\"", "n"], "Identity (b)");
    assert_eq!(operators(&with(&source, &Options::new())), [""; 0]);
}

#[test]
fn declarations_of_inputs_are_kept() {
    for options in [Options::new(), trusting()] {
        let model = with(
            "g (float[n] x, float[\"n*0\"] w, float[\"n-1\"] v) => (y, z, q) { y = Relu (w) z = Neg (v) q = Neg (x) }",
            &options,
        );
        let declared = ["x", "w", "v"].map(|input| shape(&model, input));
        assert_eq!(declared, ["n", "n*0", "n-1"].map(str::to_string));
    }
}

#[test]
fn no_expression_is_written_that_another_reader_takes_for_arithmetic_over_a_label() {
    let source =
        "g (float[n, 2] x, float[\"n + 1\", 2] m) => (y, whole) { y = Concat <axis = 0> (m, m) whole = Neg (m) }";
    let model = with(source, &Options::new());
    assert_eq!((shape(&model, "y"), shape(&model, "whole")), ("size_1,2".to_string(), "n + 1,2".to_string()));
    // The same for an expression that equals the label of another size.
    let source = "g (float[n] x, float[\"n + 1\"] m, float[\"2*n\"] d) => (y, z) <float[1] c = {0}> {
        y = Concat <axis = 0> (x, c) z = Concat <axis = 0> (x, x) }";
    let model = with(source, &Options::new());
    assert_eq!((shape(&model, "y"), shape(&model, "z")), ("n+1".to_string(), "size_1".to_string()));
    let model = with(source, &trusting());
    assert_eq!((shape(&model, "y"), shape(&model, "z")), ("n + 1".to_string(), "2*n".to_string()));
}

#[test]
fn a_second_run_reads_no_more_into_labels() {
    let source = "g (float[n, 2] x, float[\"n + 1\", 2] m) => (y, z) <float[1, 2] c = {0, 0}> {
        y = Concat <axis = 0> (m, m) z = Concat <axis = 0> (x, c) }";
    let once = with(source, &Options::new());
    let (again, _) = folded_unrun(&text::print(&once), &Options::new());
    assert_eq!(text::print(&once), text::print(&again));
    // Trusted shapes inside the model do not turn the label of the input into arithmetic.
    let (again, _) = folded_unrun(&text::print(&once), &Options::new().trust_declared_shapes(true));
    assert_eq!((shape(&again, "m"), shape(&again, "z")), ("n + 1,2".to_string(), "n+1,2".to_string()));
    assert!(shape(&again, "y").starts_with("size_"));
}

#[test]
fn an_output_keeps_a_label_that_reads_as_its_size() {
    let source = "g (float[s, 4] x, float[p, 4] past, float[\"p + s\"] mask) => (float[\"p + s\", 4] all, float[\"p + s\"] y) <int64[1] axis = {1}> {
        all = Concat <axis = 0> (past, x) sums = ReduceSum <keepdims = 0> (all, axis) y = Mul (sums, mask) }";
    let model = with(source, &Options::new());
    let shapes = ["all", "sums", "y"].map(|value| shape(&model, value));
    assert_eq!(shapes, ["p + s,4", "s + p", "p + s"].map(str::to_string));
    let (again, _) = folded_unrun(&text::print(&model), &Options::new());
    assert_eq!(text::print(&again), text::print(&model));
}

/// Selects all of `m` if it has one element more than `x`.
const ONE_MORE: &str = "g (float[n] x, float[\"n + 1\"] m) => (y) <int64[1] one = {1}, int64[1] zero = {0}> {
    s = Shape (x) t = Shape (m) d = Sub (t, s) e = Sub (d, one) y = Slice (m, e, t, zero) }";

#[test]
fn the_user_may_relate_labels() {
    let left = |options: &Options| operators(&with(ONE_MORE, options)).contains(&"Slice".to_string());
    assert!(left(&Options::new()));
    assert!(!left(&trusting()));
    assert!(!left(&Options::new().assume("\"n + 1\" = n + 1")));
    assert!(!left(&Options::new().assume("n + 1 == 'n + 1'")));
    // Without quotes it is arithmetic.
    assert!(left(&Options::new().assume("n + 1 <= 100")));
    for name in ["n + 1", "\"n + 1\""] {
        let model = with(ONE_MORE, &Options::new().dim(format!("{name}=8")));
        assert_eq!((shape(&model, "m"), shape(&model, "x")), ("8".to_string(), "n".to_string()));
    }
    let model = with(ONE_MORE, &Options::new().dim("m[0]=3..8"));
    assert_eq!(shape(&model, "m"), "n + 1");
    let model = with(ONE_MORE, &trusting().dim("n=3"));
    assert_eq!((shape(&model, "m"), shape(&model, "x")), ("4".to_string(), "3".to_string()));
}

#[test]
fn an_unknown_name_is_reported_with_the_nearest() {
    let told = |options: Options| {
        let source = format!("<ir_version: 8, opset_import: [\"\" : 17]> {ONE_MORE}");
        let mut document = OnnxModel::of(text::parse(&source).expect("the model is right"));
        document.fold(&options).expect_err("there is no such name").to_string()
    };
    assert!(
        told(Options::new().dim("n +1=8")).contains("did you mean \"n + 1\"?"),
        "{}",
        told(Options::new().dim("n +1=8"))
    );
    let relation = told(Options::new().assume("'n +1' <= 8"));
    assert!(relation.contains("did you mean \"n + 1\"?") && relation.contains("double quotes"), "{relation}");
}

#[test]
fn the_default_of_an_input_is_of_no_other_input_s_size() {
    // A caller who uses the default of `w` with three rows may give an `x` of any length.
    let equal = |other: &str| {
        let source = format!(
            "g (float[n] x, float[{other}] w) => (e, r) <float[3] w = {{1, 2, 3}}> {{ a = Shape (x) b = Shape (w) e = Equal (a, b) r = Relu (w) }}"
        );
        operators(&with(&source, &Options::new())).contains(&"Equal".to_string())
    };
    assert!(equal("n"));
    assert!(equal("m"));
}

#[test]
fn a_custom_operators_result_for_a_label_is_no_arithmetic_over_other_labels() {
    let source = "<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]>
        g (float[n] x, float[\"n + 1\"] m) => (y, z, e) { y = own.Twice (m) z = Concat <axis = 0> (m, m)
            a = Shape (y) b = Shape (z) e = Equal (a, b) }";
    let mut model = OnnxModel::of(text::parse(source).expect("the model is right"));
    let twice = CustomOperator::new("own", "Twice", |node| {
        let (Some(dtype), Some([size])) = (node.dtype(0), node.shape(0)) else { return Ok(Vec::new()) };
        Ok(vec![CustomType::new(dtype, [format!("2*({size})")])])
    });
    model.register(twice).expect("the name is free");
    model.fold(&Options::new()).expect("it is folded");
    assert_eq!((shape(model.model(), "y"), shape(model.model(), "z")), ("size_1".to_string(), "size_1".to_string()));
    assert!(!operators(model.model()).contains(&"Equal".to_string()));
}

#[test]
fn labels_that_look_like_relations_are_reported_with_their_savings() {
    let source = format!("<ir_version: 8, opset_import: [\"\" : 17]> {ONE_MORE}");
    let explained = |options: &Options| {
        let mut model = OnnxModel::of(text::parse(&source).expect("the model is right"));
        model.explain(options, &[], 8).expect("it is explained")
    };
    let (report, told) = explained(&Options::new());
    assert_eq!(report.label_relations, ["\"n + 1\" == n + 1"]);
    let found = told.suggestions.iter().find(|found| found.flags == "--trust-input-names").expect("it is suggested");
    for options in [trusting(), Options::new().assumptions(found.assumptions.iter().cloned())] {
        let (report, trusted) = explained(&options);
        assert_eq!((trusted.nodes.1, report.label_relations.len()), (found.nodes, 0));
        assert!(trusted.suggestions.iter().all(|found| found.flags != "--trust-input-names"), "{trusted}");
    }
    assert!(found.nodes < told.nodes.1, "{told}");
    // A label that contains an unknown name is no relation.
    let (_, report) = folded_unrun(&source.replace("\"n + 1\"", "\"k + 1\""), &Options::new());
    assert_eq!(report.label_relations, [""; 0]);
}

#[test]
fn scores_with_a_mask_are_as_many_as_the_values_they_weigh() {
    let attention = |last: &str| {
        format!(
            "g (float[b, s, 4] x, float[b, p, 4] past, float[b, 1, \"p + 1\"] mask) => (y) {{
            keys = Concat <axis = 1> (past, x) turned = Transpose <perm = [0, 2, 1]> (keys) scores = MatMul (x, turned)
            masked = Add (scores, mask) weights = Softmax <axis = 2> (masked) {last} }}"
        )
    };
    // MatMul requires that the mask broadcasts to the scores.
    let model = with(&attention("y = MatMul (weights, keys)"), &Options::new());
    assert_eq!(shape(&model, "masked"), "b,s,s + p");
    let model = with(&attention("y = Neg (weights)"), &Options::new());
    assert_ne!(shape(&model, "masked"), "b,s,s + p");
}
