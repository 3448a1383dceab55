//! Models in another operator set: raw, as the steps between versions write them, and folded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::support;
use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{ErrorKind, OnnxModel, Options};

/// The model in another operator set, with nothing else done to it but that shapes are written.
fn converted(source: &str, to: i64) -> Result<Model, String> {
    let model = text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let mut document = OnnxModel::of(model);
    document.fold(&Options::new().opset(Some(to)).fold(false)).map_err(|error| format!("{error:#}"))?;
    Ok(document.model().clone())
}

/// The text of the converted model, after checking that it and what becomes of it folded compute what the original does.
fn shown(source: &str, to: i64) -> String {
    let original = text::parse(source).expect("the source is a model");
    let result = converted(source, to).unwrap_or_else(|reason| panic!("{reason}\n{source}"));
    support::compare(&original, &result);
    support::folded(source, &Options::new().opset(Some(to)));
    text::print(&result)
}

macro_rules! conversions {
    ($($name:ident: $from:literal => $to:literal, $graph:expr;)*) => {
        $(#[test]
        fn $name() {
            let source = format!("<ir_version: 8, opset_import: [\"\" : {}]> {}", $from, $graph);
            insta::assert_snapshot!(format!("{source}\n\n{}", shown(&source, $to)));
        })*
    };
}

conversions! {
    attributes_become_operands: 9 => 24, "g (float[2, 6, N] x) => (a, b, c, d, e, f, k, i) {
        u = Unsqueeze <axes = [0]> (x)  a = Squeeze <axes = [0]> (u)
        b = ReduceMean <axes = [1], keepdims = 0> (x)
        c = Slice <starts = [1], ends = [9], axes = [1]> (x)
        d = Pad <pads = [0, 1, 0, 0, 1, 0], value = 2.5> (x)
        e = Clip <min = -1.0> (x)
        f, rest = Split <axis = 1, split = [2, 4]> (x)
        k, i = TopK <axis = 1, k = 2> (x) }";
    operands_align_as_attributes_said: 6 => 24, "g (float[N, 3, 5] x, float[3] y, float[5] z) => (a, b, c, d) <float[3] w = {1, 2, 3}> {
        a = Add <broadcast = 1, axis = 1> (x, y)
        b = Mul <broadcast = 1> (x, z)
        c = Sub (x, x)
        d = PRelu (x, w) }";
    a_softmax_of_several_axes_is_flattened: 11 => 24, "g (float[N, 3, M] x, float[N, 3] y) => (a, b, c) {
        a = Softmax (x)  b = LogSoftmax <axis = 2> (x)  c = Hardmax (y) }";
    upsample_is_resize: 9 => 24, "g (float[1, 2, N, N] x) => (a, b) <float[4] k = {1, 1, 2, 3}> {
        a = Upsample (x, k)  b = Upsample <mode = \"linear\"> (x, k) }";
    old_forms_of_nodes: 1 => 24, "g (float[2, 4] x) => (a, b, c, d, e) {
        a = Concat (x, x)
        b = Cast <to = \"INT32\"> (x)
        c = Reshape <shape = [4, -1], consumed_inputs = [0]> (x)
        d = Selu (x)
        e = Relu <consumed_inputs = [0]> (x) }";
    inference_is_told_otherwise: 6 => 24, "g (float[2, 3, N] x) => (y) <float[3] s = {1, 2, 3}, float[3] m = {0, 1, 2}> {
        y = BatchNormalization <is_test = 1> (x, s, m, m, s) }";
    groups_become_channels: 18 => 24, "g (float[N, 4, M] x) => (y) <float[2] s = {2, 3}, float[2] b = {1, -1}> {
        y = GroupNormalization <num_groups = 2> (x, s, b) }";
    a_batch_is_scanned_by_a_scan: 8 => 24, "g (float[B, 2] h, float[B, S, 2] x) => (last, all) {
        last, all = Scan <num_scan_inputs = 1, body: graph = step (float[2] s, float[2] v) => (float[2] t, float[2] w) {
            t = Add (s, v)  w = Identity (t) }> (\"\", h, x) }";
    a_fourier_transform_names_its_axis: 17 => 20, "g (float[2, N, 1] x) => (y) { y = DFT (x) }";
    equal_parts_may_be_empty: 13 => 24, "g (float[N, 4] x, float[0, 2] y) => (a, b, c, d, e, f) {
        a, b = Split (x)  c, d = Split <axis = -1> (x)  e, f = Split (y) }";
    bodies_take_part: 11 => 24, "g (bool c, float[1, 3] x) => (y) {
        y = If <then_branch: graph = yes () => (float[3] a) { a = Squeeze <axes = [0]> (x) },
            else_branch: graph = no () => (float[3] b) { b = ReduceSum <axes = [0], keepdims = 0> (x) }> (c) }";
    an_older_set_has_the_same_form: 21 => 13, "g (float[2, N] x) => (y) <int64[2] s = {0, -1}> {
        a = Reshape <allowzero = 0> (x, s)  b = Cast <to = 10, saturate = 1> (a)  y = Transpose (b) }";
}

