//! Lookups and assignments whose indices only count, and tensors spread before operators that broadcast: each model is run
//! before and after, and shown as a snapshot.

mod support;

use onnx_slice_fold::Options;
use onnx_slice_fold::ir::text;
use support::folded;

const HEAD: &str = r#"<ir_version: 8, opset_import: ["" : 17]>"#;

/// Counting from 0 along the batch `b` and the sequence `s` of `mask`, as exporters write it.
const COUNTS: &str = "sh = Shape (mask)  bn = Gather (sh, zero)  sn = Gather (sh, one)
    bi = Range (zero, bn, one)  si = Range (zero, sn, one)";

macro_rules! rewrites {
    ($($name:ident: $head:literal, $body:literal;)*) => {
        $(#[test]
        fn $name() {
            let source = format!("{HEAD} {} {{ {COUNTS} {} }}", $head, $body);
            insta::assert_snapshot!(text::print(&folded(&source, &Options::default())));
        })*
    };
}

rewrites! {
    gather_nd_of_a_grid: "g (bool[b,s] mask) => (y) <int64 zero = {0}, int64 one = {1}, int64[3] front = {1,2,3}, int64[3] back = {0,1,2}, int64[1] last = {-1}>",
        "bu = Unsqueeze (bi, front)  su = Unsqueeze (si, back)  m = Max (bu, su)  ms = Shape (m)
         be = Expand (bu, ms)  se = Expand (su, ms)  b1 = Unsqueeze (be, last)  s1 = Unsqueeze (se, last)
         grid = Concat <axis = -1> (b1, s1)  g = GatherND (mask, grid)  y = Not (g)";
    gather_nd_of_some_rows: "g (bool[b,s] mask, float[rows,4] x) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] at = {1}, int64[1] last = {-1}>",
        "xs = Shape (x)  xn = Gather (xs, zero)  xi = Range (zero, xn, one)  xu = Unsqueeze (xi, at)  z = Mul (si, zero)  xe = Add (xu, z)  ze = Mul (xu, zero)  se = Add (ze, si)
         b1 = Unsqueeze (xe, last)  s1 = Unsqueeze (se, last)
         grid = Concat <axis = -1> (b1, s1)  g = GatherND (mask, grid)  y = Not (g)";
    gather_by_flat_positions: "g (bool[b,s] mask) => (y) <int64 zero = {0}, int64 one = {1}, int64[3] front = {1,2,3}, int64[3] back = {0,1,2}, int64[1] flat = {-1}>",
        "bu = Unsqueeze (bi, front)  su = Unsqueeze (si, back)  row = Mul (bu, sn)  at = Add (row, su)
         all = Reshape (mask, flat)  g = Gather (all, at)  y = Not (g)";
    positions_that_are_spread: "g (float[b,s,2] mask, float[9,2] table) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] at = {0}>",
        "bu = Unsqueeze (bn, at)  su = Unsqueeze (sn, at)  to = Concat <axis = 0> (bu, su)  e = Expand (si, to)  two = Add (e, one)
         p = Gather (table, two)  y = Add (mask, p)";
    conditions_that_always_hold: "g (bool[b,s] mask, float[b,4,s,s] scores) => (y) <int64 zero = {0}, int64 one = {1}, int64[2] row = {0,2}, int64[2] column = {0,1}, int64[2] at = {1,2}, float low = {-100.0}, float none = {0.0}>",
        "r = Unsqueeze (si, row)  c = GreaterOrEqual (r, zero)  m = Unsqueeze (mask, at)  both = And (c, m)
         bias = Where (both, none, low)  bias4 = Unsqueeze (bias, zeroth)  b3 = Squeeze (bias4, zeroth)  y = Add (scores, b3)  zeroth = Constant <value: tensor = int64[1] {0}> ()";
    constants_of_a_shape: "g (float[b,s] mask) => (y, z) <int64 zero = {0}, int64 one = {1}>",
        "two = ConstantOfShape <value: tensor = float[1] {2.0}> (sh)  y = Mul (mask, two)  yes = ConstantOfShape <value: tensor = bool[1] {1}> (sh)
         big = Greater (mask, two)  z = And (big, yes)";
    halves_written_side_by_side: "g (float[b,s,3] mask, float[b,s,5] rest) => (y) <int64 zero = {0}, int64 one = {1}, int64[2] front = {1,2}, int64[2] middle = {0,2}, int64[3] a = {0,1,2}, int64[5] c = {3,4,5,6,7}, int64[1] eight = {8}, int64[1] last = {-1}, int64[1] at = {0}>",
        "bu1 = Unsqueeze (bn, at)  su1 = Unsqueeze (sn, at)  to = Concat <axis = 0> (bu1, su1, eight)  base = ConstantOfShape <value: tensor = float[1] {0.0}> (to)
         bu = Unsqueeze (bi, front)  su = Unsqueeze (si, middle)
         ms = Shape (mask)  b1 = Expand (bu, ms)  b2 = Unsqueeze (b1, last)  s1 = Expand (su, ms)  s2 = Unsqueeze (s1, last)  a1 = Expand (a, ms)  a2 = Unsqueeze (a1, last)
         gi = Concat <axis = -1> (b2, s2, a2)  w = ScatterND (base, gi, mask)
         rs = Shape (rest)  b3 = Expand (bu, rs)  b4 = Unsqueeze (b3, last)  s3 = Expand (su, rs)  s4 = Unsqueeze (s3, last)  c1 = Expand (c, rs)  c2 = Unsqueeze (c1, last)
         hi = Concat <axis = -1> (b4, s4, c2)  v = ScatterND (w, hi, rest)  y = Neg (v)";
}

