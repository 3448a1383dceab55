//! Masks, and the integers that count places in them, on models in text form.

#[macro_use]
mod support;

fuses! {
    a_mask_gathered_by_row_and_column: "lookup-in-order", 14, "g (int64[b,s] m, float[b,2,s,s] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64[4] rows = {-1,1,1,1}, int64[4] columns = {1,1,1,-1}, int64[4] back = {0,1,1,0}> {
        s0 = Shape (m)  b = Gather (s0, zero)  n = Gather (s0, one)  f = Flatten <axis = 2> (m)
        i = Range (zero, b, one)  j = Range (zero, n, one)  u = Reshape (i, rows)  v = Reshape (j, columns)
        w = Mul (u, n)  a = Add (v, w)  g = Gather (f, a)  h = Reshape (g, back)  c = Cast <to = 1> (h)  y = Add (x, c) }";
    a_mask_gathered_by_places: "lookup-in-order", 14, "g (bool[b,s] m, float[b,2,s,s] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64[4] rows = {-1,1,1,1}, int64[4] columns = {1,1,1,-1}, int64[1] last = {4}, float lo = {-1}, float hi = {0}> {
        s0 = Shape (m)  b = Gather (s0, zero)  n = Gather (s0, one)  i = Range (zero, b, one)  j = Range (zero, n, one)
        u = Reshape (i, rows)  v = Reshape (j, columns)  t = Max (u, v)  s1 = Shape (t)  p = Expand (u, s1)  q = Expand (v, s1)
        p1 = Unsqueeze (p, last)  q1 = Unsqueeze (q, last)  k = Concat <axis = -1> (p1, q1)  g = GatherND (m, k)
        w = Where (g, hi, lo)  y = Add (x, w) }";
    a_mask_of_more_rows: "lookup-in-order", 15, "g (bool[c,s] m, float[b,s] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64[2] rows = {-1,1}, int64[2] columns = {1,-1}, int64[1] last = {2}> {
        s0 = Shape (x)  b = Gather (s0, zero)  n = Gather (s0, one)  i = Range (zero, b, one)  j = Range (zero, n, one)
        u = Reshape (i, rows)  v = Reshape (j, columns)  p = Expand (u, s0)  q = Expand (v, s0)
        p1 = Unsqueeze (p, last)  q1 = Unsqueeze (q, last)  k = Concat <axis = -1> (p1, q1)  g = GatherND (m, k)
        w = Cast <to = 1> (g)  y = Add (x, w) }";
    a_mask_gathered_by_constant_places: "lookup-in-order", 14, "g (bool[2,3] m) => (y)
        <int64[2,1,3,2] k = {0,0,0,1,0,2,1,0,1,1,1,2}> { g = GatherND (m, k)  y = Not (g) }";
    a_mask_that_is_true_where_rows_are: "spread-before-broadcast", 14, "g (bool[b,1,1,s] m, float[b,2,n,s] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[4] rows = {1,1,-1,1}, float lo = {-1}, float hi = {0}> {
        s0 = Shape (x)  n0 = Gather (s0, t)  j = Range (zero, n0, one)  v = Reshape (j, rows)  c = GreaterOrEqual (v, zero)
        d = And (c, m)  w = Where (d, hi, lo)  y = Add (x, w)  t = Constant <value_int = 2> () }";
    a_stretched_mask: "spread-before-broadcast", 14, "g (bool[b,1,s] m, float[b,n,s] x) => (y, z) <float lo = {-1}, float hi = {0}> {
        s0 = Shape (x)  e = Expand (m, s0)  f = Not (e)  w = Where (f, hi, lo)  y = Add (x, w)  v = Cast <to = 1> (e)  z = Mul (v, x) }";
}

keeps! {
    places_out_of_order: "lookup-in-order", 14, "g (int64[s,2] m) => (y) <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] end = {1}> {
        s0 = Shape (m)  n = Gather (s0, zero)  j = Range (one, n, one)  y = Gather (m, j) }";
    places_that_repeat: "lookup-in-order", 14, "g (int64[s,2] m) => (y) <int64 zero = {0}, int64 one = {1}, int64[2] t = {2,1}> {
        s0 = Shape (m)  n = Gather (s0, zero)  j = Range (zero, n, one)  s1 = Concat <axis = 0> (t2, f)  e = Expand (j, s1)  y = Gather (m, e)
        f = Slice (s0, z1, o1)  z1 = Constant <value_ints = [0]> ()  o1 = Constant <value_ints = [1]> ()  t2 = Constant <value_ints = [2]> () }";
    places_turned_around: "lookup-in-order", 14, "g (bool[2,3] m) => (y)
        <int64[3,1,2,2] k = {0,0,1,0,0,1,1,1,0,2,1,2}> { g = GatherND (m, k)  y = Not (g) }";
    a_mask_that_is_false_in_the_first_row: "spread-before-broadcast", 14, "g (bool[b,1,1,s] m, float[b,2,n,s] x) => (y)
        <int64 zero = {0}, int64 one = {1}, int64[4] rows = {1,1,-1,1}, float lo = {-1}, float hi = {0}> {
        s0 = Shape (x)  n0 = Gather (s0, t)  j = Range (zero, n0, one)  v = Reshape (j, rows)  c = Greater (v, zero)
        d = And (c, m)  w = Where (d, hi, lo)  y = Add (x, w)  t = Constant <value_int = 2> () }";
    a_stretched_mask_that_is_read_as_it_is: "spread-before-broadcast", 14, "g (bool[b,1,s] m, float[b,n,s] x) => (y, z) <float lo = {-1}, float hi = {0}> {
        s0 = Shape (x)  e = Expand (m, s0)  w = Where (e, hi, lo)  y = Add (x, w)  z = Softmax (w) }";
}
