//! Fusions on models in text form. Each is run before and after; what fires is shown as a snapshot, and beside every rule
//! stands what it must leave alone.

#[macro_use]
mod support;

use onnx_slice_fold::ir::text;
use onnx_slice_fold::{Document, Options};
use support::{fold, folded};

// ---- affine steps beside weights ---------------------------------------------------------------------------------------

fuses! {
    batch_normalization_after_conv: "affine-after-weights", 17, "g (float[n,2,h,w] x) => (y)
        <float[3,2,1,1] k = {1,-2,3,4,-5,6}, float[3] scale = {1,2,-0.5}, float[3] b = {0.5,1,2}, float[3] m = {1,2,3}, float[3] v = {0.25,4,9}> {
        c = Conv <pads = [1,1,1,1]> (x, k)
        y = BatchNormalization <epsilon = 0.0> (c, scale, b, m, v) }";
    batch_normalization_after_grouped_conv_with_bias: "affine-after-weights", 9, "g (float[n,2,h] x) => (y)
        <float[4,1,2] k = {1,-2,3,4,-5,6,7,8}, float[4] c = {1,2,3,4}, float[4] scale = {1,2,-0.5,0}, float[4] b = {0.5,1,2,3}, float[4] m = {1,2,3,4}, float[4] v = {0.25,4,9,16}> {
        a = Conv <group = 2> (x, k, c)
        y = BatchNormalization (a, scale, b, m, v) }";
    batch_normalization_after_grouped_conv_transpose: "affine-after-weights", 14, "g (float[n,4,h] x) => (y)
        <float[4,2,1] k = {1,2,3,4,5,6,7,8}, float[4] scale = {1,2,3,4}, float[4] b = {0.5,1,2,3}, float[4] m = {1,2,3,4}, float[4] v = {1,4,1,4}> {
        a = ConvTranspose <group = 2, strides = [2]> (x, k)
        y = BatchNormalization <epsilon = 0.0, training_mode = 0> (a, scale, b, m, v) }";
    batch_normalization_after_gemm: "affine-after-weights", 13, "g (float[n,3] x) => (y)
        <float[2,3] k = {1,2,3,4,5,6}, float[1,2] c = {1,2}, float[2] scale = {1,2}, float[2] b = {0.5,1}, float[2] m = {1,2}, float[2] v = {1,4}> {
        a = Gemm <transB = 1, alpha = 0.5, beta = 2.0> (x, k, c)
        y = BatchNormalization <epsilon = 0.0> (a, scale, b, m, v) }";
    batch_normalization_after_matmul: "affine-after-weights", 13, "g (float[n,3] x) => (y)
        <float[3,2] k = {1,2,3,4,5,6}, float[2] scale = {1,2}, float[2] b = {0.5,1}, float[2] m = {1,2}, float[2] v = {1,4}> {
        a = MatMul (x, k)
        y = BatchNormalization <epsilon = 0.0> (a, scale, b, m, v) }";
    batch_normalization_of_version_6: "affine-after-weights", 6, "g (float[n,1,h] x) => (y)
        <float[2,1,1] k = {1,2}, float[2] scale = {1,2}, float[2] b = {0.5,1}, float[2] m = {1,2}, float[2] v = {1,4}> {
        a = Conv (x, k)
        y = BatchNormalization <epsilon = 0.0, is_test = 1> (a, scale, b, m, v) }";
    batch_normalization_that_only_scales: "affine-after-weights", 17, "g (float[n,1,h] x) => (y)
        <float[2,1,1] k = {1,2}, float[2] scale = {1,2}, float[2] zero = {0,0}, float[2] v = {1,4}> {
        a = Conv (x, k)
        y = BatchNormalization <epsilon = 0.0> (a, scale, zero, zero, v) }";
    batch_normalization_of_batch_normalization: "affine-after-weights", 17, "g (float[n,2,h] x) => (y)
        <float[2] s = {1,2}, float[2] b = {0.5,1}, float[2] m = {1,2}, float[2] v = {1,4}, float[2] t = {3,4}, float[2] c = {0.25,2}> {
        a = BatchNormalization <epsilon = 0.0> (x, s, b, m, v)
        y = BatchNormalization <epsilon = 0.0> (a, t, c, m, v) }";
    arithmetic_after_conv: "affine-after-weights", 17, "g (float[n,1,h,w] x) => (y)
        <float[2,1,1,1] k = {1,2}, float[1,2,1,1] s = {2,4}, float[2,1,1] d = {4,2}, float t = {3}, float[2,1,1] u = {1,2}> {
        a = Conv (x, k)  b = Mul (a, s)  c = Div (b, d)  e = Add (t, c)  y = Sub (u, e) }";
    factor_after_matmul: "affine-after-weights", 17, "g (float[b,n,2] x) => (y)
        <float[2,3] k = {1,2,3,4,5,6}, float[3] s = {1,2,4}> { a = MatMul (x, k)  y = Mul (a, s) }";
    factor_after_matmul_of_batches: "affine-after-weights", 17, "g (float[2,n,2] x) => (y)
        <float[2,2,2] k = {1,2,3,4,5,6,7,8}, float[1,1,2] s = {2,4}> { a = MatMul (x, k)  y = Div (a, s) }";
    factor_after_matmul_from_the_left: "affine-after-weights", 17, "g (float[b,2,n] x) => (y)
        <float[3,2] k = {1,2,3,4,5,6}, float[1] s = {2}> { a = MatMul (k, x)  y = Mul (s, a) }";
    term_after_conv_transpose: "affine-after-weights", 17, "g (float[n,1,h] x) => (y)
        <float[1,2,2] k = {1,2,3,4}, float[2,1] t = {1,2}> { a = ConvTranspose (x, k)  y = Add (a, t) }";
    term_after_gemm: "affine-after-weights", 17, "g (float[n,2] x, float[2,2] k) => (y)
        <float[2] c = {1,2}, float[2] t = {3,4}> { a = Gemm <beta = 0.5> (x, k, c)  y = Sub (a, t) }";
    arithmetic_after_layer_normalization: "affine-after-weights", 17, "g (float[n,2] x) => (y)
        <float[2] s = {1,2}, float[2] b = {3,4}> { a = LayerNormalization (x, s)  c = Mul (a, b)  y = Add (b, c) }";
    arithmetic_after_instance_normalization: "affine-after-weights", 17, "g (float[n,2,4] x) => (y)
        <float[2] s = {1,2}, float[2] b = {3,4}, float[2,1] t = {5,6}> { a = InstanceNormalization (x, s, b)  y = Mul (a, t) }";
    weights_of_float16: "affine-after-weights", 17, "g (float[n,1,h] x) => (y)
        <float16[2,1,1] k = {1,2}, float16 s = {0.5}> { h = Cast <to = 10> (x)  a = Conv (h, k)  b = Mul (a, s)  y = Cast <to = 1> (b) }";
    weights_around_a_branch: "affine-after-weights", 17, "g (float[n,1,h] x, bool c) => (y)
        <float[2,1,1] k = {1,2}, float[2,1] s = {2,4}> {
        y = If <then_branch: graph = t () => (b) { a = Conv (x, k)  b = Mul (a, s) }, else_branch: graph = e () => (d) { d = Concat <axis = 1> (x, x) }> (c) }";
}

