//! Mistakes that tools of this kind make, one class for each test. Shapes of single operators are in `families/` as well.

use crate::support::{folded, folded_unrun, operators, shape, value};
use onnx_slice_fold::dim::Scope;
use onnx_slice_fold::ir::{DeclaredType, Model, ValueId, text};
use onnx_slice_fold::{OnnxModel, Options};
use tempfile::TempDir;

fn fold(source: &str) -> Model {
    folded_unrun(source, &Options::default()).0
}

/// Returns the folded graph at an opset.
fn graph(opset: i64, body: &str) -> Model {
    fold(&format!(r#"<ir_version: 8, opset_import: ["" : {opset}]> {body}"#))
}

/// The same, run before and after.
fn same(opset: i64, body: &str) -> Model {
    folded(&format!(r#"<ir_version: 8, opset_import: ["" : {opset}]> {body}"#), &Options::default())
}

fn names(model: &Model, values: &[ValueId]) -> Vec<String> {
    values.iter().map(|&value| model.value(value).name.to_string()).collect()
}

// Constants

#[test]
fn an_initializer_that_is_an_input_may_be_another() {
    let model = same(17, "g (float[2] x, float[2] w = {1, 2}) => (y) { d = Add (w, w) y = Mul (x, d) }");
    assert_eq!(operators(&model), ["Add", "Mul"]);
    let main = model.graph(model.main());
    assert_eq!(names(&model, main.inputs()), ["x", "w"]);
    // A caller may still omit it.
    assert_eq!(names(&model, main.initializers()), ["w"]);
}

#[test]
fn random_nodes_are_not_folded() {
    let model = graph(
        15,
        "g () => (a, b, c, d) <float[2] p = {0.5, 0.5}, float ratio = {0.5}, bool training = {1}> {
            a = RandomNormal <shape = [2], seed = 1.0> ()
            b = Bernoulli <seed = 1.0> (p)
            c, d = Dropout <seed = 1> (p, ratio, training)
        }",
    );
    assert_eq!(operators(&model), ["RandomNormal", "Bernoulli", "Dropout"]);
}

#[test]
fn a_slice_with_open_axes_or_steps_is_not_one_without() {
    let model = same(
        13,
        "g (float[4, 6] x, int64[2] axes = {1, 0}, int64[2] steps = {2, 1}) => (a, b, c)
        <int64[2] starts = {0, 0}, int64[2] ends = {4, 6}, int64[2] in_order = {0, 1}> {
            a = Slice (x, starts, ends, axes)
            b = Slice (x, starts, ends, in_order, steps)
            c = Slice (x, starts, ends)
        }",
    );
    assert_eq!(operators(&model), ["Slice", "Slice", "Identity"]);
}

#[test]
fn a_negative_dim_is_unknown() {
    let model = graph(17, "g (float[-1, 4] x) => (s, y) { s = Shape (x) y = Neg (x) }");
    assert_eq!(operators(&model), ["Shape", "Neg"]);
    assert!(!shape(&model, "y").contains('-'), "{}", shape(&model, "y"));
}

#[test]
fn nodes_that_crash_or_hang_other_tools_are_kept() {
    let model = graph(
        17,
        "g (float[1, 1, 4, 4] x, float[2, 2] m) => (a, b, c, d)
        <int64[1] one = {1}, int64[1] zero = {0}, float[1, 1, 2, 2] w = {1, 2, 3, 4}> {
            a = Div (one, zero)
            b = Conv <strides = [0, 1]> (x, w)
            c = MaxPool <kernel_shape = [2, 2], strides = [0, 0]> (x)
            d = Einsum <equation = \"....->\"> (m)
        }",
    );
    assert_eq!(operators(&model), ["Div", "Conv", "MaxPool", "Einsum"]);
}

// Shapes

#[test]
fn no_dim_is_taken_for_zero() {
    for opset in [23, 24] {
        let model = graph(
            opset,
            "g (float[b, 8, q, 16] x, float[b, 2, k, 16] y, float[b, 2, k, 12] z, float[b, 2, p, 16] py, float[b, 2, p, 12] pz) => (r, key, val)
            { r, key, val = Attention <is_causal = 1> (x, y, z, \"\", py, pz) }",
        );
        assert_eq!(shape(&model, "r"), "b,8,q,12");
        assert!(["b,2,k + p,16", "b,2,p + k,16"].contains(&shape(&model, "key").as_str()), "{}", shape(&model, "key"));
    }
}

#[test]
fn defaults_are_those_of_the_standard() {
    let model = graph(
        17,
        "g (float[b, 32, 1] x) => (y, m) <int64 step = {8}, int64 length = {16}, int64 bins = {5}, int64 rate = {100}, float low = {0}, float high = {50}> {
            y = STFT (x, step, \"\", length)
            m = MelWeightMatrix (bins, length, rate, low, high)
        }",
    );
    // The standard's own inference uses `onesided` instead of 0, and so 16 instead of 9.
    assert!(shape(&model, "y").starts_with("b,3,") && !shape(&model, "y").contains("9"));
    assert_eq!(shape(&model, "m"), "9,5");
}

#[test]
fn axes_that_are_left_out_are_all_or_none() {
    let model = same(
        18,
        "g (float[a, b, 4] x) => (all, none, kept) <int64[0] empty = {}> {
            all = ReduceSum <keepdims = 0> (x, empty)
            none = ReduceSum <noop_with_empty_axes = 1> (x, empty)
            kept = ReduceMax (x)
        }",
    );
    assert_eq!([shape(&model, "all"), shape(&model, "none"), shape(&model, "kept")], ["", "a,b,4", "1,1,1"]);
}

#[test]
fn sizes_are_those_of_the_axes_they_are_for() {
    let model = same(
        20,
        "g (float[b, 2, h, w] x, float[wide, 7] y, float[0, 3] e, float[b, 2, 3] theta) => (r, p, q, s, t, u, grid)
        <int64[2] sizes = {8, 6}, int64[2] empty = {3, 0}, int64[4] size = {2, 1, 4, 5}> {
            r = Resize <axes = [3, 2], mode = \"nearest\"> (x, \"\", \"\", sizes)
            p, q, s, t = Split <axis = 1, num_outputs = 4> (y)
            u = Reshape <allowzero = 1> (e, empty)
            grid = AffineGrid (theta, whole)
            of_theta = Shape <end = 1> (theta)
            rest = Constant <value_ints = [1, 4, 5]> ()
            whole = Concat <axis = 0> (of_theta, rest)
        }",
    );
    assert_eq!(shape(&model, "r"), "b,2,6,8");
    assert_eq!([shape(&model, "p"), shape(&model, "t")], ["wide,2", "wide,1"]);
    assert_eq!([shape(&model, "u"), shape(&model, "grid")], ["3,0", "b,4,5,2"]);
}

#[test]
fn losses_and_unique_rows_keep_their_axes() {
    let model = graph(
        13,
        "g (float[b, 5, d] x, int64[b, d] t, float[r, 3] rows) => (each, mean, unique) {
            each = NegativeLogLikelihoodLoss <reduction = \"none\"> (x, t)
            mean = SoftmaxCrossEntropyLoss (x, t)
            unique = Unique <axis = 0> (rows)
        }",
    );
    assert_eq!([shape(&model, "each"), shape(&model, "mean")], ["b,d", ""]);
    assert!(shape(&model, "unique").ends_with(",3"));
}

#[test]
fn windows_begin_within_the_data() {
    let model = same(
        22,
        "g (float[1, 1, 6, 5] x) => (same, ceiled, plain) {
            same = MaxPool <kernel_shape = [2, 2], strides = [2, 2], auto_pad = \"SAME_UPPER\", ceil_mode = 1> (x)
            ceiled = MaxPool <kernel_shape = [1, 1], strides = [2, 3], ceil_mode = 1> (x)
            plain = AveragePool <kernel_shape = [2, 2], strides = [3, 3], ceil_mode = 1, pads = [0, 0, 1, 1]> (x)
        }",
    );
    assert_eq!([shape(&model, "same"), shape(&model, "ceiled")], ["1,1,3,3", "1,1,3,2"]);
    assert_eq!(shape(&model, "plain"), "1,1,2,2");
}

#[test]
fn pads_begin_with_all_begins() {
    let model = same(
        11,
        "g (float[1, 1, h, w] x) => (y, z) <float[1, 1, 3, 3] k = {1, 0, 0, 0, 1, 0, 0, 0, 1}> {
            y = Conv <pads = [2, 0, 1, 0]> (x, k)
            z = Conv <auto_pad = \"SAME_LOWER\", strides = [2, 1]> (x, k)
        }",
    );
    assert_eq!(shape(&model, "y"), "1,1,h + 1,w - 2");
    assert_eq!(shape(&model, "z"), "1,1,floor((h + 1)/2),w");
}

#[test]
fn lengths_of_slices_are_not_negative() {
    let model = same(
        13,
        "g (float[d] x) => (low, high, back) <int64[1] five = {5}, int64[1] top = {1000}, int64[1] far = {1003}, int64[1] minus = {-1}, int64[1] zero = {0}> {
            low = Slice (x, five, top)
            high = Slice (x, top, far)
            back = Slice (x, five, zero, zero, minus)
        }",
    );
    let scope = Scope::new();
    let size = |name: &str, d: i64| {
        let dim = scope.parse(&shape(&model, name)).expect("it is an expression");
        dim.evaluate(&|symbol| (symbol == scope.named("d")).then_some(d))
    };
    for d in [0, 1, 2, 4, 5, 6, 7, 999, 1000, 1001, 1002, 1003, 1004, 5000] {
        assert_eq!(size("low", d), Some((d.min(1000) - 5).max(0)), "{d}");
        assert_eq!(size("high", d), Some((d.min(1003) - 1000).max(0)), "{d}");
        assert_eq!(size("back", d), Some(5.min(d - 1).max(0)), "{d}");
    }
}

