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
