"""The idioms by which exporters and modules slice, move and insert: several nodes each, whose sizes depend on each other.

`random_graphs.py` grows them like those of `random_nodes.py`.
"""
import numpy as np
from onnx import TensorProto

from random_graphs import FLOAT, INT64
from random_nodes import template, tensor

OPEN = 2**63 - 1


def sizes_of(g, x):
    return g.add("Shape", [x])


def size_of(g, x, axis):
    """A dim of a value, as a vector of one."""
    return g.add("Gather", [sizes_of(g, x), g.ints(axis)], axis=0)


def cut(g, x, start, end, axis, step=None):
    return g.add("Slice", [x, start, end, g.ints(axis)] + ([g.ints(step)] if step else []))


def some(g):
    """A value with an axis and its size."""
    x = tensor(g, 1)
    v = g.values[x]
    axis = g.rng.randrange(v.ndim)
    return x, axis, v.shape[axis]


@template(2)
def narrow(g):
    """`x[begin : begin + size]`."""
    if g.opset < 10:
        return None
    x, axis, n = some(g)
    begin = g.vector([g.rng.randint(0, n)])
    if g.chance(0.3):
        begin = g.flat(g.dtype(INT64, accept=lambda v: v.size == 1 and v.ndim < 2))
    length = g.vector([g.rng.randint(0, n)])
    return cut(g, x, begin, g.add("Add", [begin, length]), axis)


@template(2)
def tail(g):
    """`x[-k:]`, `x[:-k]` and `x[n - k:]`, the k being computed."""
    if g.opset < 10:
        return None
    x, axis, n = some(g)
    count = g.vector([g.rng.randint(0, n)])
    back = g.add("Neg", [count]) if g.chance(0.5) else g.add("Sub", [size_of(g, x, axis), count])
    if g.chance(0.5):
        return cut(g, x, back, g.ints(OPEN), axis)
    return cut(g, x, g.ints(0), back, axis)


