//! Operands with a rank that a node refuses: a runtime that does not know the rank loads the model and may never run the node. So the rank
//! is not written. The axes to insert or remove are inputs, so that only their number is known.

use onnx_slice_fold::Options;

use crate::support::folded_unrun;

/// Nodes that read a tensor `v` of rank 2 in place of a scalar or a vector.
const REFUSING: [&str; 5] = [
    "y = Expand (d, v)",
    "y = OneHot (places, v, pair)",
    "w = Cast <to = 1> (v)  y = Dropout (d, w)",
    "w = Cast <to = 9> (v)  y = Dropout (d, half, w)",
    "w = Cast <to = 9> (v)
     y = Loop (\"\", w, d) <body: graph = b (int64 i, bool c, float[2,3] a) => (bool again, float[2,3] e) { again = Identity (c)  e = Neg (a) }>",
];

/// Returns the rank that the folded model declares for a value, if any, with this computation of `v` and these nodes.
fn axes_stated(computed: &str, nodes: &str, name: &str) -> Option<usize> {
    let source = format!(
        "<ir_version: 8, opset_import: [\"\" : 17]>
        g (float[2,3] d, int64[2] k, int64[1] one, int64[1] axes, int64[2] places) => (y) <float half = {{0.5}}, float[2] pair = {{0,1}}> {{
            {computed}  {nodes}
        }}"
    );
    let (model, _) = folded_unrun(&source, &Options::new());
    let results = model.graph(model.main()).nodes().filter_map(|id| model.node(id)).flat_map(|node| node.outputs());
    let mut named = results.flatten().map(|&value| model.value(value)).filter(|value| value.name == name);
    Some(named.next()?.declared.as_ref()?.shape()?.len())
}

#[test]
fn a_rank_that_a_node_refuses_is_not_declared() {
    for nodes in REFUSING {
        for name in ["v", "w"] {
            assert_eq!(axes_stated("v = Unsqueeze (k, axes)", nodes, name), None, "{nodes}");
        }
    }
}

#[test]
fn a_rank_that_a_node_accepts_is_declared() {
    assert_eq!(axes_stated("v = Unsqueeze (k, axes)", "y = Neg (v)", "v"), Some(2));
}

/// At load time, ONNX Runtime infers that NonZero of a scalar is empty; at run time it finds an index. It refuses the parts of the result
/// once their sizes are constant.
#[test]
fn operands_next_to_a_result_of_disputed_shape_are_kept() {
    let source = "<ir_version: 8, opset_import: [\"\" : 17]>
        g (float[n] x) => (z, w) <int64 two = {2}, int64[1] one = {1}> {
            v = NonZero (two)  sizes = Concat <axis = 0> (one)  y = Split <axis = 0> (v, sizes)  z = Cast <to = 1> (y)  w = Neg (x) }";
    let (model, _) = folded_unrun(source, &Options::new());
    assert!(crate::support::operators(&model).contains(&"Concat".to_string()));
}

/// ONNX Runtime gives rows of no iteration the shape that the body declares. If its inference contradicts the declaration, it knows no
/// shape.
#[test]
fn missing_rows_with_a_false_declaration_are_kept() {
    let left = |row: &str| {
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : 17]>
            g (float[n] x) => (y, z) <int64 one = {{1}}, bool no = {{0}}, float[3] row = {{1, 2, 3}}> {{
                y = Loop <body: graph = b (int64 i, bool c) => (bool d, {row} r) {{ d = Identity (c)  r = Neg (row) }}> (one, no)  z = Neg (x) }}"
        );
        crate::support::operators(&folded_unrun(&source, &Options::new()).0)
    };
    for falsely in ["float[6,1]", "float[2]"] {
        assert!(left(falsely).contains(&"Loop".to_string()), "{falsely}");
    }
    assert_eq!(left("float[3]"), ["Neg"]);
}