#[test]
fn declared_dims_of_inputs_stay() {
    // They are equal in every successful run, but the caller's interface does not change.
    let model = graph(17, "g (float[i, j] x, float[3, 2] y) => (float[3, 2] z) { z = Sum (x, y) }");
    assert_eq!([shape(&model, "x"), shape(&model, "y")], ["i,j", "3,2"]);
}

// Values

#[test]
fn parts_of_shapes_are_parts() {
    let model = same(15, "g (float[b, 3, 4, 5] x) => (y) { y = Shape <start = -3, end = 3> (x) }");
    assert!(operators(&model).is_empty());
    assert_eq!(model.value(value(&model, "y")).tensor().and_then(|tensor| tensor.to_i64s()), Some(vec![3, 4]));
}

#[test]
fn constants_keep_their_type() {
    let model = same(
        19,
        "g () => (small, many, one) <float[2] w = {0.5, 500}> {
            small = Cast <to = 17> (w)
            many = Constant <value_floats = [1.5]> ()
            one = Constant <value_int = 3> ()
        }",
    );
    let types =
        ["small", "many", "one"].map(|name| model.value(value(&model, name)).tensor().map(|t| t.dtype().name()));
    assert_eq!(types, [Some("float8e4m3fn"), Some("float"), Some("int64")]);
}

