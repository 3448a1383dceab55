//! The choice of the tensor that a Shape reads.

use onnx_slice_fold::Options;
use onnx_slice_fold::ir::Model;

use crate::support::folded;

/// Returns the operators whose results Shape nodes read.
fn read_of(body: &str) -> Vec<String> {
    let source = format!(
        "<ir_version: 8, opset_import: [\"\" : 17]>
        g (float[n,1,l] x, float[1] q) => (y, z) <float[2,1,3] w = {{1, 2, 1, 0.5, -1, 2}}, float[1] one = {{1}}> {{
            c = Conv <pads = [1, 1]> (x, w)  {body} }}"
    );
    let model: Model = folded(&source, &Options::default());
    let nodes = model.graph(model.main()).nodes().filter_map(|id| model.node(id)).filter(|node| node.is("Shape"));
    let producers = nodes.filter_map(|node| model.value(node.input(0)?).producer());
    producers.filter_map(|id| model.node(id)).map(|node| node.op_type.to_string()).collect()
}

/// A convolution and the function after it are one kernel if nothing else reads the convolution.
#[test]
fn a_shape_is_read_after_the_function() {
    assert_eq!(read_of("s = Shape (c)  z = Expand (q, s)  r = Relu (c)  y = Softmax (r)"), ["Relu"]);
    // The same after several functions, in any order of the file.
    let functions = "r = Relu (c)  a = Add (r, one)  y = Softmax (a)  s = Shape (c)  z = Expand (q, s)";
    assert_eq!(read_of(functions), ["Add"]);
    // If other nodes read the convolution, it is computed separately.
    assert_eq!(read_of("s = Shape (c)  z = Expand (q, s)  r = Relu (c)  y = Concat <axis = 0> (r, c)"), ["Conv"]);
}

/// A function that depends on the shape cannot precede it.
#[test]
fn a_function_of_the_shape() {
    assert_eq!(read_of(
            "s = Shape (c)  t = Size (c)  zero = Constant <value_int = 0> ()  step = Constant <value_int = 1> ()
             k = Range (zero, t, step)  f = Cast <to = 1> (k)  p = Reshape (f, s)  r = Add (c, p)  y = Softmax (r)  z = Abs (p)"
        ),
        ["Conv"]);
}

/// OpenVINO gives a strided Slice the sizes of its operand, unless they are computed in the form of the file.
#[test]
fn no_shape_of_a_strided_slice_is_read() {
    let read = |step: i64| {
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : 17]>
            g (float[b,2,h,w] x, float[b,q,8] n) => (s, y, v)
            <int64[4] perm = {{0,2,3,1}}, int64[2] z = {{0,0}}, int64[2] e = {{9223372036854775807,9223372036854775807}}, int64[2] a = {{1,2}},
             int64[2] steps = {{{step},{step}}}, int64 less = {{{}}}, int64 by = {{{step}}}, int64 at0 = {{0}}, int64 at1 = {{2}}, int64 at2 = {{3}},
             int64[1] ax = {{0}}, int64[1] eight = {{8}}> {{
                xs = Shape (x)  t = Gather (xs, perm)  r = Reshape (x, t)
                s = Slice (r, z, e, a, steps)  u = Relu (s)  v = Concat <axis = 3> (u, s)
                b1 = Gather (xs, at0)  h1 = Gather (xs, at1)  w1 = Gather (xs, at2)
                h2 = Add (h1, less)  h3 = Div (h2, by)  w2 = Add (w1, less)  w3 = Div (w2, by)
                b4 = Unsqueeze (b1, ax)  h4 = Unsqueeze (h3, ax)  w4 = Unsqueeze (w3, ax)
                d = Concat <axis = 0> (b4, h4, w4, eight)  y = Reshape (n, d) }}",
            step - 1
        );
        let model: Model = folded(&source, &Options::default());
        let nodes = model.graph(model.main()).nodes().filter_map(|id| model.node(id));
        let measured = nodes.filter(|node| node.is("Shape")).filter_map(|node| node.input(0));
        measured.map(|value| model.value(value).name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(read(2), ["x"]);
    assert_eq!(read(3), ["x"]);
}
