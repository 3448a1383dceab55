//! Grids of positions, on models in text form.

#[macro_use]
mod support;

fuses! {
    coordinates_of_a_picture: "columns-by-choice", 13, "g (float[n,h,w,2] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[2] rows = {-1,1}, int64[2] columns = {1,-1}, int64[1] last = {2}, int64[1] from = {1}, int64[1] to = {3}, int64[1] first = {0}> {
        s = Shape (x)  h = Gather (s, one)  w = Gather (s, two)  hw = Slice (s, from, to, first)
        i = Range (zero, h, one)  j = Range (zero, w, one)  u = Reshape (i, rows)  v = Reshape (j, columns)
        p = Expand (u, hw)  q = Expand (v, hw)  p1 = Unsqueeze (p, last)  q1 = Unsqueeze (q, last)
        k = Concat <axis = -1> (q1, p1)  f = Cast <to = 1> (k)  y = Add (x, f) }";
    coordinates_in_front: "columns-by-choice", 13, "g (float[n,2,h,w] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3}, int64[2] rows = {-1,1}, int64[2] columns = {1,-1}, int64[1] front = {0}, int64[1] from = {2}, int64[1] to = {4}> {
        s = Shape (x)  h = Gather (s, two)  w = Gather (s, three)  hw = Slice (s, from, to, front)
        i = Range (zero, h, one)  j = Range (zero, w, one)  u = Reshape (i, rows)  v = Reshape (j, columns)
        p = Expand (u, hw)  q = Expand (v, hw)  p1 = Unsqueeze (p, front)  q1 = Unsqueeze (q, front)
        k = Concat <axis = 0> (q1, p1)  f = Cast <to = 1> (k)  y = Add (x, f) }";
    places_to_write_to: "columns-by-choice", 13, "g (float[n,c,3,4] x, float[n,c,2,3] u) => (y)
        <int64 zero = {0}, int64 one = {1}, int64[4] rows = {-1,1,1,1}, int64[3] columns = {-1,1,1}, int64[2,1] a = {1,2}, int64[3] b = {0,1,3}, int64[1] last = {-1}> {
        s = Shape (u)  n = Gather (s, zero)  c = Gather (s, one)  i = Range (zero, n, one)  j = Range (zero, c, one)
        r = Reshape (i, rows)  t = Reshape (j, columns)  e0 = Expand (r, s)  e1 = Expand (t, s)  e2 = Expand (a, s)  e3 = Expand (b, s)
        u0 = Unsqueeze (e0, last)  u1 = Unsqueeze (e1, last)  u2 = Unsqueeze (e2, last)  u3 = Unsqueeze (e3, last)
        k = Concat <axis = -1> (u0, u1, u2, u3)  y = ScatterND (x, k, u) }";
    anchors_in_a_row: "columns-by-choice", 13, "g (float[n,1,h,w] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3}, int64[2] rows = {-1,1}, int64[2] columns = {1,-1}, int64[1] from = {2}, int64[1] to = {4}, int64[1] first = {0}, int64[3] flat = {-1,1,4}, float[1,3,4] base = {1,2,3,4,5,6,7,8,9,10,11,12}> {
        s = Shape (x)  h = Gather (s, two)  w = Gather (s, three)  hw = Slice (s, from, to, first)
        i = Range (zero, h, one)  j = Range (zero, w, one)  u = Reshape (i, rows)  v = Reshape (j, columns)
        p = Expand (u, hw)  q = Expand (v, hw)  p1 = Reshape (p, rows)  q1 = Reshape (q, rows)
        k = Concat <axis = 1> (q1, p1, q1, p1)  f = Reshape (k, flat)  c = Cast <to = 1> (f)  y = Add (c, base) }";
    tiled_coordinates: "columns-by-choice", 11, "g (float[n,h,w,2] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[3] rows = {-1,1,1}, int64[3] columns = {1,-1,1}, int64[1] i1 = {1}, int64[1] i2 = {2}> {
        s = Shape (x)  h = Gather (s, one)  w = Gather (s, two)  h1 = Gather (s, i1)  w1 = Gather (s, i2)
        i = Range (zero, h, one)  j = Range (zero, w, one)  u = Reshape (i, rows)  v = Reshape (j, columns)
        rp = Concat <axis = 0> (i1, w1, i1)  rq = Concat <axis = 0> (h1, i1, i1)  p = Tile (u, rp)  q = Tile (v, rq)
        k = Concat <axis = 2> (q, p)  f = Cast <to = 1> (k)  y = Add (x, f) }";
    one_column_that_is_spread_along_all: "columns-by-choice", 13, "g (float[n,h,w] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64[2] rows = {-1,1}, int64[1] last = {2}, int64[1] from = {1}, int64[1] to = {3}, int64[1] first = {0}, int64[1] seven = {7}> {
        s = Shape (x)  h = Gather (s, one)  hw = Slice (s, from, to, first)
        i = Range (zero, h, one)  u = Reshape (i, rows)  p = Expand (u, hw)  q = Expand (seven, hw)  p1 = Unsqueeze (p, last)  q1 = Unsqueeze (q, last)
        y = Concat <axis = -1> (q1, p1) }";
}

