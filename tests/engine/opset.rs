//! Conversion to another opset: the direct result of the conversion steps, and after folding.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::support;
use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{ErrorKind, OnnxModel, Options};

/// Returns the model converted to another opset and otherwise unchanged, with shapes.
fn converted(source: &str, to: i64) -> Result<Model, String> {
    let model = text::parse(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let mut document = OnnxModel::of(model);
    document.fold(&Options::new().opset(Some(to)).fold(false)).map_err(|error| format!("{error:#}"))?;
    Ok(document.model().clone())
}

/// Returns the text of the converted model, after checking that it computes the same as the original, also when folded.
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
    operands_become_attributes: 18 => 9, "g (float[2, 6, N] x, float[1, N] z) => (a, b, c, d, e, f, h, k, i, j) <
        int64[1] first = {0}, int64[1] last = {-1}, int64[1] one = {1}, int64[1] nine = {9}, int64[1] two = {2},
        int64[2] pads = {1, 2}, float fill = {2.5}, float low = {-1}, int64[0] none = {}> {
        u = Unsqueeze (x, last)  a = Squeeze (u, last)
        b = ReduceMean <keepdims = 0> (x, last)
        c = Slice (x, one, nine, last)
        d = Pad (x, pads, fill, last)
        e = Clip (x, low)
        f, rest = Split <axis = -2, num_outputs = 2> (x)
        k, i = TopK <axis = 1> (x, two)
        h = ReduceSum <noop_with_empty_axes = 1> (x, none)
        j = ReduceMax <keepdims = 0> (z) }";
    parts_of_an_open_size_have_computed_sizes: 18 => 13, "g (float[N, 4] x, float[7, 2] y) => (a, b, c, d, e) {
        a, b = Split <axis = 0, num_outputs = 2> (x)  c, d, e = Split <num_outputs = 3> (y) }";
    pads_of_some_axes_are_pads_of_all: 18 => 13, "g (float[2, N, 3] x, int64[2] p) => (a, b) <
        int64[1] axis = {-2}, int64[4] both = {1, 0, 2, 3}, int64[2] axes = {2, 0}> {
        a = Pad (x, p, \"\", axis)  b = Pad <mode = \"edge\"> (x, both, \"\", axes) }";
    an_inner_axis_of_a_softmax_becomes_the_last_one: 13 => 12, "g (float[N, 3, M] x, float[N, 3, 1] y) => (a, b, c, d) {
        a = Softmax (x)  b = LogSoftmax <axis = 1> (x)  c = Hardmax <axis = 0> (x)  d = Softmax <axis = 1> (y) }";
    rows_of_a_tensor_that_may_be_empty_take_its_shape: 11 => 13, "g (float[N, 3, M] x) => (a, b, c) {
        a = Softmax (x)  b = LogSoftmax <axis = 0> (x)  c = Hardmax (x) }";
    a_shape_of_a_run_is_sliced: 15 => 13, "g (float[N, 3, M] x) => (a, b, c) {
        a = Shape <start = 1> (x)  b = Shape <start = -5, end = -1> (x)  c = Shape <start = 2, end = 1> (x) }";
    a_size_of_0_stays_where_it_can_be: 15 => 13, "g (float[N, 6] x, int64[2] s, float[N, 2, M] y) => (a, b, c) <int64[3] t = {-1, 2, 3}> {
        a = Reshape <allowzero = 1> (x, s)
        b = Reshape <allowzero = 1> (x, t)
        n = Shape <start = 0, end = 2> (y)  c = Reshape <allowzero = 1> (y, e)  m = Shape (y)  e = Concat <axis = 0> (n, o)
        o = Shape <start = 2> (y) }";
    a_size_inferred_next_to_one_of_0_is_written_out: 18 => 13, "g (float[N, S, 6] x) => (a, b) <int64[2] t = {-1, 2}> {
        n = Shape <end = 2> (x)  e = Concat <axis = 0> (n, t)  a = Reshape <allowzero = 1> (x, e)
        m = Constant <value_ints = [-1]> ()  s = Shape <start = 1> (x)  f = Concat <axis = 0> (m, s)  b = Reshape <allowzero = 1> (x, f) }";
    functions_of_an_element: 24 => 13, "g (float[N, 4] x, double[N] z, int64[N] i) => (a, b, c, d, e, f, h, k, l) {
        a = Gelu (x)  b = Gelu <approximate = \"tanh\"> (z)  c = Mish (x)  d = HardSwish (x)  e = HardSwish (z)
        f = Swish <alpha = 1.5> (x)  h = CastLike (i, x)  k = Celu <alpha = 2.0> (x)  l = Relu (i) }";
    comparisons_of_older_sets: 18 => 11, "g (float[N] x, float[N] y, int64[N] i, int8[N] j) => (a, b, c, d, e, f) <
        int64 low = {-1}, int64 high = {2}, int8 small = {-3}> {
        a = GreaterOrEqual (x, y)  b = LessOrEqual (x, y)  c = Clip (i, low, high)  d = Clip (j, small)
        e = Max (i, low, high)  f = Min (j, small) }";
    normalizations_are_written_out: 23 => 16, "g (float[N, 3, 4] x, float[N, 4] z, float16[N, 4] h) => (a, m, i, b, c, d) <
        float[3, 4] s = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[4] t = {1, 2, 3, 4}, float16[4] w = {1, 1, 2, 4}> {
        a, m, i = LayerNormalization <axis = 1, epsilon = 0.01> (x, s, s)
        b = LayerNormalization (z, t)
        c = RMSNormalization (h, w)
        d = RMSNormalization <axis = -2> (x, s) }";
    groups_are_written_out: 21 => 16, "g (float[N, 4, M] x, float[N, 4, 3, 2] z) => (a, b) <
        float[4] s = {2, 3, 4, 5}, float[4] o = {1, -1, 0, 2}> {
        a = GroupNormalization <num_groups = 2> (x, s, o)  b = GroupNormalization <num_groups = 4> (z, s, o) }";
    groups_with_numbers_of_their_own_are_written_out: 18 => 17, "g (float[N, 4, M] x) => (a) <float[2] s = {2, 3}, float[2] o = {1, -1}> {
        a = GroupNormalization <num_groups = 2> (x, s, o) }";
    attention_is_written_out: 23 => 20, "g (float[B, S, 8] q, float[B, T, 4] k, float[B, T, 4] v, float[B, 2, P, 2] pk, float[B, 2, P, 2] pv, bool[S, T] m)
        => (a, pa, pb, b, qk) {
        a, pa, pb = Attention <q_num_heads = 4, kv_num_heads = 2, is_causal = 1> (q, k, v, \"\", pk, pv)
        b, x, y, qk = Attention <q_num_heads = 4, kv_num_heads = 2, softcap = 2.0, qk_matmul_output_mode = 2> (q, k, v, m) }";
    attention_in_a_window_of_a_padded_cache_is_written_out: 25 => 23, "g (float[B, 2, S, 4] q, float[B, 2, T, 4] k, int64[B] n) => (a, b) {
        a = Attention <is_causal = 1> (q, k, k, \"\", \"\", \"\", n)
        b = Attention <left_window_size = 1, right_window_size = 0> (q, k, k) }";
    rotary_embeddings_are_written_out: 23 => 20, "g (float[B, S, 8] x, float[B, 2, S, 6] y, int64[B, S] p, float[B, S, 2] c) => (a, b) <
        float[5, 2] t = {1, 0, 0.5, 0.2, 0.3, 0.1, 0, 1, 0.7, 0.9}> {
        a = RotaryEmbedding <num_heads = 2, interleaved = 1> (x, t, t, p)
        b = RotaryEmbedding <rotary_embedding_dim = 4> (y, c, c) }";
    triangles_are_selected: 14 => 13, "g (float[N, 3, M] x, bool[M, M] y, int64[M, 2] z) => (a, b, c) <int64 k = {1}, int64 back = {-1}> {
        a = Trilu (x)  b = Trilu <upper = 0> (y, back)  c = Trilu <upper = 0> (z, k) }";
    images_are_sampled_as_before: 20 => 16, "g (float[1, 1, H, W] x, float[1, 2, 3, 2] p) => (a, b) {
        a = GridSample (x, p)  b = GridSample <mode = \"cubic\", padding_mode = \"border\"> (x, p) }";
    a_resize_of_some_axes_is_one_of_all: 19 => 11, "g (float[1, 2, H, 3] x) => (a, b) <float[1] s = {2}, int64[2] t = {5, 4}> {
        a = Resize <axes = [2]> (x, \"\", s)  b = Resize <axes = [3, 2], mode = \"linear\"> (x, \"\", \"\", t) }";
    a_resize_that_grows_is_an_upsample: 11 => 8, "g (float[1, 2, H, 3] x) => (a, b) <float[0] r = {}, float[4] s = {1, 1, 2, 3}> {
        a = Resize (x, r, s)  b = Resize <mode = \"linear\", coordinate_transformation_mode = \"asymmetric\"> (x, r, s) }";
    windows_that_begin_in_the_padding_are_left_out: 22 => 11, "g (float[1, 1, 5, 4] x, float[1, 1, H, W] y) => (a, b) {
        a = AveragePool <kernel_shape = [2, 2], strides = [2, 3], pads = [1, 1, 1, 1], ceil_mode = 1> (x)
        b = AveragePool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1, dilations = [1, 1]> (y) }";
    inference_has_no_mode: 15 => 6, "g (float[2, 3, N] x) => (a) <float[3] s = {1, 2, 3}, float[3] m = {0, 1, 2}> {
        a = BatchNormalization (x, s, m, m, s) }";
    constants_of_numbers_are_tensors: 13 => 11, "g (float[N, 2] x) => (a, y) {
        i = Constant <value_ints = [0, 2]> ()  a = Reshape (x, i)  f = Constant <value_float = 0.5> ()  y = Mul (x, f) }";
    operands_broadcast_as_attributes_say: 11 => 6, "g (float[N, 3] x, float[3] y, float[3, 4] w, float[4, 2] v) => (a, b, c) {
        a = Add (x, y)  b = Mul (x, x)  c = Gemm (w, v) }";
    a_fourier_transform_has_its_axis_as_attribute: 20 => 17, "g (float[2, N, 1] x) => (y) { y = DFT (x) }";
}