keeps! {
    a_factor_of_what_is_an_output_itself: "factor-upstream", 19, "g (float[n,1,h] x) => (a, y)
        <float[2,1,1] k = {1,2}, float[2] b = {3,4}, float s = {2}> { a = Conv (x, k, b)  m = Mul (a, s)  y = Softmax (m) }";
    a_factor_of_a_product_that_is_an_output: "factor-upstream", 17, "g (float[n,2] x) => (c, y)
        <float[2,3] w = {1,2,3,4,5,6}, float s = {2}> { a = MatMul (x, w)  c = Transpose (a)  y = Mul (c, s) }";
    weights_with_another_reader: "affine-after-weights", 17, "g (float[n,1,h] x) => (y, z)
        <float[64,1,1] k = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2}, float s = {2}> {
        a = Conv (x, k)  y = Mul (a, s)  z = Conv <strides = [2]> (x, k) }";
    weights_that_a_caller_may_override: "affine-after-weights", 17, "g (float[n,1,h] x, float[2,1,1] k) => (y)
        <float[2,1,1] k = {1,2}, float s = {2}> { a = Conv (x, k)  y = Mul (a, s) }";
    weights_that_are_an_output: "affine-after-weights", 17, "g (float[n,1,h] x) => (y, k)
        <float[2,1,1] k = {1,2}, float s = {2}> { a = Conv (x, k)  y = Mul (a, s) }";
    a_result_with_another_reader: "affine-after-weights", 17, "g (float[n,1,h] x) => (y, z)
        <float[2,1,1] k = {1,2}, float s = {2}> { a = Conv (x, k)  y = Mul (a, s)  z = Relu (a) }";
    a_result_that_is_an_output: "affine-after-weights", 17, "g (float[n,1,h] x) => (y, a)
        <float[2,1,1] k = {1,2}, float s = {2}> { a = Conv (x, k)  y = Mul (a, s) }";
    a_factor_that_differs_within_a_channel: "affine-after-weights", 17, "g (float[n,1,2] x) => (y)
        <float[2,1,1] k = {1,2}, float[2] s = {2,3}> { a = Conv (x, k)  y = Mul (a, s) }";
    a_factor_that_makes_channels: "affine-after-weights", 17, "g (float[n,1,h] x) => (y)
        <float[1,1,1] k = {2}, float[3,1] s = {2,3,4}> { a = Conv (x, k)  y = Mul (a, s) }";
    a_factor_that_makes_axes: "affine-after-weights", 17, "g (float[n,2] x) => (y)
        <float[2,2] k = {1,2,3,4}, float[1,1,1] s = {2}> { a = MatMul (x, k)  y = Mul (a, s) }";
    a_factor_that_is_computed: "affine-after-weights", 17, "g (float[n,1,h] x, float s) => (y)
        <float[2,1,1] k = {1,2}> { a = Conv (x, k)  y = Mul (a, s) }";
    a_bias_that_is_computed: "affine-after-weights", 17, "g (float[n,1,h] x, float[2] b) => (y)
        <float[2,1,1] k = {1,2}, float s = {2}> { a = Conv (x, k, b)  y = Mul (a, s) }";
    a_matrix_added_by_gemm: "affine-after-weights", 17, "g (float[2,2] x) => (y)
        <float[2,2] k = {1,2,3,4}, float[2,2] c = {1,2,3,4}, float[2] t = {3,4}> { a = Gemm (x, k, c)  y = Add (a, t) }";
    weights_below_float16: "affine-after-weights", 17, "g (float[n,1,h] x) => (y)
        <float16[2,1,1] k = {1,2}, float16 s = {0.00003}> { h = Cast <to = 10> (x)  a = Conv (h, k)  b = Mul (a, s)  y = Cast <to = 1> (b) }";
    division_by_zero: "affine-after-weights", 17, "g (float[n,1,h] x) => (y)
        <float[2,1,1] k = {1,2}, float[2,1] s = {2,0}> { a = Conv (x, k)  y = Div (a, s) }";
    weights_out_of_range: "affine-after-weights", 17, "g (float[n,1,h] x) => (y)
        <float[1,1,1] k = {1e30}, float s = {1e30}> { a = Conv (x, k)  y = Mul (a, s) }";
    a_batch_normalization_that_trains: "affine-after-weights", 15, "g (float[n,1,h] x) => (y)
        <float[2,1,1] k = {1,2}, float[2] p = {1,2}> {
        a = Conv (x, k)  y = BatchNormalization <training_mode = 1> (a, p, p, p, p) }";
    a_batch_normalization_of_a_vector_of_features: "affine-after-weights", 17, "g (float[n,2,2] x) => (y)
        <float[2,2] k = {1,2,3,4}, float[2] p = {1,2}> { a = MatMul (x, k)  y = BatchNormalization (a, p, p, p, p) }";
    terms_that_would_have_to_be_matrices: "affine-after-weights", 17, "g (float[b,n,2] x) => (y)
        <float[2,2] k = {1,2,3,4}, float[2] t = {3,4}> { a = MatMul (x, k)  y = Add (a, t) }";
}

