//! Dequantized constants stay quantized if a run computes with them.

use onnx_slice_fold::Options;
use onnx_slice_fold::ir::{Model, text};

use crate::support::{folded, folded_unrun};

fn printed(source: &str, options: &Options) -> String {
    text::print(&folded(source, options))
}

fn count(model: &Model, operator: &str) -> usize {
    let nodes = model.graph(model.main()).nodes();
    nodes.filter_map(|id| model.node(id)).filter(|node| node.op_type == operator).count()
}

const HEAD: &str = r#"<ir_version: 8, opset_import: ["" : 13]>"#;

fn product(weights: &str) -> String {
    format!(
        "{HEAD} g (uint8[n,2] x) => (y) <float s = {{0.5}}, uint8 z = {{3}}, int8[3,2] w = {{1,2,3,4,5,6}}, float[3] ws = {{0.5, 0.25, 2.0}},
         float t = {{0.25}}, int8[3] wz = {{0,0,0}}, int8 tz = {{1}}, int64[2] back = {{2,3}}> {{
         xf = DequantizeLinear (x, s, z)
         {weights}
         p = MatMul (xf, m)
         y = QuantizeLinear (p, s, z) }}"
    )
}

#[test]
fn weights_stay_integers() {
    let source = product("m0 = DequantizeLinear <axis = 0> (w, ws, wz)  m = Transpose <perm = [1,0]> (m0)");
    // The integers are transposed, and so is the axis of the scales.
    insta::assert_snapshot!(printed(&source, &Options::default()));
    insta::assert_snapshot!(printed(&source, &Options::new().fold_dequantize(true)));
}

#[test]
fn one_scale_goes_through_a_reshape() {
    let source = product("m0 = DequantizeLinear (w, t, tz)  m = Reshape (m0, back)");
    insta::assert_snapshot!(printed(&source, &Options::default()));
}

#[test]
fn a_scale_for_each_index_needs_its_axis() {
    // Rows of three instead of rows of two: no axis has the indices of the scales.
    let source = product("m0 = DequantizeLinear <axis = 0> (w, ws, wz)  m = Reshape (m0, back)");
    let model = folded(&source, &Options::default());
    assert_eq!(count(&model, "Reshape"), 1);
    assert_eq!(count(&model, "DequantizeLinear"), 2);
}

#[test]
fn dequantized_constants_with_constant_consumers_are_folded() {
    let source = product("m0 = DequantizeLinear (w, t, tz)  m1 = Transpose (m0)  m = Mul (m1, s)");
    let model = folded(&source, &Options::default());
    assert_eq!(count(&model, "DequantizeLinear"), 1);
    assert_eq!(count(&model, "Mul") + count(&model, "Transpose"), 0);
}

#[test]
fn an_output_of_the_model_folds() {
    let source =
        format!("{HEAD} g () => (y) <int8[2] w = {{1,2}}, float t = {{0.25}}> {{ y = DequantizeLinear (w, t) }}");
    let model = folded(&source, &Options::default());
    assert_eq!(count(&model, "DequantizeLinear"), 0);
}

/// The bias of one Conv is quantized again for another one: a constant of a constant, next to a consumer at run time.
#[test]
fn constants_computed_from_quantized_ones_are_folded() {
    let source = format!(
        "{HEAD} g (float[n,2,5,5] x, float[n,2] v) => (y, z) <int32[2] b = {{1,2}}, float t = {{0.25}}, float u = {{0.5}}, int8 uz = {{0}},
         int8[2,2,1,1] k = {{1,2,3,4}}, int8[2,2] w = {{1,2,3,4}}> {{
         kf = DequantizeLinear (k, t)  bf = DequantizeLinear (b, t)  y = Conv (x, kf, bf)
         q = QuantizeLinear (bf, u, uz)  two = Cast <to = 1> (q)  z = Add (v, two) }}"
    );
    let model = folded(&source, &Options::default());
    assert_eq!(count(&model, "DequantizeLinear"), 2);
    assert_eq!(count(&model, "QuantizeLinear") + count(&model, "Cast"), 0);
}

/// A known input size makes the operand constant: the positions of a rotary embedding, times its frequencies.
#[test]
fn constants_derived_from_sizes_stay_quantized() {
    let source = product(
        "sizes = Shape (x)  one = Constant <value = int64[1] {1}> ()  three = Constant <value = int64[1] {3}> ()  size = Gather (sizes, one)
         shape = Concat <axis = 0> (size, three)  wide = Expand (t, shape)
         q = QuantizeLinear (wide, t, tz)  m = DequantizeLinear (q, t, tz)",
    );
    let model = folded(&source, &Options::default());
    assert_eq!(
        (count(&model, "Expand"), count(&model, "QuantizeLinear"), count(&model, "DequantizeLinear")),
        (0, 1, 2)
    );
}