keeps! {
    columns_that_are_not_spread: "columns-by-choice", 13, "g (float[n,1] x, float[n,1] z) => (y) { y = Concat <axis = 1> (x, z) }";
    columns_of_two: "columns-by-choice", 13, "g (float[n,h,w] x, float[2,1] a, float[2,1] b) => (y)
        <int64[1] from = {2}, int64[1] to = {3}, int64[1] first = {0}, int64[1] two = {2}> {
        s = Shape (x)  w = Slice (s, from, to, first)  t = Concat <axis = 0> (two, w)  p = Expand (a, t)  q = Expand (b, t)
        y = Concat <axis = 0> (p, q) }";
    columns_that_do_not_reach: "columns-by-choice", 13, "g (float[n,h,w] x) => (y)
        <int64[1] from = {1}, int64[1] to = {3}, int64[1] first = {0}, int64[1] one = {1}, float[1] a = {2}, float[1] b = {3}> {
        s = Shape (x)  hw = Slice (s, from, to, first)  t = Concat <axis = 0> (one, hw)  p = Expand (a, t)  q = Expand (b, t)
        y = Concat <axis = 0> (p, q) }";
}

fuses! {
    queries_that_are_the_same_in_every_batch: "spread-before-product", 17, "g (float[n,5,4] x) => (y)
        <float[1,3,4] q = {0.1,-0.2,0.3,0.4,0.5,0.6,-0.7,0.8,0.9,1,-1.1,1.2}, float[4,4] w = {0.1,-0.2,0.3,0.4,0.5,0.6,-0.7,0.8,0.9,1,-1.1,1.2,1.3,1.4,-1.5,1.6}, int64[1] zero = {0}, int64[1] one = {1}, int64[2] ones = {1,1}, int64[4] heads = {0,0,2,2}, float[4] gain = {1,2,3,4}> {
        s = Shape (x)  n = Slice (s, zero, one, zero)  r = Concat <axis = 0> (n, ones)  t = Tile (q, r)
        a = MatMul (t, w)  b = Add (t, a)  c = Reshape (b, heads)  d = Transpose <perm = [0, 2, 1, 3]> (c)  e = Transpose <perm = [0, 2, 3, 1]> (c)
        f = MatMul (d, e)  p = Softmax (f)  v = MatMul (p, d)  o = Transpose <perm = [0, 2, 1, 3]> (v)  flat = Constant <value_ints = [0, 3, 4]> ()
        z = Reshape (o, flat)  l = LayerNormalization (z, gain)  m = Slice (l, one, two, last)  k = Concat <axis = 2> (m, z)
        back = Constant <value_ints = [0, 6, 3]> ()  u = Gather <axis = 2> (k, four)  h = Transpose <perm = [0, 2, 1]> (u)  y = MatMul (x, h)
        two = Constant <value_ints = [3]> ()  last = Constant <value_ints = [2]> ()  four = Constant <value_ints = [0, 1, 2, 0]> () }";
    zeros_that_are_multiplied: "spread-before-product", 13, "g (float[n,3,4] x) => (y)
        <float[4,4] w = {0.1,-0.2,0.3,0.4,0.5,0.6,-0.7,0.8,0.9,1,-1.1,1.2,1.3,1.4,-1.5,1.6}, float[4] b = {1,2,3,4}> {
        s = Shape (x)  z = ConstantOfShape <value = float[1] {0.5}> (s)  a = MatMul (z, w)  c = Add (a, b)  y = Mul (x, c) }";
    a_grid_that_is_quantized_in_every_batch: "spread-before-broadcast", 13, "g (float[n,3,4] x, float[3,1] w) => (y)
        <float scale = {0.05}, uint8 middle = {128}> {
        s = Shape (x)  e = Expand (w, s)  q = QuantizeLinear (e, scale, middle)  d = DequantizeLinear (q, scale, middle)  y = Add (x, d) }";
    sums_of_rows_that_are_alike: "spread-before-broadcast", 13, "g (float[n,3,m] x, float[m] w) => (y)
        <int64 axis = {-1}, int64[1] i1 = {1}, int64[1] last = {0}> {
        s = Shape (x)  e = Expand (w, s)  a = Unsqueeze (e, i1)  c = CumSum (a, axis)  o = Squeeze (c, i1)  y = Add (x, o) }";
}

