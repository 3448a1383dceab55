//! Loops and scans whose number of iterations is decided: what stays of them, and where they stay.

#[macro_use]
mod support;

fuses! {
    one_iteration_by_its_limit: "decided-loop", 17, "g (float[N, 3] x) => (y, s) {
        m = Constant <value = int64 {1}> ()  t = Constant <value = bool {1}> ()
        y, s = Loop <body: graph = b (int64 i, bool c, float[N, 3] a) => (bool d, float[N, 3] e, float[N, 3] f) {
            d = Identity (c)  e = Relu (a)  f = Exp (e) }> (m, t, x) }";
    one_iteration_without_a_condition: "decided-loop", 11, "g (float[N] x) => (y, s) {
        m = Constant <value = int64 {1}> ()
        y, s = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e, float f) {
            d = Identity (c)  e = Exp (a)  f = ReduceSum <keepdims = 0> (e) }> (m, \"\", x) }";
    one_iteration_because_the_condition_turns_false: "decided-loop", 13, "g (int64 m, float[N] x) => (y) {
        t = Constant <value = bool {1}> ()
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            z = Constant <value = int64 {0}> ()  d = Less (i, z)  e = Exp (a) }> (\"\", t, x) }";
    one_iteration_by_sizes: "decided-loop", 16, "g (float[N, 4] x) => (y) {
        t = Constant <value = bool {1}> ()  one = Constant <value = int64[1] {1}> ()
        w = Shape <start = 1, end = 2> (x)  q = Min (w, one)  m = Squeeze (q)
        y = Loop <body: graph = b (int64 i, bool c, float[N, 4] a) => (bool d, float[N, 4] e) {
            d = Identity (c)  n = Cast <to = 1> (i)  f = Exp (a)  e = Add (f, n) }> (m, t, x) }";
    one_iteration_that_captures: "decided-loop", 13, "g (float[N] x, float[N] z) => (y, u) {
        m = Constant <value = int64 {1}> ()  w = Exp (z)
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c)  e = Add (a, w) }> (m, \"\", x)
        u = Relu (w) }";
    one_iteration_inside_another: "decided-loop", 13, "g (float[N] x) => (y) {
        m = Constant <value = int64 {1}> ()
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c)
            e = Loop <body: graph = h (int64 j, bool cj, float[N] k) => (bool dj, float[N] l) {
                dj = Identity (cj)  o = Exp (k)  l = Add (o, x) }> (m, \"\", a) }> (m, \"\", x) }";
    one_iteration_that_hands_on: "decided-loop", 13, "g (float[N] x, float[N] z) => (p, q, r) {
        m = Constant <value = int64 {1}> ()
        y0, y1 = Loop <body: graph = b (int64 i, bool c, float[N] a0, float[N] a1) => (bool d, float[N] e0, float[N] e1) {
            d = Identity (c)  e0 = Identity (a1)  e1 = Identity (a0) }> (m, \"\", x, z)
        p = Exp (y0)  q = Neg (y1)  r = Add (y0, z) }";
    what_is_not_wanted_goes: "decided-loop", 13, "g (float[N] x) => (y) {
        m = Constant <value = int64 {1}> ()
        y, s, r = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e, float[N] f, int64 k) {
            d = Identity (c)  e = Exp (a)  f = Neg (a)  k = Add (i, i) }> (m, \"\", x) }";
    no_iteration: "decided-loop", 13, "g (float[N] x, float[N] z) => (y, w) {
        m = Constant <value = int64 {0}> ()  zz = Exp (z)
        y, w0 = Loop <body: graph = b (int64 i, bool c, float[N] a, float[N] v) => (bool d, float[N] e, float[N] u) {
            d = Identity (c)  e = Exp (a)  u = Neg (v) }> (m, \"\", x, zz)
        w = Relu (w0) }";
    no_iteration_by_the_condition: "decided-loop", 13, "g (float[N] x, int64 m) => (y, w) {
        t = Constant <value = bool {0}> ()
        y, s = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e, float[2] u) {
            d = Identity (c)  e = Exp (a)  u = Constant <value = float[2] {1, 2}> () }> (m, t, x)
        k = Constant <value = float[1, 2] {3, 4}> ()  w = Concat <axis = 0> (s, k, k) }";
    one_iteration_at_the_first_opset: "decided-loop", 1, "g (float[N] x) => (y, s) {
        m = Constant <value = int64 {1}> ()  t = Constant <value = bool {1}> ()
        y, s = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e, float[N] f) {
            d = Identity (c)  e = Exp (a)  f = Neg (e) }> (m, t, x) }";
    one_iteration_with_vectors_of_one_element: "decided-loop", 21, "g (float[N] x, int64[1] unused) => (y) {
        m = Constant <value = int64[1] {1}> ()  t = Constant <value = bool[1] {1}> ()
        y = Loop <body: graph = b (int64[1] i, bool[1] c, float[N] a) => (bool[1] d, float[N] e) {
            d = Identity (c)  f = Where (c, a, n)  n = Cast <to = 1> (i)  e = Exp (f) }> (m, t, x) }";
    one_slice: "decided-loop", 13, "g (float[N] x, float[N, 1] z) => (y, s) {
        y, s = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1], scan_output_directions = [1],
            body: graph = b (float[N] a, float[N] v) => (float[N] e, float[N] u) {
                p = Add (a, v)  e = Exp (p)  u = Identity (e)  dead = Neg (v) }> (x, z) }";
    one_slice_of_the_first_axis: "decided-loop", 11, "g (float[N] x, float[1, N] z) => (y) {
        y = Scan <num_scan_inputs = 1, body: graph = b (float[N] a, float[N] v) => (float[N] e) {
                p = Add (a, v)  e = Exp (p) }> (x, z) }";
}

