//! Which tensor a shape is read of.

use onnx_slice_fold::Options;
use onnx_slice_fold::ir::Model;

use crate::support::folded;

/// The operators that compute what shapes are read of.
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

/// A convolution and the function behind it are one kernel where nothing else reads the convolution.
#[test]
fn a_shape_is_read_behind_the_function() {
    assert_eq!(read_of("s = Shape (c)  z = Expand (q, s)  r = Relu (c)  y = Softmax (r)"), ["Relu"]);
    // The same behind several functions, and whatever comes first in the file.
    let functions = "r = Relu (c)  a = Add (r, one)  y = Softmax (a)  s = Shape (c)  z = Expand (q, s)";
    assert_eq!(read_of(functions), ["Add"]);
    // Where the convolution is read by others, it is computed by itself.
    assert_eq!(read_of("s = Shape (c)  z = Expand (q, s)  r = Relu (c)  y = Concat <axis = 0> (r, c)"), ["Conv"]);
}

/// A function that depends on the shape cannot come before it.
#[test]
fn a_function_of_the_shape() {
    assert_eq!(read_of(
            "s = Shape (c)  t = Size (c)  zero = Constant <value_int = 0> ()  step = Constant <value_int = 1> ()
             k = Range (zero, t, step)  f = Cast <to = 1> (k)  p = Reshape (f, s)  r = Add (c, p)  y = Softmax (r)  z = Abs (p)"
        ),
        ["Conv"]);
}