keeps! {
    rows_that_are_summed_where_they_repeat: "spread-before-broadcast", 13, "g (float[n,3,m] x, float[3,1] w) => (y) <int64 axis = {-1}> {
        s = Shape (x)  e = Expand (w, s)  c = CumSum (e, axis)  y = Add (x, c) }";
    products_over_what_repeats: "spread-before-product", 13, "g (float[n,3,m] x, float[n,m,2] w, float[3,1] v) => (y) {
        s = Shape (x)  e = Expand (v, s)  y = MatMul (e, w) }";
    parts_of_what_repeats: "spread-before-broadcast", 13, "g (float[n,3,m] x, float[3,1] w) => (y) <int64[1] one = {1}, int64[1] most = {9223372036854775807}, int64[1] last = {2}> {
        s = Shape (x)  e = Expand (w, s)  c = Slice (e, one, most, last)  d = Slice (x, one, most, last)  y = Concat <axis = 2> (c, d) }";
    axes_that_are_run_together: "spread-before-broadcast", 13, "g (float[n,3,m] x, float[3,1] w) => (y) <int64[2] flat = {0,-1}> {
        s = Shape (x)  e = Expand (w, s)  c = Reshape (e, flat)  d = Reshape (x, flat)  y = Add (c, d) }";
    a_grid_that_is_quantized_by_column: "spread-before-broadcast", 13, "g (float[n,3,4] x, float[3,1] w) => (y)
        <float[4] scale = {0.05,0.1,0.2,0.3}, uint8[4] middle = {128,1,2,3}> {
        s = Shape (x)  e = Expand (w, s)  q = QuantizeLinear <axis = 2> (e, scale, middle)  d = DequantizeLinear <axis = 2> (q, scale, middle)  y = Add (x, d) }";
}

