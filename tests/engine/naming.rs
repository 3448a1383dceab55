//! Names of nodes, and metadata about the run.

use std::collections::BTreeSet;

use onnx_slice_fold::ir::{Model, text};
use onnx_slice_fold::{OnnxModel, Options};

use crate::support::folded;

fn names(model: &Model) -> Vec<String> {
    let order = model.topological(model.main()).expect("there is an order");
    order.into_iter().filter_map(|id| model.node(id)).map(|node| format!("{}: {}", node.name, node.op_type)).collect()
}

#[test]
fn new_nodes_are_called_after_what_they_replace() {
    let model = folded(
        r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n, 8] x) => (float[n, 4] a, float[n, 4] b)
        <int64[1] zero = {0}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] one = {1}> {
            ["/layer/Slice"] first = Slice (x, zero, four, one)
            ["/layer/Slice_1"] second = Slice (x, four, eight, one)
            ["/layer/Relu"] a = Relu (first)
            ["/layer/Neg"] b = Neg (second)
        }"#,
        &Options::default(),
    );
    assert_eq!(names(&model), ["/layer/Slice: Split", "/layer/Relu: Relu", "/layer/Neg: Neg"]);
}

#[test]
fn every_node_has_a_unique_name() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n] x, bool c) => (float[n] y) {
            [same] a = Relu (x)
            b = Neg (a)
            [same] d = Exp (b)
            y = If (c) <then_branch: graph = t () => (u) { [same] u = Sin (d) }, else_branch: graph = e () => (v) { [b] v = Cos (d) }>
        }"#;
    let model = folded(source, &Options::default());
    let printed = text::print(&model);
    let named: Vec<&str> =
        printed.lines().filter_map(|line| line.trim().strip_prefix('[')?.split(']').next()).collect();
    assert_eq!(named.len(), 6, "{printed}");
    assert_eq!(named.iter().collect::<BTreeSet<_>>().len(), 6, "{printed}");
    // The first node with a name keeps it, and a second run changes nothing.
    assert!(printed.contains("[same] a = Relu") && printed.contains("[same_1] d = Exp"), "{printed}");
    assert_eq!(text::print(&folded(&printed, &Options::default())), printed);
    // Without edits, names are those of the file.
    let mut document = OnnxModel::of(text::parse(source).expect("the model is right"));
    document.fold(&Options::new().stop_after(0)).expect("the model folds");
    assert!(document.text().contains("[same] d = Exp") && document.text().contains(" b = Neg"));
}

#[test]
fn the_metadata_describes_one_run() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n] x) => (float[n] y) <float[20] unread = {1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10}> { y = Relu (x) }"#;
    let bytes = |options: &Options, model: &[u8]| {
        let mut document = OnnxModel::from_bytes(model.to_vec()).expect("the model opens");
        document.fold(options).expect("the model folds");
        document.to_bytes().expect("the model is small")
    };
    let given = OnnxModel::of(text::parse(source).expect("the model is right")).to_bytes().expect("the model is small");
    let holds = |model: &[u8], text: &str| model.windows(text.len()).any(|part| part == text.as_bytes());
    let options = Options::new().exact(true).skip(["identity"]);
    let once = bytes(&options, &given);
    let told = format!("{} exact=true skip=[\"identity\"]", env!("CARGO_PKG_VERSION"));
    assert!(holds(&once, "onnx-slice-fold") && holds(&once, &told));
    assert_eq!(bytes(&options, &once), once);
    // The metadata of another run replaces it.
    let other = bytes(&Options::new(), &once);
    assert!(!holds(&other, "exact=true") && other.len() < once.len());
    assert!(!holds(&bytes(&Options::new().stamp(false), &given), "onnx-slice-fold"));
}

/// ONNX Runtime adds constants with generated names and does not check for existing ones. Models that it wrote have such names, and it then
/// refuses the model when it merges a sum into a product.
#[test]
fn constants_have_no_name_that_a_runtime_gives() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,6] x, bool c) => (y, z, squeeze_axes) <
            int64[3] gemm_input_shape = {2,3,2}, int64[1] squeeze_axes = {1}, int64[1] gemm_output_shape_token = {6}> {
            y = Reshape (x, gemm_input_shape)
            z = If (c) <
                then_branch: graph = t () => (float[k] u) <int64[1] gemm_output_shape_token_12 = {12}> { u = Reshape (x, gemm_output_shape_token_12) },
                else_branch: graph = e () => (float[k] v) { r = Reshape (x, gemm_output_shape_token) v = Relu (r) }>
        }"#;
    let printed = text::print(&folded(source, &Options::default()));
    let named = |name: &str| printed.contains(&format!(" {name} = "));
    assert!(named("gemm_input_shape_1") && named("gemm_output_shape_token_12_1"), "{printed}");
    // Names of outputs are kept, and names that only share the prefix.
    assert!(named("squeeze_axes") && printed.contains("gemm_output_shape_token)"), "{printed}");
}
