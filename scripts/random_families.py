"""Further templates for `random_graphs.py`: families of operators that are rare in models."""
import numpy as np
from onnx import TensorProto, helper

from random_graphs import BOOL, DOUBLE, FLOAT, HALF, INT8, INT32, INT64, STRING, UINT8, Growth, Rejected
from random_nodes import body, broadcastable, graph_of, image, sequence, swapped, template, tensor


def converted(g, x, dtype):
    """A value as another type, if it is not of that type."""
    if g.values[x].dtype == dtype:
        return x
    return g.add("Cast", [x], to=helper.np_dtype_to_tensor_dtype(dtype))


def of_rank(g, rank, accept=lambda v: True):
    """Floats of this rank, made from others if there are none."""
    try:
        return g.dtype(FLOAT, rank=rank, accept=accept)
    except Rejected:
        x = g.dtype(FLOAT, accept=lambda v: 0 < v.ndim < rank)
        y = g.unsqueeze(x, g.rng.sample(range(rank), rank - g.values[x].ndim))
        if not accept(g.values[y]):
            raise
        return y


# Integers, bits and quantized numbers

@template(1)
def bits(g):
    if g.opset >= 18 and g.chance(0.6):
        x = g.dtype(g.rng.choice([INT64, INT32, UINT8]))
        if g.chance(0.3):
            return g.add("BitwiseNot", [x])
        return g.add(g.rng.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), swapped(g, x, broadcastable(g, g.values[x])))
    if g.opset < 11:
        return None
    x = converted(g, g.numeric(), UINT8)
    return g.add("BitShift", [x, g.const(np.array(g.rng.randint(0, 3), np.uint8))], direction=g.rng.choice(["LEFT", "RIGHT"]))


@template(1)
def other_integers(g):
    """Arithmetic on narrow integers, where it is defined."""
    x = converted(g, g.numeric(), g.rng.choice([INT8, UINT8, INT32]))
    if g.opset < 14 and g.values[x].dtype != INT32:
        return g.add("Identity", [x])
    return g.add(g.rng.choice(["Add", "Sub", "Mul"]), swapped(g, x, broadcastable(g, g.values[x])))


@template(1)
def real_remainder(g):
    if g.opset < 10:
        return None
    x = g.dtype(g.rng.choice([FLOAT, DOUBLE]))
    return g.add("Mod", [x, g.const(np.array(g.rng.choice([2, 3, -2]), g.values[x].dtype))], fmod=1)


@template(1)
def power(g):
    x = g.dtype(g.rng.choice([FLOAT, FLOAT, INT64, INT32]))
    exponent = g.const(np.array(g.rng.choice([0, 1, 2, 3]), g.rng.choice([FLOAT, INT64, INT32]) if g.opset >= 12 else g.values[x].dtype))
    return g.add("Pow", [x, exponent])


@template(1)
def quantized(g):
    if g.opset < 11:
        return None
    way = g.rng.randrange(5)
    if way == 0:
        return g.add("DynamicQuantizeLinear", [g.dtype(FLOAT)], 3)
    x = converted(g, g.numeric(least=2 if way != 3 else 0, accept=lambda v: v.size > 0), UINT8)
    v = g.values[x]
    scale, zero = g.const(np.array(0.5, FLOAT)), g.const(np.array(g.rng.choice([0, 2]), np.uint8))
    if way == 3:
        return g.add("DequantizeLinear", [x, scale, zero])
    w = g.const(np.ones((v.shape[-1], g.rng.randint(1, 3)), np.uint8))
    if way == 1:
        return g.add("MatMulInteger", [x, w] + ([zero] if g.chance(0.5) else []))
    if way == 2:
        return g.add("QLinearMatMul", [x, scale, zero, w, scale, zero, scale, zero])
    if v.ndim < 3:
        return None
    kernel = [g.rng.choice([1, 2]) for _ in range(v.ndim - 2)]
    filters = g.const(np.ones((2, v.shape[1], *kernel), np.uint8))
    return g.add("ConvInteger", [x, filters, zero], pads=[g.rng.choice([0, 1]) for _ in range(2 * (v.ndim - 2))])


@template(1)
def quantized_axis(g):
    """Scales along an axis, and 8-bit results of other types."""
    if g.opset < 13:
        return None
    x = g.dtype(FLOAT, least=1)
    axis = g.axis(g.values[x])
    n = g.values[x].shape[axis]
    zero = g.const(np.zeros(n, g.rng.choice([np.int8, np.uint8])))
    scale = g.const(np.full(n, 0.5, FLOAT))
    y = g.add("QuantizeLinear", [x, scale, zero], axis=axis)
    return g.add("DequantizeLinear", [y, scale, zero], axis=axis)