fuses! {
    a_mask_that_is_stretched_and_true: "filled-by-size", 13, "g (float[n,h,w] x) => (y) <int64 zero = {0}, int64 axis = {1}, int64[1] front = {0}, int64[1] two = {2}> {
        s = Shape (x)  m = ConstantOfShape <value = bool[1] {1}> (s)  c = Cast <to = 1> (m)  r = Unsqueeze (c, front)
        d = Add (s, s)  s1 = Unsqueeze (one, front)  t = Concat <axis = 0> (s1, d)  e = Resize <mode = \"nearest\", nearest_mode = \"floor\", coordinate_transformation_mode = \"asymmetric\"> (r, \"\", \"\", t)
        b = Cast <to = 9> (e)  k = Gather <axis = 0> (b, zero)  f = Cast <to = 1> (k)  y = CumSum (f, axis)  one = Constant <value_int = 1> () }";
    ones_that_are_looked_up: "filled-by-size", 13, "g (float[n,m] x, int64[k] i) => (y) <int64[1] flat = {-1}> {
        s = Shape (x)  c = ConstantOfShape <value = float[1] {1}> (s)  t = Transpose <perm = [1, 0]> (c)  f = Reshape (t, flat)  a = Mul (i, i)  b = Sub (a, a)
        y = Gather (f, b) }";
    zeros_that_are_padded_and_looked_up: "spread-before-broadcast", 13, "g (int64[b,s] ids, float[b,t,3] x) => (y) <float[2,3] w = {1,2,3,4,5,6}, int64[4] pads = {0,0,0,2}, int64 zero = {0}, int64[3] front = {0,0,0}, int64[3] more = {0,2,0}> {
        s = Shape (ids)  c = ConstantOfShape <value = int64[1] {0}> (s)  p = Pad (c, pads, zero)  g = Gather (w, p)  a = Cast <to = 1> (ids)  last = Constant <value_ints = [2]> ()  u = Unsqueeze (a, last)
        around = Concat <axis = 0> (front, more)  q = Pad (u, around)  y = Add (q, g) }";
    rows_counted_by_what_is_not_zero: "places-in-order", 13, "g (float[n,m] x) => (y) <int64[1] i0 = {0}, int64[1] i1 = {1}, int64[2] rows = {-1,1}, int64[2] columns = {1,-1}> {
        s = Shape (x)  n = Slice (s, i0, i1)  two = Constant <value_ints = [2]> ()  m = Slice (s, i1, two)
        a = ConstantOfShape <value = int64[1] {1}> (n)  b = NonZero (a)  c = Reshape (b, rows)
        d = ConstantOfShape <value = float[1] {0.5}> (m)  e = NonZero (d)  f = Reshape (e, columns)  y = Add (c, f) }";
    rows_that_are_not_laid_out: "places-in-order", 13, "g (float[n,m] x) => (y) <int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] flat = {-1}> {
        s = Shape (x)  n = Slice (s, i0, i1)  a = ConstantOfShape <value = int64[1] {1}> (n)  b = NonZero (a)  y = Reshape (b, flat) }";
    the_first_places_of_many: "positions-to-constant", 13, "g (float[n,m] x) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] i0 = {0}, int64[1] four = {4}, int64[2] pads = {0,4}> {
        s = Shape (x)  n = Gather (s, zero)  f = Constant <value_int = 4> ()  t = Add (n, f)  r = Range (zero, t, one)  p = Slice (r, i0, four)  q = Mul (p, p)  c = Cast <to = 1> (q)  y = Mul (c, row)  k = Gather (x, zero)  row = ReduceSum <keepdims = 0> (k) }";
    positions_after_those_of_the_past: "range-and-sum", 13, "g (float[b,past,2] k, float[b,seq,2] x) => (y, z) <int64 zero = {0}, int64 one = {1}, int64[2] rows = {-1,1}> {
        s0 = Shape (k)  p = Gather (s0, one)  s1 = Shape (x)  n = Gather (s1, one)  r = Range (zero, n, one)  a = Add (r, p)
        t = Add (p, n)  all = Range (zero, t, one)  u = Reshape (a, rows)  m = LessOrEqual (all, u)  y = Cast <to = 1> (m)  z = Mul (a, a) }";
    places_counted_twice: "value-numbering", 13, "g (float[n,m] x) => (y, z) <int64 zero = {0}, int64 one = {1}, int64[1] i0 = {0}, int64[1] end = {-1}, int64[2] rows = {-1,1}> {
        s = Shape (x)  n = Gather (s, zero)  r = Range (zero, n, one)  a = Slice (r, i0, end)  h = Add (x, x)  b = Slice (h, i0, end)  s1 = Shape (b)  k = Gather (s1, zero)  q = Range (zero, k, one)
        y = Mul (a, a)  u = Reshape (q, rows)  z = Add (u, u) }";
}

keeps! {
    a_mask_that_is_padded_with_something_else: "filled-by-size", 13, "g (float[n,m] x) => (y) <int64[4] pads = {0,0,0,2}, float zero = {0}> {
        s = Shape (x)  m = ConstantOfShape <value = float[1] {1}> (s)  y = Pad (m, pads, zero) }";
    what_is_not_zero_of_zeros: "places-in-order", 13, "g (float[n,m] x) => (y) <int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] flat = {-1}> {
        s = Shape (x)  n = Slice (s, i0, i1)  a = ConstantOfShape (n)  b = NonZero (a)  y = Reshape (b, flat) }";
    the_first_places_of_few: "positions-to-constant", 13, "g (float[n,m] x) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] i0 = {0}, int64[1] four = {4}> {
        s = Shape (x)  n = Gather (s, zero)  r = Range (zero, n, one)  p = Slice (r, i0, four)  y = Mul (p, p) }";
    zero_before_a_reciprocal: "zero-before-softmax", 13, "g (float[n,m] x) => (y) <float zero = {0}> { a = Add (x, zero)  y = Reciprocal (a) }";
}

fuses! {
    zero_before_a_softmax: "zero-before-softmax", 13, "g (float[n,m] x) => (y) <float zero = {0}> { r = Relu (x)  a = Add (r, zero)  y = Softmax (a) }";
}