fuses! {
    batch_normalization_before_conv: "affine-before-weights", 17, "g (float[n,2,h] x) => (y)
        <float[2,2,2] k = {1,2,3,4,5,6,7,8}, float[2] c = {1,2}, float[2] s = {1,2}, float[2] b = {0.5,1}, float[2] m = {1,2}, float[2] v = {1,4}> {
        a = BatchNormalization <epsilon = 0.0> (x, s, b, m, v)
        y = Conv (a, k, c) }";
    centring_and_scaling_before_grouped_conv: "affine-before-weights", 17, "g (float[n,4,h] x) => (y)
        <float[2,2,1] k = {1,2,3,4}, float[4,1] m = {1,0.5,-0.25,-1}, float[4,1] d = {2,4,8,16}> {
        a = Sub (x, m)  b = Div (a, d)
        y = Conv <group = 2, auto_pad = \"VALID\"> (b, k) }";
    factor_before_padded_conv: "affine-before-weights", 17, "g (float[n,2,h] x) => (y)
        <float[1,2,3] k = {1,2,3,4,5,6}, float[1,2,1] s = {2,4}> { a = Mul (s, x)  y = Conv <pads = [1,1]> (a, k) }";
    factor_before_conv_transpose: "affine-before-weights", 17, "g (float[n,2,h] x) => (y)
        <float[2,1,2] k = {1,2,3,4}, float[2,1] s = {2,4}> { a = Mul (x, s)  y = ConvTranspose <group = 2> (a, k) }";
    factor_before_matmul: "affine-before-weights", 17, "g (float[b,n,2] x) => (y)
        <float[2,3] k = {1,2,3,4,5,6}, float[2] s = {2,4}> { a = Mul (x, s)  y = MatMul (a, k) }";
    affine_before_gemm: "affine-before-weights", 17, "g (float[2,n] x) => (y)
        <float[2,3] k = {1,2,3,4,5,6}, float[3] c = {1,2,3}, float[2,1] s = {2,4}, float[2,1] t = {1,-1}> {
        a = Mul (x, s)  b = Sub (t, a)  y = Gemm <transA = 1, alpha = 0.5, beta = 2.0> (b, k, c) }";
    term_before_gemm_with_transposed_weights: "affine-before-weights", 17, "g (float[n,2] x) => (y)
        <float[3,2] k = {1,2,3,4,5,6}, float[2] t = {1,-1}> { b = Add (x, t)  y = Gemm <transB = 1> (b, k) }";
}

keeps! {
    a_term_before_padding: "affine-before-weights", 17, "g (float[n,2,h] x) => (y)
        <float[1,2,3] k = {1,2,3,4,5,6}, float[2,1] t = {2,4}> { a = Add (x, t)  y = Conv <pads = [1,1]> (a, k) }";
    a_term_before_automatic_padding: "affine-before-weights", 17, "g (float[n,2,h] x) => (y)
        <float[1,2,3] k = {1,2,3,4,5,6}, float[2,1] t = {2,4}> { a = Add (x, t)  y = Conv <auto_pad = \"SAME_UPPER\"> (a, k) }";
    a_term_before_matmul: "affine-before-weights", 17, "g (float[b,n,2] x) => (y)
        <float[2,3] k = {1,2,3,4,5,6}, float[2] t = {2,4}> { a = Add (x, t)  y = MatMul (a, k) }";
    a_term_before_conv_transpose: "affine-before-weights", 17, "g (float[n,2,h] x) => (y)
        <float[2,1,2] k = {1,2,3,4}, float[2,1] t = {2,4}> { a = Add (x, t)  y = ConvTranspose <strides = [2]> (a, k) }";
    a_factor_that_makes_the_channels: "affine-before-weights", 17, "g (float[n,1,h] x) => (y)
        <float[1,2,1] k = {1,2}, float[2,1] s = {2,4}> { a = Mul (x, s)  y = Conv (a, k) }";
    a_factor_that_stretches: "affine-before-weights", 17, "g (float[n] x) => (y)
        <float[2,2] k = {1,2,3,4}, float[1,2] s = {2,4}, float[2] p = {0,1}> { a0 = Add (p, x)  a = Mul (a0, s)  y = MatMul (a, k) }";
    an_operand_read_twice: "affine-before-weights", 17, "g (float[2,2] x) => (y)
        <float[2,2] k = {1,2,3,4}, float s = {2}> { a = Mul (x, s)  y = Gemm (a, k, a) }";
}

fuses! {
    factor_of_attention_scores: "factor-upstream", 17, "g (float[n,4] x, float[n,4] z) => (y)
        <float[4,4] q = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, float[4,4] k = {1,0,1,0,0,1,0,1,1,1,0,0,0,0,1,1}, float[4] b = {1,2,3,4}, int64[3] heads = {0,2,2}, float d = {4}> {
        q0 = MatMul (x, q)  q1 = Sub (b, q0)  q2 = Reshape (q1, heads)  q3 = Transpose <perm = [1,0,2]> (q2)
        k0 = MatMul (z, k)  k2 = Reshape (k0, heads)  k3 = Transpose <perm = [1,2,0]> (k2)
        s = MatMul (q3, k3)  t = Div (s, d)  y = Softmax (t) }";
    factor_through_the_right_operand: "factor-upstream", 17, "g (float[n,2,3] x, float[n,2] z) => (y)
        <float[2,3] w = {1,2,3,4,5,6}, float s = {2}, int64[1] axis = {2}> {
        p = Relu (x)  a = MatMul (z, w)  b = Unsqueeze (a, axis)  c = MatMul (p, b)  y = Mul (s, c) }";
    factor_into_weights_and_bias: "factor-upstream", 17, "g (float[n,1,h] x) => (y)
        <float[2,1,1] k = {1,2}, float[2] b = {3,4}, float s = {2}> { a = Conv (x, k, b)  c = Transpose <perm = [0,2,1]> (a)  y = Mul (c, s) }";
    factor_of_what_is_turned: "factor-upstream", 17, "g (float[b,n,4] x, float[b,4,n] z) => (y)
        <float[4,4] q = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, float[4] c = {1,-1,2,1}, float[4] t = {2,1,-1,3}, float d = {8},
        int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] axis = {2}> {
        a = MatMul (x, q)  u = Slice (a, zero, two, axis)  v = Slice (a, two, four, axis)  w = Neg (v)  r = Concat <axis = -1> (w, u)
        p = Mul (a, c)  o = Mul (r, t)  e = Add (p, o)  f = MatMul (e, z)  g = Div (f, d)  y = Softmax (g) }";
    factor_of_a_curve: "factor-upstream", 13, "g (float[n,2] x) => (y)
        <float[2,3] w = {1,2,3,4,5,6}, float[3] b = {1,-1,2}, float[3,2] o = {1,2,-3,4,5,6}, float s = {1.4142135}, float one = {1}> {
        a = MatMul (x, w)  c = Add (a, b)  d = Div (c, s)  e = Erf (d)  f = Add (e, one)  h = Mul (c, f)  y = MatMul (h, o) }";
    factor_before_a_shared_bias_of_zeros: "factor-upstream", 17, "g (float[n,1,h] x) => (y, z)
        <float[2,1,1] k = {1,2}, float[2,1,1] l = {3,4}, float[2] b = {0,0}, float s = {2}> {
        a = Conv (x, k, b)  c = Transpose <perm = [0,2,1]> (a)  y = Mul (c, s)  d = Conv <strides = [2]> (x, l, b)  z = Relu (d) }";
    factor_of_an_embedding: "factor-upstream", 13, "g (int64[n] x) => (y) <float[3,2] w = {1,2,3,4,5,6}, float s = {4}> { a = Gather (w, x)  y = Mul (a, s) }";
    factor_into_a_divisor: "factor-upstream", 17, "g (float[n,2] x) => (y) <float[2] d = {1,2}, float s = {4}> { a = Div (x, d)  c = Transpose (a)  y = Mul (c, s) }";
}

keeps! {
    a_factor_that_nothing_undoes: "factor-upstream", 17, "g (float[n,2] x) => (y)
        <float[2,2] w = {1,2,3,4}, float s = {4}> { a = MatMul (x, w)  b = Mul (a, s)  c = Sigmoid (b)  d = Mul (c, a)  y = Relu (d) }";
    a_factor_squared_by_what_reads_it: "factor-upstream", 17, "g (float[n,2] x) => (y)
        <float[2,2] w = {1,2,3,4}, float[2,2] v = {1,2,3,4}, float s = {4}> { a = MatMul (x, w)  b = Mul (a, s)  c = Sigmoid (b)  d = Mul (a, a)  e = Mul (c, d)  y = MatMul (e, v) }";
    a_factor_of_a_square: "factor-upstream", 17, "g (float[n,2] x) => (y)
        <float[2,2] w = {1,2,3,4}, float s = {4}> { a = MatMul (x, w)  r = Reshape (a, shape)  b = MatMul (r, r)  y = Mul (b, s)  shape = Constant <value_ints = [-1,2,2]> () }";
    a_factor_behind_a_curve: "factor-upstream", 17, "g (float[n,2] x) => (y)
        <float[2,2] w = {1,2,3,4}, float s = {4}> { a = MatMul (x, w)  b = Relu (a)  y = Mul (b, s) }";
    a_factor_of_what_is_read_elsewhere: "factor-upstream", 17, "g (float[n,2] x) => (y, z)
        <float[2,2] w = {1,2,3,4}, float s = {4}> { a = MatMul (x, w)  b = Transpose (a)  y = Mul (b, s)  z = Neg (a) }";
    a_factor_of_shared_weights: "factor-upstream", 17, "g (float[n,3] x, float[n,3] x2) => (y, z)
        <float[3,3] w = {1,2,3,4,5,6,7,8,9}, float s = {4}> { a = MatMul (x, w)  b = Transpose (a)  y = Mul (b, s)  z = MatMul (x2, w) }";
    a_factor_of_a_bias_that_is_computed: "factor-upstream", 17, "g (float[n,1,h] x, float[2] b) => (y)
        <float[2,1,1] k = {1,2}, float s = {2}> { a = Conv (x, k, b)  c = Transpose <perm = [0,2,1]> (a)  y = Mul (c, s) }";
    a_factor_for_each_column: "factor-upstream", 17, "g (float[n,2] x) => (y)
        <float[2,2] w = {1,2,3,4}, float[2,1] s = {4,5}> { a = MatMul (x, w)  b = Transpose (a)  y = Mul (b, s) }";
}

fuses! {
    factor_before_weights: "factor-downstream", 17, "g (float[n,2] x, float[n,3] z) => (y)
        <float[2,2] w = {1,2,3,4}, float s = {0.5}, float one = {1}> {
        a = Erf (x)  b = Add (a, one)  c = Mul (s, b)  d = Mul (x, c)  y = MatMul (d, w) }";
    factor_before_several_weights: "factor-downstream", 17, "g (float[n,2] x) => (y, z)
        <float[2,2] w = {1,2,3,4}, float[2,2] v = {5,6,7,8}, float s = {0.5}> { a = Exp (x)  b = Mul (a, s)  y = MatMul (b, w)  c = Transpose (b)  z = MatMul (v, c) }";
}

keeps! {
    a_factor_before_a_curve: "factor-downstream", 17, "g (float[n,2] x) => (y, z)
        <float[2,2] w = {1,2,3,4}, float s = {0.5}> { a = Exp (x)  b = Mul (a, s)  y = MatMul (b, w)  z = Sigmoid (b) }";
    a_factor_of_an_output: "factor-downstream", 17, "g (float[n,2] x) => (y, b)
        <float[2,2] w = {1,2,3,4}, float s = {0.5}> { a = Exp (x)  b = Mul (a, s)  y = MatMul (b, w) }";
    a_factor_before_a_square: "factor-downstream", 17, "g (float[2,2] x) => (y)
        <float[2,2] w = {1,2,3,4}, float s = {0.5}> { a = Exp (x)  b = Mul (a, s)  c = MatMul (b, b)  y = MatMul (c, w) }";
}

fuses! {
    products_with_inverses: "product-with-inverse", 17, "g (float[n,2] x, float[n,1] z) => (y)
        <float[1] one = {1}, float e = {1e-3}> { a = Abs (z)  b = Add (a, e)  c = Sqrt (b)  d = Reciprocal (c)  f = Mul (x, d)  h = Div (one, b)  y = Mul (h, f) }";
}

keeps! {
    an_inverse_that_is_read_elsewhere: "product-with-inverse", 17, "g (float[n,2] x, float[n,1] z) => (y, w)
        { a = Exp (z)  d = Reciprocal (a)  y = Mul (x, d)  w = Relu (d) }";
    an_inverse_of_more_axes: "product-with-inverse", 17, "g (float[n] x, float[n] z) => (y)
        <float[1,1] one = {1}> { a = Exp (z)  d = Div (one, a)  y = Mul (x, d) }";
}

// ---- products of matrices ----------------------------------------------------------------------------------------------

fuses! {
    matmul_and_addition: "matmul-add-to-gemm", 17, "g (float[n,3] x, float[2] c) => (y)
        <float[3,2] k = {1,2,3,4,5,6}> { a = MatMul (x, k)  y = Add (c, a) }";
    matmul_and_addition_of_a_matrix: "matmul-add-to-gemm", 7, "g (float[n,3] x, float[3,m] k, float[n,m] c) => (y) { a = MatMul (x, k)  y = Add (a, c) }";
    matmul_and_addition_of_a_column: "matmul-add-to-gemm", 13, "g (float[n,3] x, float[3,m] k, float[n,1] c) => (y) { a = MatMul (x, k)  y = Add (a, c) }";
    matmul_and_addition_of_a_number: "matmul-add-to-gemm", 13, "g (double[n,3] x, double[3,m] k, double c) => (y) { a = MatMul (x, k)  y = Add (a, c) }";
    transposition_before_gemm: "transpose-into-gemm", 17, "g (float[3,n] x, float[2,3] k, float[2] c) => (y) {
        a = Transpose <perm = [1,0]> (x)  b = Transpose (k)  y = Gemm (a, b, c) }";
    transposition_undone_by_gemm: "transpose-into-gemm", 9, "g (float[n,3] x, float[3,2] k, float[2] c) => (y) {
        a = Transpose (x)  y = Gemm <transA = 1> (a, k, c) }";
    transposition_before_matmul: "transpose-into-gemm", 11, "g (float[n,3] x, float[m,3] k) => (y) { a = Transpose (k)  y = MatMul (x, a) }";
}

