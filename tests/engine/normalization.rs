//! What lies inside of a normalization is read by nothing else.

use onnx_slice_fold::Options;

use crate::support::folded;

#[test]
fn sizes_are_not_read_of_a_mean() {
    // The shape of the mean has the 1 that the expanded shape needs; that of what is averaged has not.
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

/// The operators of a folded model in which a constant is added to `x` and the sum is normalized.
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
    // Tools that make one kernel of a sum and its normalization want no initializer there, which the model did not have either.
    let mut operators = operators_of_sum("Neg (rows)");
    operators.sort_unstable();
    assert_eq!(operators, ["Add", "Constant", "LayerNormalization", "Relu"]);
    // Rows that are broadcast otherwise than over the batch are none of theirs.
    assert!(!operators_of_sum("Neg (row)").contains(&"Constant".to_string()));
}

#[test]
fn an_addend_that_was_an_initializer_stays_one() {
    assert!(!operators_of_sum("Identity (rows)").contains(&"Constant".to_string()));
}
