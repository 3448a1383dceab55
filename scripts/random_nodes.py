"""The templates of `random_graphs.py`, one for each kind of node. A template may fail; its node is then dropped."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from random_graphs import BOOL, DOUBLE, FLOAT, HALF, INT32, INT64, Growth, Rejected, grow, value_type

TEMPLATES, WEIGHTS = [], []


def template(weight):
    def register(function):
        TEMPLATES.append(function)
        WEIGHTS.append(weight)
        return function
    return register


def tensor(g, least=0, rank=None):
    """Any tensor, floats and sizes more often."""
    kind = g.rng.choice([FLOAT, FLOAT, FLOAT, INT64, None])
    return g.pick(lambda v: (kind is None or v.dtype == kind) and v.ndim >= least and (rank is None or v.ndim == rank))


# Shapes and sizes

@template(6)
def shape(g):
    if g.opset < 15 or g.chance(0.4):
        return g.add("Shape", [tensor(g)])
    bound = lambda: g.rng.choice([None, g.rng.randint(-5, 5)])  # noqa: E731
    return g.add("Shape", [tensor(g)], start=bound(), end=bound())


@template(1)
def size(g):
    return g.add("Size", [tensor(g)])


@template(5)
def computed_size(g):
    known = [d for v in g.values.values() if not isinstance(v, list) for d in v.shape]
    g.size(g.rng.choice(known), 3)


@template(5)
def gather(g):
    x = tensor(g, 1)
    v = g.values[x]
    axis = g.axis(v)
    n = v.shape[axis]
    if g.chance(0.25):
        indices = g.dtype(INT64)
    else:
        low = -n if g.opset >= 11 else 0
        indices = g.const(np.array([g.rng.randrange(low, n) for _ in range(3)], np.int64)[:g.rng.randint(0, 3)] if g.chance(0.5)
                          else np.array(g.rng.randrange(low, n), np.int64))
    return g.add("Gather", [x, indices], axis=axis if g.chance(0.9) else None)


@template(2)
def gather_elements(g):
    x = tensor(g, 1)
    v = g.values[x]
    if g.chance(0.3):
        return g.add("GatherElements", [x, g.dtype(INT64, rank=v.ndim)], axis=g.axis(v))
    axis = g.axis(v)
    shape = [g.rng.randint(0, d) for d in v.shape]
    indices = np.array([g.rng.randrange(-v.shape[axis], v.shape[axis]) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)
    return g.add("GatherElements", [x, g.const(indices)], axis=axis)


@template(2)
def gather_nd(g):
    x = tensor(g, 1)
    v = g.values[x]
    if g.chance(0.3):
        return g.add("GatherND", [x, g.dtype(INT64, least=1)])
    batch = g.rng.choice([0, 0, 0, 1]) if g.opset >= 12 and v.ndim > 1 else 0
    depth = g.rng.randint(1, v.ndim - batch)
    rows = g.rng.randint(0, 3)
    lead = [v.shape[0]] if batch else []
    indices = np.array([[g.rng.randrange(-v.shape[batch + i], v.shape[batch + i]) for i in range(depth)]
                        for _ in range(rows * (lead[0] if lead else 1))], np.int64)
    return g.add("GatherND", [x, g.const(indices.reshape(lead + [rows, depth]))], batch_dims=batch or None)


def bound(g, n):
    """A bound of a slice over a dim of this size."""
    return g.rng.choice([0, 1, 2, -1, -2, n, n - 1, -n, n // 2, n + 3, -n - 3, 2**63 - 1, 2**31 - 1, -2**63, -2**31,
                         g.rng.randint(-n - 1, n + 1)])


@template(9)
def slice_(g):
    x = tensor(g, 1)
    v = g.values[x]
    axes = g.axes(v)
    starts = [bound(g, v.shape[a]) for a in axes]
    ends = [bound(g, v.shape[a]) for a in axes]
    if g.opset < 10:
        plain = axes == list(range(len(axes))) and g.chance(0.5)
        return g.add("Slice", [x], starts=starts, ends=ends, axes=None if plain else axes)
    small = lambda values: all(abs(value) < 100 for value in values)  # noqa: E731
    operand = lambda values: g.vector(values) if small(values) and g.chance(0.6) else g.ints(*values)  # noqa: E731
    steps = [g.rng.choice([1, 1, 1, 2, 3, -1, -1, -2, 100, 2**63 - 1, -2**63]) for _ in axes]
    inputs = [x, operand(starts), operand(ends)]
    if g.chance(0.1):
        inputs[g.rng.choice([1, 2])] = g.dtype(INT64, rank=1)
    how = g.rng.random()
    if how < 0.25:
        if len(axes) == v.ndim or axes == list(range(len(axes))):
            return g.add("Slice", inputs)
        return g.add("Slice", inputs + [g.ints(*axes)])
    if how < 0.5:
        return g.add("Slice", inputs + [operand(axes)])
    if how < 0.6 and axes == list(range(len(axes))):
        return g.add("Slice", inputs + ["", operand(steps)])
    steps_of = g.dtype(INT64, rank=1) if g.chance(0.05) else operand(steps)
    return g.add("Slice", inputs + [operand(axes), steps_of])


@template(3)
def half_slice(g):
    """Halves and ends, as rotary embeddings and shifts have them."""
    x = tensor(g, 1)
    v = g.values[x]
    axis = g.axis(v)
    n = v.shape[axis]
    cut = g.rng.choice([n // 2, n // 2, 1, n - 1])
    if g.opset < 10:
        return None
    at = g.vector([cut])
    left = g.add("Slice", [x, g.ints(0), at, g.ints(axis)])
    right = g.add("Slice", [x, at, g.ints(2**63 - 1), g.ints(axis)])
    if g.chance(0.7):
        return g.add("Concat", g.rng.choice([[left, right], [right, left]]), axis=axis)
    return None


@template(6)
def concat(g):
    x = tensor(g, 1)
    v = g.values[x]
    axis = g.axis(v)
    fits = lambda w: w.dtype == v.dtype and w.ndim == v.ndim and all(  # noqa: E731
        a == b or i == axis % v.ndim for i, (a, b) in enumerate(zip(v.shape, w.shape)))
    return g.add("Concat", [x] + [g.pick(fits) for _ in range(g.rng.choice([0, 1, 1, 2]))], axis=axis)


@template(4)
def split(g):
    x = tensor(g, 1)
    v = g.values[x]
    axis = g.axis(v)
    n = v.shape[axis]
    count = g.rng.choice([1, 2, 2, 3, 4])
    if g.chance(0.5):
        return g.add("Split", [x], count, axis=axis, num_outputs=count if g.opset >= 18 else None)
    cuts = sorted(g.rng.randint(0, n) for _ in range(count - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, n])]
    if g.opset < 13:
        return g.add("Split", [x], count, axis=axis, split=sizes)
    return g.add("Split", [x, g.vector(sizes)], count, axis=axis)


@template(4)
def squeeze(g):
    x = g.pick(lambda v: 1 in v.shape)
    v = g.values[x]
    ones = [a for a, d in enumerate(v.shape) if d == 1]
    if g.chance(0.2):
        return g.squeeze(x, None)
    axes = g.rng.sample(ones, g.rng.randint(1, len(ones)))
    return g.squeeze(x, [a - v.ndim if g.opset >= 11 and g.chance(0.3) else a for a in axes])


@template(4)
def unsqueeze(g):
    x = tensor(g)
    rank, count = g.values[x].ndim, g.rng.choice([1, 1, 2])
    if rank + count > 5:
        return None
    axes = g.rng.sample(range(rank + count), count)
    return g.unsqueeze(x, [a - rank - count if g.opset >= 11 and g.chance(0.3) else a for a in axes])


def target(g, v):
    """A shape of as many elements: axes merged, split and kept."""
    dims = list(v.shape)
    for _ in range(g.rng.randint(0, 3)):
        if len(dims) > 1 and g.chance(0.5):
            i = g.rng.randrange(len(dims) - 1)
            dims[i:i + 2] = [dims[i] * dims[i + 1]]
        elif dims and len(dims) < 5:
            i = g.rng.randrange(len(dims))
            factor = g.rng.choice([k for k in (1, 2, 3, 4, dims[i] or 1) if dims[i] % k == 0])
            dims[i:i + 1] = g.rng.choice([[factor, dims[i] // factor], [dims[i] // factor, factor]])
    return dims


@template(9)
def reshape(g):
    x = tensor(g)
    v = g.values[x]
    dims = target(g, v)
    if g.opset < 5:
        return None
    zero = g.opset >= 14 and g.chance(0.2)
    if not zero:
        dims = [0 if i < v.ndim and d == v.shape[i] and g.chance(0.3) else d for i, d in enumerate(dims)]
    if dims and g.chance(0.5) and not (zero and 0 in dims):
        dims[g.rng.randrange(len(dims))] = -1
    return g.add("Reshape", [x, g.vector(dims)], allowzero=1 if zero else None)


@template(1)
def reshape_by_slices(g):
    """`[shape[:k], -1]` and `[shape[:-1], a, b]`, as modules write it."""
    x = tensor(g, 1)
    v = g.values[x]
    if g.opset < 10:
        return None
    whole = g.add("Shape", [x])
    k = g.rng.randrange(v.ndim)
    first = g.add("Slice", [whole, g.ints(0), g.ints(g.rng.choice([k, k - v.ndim])), g.ints(0)])
    rest = g.ints(-1) if g.chance(0.5) else g.vector(target(g, np.empty(v.shape[k:])))
    return g.add("Reshape", [x, g.add("Concat", [first, rest], axis=0)])


@template(2)
def flatten(g):
    x = tensor(g)
    rank = g.values[x].ndim
    return g.add("Flatten", [x], axis=g.rng.randint(-rank if g.opset >= 11 else 0, rank))


@template(4)
def transpose(g):
    x = tensor(g)
    rank = g.values[x].ndim
    return g.add("Transpose", [x], perm=None if g.chance(0.2) else g.rng.sample(range(rank), rank))


@template(4)
def expand(g):
    if g.opset < 8:
        return None
    x = tensor(g)
    dims = [d if d != 1 else g.rng.choice([1, 2, 3, 5]) for d in g.values[x].shape]
    dims = g.rng.choice([[], [], [1], [2], [3, 1]]) + dims
    dims = [1 if g.chance(0.2) else d for d in dims]
    if len(dims) > 5 or np.prod(dims) > 3000:
        return None
    return g.add("Expand", [x, g.vector(dims)])


@template(2)
def tile(g):
    x = tensor(g)
    v = g.values[x]
    repeats = [g.rng.choice([0, 1, 1, 1, 2, 3]) for _ in v.shape]
    return g.add("Tile", [x, g.vector(repeats)])


@template(4)
def pad(g):
    x = g.numeric() if g.opset >= 11 else g.dtype(FLOAT)
    v = g.values[x]
    mode = g.rng.choice(["constant", "constant", "reflect", "edge", "wrap" if g.opset >= 19 else "constant"])
    pads = [g.rng.choice([0, 0, 0, 1, 2, 3, -1, g.rng.choice([0, -2])]) for _ in range(2 * v.ndim)]
    if mode == "reflect" or mode == "wrap":
        pads = [min(p, max(0, v.shape[i % v.ndim] - 1)) for i, p in enumerate(pads)]
    if g.opset < 11:
        return g.add("Pad", [x], pads=pads, mode=mode, value=g.rng.choice([0.0, 1.0]))
    if g.opset >= 18 and g.chance(0.3) and v.ndim:
        axes = g.axes(v)
        pads = [pads[a] for a in axes] + [pads[a] for a in axes]
        return g.add("Pad", [x, g.vector(pads), "", g.ints(*axes)], mode=mode)
    inputs = [x, g.vector(pads)]
    if mode == "constant" and g.chance(0.5):
        inputs.append(g.const(np.array(g.rng.choice([0, 1]), v.dtype)))
    return g.add("Pad", inputs, mode=mode)


@template(1)
def pad_to_multiple(g):
    """Pads a dim to a multiple: `(k - n % k) % k`."""
    if g.opset < 11:
        return None
    x = g.numeric(least=1)
    v = g.values[x]
    k = g.rng.choice([2, 3, 4])
    n = g.scalar(v.shape[0])
    kc = g.const(np.array(k, np.int64))
    gap = g.add("Mod", [g.add("Sub", [kc, g.add("Mod", [n, kc])]), kc])
    zeros = [g.ints(*([0] * v.ndim))] if v.ndim else []
    rest = [g.ints(*([0] * (v.ndim - 1)))] if v.ndim > 1 else []
    padded = g.add("Pad", [x, g.add("Concat", [*zeros, g.flat(gap), *rest], axis=0)])
    if g.chance(0.5):
        windows = g.add("Reshape", [padded, g.ints(-1, k, *([0] * 0), *v.shape[1:])]) if 0 not in v.shape[1:] else padded
        return g.add("Transpose", [windows])
    return padded


@template(3)
def range_(g):
    if g.opset < 11:
        return None
    if g.chance(0.25):
        make = lambda value: g.add("Cast", [g.scalar(value)], to=TensorProto.FLOAT)  # noqa: E731
        return g.add("Range", [make(g.rng.randint(-2, 2)), make(g.rng.randint(0, 8)), g.const(np.array(g.rng.choice([1, 0.5, 2, -1]), FLOAT))])
    start, end = g.rng.choice([0, 0, 1, -2, 5]), g.rng.randint(0, 8)
    step = g.rng.choice([1, 1, 1, 2, 3, -1, -2])
    return g.add("Range", [g.scalar(start), g.scalar(end), g.scalar(step) if step > 0 else g.const(np.array(step, np.int64))])


@template(3)
def constant_of_shape(g):
    if g.opset < 9:
        return None
    dims = [g.rng.choice([0, 1, 2, 3, 4, 5]) for _ in range(g.rng.randint(0, 3))]
    if g.chance(0.5):
        dims = list(g.values[tensor(g)].shape)
    value = g.rng.choice([None, np.array([1], np.int64), np.array([-1], np.int64), np.array([2], FLOAT), np.array([True])])
    from onnx import numpy_helper
    return g.add("ConstantOfShape", [g.vector(dims)], value=None if value is None else numpy_helper.from_array(value))


def broadcastable(g, v):
    """Something this broadcasts with, of its type."""
    def fits(w):
        pairs = zip(v.shape[::-1], w.shape[::-1])
        return w.dtype == v.dtype and max(v.ndim, w.ndim) < 6 and all(a == b or 1 in (a, b) for a, b in pairs)
    if g.chance(0.3):
        value = g.rng.choice([0, 1, 2, 3, -1, 2])
        dims = g.rng.choice([[], [1], [], v.shape[-1:]])
        return g.const(np.full(dims, str(value) if v.dtype.kind in "OU" else value, v.dtype))
    return g.pick(fits)


def swapped(g, a, b):
    return [b, a] if g.chance(0.4) else [a, b]


@template(4)
def where(g):
    if g.opset < 9:
        return None
    x = tensor(g)
    y = broadcastable(g, g.values[x])
    return g.add("Where", [g.dtype(BOOL), *swapped(g, x, y)])


@template(5)
def comparison(g):
    x = g.numeric() if g.opset >= 9 else g.dtype(FLOAT if g.opset >= 9 else INT64)
    y = broadcastable(g, g.values[x])
    names = ["Equal", "Less", "Greater"] + (["LessOrEqual", "GreaterOrEqual"] if g.opset >= 12 else [])
    return g.add(g.rng.choice(names), swapped(g, x, y))


@template(2)
def logic(g):
    if g.chance(0.4):
        return g.add("Not", [g.dtype(BOOL)])
    x = g.dtype(BOOL)
    return g.add(g.rng.choice(["And", "Or", "Xor"]), [x, broadcastable(g, g.values[x])])


@template(9)
def integers(g):
    x = g.dtype(g.rng.choice([INT64, INT64, INT64, INT32]))
    v = g.values[x]
    operator = g.rng.choice(["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Pow"])
    if operator in ("Div", "Mod"):
        # A divisor of 0 ends the process of ONNX Runtime.
        divisor = g.const(np.full(g.rng.choice([[], [1]]), g.rng.choice([1, 2, 3, 4, -2, -1]), v.dtype))
        if g.chance(0.4):
            one = g.const(np.array(1, v.dtype))
            divisor = g.add("Max", [broadcastable(g, v), one]) if g.opset >= 12 else divisor
            return g.add(operator, [x, divisor], fmod=1 if operator == "Mod" and g.chance(0.3) else None)
        return g.add(operator, [x, divisor])
    if operator == "Pow":
        return g.add("Pow", [x, g.const(np.array(g.rng.choice([0, 1, 2, 3]), v.dtype))])
    return g.add(operator, swapped(g, x, broadcastable(g, v)))


@template(7)
def floats(g):
    x = g.dtype(g.rng.choice([FLOAT, FLOAT, FLOAT, DOUBLE, HALF]))
    operator = g.rng.choice(["Add", "Sub", "Mul", "Max", "Min", "Add", "Mul", "Div", "Mean", "Sum", "PRelu"])
    y = broadcastable(g, g.values[x])
    if operator == "Div":
        y = g.const(np.array(g.rng.choice([1, 2, 4, -1]), g.values[x].dtype))
        return g.add("Div", [x, y])
    if operator == "PRelu":
        return g.add("PRelu", [x, y])
    return g.add(operator, swapped(g, x, y))


@template(6)
def unary(g):
    x = g.dtype(g.rng.choice([FLOAT, FLOAT, FLOAT, INT64, HALF, INT32]))
    names = ["Neg", "Abs", "Sign", "Relu", "Identity", "Identity"]
    if g.values[x].dtype.kind == "f":
        names += ["Floor", "Ceil", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Elu", "Softplus", "Reciprocal", "Erf",
                  "HardSigmoid", "Selu", "Round", "Cos", "Sin", "IsNaN", "Log", "IsInf", "HardSwish", "Gelu", "Mish", "ThresholdedRelu"]
    name = g.rng.choice(names)
    y = g.add(name, [x])
    if g.chance(0.15):
        return g.add(name, [y])
    return y


@template(5)
def cast(g):
    to = g.rng.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.FLOAT16,
                       TensorProto.INT8, TensorProto.UINT8])
    x = g.pick(lambda v: v.dtype.kind in "fib" and bool(np.all(np.isfinite(v.astype(np.float64)))))
    if g.opset >= 15 and g.chance(0.2):
        return g.add("CastLike", [x, g.pick(lambda v: v.dtype in (FLOAT, INT64, INT32, BOOL, DOUBLE))])
    return g.add("Cast", [x], to=to)


@template(6)
def reduce(g):
    x = g.numeric()
    v = g.values[x]
    names = ["Sum", "Max", "Min", "Prod", "Mean"] + (["L1", "L2", "SumSquare", "LogSumExp"] if v.dtype == FLOAT else [])
    name = "Reduce" + g.rng.choice(names)
    axes = None if g.chance(0.25) or not v.ndim else g.axes(v)
    keep = g.rng.choice([None, 0, 1])
    if g.opset < (13 if name == "ReduceSum" else 18):
        return g.add(name, [x], axes=axes, keepdims=keep)
    noop = g.rng.choice([None, 0, 1])
    if axes is None:
        return g.add(name, [x] if g.chance(0.7) else [x, g.ints()], keepdims=keep, noop_with_empty_axes=noop)
    return g.add(name, [x, g.vector(axes, 1) if g.chance(0.3) else g.ints(*axes)], keepdims=keep, noop_with_empty_axes=noop)


@template(2)
def arg(g):
    x = g.numeric(least=1)
    last = g.chance(0.3) and g.opset >= 12
    return g.add(g.rng.choice(["ArgMax", "ArgMin"]), [x], axis=g.axis(g.values[x]), keepdims=g.rng.choice([None, 0, 1]),
                 select_last_index=1 if last else None)


# Sizes that depend on data

@template(2)
def non_zero(g):
    if g.opset < 9:
        return None
    found = g.add("NonZero", [g.pick(lambda v: v.dtype in (FLOAT, INT64, BOOL) and v.ndim)])
    if g.chance(0.6):
        return g.add("GatherND", [g.pick(lambda v: v.ndim == g.values[found].shape[0]), g.add("Transpose", [found])])
    return found


@template(1)
def compress(g):
    if g.opset < 9:
        return None
    x = tensor(g, 1)
    axis = None if g.chance(0.3) else g.axis(g.values[x])
    condition = g.pick(lambda v: v.dtype == BOOL and v.ndim == 1) if g.chance(0.5) else g.const(np.array([True, False, True])[:g.rng.randint(1, 3)])
    return g.add("Compress", [x, condition], axis=axis)


@template(1)
def unique(g):
    if g.opset < 11:
        return None
    x = g.numeric()
    axis = g.axis(g.values[x]) if g.values[x].ndim and g.chance(0.5) else None
    return g.add("Unique", [x], 4, axis=axis, sorted=g.rng.choice([None, 0, 1]))


@template(1)
def suppression(g):
    if g.opset < 10:
        return None
    boxes = g.dtype(FLOAT, rank=3, accept=lambda v: v.shape[2] == 4)
    b, n, _ = g.values[boxes].shape
    scores = g.dtype(FLOAT, rank=3, accept=lambda v: v.shape[0] == b and v.shape[2] == n)
    return g.add("NonMaxSuppression", [boxes, scores, g.scalar(2), g.const(np.array(0.5, FLOAT))])


# Positions, and values that are constant along an axis

def places(g, number):
    """`[0, 1, …]` of that many, in one of the ways it is written."""
    way = g.rng.randrange(4)
    if way == 0 and g.opset >= 13:
        ones = g.add("ConstantOfShape", [g.flat(g.size(number))], value=numpy_helper.from_array(np.array([1], np.int64)))
        return g.add("Reshape", [g.add("NonZero", [ones]), g.ints(-1)])
    start = g.rng.choice([0, 0, 1, 3])
    counted = g.add("Range", [g.scalar(start), g.scalar(number + start), g.const(np.array(1, np.int64))])
    if start == 0:
        return counted
    return g.add("Sub", [counted, g.const(np.array(start, np.int64))])


@template(2)
def grid(g):
    """The coordinates of a tensor's places, side by side."""
    if g.opset < 11:
        return None
    x = g.pick(lambda v: 1 <= v.ndim <= 3)
    shape = g.values[x].shape
    whole = g.add("Shape", [x])
    columns = []
    for axis in g.rng.choices(range(len(shape)), k=g.rng.randint(2, 4)):
        layout = [-1 if at == axis else 1 for at in range(len(shape))]
        constant = np.arange(shape[axis], dtype=np.int64).reshape([1 if d == 1 else d for d in np.ones(axis, int)] + [-1] + [1] * (len(shape) - axis - 1))
        counted = g.const(constant) if g.chance(0.3) else g.add("Reshape", [places(g, shape[axis]), g.ints(*layout)])
        columns.append(g.add("Expand", [counted, whole]))
    at = g.rng.choice([0, len(shape)])
    if g.chance(0.3):
        stacked = g.add("Concat", [g.add("Reshape", [column, g.ints(-1, 1)]) for column in columns], axis=1)
    elif g.opset >= 13:
        stacked = g.add("Concat", [g.add("Unsqueeze", [column, g.ints(at)]) for column in columns], axis=at)
    else:
        stacked = g.add("Concat", [g.add("Unsqueeze", [column], axes=[at]) for column in columns], axis=at)
    return g.add("Cast", [stacked], to=TensorProto.FLOAT) if g.chance(0.5) else stacked