keeps! {
    a_product_of_batches: "matmul-add-to-gemm", 17, "g (float[b,n,3] x, float[2] c) => (y)
        <float[3,2] k = {1,2,3,4,5,6}> { a = MatMul (x, k)  y = Add (a, c) }";
    a_term_of_higher_rank: "matmul-add-to-gemm", 17, "g (float[n,3] x, float[3,m] k, float[1,1,m] c) => (y) { a = MatMul (x, k)  y = Add (a, c) }";
    a_term_that_may_stretch_the_product: "matmul-add-to-gemm", 17, "g (float[n,3] x, float[3,m] k, float[p,m] c) => (y) { a = MatMul (x, k)  y = Add (a, c) }";
    a_product_with_another_reader: "matmul-add-to-gemm", 17, "g (float[n,3] x, float[3,m] k, float[m] c) => (y, z) { a = MatMul (x, k)  y = Add (a, c)  z = Relu (a) }";
    a_product_added_to_itself: "matmul-add-to-gemm", 17, "g (float[n,3] x, float[3,m] k) => (y) { a = MatMul (x, k)  y = Add (a, a) }";
    a_product_of_integers: "matmul-add-to-gemm", 17, "g (int32[n,3] x, int32[3,m] k, int32[m] c) => (y) { a = MatMul (x, k)  y = Add (a, c) }";
    a_sum_of_nothing: "matmul-add-to-gemm", 17, "g (float[n,k] x, float[k,m] w, float[m] c) => (y) { a = MatMul (x, w)  y = Add (a, c) }";
    a_transposition_of_batches: "transpose-into-gemm", 17, "g (float[b,n,3] x, float[b,m,3] k) => (y) { a = Transpose <perm = [0,2,1]> (k)  y = MatMul (x, a) }";
    a_transposition_with_another_reader: "transpose-into-gemm", 17, "g (float[n,3] x, float[m,3] k) => (y, z) { a = Transpose (k)  y = MatMul (x, a)  z = Relu (a) }";
    a_matmul_before_gemm_could_do_without_c: "transpose-into-gemm", 10, "g (float[n,3] x, float[m,3] k) => (y) { a = Transpose (k)  y = MatMul (x, a) }";
}

