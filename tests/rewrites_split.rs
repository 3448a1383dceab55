//! Work on the parts of a whole that is done to the whole, on models in text form.

#[macro_use]
mod support;

fuses! {
    queries_keys_and_values: "parallel-weights", 17, "g (float[n,s,2] x) => (y)
        <float[2,2] q = {1,2,3,4}, float[2,2] k = {5,6,7,8}, float[2,2] v = {9,10,11,12}, int64[4] heads = {0,0,2,1}> {
        a = MatMul (x, q)  b = MatMul (x, k)  c = MatMul (x, v)
        d = Reshape (a, heads)  e = Reshape (b, heads)  f = Reshape (c, heads)
        g = Transpose <perm = [0,2,3,1]> (e)  h = Transpose <perm = [0,2,1,3]> (d)  i = Transpose <perm = [0,2,1,3]> (f)
        j = MatMul (h, g)  l = Softmax (j)  y = MatMul (l, i) }";
    fewer_keys_than_queries_with_terms: "split-behind", 12, "g (float[n,s,2] x) => (y, z)
        <float[2,4] q = {1,2,3,4,5,6,7,8}, float[2,2] k = {5,6,7,8}, float[4] b = {1,2,3,4}, float[2] c = {5,6}, int64[4] heads = {0,0,-1,2}> {
        d = MatMul (x, q)  e = MatMul (x, k)  f = Add (d, b)  g = Add (e, c)  h = Reshape (f, heads)  i = Reshape (g, heads)
        y = Softmax (h)  z = Softmax (i) }";
    convolutions_with_gates: "parallel-weights", 13, "g (float[n,1,h] x) => (y, z)
        <float[2,1,1] v = {1,2}, float[1,1,1] w = {3}, float[2] b = {4,5}> {
        a = Conv (x, v, b)  c = Conv (x, w)  d = Sigmoid (a)  e = Mul (a, d)  f = Sigmoid (c)  g = Mul (c, f)  y = MaxPool <kernel_shape = [1]> (e)  z = MaxPool <kernel_shape = [1]> (g) }";
    three_rows_of_products: "parallel-weights", 17, "g (float[n,2] x) => (y, z, w)
        <float[2,2] a = {1,2,3,4}, float[1,2] b = {5,6}, float[3,2] c = {1,2,3,4,5,6}, float[2] t = {1,2}> {
        d = Gemm <transB = 1> (x, a, t)  e = Gemm <transB = 1> (x, b)  f = Gemm <transB = 1> (x, c)  y = Softmax (d)  z = Abs (e)  w = Exp (f) }";
    parts_that_are_turned_alike: "split-behind", 13, "g (float[n,6,2] x, float[n,1,2] c) => (y, z)
        { a, b = Split <axis = 1> (x)  d = Mul (a, c)  e = Mul (b, c)  f = Relu (d)  g = Relu (e)  h = Transpose <perm = [1,0,2]> (f)  i = Transpose <perm = [1,0,2]> (g)  y = Softmax (h)  z = Exp (i) }";
    parts_that_get_an_axis: "split-behind", 13, "g (float[n,6] x) => (y, z) <int64[1] one = {1}, int64[2] s = {2,4}>
        { a, b = Split <axis = 1> (x, s)  c = Reshape (a, t)  d = Reshape (b, t)  y = Softmax (c)  z = Exp (d)  t = Constant <value_ints = [0,-1,2]> () }";
    a_function_of_parts: "split-behind-function", 13, "g (float[n,6] x) => (y, z) { a, b = Split <axis = 1> (x)  c = Tanh (a)  d = Tanh (b)  y = Softmax (c)  z = Exp (d) }";
}

keeps! {
    two_products_of_one_operand: "parallel-weights", 17, "g (float[n,2] x) => (y, z)
        <float[2,2] a = {1,2,3,4}, float[2,1] b = {5,6}> { c = MatMul (x, a)  d = MatMul (x, b)  y = Softmax (c)  z = Abs (d) }";
    products_that_are_outputs: "parallel-weights", 17, "g (float[n,2] x) => (y, z, w)
        <float[2,2] a = {1,2,3,4}, float[2,1] b = {5,6}, float[2,3] c = {1,2,3,4,5,6}> { y = MatMul (x, a)  z = MatMul (x, b)  w = MatMul (x, c) }";
    products_with_shared_weights: "parallel-weights", 17, "g (float[n,2] x, float[n,2] u) => (y, z, w)
        <float[2,2] a = {1,2,3,4}, float[2,2] b = {5,6,7,8}> { c = MatMul (x, a)  d = MatMul (x, b)  e = MatMul (u, a)  f = MatMul (u, b)  y = Add (c, f)  z = Abs (d)  w = Exp (e) }";
    parts_with_other_operands_along_the_axis: "split-behind", 13, "g (float[n,6] x, float[n,3] c) => (y, z)
        { a, b = Split <axis = 1> (x)  d = Mul (a, c)  e = Mul (b, c)  y = Softmax (d)  z = Exp (e) }";
    parts_read_twice: "split-behind", 13, "g (float[n,6] x) => (y, z)
        { a, b = Split <axis = 1> (x)  c = Relu (a)  d = Relu (b)  e = Softmax (a)  y = Add (c, e)  z = Exp (d) }";
    parts_turned_differently: "split-behind", 13, "g (float[n,6,2] x) => (y, z)
        { a, b = Split <axis = 1> (x)  c = Transpose <perm = [1,0,2]> (a)  d = Transpose <perm = [2,1,0]> (b)  y = Softmax (c)  z = Exp (d) }";
    parts_reshaped_across_the_axis: "split-behind", 13, "g (float[4,6] x) => (y, z) <int64[2] s = {3,4}>
        { a, b = Split <axis = 1> (x)  c = Reshape (a, s)  d = Reshape (b, s)  y = Softmax (c)  z = Exp (d) }";
}
