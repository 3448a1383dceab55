"""Operators as earlier versions have them, and sequences."""
import numpy as np

from .cases import INTEGERS, REAL, Case, axis, family, ints, maybe, pick, shape, smooth, values

OLDER, older = family()
SEQUENCES, sequence = family()
SLACK = {"ulps": 16, "absolute": 64, "relative_to_all": True}


@older
def slice_1(rng):
    dims = shape(rng, 1, 3, empty=0)
    axes = [int(a) for a in rng.permutation(len(dims))[: rng.integers(1, len(dims) + 1)]]
    attributes = {"axes": axes, "starts": [int(rng.integers(-dims[a] - 1, dims[a] + 2)) for a in axes], "ends": [int(rng.integers(-dims[a] - 1, dims[a] + 2)) for a in axes]}
    return Case("Slice", [values(rng, np.float32, dims)], attributes, 9)


@older
def attributes_for_operands(rng):
    dims = shape(rng, 2, 4, empty=0)
    x = values(rng, pick(rng, [np.float32, np.float64]), dims, special=0)
    at = axis(rng, len(dims))
    operator = pick(rng, ["Unsqueeze", "Squeeze", "Split", "Pad", "TopK", "Clip", "Dropout", "Upsample", "Pow"])
    if operator == "Unsqueeze":
        return Case(operator, [x], {"axes": [0, len(dims)]}, 11)
    if operator == "Squeeze":
        return Case(operator, [x.reshape(1, *dims)], {"axes": [0]}, 11)
    if operator == "Split":
        sizes = [int(n) for n in rng.integers(1, 4, int(rng.integers(1, 4)))]
        dims[at] = sum(sizes)
        return Case(operator, [values(rng, np.float32, dims)], {"axis": at, "split": sizes}, 11, outputs=len(sizes))
    if operator == "Pad":
        return Case(operator, [x], {"pads": rng.integers(0, 3, 2 * len(dims)).tolist(), "value": maybe(rng, 1.5)}, 10)
    if operator == "TopK":
        at %= len(dims)
        k = int(rng.integers(1, dims[at] + 1))
        return Case(operator, [x.astype(np.float32)], {"axis": at, "k": k}, 9, outputs=2)
    if operator == "Clip":
        return Case(operator, [x.astype(np.float32)], {"min": maybe(rng, -0.5), "max": maybe(rng, 0.5)}, 10)
    if operator == "Dropout":
        return Case(operator, [x], {}, pick(rng, [7, 10, 12, 13]))
    if operator == "Upsample":
        return Case(operator, [smooth(rng, np.float32, [1, 1, 2, 3])], {"scales": [1.0, 1.0, 2.0, pick(rng, [1.0, 3.0])], "mode": maybe(rng, pick(rng, ["nearest", "linear"]))}, 7, **SLACK)
    return Case(operator, [np.abs(x) + 1, smooth(rng, x.dtype, dims)], {}, 7, ulps=4)


@older
def flattened(rng):
    dims = shape(rng, 2, 4, empty=0)
    operator = pick(rng, ["Softmax", "LogSoftmax", "Hardmax", "Flatten"])
    return Case(operator, [smooth(rng, np.float32, dims, scale=3.0)], {"axis": maybe(rng, int(rng.integers(len(dims))))}, pick(rng, [7, 9, 10]), **SLACK)


@older
def products(rng):
    m, k, n = (int(d) for d in rng.integers(1, 5, 3))
    c = smooth(rng, np.float32, pick(rng, [[m, n], [n], [1], [m, 1], []]))
    return Case("Gemm", [smooth(rng, np.float32, [m, k]), smooth(rng, np.float32, [k, n]), c], {"alpha": maybe(rng, 0.5), "beta": maybe(rng, 2.0)}, pick(rng, [7, 9]), **SLACK)


@older
def batch(rng):
    dims = shape(rng, 2, 4, empty=0)
    scale, bias, mean, variance = (smooth(rng, np.float32, [dims[1]]) for _ in range(4))
    return Case("BatchNormalization", [smooth(rng, np.float32, dims), scale, bias, mean, np.abs(variance)], {"epsilon": maybe(rng, 1e-3)}, pick(rng, [7, 9, 14]), **SLACK)


@older
def pool(rng):
    dims, kernel = [int(d) for d in rng.integers(3, 8, 2)], [int(k) for k in rng.integers(1, 4, 2)]
    attributes = {"kernel_shape": kernel, "strides": maybe(rng, rng.integers(1, 3, 2).tolist()), "pads": maybe(rng, [int(rng.integers(0, (k + 1) // 2)) for k in kernel * 2])}
    operator, opset = pick(rng, [("MaxPool", 8), ("MaxPool", 10), ("AveragePool", 7), ("AveragePool", 10), ("LpPool", 2)])
    if opset == 10:
        attributes["ceil_mode"] = maybe(rng, 1)
    return Case(operator, [smooth(rng, np.float32, [1, 2, *dims])], attributes, max(opset, 7), **SLACK)


@older
def reduce(rng):
    operator = "Reduce" + pick(rng, ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSumExp", "SumSquare"])
    dims = shape(rng, 1, 4, empty=0)
    axes = sorted({axis(rng, len(dims)) % len(dims) for _ in range(2)})
    return Case(operator, [smooth(rng, np.float32, dims)], {"axes": maybe(rng, axes), "keepdims": maybe(rng, int(rng.integers(2)))}, pick(rng, [7, 10, 12]), **SLACK)


@older
def scatter(rng):
    dims = shape(rng, 1, 3, empty=0)
    at = axis(rng, len(dims)) % len(dims)
    own = [int(rng.integers(1, d + 1)) for d in dims]
    where = np.apply_along_axis(lambda line: rng.permutation(dims[at])[: line.size], at, np.zeros(own, np.int64))
    x = values(rng, pick(rng, REAL + INTEGERS), dims)
    return Case("Scatter", [x, where, values(rng, x.dtype, own)], {"axis": at}, 9)


@sequence
def one_of(rng):
    dims, dtype = shape(rng, 1, 3, empty=0), pick(rng, [np.float32, np.int64, np.bool_])
    items = [values(rng, dtype, dims) for _ in range(rng.integers(1, 5))]
    place = np.array(rng.integers(-len(items), len(items)), pick(rng, [np.int64, np.int32]))
    operator = pick(rng, ["SequenceAt", "SequenceLength", "ConcatFromSequence"])
    if operator == "ConcatFromSequence":
        fresh = int(rng.integers(2))
        return Case(operator, [items], {"axis": axis(rng, len(dims) + fresh), "new_axis": fresh}, 11)
    return Case(operator, [items, place] if operator == "SequenceAt" else [items], {}, 11)