fuses! {
    angles_twice: "concat-of-outer", 13, "g (float[n,1] x) => (y, z) <float[4] f = {1,0.5,0.25,0.125}> {
        m = Mul (x, f)  c = Concat <axis = -1> (m, m)  y = Cos (c)  z = Sin (c) }";
    angles_of_several: "concat-of-outer", 13, "g (float[n,1,m] x) => (y) <float[1,2,1] f = {1,0.5}, float[1,2,1] h = {0.25,0.125}> {
        a = Sub (f, x)  b = Sub (h, x)  y = Concat <axis = 1> (a, b, a) }";
    every_other_angle: "part-of-outer", 13, "g (float[n,h] x) => (y, z)
        <float[6] f = {1,1,2,2,3,3}, int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] most = {9223372036854775807}, int64[1] last = {2}, int64[1] two = {2}> {
        u = Unsqueeze (x, last)  d = Div (u, f)  a = Slice (d, i0, most, last, two)  b = Slice (d, i1, most, last, two)  y = Sin (a)  z = Cos (b) }";
    a_block_in_zeros: "assignment-to-filled", 13, "g (float[n,c,4] x) => (y, z)
        <int64 zero = {0}, int64 one = {1}, int64[3] rows = {-1,1,1}, int64[2] columns = {-1,1}, int64[4] b = {3,4,5,6}, int64[1] last = {-1}, int64[1] i0 = {0}, int64[1] i1 = {1}, int64[2] grown = {2,9}> {
        s = Shape (x)  n = Gather (s, zero)  c = Gather (s, one)  i = Range (zero, n, one)  j = Range (zero, c, one)
        r = Reshape (i, rows)  t = Reshape (j, columns)  e0 = Expand (r, s)  e1 = Expand (t, s)  e2 = Expand (b, s)
        u0 = Unsqueeze (e0, last)  u1 = Unsqueeze (e1, last)  u2 = Unsqueeze (e2, last)  k = Concat <axis = -1> (u0, u1, u2)
        n1 = Slice (s, i0, i1)  two = Constant <value_ints = [2]> ()  c1 = Slice (s, i1, two)  c2 = Add (c1, i1)  nine = Constant <value_ints = [9]> ()
        s2 = Concat <axis = 0> (n1, c2, nine)  f = ConstantOfShape <value = float[1] {0.5}> (s2)  y = ScatterND (f, k, x)  z = Neg (y) }";
}

keeps! {
    angles_of_other_places: "concat-of-outer", 13, "g (float[n,1] x, float[n,1] w) => (y) <float[4] f = {1,0.5,0.25,0.125}> {
        a = Mul (x, f)  b = Mul (w, f)  y = Concat <axis = -1> (a, b) }";
    angles_that_go_on: "concat-of-outer", 13, "g (float[n,4] x) => (y) <float[4] f = {1,0.5,0.25,0.125}> {
        a = Mul (x, f)  y = Concat <axis = -1> (a, a) }";
    angles_of_which_all_are_wanted: "part-of-outer", 13, "g (float[n,1] x) => (y, z) <float[4] f = {1,0.5,0.25,0.125}, int64[1] i0 = {0}, int64[1] two = {2}, int64[1] last = {1}> {
        m = Mul (x, f)  y = Slice (m, i0, two, last)  z = Cos (m) }";
    rows_of_angles: "part-of-outer", 13, "g (float[n,1] x) => (y) <float[4] f = {1,0.5,0.25,0.125}, int64[1] i0 = {0}, int64[1] two = {2}> {
        m = Mul (x, f)  y = Slice (m, i0, two, i0) }";
    a_block_that_is_added: "assignment-to-filled", 16, "g (float[n,4] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64[2] rows = {-1,1}, int64[4] b = {3,4,5,6}, int64[1] last = {-1}, int64[1] i0 = {0}, int64[1] i1 = {1}> {
        s = Shape (x)  n = Gather (s, zero)  i = Range (zero, n, one)  r = Reshape (i, rows)  e0 = Expand (r, s)  e2 = Expand (b, s)
        u0 = Unsqueeze (e0, last)  u2 = Unsqueeze (e2, last)  k = Concat <axis = -1> (u0, u2)
        n1 = Slice (s, i0, i1)  nine = Constant <value_ints = [9]> ()  s2 = Concat <axis = 0> (n1, nine)  f = ConstantOfShape <value = float[1] {0.5}> (s2)
        y = ScatterND <reduction = \"add\"> (f, k, x) }";
}
