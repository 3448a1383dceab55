"""Reductions, softmax and normalizations."""
import numpy as np

from .cases import REAL, Case, axis, family, ints, maybe, pick, shape, smooth, values

REDUCTIONS, reduction = family()
SHARES, share = family()
NORMALIZATIONS, normalization = family()


@reduction
def reduce(rng):
    operator = "Reduce" + pick(rng, ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"])
    dims = shape(rng, 0, 4, empty=0.1 if operator in ("ReduceSum", "ReduceProd") else 0)
    integers = [np.int32, np.int64] if operator not in ("ReduceLogSum", "ReduceLogSumExp", "ReduceL2", "ReduceMean") else []
    small = [np.int8, np.uint8] if operator in ("ReduceMax", "ReduceMin") else []
    dtype = pick(rng, REAL + integers + small)
    x = smooth(rng, dtype, dims, scale=2.0)
    if operator == "ReduceLogSum":
        x = np.abs(x) + np.asarray(0.5).astype(dtype)
    # ONNX Runtime keeps the shape of an empty operand if it reduces non-empty axes.
    whole = 0 in dims
    axes = list(range(len(dims))) if whole else sorted({axis(rng, len(dims)) % len(dims) for _ in range(rng.integers(0, len(dims) + 1))}) if dims else []
    axes = [a - len(dims) if rng.random() < 0.3 and not whole else a for a in axes]
    attributes = {"keepdims": maybe(rng, int(rng.integers(2)))}
    slack = {"ulps": 8, "absolute": 16, "relative_to_all": True} if np.dtype(dtype).kind == "f" else {}
    if rng.random() < 0.3 and operator != "ReduceSum":
        return Case(operator, [x], {**attributes, "axes": axes or None}, 13, **slack)
    attributes["noop_with_empty_axes"] = maybe(rng, int(rng.integers(2)))
    return Case(operator, [x, ints(*axes) if axes or rng.random() < 0.5 else None], attributes, 18, **slack)


@share
def softmax(rng):
    dims = shape(rng, 1, 4)
    opset = pick(rng, [11, 13])
    operator = pick(rng, ["Softmax", "LogSoftmax", "Hardmax"])
    dtype = pick(rng, [np.float32] if operator == "Hardmax" else REAL)
    x = smooth(rng, dtype, dims, scale=3.0)
    if rng.random() < 0.3:
        x = np.where(rng.random(dims) < 0.3, -np.inf, x).astype(dtype)
    return Case(operator, [x], {"axis": maybe(rng, axis(rng, len(dims)))} if opset == 13 or len(dims) > 1 else {"axis": 0}, opset, ulps=16, absolute=8)


@share
def loss(rng):
    n, c, rest = int(rng.integers(1, 4)), int(rng.integers(2, 5)), shape(rng, 0, 2, empty=0)
    labels = rng.integers(0, c, [n, *rest]).astype(pick(rng, [np.int64, np.int32]))
    weight = maybe(rng, np.abs(smooth(rng, np.float32, [c])) + np.float32(0.1))
    attributes = {"reduction": maybe(rng, pick(rng, ["none", "sum", "mean"])), "ignore_index": maybe(rng, int(rng.integers(0, c)), 0.3)}
    x = smooth(rng, np.float32, [n, c, *rest])
    if rng.random() < 0.5:
        return Case("NegativeLogLikelihoodLoss", [x, labels, weight], attributes, 13, ulps=16, absolute=8)
    return Case("SoftmaxCrossEntropyLoss", [x, labels, weight], attributes, 13, ulps=16, absolute=8, outputs=int(rng.integers(1, 3)))


def channels(rng, dtype, count, n=1):
    return [smooth(rng, dtype, [count]) for _ in range(n)]


SLACK = {"ulps": 16, "absolute": 64, "relative_to_all": True}


@normalization
def batch(rng):
    dims, dtype = shape(rng, 2, 5, empty=0), pick(rng, [np.float32, np.float64])
    scale, bias, mean, variance = channels(rng, dtype, dims[1], 4)
    return Case("BatchNormalization", [smooth(rng, dtype, dims), scale, bias, mean, np.abs(variance)], {"epsilon": maybe(rng, 1e-3)}, 15, **SLACK)


@normalization
def instance(rng):
    dims = shape(rng, 3, 5, empty=0)
    dims[-1] += 2
    return Case("InstanceNormalization", [smooth(rng, np.float32, dims), *channels(rng, np.float32, dims[1], 2)], {"epsilon": maybe(rng, 1e-2)}, 6, **SLACK)


@normalization
def layer(rng):
    dims, dtype = shape(rng, 1, 4, empty=0), pick(rng, [np.float32, np.float64])
    dims[-1] += 2
    at = axis(rng, len(dims))
    own = dims[at:] if at < 0 else dims[at:]
    return Case("LayerNormalization", [smooth(rng, dtype, dims), smooth(rng, dtype, own), maybe(rng, smooth(rng, dtype, own))], {"axis": at, "epsilon": maybe(rng, 1e-2)}, 17, outputs=int(rng.integers(1, 4)) if dtype == np.float32 else 1, single=True, **SLACK)


@normalization
def rms(rng):
    dims = shape(rng, 1, 4, empty=0)
    at = axis(rng, len(dims))
    return Case("RMSNormalization", [smooth(rng, np.float32, dims), smooth(rng, np.float32, dims[at:])], {"axis": at, "epsilon": maybe(rng, 1e-2)}, 23, **SLACK)


@normalization
def group(rng):
    groups = int(rng.integers(1, 4))
    dims = [int(rng.integers(1, 3)), groups * int(rng.integers(1, 3)), *rng.integers(2, 5, int(rng.integers(1, 3))).tolist()]
    # ONNX Runtime subtracts squares that are almost equal.
    slack = {**SLACK, "absolute": 4096}
    return Case("GroupNormalization", [smooth(rng, np.float32, dims), *channels(rng, np.float32, dims[1], 2)], {"num_groups": groups, "epsilon": maybe(rng, 1e-2)}, 21, **slack)


@normalization
def local_response(rng):
    dims = shape(rng, 4, 4, empty=0)
    return Case("LRN", [smooth(rng, np.float32, dims)], {"size": int(pick(rng, [1, 3, 5])), "alpha": maybe(rng, 0.5), "beta": maybe(rng, 0.5), "bias": maybe(rng, 2.0)}, 13, **SLACK)


@normalization
def other(rng):
    dims = shape(rng, 1, 4, empty=0)
    if rng.random() < 0.5:
        return Case("LpNormalization", [smooth(rng, pick(rng, [np.float32, np.float64]), dims)], {"axis": axis(rng, len(dims)), "p": maybe(rng, int(rng.integers(1, 3)))}, 1, **SLACK)
    dims = shape(rng, 4, 4, empty=0)
    dims[2] += 2
    return Case("MeanVarianceNormalization", [smooth(rng, np.float32, dims)], {}, 13, **SLACK)
