//! What is left out if the file is not to be larger than the one that was read.

use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{OnnxModel, Options};

/// The model in memory, as a file has it, with names of nodes.
fn bytes(source: &str) -> Vec<u8> {
    let mut model = text::parse(source).expect("a model");
    model.name_nodes();
    OnnxModel::of(model).to_bytes().expect("few bytes")
}

fn lean() -> Options {
    Options::new().lean(true)
}

/// The folded model, and its bytes.
fn folded(bytes: &[u8], options: &Options) -> (OnnxModel, usize) {
    let mut model = OnnxModel::from_bytes(bytes.to_vec()).expect("a model");
    model.fold(options).expect("it folds");
    let written = model.to_bytes().expect("few bytes").len();
    (model, written)
}

/// The results of nodes whose shape is written, but for the outputs.
fn stated(model: &Model) -> Vec<&str> {
    let nodes = model.graph(model.main()).nodes().filter_map(|id| model.node(id));
    let values = nodes.flat_map(|node| node.outputs().iter().flatten());
    let inner = values.filter(|&&value| !model.is_output(value) && model.value(value).declared.is_some());
    inner.map(|&value| model.value(value).name.as_str()).collect()
}

#[test]
fn new_shapes_are_left_out_on_demand() {
    let declared = CHAIN.replace("(float[n,m] y) {", "(float[n,m] y) <float[n,4] a> {");
    let (model, _) = folded(&bytes(&declared), &Options::new().new_shapes(false));
    assert_eq!(stated(model.model()), ["a"]);
    let output = model.model().graph(model.model().main()).outputs()[0];
    assert!(model.model().value(output).declared.is_some());
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
fn what_a_reader_finds_by_itself_is_left_out_first() {
    // Nodes that go make room for one shape: that of the Reshape to sizes that are computed stays.
    let source = CHAIN.replace("c = Tanh (b)", "i = Identity (b) j = Identity (i) c = Tanh (j)");
    let original = bytes(&source);
    let (model, length) = folded(&original, &lean().stamp(false));
    assert_eq!(stated(model.model()), ["b"]);
    assert!(length <= original.len());
}

#[test]
fn what_the_file_had_stays() {
    let declared = CHAIN.replace("(float[n,m] y) {", "(float[n,m] y) <float[n,4] a> {");
    let original = bytes(&declared);
    let (model, length) = folded(&original, &lean());
    assert_eq!(stated(model.model()), ["a"]);
    assert!(length <= original.len());
}

#[test]
fn a_model_that_nothing_is_done_to_is_not_stamped_if_it_would_grow() {
    let original = bytes(CHAIN);
    let (model, _) = folded(&original, &lean());
    let again = model.to_bytes().expect("few bytes");
    let (again, length) = folded(&again, &lean());
    assert_eq!(stated(again.model()), Vec::<&str>::new());
    assert!(length <= original.len());
}