// ---- chains of constants -----------------------------------------------------------------------------------------------

fuses! {
    factors_and_divisors: "constant-chain", 17, "g (float[n,2] x) => (y)
        <float a = {2}, float[2] b = {4,8}, float[1] c = {3}, float[2] d = {5,6}> {
        p = Mul (a, x)  q = Div (p, b)  r = Div (q, c)  y = Mul (r, d) }";
    two_divisors: "constant-chain", 17, "g (float[n,2] x) => (y) <float a = {2}, float b = {4}> { p = Div (x, a)  y = Div (p, b) }";
    terms: "constant-chain", 17, "g (float[n,2] x) => (y)
        <float a = {2}, float[2] b = {4,8}, float c = {-3}> { p = Sub (a, x)  q = Sub (p, b)  s = Neg (q) t = Abs (s)  u = Sub (c, t)  y = Sub (u, a) }";
    terms_subtracted_from: "constant-chain", 17, "g (float[n,2] x) => (y)
        <float a = {2}, float[2] b = {-4,-8}> { p = Sub (a, x)  y = Sub (b, p) }";
    whole_numbers_wrap: "integer-constant-chain", 17, "g (int32[n] x) => (y)
        <int32 a = {2147483647}, int32 b = {5}> { p = Mul (x, a)  y = Mul (b, p) }";
    whole_numbers_added: "integer-constant-chain", 17, "g (int64[n] x) => (y)
        <int64 a = {2}, int64 b = {5}> { p = Sub (a, x)  y = Sub (b, p) }";
}

fuses! {
    zeros_added: "zero-term", 17, "g (float[n,2] x) => (y) <float zero = {0}, float[2] zeros = {-0.0,-0.0}> { a = Add (zero, x)  b = Relu (a)  c = Sub (b, zeros)  y = Neg (c) }";
}

keeps! {
    zeros_that_stretch: "zero-term", 17, "g (float[n] x) => (y) <float[1,1] zero = {0}> { a = Add (zero, x)  y = Neg (a) }";
    a_difference_from_zero: "zero-term", 17, "g (float[n] x) => (y) <float zero = {0}> { a = Sub (zero, x)  y = Relu (a) }";
    a_way_to_round: "constant-chain", 17, "g (float[n] x) => (y) <float a = {12582912}> { p = Add (x, a)  y = Sub (p, a) }";
    a_product_too_small: "constant-chain", 17, "g (float[n] x) => (y) <float a = {1e-30}> { p = Mul (x, a)  y = Mul (p, a) }";
    a_product_too_large: "constant-chain", 17, "g (float[n] x) => (y) <float a = {1e30}> { p = Mul (x, a)  y = Mul (p, a) }";
    a_step_with_another_reader: "constant-chain", 17, "g (float[n] x) => (y, z) <float a = {2}, float b = {3}> { p = Mul (x, a)  y = Mul (p, b)  z = Relu (p) }";
    a_sum_of_a_product: "constant-chain", 17, "g (float[n] x) => (y) <float a = {2}, float b = {3}> { p = Mul (x, a)  y = Add (p, b) }";
    constants_that_spread_each_other: "constant-chain", 17, "g (float[n,8,8] x) => (y)
        <float[8,1] a = {1,2,3,4,5,6,7,8}, float[8] b = {2,3,4,5,6,7,8,9}> { p = Mul (x, a)  y = Mul (p, b) }";
    quotients_of_whole_numbers: "integer-constant-chain", 17, "g (int64[n] x) => (y) <int64 two = {2}> { p = Div (x, two)  y = Mul (p, two) }";
}

// ---- cuts --------------------------------------------------------------------------------------------------------------

fuses! {
    relu_of_what_is_positive: "needless-cut", 17, "g (float[n,2] x) => (y) { a = Sigmoid (x)  b = Transpose (a)  c = Relu (b)  y = Neg (c) }";
    clip_of_a_narrower_clip: "needless-cut", 17, "g (float[n] x) => (y) <float zero = {0}, float six = {6}, float one = {1}, float seven = {7}> {
        a = Clip (x, one, six)  b = Clip (a, zero, seven)  y = Neg (b) }";
    clip_of_relu: "cut-of-cut", 17, "g (float[n] x) => (y) <float six = {6}, float minus = {-1}> { a = Relu (x)  y = Clip (a, minus, six) }";
    relu_of_clip_open_above: "cut-of-cut", 17, "g (float[n] x) => (y) <float minus = {-1}> { a = Clip (x, minus)  y = Relu (a) }";
    clip_of_clip_of_version_6: "cut-of-cut", 6, "g (float[n] x) => (y) { a = Clip <min = -1.0> (x)  y = Clip <max = 0.5> (a) }";
    clip_of_clip_of_doubles: "cut-of-cut", 12, "g (double[n] x) => (y) <double a = {-0.1}, double b = {0.3}, double c = {0.2}, double d = {0.7}> {
        p = Clip (x, a, b)  y = Clip (p, c, d) }";
}

keeps! {
    cuts_that_do_not_meet: "cut-of-cut", 17, "g (float[n] x) => (y) <float a = {0}, float b = {1}, float c = {2}, float d = {3}> { p = Clip (x, a, b)  y = Clip (p, c, d) }";
    a_bound_that_is_computed: "cut-of-cut", 17, "g (float[n] x, float b) => (y) <float a = {0}> { p = Relu (x)  y = Clip (p, a, b) }";
    a_cut_with_another_reader: "cut-of-cut", 17, "g (float[n] x) => (y, z) <float a = {0}, float b = {1}> { p = Relu (x)  y = Clip (p, a, b)  z = Neg (p) }";
    a_cut_that_cuts: "needless-cut", 17, "g (float[n] x) => (y) <float a = {0.25}, float b = {0.5}> { p = Sigmoid (x)  q = Clip (p, a, b)  y = Neg (q) }";
    a_cut_of_a_sum: "needless-cut", 17, "g (float[n] x) => (y) <float a = {-0.25}> { p = Sigmoid (x)  q = Add (p, a)  r = Relu (q)  y = Neg (r) }";
}

// ---- padding -----------------------------------------------------------------------------------------------------------