#[test]
fn functions_take_part_with_attributes_of_the_call() {
    let source = r#"<ir_version: 8, opset_import: ["" : 11, "own" : 1, "ai.onnx.ml" : 2]>
        g (float[1, N] x) => (y) { y = own.f (x) }
        <domain: "own", opset_import: ["" : 11]> f <axes: ints = [0]> (x) => (y) { y = Squeeze <axes: ints = @axes> (x) }"#;
    let result = shown(source, 24);
    assert!(result.contains("\"ai.onnx.ml\" : 2"), "other domains keep their versions:\n{result}");
    assert!(!result.contains("\"\" : 11"), "{result}");
    insta::assert_snapshot!(result);
}

#[test]
fn types_in_functions_are_those_of_their_calls() {
    let source = |second: &str| {
        format!(
            r#"<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2, N] x, {second}[3, M] z) => (y, w) {{ y = own.f (x) w = own.f (z) }}
        <domain: "own", opset_import: ["" : 21, "own" : 1]> f (x) => (y) {{ t = own.h (x)  y = Transpose (t) }}
        <domain: "own", opset_import: ["" : 21]> h (x) => (y) {{ y = Identity (x) }}"#
        )
    };
    insta::assert_snapshot!(shown(&source("float"), 13));
    insta::assert_snapshot!(converted(&source("double"), 13).expect_err("calls differ"));
}

#[test]
fn an_attribute_that_a_call_may_leave_out_is_refused() {
    let source = r#"<ir_version: 8, opset_import: ["" : 11, "own" : 1]>
        g (float[1, N] x) => (y) { y = own.f (x) }
        <domain: "own", opset_import: ["" : 11]> f <axes> (x) => (y) { y = Squeeze <axes: ints = @axes> (x) }"#;
    insta::assert_snapshot!(converted(source, 24).expect_err("axes may be left out"));
}

/// ONNX Runtime and its optimizer write LayerNormalization into models of any operator set, by the definition that came with 17.
#[test]
fn a_normalization_of_the_runtime_is_that_of_the_standard() {
    let source = |scale: &str| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : 14]> g (float[N, 4] x, {scale}[4] w) => (y) {{
                n = LayerNormalization <axis = -1> (x, w)  r = Relu (n)  y = Shape (r) }}"#
        )
    };
    let mut document = OnnxModel::of(text::parse(&source("float")).expect("the source is a model"));
    document.fold(&Options::new()).expect("it folds");
    let printed = text::print(document.model());
    assert!(printed.contains("float[N,4] r"), "{printed}");
    let newer = text::print(&converted(&source("float"), 24).expect("it is converted"));
    assert!(newer.contains("\"\" : 24") && newer.contains("LayerNormalization"), "{newer}");
    // That of the runtime takes two types, that of the standard one.
    let error = converted(&source("float16"), 24).expect_err("it is refused");
    assert!(error.contains("operands of two types"), "{error}");
}

/// ONNX Runtime moves a Transpose through it by the operator set of the model, whatever its own says.
#[test]
fn a_quantized_softmax_of_the_last_axis_is_the_newer_one() {
    let source = |axis: i64| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : 11, "com.microsoft" : 1]> g (uint8[N, 3, 4] x) => (y)
               <float s = {{0.1}}, uint8 z = {{0}}, float t = {{0.0039}}> {{
               y = com.microsoft.QLinearSoftmax <axis = {axis}, opset = 11> (x, s, z, t, z) }}"#
        )
    };
    let newer = |axis| text::print(&converted(&source(axis), 21).expect("it is converted"));
    assert!(newer(2).contains("opset: int = 13") && newer(-1).contains("opset: int = 13"), "{}", newer(2));
    // Of several axes it is another function.
    assert!(newer(1).contains("opset: int = 11"), "{}", newer(1));
}