/// ONNX Runtime adds in integers only if neither operand is an initializer.
#[test]
fn dequantized_constants_are_kept_before_other_operators_than_products() {
    let source = format!(
        "{HEAD} g (uint8[n,2] x) => (y) <float s = {{0.5}}, uint8 z = {{3}}, float[2] c = {{1.5, 2.5}}> {{
         xf = DequantizeLinear (x, s, z)
         cq = QuantizeLinear (c, s, z)  cf = DequantizeLinear (cq, s, z)
         p = Add (xf, cf)
         y = QuantizeLinear (p, s, z) }}"
    );
    let model = folded(&source, &Options::default());
    assert_eq!((count(&model, "QuantizeLinear"), count(&model, "DequantizeLinear")), (2, 2));
}

/// No Shape is added between an operation and the quantization of its result.
#[test]
fn sizes_are_read_outside_of_groups() {
    let source = format!(
        "{HEAD} g (float[n,4] x, float[4,6] w) => (y, size) <float s = {{0.5}}, uint8 z = {{3}}, int64 zero = {{0}}, int64[1] at = {{0}}, int64[1] six = {{6}}> {{
         p = MatMul (x, w)  q = QuantizeLinear (p, s, z)  d = DequantizeLinear (q, s, z)  y = Relu (d)
         sh = Shape (x)  n0 = Gather (sh, zero)  n1 = Unsqueeze (n0, at)  both = Concat <axis = 0> (n1, six)  size = Expand (s, both) }}"
    );
    let printed = printed(&source, &Options::default());
    assert!(!printed.contains("Shape (p)") && !printed.contains("Shape (q)"), "{printed}");
}

/// No Shape is added before a function that the quantization makes redundant by its bounds.
#[test]
fn no_shape_is_read_before_a_function_that_quantization_bounds() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[n,2,h,w] x) => (y, t) <float[4,2,1,1] k = {1,2,3,4,5,6,7,8}, float s = {0.5}, uint8 z = {0}, int64 one = {1}, int64 two = {2},
          int64[1] at = {0}, int64[1] four = {4}> {
            p = Conv <strides = [2,2]> (x, k)  r = Relu (p)  q = QuantizeLinear (r, s, z)  d = DequantizeLinear (q, s, z)
            sh = Shape (d)  h = Gather (sh, two)  h1 = Unsqueeze (h, at)  both = Concat <axis = 0> (h1, four)  t = Expand (s, both)
            m = Neg (d)  y = Relu (m) }"#;
    let printed = printed(source, &Options::default());
    assert!(!printed.contains("Shape (r)") && !printed.contains("Shape (p)"), "{printed}");
}

/// A Shape of a dequantized value is not moved behind a function of the value that is quantized again.
#[test]
fn no_shape_is_read_after_a_function_that_is_quantized_again() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17]>
        g (float[n,m] x, int64[1] by) => (y, t) <float s = {0.5}, uint8 z = {0}> {
            a = NonZero (x)  f = Cast <to = 1> (a)  q = QuantizeLinear (f, s, z)  d = DequantizeLinear (q, s, z)
            p = Sigmoid (d)  r = QuantizeLinear (p, s, z)  y = DequantizeLinear (r, s, z)
            sh = Shape <start = 1, end = 2> (d)  both = Concat <axis = 0> (sh, by)  t = Expand (s, both) }"#;
    let printed = printed(source, &Options::default());
    assert!(!printed.contains("Shape <start: int = 1, end: int = 2> (p)"), "{printed}");
}

/// ONNX Runtime quantizes before it transposes, and would return the quantized numbers.
#[test]
fn no_output_is_transposed_and_quantized() {
    let with = |shown: &str, turned: &str| {
        let source = format!(
            "{HEAD} g (float[h,w] x) => (y, v) <float s = {{0.5}}, uint8 z = {{3}}> {{ a = Relu (x) {shown} {turned}
             q = QuantizeLinear (t, s, z) y = DequantizeLinear (q, s, z) }}"
        );
        folded(&source, &Options::default())
    };
    let turned = "t = Transpose <perm = [1,0]> (a)";
    assert_eq!(count(&with("v = Identity (a)", turned), "Identity"), 1);
    assert_eq!(count(&with("v = Relu (x)", turned), "Relu"), 2);
    assert_eq!(count(&with("v = Identity (a)", "t = Neg (a)"), "Identity"), 0);
    assert_eq!(count(&with("v = Relu (x)", "t = Neg (a)"), "Relu"), 1);
    // If the value is an output already, nothing gets worse.
    let twice = "t = Transpose <perm = [1,0]> (v)";
    assert_eq!(count(&with("v = Identity (a)", twice), "Identity"), 0);
    // Two Transposes are not merged into one in this case.
    let merged = |outputs: &str| {
        let source = format!(
            "{HEAD} g (float[h,w,c] x) => ({outputs}) <float s = {{0.5}}, uint8 z = {{3}}> {{
             v = Relu (x) a = Transpose <perm = [1,0,2]> (v) t = Transpose <perm = [0,2,1]> (a)
             q = QuantizeLinear (t, s, z) y = DequantizeLinear (q, s, z) }}"
        );
        count(&folded(&source, &Options::default()), "Transpose")
    };
    assert_eq!([merged("y, v"), merged("y")], [2, 1]);
}