keeps! {
    any_number_of_iterations: "decided-loop", 13, "g (int64 m, float[N] x) => (y) {
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c)  e = Exp (a) }> (m, \"\", x) }";
    two_iterations: "decided-loop", 13, "g (float[N] x) => (y) {
        m = Constant <value = int64 {2}> ()
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c)  e = Exp (a) }> (m, \"\", x) }";
    a_limit_of_one_and_a_condition_nobody_knows: "decided-loop", 13, "g (bool t, float[N] x) => (y) {
        m = Constant <value = int64 {1}> ()
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c)  e = Exp (a) }> (m, t, x) }";
    a_size_that_may_be_none: "decided-loop", 17, "g (float[N, 4] x) => (y) {
        one = Constant <value = int64[1] {1}> ()  w = Shape <start = 0, end = 1> (x)  q = Min (w, one)  m = Squeeze (q)
        y = Loop <body: graph = b (int64 i, bool c, float[N, 4] a) => (bool d, float[N, 4] e) {
            d = Identity (c)  e = Exp (a) }> (m, \"\", x) }";
    a_condition_in_dispute: "decided-loop", 13, "g (float[N] x) => (y) {
        m = Constant <value = int64 {1}> ()  k = Constant <value = int64 {3}> ()  n = Shape (x)  w = Squeeze (n)  l = Max (m, w)
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Constant <value = bool {0}> ()  e = Exp (a) }> (l, \"\", x) }";
    more_stacked_than_saved: "decided-loop", 13, "g (float[N] x) => (y, s, r) {
        m = Constant <value = int64 {1}> ()
        y, s, r = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool c, float[N] e, float[N] f, float[N] e) {
            e = Exp (a)  f = Neg (a) }> (m, \"\", x) }";
    slices_of_a_size_nobody_knows: "decided-loop", 13, "g (float[N] x, float[N, M] z) => (y) {
        y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body: graph = b (float[N] a, float[N] v) => (float[N] e) {
                p = Add (a, v)  e = Exp (p) }> (x, z) }";
    batches: "decided-loop", 8, "g (float[2, N] x, float[2, 1, N] z) => (y) {
        y = Scan <num_scan_inputs = 1, body: graph = b (float[N] a, float[N] v) => (float[N] e) {
                p = Add (a, v)  e = Exp (p) }> (\"\", x, z) }";
}

#[test]
fn it_can_be_left_out() {
    let source = "<ir_version: 8, opset_import: [\"\" : 13]> g (float[N] x) => (y) {
        m = Constant <value = int64 {1}> ()
        y = Loop <body: graph = b (int64 i, bool c, float[N] a) => (bool d, float[N] e) {
            d = Identity (c)  e = Exp (a) }> (m, \"\", x) }";
    let options = onnx_slice_fold::Options { skip: vec!["decided-loop".into()], ..Default::default() };
    let model = support::folded(source, &options);
    assert!(onnx_slice_fold::ir::text::print(&model).contains("Loop"));
}
