"""Operators that move elements, and those that make constants."""
import numpy as np

from .cases import INTEGERS, REAL, Case, axis, family, ints, maybe, pick, shape, smooth, values

MOVEMENT, movement = family()
INDEXING, indexing = family()
CONSTANTS, constants = family()
ANY = REAL + INTEGERS + [np.bool_, object]


def any_values(rng, dims, dtypes=ANY):
    return values(rng, pick(rng, dtypes), dims)


@movement
def transpose(rng):
    dims = shape(rng, 0, 5)
    return Case("Transpose", [any_values(rng, dims)], {"perm": maybe(rng, rng.permutation(len(dims)).tolist(), 0.8) or None}, 21)


@movement
def slice_(rng):
    dims = shape(rng, 1, 4)
    axes = rng.permutation(len(dims))[: rng.integers(1, len(dims) + 1)]
    starts = [int(rng.integers(-dims[a] - 2, dims[a] + 3)) for a in axes]
    ends = [int(rng.integers(-dims[a] - 2, dims[a] + 3)) for a in axes]
    steps = [int(pick(rng, [1, 1, 2, 3, -1, -2])) for _ in axes]
    names = [int(a) - len(dims) if rng.random() < 0.3 else int(a) for a in axes]
    kind = pick(rng, [np.int64, np.int32])
    return Case("Slice", [any_values(rng, dims), *(np.array(x, kind) for x in (starts, ends, names, steps))], {}, 13)


@movement
def concat(rng):
    dims, dtype = shape(rng, 1, 4), pick(rng, ANY)
    at = axis(rng, len(dims))
    parts = []
    for _ in range(rng.integers(1, 5)):
        own = list(dims)
        own[at] = int(rng.integers(0, 4))
        parts.append(values(rng, dtype, own))
    return Case("Concat", parts, {"axis": at}, 13)


@movement
def split(rng):
    dims = shape(rng, 1, 3)
    at = axis(rng, len(dims))
    sizes = [int(n) for n in rng.integers(0, 4, rng.integers(1, 4))]
    dims[at] = sum(sizes)
    return Case("Split", [any_values(rng, dims), ints(*sizes)], {"axis": at}, 13, outputs=len(sizes))


@movement
def reshape(rng):
    dims = shape(rng, 0, 4)
    count = int(np.prod(dims))
    target = [count] if rng.random() < 0.3 else rng.permutation(dims).tolist()
    if target and count and rng.random() < 0.5:
        target[rng.integers(len(target))] = -1
    return Case("Reshape", [any_values(rng, dims), ints(*target)], {"allowzero": 1 if 0 in dims else None}, 14)


@movement
def expand(rng):
    dims = shape(rng, 0, 4)
    target = [int(pick(rng, [1, d, d])) if d != 1 else int(rng.integers(1, 4)) for d in dims]
    return Case("Expand", [any_values(rng, dims), ints(*([2] * int(rng.integers(2)) + target))], {}, 13)


@movement
def tile(rng):
    dims = shape(rng, 1, 4)
    return Case("Tile", [any_values(rng, dims), rng.integers(0, 4, len(dims))], {}, 13)


@movement
def pad(rng):
    dims = shape(rng, 1, 4, empty=0)
    mode = pick(rng, ["constant", "edge", "reflect", "wrap"])
    low = -1 if mode == "constant" else 0
    pads = [int(rng.integers(low, 3)) for _ in range(2) for _ in dims]
    if mode in ("reflect", "wrap"):
        pads = [min(p, dims[i % len(dims)] - 1) for i, p in enumerate(pads)]
    pads = [p if dims[i % len(dims)] > 1 else max(p, 0) for i, p in enumerate(pads)]
    x = any_values(rng, dims, REAL + [np.int8, np.uint8, np.int32, np.int64, np.uint32, np.uint64, np.bool_])
    fill = maybe(rng, values(rng, x.dtype, []))
    return Case("Pad", [x, ints(*pads), fill if mode == "constant" else None], {"mode": mode}, 19)


@movement
def blocks(rng):
    size, channels = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    dims = [int(d) for d in rng.integers(1, 4, 4)]
    x_type = pick(rng, [np.float32, np.float64, np.uint8])
    if rng.random() < 0.5:
        dims[1] = channels * size * size
        return Case("DepthToSpace", [values(rng, x_type, dims)], {"blocksize": size, "mode": maybe(rng, pick(rng, ["DCR", "CRD"]))}, 13)
    dims[2:] = [dims[2] * size, dims[3] * size]
    return Case("SpaceToDepth", [values(rng, x_type, dims)], {"blocksize": size}, 13)


@movement
def squeeze(rng):
    dims = shape(rng, 1, 4)
    if rng.random() < 0.5:
        axes = [i for i in range(len(dims)) if rng.random() < 0.5]
        for i in axes:
            dims[i] = 1
        given = ints(*axes) if axes else None
        if given is None and not any(d == 1 for d in dims):
            return Case("Flatten", [any_values(rng, dims)], {"axis": axis(rng, len(dims))}, 13)
        return Case("Squeeze", [any_values(rng, dims), given], {}, 13)
    rank = len(dims) + 2
    axes = rng.choice(rank, 2, replace=False) - (rank if rng.random() < 0.5 else 0)
    return Case("Unsqueeze", [any_values(rng, dims), axes], {}, 13)


