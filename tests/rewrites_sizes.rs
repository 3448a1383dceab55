//! Chains of sizes that are planned together, and reshapes whose operands go, on models in text form.

#[macro_use]
mod support;

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{OnnxModel, Options};

fuses! {
    two_sizes_are_treated_alike: "size-chain", 15, "g (float[n,h,w] x) => (y) <int64 one = {1}, int64 two = {2}, int64 four = {4}, int64[1] zero = {0}> {
        s = Shape (x)  h = Gather (s, one)  w = Gather (s, two)
        hm = Mod (h, four)  hn = Sub (four, hm)  hp = Mod (hn, four)  wm = Mod (w, four)  wn = Sub (four, wm)  wp = Mod (wn, four)
        hu = Unsqueeze (hp, zero)  wu = Unsqueeze (wp, zero)
        p = Concat <axis = 0> (zero, zero, zero, zero, hu, wu)  y = Pad (x, p) }";
    sizes_computed_in_floats: "size-chain", 13, "g (float[n,h,w] x) => (y) <int64 one = {1}, int64 two = {2}, double half = {0.5}, int64[1] zero = {0}, int64[2] axes = {1,2}> {
        s = Shape (x)  h = Gather (s, one)  w = Gather (s, two)  hf = Cast <to = 11> (h)  wf = Cast <to = 11> (w)
        hm = Mul (hf, half)  hs = Sub (hf, hm)  hh = Mul (hs, half)  hi = Cast <to = 7> (hh)
        wm = Mul (wf, half)  ws = Sub (wf, wm)  wh = Mul (ws, half)  wi = Cast <to = 7> (wh)
        hb = Unsqueeze (hi, zero)  wb = Unsqueeze (wi, zero)  b = Concat <axis = 0> (hb, wb)
        he = Sub (h, hi)  we = Sub (w, wi)  hv = Unsqueeze (he, zero)  wv = Unsqueeze (we, zero)  e = Concat <axis = 0> (hv, wv)
        y = Slice (x, b, e, axes) }";
    floats_of_which_nothing_is_known: "size-chain", 13, "g (float[n,h,w] x) => (y) <int64 one = {1}, int64 two = {2}, int64[1] zero = {0}, float most = {24.0}, float[0] roi = {}, int64[1] first = {1}> {
        u = Unsqueeze (x, zero)  s = Shape (x)  h = Gather (s, one)  w = Gather (s, two)  hf = Cast <to = 1> (h)  wf = Cast <to = 1> (w)
        l = Max (hf, wf)  r = Div (most, l)  hr = Mul (hf, r)  wr = Mul (wf, r)  hl = Floor (hr)  wl = Floor (wr)
        hi = Cast <to = 7> (hl)  wi = Cast <to = 7> (wl)  hu = Unsqueeze (hi, zero)  wu = Unsqueeze (wi, zero)
        n = Gather (s, o)  nu = Unsqueeze (n, zero)  t = Concat <axis = 0> (first, nu, hu, wu)
        y = Resize <mode = \"nearest\"> (u, roi, \"\", t)  o = Constant <value_int = 0> () }";
    bounds_in_32_bits: "size-chain", 13, "g (float[n,s,4] x) => (y) <int64 one = {1}, int32 two = {2}, int32[1] low = {0}, int32[1] high = {2147483647}, int64[1] zero = {0}> {
        d = Shape (x)  e = Cast <to = 6> (d)  s = Gather (e, one)  h = Div (s, two)  hu = Unsqueeze (h, zero)
        b = Concat <axis = 0> (low, hu, low)  t = Concat <axis = 0> (high, high, high)  y = Slice (x, b, t) }";
    the_smaller_of_a_size_and_a_number: "size-chain", 13, "g (float[n] x) => (y, z) <int64[1] most = {3}, int64[1] one = {1}> {
        s = Shape (x)  c = Concat <axis = 0> (most, s)  m = ReduceMin <keepdims = 0> (c)  k = Reshape (m, one)  y, z = TopK (x, k) }";
    a_tensor_that_is_only_measured: "size-chain", 13, "g (float[n,4] x, float[n,4] z) => (y) <int64 zero = {0}, int64[1] axis = {0}, int64[1] four = {4}> {
        a = Add (x, z)  b = Sigmoid (a)  s = Shape (b)  n = Gather (s, zero)  u = Unsqueeze (n, axis)  t = Concat <axis = 0> (four, u)
        v = ConstantOfShape <value = float[1] {1.0}> (t)  y = MatMul (x, v) }";
    axes_split_moved_and_merged: "reshape-of-transpose", 13, "g (float[n,6,4] x) => (y) <int64[4] split = {0,3,2,4}, int64[3] flat = {0,4,6}> {
        u = Reshape (x, split)  t = Transpose <perm = [0, 3, 1, 2]> (u)  v = Reshape (t, flat)  y = Neg (v) }";
}

keeps! {
    axes_split_and_merged_in_another_order: "reshape-of-transpose", 13, "g (float[n,6,4] x) => (y) <int64[3] flat = {0,4,6}, int64[4] split = {0,3,2,4}> {
        u = Reshape (x, split)  t = Transpose <perm = [0, 3, 2, 1]> (u)  v = Reshape (t, flat)  y = Neg (v) }";
    axes_split_and_merged_elsewhere: "reshape-of-transpose", 13, "g (float[n,6,4] x) => (y) <int64[3] flat = {0,12,2}, int64[4] split = {0,3,2,4}> {
        u = Reshape (x, split)  t = Transpose <perm = [0, 3, 1, 2]> (u)  v = Reshape (t, flat)  y = Neg (v) }";
    sizes_that_are_told_at_once: "size-chain", 15, "g (float[n,h,w] x, float[a] z) => (y) { s = Shape (x)  y = Expand (z, s) }";
}

