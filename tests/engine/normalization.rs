//! Values inside of a normalization get no further consumers.

use onnx_slice_fold::Options;
use onnx_slice_fold::ir::{NodeId, ValueId};

use crate::support::folded;

#[test]
fn sizes_are_not_read_of_a_mean() {
    // The shape of the mean has the 1 that the expanded shape needs; the shape of its operand does not.
    let model = folded(
        r#"<ir_version: 8, opset_import: ["" : 13]>
           g (float[n,s,4] a, float[1] t) => (y, z) <float two = {2}, float eps = {0.00001}, float[4] w = {1,2,3,4}, float[4] b = {5,6,7,8},
             int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] one = {1}> {
             x = Relu (a)
             m = ReduceMean <axes = [-1], keepdims = 1> (x)  d = Sub (x, m)  p = Pow (d, two)
             v = ReduceMean <axes = [-1], keepdims = 1> (p)  e = Add (v, eps)  r = Sqrt (e)
             q = Div (d, r)  u = Mul (q, w)  y = Add (u, b)
             h = Shape (y)  n0 = Gather (h, i0)  s0 = Gather (h, i1)
             to = Concat <axis = 0> (n0, one, s0, s0)  z = Expand (t, to) }"#,
        &Options::default(),
    );
    let nodes = || model.graph(model.main()).nodes().filter_map(|id| model.node(id));
    assert!(nodes().any(|node| node.op_type == "ReduceMean"), "the normalization stays");
    let sizes: Vec<_> = nodes().filter(|node| node.op_type == "Shape").filter_map(|node| node.input(0)).collect();
    assert!(!sizes.is_empty(), "sizes are read");
    for tensor in sizes {
        let producer = model.value(tensor).producer().and_then(|id| model.node(id)).map(|node| node.op_type.clone());
        assert_ne!(producer.as_deref(), Some("ReduceMean"));
    }
}

/// Returns the operators of a folded model in which a constant is added to `x` and the sum is normalized.
fn operators_of_sum(constant: &str) -> Vec<String> {
    let source = format!(
        r#"<ir_version: 8, opset_import: ["" : 17]>
           g (float[n,2,4] x) => (y) <float[2,4] rows = {{1,2,3,4,5,6,7,8}}, float[4] row = {{1,2,3,4}}, float[4] w = {{1,2,3,4}}> {{
             u = Relu (x)  c = {constant}  s = Add (u, c)  y = LayerNormalization (s, w) }}"#
    );
    let model = folded(&source, &Options::default());
    model.graph(model.main()).nodes().filter_map(|id| Some(model.node(id)?.op_type.to_string())).collect()
}

#[test]
fn a_folded_addend_before_a_normalization_is_a_node() {
    // Optimizers that fuse a sum and its normalization accept no initializer there, and the original model had none.
    let mut operators = operators_of_sum("Neg (rows)");
    operators.sort_unstable();
    assert_eq!(operators, ["Add", "Constant", "LayerNormalization", "Relu"]);
    // They do not fuse rows that are broadcast along other axes than the batch.
    assert!(!operators_of_sum("Neg (row)").contains(&"Constant".to_string()));
}

#[test]
fn an_addend_that_was_an_initializer_stays_one() {
    assert!(!operators_of_sum("Identity (rows)").contains(&"Constant".to_string()));
}

/// Returns the operators that read the end of the positions in the embedding of a folded model, last first.
fn operators_of_positions(opset: usize, second: &str, product: &str) -> Vec<String> {
    let source = format!(
        r#"<ir_version: 8, opset_import: ["" : {opset}]>
           g (int64[n,s] words, int64[n,s] kinds, float[2,2] f, float[2,2] g, float[2,2] e) => (o) <float[2] b1 = {{1,2}},
             float[2] b2 = {{1,3}}, float[2] b3 = {{2,3}}, float[5,2] w = {{1,2,3,4,5,6,7,8,9,10}}, float[2,2] k = {{1,2,3,4}},
             float[4,2] p = {{1,2,3,4,5,6,7,8}}, int64[1,4] all = {{0,1,2,3}}, int64[1] zero = {{0}}, int64 one = {{1}}, int64[1] step = {{1}},
             float two = {{2}}, float tiny = {{0.001}}, float[2] scale = {{1,3}}> {{
             a = Gather (w, words)  b = {second}
             sizes = Shape (words)  s = Gather (sizes, one)  end = Unsqueeze (s, zero)
             row = Slice (all, zero, end, step, step)  c = Gather (p, row)
             ab = Add (a, b)  x = Add (ab, c)
             m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  q = Pow (d, two)  v = ReduceMean <axes = [-1]> (q)
             e1 = Add (v, tiny)  r = Sqrt (e1)  z = Div (d, r)  y = Mul (z, scale)
             h0 = MatMul (y, f)  h = Add (h0, b1)  i0 = MatMul (y, g)  i = Add (i0, b2)  j0 = {product}  j = Add (j0, b3)
             k1 = Transpose <perm = [0, 2, 1]> (i)  hi = MatMul (h, k1)  hij = MatMul (hi, j)  o = Add (hij, y) }}"#
    );
    let model = folded(&source, &Options::default());
    let producer = |value: ValueId| model.node(model.value(value).producer()?);
    let all: Vec<NodeId> = model.graph(model.main()).nodes().collect();
    let slice = all.into_iter().filter_map(|id| model.node(id)).find(|node| node.op_type == "Slice").expect("a slice");
    let nodes = std::iter::successors(producer(slice.input(2).expect("an end")), |node| producer(node.input(0)?));
    nodes.map(|node| node.op_type.to_string()).collect()
}

#[test]
fn positions_of_an_embedding_are_counted_as_optimizers_look_for_it() {
    for opset in [13, 17] {
        assert_eq!(
            operators_of_positions(opset, "Gather (k, kinds)", "MatMul (y, e)"),
            ["Unsqueeze", "Gather", "Shape"]
        );
    }
    // They do not fuse two summed lookups, nor an embedding without an attention after it.
    assert_eq!(operators_of_positions(17, "Identity (two)", "MatMul (y, e)"), ["Shape"]);
    assert_eq!(operators_of_positions(17, "Gather (k, kinds)", "Exp (h)"), ["Shape"]);
}
