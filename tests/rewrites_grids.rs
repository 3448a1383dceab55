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