/// A scale of 0 / 0 is none: the sizes are not 0 in any run that succeeds, so that the quotients are numbers.
#[test]
fn scales_that_are_multiples_of_sizes_over_them() {
    let direct = "tf = Cast <to = 1> (t)  sf = Mul (tf, k)  scales = Div (sf, tf)";
    let joined = "a = Slice (t, two, four)  b = Cast <to = 1> (a)  c = Mul (b, half)  d = Div (c, b)  scales = Concat <axis = 0> (ones, d)";
    for (name, scales) in [("direct", direct), ("joined", joined)] {
        let source = format!(
            "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n,c,h,w] x) => (y)
            <float[4] k = {{1, 1, 2, 2}}, float half = {{0.5}}, float[2] ones = {{1, 1}}, int64[1] two = {{2}}, int64[1] four = {{4}}>
            {{ t = Shape (x)  {scales}  y = Resize <mode = \"nearest\"> (x, \"\", scales) }}"
        );
        let model = support::folded(&source, &Options::default());
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(name, text::print(&model));
        });
    }
}

#[test]
fn a_range_that_others_come_to_read_stays() {
    // The second range is equal to the first, which the sum would move.
    support::folded(
        r#"<ir_version: 8, opset_import: ["" : 18]>
        g (int64[1, S] ids, int64[1, S] mask, float[1, P, 2] past) => (y, t, k) <int64 z = {0}, int64 o = {1}> {
            s1 = Shape (ids)  seq = Gather (s1, o)  s2 = Shape (mask)  seq2 = Gather (s2, o)
            s3 = Shape (past)  p = Gather (s3, o)  t = Add (p, seq)
            r = Range (z, seq, o)  pos = Add (r, p)  q = Range (z, seq2, o)  y = Mul (pos, pos)  k = Neg (q) }"#,
        &Options::default(),
    );
}

#[test]
fn sizes_in_floats_are_rounded_as_they_were() {
    // In floats 3 / 0.7 · 0.7 is less than 3, and 41 · (1 / 41) less than 1.
    for (steps, rule) in [
        ("g = Div (f, k)  h = Mul (g, k)", "constant-chain"),
        ("i = Div (one, f)  h = Mul (f, i)", "product-with-inverse"),
        ("g = Mul (f, k)  h = Div (g, k)", "factor-upstream"),
    ] {
        let source = format!(
            r#"<ir_version: 8, opset_import: ["" : 18]>
            g (float[B] x) => (y) <float k = {{0.7}}, float one = {{1}}> {{
                s = Shape (x)  f = Cast <to = 1> (s)  {steps}  l = Floor (h)  w = Cast <to = 7> (l)
                y = ConstantOfShape <value = int64[1] {{0}}> (w) }}"#
        );
        let mut document = OnnxModel::of(text::parse(&source).unwrap_or_else(|error| panic!("{error}")));
        let report = document.fold(&Options::default()).expect("the model folds");
        assert_eq!(report.fired.get(rule).copied().unwrap_or(0), 0, "{rule}");
        let left = text::print(document.model());
        assert!(left.contains("Floor") && !left.contains("[B] y"), "{left}");
    }
}

#[test]
fn what_becomes_constant_late_is_folded() {
    let model = support::folded(
        r#"<ir_version: 8, opset_import: ["" : 21]>
        g (float[seq, 6] x) => (y) <int64[1] zero = {0}, int64[1] one = {1}> {
            s = Shape (x)  most = ReduceMax <keepdims = 1> (s)  y = Slice (one, zero, most, zero, one) }"#,
        &Options::default(),
    );
    assert!(!text::print(&model).contains("Slice"), "{}", text::print(&model));
}

#[test]
fn what_is_divided_by_is_not_zero() {
    let source = r#"<ir_version: 8, opset_import: ["" : 18]>
        g (float[w, h] x) => (y, z) <int64 i0 = {0}, int64 i1 = {1}, int64[1] i2 = {0}> {
            s = Shape (x)  w = Gather (s, i0)  h = Gather (s, i1)
            d = Div (w, w)  u = Unsqueeze (d, i2)  y = ConstantOfShape <value = int64[1] {0}> (u)
            wh = Mul (w, h)  q = Div (wh, w)  v = Unsqueeze (q, i2)  z = ConstantOfShape <value = int64[1] {0}> (v) }"#;
    let printed = text::print(&support::folded(source, &Options::default()));
    assert!(printed.contains("int64[1] y, int64[h] z"), "{printed}");
}

#[test]
fn an_input_s_computed_size_is_not_negative() {
    let source = r#"<ir_version: 8, opset_import: ["" : 18]>
        g (float[a] x, float[b] w, float["a - b"] v) => (y) <int64[1] zero = {0}, int64[1] most = {9223372036854775807}> {
            s = Shape (w)  y = Slice (x, s, most, zero) }"#;
    assert!(text::print(&support::folded(source, &Options::default())).contains("float[\"a - b\"] y"));
}