/// Rows counted backwards are no view, and neither is a column repeated.
#[test]
fn lookups_out_of_order_stay() {
    let source = format!(
        "{HEAD} g (bool[b,s] mask) => (y, z) <int64 zero = {{0}}, int64 one = {{1}}, int64 minus = {{-1}}, int64[1] last = {{-1}}, int64[1] at = {{1}}> {{ {COUNTS}
         m = Sub (bn, one)  back = Range (m, minus, minus)  r = Gather (mask, back)  y = Not (r)
         bu = Unsqueeze (bi, at)  z0 = Mul (bu, zero)  su = Add (z0, si)  zz = Mul (su, zero)  g1 = Unsqueeze (zz, last)  g2 = Unsqueeze (su, last)
         grid = Concat <axis = -1> (g1, g2)  g = GatherND (mask, grid)  z = Not (g) }}"
    );
    let model = folded(&source, &Options::default());
    let kept = |operator: &str| {
        let graph = model.graph(model.main());
        graph.nodes().filter(|&id| model.node(id).is_some_and(|node| node.is(operator))).count()
    };
    assert_eq!((kept("Gather") > 0, kept("GatherND")), (true, 1));
}

/// Each row is looked up three times over: as many entries as a reshape would need, but not those.
#[test]
fn lookups_that_repeat_stay() {
    let source = format!(
        "{HEAD} g (bool[2,s] mask) => (y) <int64 zero = {{0}}, int64 one = {{1}}, int64[2] front = {{1,2}}, int64[2] back = {{0,1}}, int64[3] three = {{1,3,1}}, int64[1] last = {{-1}}> {{ {COUNTS}
         bu = Unsqueeze (bi, front)  su = Unsqueeze (si, back)  m = Max (bu, su)  ms = Shape (m)  to = Max (ms, three)
         be = Expand (bu, to)  se = Expand (su, to)  b1 = Unsqueeze (be, last)  s1 = Unsqueeze (se, last)
         grid = Concat <axis = -1> (b1, s1)  g = GatherND (mask, grid)  y = Not (g) }}"
    );
    let model = folded(&source, &Options::default());
    let graph = model.graph(model.main());
    assert!(graph.nodes().any(|id| model.node(id).is_some_and(|node| node.is("GatherND"))));
}