#[test]
fn a_dropout_outside_of_training_gets_is_test() {
    let source = r#"<ir_version: 8, opset_import: ["" : 13]> g (float[N] x, float half) => (a, b) <bool no = {0}, float ratio = {0.25}> {
        a = Dropout (x, ratio)  b = Dropout (x, half, no) }"#;
    insta::assert_snapshot!(text::print(&converted(source, 6).expect("it is converted")));
}

/// New nodes and constants of a function's body exist at every call.
#[test]
fn functions_are_converted_as_well() {
    let source = r#"<ir_version: 8, opset_import: ["" : 20, "own" : 1]>
        g (float[N, 4] x, float[M, 4] z) => (y, w) { y = own.f (x)  w = own.f (z) }
        <domain: "own", opset_import: ["" : 20]> f (x) => (y) {
            axes = Constant <value_ints = [-1]> ()  m = ReduceMean (x, axes)  d = Sub (x, m)  y = Gelu (d) }"#;
    insta::assert_snapshot!(shown(source, 13));
    // The types of two calls differ, and so would the constants.
    let other = source.replace("float[M, 4] z", "double[M, 4] z");
    assert!(converted(&other, 13).expect_err("calls differ").contains("the element type of operand 0 is unknown"));
}

/// Sizes that the user declares to be other than 0 need no form for 0.
#[test]
fn assumed_sizes_count() {
    let source = r#"<ir_version: 8, opset_import: ["" : 18]> g (float[N, 6] x, float[A, B] z) => (y) {
        s = Shape (z)  c = Constant <value_ints = [6]> ()  t = Concat <axis = 0> (s, c)  y = Reshape <allowzero = 1> (x, t) }"#;
    let expands = |options: Options| {
        let mut document = OnnxModel::of(text::parse(source).expect("it parses"));
        document.fold(&options.opset(Some(13))).expect("it is converted");
        support::operators(document.model()).iter().any(|operator| operator == "Expand")
    };
    assert!(expands(Options::new()) && !expands(Options::new().dim("A=1..").dim("B=1..")));
}