fuses! {
    two_pads: "pad-pad", 18, "g (float[n,2] x) => (y) <int64[2] p = {1,2}, int64[1] axis = {-1}, int64[4] q = {0,1,3,0}, float zero = {0}> {
        a = Pad (x, p, zero, axis)  y = Pad (a, q) }";
    two_pads_of_version_2: "pad-pad", 10, "g (float[n,2] x) => (y) { a = Pad <pads = [1,0,0,2], value = 1.5> (x)  y = Pad <pads = [1,1,1,1], value = 1.5> (a) }";
    pad_before_conv: "pad-into-window", 17, "g (float[n,1,h,w] x) => (y) <int64[8] p = {0,0,1,2,0,0,0,1}, float[1,1,2,2] k = {1,2,3,4}> {
        a = Pad (x, p)  y = Conv <pads = [0,1,0,0]> (a, k) }";
    pad_before_conv_of_version_1: "pad-into-window", 10, "g (float[n,1,h] x) => (y) <float[1,1,2] k = {1,2}> {
        a = Pad <pads = [0,0,1,0,0,2]> (x)  y = Conv <auto_pad = \"VALID\", strides = [2]> (a, k) }";
    pad_before_average_pool: "pad-into-window", 17, "g (float[n,1,5] x) => (y) <int64[6] p = {0,0,1,0,0,2}> {
        a = Pad (x, p)  y = AveragePool <kernel_shape = [3]> (a) }";
    pad_before_average_pool_that_counts_its_own: "pad-into-window", 17, "g (float[n,1,5] x) => (y) <int64[6] p = {0,0,1,0,0,0}> {
        a = Pad (x, p)  y = AveragePool <kernel_shape = [3], pads = [1,1], count_include_pad = 1> (a) }";
    pad_before_max_pool_of_what_is_positive: "pad-into-window", 17, "g (float[n,1,5] x) => (y) <int64[6] p = {0,0,1,0,0,1}> {
        r = Relu (x)  a = Pad (r, p)  y = MaxPool <kernel_shape = [3], strides = [2]> (a) }";
    pad_before_max_pool_with_the_least: "pad-into-window", 17, "g (float[n,1,5] x) => (y) <int64[6] p = {0,0,1,0,0,1}, float low = {-inf}> {
        r = Relu (x)  a = Pad (r, p, low)  y = MaxPool <kernel_shape = [3], strides = [2]> (a) }";
}

keeps! {
    pads_of_different_values: "pad-pad", 17, "g (float[n,2] x) => (y) <int64[4] p = {0,1,0,1}, float one = {1}> { a = Pad (x, p, one)  y = Pad (a, p) }";
    pads_that_cut: "pad-pad", 17, "g (float[n,4] x) => (y) <int64[4] p = {0,1,0,1}, int64[4] q = {0,-2,0,0}> { a = Pad (x, p)  y = Pad (a, q) }";
    pads_that_reflect: "pad-pad", 17, "g (float[n,4] x) => (y) <int64[4] p = {0,1,0,1}> { a = Pad <mode = \"reflect\"> (x, p)  y = Pad <mode = \"reflect\"> (a, p) }";
    a_pad_with_another_reader: "pad-pad", 17, "g (float[n,4] x) => (y, z) <int64[4] p = {0,1,0,1}> { a = Pad (x, p)  y = Pad (a, p)  z = Relu (a) }";
    a_pad_with_ones: "pad-into-window", 17, "g (float[n,1,h] x) => (y) <int64[6] p = {0,0,1,0,0,2}, float[1,1,2] k = {1,2}, float one = {1}> { a = Pad (x, p, one)  y = Conv (a, k) }";
    a_pad_of_channels: "pad-into-window", 17, "g (float[n,1,h] x) => (y) <int64[6] p = {0,1,1,0,0,2}, float[1,2,1] k = {1,2}> { a = Pad (x, p)  y = Conv (a, k) }";
    a_pad_before_automatic_padding: "pad-into-window", 17, "g (float[n,1,h] x) => (y) <int64[6] p = {0,0,1,0,0,2}, float[1,1,2] k = {1,2}> { a = Pad (x, p)  y = Conv <auto_pad = \"SAME_UPPER\"> (a, k) }";
    a_pad_beside_one_that_does_not_count: "pad-into-window", 17, "g (float[n,1,h] x) => (y) <int64[6] p = {0,0,1,0,0,0}> { a = Pad (x, p)  y = AveragePool <kernel_shape = [3], pads = [1,1]> (a) }";
    a_pad_as_long_as_the_window: "pad-into-window", 17, "g (float[n,1,h] x) => (y) <int64[6] p = {0,0,2,0,0,0}> { a = Pad (x, p)  y = AveragePool <kernel_shape = [2]> (a) }";
    a_pad_of_windows_that_may_be_partial: "pad-into-window", 17, "g (float[n,1,5] x) => (y) <int64[6] p = {0,0,1,0,0,1}> { r = Relu (x)  a = Pad (r, p)  y = MaxPool <kernel_shape = [3], ceil_mode = 1> (a) }";
    a_pad_that_may_win: "pad-into-window", 17, "g (float[n,1,5] x) => (y) <int64[6] p = {0,0,1,0,0,1}> { a = Pad (x, p)  y = MaxPool <kernel_shape = [3]> (a) }";
    a_pad_of_perhaps_nothing: "pad-into-window", 17, "g (float[n,1,h] x) => (y) <int64[6] p = {0,0,1,0,0,2}> { r = Relu (x)  a = Pad (r, p)  y = MaxPool <kernel_shape = [3]> (a) }";
}

// ---- operators spelled out ---------------------------------------------------------------------------------------------

fuses! {
    layer_normalization: "spelled-normalization", 17, "g (float[n,s,3] x) => (y)
        <float two = {2}, float e = {1e-5}, float[3] w = {1,2,3}, float[3] b = {4,5,6}> {
        m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  p = Pow (d, two)  v = ReduceMean <axes = [2]> (p)
        ve = Add (v, e)  s1 = Sqrt (ve)  n1 = Div (d, s1)  z = Mul (n1, w)  y = Add (z, b) }";
    layer_normalization_with_reciprocal: "spelled-normalization", 18, "g (float[n,2,3] x, float[2,3] w) => (y)
        <float e = {1e-5}, int64[2] axes = {-1,1}> {
        m = ReduceMean (x, axes)  d = Sub (x, m)  p = Mul (d, d)  v = ReduceMean (p, axes)
        ve = Add (e, v)  s1 = Sqrt (ve)  r = Reciprocal (s1)  n1 = Mul (r, d)  y = Mul (w, n1) }";
    rms_normalization: "spelled-normalization", 23, "g (float[n,s,3] x) => (y)
        <float two = {2}, float e = {1e-6}, float one = {1}, float[3] w = {1,2,3}, int64[1] axes = {-1}> {
        p = Pow (x, two)  v = ReduceMean (p, axes)  ve = Add (v, e)  s1 = Sqrt (ve)  r = Div (one, s1)  n1 = Mul (x, r)  y = Mul (w, n1) }";
    gelu: "spelled-activation", 20, "g (float[n] x) => (y) <float r = {1.4142135}, float one = {1}, float h = {0.5}> {
        a = Div (x, r)  b = Erf (a)  c = Add (b, one)  d = Mul (x, c)  y = Mul (d, h) }";
    gelu_in_another_order: "spelled-activation", 20, "g (float[n] x) => (y) <float r = {0.70710677}, float one = {1}, float h = {2}> {
        k = Div (x, h)  a = Mul (r, x)  b = Erf (a)  c = Add (one, b)  y = Mul (c, k) }";
    gelu_by_tanh: "spelled-activation", 20, "g (float[n] x) => (y) <float three = {3}, float k = {0.044715}, float r = {0.7978846}, float one = {1}, float h = {0.5}> {
        a = Pow (x, three)  b = Mul (a, k)  c = Add (x, b)  d = Mul (c, r)  e = Tanh (d)  f = Add (e, one)  p = Mul (x, h)  y = Mul (p, f) }";
    gelu_by_tanh_factored: "spelled-activation", 20, "g (float[n] x) => (y) <float k = {0.044715}, float r = {0.7978846}, float one = {1}, float h = {0.5}> {
        a = Mul (x, x)  b = Mul (a, k)  c = Add (b, one)  q = Mul (x, r)  d = Mul (q, c)  e = Tanh (d)  f = Add (e, one)  p = Mul (x, f)  y = Mul (p, h) }";
    swish: "spelled-activation", 24, "g (float[n] x) => (y) { a = Sigmoid (x)  y = Mul (x, a) }";
    swish_with_a_slope: "spelled-activation", 24, "g (float[n] x) => (y) <float k = {1.702}> { s = Mul (x, k)  a = Sigmoid (s)  y = Mul (a, x) }";
    hard_swish: "spelled-activation", 14, "g (float[n] x) => (y) <float three = {3}, float zero = {0}, float six = {6}> {
        a = Add (x, three)  b = Clip (a, zero, six)  c = Mul (x, b)  y = Div (c, six) }";
    hard_swish_by_hard_sigmoid: "spelled-activation", 14, "g (float[n] x) => (y) { a = HardSigmoid <alpha = 0.16666667> (x)  y = Mul (a, x) }";
    mish: "spelled-activation", 18, "g (float[n] x) => (y) { a = Softplus (x)  b = Tanh (a)  y = Mul (x, b) }";
}