# Element-wise

@template(2)
def more_unary(g):
    x = g.dtype(FLOAT)
    names = ["Softsign", "Sinh", "Cosh", "Tan", "Atan", "Asinh", "Celu", "Shrink", "Swish"]
    name = g.rng.choice(names)
    if name == "Celu" and g.opset < 12 or name == "Swish" and g.opset < 24:
        return None
    return g.add(name, [x])


@template(1)
def many_operands(g):
    x = g.dtype(FLOAT)
    return g.add(g.rng.choice(["Sum", "Mean", "Max", "Min"]), [x] + [broadcastable(g, g.values[x]) for _ in range(g.rng.randint(0, 3))])


@template(3)
def running(g):
    if g.opset < 26:
        return None
    x = g.numeric(least=1)
    axis = g.const(np.array(g.axis(g.values[x]), g.rng.choice([INT64, INT32])))
    return g.add("CumProd", [x, axis], exclusive=g.rng.choice([None, 1]), reverse=g.rng.choice([None, 1]))


@template(1)
def logarithm_reductions(g):
    x = g.dtype(FLOAT)
    name = "Reduce" + g.rng.choice(["LogSum", "LogSumExp", "L1", "L2", "SumSquare"])
    axes = None if g.chance(0.3) or not g.values[x].ndim else g.axes(g.values[x])
    if g.opset < 18:
        return g.add(name, [x], axes=axes, keepdims=g.rng.choice([None, 0, 1]))
    return g.add(name, [x] if axes is None else [x, g.vector(axes, 1)], keepdims=g.rng.choice([None, 0, 1]))


# Images

@template(2)
def grid(g):
    if g.opset < 16:
        return None
    x = of_rank(g, 4)
    n = g.values[x].shape[0]
    if g.opset >= 20 and g.chance(0.6):
        theta = g.const(np.tile(np.array([[1, 0, 0], [0, 1, 0]], FLOAT), (n, 1, 1)))
        places = g.add("AffineGrid", [theta, g.vector([n, g.rng.randint(1, 3), g.rng.randint(1, 4), g.rng.randint(1, 4)])],
                       align_corners=g.rng.choice([None, 1]))
    else:
        places = g.pick(lambda v: v.dtype == FLOAT and v.ndim == 4 and v.shape[0] == n and v.shape[3] == 2)
    return g.add("GridSample", [x, places], padding_mode=g.rng.choice(["zeros", "border"]), align_corners=g.rng.choice([None, 1]))


@template(1)
def regions(g):
    x = of_rank(g, 4)
    count = g.rng.randint(0, 3)
    if g.chance(0.4):
        rois = g.const(np.tile(np.array([[0, 0, 0, 1, 1]], FLOAT), (count, 1)))
        return g.add("MaxRoiPool", [x, rois], pooled_shape=[g.rng.randint(1, 3), g.rng.randint(1, 3)])
    if g.opset < 10:
        return None
    rois = g.const(np.tile(np.array([[0, 0, 1, 1]], FLOAT), (count, 1)))
    return g.add("RoiAlign", [x, rois, g.const(np.zeros(count, np.int64))], output_height=g.rng.choice([None, 2]), output_width=g.rng.choice([None, 3]))


@template(2)
def center(g):
    if g.opset < 18:
        return None
    x = tensor(g, 1)
    v = g.values[x]
    axes = sorted(g.rng.sample(range(v.ndim), g.rng.randint(1, v.ndim)))
    sizes = [max(0, v.shape[axis] + g.rng.choice([-2, -1, 0, 1, 3])) for axis in axes]
    if len(axes) == v.ndim and g.chance(0.5):
        return g.add("CenterCropPad", [x, g.vector(sizes)])
    return g.add("CenterCropPad", [x, g.vector(sizes)], axes=[axis - v.ndim if g.chance(0.3) else axis for axis in axes])


@template(1)
def columns(g):
    if g.opset < 18:
        return None
    block = [g.rng.randint(1, 2), g.rng.randint(1, 2)]
    sizes = [g.rng.randint(2, 4), g.rng.randint(2, 4)]
    places = (sizes[0] - block[0] + 1) * (sizes[1] - block[1] + 1)
    x = of_rank(g, 3, accept=lambda v: v.shape[1] % (block[0] * block[1]) == 0 and v.shape[2] == places)
    return g.add("Col2Im", [x, g.vector(sizes), g.ints(*block)])