@template(2)
def block(g):
    """Writes a tensor into a larger one of one number, place by place."""
    if g.opset < 13:
        return None
    u = g.pick(lambda v: v.dtype in (FLOAT, INT64) and 1 <= v.ndim <= 3)
    shape, dtype = g.values[u].shape, g.values[u].dtype
    before, after = ([g.rng.choice([0, 0, 1, 2]) for _ in shape] for _ in range(2))
    whole = g.add("Shape", [u])
    columns = []
    for axis, start in enumerate(before):
        counted = g.add("Reshape", [places(g, shape[axis]), g.ints(*(-1 if at == axis else 1 for at in range(len(shape))))])
        moved = g.add("Add", [counted, g.const(np.array(start, np.int64))]) if start else counted
        columns.append(g.add("Unsqueeze", [g.add("Expand", [moved, whole]), g.ints(-1)]))
    indices = columns[0] if len(columns) == 1 else g.add("Concat", columns, axis=-1)
    sizes = g.add("Add", [whole, g.ints(*(a + b for a, b in zip(before, after)))])
    filled = g.add("ConstantOfShape", [sizes], value=numpy_helper.from_array(np.array([g.rng.choice([0, 2])], dtype)))
    return g.add("ScatterND", [filled, indices, u])


@template(3)
def alike(g):
    """Something that is the same along an axis, worked on before it meets what is not."""
    if g.opset < 13:
        return None
    x = g.pick(lambda v: v.dtype == FLOAT and 2 <= v.ndim <= 4)
    v = g.values[x]
    own = [1 if g.chance(0.5) else d for d in v.shape]
    few = g.const(np.array([g.rng.choice([0.5, 1, 2, -1]) for _ in range(int(np.prod(own)))], FLOAT).reshape(own))
    way = g.rng.randrange(3)
    if way == 0:
        value = g.add("Expand", [few, g.add("Shape", [x])])
    elif way == 1:
        value = g.add("Tile", [few, g.vector([d if o == 1 else 1 for o, d in zip(own, v.shape)])])
    else:
        value = g.add("ConstantOfShape", [g.add("Shape", [x])], value=numpy_helper.from_array(np.array([0.5], FLOAT)))
    back = None
    for _ in range(g.rng.randint(1, 4)):
        rank = g.values[value].ndim
        step = g.rng.randrange(8)
        if step == 0:
            value = g.add("Softmax", [value], axis=g.rng.randrange(rank))
        elif step == 1:
            value = g.add("CumSum", [value, g.const(np.array(g.rng.randrange(rank), np.int64))])
        elif step == 2 and back is None:
            back = g.rng.sample(range(rank), rank)
            value = g.add("Transpose", [value], perm=back)
        elif step == 3:
            value = g.add("Mul", [value, value])
        elif step == 4:
            axis = g.rng.randrange(rank)
            value = g.add("Concat", [g.add("Slice", [value, g.ints(0), g.ints(1), g.ints(axis)]),
                                     g.add("Slice", [value, g.ints(1), g.ints(2**31), g.ints(axis)])], axis=axis)
        elif step == 5:
            n = g.values[value].shape[-1]
            value = g.add("MatMul", [value, g.const(np.full((n, n), 0.25, FLOAT))])
        elif step == 6:
            value = g.add("Squeeze", [g.add("Unsqueeze", [value, g.ints(1)]), g.ints(1)])
        else:
            value = g.add("Cast", [g.add("Cast", [value], to=TensorProto.DOUBLE)], to=TensorProto.FLOAT)
    if back is not None:
        value = g.add("Transpose", [value], perm=[back.index(axis) for axis in range(len(back))])
    return g.add(g.rng.choice(["Add", "Mul"]), [x, value])