#[test]
fn saturation_is_part_of_a_cast() {
    let model = same(
        19,
        "g (float[n] x) => (a, b, c) <float[1] w = {1000}> {
            s = Cast <to = 17, saturate = 1> (w)
            n = Cast <to = 17, saturate = 0> (w)
            a = Cast <to = 1> (s)
            b = Cast <to = 1> (n)
            x1 = CastLike <saturate = 0> (x, s)
            x2 = CastLike <saturate = 1> (x, s)
            x3 = Cast <to = 1> (x1)
            x4 = Cast <to = 1> (x2)
            c = Add (x3, x4)
        }",
    );
    let of = |name: &str| {
        model.value(value(&model, name)).tensor().and_then(|tensor| tensor.to_f64s()).expect("it is folded")
    };
    assert_eq!(of("a"), [448.0]);
    assert!(of("b")[0].is_nan());
    // The two casts of x are different.
    let narrow: Vec<_> = operators(&model).into_iter().filter(|name| name == "CastLike" || name == "Cast").collect();
    assert_eq!(narrow.len(), 4, "{}", text::print(&model));
}

#[test]
fn absent_operands_count() {
    let model = same(13, "g (float[n] x, float b) => (low, high) { low = Clip (x, b) high = Clip (x, \"\", b) }");
    assert_eq!(operators(&model), ["Clip", "Clip"]);
}