/// Recognized operators are written in the requested opset.
#[test]
fn expanded_operators_are_not_fused_again() {
    let source = r#"<ir_version: 8, opset_import: ["" : 20]> g (float[N, 4] x) => (y) <float[4] s = {1, 2, 3, 4}> {
        a = LayerNormalization (x, s)  y = Gelu (a) }"#;
    let result = support::folded(source, &Options::new().opset(Some(13)));
    let operators = support::operators(&result);
    assert!(operators.iter().all(|operator| operator != "Gelu" && operator != "LayerNormalization"), "{operators:?}");
    assert_eq!(result.opsets[0].version, 13);
}

/// A quantized Softmax follows the opset of the model in both directions.
#[test]
fn a_quantized_softmax_of_the_last_axis_is_the_older_one() {
    let source = r#"<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]> g (uint8[N, 4] x) => (y)
        <float s = {0.1}, uint8 z = {0}, float t = {0.0039}> {
        y = com.microsoft.QLinearSoftmax <axis = -1, opset = 13> (x, s, z, t, z) }"#;
    let older = text::print(&converted(source, 12).expect("it is converted"));
    assert!(older.contains("opset: int = 12"), "{older}");
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

/// ONNX Runtime and its optimizer write LayerNormalization into models of any opset, with the definition of opset 17.
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
    // The runtime's operator accepts two types, the standard's one.
    let error = converted(&source("float16"), 24).expect_err("it is refused");
    assert!(error.contains("operands of two types"), "{error}");
}

/// ONNX Runtime moves a Transpose through it by the opset of the model, whatever its attribute is.
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
    // For several axes it is another function.
    assert!(newer(1).contains("opset: int = 11"), "{}", newer(1));
}