/// ONNX Runtime quantizes before it transposes, with its own operators as well as the standard's, and would return a quantized output.
#[test]
fn no_output_is_transposed_and_quantized_by_another_domain() {
    let source = r#"<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[h, w] x) => (y, b) <float s = {0.5}, uint8 z = {3}>
        {
            a = Exp (x)
            b = Exp (x)
            t = Transpose <perm = [1, 0]> (a)
            q = com.microsoft.QuantizeLinear (t, s, z)
            y = com.microsoft.DequantizeLinear (q, s, z)
        }"#;
    let (model, _) = folded_unrun(source, &Options::new());
    assert_eq!(count(&model, "Exp"), 2);
}

/// ONNX Runtime quantizes before a Slice or a Reshape, and has no kernels for narrow elements.
#[test]
fn no_movement_is_written_next_to_narrow_quantization() {
    let folded = |nodes: &str, point: &str| {
        let source = format!(
            "<ir_version: 13, opset_import: [\"\" : 25]> g (float[m, 4] x) => (float[k, l] y)
             <float s = {{0.5}}, float o = {{0}}, {point}, int64[2] once = {{1, 1}}, int64[1] first = {{0}}, int64[1] two = {{2}}> {{ {nodes} }}"
        );
        folded(&source, &Options::default())
    };
    // The nodes next to a quantization of these elements, once everything else is removed.
    let chains = [
        (
            "q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) y, w = Split <axis = 1, num_outputs = 2> (d)",
            "Split",
            "Slice",
        ),
        (
            "a, b = Split <axis = 1, num_outputs = 2> (x) q = QuantizeLinear (a, s, z) y = DequantizeLinear (q, s, z)",
            "Split",
            "Slice",
        ),
        (
            "a = Slice (x, first, two) b = Tile (a, once) q = QuantizeLinear (b, s, z) y = DequantizeLinear (q, s, z)",
            "Tile",
            "Slice",
        ),
        (
            "q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) b = Tile (d, once) y = Slice (b, first, two)",
            "Tile",
            "Slice",
        ),
    ];
    for (nodes, stays, moved) in chains {
        let eight = format!("z = Cast <to = 17> (o) {nodes}");
        for (nodes, point) in [(nodes, "uint2 z = {1}"), (&eight, "uint8 other = {1}")] {
            assert_eq!(count(&folded(nodes, point), stays), 1, "{nodes}");
        }
        let others = folded(nodes, "uint8 z = {1}");
        assert_eq!((count(&others, stays), count(&others, moved)), (0, 1), "{nodes}");
    }
}

/// Before opset 13 no attribute names the axis of several scales, so they cannot follow a movement.
#[test]
fn several_scales_without_an_axis_do_not_move() {
    let (model, _) = folded_unrun(
        r#"<ir_version: 10, opset_import: ["" : 11]> g (float[2,1] b) => (y)
        <float[2] s = {0.5, 0.25}, int8[2] z = {3, 1}, int8[1,2] x = {3, 2}>
        { d = DequantizeLinear (x, s, z) t = Transpose <perm = [1,0]> (d) y = Add (t, b) }"#,
        &Options::new(),
    );
    let text = text::print(&model);
    assert!(text.contains("DequantizeLinear (x, s, z)") && !text.contains("axis"), "{text}");
}

/// Movements do not turn weights into floats: a Concat with floats, a Concat of one tensor twice, a Tile.
#[test]
fn weights_that_are_only_moved_stay_integers() {
    let float = "f = Constant <value = float[1,2] {1.5,2.5}> ()  two = Constant <value = int64[2] {2,1}> ()";
    let weights = "m0 = DequantizeLinear (w, t, tz)";
    for (moved, operator) in [
        ("m = Concat <axis = 0> (m0, f)  at = Constant <value = int64[1] {0}> ()", "Concat"),
        ("m1 = Concat <axis = 0> (f, m0)  m2 = Identity (m1)  m = Concat <axis = 0> (m2, m2)", "Concat"),
        ("m = Tile (m0, two)", "Tile"),
    ] {
        let moved = format!("{float} {weights} {moved} mt = Transpose <perm = [1,0]> (m)");
        let source = product(&moved).replace("MatMul (xf, m)", "MatMul (xf, mt)");
        let model = folded(&source, &Options::default());
        assert_eq!(count(&model, "DequantizeLinear"), 2, "{operator}: {}", text::print(&model));
        assert!(count(&model, operator) > 0, "{operator}: {}", text::print(&model));
    }
}