@movement
def reverse_sequence(rng):
    dims = shape(rng, 2, 4, empty=0)
    time, batch = pick(rng, [(0, 1), (1, 0)])
    return Case("ReverseSequence", [any_values(rng, dims), rng.integers(1, dims[time] + 1, dims[batch])], {"time_axis": time, "batch_axis": batch}, 10)


@movement
def trilu(rng):
    dims = shape(rng, 2, 4)
    return Case("Trilu", [any_values(rng, dims, [np.float32, np.float64, np.int64, np.bool_]), maybe(rng, np.array(rng.integers(-6, 7)))], {"upper": maybe(rng, int(rng.integers(2)))}, 14)


@movement
def cumulate(rng):
    dims = shape(rng, 1, 4)
    x = values(rng, pick(rng, [np.float32, np.float64, np.int32, np.int64]), dims, special=0)
    attributes = {"exclusive": maybe(rng, int(rng.integers(2))), "reverse": maybe(rng, int(rng.integers(2)))}
    return Case("CumSum", [x, np.array(axis(rng, len(dims)), pick(rng, [np.int32, np.int64]))], attributes, 14, absolute=4, relative_to_all=True)


@movement
def center(rng):
    dims = shape(rng, 1, 4)
    axes = [int(a) for a in rng.permutation(len(dims))[: rng.integers(1, len(dims) + 1)]]
    return Case("CenterCropPad", [values(rng, pick(rng, [np.float32, np.int64]), dims), rng.integers(1, 8, len(axes))], {"axes": axes}, 18)