#[test]
fn unsupported_conversions_are_named() {
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
        refused(11, 13, "g (float[N] x) => (y) { z = own.NoShape (x) y = Softmax (z) }"),
        refused(20, 17, "g (float[1, 5, 5] x, int64[2] i) => (y) { y = Col2Im (x, i, i) z = Gelu (x) }"),
        refused(18, 11, "g (float[2, N] x, int64[1] a) => (y) { y = ReduceSum (x, a) }"),
        refused(18, 13, "g (float[2, N] x, int64[K] a) => (y) { y = ReduceLogSum <noop_with_empty_axes = 1> (x) }"),
        refused(19, 17, "g (float[2, N] x, int64[4] p) => (y) { y = Pad <mode = \"wrap\"> (x, p) }"),
        refused(19, 17, "g (float[2, N] x) => (y) { y = Cast <to = 17> (x) }"),
        refused(19, 16, "g (float[1, 1, N, 4] x) => (y) <float[4] s = {1, 1, 2, 2}> { y = Resize <antialias = 1> (x, \"\", s) }"),
        refused(20, 16, "g (float[1, 1, D, H, W] x, float[1, 1, 1, 1, 3] p) => (y) { y = GridSample (x, p) }"),
        refused(21, 19, "g (float[N, 4] x, float[N, 2] s) => (y) { y = QuantizeLinear <block_size = 2> (x, s) }"),
        refused(18, 16, "g (float[N] x, int64[1] i, float[1] u) => (y) { y = ScatterElements <reduction = \"max\"> (x, i, u) }"),
        refused(20, 11, "g (float[N] x) => (y) { a = Gelu (x)  y = Einsum <equation = \"a,a->a\"> (x, a) }"),
        refused(22, 18, "g (float[1, 1, N] x) => (y) { y = AveragePool <kernel_shape = [2], strides = [3], ceil_mode = 1> (x) }"),
        refused(13, 10, "g (float[N] x) => (y, m) { y, m = Dropout (x) }"),
        refused(13, 12, "g (bfloat16[2] x) => (y) { y = Relu (x) }"),
        refused(14, 13, "g (float[N] x, int64[K] s) => (y) { y = Reshape <allowzero = 1> (x, s) }"),
        refused(13, 11, "g (float[N] x, double[N] e) => (y) { y = Pow (x, e) }"),
        refused(11, 10, "g (int64[1] k, float[N, 3] x) => (y) { y = Gather (x, k) }"),
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

/// A model that loads in no runtime before the conversion, or that loads after it, is written.
#[test]
fn models_that_load_in_both_or_neither_are_converted() {
    let graphs = [(15, 21, "double"), (16, 18, "double"), (16, 21, "float"), (16, 21, "float16")];
    for (from, to, dtype) in graphs {
        let source =
            format!("<ir_version: 8, opset_import: [\"\" : {from}]> g ({dtype}[N] x) => (y) {{ y = LeakyRelu (x) }}");
        converted(&source, to).unwrap_or_else(|error| panic!("{dtype} from {from} to {to}: {error}"));
    }
}

/// Dropout is not evaluated before opset 7, and not in training. Only then the mask's content matters.
#[test]
fn a_dropout_keeps_what_it_does() {
    let source = r#"<ir_version: 8, opset_import: ["" : 6]> g (float[N] x, float16[N] z) => (a, b, c, m) {
        a = Dropout <is_test = 1, ratio = 0.25> (x)
        b = Dropout <ratio = 0.25> (x)
        c, m = Dropout (z) }"#;
    insta::assert_snapshot!(text::print(&converted(source, 24).expect("it is converted")));
}

#[test]
fn without_the_option_versions_are_kept() {
    let source = r#"<ir_version: 4, opset_import: ["" : 9]> g (float[1, N] x) => (y) { y = Squeeze <axes = [0]> (x) }"#;
    let mut document = OnnxModel::of(text::parse(source).expect("it parses"));
    let report = document.fold(&Options::new()).expect("it folds");
    assert_eq!((document.model().ir_version, document.model().opsets[0].version, report.opset), (4, 9, None));
    let report = document.fold(&Options::new().opset(Some(24))).expect("it folds");
    assert_eq!((document.model().ir_version, document.model().opsets[0].version), (12, 24));
    assert_eq!(report.opset, Some((9, 24)));
    assert!(report.to_string().contains("opset 9 → 24"), "{report}");
    // A model that has the opset already is unchanged.
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

/// Runtimes recognize the formula of Swish better than the operator: it becomes the operator on request, and is kept in a model that has
/// the opset.
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

/// The models of the operator families below the newest opset compute the same in the newest, or the snapshot has the refusal.
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
            // A kernel may be missing in the newest opset only.
            Err(reason) => {
                if let Ok(result) = converted(&source, RUNS_MOST) {
                    support::compare(&original, &result);
                }
                refused.push(reason);
            }
            Ok(_) if !has_standard => {}
            Ok(result) => {
                // Random results differ between runs.
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