#[test]
fn what_cannot_be_converted_is_named() {
    let refused = |from: i64, to: i64, graph: &str| {
        let source = format!("<ir_version: 8, opset_import: [\"\" : {from}]> {graph}");
        let model = text::parse(&source).unwrap_or_else(|error| panic!("{error}"));
        let error = OnnxModel::of(model).fold(&Options::new().opset(Some(to))).expect_err("it is refused");
        format!("{:?}: {error:#}", error.kind())
    };
    let told = [
        refused(11, 24, "g (float[N] x) => (y) { y = NoSuch (x)  z = NoSuch (x) }"),
        refused(11, 24, "g (float[N] x) => (y) { y = Gelu (x) }"),
        refused(6, 24, "g (float[A, B] x) => (y) { z = own.NoShape (x) y = Add <broadcast = 1, axis = 0> (x, z) }"),
        refused(6, 11, "g (float[2] x) => (y) { y = Dropout (x) }"),
        refused(8, 24, "g (int32[B] n, float[B, 2] h, float[B, S, 2] x) => (l, a) { l, a = Scan <num_scan_inputs = 1,
            body: graph = step (float[2] s, float[2] v) => (float[2] t, float[2] w) { t = Add (s, v)  w = Identity (t) }> (n, h, x) }"),
        refused(10, 24, "g (float[1, 1, N] x, float[3] s) => (y) { y = Resize (x, s) }"),
        refused(11, 13, "g (float[N, 3, M] x) => (y) { y = Softmax (x) }"),
        refused(20, 17, "g (float[N] x) => (y) { y = Gelu (x) }"),
        refused(18, 11, "g (float[2, N] x) => (y) { y = ReduceSum (x) }"),
        refused(13, 12, "g (bfloat16[2] x) => (y) { y = Relu (x) }"),
        refused(14, 13, "g (float[N] x, int64[1] s) => (y) { y = Reshape <allowzero = 1> (x, s) }"),
        refused(13, 11, "g (float[N] x, double[N] e) => (y) { y = Pow (x, e) }"),
        refused(13, 9, "g (float[N, 2] x, float[2, M] w) => (y) { y = Gemm (x, w) }"),
        refused(13, 10, "g (float[N, 2] x, float[2] s) => (y) { y = QuantizeLinear (x, s) }"),
        refused(11, 10, "g (int64 n, float[N] x) => (y) { y = Loop <body: graph = b (int64 i, bool c) => (bool d, float[N] e) {
            d = Identity (c)  e = Neg (x) }> (n, \"\") }"),
        refused(9, 13, "g (float[N] x) => (y, m) { y, m = Dropout (x) }"),
        refused(16, 21, "g (double[N] x) => (y) { y = LeakyRelu (x) }"),
        refused(18, 23, "g (int32[N] x, int32[1] s) => (y) { y = PRelu (x, s) }"),
        refused(18, 21, "g (double[N] x) => (y) { y = Softplus (x) }"),
        refused(17, 18, "g (float16[N, 2, 3, 3] x) => (y) { y = MeanVarianceNormalization (x) }"),
        refused(16, 22, "g (float[1, 1, 4, 4] x, float[N, 4] r, int64[N] b) => (y) { y = RoiAlign (x, r, b) }"),
        refused(16, 22, "g (float[N] x) => (y) { y = RandomNormalLike (x) }"),
        refused(11, 99, "g (float[N] x) => (y) { y = Relu (x) }"),
    ];
    insta::assert_snapshot!(told.join("\n"));
}

/// A model that no runtime loaded before, or that loads after, is written.
#[test]
fn what_loads_in_both_or_neither_is_converted() {
    let graphs = [(15, 21, "double"), (16, 18, "double"), (16, 21, "float"), (16, 21, "float16")];
    for (from, to, dtype) in graphs {
        let source =
            format!("<ir_version: 8, opset_import: [\"\" : {from}]> g ({dtype}[N] x) => (y) {{ y = LeakyRelu (x) }}");
        converted(&source, to).unwrap_or_else(|error| panic!("{dtype} from {from} to {to}: {error}"));
    }
}