#[test]
fn a_mask_is_no_data() {
    let model = graph(13, "g (float[n] x) => (y, mask) { d, mask = Dropout (x) y = Neg (d) }");
    assert!(operators(&model).contains(&"Dropout".to_string()));
    let mask = model.value(value(&model, "mask"));
    assert_eq!(mask.declared.as_ref().and_then(DeclaredType::dtype).map(|dtype| dtype.name()), Some("bool"));
}

#[test]
fn optionals_and_sequences_keep_their_types() {
    let model =
        same(17, "g (int64 i = {0}) => (o, s) <float[2] w = {1, 2}> { o = Optional (w) s = SequenceConstruct (w, w) }");
    let kind = |name: &str| model.value(value(&model, name)).declared.clone();
    assert!(matches!(kind("o"), Some(DeclaredType::Optional { .. })), "{:?}", kind("o"));
    assert!(matches!(kind("s"), Some(DeclaredType::Sequence { .. })), "{:?}", kind("s"));
}

// Structure

#[test]
fn interfaces_keep_names_and_order() {
    let model = same(
        17,
        "g (float[n] b, float[n] unread, float[n] a) => (b, twice, a, same) { same = Identity (a) twice = Add (b, b) }",
    );
    let main = model.graph(model.main());
    assert_eq!(names(&model, main.inputs()), ["b", "unread", "a"]);
    assert_eq!(names(&model, main.outputs()), ["b", "twice", "a", "same"]);
}

#[test]
fn bodies_of_unknown_operators_keep_theirs() {
    let model = fold(
        r#"<ir_version: 8, opset_import: ["" : 17, "com.example" : 1]>
        g (float[n] x) => (y) {
            y = com.example.Beam <decoder: graph = d (float[m] ids, float[m] unread) => (logits, ids2) {
                t = Identity (ids) logits = Neg (t) ids2 = Identity (ids) }> (x)
        }"#,
    );
    let node = model.graph(model.main()).nodes().find_map(|id| model.node(id)).expect("the node stays");
    let body = model.graph(node.subgraphs().next().expect("its body stays"));
    assert_eq!(names(&model, body.inputs()), ["ids", "unread"]);
    assert_eq!(names(&model, body.outputs()), ["logits", "ids2"]);
}

#[test]
fn order_and_names_of_nodes_are_free() {
    let model =
        same(17, "g (float[n] x) => (y) { [same] y = Neg (c) [same] a = Abs (x) b = Exp (a) [\"\"] c = Add (b, a) }");
    assert_eq!(operators(&model).len(), 4);
    let order: Vec<_> = model.topological(model.main()).expect("there is an order");
    let listed: Vec<_> = crate::support::written(&model)
        .lines()
        .filter(|line| line.contains(" = ") && line.contains('('))
        .map(str::to_string)
        .collect();
    assert_eq!(order.len(), 4);
    let at = |name: &str| listed.iter().position(|line| line.contains(name)).expect("it is printed");
    assert!(at("Abs") < at("Exp") && at("Exp") < at("Add") && at("Add") < at("Neg"), "{listed:?}");
}

#[test]
fn old_operator_sets_and_outputs_without_types_are_read() {
    let model = same(
        6,
        "g (float[n, 2] x) => (y, float[] z) <float[2] w = {1, 2}> { y = Add <broadcast = 1> (x, w) z = Softmax (y) }",
    );
    assert_eq!([shape(&model, "y"), shape(&model, "z")], ["n,2", "n,2"]);
}

#[test]
fn constants_do_not_grow_and_inputs_are_not_frozen() {
    let model = graph(
        13,
        "g (float[n, 512, 512] x) => (a, b, c) <int64[3] many = {64, 512, 512}> {
            a = Add (x, x)
            b = Expand (one, many)
            one = Constant <value_floats = [1.5]> ()
            c = ConstantOfShape (many)
        }",
    );
    assert_eq!(operators(&model), ["Add", "Expand", "ConstantOfShape"]);
    assert_eq!(shape(&model, "a"), "n,512,512");
}

