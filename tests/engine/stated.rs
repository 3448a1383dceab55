//! The choice of shapes that a result states, and files that must not grow.

use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{LeftOut, OnnxModel, Options, Shapes};

/// Returns the model as the bytes of a file, with names of nodes.
fn bytes(source: &str) -> Vec<u8> {
    let mut model = text::parse(source).expect("a model");
    model.name_nodes();
    OnnxModel::of(model).to_bytes().expect("few bytes")
}

fn lean() -> Options {
    Options::new().shapes(Shapes::Lean)
}

/// Returns the folded model and its bytes.
fn folded(bytes: &[u8], options: &Options) -> (OnnxModel, usize) {
    let mut model = OnnxModel::from_bytes(bytes.to_vec()).expect("a model");
    model.fold(options).expect("it folds");
    let written = model.to_bytes().expect("few bytes").len();
    (model, written)
}

/// Returns the node results with a declared shape, except the outputs.
fn stated(model: &Model) -> Vec<&str> {
    let nodes = model.graph(model.main()).nodes().filter_map(|id| model.node(id));
    let values = nodes.flat_map(|node| node.outputs().iter().flatten());
    let inner = values.filter(|&&value| !model.is_output(value) && model.value(value).declared.is_some());
    inner.map(|&value| model.value(value).name.as_str()).collect()
}

#[test]
fn new_shapes_are_left_out_on_demand() {
    let declared = CHAIN.replace("(float[n,m] y) {", "(float[n,m] y) <float[n,4] a> {");
    let (model, _) = folded(&bytes(&declared), &Options::new().shapes(Shapes::Keep));
    assert_eq!(stated(model.model()), ["a"]);
    let output = model.model().graph(model.model().main()).outputs()[0];
    assert!(model.model().value(output).declared.is_some());
}

/// A sum whose second operand has a shape that ONNX Runtime does not infer, because the length of the Slice has no name there.
const SUM: &str = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[n,s,4] x, float[1,9,4] t) => (float[n,s,4] o)
    <float[4] w = {1.0, 2.0, 3.0, 4.0}, float[4] v = {0.0, 1.0, 0.0, 1.0}, int64[1] zero = {0}, int64[1] one = {1}> {
    size = Shape <start = 1, end = 2> (x)
    a = Tanh (x)
    c = Slice (t, zero, size, one)
    d = Sin (x)
    b = Add (d, c)
    sum = Add (a, b)
    norm = LayerNormalization <axis = -1> (sum, w, v)
    o = Sin (norm)
}"#;

/// The inner values of `SUM`, and those among them whose shapes do not lead to `b`, or follow from that of `x`.
const ALL: [&str; 7] = ["size", "a", "c", "d", "b", "sum", "norm"];
const OTHERS: [&str; 5] = ["size", "a", "d", "sum", "norm"];
const NONE: [&str; 0] = [];

/// The names of inner values with a stated shape, and the report's entry of the omitted shapes.
fn stated_under(source: &str, options: &Options) -> (Vec<String>, Option<LeftOut>) {
    let mut model = OnnxModel::from_bytes(bytes(source)).expect("a model");
    let report = model.fold(options).expect("it folds");
    (stated(model.model()).into_iter().map(str::to_string).collect(), report.left_out)
}

#[test]
fn a_shape_that_lets_a_runtime_fuse_a_sum_is_left_out() {
    let (names, left_out) = stated_under(SUM, &Options::new());
    assert_eq!(names, OTHERS);
    let left_out = left_out.expect("shapes are left out");
    assert_eq!(left_out.shapes, 2);
    assert!(left_out.reason.contains("a sum with the normalization after it"), "{}", left_out.reason);
}

#[test]
fn shapes_that_imply_such_a_shape_are_omitted_as_well() {
    let longer = SUM.replace("sum = Add (a, b)", "e = Sin (b) f = Softmax (e) sum = Add (f, a)");
    assert_eq!(stated_under(&longer, &Options::new()).0, OTHERS);
    // ONNX Runtime infers a branch from outer values, and the results of the If from the branch.
    let branches = "e = If (f) <then_branch: graph = th () => (float t1) { t1 = Sin (b) }, else_branch: graph = el () => (float t2) { t2 = Cos (b) }>";
    let inner = SUM.replace("float[1,9,4] t)", "float[1,9,4] t, bool f)");
    let inner = inner.replace("sum = Add (a, b)", &format!("{branches} sum = Add (a, e)"));
    assert_eq!(stated_under(&inner, &Options::new()).0, OTHERS);
}

#[test]
fn all_shapes_are_stated_where_they_let_no_runtime_fuse_a_sum() {
    let row = SUM.replace("Add (a, b)", "Add (row, b)").replace("a = Tanh (x)", "row = ReduceMax <axes = [1]> (x)");
    for (what, source) in [
        ("the runtime finds the shape", SUM.replace("Slice (t, zero, size, one)", "Cos (x)")),
        ("another node reads the sum", SUM.replace("o = Sin (norm)", "o = Add (norm, sum)")),
        ("the sum is an output", SUM.replace("(float[n,s,4] o)", "(float[n,s,4] o, float[n,s,4] sum)")),
        ("the type has no kernel", SUM.replace("float[", "double[")),
        ("a size differs", row),
        ("no normalization", SUM.replace("LayerNormalization <axis = -1> (sum, w, v)", "Sin (sum)")),
    ] {
        assert_eq!(stated_under(&source, &Options::new()).1, None, "{what}");
    }
}