@template(1)
def unpool(g):
    x = of_rank(g, 4)
    y, indices = g.add("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2])
    if g.opset < 9:
        return None
    size = [g.add("Shape", [x])] if g.chance(0.5) else []
    return g.add("MaxUnpool", [y, indices, *size], kernel_shape=[2, 2], strides=[2, 2])


@template(2)
def transposed_conv(g):
    """With output_padding, output_shape, dilations and every auto_pad."""
    x = image(g)
    v = g.values[x]
    spatial = v.ndim - 2
    kernel = [g.rng.choice([1, 2, 3]) for _ in range(spatial)]
    attributes = {"strides": [g.rng.choice([1, 2, 3]) for _ in range(spatial)]}
    how = g.rng.randrange(4)
    if how == 0:
        attributes["auto_pad"] = g.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif how == 1:
        attributes["pads"] = [g.rng.choice([0, 0, 1]) for _ in range(2 * spatial)]
    elif how == 2 and g.opset >= 11:
        attributes["output_shape"] = [max(1, (d - 1) * s + k + g.rng.choice([0, 0, 1])) for d, s, k in zip(v.shape[2:], attributes["strides"], kernel)]
    if g.chance(0.3):
        attributes["dilations"] = [g.rng.choice([1, 2]) for _ in range(spatial)]
    weights = g.const(np.ones((v.shape[1], g.rng.choice([1, 2]), *kernel), FLOAT))
    return g.add("ConvTranspose", [x, weights], **attributes)


# Signals

@template(2)
def signal(g):
    if g.opset < 17:
        return None
    way = g.rng.randrange(4)
    if way == 0:
        return g.add(g.rng.choice(["HannWindow", "HammingWindow", "BlackmanWindow"]), [g.scalar(g.rng.randint(1, 8))], periodic=g.rng.choice([None, 0, 1]))
    if way == 1:
        numbers = [g.const(np.array(4, np.int64)), g.scalar(g.rng.randint(4, 9)), g.const(np.array(8192, np.int64))]
        return g.add("MelWeightMatrix", [*numbers, g.const(np.array(0, FLOAT)), g.const(np.array(4000, FLOAT))])
    if way == 2:
        x = g.dtype(FLOAT, least=2, accept=lambda v: v.shape[-1] in (1, 2))
        inverse, one = g.rng.choice([(0, 0), (0, 0), (0, 1), (1, 0)])
        v = g.values[x]
        axis = g.rng.randrange(v.ndim - 1)
        length = [g.scalar(max(1, v.shape[axis] + g.rng.choice([-1, 0, 2])))] if g.chance(0.4) else []
        if g.opset < 20:
            return g.add("DFT", [x, *length], axis=axis, onesided=one or None, inverse=inverse or None)
        return g.add("DFT", [x, *(length or [""]), g.const(np.array(axis, np.int64))], onesided=one or None, inverse=inverse or None)
    x = of_rank(g, 3, accept=lambda v: v.shape[2] == 1 and v.shape[1] > 2)
    frame = g.rng.randint(1, g.values[x].shape[1])
    return g.add("STFT", [x, g.scalar(g.rng.randint(1, 3)), "", g.scalar(frame)], onesided=g.rng.choice([None, 0, 1]))


# Classes

@template(1)
def loss(g):
    if g.opset < 12:
        return None
    x = g.dtype(FLOAT, least=2)
    v = g.values[x]
    labels = g.const(np.zeros([v.shape[0], *v.shape[2:]], np.int64)) if g.chance(0.6) else g.dtype(
        INT64, accept=lambda w: w.shape == (v.shape[0], *v.shape[2:]))
    reduction = g.rng.choice([None, "none", "sum", "mean"])
    if g.chance(0.5):
        return g.add("NegativeLogLikelihoodLoss", [x, labels], reduction=reduction)
    return g.add("SoftmaxCrossEntropyLoss", [x, labels], g.rng.choice([1, 2]), reduction=reduction)


@template(1)
def determinant(g):
    if g.opset < 11:
        return None
    return g.add("Det", [g.dtype(FLOAT, least=2, accept=lambda v: v.shape[-1] == v.shape[-2])])


@template(6)
def attention(g):
    if g.opset < 23:
        return None
    x = of_rank(g, 4)
    b, h, _, d = g.values[x].shape
    other = of_rank(g, 4, accept=lambda v: v.shape[:2] == (b, h) and v.shape[3] == d and v.shape[2] > 0)
    if g.chance(0.3) and d % 2 == 0:
        table = g.const(np.ones((16, d // 2), FLOAT))
        places = g.const(np.zeros((b, g.values[x].shape[2]), np.int64))
        return g.add("RotaryEmbedding", [x, table, table, places])
    if g.chance(0.3):
        # Heads are packed into the last axis.
        y = of_rank(g, 3, accept=lambda v: v.shape[2] % 2 == 0 and v.shape[2] > 0)
        return g.add("Attention", [y, y, y], q_num_heads=2, kv_num_heads=2, is_causal=g.rng.choice([None, 1]))
    return g.add("Attention", [x, other, other], is_causal=g.rng.choice([None, 1]))


@template(3)
def cache(g):
    if g.opset < 24:
        return None
    x = of_rank(g, 4)
    v = g.values[x]
    update = g.const(np.ones((v.shape[0], v.shape[1], 1, v.shape[3]), FLOAT))
    return g.add("TensorScatter", [x, update, g.const(np.zeros(v.shape[0], np.int64))], mode=g.rng.choice([None, "linear", "circular"]))


# Strings

@template(1)
def strings(g):
    found = [name for name, v in g.values.items() if not isinstance(v, list) and v.dtype == STRING]
    if not found or g.chance(0.3):
        if g.opset < 9:
            return None
        return g.add("Cast", [g.dtype(g.rng.choice([INT64, INT32]))], to=TensorProto.STRING)
    x = g.rng.choice(found)
    way = g.rng.randrange(7)
    if way == 0 and g.opset >= 20:
        return g.add("StringConcat", [x, g.const(np.array(["-"], object))])
    if way == 1 and g.opset >= 20:
        return g.add("StringSplit", [x], 2, delimiter=g.rng.choice([None, "1"]), maxsplit=g.rng.choice([None, 1]))
    if way == 2 and g.opset >= 20:
        return g.add("RegexFullMatch", [x], pattern="[0-9]+")
    if way == 3:
        return g.add("Cast", [x], to=g.rng.choice([TensorProto.FLOAT, TensorProto.INT64]))
    if way == 4:
        return g.add("Unsqueeze" if g.opset < 13 else "Identity", [x], axes=[0] if g.opset < 13 else None)
    if way == 5:
        keys = {"keys_strings": ["0", "1"], "values_int64s": [7, 8]}
        return g.add("LabelEncoder", [x], domain="ai.onnx.ml", **keys)
    return g.add("StringNormalizer", [x], case_change_action=g.rng.choice(["UPPER", "NONE"]), stopwords=["1"] if g.chance(0.5) else None) if g.opset >= 10 else None


@template(2)
def machine_learning(g):
    x = g.dtype(g.rng.choice([FLOAT, FLOAT, INT64]), least=1)
    v = g.values[x]
    way = g.rng.randrange(7)
    n = v.shape[-1]
    if way == 0:
        return g.add("ArrayFeatureExtractor", [x, g.const(np.array([g.rng.randrange(n) for _ in range(g.rng.randint(1, 3))], np.int64))], domain="ai.onnx.ml")
    if way == 1:
        return g.add("Binarizer", [x], domain="ai.onnx.ml", threshold=0.5)
    if way == 2:
        return g.add("Scaler", [x], domain="ai.onnx.ml", offset=[1.0] * n, scale=[2.0] * n)
    if way == 3:
        return g.add("Normalizer", [x], domain="ai.onnx.ml", norm=g.rng.choice(["MAX", "L1", "L2"]))
    if way == 4:
        return g.add("LabelEncoder", [g.dtype(INT64)], domain="ai.onnx.ml", keys_int64s=[0, 1, 2], values_int64s=[5, 6, 7])
    if way == 5:
        return g.add("OneHotEncoder", [g.dtype(INT64)], domain="ai.onnx.ml", cats_int64s=[0, 1, 2], zeros=1)
    return g.add("LinearRegressor", [g.dtype(FLOAT, rank=2)], domain="ai.onnx.ml", coefficients=[1.0] * (2 * n), intercepts=[0.0, 0.0], targets=2)


@template(2)
def microsoft(g):
    where = {"domain": "com.microsoft"}
    x = g.dtype(FLOAT, least=1)
    v = g.values[x]
    way = g.rng.randrange(10)
    if way == 0:
        return g.add(g.rng.choice(["Gelu", "QuickGelu", "FastGelu"]), [x], **where)
    if way == 1:
        return g.add("BiasGelu", [x, g.const(np.ones(v.shape[-1], FLOAT))], **where)
    if way == 2:
        other = g.pick(lambda w: w.dtype == FLOAT and w.ndim >= 2 and v.ndim >= 2)
        return g.add("FusedMatMul", [x, other], transA=g.rng.choice([0, 1]), transB=g.rng.choice([0, 1]), **where)
    if way == 3:
        return g.add("ExpandDims", [x, g.const(np.array(g.rng.randint(-v.ndim - 1, v.ndim), np.int32))], **where)
    if way == 4:
        return g.add("Unique", [g.dtype(FLOAT, rank=1)], 3, **where)
    if way == 5:
        return g.add("CDist", [g.dtype(FLOAT, rank=2), g.dtype(FLOAT, rank=2)], metric="euclidean", **where)
    if way == 6:
        return g.add("Range", [g.scalar(g.rng.randint(-1, 2)), g.scalar(g.rng.randint(0, 6))] + ([g.scalar(g.rng.randint(1, 3))] if g.chance(0.5) else []), **where)
    if way == 7:
        return g.add("Pad", [x, g.vector([g.rng.choice([0, 1, 2]) for _ in range(2 * v.ndim)])], mode="constant", **where)
    if way == 8:
        ones = g.const(np.ones(v.shape[-1], FLOAT))
        return g.add("SkipLayerNormalization", [x, x, ones, ones], **where)
    return g.add("Trilu", [g.dtype(FLOAT, least=2)], **where)


# Containers

@template(1)
def optionals(g):
    if g.opset < 18:
        return None
    x = g.numeric()
    inside, there, got = g.name(), g.name(), g.name()
    nodes = [helper.make_node("Optional", [x], [inside]), helper.make_node("OptionalHasElement", [inside], [there]),
             helper.make_node("OptionalGetElement", [inside], [got])]
    return g.add_all(nodes, [there, got])


@template(1)
def sequence_map(g):
    if g.opset < 17:
        return None
    s = sequence(g)
    items = g.values[s]
    inner = Growth(g.rng, g.opset, g)
    row = inner.define(inner.name(), items[0])
    from random_nodes import TEMPLATES, WEIGHTS, value_type
    from random_graphs import grow
    if g.depth < 2:
        grow(inner, g.rng.randint(1, 3), TEMPLATES, WEIGHTS)
    result = inner.add("Identity", [inner.pick(lambda w: w.dtype in (FLOAT, INT64))])
    graph = graph_of(inner, inner.name("b"), [value_type(row, items[0])], [result])
    return g.add("SequenceMap", [s], body=graph)


@template(1)
def grown_sequence(g):
    """A sequence that a loop grows, put together behind it."""
    if g.opset < 13 or g.depth:
        return None
    x = g.dtype(FLOAT, least=1)
    v = g.values[x]
    empty = g.add("SequenceEmpty", [], dtype=TensorProto.FLOAT)
    inner = Growth(g.rng, g.opset, g)
    iteration, going, state = inner.define(inner.name(), np.array(0, np.int64)), inner.define(inner.name(), np.array(True)), inner.define(inner.name(), [v])
    row = x if g.chance(0.5) else inner.add("Mul", [x, x])
    after = inner.add("SequenceInsert", [state, row])
    go = inner.add("Identity", [going])
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    inputs = [helper.make_tensor_value_info(iteration, TensorProto.INT64, []), helper.make_tensor_value_info(going, TensorProto.BOOL, []),
              helper.make_value_info(state, kind)]
    graph = helper.make_graph(inner.nodes, inner.name("b"), inputs, [helper.make_tensor_value_info(go, TensorProto.BOOL, []), helper.make_value_info(after, kind)])
    s = g.add("Loop", [g.scalar(g.rng.randint(1, 3)), g.const(np.array(True)), empty], body=graph)
    return g.add("ConcatFromSequence", [s], axis=g.rng.randrange(v.ndim), new_axis=g.rng.choice([None, 1]))


# Bodies in other forms

@template(2)
def wide_scan(g):
    """Several operands scanned, along several axes, each way."""
    if g.opset < 9:
        return None
    x = g.numeric(least=1)
    v = g.values[x]
    axis = g.axis(v)
    n = v.shape[axis]
    if n == 0:
        return None
    y = g.pick(lambda w: w.ndim and n in w.shape and w.dtype in (FLOAT, INT64))
    w = g.values[y]
    other = list(w.shape).index(n)
    states = [g.numeric() for _ in range(g.rng.choice([0, 1, 2]))]
    inner = Growth(g.rng, g.opset, g)
    inside = [inner.define(inner.name(), g.values[state]) for state in states]
    rows = [inner.define(inner.name(), np.asarray(np.take(v, 0, axis))), inner.define(inner.name(), np.asarray(np.take(w, 0, other)))]
    from random_nodes import TEMPLATES, WEIGHTS, value_type
    from random_graphs import grow
    if g.depth < 2:
        grow(inner, g.rng.randint(1, 4), TEMPLATES, WEIGHTS)
    # Inside a body ONNX Runtime does not see that a state changes its shape, which nothing allows.
    fits = lambda s: lambda u: u.dtype == inner.values[s].dtype and u.shape == inner.values[s].shape  # noqa: E731
    outputs = [inner.add("Identity", [name if g.depth else inner.pick(fits(name))]) for name in inside]
    scanned = [inner.numeric() for _ in range(g.rng.choice([1, 2]))]
    outputs += [inner.add("Identity", [name]) for name in scanned]
    graph = graph_of(inner, inner.name("b"), [value_type(name, inner.values[name]) for name in [*inside, *rows]], outputs, g.chance(0.8))
    axes = [g.rng.choice([0, 0, inner.values[name].ndim, -1]) for name in scanned]
    return g.add("Scan", [*states, x, y], len(outputs), body=graph, num_scan_inputs=2, scan_input_axes=[axis, other],
                 scan_input_directions=[g.rng.choice([0, 1]) for _ in range(2)] if g.chance(0.5) else None, scan_output_axes=axes)


@template(2)
def branch_on_rank(g):
    """Branches of different ranks, or one that gives a sequence."""
    if g.opset < 13:
        return None
    chosen = g.add("Equal", [g.scalar(g.rng.randint(0, 4)), g.scalar(g.rng.randint(0, 4))])
    x = g.numeric()
    graphs = []
    for _ in range(2):
        inner = body(g, g.rng.randint(0, 2))
        y = inner.pick(lambda w: w.dtype == g.values[x].dtype)
        result = inner.add("SequenceConstruct", [y]) if len(graphs) == 2 else inner.add("Identity", [y])
        graphs.append(graph_of(inner, inner.name("b"), [], [result]))
    return g.add("If", [chosen], then_branch=graphs[0], else_branch=graphs[1])


@template(1)
def searching_loop(g):
    """Goes on until data say so; its state grows or shrinks."""
    x = g.dtype(FLOAT, least=1)
    v = g.values[x]
    if g.depth or g.opset < 11:
        return None
    inner = Growth(g.rng, g.opset, g)
    iteration, going = inner.define(inner.name(), np.array(0, np.int64)), inner.define(inner.name(), np.array(True))
    state = inner.define(inner.name(), v)
    grows = g.chance(0.5)
    after = (inner.add("Concat", [state, x], axis=0) if grows
             else inner.add("Slice", [state, inner.ints(1), inner.ints(2**63 - 1), inner.ints(0)]))
    total = inner.add("ReduceMax", [x], keepdims=0)
    go = inner.add("Less", [inner.add("Cast", [iteration], to=TensorProto.FLOAT), total])
    inputs = [helper.make_tensor_value_info(iteration, TensorProto.INT64, []), helper.make_tensor_value_info(going, TensorProto.BOOL, []),
              helper.make_tensor_value_info(state, TensorProto.FLOAT, [None] * v.ndim)]
    graph = graph_of(inner, inner.name("b"), inputs, [go, after])
    return g.add("Loop", [g.scalar(g.rng.randint(0, 3)), "", x], body=graph)


@template(1)
def half_floats(g):
    x = g.dtype(HALF)
    return g.add("Cast", [g.add(g.rng.choice(["Abs", "Neg", "Identity"]), [x])], to=TensorProto.FLOAT)


@template(1)
def mask_of(g):
    """Where something is, as a mask and as an index."""
    x = g.dtype(BOOL, least=1)
    v = g.values[x]
    return g.add("Where", [x, g.const(np.ones(v.shape, FLOAT) if g.chance(0.3) else np.array(1, FLOAT)), g.const(np.array(0, FLOAT))]) if g.opset >= 9 else None