@template(2)
def nested_cuts(g):
    """A slice of a slice, of either sign."""
    if g.opset < 10:
        return None
    x, axis, n = some(g)
    for _ in range(g.rng.choice([2, 2, 3])):
        start = g.rng.choice([0, 1, 2, -1, -2, n // 2, n])
        end = g.rng.choice([OPEN, n, n - 1, -1, n // 2, 3])
        step = g.rng.choice([1, 1, 2, -1, 3])
        if step < 0:
            start, end = g.rng.choice([-1, n, OPEN, n - 1]), g.rng.choice([-2**63, -n - 1, 0, 1])
        x = cut(g, x, g.ints(start), g.ints(end) if g.chance(0.6) or abs(end) > 99 else g.vector([end]), axis, step)
    return x


@template(2)
def rolled(g):
    if g.opset < 10:
        return None
    x, axis, n = some(g)
    by = g.vector([g.rng.randint(0, n)]) if g.chance(0.5) else g.ints(g.rng.choice([1, -1, 2, -2]))
    return g.add("Concat", [cut(g, x, by, g.ints(OPEN), axis), cut(g, x, g.ints(0), by, axis)], axis=axis)


@template(2)
def padded_and_cut(g):
    """Padded to a multiple, taken apart into windows, put together, cut back."""
    if g.opset < 11:
        return None
    x = g.dtype(FLOAT, least=1)
    v = g.values[x]
    axis, k = g.rng.randrange(v.ndim), g.rng.choice([2, 3, 4])
    n = size_of(g, x, axis)
    window = g.ints(k)
    gap = g.add("Mod", [g.add("Sub", [window, g.add("Mod", [n, window])]), window])
    if g.chance(0.3):
        gap = g.add("Sub", [g.add("Mul", [g.add("Div", [g.add("Add", [n, g.ints(k - 1)]), window]), window]), n])
    pads = [g.ints(0)] * (v.ndim + axis) + [gap] + [g.ints(0)] * (v.ndim - axis - 1)
    y = g.add("Pad", [x, g.add("Concat", pads, axis=0)])
    if g.chance(0.7):
        whole = sizes_of(g, y)
        part = lambda a, b: g.add("Slice", [whole, g.ints(a), g.ints(b)])  # noqa: E731
        apart = [part(0, axis)] * (axis > 0) + [g.ints(-1) if g.chance(0.5) else g.add("Div", [part(axis, axis + 1), window]), window]
        y = g.add("Reshape", [y, g.add("Concat", apart + [part(axis + 1, v.ndim)] * (axis + 1 < v.ndim), axis=0)])
        if g.chance(0.5):
            y = g.add("Neg", [y])
        y = g.add("Reshape", [y, whole])
    return cut(g, y, g.ints(0), n, axis)


@template(2)
def counted(g):
    """Slices and comparisons of ranges: positions, masks, diagonals."""
    if g.opset < 11:
        return None
    n = g.scalar(g.rng.randint(0, 6))
    positions = g.add("Range", [g.const(np.array(0)), n, g.const(np.array(1))])
    way = g.rng.randrange(4)
    if way == 0:
        return cut(g, positions, g.vector([g.rng.randint(0, 3)]), g.ints(g.rng.choice([OPEN, -1, 4])), 0, g.rng.choice([1, 2]))
    rows = g.unsqueeze(positions, [1])
    mask = g.add(g.rng.choice(["Less", "Greater"]), [positions, rows])
    if way == 1:
        return mask
    if way == 2:
        return g.add("Mul", [g.add("Cast", [mask], to=TensorProto.FLOAT), g.const(np.array(2, FLOAT))])
    return g.add("Gather", [g.pick(lambda v: v.ndim and v.shape[0] >= g.values[positions].size), positions], axis=0)


@template(1)
def narrow_integers(g):
    """Bounds and indices of 32 bits."""
    if g.opset < 10:
        return None
    x, axis, n = some(g)
    number = lambda value: g.const(np.array([value], np.int32)) if g.chance(0.5) else g.add("Cast", [g.vector([value])], to=TensorProto.INT32)  # noqa: E731
    if g.chance(0.5):
        return g.add("Gather", [x, number(g.rng.randint(0, max(0, n - 1)))], axis=axis)
    start, end = g.rng.randint(-n - 1, n + 1), g.rng.choice([n, -1, 2**31 - 1, g.rng.randint(-n, n)])
    end = g.const(np.array([end], np.int32)) if end > 99 else number(end)
    return g.add("Slice", [x, number(start), end, g.const(np.array([axis], np.int32)), g.const(np.array([g.rng.choice([1, 2, -1])], np.int32))])


@template(1)
def merged_heads(g):
    """`[B, S, h·d]` to `[B, h, S, d]` and back, as attention has it."""
    x = g.dtype(FLOAT, rank=3)
    b, s, d = g.values[x].shape
    heads = g.rng.choice([h for h in (1, 2, 3, 4) if d % h == 0])
    shape = g.add("Concat", [size_of(g, x, 0), size_of(g, x, 1), g.ints(heads), g.ints(d // heads)], axis=0)
    y = g.add("Transpose", [g.add("Reshape", [x, shape])], perm=[0, 2, 1, 3])
    if g.chance(0.5):
        y = g.add("Neg", [y])
    back = g.rng.choice([[0, 0, -1], [0, -1, d]])
    return g.add("Reshape", [g.add("Transpose", [y], perm=[0, 2, 1, 3]), g.ints(*back)])


@template(1)
def repeated_heads(g):
    """Unsqueezed, expanded and merged again: each row several times."""
    if g.opset < 8:
        return None
    x = tensor(g, 2)
    v = g.values[x]
    count = g.rng.randint(1, 3)
    sizes = [g.flat(g.size(d)) for d in v.shape]
    wide = g.add("Expand", [g.unsqueeze(x, [1]), g.add("Concat", [sizes[0], g.ints(count), *sizes[1:]], axis=0)])
    return g.add("Reshape", [wide, g.add("Concat", [g.ints(-1), *sizes[1:]], axis=0)])


@template(2)
def rounded_scale(g):
    """A resize by scales that no float holds exactly."""
    if g.opset < 11:
        return None
    x = g.dtype(FLOAT, least=3, accept=lambda v: v.ndim < 5)
    scales = [1.0, 1.0] + [g.rng.choice([0.7, 2.3, 1 / 3, 0.6, 1.1, 0.1, 2.94, 0.9]) for _ in range(g.values[x].ndim - 2)]
    none = g.const(np.zeros(0, FLOAT)) if g.opset < 13 else ""
    return g.add("Resize", [x, none, g.const(np.array(scales, FLOAT))], mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")


@template(1)
def matrix_of_sizes(g):
    """Sizes that go through a matrix, a transposition or a product."""
    if g.opset < 13:
        return None
    sizes = g.vector([g.rng.randint(1, 4) for _ in range(4)])
    matrix = g.add("Reshape", [sizes, g.ints(2, 2)])
    way = g.rng.randrange(5)
    if way == 0:
        picked = g.add("Reshape", [g.add("Transpose", [matrix]), g.ints(-1)])
    elif way == 1:
        picked = g.add("MatMul", [matrix, g.const(np.array([1, 0], np.int64))])
    elif way == 2:
        picked = g.add("ReduceMax", [matrix, g.ints(0)] if g.opset >= 18 else [matrix], keepdims=0, axes=None if g.opset >= 18 else [0])
    elif way == 3:
        picked = g.add("Reshape", [cut(g, matrix, g.ints(-1), g.ints(-OPEN - 1), 0, -1), g.ints(-1)])
    else:
        picked = g.add("CumSum", [sizes, g.const(np.array(0, np.int64))])
    return g.add("ConstantOfShape", [g.flat(cut(g, picked, g.ints(0), g.ints(2), 0))])


@template(1)
def many_of_one(g):
    """What a long chain of shape arithmetic gives is what the tensor has."""
    x = tensor(g, 1)
    v = g.values[x]
    if g.opset < 13:
        return None
    count = g.add("Size", [x])
    product = g.add("ReduceProd", [sizes_of(g, x)], keepdims=0)
    same = g.add("Equal", [count, product])
    as_wide = g.add("Where", [same, g.const(np.array(-1)), g.const(np.array(1))])
    return g.add("Reshape", [x, g.unsqueeze(as_wide, [0])]) if v.size else same
