//! Movements of elements that neighbouring nodes share, on models in text form.

#[macro_use]
mod support;

fuses! {
    an_element_whose_axis_is_put_back: "gather-unsqueeze-to-gather", 13, "g (float[n,4,2] x) => (y) <int64 i = {-2}, int64[1] axis = {1}> {
        a = Gather <axis = 1> (x, i)  b = Unsqueeze (a, axis)  y = Neg (b) }";
    an_element_of_a_slice: "slice-squeeze-to-gather", 13, "g (float[n,4,2] x) => (y) <int64[1] s = {1}, int64[1] e = {2}, int64[1] axis = {-2}> {
        a = Slice (x, s, e, axis)  b = Squeeze (a, axis)  y = Neg (b) }";
    the_last_element_of_a_slice: "slice-squeeze-to-gather", 11, "g (float[n,m] x) => (y) <int64[1] s = {-1}, int64[1] e = {9223372036854775807}, int64[1] axis = {1}> {
        a = Slice (x, s, e, axis)  b = Squeeze <axes = [1]> (a)  y = Neg (b) }";
    elements_of_a_split: "split-to-gather", 13, "g (float[3,n,2] x) => (y, z) <int64[1] axis = {0}> {
        q, k, v = Split <axis = 0> (x)  a = Squeeze (q, axis)  b = Squeeze (v, axis)  y = Neg (a)  z = Add (b, y) }";
    a_sum_whose_axis_is_put_back: "reduction-keeping-axes", 13, "g (float[n,4,2] x) => (y) <int64[2] axes = {-1,1}, int64[2] back = {1,2}> {
        a = ReduceSum <keepdims = 0> (x, axes)  b = Unsqueeze (a, back)  y = Neg (b) }";
    a_mean_whose_axis_is_taken_away: "reduction-keeping-axes", 11, "g (float[n,4,2] x) => (y) {
        a = ReduceMean <axes = [1]> (x)  b = Squeeze <axes = [1]> (a)  y = Neg (b) }";
    the_place_of_the_largest: "reduction-keeping-axes", 13, "g (float[n,4] x) => (y) <int64[1] axis = {1}> {
        a = ArgMax <axis = 1> (x)  b = Squeeze (a, axis)  y = Neg (b) }";
    slices_of_a_slice: "slice-slice", 13, "g (float[n,1,h,w] x) => (y, z) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] end = {9223372036854775807}, int64[1] two = {2}, int64[1] three = {3}> {
        a = Slice (x, zero, end, two, two)  b = Slice (a, zero, end, three, two)  c = Slice (a, one, end, three, two)  y = Neg (b)  z = Neg (c) }";
    zero_states: "zero-state", 15, "g (float[t,n,2] x) => (y) <float[1,4,2] w = {1,2,3,4,5,6,7,8}, float[1,4,1] r = {1,2,3,4}, int64[1] one = {1}, int64[1] two = {2}, int64[1] zero = {0}> {
        s = Shape <start: int = 1, end: int = 2> (x)  t = Concat <axis = 0> (two, s, one)  z = ConstantOfShape (t)
        h = Slice (z, zero, one, zero)  c = Slice (z, one, two, zero)
        y = LSTM <hidden_size = 1> (x, w, r, \"\", \"\", h, c) }";
    a_zero_state_among_others: "zero-state", 15, "g (float[t,n,2] x, float[1,n,1] c) => (y) <float[1,4,2] w = {1,2,3,4,5,6,7,8}, float[1,4,1] r = {1,2,3,4}, int64[1] one = {1}> {
        s = Shape <start: int = 1, end: int = 2> (x)  t = Concat <axis = 0> (one, s, one)  h = ConstantOfShape (t)
        y = LSTM <hidden_size = 1> (x, w, r, \"\", \"\", h, c) }";
}

keeps! {
    an_axis_put_elsewhere: "gather-unsqueeze-to-gather", 13, "g (float[n,4,2] x) => (y) <int64 i = {1}, int64[1] axis = {2}> {
        a = Gather <axis = 1> (x, i)  b = Unsqueeze (a, axis)  y = Neg (b) }";
    an_element_read_without_the_axis: "gather-unsqueeze-to-gather", 13, "g (float[n,4,2] x) => (y, z) <int64 i = {1}, int64[1] axis = {1}> {
        a = Gather <axis = 1> (x, i)  b = Unsqueeze (a, axis)  y = Neg (b)  z = Neg (a) }";
    a_slice_of_two_axes: "slice-squeeze-to-gather", 13, "g (float[n,4,2] x) => (y) <int64[2] s = {1,0}, int64[2] e = {2,1}, int64[2] axes = {1,2}, int64[1] axis = {1}> {
        a = Slice (x, s, e, axes)  b = Squeeze (a, axis)  y = Neg (b) }";
    an_element_from_the_end_of_old: "slice-squeeze-to-gather", 10, "g (float[n,m] x) => (y) <int64[1] s = {-1}, int64[1] e = {9223372036854775807}, int64[1] axis = {1}> {
        a = Slice (x, s, e, axis)  b = Squeeze <axes = [1]> (a)  y = Neg (b) }";
    a_split_that_is_read_as_it_is: "split-to-gather", 13, "g (float[3,n,2] x) => (y, z) <int64[1] axis = {0}> {
        q, k, v = Split <axis = 0> (x)  a = Squeeze (q, axis)  y = Neg (a)  z = Neg (v) }";
    a_sum_of_other_axes: "reduction-keeping-axes", 13, "g (float[n,4,2] x) => (y) <int64[1] axes = {1}, int64[1] back = {2}> {
        a = ReduceSum <keepdims = 0> (x, axes)  b = Unsqueeze (a, back)  y = Neg (b) }";
    states_that_are_not_zero: "zero-state", 15, "g (float[t,n,2] x) => (y) <float[1,4,2] w = {1,2,3,4,5,6,7,8}, float[1,4,1] r = {1,2,3,4}, int64[1] one = {1}> {
        s = Shape <start: int = 1, end: int = 2> (x)  t = Concat <axis = 0> (one, s, one)  h = ConstantOfShape <value: tensor = float[1] {0.5}> (t)
        y = LSTM <hidden_size = 1> (x, w, r, \"\", \"\", h, h) }";
}