@template(2)
def filled(g):
    """A tensor of one number, moved about."""
    if g.opset < 13:
        return None
    value = g.add("ConstantOfShape", [g.add("Shape", [g.pick(lambda v: 1 <= v.ndim <= 3)])],
                  value=numpy_helper.from_array(g.rng.choice([np.array([1], np.int64), np.array([0], FLOAT), np.array([True])])))
    for _ in range(g.rng.randint(1, 4)):
        v = g.values[value]
        step = g.rng.randrange(6)
        if step == 0:
            value = g.add("Cast", [value], to=g.rng.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL]))
        elif step == 1:
            value = g.add("Transpose", [value])
        elif step == 2 and v.ndim:
            value = g.add("Unsqueeze", [value, g.ints(0)])
        elif step == 3 and v.ndim:
            value = g.add("Gather", [value, g.const(np.array(0, np.int64))], axis=g.rng.randrange(v.ndim))
        elif step == 4 and v.dtype != BOOL and v.ndim:
            value = g.add("Pad", [value, g.vector([g.rng.choice([0, 1]) for _ in range(2 * v.ndim)]), g.const(np.array(g.rng.choice([0, 1]), v.dtype))])
        elif v.dtype == FLOAT and v.ndim:
            sizes = [g.rng.choice([1, 2]) * d for d in v.shape]
            value = g.add("Resize", [value, "", "", g.vector(sizes)], mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    if g.values[value].dtype == FLOAT and g.chance(0.3) and g.values[value].ndim:
        return g.add("Softmax", [g.add("Add", [g.dtype(FLOAT), value])])
    return value


@template(2)
def angles(g):
    """A column times a row of constants, cut or doubled."""
    if g.opset < 13:
        return None
    x = g.add("Unsqueeze", [g.dtype(FLOAT, accept=lambda v: v.ndim < 3), g.ints(-1)])
    row = g.const(np.array([1, 1, 0.5, 0.5, 0.25, 0.25], FLOAT)[:g.rng.choice([2, 4, 6])])
    table = g.add(g.rng.choice(["Mul", "Div", "Sub"]), [x, row])
    if g.chance(0.5):
        return g.add("Concat", [table, table], axis=-1)
    parts = [g.add("Slice", [table, g.ints(start), g.ints(2**31), g.ints(-1), g.ints(2)]) for start in (0, 1)]
    return g.add("Concat", [g.add("Sin", [parts[0]]), g.add("Cos", [parts[1]])], axis=-1)


@template(2)
def turned(g):
    """Axes turned, run together or taken apart, and turned back."""
    x = tensor(g, 3)
    v = g.values[x]
    perm = g.rng.choice([[*range(1, v.ndim), 0], [v.ndim - 1, *range(v.ndim - 1)], [0, v.ndim - 1, *range(1, v.ndim - 1)]])
    value = g.add("Transpose", [x], perm=perm)
    shape = list(g.values[value].shape)
    at = g.rng.randrange(len(shape) - 1)
    if g.opset < 5 or 0 in shape:
        return None
    if g.chance(0.6):
        shape[at:at + 2] = [-1]
        codes = [0 if i < at else d for i, d in enumerate(shape)]
    else:
        part = g.rng.choice([d for d in range(1, shape[at] + 1) if shape[at] % d == 0])
        codes = shape[:at] + [part, shape[at] // part] + shape[at + 1:]
    value = g.add("Reshape", [value, g.vector(codes)])
    rank = g.values[value].ndim
    return g.add("Transpose", [value], perm=g.rng.sample(range(rank), rank) if g.chance(0.5) else [*range(1, rank), 0])


# Writing

@template(2)
def scatter_nd(g):
    if g.opset < 11:
        return None
    x = tensor(g, 1)
    v = g.values[x]
    depth, rows = g.rng.randint(1, v.ndim), g.rng.randint(0, 3)
    indices = np.array([[g.rng.randrange(v.shape[i]) for i in range(depth)] for _ in range(rows)], np.int64).reshape(rows, depth)
    shape = (rows, *v.shape[depth:])
    updates = g.pick(lambda w: w.dtype == v.dtype and w.shape == shape) if g.chance(0.3) else g.const(np.full(shape, 2).astype(v.dtype))
    return g.add("ScatterND", [x, g.const(indices), updates])


@template(1)
def scatter_elements(g):
    if g.opset < 11:
        return None
    x = tensor(g, 1)
    v = g.values[x]
    axis = g.axis(v)
    shape = [g.rng.randint(0, d) for d in v.shape]
    indices = np.array([g.rng.randrange(v.shape[axis]) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)
    return g.add("ScatterElements", [x, g.const(indices), g.const(np.full(shape, 2).astype(v.dtype))], axis=axis)


@template(2)
def one_hot(g):
    if g.opset < 9:
        return None
    x = g.dtype(INT64)
    depth = g.size(g.rng.randint(1, 5))
    return g.add("OneHot", [x, depth, g.const(np.array([0, 1], g.rng.choice([FLOAT, INT64])))], axis=g.rng.choice([None, -1, 0]))


@template(2)
def trilu(g):
    if g.opset < 14:
        return None
    x = tensor(g, 2)
    return g.add("Trilu", [x] + ([g.scalar(g.rng.randint(-2, 2))] if g.chance(0.5) else []), upper=g.rng.choice([None, 0, 1]))


@template(2)
def cumulate(g):
    if g.opset < 11:
        return None
    x = g.numeric(least=1)
    axis = g.const(np.array(g.axis(g.values[x]), g.rng.choice([INT64, INT32])))
    return g.add("CumSum", [x, axis], exclusive=g.rng.choice([None, 1]), reverse=g.rng.choice([None, 1]))


@template(2)
def top_k(g):
    x = g.numeric(least=1)
    v = g.values[x]
    axis = g.axis(v)
    k = g.rng.randint(0 if g.opset >= 10 else 1, v.shape[axis])
    if g.opset < 10:
        return g.add("TopK", [x], 2, axis=axis, k=k)
    return g.add("TopK", [x, g.flat(g.size(k))], 2, axis=axis)


@template(1)
def eye(g):
    if g.opset < 9:
        return None
    return g.add("EyeLike", [tensor(g, rank=2)], k=g.rng.randint(-2, 2), dtype=g.rng.choice([None, TensorProto.FLOAT]))


# Windows and images

@template(3)
def resize(g):
    x = g.dtype(FLOAT, least=3)
    v = g.values[x]
    scales = [1.0 if i < 2 else g.rng.choice([1.0, 2.0, 0.5, 1.5, 0.3, 3.0]) for i in range(v.ndim)]
    mode = g.rng.choice(["nearest", "nearest", "linear"])
    constant = g.const(np.array(scales, FLOAT))
    if g.opset < 7:
        return None
    if g.opset < 10:
        if g.opset < 9:
            return g.add("Upsample", [x], scales=[max(1.0, s) for s in scales], mode=mode)
        return g.add("Upsample", [x, g.const(np.maximum(1, np.array(scales, FLOAT)))], mode=mode)
    if g.opset == 10:
        return g.add("Resize", [x, constant], mode=mode)
    transform = g.rng.choice(["asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"])
    none = g.const(np.zeros(0, FLOAT)) if g.opset < 13 else ""
    if g.chance(0.5):
        sizes = [d if i < 2 else max(1, int(d * s)) for i, (d, s) in enumerate(zip(v.shape, scales))]
        if g.opset >= 18 and g.chance(0.4):
            return g.add("Resize", [x, "", "", g.vector(sizes[2:])], mode=mode, coordinate_transformation_mode=transform, axes=list(range(2, v.ndim)),
                         keep_aspect_ratio_policy=g.rng.choice([None, "stretch", "not_larger", "not_smaller"]))
        return g.add("Resize", [x, none, none if g.opset < 13 else "", g.vector(sizes)], mode=mode, coordinate_transformation_mode=transform)
    if g.chance(0.3):
        like = g.add("Cast", [g.vector([max(1, int(d * s)) for d, s in zip(v.shape, scales)])], to=TensorProto.FLOAT)
        constant = g.add("Div", [like, g.add("Cast", [g.add("Shape", [x])], to=TensorProto.FLOAT)])
    return g.add("Resize", [x, none, constant], mode=mode, coordinate_transformation_mode=transform,
                 nearest_mode=g.rng.choice([None, "floor", "ceil", "round_prefer_ceil"]) if mode == "nearest" else None)


def window(g, v, dilated=True):
    """Attributes of a window over the spatial axes."""
    spatial = v.ndim - 2
    attributes = {"kernel_shape": [g.rng.choice([1, 2, 3]) for _ in range(spatial)], "strides": [g.rng.choice([1, 1, 2, 3]) for _ in range(spatial)]}
    if dilated and g.chance(0.2):
        attributes["dilations"] = [g.rng.choice([1, 2]) for _ in range(spatial)]
    how = g.rng.random()
    if how < 0.4:
        attributes["pads"] = [g.rng.choice([0, 0, 1, 1, 2]) for _ in range(2 * spatial)]
    elif how < 0.7:
        attributes["auto_pad"] = g.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    return attributes


def image(g):
    try:
        return g.dtype(FLOAT, least=3, accept=lambda v: v.ndim < 6 and v.shape[1])
    except Rejected:
        return g.unsqueeze(g.dtype(FLOAT, rank=2), [0])


@template(4)
def conv(g):
    x = image(g)
    v = g.values[x]
    attributes = window(g, v)
    group = g.rng.choice([1, 1, 1, 2, v.shape[1] or 1])
    channels = v.shape[1] // group
    count = group * g.rng.choice([1, 2])
    weights = np.array([g.rng.randint(-2, 2) for _ in range(count * channels * int(np.prod(attributes["kernel_shape"])))], FLOAT)
    transposed = g.chance(0.2)
    shape = [v.shape[1], count // group] if transposed else [count, channels]
    if transposed:
        weights = np.ones(v.shape[1] * (count // group) * int(np.prod(attributes["kernel_shape"])), FLOAT)
        if g.chance(0.3):
            attributes["output_padding"] = [g.rng.choice([0, 1]) for _ in range(v.ndim - 2)]
    if g.chance(0.3):
        del attributes["kernel_shape"]
        shape = [*shape, *([1] * (v.ndim - 2))]
        weights = weights[:int(np.prod(shape))]
    else:
        shape = [*shape, *attributes["kernel_shape"]]
    bias = [g.const(np.array([g.rng.randint(-2, 2) for _ in range(count)], FLOAT))] if g.chance(0.4) else []
    y = g.add("ConvTranspose" if transposed else "Conv", [x, g.const(weights.reshape(shape)), *bias], group=group, **attributes)
    follow = g.rng.random()
    if follow < 0.2:
        return normalize_batch(g, y)
    if follow < 0.4:
        factor = g.const(np.array([g.rng.choice([1, 2, -1, 0.5]) for _ in range(count)], FLOAT).reshape([count] + [1] * (v.ndim - 2)))
        return g.add(g.rng.choice(["Mul", "Add"]), swapped(g, y, factor))
    return y


def normalize_batch(g, x):
    channels = g.values[x].shape[1]
    parts = [g.const(np.array([g.rng.choice([1, 2, 0.5]) for _ in range(channels)], FLOAT)) for _ in range(4)]
    return g.add("BatchNormalization", [x, *parts])


@template(3)
def pool(g):
    x = image(g)
    v = g.values[x]
    if g.chance(0.2):
        return g.add(g.rng.choice(["GlobalAveragePool", "GlobalMaxPool"]), [x])
    name = g.rng.choice(["MaxPool", "AveragePool", "MaxPool", "AveragePool", "LpPool"])
    newest = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[name]
    attributes = window(g, v, dilated=g.opset >= newest)
    if g.opset >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[name] and g.chance(0.4):
        attributes["ceil_mode"] = 1
    if name == "AveragePool" and g.chance(0.4):
        attributes["count_include_pad"] = 1
    return g.add(name, [x], **attributes)


@template(1)
def normalize(g):
    x = image(g)
    v = g.values[x]
    channels = v.shape[1]
    ones = lambda n: g.const(np.array([g.rng.choice([1, 2]) for _ in range(n)], FLOAT))  # noqa: E731
    way = g.rng.randrange(7)
    if way == 0:
        return normalize_batch(g, x)
    if way == 1:
        return g.add("InstanceNormalization", [x, ones(channels), ones(channels)])
    if way == 2:
        return g.add("LRN", [x], size=3)
    if way == 3 and g.opset >= 17:
        axis = g.axis(v)
        return g.add("LayerNormalization", [x, g.const(np.ones(v.shape[axis:] if axis >= 0 else v.shape[axis:], FLOAT))], g.rng.choice([1, 3]), axis=axis)
    if way == 4 and g.opset >= 21:
        return g.add("GroupNormalization", [x, ones(channels), ones(channels)], num_groups=1)
    if way == 5 and g.opset >= 23:
        return g.add("RMSNormalization", [x, ones(v.shape[-1])])
    return g.add(g.rng.choice(["MeanVarianceNormalization", "LpNormalization"]), [x])


@template(1)
def blocks(g):
    x = g.dtype(FLOAT, rank=4)
    v = g.values[x]
    if g.chance(0.5):
        return g.add("SpaceToDepth", [x], blocksize=g.rng.choice([1, 2, 3]))
    return g.add("DepthToSpace", [x], blocksize=g.rng.choice([k for k in (1, 2) if v.shape[1] % (k * k) == 0]))


@template(2)
def softmax(g):
    x = g.dtype(g.rng.choice([FLOAT, FLOAT, HALF]), least=1)
    return g.add(g.rng.choice(["Softmax", "LogSoftmax", "Hardmax"]), [x], axis=None if g.chance(0.3) else g.axis(g.values[x]))


@template(2)
def dropout(g):
    x = g.dtype(FLOAT)
    if g.opset < 12:
        return g.add("Dropout", [x], g.rng.choice([1, 2]), ratio=0.3)
    return g.add("Dropout", [x, g.const(np.array(0.3, FLOAT))][:g.rng.choice([1, 2])], g.rng.choice([1, 2]))


@template(2)
def clip(g):
    x = g.dtype(FLOAT) if g.opset < 12 else g.numeric()
    if g.opset < 11:
        return g.add("Clip", [x], min=g.rng.choice([None, -1.0]), max=g.rng.choice([None, 2.0]))
    dtype = g.values[x].dtype
    low, high = g.const(np.array(-1, dtype)), g.const(np.array(2, dtype))
    return g.add("Clip", g.rng.choice([[x], [x, low], [x, "", high], [x, low, high]]))


# Products

@template(4)
def matmul(g):
    x = g.dtype(g.rng.choice([FLOAT, FLOAT, INT64]), least=1)
    v = g.values[x]
    if g.chance(0.5) and v.dtype == FLOAT:
        w = g.const(np.array([g.rng.randint(-2, 2) for _ in range(v.shape[-1] * 3)], FLOAT).reshape(v.shape[-1], 3)[:, :g.rng.randint(1, 3)])
        y = g.add("MatMul", [x, w])
        if g.chance(0.4):
            n = g.values[y].shape[-1]
            y = g.add("Add", swapped(g, y, g.const(np.array([g.rng.randint(-2, 2) for _ in range(n)], FLOAT))))
        return y
    other = g.pick(lambda w: w.dtype == v.dtype and w.ndim and w.shape[-2 if w.ndim > 1 else 0] == v.shape[-1])
    return g.add("MatMul", [x, other])


@template(2)
def gemm(g):
    x = g.dtype(FLOAT, rank=2)
    trans = [g.rng.choice([0, 1]), g.rng.choice([0, 1])]
    inner = g.values[x].shape[0 if trans[0] else 1]
    other = g.pick(lambda w: w.dtype == FLOAT and w.ndim == 2 and w.shape[1 if trans[1] else 0] == inner) if g.chance(0.4) else g.const(
        np.ones((2, inner) if trans[1] else (inner, 2), FLOAT))
    bias = [g.const(np.array(g.rng.choice([1, 2]), FLOAT).reshape(g.rng.choice([[], [1], [1, 1]])))] if g.chance(0.5) or g.opset < 11 else []
    return g.add("Gemm", [x, other, *bias], transA=trans[0], transB=trans[1], alpha=g.rng.choice([1.0, 0.5]), beta=g.rng.choice([1.0, 2.0]))


@template(1)
def einsum(g):
    if g.opset < 12:
        return None
    x = g.dtype(FLOAT, least=1)
    v = g.values[x]
    letters = "abcdef"[:v.ndim]
    kept = "".join(g.rng.sample(letters, g.rng.randint(0, v.ndim)))
    if g.chance(0.4):
        equation = letters + ("->" + kept if g.chance(0.8) else "")
        return g.add("Einsum", [x], equation=equation)
    y = g.pick(lambda w: w.dtype == FLOAT and w.ndim and w.shape[0] == v.shape[-1])
    others = letters[-1] + "ghijk"[:g.values[y].ndim - 1]
    return g.add("Einsum", [x, y], equation=g.rng.choice([f"{letters},{others}->{kept}{others[1:]}", f"{letters},{others}", f"...{letters[-1]},{others}->...{others[1:]}"]))


@template(1)
def recurrent(g):
    x = g.dtype(FLOAT, rank=3)
    v = g.values[x]
    name, gates = g.rng.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    hidden, two = g.rng.choice([1, 2]), g.chance(0.4)
    d = 2 if two else 1
    w = g.const(np.full((d, gates * hidden, v.shape[2]), 0.5, FLOAT))
    r = g.const(np.full((d, gates * hidden, hidden), 0.25, FLOAT))
    return g.add(name, [x, w, r], 3 if name == "LSTM" else 2, hidden_size=hidden, direction="bidirectional" if two else None)


@template(1)
def quantize(g):
    if g.opset < 10:
        return None
    x = g.dtype(FLOAT)
    scale, zero = g.const(np.array(0.5, FLOAT)), g.const(np.array(3, np.uint8))
    return g.add("DequantizeLinear", [g.add("QuantizeLinear", [x, scale, zero]), scale, zero])


@template(1)
def reverse(g):
    if g.opset < 10:
        return None
    x = g.dtype(FLOAT, least=2)
    v = g.values[x]
    return g.add("ReverseSequence", [x, g.vector([g.rng.randint(1, max(1, v.shape[0])) for _ in range(v.shape[1])])], time_axis=0, batch_axis=1)


# Sequences

def sequence(g):
    found = [name for name, value in g.values.items() if isinstance(value, list)]
    if found and g.chance(0.7):
        return g.rng.choice(found)
    x = g.numeric()
    if g.chance(0.5):
        return g.add("SequenceConstruct", [x] + [g.pick(lambda w: w.dtype == g.values[x].dtype) for _ in range(g.rng.randint(0, 2))])
    x = g.numeric(least=1)
    v = g.values[x]
    axis = g.axis(v)
    if g.chance(0.4):
        return g.add("SplitToSequence", [x], axis=axis, keepdims=g.rng.choice([None, 0, 1]))
    return g.add("SplitToSequence", [x, g.scalar(g.rng.randint(1, 3)) if g.chance(0.6) else g.vector([v.shape[axis] - v.shape[axis] // 2, v.shape[axis] // 2])], axis=axis)


@template(3)
def sequences(g):
    if g.opset < 11:
        return None
    s = sequence(g)
    items = g.values[s]
    way = g.rng.randrange(6)
    position = lambda: g.scalar(g.rng.randint(-len(items), len(items) - 1))  # noqa: E731
    if way == 0:
        return g.add("SequenceLength", [s])
    if way == 1:
        return g.add("SequenceErase", [s] + ([position()] if g.chance(0.7) else []))
    if way == 2:
        x = g.pick(lambda w: w.dtype == items[0].dtype)
        return g.add("SequenceInsert", [s, x] + ([position()] if g.chance(0.6) else []))
    if way == 3:
        new = g.rng.choice([None, 0, 1 if all(item.shape == items[0].shape for item in items) else 0])
        return g.add("ConcatFromSequence", [s], axis=g.rng.randrange(max(1, items[0].ndim)), new_axis=new)
    return g.add("SequenceAt", [s, position()])


# Bodies

def body(g, count):
    inner = Growth(g.rng, g.opset, g)
    if g.depth < 2:
        grow(inner, count, TEMPLATES, WEIGHTS)
    return inner


def graph_of(inner, name, inputs, outputs, ranked=False):
    """A body; a Scan wants to be told the ranks of its results."""
    from onnx import numpy_helper
    declared = [value_type(value, inner.values[value], [None] * inner.values[value].ndim if ranked else None) for value in outputs]
    initializers = [numpy_helper.from_array(np.asarray(value), key) for key, value in inner.initializers.items()]
    return helper.make_graph(inner.nodes, name, inputs, declared, initializers)


def condition(g):
    if g.chance(0.3):
        return g.const(np.array(g.chance(0.5)))
    if g.chance(0.5):
        a = g.scalar(g.rng.randint(0, 4))
        return g.add(g.rng.choice(["Equal", "Less", "Greater"]), [a, g.scalar(g.rng.randint(0, 4))])
    return g.pick(lambda v: v.dtype == BOOL and v.size == 1)


@template(3)
def branch(g):
    chosen = condition(g)
    branches = [body(g, g.rng.randint(0, 4)) for _ in range(2)]
    x = g.numeric()
    v = g.values[x]
    count, graphs = g.rng.choice([1, 1, 2]), []
    for inner in branches:
        outputs = []
        for _ in range(count):
            # Before If-11 the results of both branches have one shape.
            same = lambda w: w.dtype == v.dtype and (  # noqa: E731
                w.shape == v.shape or g.opset >= 11 and (w.ndim == v.ndim or inner.chance(0.1)))
            y = inner.pick(same)
            outputs.append(y if y in inner.own and y not in outputs and y not in inner.initializers else inner.add("Identity", [y]))
        graphs.append(graph_of(inner, inner.name("b"), [], outputs))
    return g.add("If", [chosen], count, then_branch=graphs[0], else_branch=graphs[1])


@template(3)
def loop(g):
    # In ONNX Runtime, values scanned in no iteration have no rank; inside a subgraph this goes unnoticed.
    trips = (g.const(np.array(g.rng.randint(1, 3))) if g.depth else g.scalar(g.rng.randint(0, 3))) if g.chance(0.85) else ""
    start = g.const(np.array(True)) if g.chance(0.7) or not trips or g.depth else g.rng.choice(["", condition(g)])
    states = [g.numeric() for _ in range(g.rng.choice([0, 1, 1, 2]))]
    inner = Growth(g.rng, g.opset, g)
    iteration, going = inner.define(inner.name(), np.array(0, np.int64)), inner.define(inner.name(), np.array(True))
    inside = [inner.define(inner.name(), g.values[state]) for state in states]
    if g.depth < 2:
        grow(inner, g.rng.randint(1, 5), TEMPLATES, WEIGHTS)
    inputs = [value_type(iteration, np.array(0), []), value_type(going, np.array(True), [])]
    inputs += [value_type(name, inner.values[name]) for name in inside]
    if not trips or g.chance(0.2):
        limit = inner.const(np.array(g.rng.randint(1, 3), np.int64))
        go = inner.add("Less", [iteration, limit])
    else:
        go = inner.add("Identity", [going])
    outputs = [go]
    for name in inside:
        v = inner.values[name]
        if g.chance(0.3):
            outputs.append(inner.add("Identity", [name]))
        elif g.chance(0.3) and v.ndim:
            outputs.append(inner.add("Concat", [name, inner.pick(lambda w: w.dtype == v.dtype and w.shape == v.shape)], axis=0))
        else:
            outputs.append(inner.add("Identity", [inner.pick(lambda w: w.dtype == v.dtype and (w.shape == v.shape or (w.ndim == v.ndim and inner.chance(0.3))))]))
    scans = g.rng.choice([0, 1, 1]) if states else 1
    outputs += [inner.add("Identity", [inner.numeric()]) for _ in range(scans)]
    graph = graph_of(inner, inner.name("b"), inputs, outputs)
    return g.add("Loop", [trips, start, *states], len(states) + scans, body=graph)


@template(2)
def scan(g):
    if g.opset < 9:
        return None
    x = g.numeric(least=1)
    v = g.values[x]
    axis = g.axis(v)
    states = [g.numeric() for _ in range(g.rng.choice([0, 1]))]
    inner = Growth(g.rng, g.opset, g)
    inside = [inner.define(inner.name(), g.values[state]) for state in states]
    row = inner.define(inner.name(), np.asarray(np.take(v, 0, axis)))
    if g.depth < 2:
        grow(inner, g.rng.randint(1, 5), TEMPLATES, WEIGHTS)
    outputs = []
    for name in inside:
        w = inner.values[name]
        # Inside a subgraph ONNX Runtime does not check that a state keeps its shape, which the standard requires.
        outputs.append(inner.add("Identity", [name if g.depth else inner.pick(lambda u: u.dtype == w.dtype and u.shape == w.shape)]))
    outputs.append(inner.add("Identity", [inner.numeric()]))
    graph = graph_of(inner, inner.name("b"), [value_type(name, inner.values[name]) for name in [*inside, row]], outputs, g.chance(0.7))
    return g.add("Scan", [*states, x], len(outputs), body=graph, num_scan_inputs=1, scan_input_axes=[axis],
                 scan_input_directions=g.rng.choice([None, [1]]), scan_output_directions=g.rng.choice([None, [1]]))