// Files

/// Encodes a field of a message: its number and its bytes.
fn field(number: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("payloads are short here");
    assert!(length < 128);
    let tag = u32::from(number) << 3 | 2;
    let mut bytes = if tag < 128 { vec![tag as u8] } else { vec![tag as u8 & 0x7f | 0x80, (tag >> 7) as u8] };
    bytes.push(length);
    bytes.extend(payload);
    bytes
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Fields that the program does not use are preserved.
#[test]
fn every_field_of_a_file_is_written_back() {
    let folder = TempDir::new().expect("a folder");
    let source = r#"<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[3] x, float[3] s) => (float[3] y) { t = f.Twice:fast (x) u = f.Twice (t) y = Add (u, s) }
        <domain: "f", overload: "fast", opset_import: ["" : 21, "com.example" : 1]> Twice (a) => (b) { b = com.example.Add (a, a) }
        <domain: "f", opset_import: ["" : 21, "com.example" : 1]> Twice (a) => (b) { b = com.example.Mul (a, a) }"#;
    let path = folder.path().join("model.onnx");
    OnnxModel::of(text::parse(source).unwrap_or_else(|error| panic!("{error}"))).save(&path).expect("it is written");
    let values = [&[8, 1, 16, 1][..], &field(8, b"s"), &field(9, &[0, 0, 128, 63])].concat();
    let indices = [&[8, 1, 16, 7][..], &field(9, &[1, 0, 0, 0, 0, 0, 0, 0])].concat();
    let sparse = [&[26, 1, 3][..], &field(1, &values), &field(2, &indices)].concat();
    let training = field(2, &field(2, b"algorithm"));
    let entry = [field(1, b"author"), field(2, b"somebody")].concat();
    let kept: [(Vec<u8>, &[u8]); 5] = [
        (field(7, &field(15, &sparse)), &values),
        (field(20, &training), b"algorithm"),
        (field(14, &entry), b"somebody"),
        (field(6, b"all about it"), b"all about it"),
        (field(7, &field(10, b"about the graph")), b"about the graph"),
    ];
    let mut bytes = std::fs::read(&path).expect("the file is read");
    bytes.extend(kept.iter().flat_map(|(field, _)| field));
    std::fs::write(&path, &bytes).expect("the file is written");
    let mut document = OnnxModel::open(&path).unwrap_or_else(|error| panic!("{error:#}"));
    document.fold(&Options::default()).expect("the model folds");
    let target = folder.path().join("folded.onnx");
    document.save(&target).expect("it is written");
    let written = std::fs::read(&target).expect("the file is read");
    for (_, part) in &kept {
        assert!(contains(&written, part), "{} is lost", String::from_utf8_lossy(part));
    }
    assert!(contains(&written, b"fast"), "the overload is lost");
    assert!(OnnxModel::open(&target).is_ok());
}

/// A function that only training information calls is in use.
#[test]
fn functions_that_training_may_call_are_kept() {
    let folder = TempDir::new().expect("a folder");
    let source = r#"<ir_version: 10, opset_import: ["" : 21, "f" : 1]> g (float[3] x) => (float[3] y) { y = Neg (x) }
        <domain: "f", opset_import: ["" : 21]> OfTraining (a) => (b) { b = Neg (a) }"#;
    let path = folder.path().join("model.onnx");
    OnnxModel::of(text::parse(source).unwrap_or_else(|error| panic!("{error}"))).save(&path).expect("it is written");
    let target = folder.path().join("folded.onnx");
    let stays = || {
        let mut document = OnnxModel::open(&path).unwrap_or_else(|error| panic!("{error:#}"));
        document.fold(&Options::default()).expect("the model folds");
        document.save(&target).expect("it is written");
        contains(&std::fs::read(&target).expect("the file is read"), b"OfTraining")
    };
    assert!(!stays());
    let mut bytes = std::fs::read(&path).expect("the file is read");
    bytes.extend(field(20, &field(2, &field(2, b"algorithm"))));
    std::fs::write(&path, &bytes).expect("the file is written");
    assert!(stays());
}