#[test]
fn a_normalization_in_basic_operators_counts() {
    let spelled = SUM
        .replace("\"\" : 17", "\"\" : 15")
        .replace("one = {1}>", "one = {1}, float two = {2.0}, float little = {0.00001}>")
        .replace(
            "norm = LayerNormalization <axis = -1> (sum, w, v)",
            "mean = ReduceMean <axes = [-1]> (sum) centred = Sub (sum, mean) square = Pow (centred, two)
            variance = ReduceMean <axes = [-1]> (square) more = Add (variance, little) root = Sqrt (more)
            quotient = Div (centred, root) scaled = Mul (quotient, w) norm = Add (scaled, v)",
        );
    let (names, left_out) = stated_under(&spelled, &Options::new());
    assert!(!names.contains(&"b".to_string()) && names.contains(&"mean".to_string()), "{names:?}");
    assert_eq!(left_out.map(|left_out| left_out.shapes), Some(2));
}

#[test]
fn an_exact_result_states_no_new_shape() {
    let (names, left_out) = stated_under(SUM, &Options::new().exact(true));
    assert_eq!(names, NONE);
    assert_eq!(left_out.map(|left_out| left_out.shapes), Some(7));
}

#[test]
fn a_label_of_the_file_is_kept_where_another_lets_a_runtime_fuse_a_sum() {
    let declared = SUM.replace("one = {1}>", "one = {1}, float[n,u,4] b>");
    for options in [Options::new(), Options::new().exact(true)] {
        let (model, _) = folded(&bytes(&declared), &options);
        assert!(model.text().contains("float[n,u,4] b"), "{}", model.text());
    }
    let (model, _) = folded(&bytes(&declared), &Options::new().shapes(Shapes::All));
    assert!(model.text().contains("float[n,s,4] b"), "{}", model.text());
}

#[test]
fn shapes_are_stated_as_the_options_ask() {
    assert_eq!(stated_under(SUM, &Options::new().exact(true).shapes(Shapes::All)).0, ALL);
    assert_eq!(stated_under(SUM, &Options::new().shapes(Shapes::Keep)).0, NONE);
    let declared = SUM.replace("one = {1}>", "one = {1}, float[n,s,4] d>");
    assert_eq!(stated_under(&declared, &Options::new().shapes(Shapes::Keep)).0, ["d"]);
    assert_eq!(stated_under(&declared, &Options::new().shapes(Shapes::None)).0, NONE);
    // A run that only infers shapes declares all of them.
    for options in [Options::new().fold(false), Options::new().exact(true).stop_after(0)] {
        assert_eq!(stated_under(SUM, &options), (ALL.map(str::to_string).to_vec(), None));
    }
}

#[test]
fn a_second_run_leaves_out_the_same() {
    let (model, _) = folded(&bytes(SUM), &Options::new());
    let once = model.to_bytes().expect("few bytes");
    let (again, _) = folded(&once, &Options::new());
    assert_eq!(again.to_bytes().expect("few bytes"), once);
}

const CHAIN: &str = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[n,4] x, int64[2] s) => (float[n,m] y) {
    a = Relu (x)
    b = Reshape (a, s)
    c = Tanh (b)
    y = Softmax (c)
}"#;

#[test]
fn a_lean_file_does_not_grow_by_shapes() {
    let original = bytes(CHAIN);
    let (model, length) = folded(&original, &lean());
    assert!(length <= original.len(), "{length} of {}", original.len());
    assert_eq!(stated(model.model()), Vec::<&str>::new());
}

#[test]
fn all_shapes_are_written_unless_the_file_is_to_be_lean() {
    let original = bytes(CHAIN);
    for options in [Options::new(), lean().fold(false), lean().stop_after(0)] {
        let (model, length) = folded(&original, &options);
        assert_eq!(stated(model.model()), ["a", "b", "c"]);
        assert!(length > original.len());
    }
}

#[test]
fn shapes_that_consumers_infer_are_omitted_first() {
    // Removed nodes make room for one shape: that of the Reshape to computed sizes is kept.
    let source = CHAIN.replace("c = Tanh (b)", "i = Identity (b) j = Identity (i) c = Tanh (j)");
    let original = bytes(&source);
    let (model, length) = folded(&original, &lean().stamp(false));
    assert_eq!(stated(model.model()), ["b"]);
    assert!(length <= original.len());
}

#[test]
fn original_declarations_are_kept() {
    let declared = CHAIN.replace("(float[n,m] y) {", "(float[n,m] y) <float[n,4] a> {");
    let original = bytes(&declared);
    let (model, length) = folded(&original, &lean());
    assert_eq!(stated(model.model()), ["a"]);
    assert!(length <= original.len());
}

#[test]
fn an_unchanged_model_is_not_stamped_if_it_would_grow() {
    let original = bytes(CHAIN);
    let (model, _) = folded(&original, &lean());
    let again = model.to_bytes().expect("few bytes");
    let (again, length) = folded(&again, &lean());
    assert_eq!(stated(again.model()), Vec::<&str>::new());
    assert!(length <= original.len());
}