/// Dropout is not evaluated before operator set 7, and not in training. Only then is it told what the mask holds.
#[test]
fn a_dropout_keeps_what_it_does() {
    let source = r#"<ir_version: 8, opset_import: ["" : 6]> g (float[N] x, float16[N] z) => (a, b, c, m) {
        a = Dropout <is_test = 1, ratio = 0.25> (x)
        b = Dropout <ratio = 0.25> (x)
        c, m = Dropout (z) }"#;
    insta::assert_snapshot!(text::print(&converted(source, 24).expect("it is converted")));
}

#[test]
fn without_the_option_versions_stay() {
    let source = r#"<ir_version: 4, opset_import: ["" : 9]> g (float[1, N] x) => (y) { y = Squeeze <axes = [0]> (x) }"#;
    let mut document = OnnxModel::of(text::parse(source).expect("it parses"));
    let report = document.fold(&Options::new()).expect("it folds");
    assert_eq!((document.model().ir_version, document.model().opsets[0].version, report.opset), (4, 9, None));
    let report = document.fold(&Options::new().opset(Some(24))).expect("it folds");
    assert_eq!((document.model().ir_version, document.model().opsets[0].version), (12, 24));
    assert_eq!(report.opset, Some((9, 24)));
    assert!(report.to_string().contains("opset 9 → 24"), "{report}");
    // A model that is in that operator set already is left alone.
    assert_eq!(document.fold(&Options::new().opset(Some(24))).expect("it folds").opset, None);
    let wrong = document.fold(&Options::new().opset(Some(0))).expect_err("there is none");
    assert_eq!(wrong.kind(), ErrorKind::Usage);
}

#[test]
fn idioms_become_the_operators_of_the_new_set() {
    let source = r#"<ir_version: 8, opset_import: ["" : 11]> g (float[N, 8] x) => (y)
        <float r = {1.4142135}, float one = {1.0}, float half = {0.5}> {
        a = Div (x, r)  b = Erf (a)  c = Add (b, one)  d = Mul (x, c)  y = Mul (d, half) }"#;
    let left = support::operators(&support::folded(source, &Options::new().opset(Some(20))));
    assert_eq!(left, ["Gelu"]);
}

/// Of Swish runtimes know the formula better: it becomes the operator where somebody asks for that, and stays in a model that was in the set.
#[test]
fn swish_is_written_on_request() {
    let source = |set: i64| {
        format!(
            r#"<ir_version: 8, opset_import: ["" : {set}]> g (float[n] x) => (y) {{ a = Sigmoid (x)  y = Mul (x, a) }}"#
        )
    };
    let left =
        |set: i64, to: Option<i64>| support::operators(&support::folded(&source(set), &Options::new().opset(to)));
    assert_eq!(left(17, Some(24)), ["Swish"]);
    for (set, to) in [(24, None), (24, Some(24)), (26, Some(24)), (17, Some(26)), (17, None)] {
        assert_eq!(left(set, to), ["Sigmoid", "Mul"], "{set} {to:?}");
    }
}

/// The models of the families of operators below the newest set compute the same in the newest, or the refusal is in the snapshot.
#[test]
fn families_compute_the_same_in_the_newest_set() {
    const NEWEST: i64 = 28;
    const RUNS_MOST: i64 = 21;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/families");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let (mut refused, mut compared) = (Vec::new(), 0);
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "onnxtxt")) {
        let source = std::fs::read_to_string(path).expect("a fixture");
        let original = text::parse(&source).expect("it parses");
        let has_standard = original.opset(original.main(), "").is_some();
        match converted(&source, NEWEST)
            .map_err(|reason| format!("{}: {reason}", path.file_stem().unwrap_or_default().to_string_lossy()))
        {
            // A kernel may be missing there alone.
            Err(reason) => {
                if let Ok(result) = converted(&source, RUNS_MOST) {
                    support::compare(&original, &result);
                }
                refused.push(reason);
            }
            Ok(_) if !has_standard => {}
            Ok(result) => {
                // Random results differ from run to run.
                if catch_unwind(AssertUnwindSafe(|| support::compare(&original, &original))).is_ok() {
                    support::compare(&original, &result);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 50, "{compared} compared, refused: {refused:#?}");
    insta::assert_snapshot!(refused.join("\n"));
}