keeps! {
    a_mean_over_other_axes: "spelled-normalization", 17, "g (float[n,3,s] x, float[s] w) => (y) <float two = {2}, float e = {1e-5}> {
        m = ReduceMean <axes = [1]> (x)  d = Sub (x, m)  p = Pow (d, two)  v = ReduceMean <axes = [1]> (p)
        ve = Add (v, e)  s1 = Sqrt (ve)  n1 = Div (d, s1)  y = Mul (n1, w) }";
    a_scale_of_another_shape: "spelled-normalization", 17, "g (float[n,s,3] x) => (y) <float two = {2}, float e = {1e-5}, float w = {2}> {
        m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  p = Pow (d, two)  v = ReduceMean <axes = [-1]> (p)
        ve = Add (v, e)  s1 = Sqrt (ve)  n1 = Div (d, s1)  y = Mul (n1, w) }";
    a_constant_that_makes_an_axis: "spelled-normalization", 17, "g (float[n,s,3] x) => (y) <float two = {2}, float[1,1,1,1] e = {1e-5}, float[3] w = {1,2,3}> {
        m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  p = Pow (d, two)  v = ReduceMean <axes = [-1]> (p)
        ve = Add (v, e)  s1 = Sqrt (ve)  n1 = Div (d, s1)  y = Mul (n1, w) }";
    a_deviation_read_elsewhere: "spelled-normalization", 17, "g (float[n,s,3] x) => (y, z) <float two = {2}, float e = {1e-5}, float[3] w = {1,2,3}> {
        m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  p = Pow (d, two)  v = ReduceMean <axes = [-1]> (p)
        ve = Add (v, e)  s1 = Sqrt (ve)  n1 = Div (d, s1)  y = Mul (n1, w)  z = Relu (s1) }";
    a_normalization_of_doubles: "spelled-normalization", 17, "g (double[n,s,3] x) => (y) <double two = {2}, double e = {1e-5}, double[3] w = {1,2,3}> {
        m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  p = Pow (d, two)  v = ReduceMean <axes = [-1]> (p)
        ve = Add (v, e)  s1 = Sqrt (ve)  n1 = Div (d, s1)  y = Mul (n1, w) }";
    a_normalization_before_there_was_one: "spelled-normalization", 16, "g (float[n,s,3] x) => (y) <float two = {2}, float e = {1e-5}, float[3] w = {1,2,3}> {
        m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  p = Pow (d, two)  v = ReduceMean <axes = [-1]> (p)
        ve = Add (v, e)  s1 = Sqrt (ve)  n1 = Div (d, s1)  y = Mul (n1, w) }";
    a_root_mean_square_before_there_was_one: "spelled-normalization", 22, "g (float[n,s,3] x) => (y) <float two = {2}, float e = {1e-6}, float[3] w = {1,2,3}, int64[1] axes = {-1}> {
        p = Pow (x, two)  v = ReduceMean (p, axes)  ve = Add (v, e)  s1 = Sqrt (ve)  n1 = Div (x, s1)  y = Mul (n1, w) }";
    a_mean_of_something_else: "spelled-normalization", 17, "g (float[n,s,3] x, float[n,s,3] x2) => (y) <float two = {2}, float e = {1e-5}, float[3] w = {1,2,3}> {
        m = ReduceMean <axes = [-1]> (x2)  d = Sub (x, m)  p = Pow (d, two)  v = ReduceMean <axes = [-1]> (p)
        ve = Add (v, e)  s1 = Sqrt (ve)  n1 = Div (d, s1)  y = Mul (n1, w) }";
    almost_the_root_of_two: "spelled-activation", 20, "g (float[n] x) => (y) <float r = {1.4142}, float one = {1}, float h = {0.5}> {
        a = Div (x, r)  b = Erf (a)  c = Add (b, one)  d = Mul (x, c)  y = Mul (d, h) }";
    the_error_function_of_something_else: "spelled-activation", 20, "g (float[n] x, float[n] z) => (y) <float r = {1.4142135}, float one = {1}, float h = {0.5}> {
        a = Div (z, r)  b = Erf (a)  c = Add (b, one)  d = Mul (x, c)  y = Mul (d, h) }";
    gelu_before_there_was_one: "spelled-activation", 19, "g (float[n] x) => (y) <float r = {1.4142135}, float one = {1}, float h = {0.5}> {
        a = Div (x, r)  b = Erf (a)  c = Add (b, one)  d = Mul (x, c)  y = Mul (d, h) }";
    swish_before_there_was_one: "spelled-activation", 23, "g (float[n] x) => (y) { a = Sigmoid (x)  y = Mul (x, a) }";
    a_gate_with_another_reader: "spelled-activation", 24, "g (float[n] x) => (y, z) { a = Sigmoid (x)  y = Mul (x, a)  z = Relu (a) }";
    a_gate_of_something_else: "spelled-activation", 24, "g (float[n] x, float[n] z) => (y) { a = Sigmoid (z)  y = Mul (x, a) }";
    a_hard_sigmoid_of_another_slope: "spelled-activation", 14, "g (float[n] x) => (y) { a = HardSigmoid <alpha = 0.2> (x)  y = Mul (a, x) }";
    a_cube_of_something_else: "spelled-activation", 20, "g (float[n] x, float[n] z) => (y) <float three = {3}, float k = {0.044715}, float r = {0.7978846}, float one = {1}, float h = {0.5}> {
        a = Pow (z, three)  b = Mul (a, k)  c = Add (x, b)  d = Mul (c, r)  e = Tanh (d)  f = Add (e, one)  p = Mul (x, h)  y = Mul (p, f) }";
}

// ---- quantization ------------------------------------------------------------------------------------------------------