@movement
def columns(rng):
    image, block = [int(d) for d in rng.integers(3, 7, 2)], [int(d) for d in rng.integers(1, 4, 2)]
    strides, dilations, pads = rng.integers(1, 3, 2), rng.integers(1, 3, 2), rng.integers(0, 2, 4)
    counts = [(image[i] + pads[i] + pads[i + 2] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(2)]
    if min(counts) < 1:
        return columns(rng)
    x = smooth(rng, np.float32, [int(rng.integers(1, 3)), int(rng.integers(1, 3)) * block[0] * block[1], int(counts[0] * counts[1])])
    return Case("Col2Im", [x, ints(*image), ints(*block)], {"strides": strides.tolist(), "dilations": dilations.tolist(), "pads": pads.tolist()}, 18, absolute=4, relative_to_all=True)


def indices(rng, size, dims):
    return rng.integers(-size, size, dims).astype(pick(rng, [np.int32, np.int64]))


@indexing
def gather(rng):
    dims = shape(rng, 1, 4, empty=0)
    at = axis(rng, len(dims))
    # ONNX Runtime loses all strings of a row except the first.
    dtypes = ANY if len(dims) == 1 else [dtype for dtype in ANY if dtype is not object]
    return Case("Gather", [any_values(rng, dims, dtypes), indices(rng, dims[at], shape(rng, 0, 3))], {"axis": maybe(rng, at) if at % len(dims) == 0 else at}, 13)


@indexing
def gather_elements(rng):
    dims = shape(rng, 1, 4, empty=0)
    at = axis(rng, len(dims))
    own = [int(rng.integers(0 if i == at % len(dims) else 1, d + 1)) for i, d in enumerate(dims)]
    return Case("GatherElements", [any_values(rng, dims), indices(rng, dims[at], own)], {"axis": at}, 13)


def tuples(rng, dims, batch, dtype=np.int64):
    """Indices of as many dims as their last one says."""
    depth = int(rng.integers(1, len(dims) - batch + 1))
    outer = dims[:batch] + shape(rng, 0 if batch else 1, 2)
    columns = [rng.integers(-d, d, outer) for d in dims[batch : batch + depth]]
    return np.stack(columns, -1).astype(dtype), depth


@indexing
def gather_nd(rng):
    dims = shape(rng, 1, 4, empty=0)
    batch = int(rng.integers(len(dims))) if rng.random() < 0.4 else 0
    return Case("GatherND", [any_values(rng, dims), tuples(rng, dims, batch)[0]], {"batch_dims": batch}, 13)


@indexing
def scatter_elements(rng):
    dims = shape(rng, 1, 3, empty=0)
    at = axis(rng, len(dims))
    own = [int(rng.integers(0, d + 1)) for d in dims]
    how = maybe(rng, pick(rng, ["add", "mul", "max", "min"]))
    x = values(rng, pick(rng, [np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8] if how else ANY), dims, special=0 if how else 0.1)
    where = rng.integers(-dims[at], dims[at], own)
    if how is None and where.size:
        # No index occurs twice, because the result would be undefined.
        where = np.apply_along_axis(lambda line: rng.permutation(dims[at])[: line.size], at, where)
    return Case("ScatterElements", [x, where.astype(np.int64), values(rng, x.dtype, own, special=0)], {"axis": at, "reduction": how}, 18, ulps=2, absolute=2)


@indexing
def scatter_nd(rng):
    dims = shape(rng, 1, 3, empty=0)
    how = maybe(rng, pick(rng, ["add", "mul", "max", "min"]))
    where, depth = tuples(rng, dims, 0)
    if how is None:
        flat = np.unique((where % np.array(dims[:depth])).reshape(-1, depth), axis=0)
        where = rng.permutation(flat)
    x = values(rng, pick(rng, [np.float32, np.float64, np.int32, np.int64] if how else ANY), dims, special=0 if how else 0.1)
    return Case("ScatterND", [x, where, values(rng, x.dtype, list(where.shape[:-1]) + dims[depth:], special=0)], {"reduction": how}, 18, ulps=2, absolute=2)


@indexing
def nonzero(rng):
    x = any_values(rng, shape(rng, 0 if rng.random() < 0.1 else 1, 4), [np.float32, np.int32, np.int64, np.uint8, np.bool_])
    return Case("NonZero", [x * (rng.random(x.shape) < 0.5).astype(x.dtype)], {}, 13)


@indexing
def compress(rng):
    dims = shape(rng, 1, 3)
    at = maybe(rng, axis(rng, len(dims)))
    count = dims[at] if at is not None else int(np.prod(dims))
    return Case("Compress", [any_values(rng, dims), values(rng, np.bool_, [int(rng.integers(0, count + 1))])], {"axis": at}, 11)


@indexing
def unique(rng):
    dims = shape(rng, 1, 3)
    dtype = pick(rng, [np.float32, np.float64, np.int64, np.int8, object])
    x = values(rng, dtype, dims, special=0) if dtype is object else rng.integers(-2, 3, dims).astype(dtype)
    return Case("Unique", [x], {"axis": maybe(rng, axis(rng, len(dims))), "sorted": maybe(rng, int(rng.integers(2)))}, 11, outputs=4)


@indexing
def one_hot(rng):
    kind, depth = pick(rng, [np.int64, np.float32, np.int32]), int(rng.integers(1, 6))
    places = rng.integers(-depth - 1, depth + 2, shape(rng, 1, 3)).astype(kind)
    pair = values(rng, pick(rng, [np.float32, np.int64]), [2], special=0)
    return Case("OneHot", [places, np.array(depth, kind), pair], {"axis": maybe(rng, axis(rng, places.ndim + 1))}, 11, only_runtime=True)


@indexing
def topk(rng):
    dims = shape(rng, 1, 3, empty=0)
    at = axis(rng, len(dims))
    x = values(rng, pick(rng, [np.float32, np.float64, np.int32, np.int64]), dims, special=0)
    x = rng.integers(-3, 4, dims).astype(x.dtype) if rng.random() < 0.5 else x
    return Case("TopK", [x, ints(int(rng.integers(0, dims[at] + 1)))], {"axis": at, "largest": maybe(rng, int(rng.integers(2)))}, 11, outputs=2)


@indexing
def arg(rng):
    dims = shape(rng, 1, 4, empty=0)
    x = rng.integers(0, 4, dims).astype(pick(rng, [np.float32, np.float64, np.int32, np.int8, np.uint8]))
    return Case(pick(rng, ["ArgMax", "ArgMin"]), [x], {"axis": maybe(rng, axis(rng, len(dims))), "keepdims": maybe(rng, int(rng.integers(2))), "select_last_index": maybe(rng, int(rng.integers(2)))}, 13)


@constants
def range_(rng):
    dtype = pick(rng, [np.float32, np.float64, np.int16, np.int32, np.int64])
    delta = values(rng, dtype, [], special=0, scale=2.0)
    delta = np.where(np.abs(delta) < 0.1, 1, delta).astype(dtype)
    # ONNX Runtime accumulates, the standard multiplies.
    return Case("Range", [values(rng, dtype, [], special=0, scale=9.0), values(rng, dtype, [], special=0, scale=9.0), delta], {}, 11, ulps=1, absolute=256, relative_to_all=True)


@constants
def eye(rng):
    return Case("EyeLike", [values(rng, pick(rng, [np.float32, np.int64]), rng.integers(1, 6, 2))], {"k": maybe(rng, int(rng.integers(-5, 6))), "dtype": maybe(rng, pick(rng, [1, 7, 11, 6]))}, 9)


@constants
def filled(rng):
    from onnx import numpy_helper

    value = numpy_helper.from_array(values(rng, pick(rng, REAL + INTEGERS + [np.bool_]), [1]))
    return Case("ConstantOfShape", [ints(*shape(rng))], {"value": maybe(rng, value)}, 9)


@constants
def sizes(rng):
    x = any_values(rng, shape(rng))
    if rng.random() < 0.5:
        return Case("Size", [x], {}, 13)
    return Case("Shape", [x], {"start": maybe(rng, int(rng.integers(-5, 6))), "end": maybe(rng, int(rng.integers(-5, 6)))}, 15)