/// How often `quantize-dequantized` fires.
fn requantized(opset: i64, body: &str) -> usize {
    let source = format!("<ir_version: 8, opset_import: [\"\" : {opset}]>\n{body}");
    let mut document = Document::of(text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}")));
    let report = document.fold(&Options::default()).expect("the model folds");
    report.fired.get("quantize-dequantized").copied().unwrap_or(0)
}

#[test]
fn quantizing_undoes_dequantizing() {
    for body in [
        "g (uint8[n] q) => (y) <float s = {0.1}, uint8 z = {3}> { a = DequantizeLinear (q, s, z)  b = QuantizeLinear (a, s, z)  y = Cast <to = 7> (b) }",
        "g (uint8[n] q) => (y) <float s = {0.1}> { a = DequantizeLinear (q, s)  b = QuantizeLinear (a, s)  y = Cast <to = 7> (b) }",
        "g (int8[n,2] q) => (y) <float[2] s = {0.1,2}, float[2] t = {0.1,2}, int8[2] z = {3,-4}> { a = DequantizeLinear <axis = 1> (q, s, z)  b = QuantizeLinear (a, t, z)  y = Cast <to = 7> (b) }",
    ] {
        assert_eq!(requantized(17, body), 1, "{body}");
    }
}

#[test]
fn quantizing_otherwise_undoes_nothing() {
    for body in [
        "g (uint8[n] q) => (y) <float s = {0.1}, float t = {0.2}, uint8 z = {3}> { a = DequantizeLinear (q, s, z)  b = QuantizeLinear (a, t, z)  y = Cast <to = 7> (b) }",
        "g (uint8[n] q) => (y) <float s = {0.1}, uint8 z = {3}, uint8 w = {4}> { a = DequantizeLinear (q, s, z)  b = QuantizeLinear (a, s, w)  y = Cast <to = 7> (b) }",
        // Without a zero point the result is unsigned.
        "g (int8[n] q) => (y) <float s = {0.1}> { a = DequantizeLinear (q, s)  b = QuantizeLinear (a, s)  y = Cast <to = 7> (b) }",
        "g (int8[2,2] q) => (y) <float[2] s = {0.1,2}, int8[2] z = {3,-4}> { a = DequantizeLinear <axis = 0> (q, s, z)  b = QuantizeLinear <axis = 1> (a, s, z)  y = Cast <to = 7> (b) }",
        "g (uint8[n] q) => (y) <float s = {0}, uint8 z = {3}> { a = DequantizeLinear (q, s, z)  b = QuantizeLinear (a, s, z)  y = Cast <to = 7> (b) }",
        "g (uint8[n] q, float s) => (y) <uint8 z = {3}> { a = DequantizeLinear (q, s, z)  b = QuantizeLinear (a, s, z)  y = Cast <to = 7> (b) }",
    ] {
        assert_eq!(requantized(17, body), 0, "{body}");
    }
}

// ---- all of them -------------------------------------------------------------------------------------------------------

/// What only holds up to rounding is left out on demand.
#[test]
fn exact_folding_leaves_weights_alone() {
    let source = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n,1,h] x) => (y) <float[2,1,1] k = {1,2}, float s = {2}> { a = Conv (x, k)  y = Mul (a, s) }";
    let model = folded(source, &Options { exact: true, ..Options::default() });
    assert_eq!(model.graph(model.main()).node_count(), 2);
    let skip = ["affine-after-weights", "factor-upstream"].map(String::from).to_vec();
    let model = folded(source, &Options { skip, ..Options::default() });
    assert_eq!(model.graph(model.main()).node_count(), 2);
}

/// What an operator of a later operator set does is not known.
#[test]
fn models_newer_than_the_program_stay() {
    let source = "<ir_version: 8, opset_import: [\"\" : 1000]> g (float[n,1,h] x) => (y) <float[2,1,1] k = {1,2}, float s = {2}> { a = Conv (x, k)  y = Mul (a, s) }";
    let mut document = Document::of(text::parse(source).expect("it parses"));
    let report = document.fold(&Options::default()).expect("it folds");
    assert_eq!(report.fired.values().sum::<usize>(), 0);
}

/// Four parameters that many normalizations share are stored once; a bias for each of them would be more.
#[test]
fn a_model_does_not_grow() {
    let ones = ["1"; 64].join(",");
    let body = format!(
        "g (float[n,1,h] x, float[n,64] w) => (y, z) <float[64,1,1] k = {{{ones}}}, float[64] p = {{{ones}}}> {{
        a = Conv (x, k)  y = BatchNormalization (a, p, p, p, p)  z = BatchNormalization (w, p, p, p, p) }}"
    );
    assert_eq!(fold("affine-after-weights", 17, &body).1, 0);
}

/// However long a chain is, it is folded in time proportional to its length and without recursion.
#[test]
fn a_long_chain_of_factors() {
    let mut body = String::from("g (float[n] x) => (y) <float up = {2}, float down = {0.5}> { v0 = Relu (x) ");
    for i in 0..4000 {
        let factor = if i % 2 == 0 { "up" } else { "down" };
        body.push_str(&format!("v{} = Mul (v{i}, {factor}) ", i + 1));
    }
    body.push_str("y = Neg (v4000) }");
    let (model, fired) = fold("constant-chain", 17, &body);
    assert_eq!(fired, 3999);
    assert_eq!(model.graph(model.main()).node_count(), 2);
}

// ---- normalizations without parameters ---------------------------------------------------------------------------------

macro_rules! normalized {
    ($tail:literal) => {
        concat!(
            "<float two = {2}, float e = {1e-5}, float[4] g = {1,2,3,4}> { m = ReduceMean <axes = [-1]> (x)  d = Sub (x, m)  p = Pow (d, two)
            v = ReduceMean <axes = [-1]> (p)  a = Add (v, e)  s = Sqrt (a)  n = Div (d, s) ", $tail)
    };
}

fuses! {
    a_normalization_of_rows: "bare-normalization", 13, concat!("g (float[b,3,4] x) => (y)", normalized!("y = Relu (n) }"));
    a_normalization_of_the_rows_of_a_matrix: "bare-normalization", 13, concat!("g (float[b,4] x) => (y)", normalized!("y = Relu (n) }"));
    a_normalization_of_rows_of_images: "bare-normalization", 11, concat!("g (float[b,2,3,4] x) => (y)", normalized!("y = Relu (n) }"));
    a_normalization_without_parameters: "bare-normalization", 17, concat!("g (float[b,s,4] x) => (y)", normalized!("y = Relu (n) }"));
}

keeps! {
    a_normalization_with_parameters: "bare-normalization", 13, concat!("g (float[b,3,4] x) => (y)", normalized!("y = Mul (n, g) }"));
    a_normalization_with_parameters_of_its_own_operator: "bare-normalization", 17, concat!("g (float[b,3,4] x) => (y)", normalized!("y = Mul (n, g) }"));
    a_normalization_of_rows_nobody_counts: "bare-normalization", 13, concat!("g (float[b,s,4] x) => (y)", normalized!("y = Relu (n) }"));
    a_normalization_whose_deviation_is_read: "bare-normalization", 13, concat!("g (float[b,3,4] x) => (y, s)", normalized!("y = Relu (n) }"));
}
