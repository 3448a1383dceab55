"""Random short graphs in every element type: the generator of `fuzz_numbers.py`.

Each node runs alone in ONNX Runtime on its operands' contents for the guide sizes, and is dropped if it fails.
"""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FLOATS = [np.float32, np.float32, np.float32, np.float64, np.float16]
WHOLE = [np.int64, np.int64, np.int32, np.int32, np.uint8, np.int8, np.int16, np.uint16, np.uint32, np.uint64]
EXTREME = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e-40, -1e-45, 1e30, 1e-30, 65504.0, 16777217.0, 0.5, -1.5, 2.5]
NEUTRAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, float("inf"), float("-inf"), float("nan"), 6.0]
GUIDE = {"S": 2, "T": 3, "batch": 1}
MOST = 600

onnxruntime.set_default_logger_severity(4)


class Rejected(Exception):
    """A node that does not run."""


def drawn(rng, dtype, shape, wild):
    """A tensor of a type; wild ones hold the numbers at which arithmetic breaks."""
    dtype, count = np.dtype(dtype), int(np.prod(shape, dtype=int))
    if dtype == np.bool_:
        return np.array([rng.random() < 0.5 for _ in range(count)], bool).reshape(shape)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        ends = [limits.min, limits.max, limits.min + 1, limits.max // 2, limits.max // 3, 50000 % (limits.max + 1), -1 if limits.min else 1]
        low = -3 if limits.min else 0
        numbers = [rng.choice(ends) if wild and rng.random() < 0.4 else rng.randrange(low, 5) for _ in range(count)]
        return np.array(numbers, dtype).reshape(shape)
    numbers = [rng.choice(EXTREME) if wild and rng.random() < 0.3 else rng.gauss(0, 2) for _ in range(count)]
    with np.errstate(all="ignore"):
        return np.array(numbers, np.float64).astype(dtype).reshape(shape)


def feeds_for(model, sizes, rng, wild):
    """Inputs of a model; one with a default is given half the time."""
    feeds, held = {}, {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        given = value.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else sizes[dim.dim_param] for dim in given.shape.dim]
        array = drawn(rng, helper.tensor_dtype_to_np_dtype(given.elem_type), shape, wild)
        if value.name.startswith("trip"):
            array = np.array(rng.randrange(3), np.int64)
        if value.name not in held or rng.random() < 0.5:
            feeds[value.name] = array
    return feeds


class Chain:
    """A graph that grows; beside each value stands what it is at the guide sizes."""

    def __init__(self, rng):
        self.rng, self.values, self.nodes, self.inputs, self.constants = rng, {}, [], [], []
        self.opset = rng.choice([8, 9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24])
        self.style = rng.random()
        self.main = rng.choice(FLOATS + WHOLE)
        for _ in range(rng.randrange(1, 4)):
            dtype = self.main if rng.random() < 0.7 else rng.choice(FLOATS + WHOLE + [np.bool_])
            dims = [rng.choice([0, 1, 1, 2, 3, 4, "S", "S", "T", "batch"]) for _ in range(rng.choice([0, 1, 2, 2, 3, 3, 4]))]
            self.input(dtype, dims)

    def name(self):
        number = len(self.values) + len(self.nodes)
        # Names with a common prefix, and names as programs generate them.
        return "x" * (number + 1) if self.style < 0.1 else f"v_{number}" if self.style < 0.2 else f"v{number}"

    def input(self, dtype, dims, stem=""):
        name = stem + self.name()
        shape = [GUIDE.get(dim, dim) for dim in dims]
        self.values[name] = drawn(self.rng, dtype, shape, False)
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims))
        return name

    def constant(self, array):
        array = np.asarray(array)
        name = self.name()
        self.values[name] = array
        if self.rng.random() < 0.3:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            self.constants.append(numpy_helper.from_array(array, name))
            if self.rng.random() < 0.04:
                kind = helper.np_dtype_to_tensor_dtype(array.dtype)
                self.inputs.append(helper.make_tensor_value_info(name, kind, list(array.shape)))
        return name

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def pick(self, accept=lambda value: True):
        found = [name for name, value in self.values.items() if accept(value)]
        if not found:
            raise Rejected
        # Prefers later values, so that chains grow.
        return found[-1 - min(int(self.rng.expovariate(0.6)), len(found) - 1)]

    def floating(self, least=0):
        return self.pick(lambda value: value.dtype.kind == "f" and value.ndim >= least)

    def some(self, least=0):
        return self.pick(lambda value: value.ndim >= least)

    def like(self, name):
        """An operand for a binary operator beside a value: another of its type, itself, or a constant."""
        value, draw = self.values[name], self.rng.random()
        if draw < 0.12:
            return name
        if draw < 0.35:
            return self.pick(lambda other: other.dtype == value.dtype)
        shape = [dim if self.rng.random() < 0.5 else 1 for dim in value.shape[self.rng.randrange(value.ndim + 1) :]]
        if self.rng.random() < 0.3:
            shape = []
        if self.rng.random() < 0.6:
            number = self.rng.choice(NEUTRAL if value.dtype.kind == "f" else [0, 1, 1, 2, 3, 255, -1, 127])
            with np.errstate(all="ignore"):
                number = np.array(number).astype(value.dtype) if value.dtype.kind != "b" else bool(number)
                return self.constant(np.full(shape, number, value.dtype))
        return self.constant(drawn(self.rng, value.dtype, shape, self.rng.random() < 0.3))

    def node(self, operator, inputs, outputs=1, **attributes):
        names = [f"{self.name()}o{at}" if at else f"{self.name()}n" for at in range(outputs)]
        made = helper.make_node(operator, inputs, names, **attributes)
        results = self.alone([made], [name for name in inputs if name])
        self.nodes.append(made)
        self.values.update(zip(names, results))
        return names[0]

    def alone(self, nodes, reads):
        reads = list(dict.fromkeys(reads))
        given = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(self.values[name].dtype), self.values[name].shape) for name in reads]
        results = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
        model = self.model(helper.make_graph(nodes, "g", given, results))
        try:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            options.intra_op_num_threads = 1
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            opened = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            found = opened.run(None, {name: self.values[name] for name in reads})
        except Exception as error:  # noqa: BLE001
            raise Rejected(str(error)) from None
        if any(not isinstance(array, np.ndarray) or array.size > MOST for array in found):
            raise Rejected
        return found

    def model(self, graph):
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8 if self.opset < 20 else 10)

    def grow(self, wanted):
        for _ in range(wanted * 3):
            if len(self.nodes) >= wanted + 6:
                break
            before = len(self.nodes), len(self.constants), len(self.inputs), dict(self.values)
            template = self.rng.choices(TEMPLATES, WEIGHTS)[0]
            try:
                template(self)
            except (Rejected, ValueError, IndexError, OverflowError, TypeError, KeyError, ZeroDivisionError):
                self.nodes, self.constants = self.nodes[: before[0]], self.constants[: before[1]]
                self.inputs, self.values = self.inputs[: before[2]], before[3]

    def finish(self):
        made = [name for node in self.nodes for name in node.output if name]
        read = {name for node in self.nodes for name in node.input}
        outputs = [name for name in made if name not in read and self.rng.random() < 0.9]
        outputs += [name for name in made if name in read and self.rng.random() < 0.08]
        if self.rng.random() < 0.1:
            outputs.append(self.rng.choice([value.name for value in self.inputs]))
        if self.constants and self.rng.random() < 0.1:
            outputs.append(self.rng.choice(self.constants).name)
        outputs = list(dict.fromkeys(outputs)) or list(self.values)[-1:]
        kind = lambda name: helper.np_dtype_to_tensor_dtype(self.values[name].dtype)  # noqa: E731
        results = [helper.make_tensor_value_info(name, kind(name), None) for name in outputs]
        return self.model(helper.make_graph(self.nodes, "g", self.inputs, results, self.constants))

    def rounds(self):
        yield dict(GUIDE), False
        yield dict(GUIDE), True
        yield {name: self.rng.choice([0, 1, 1, 2, 3, 5]) for name in GUIDE}, False
        yield {name: self.rng.choice([0, 0, 1, 4]) for name in GUIDE}, True
        yield dict.fromkeys(GUIDE, 1), True
        yield dict(GUIDE, S=5, T=5), True


def arithmetic(g):
    a = g.some()
    b = g.like(a)
    if g.rng.random() < 0.4:
        a, b = b, a
    g.node(g.rng.choice(["Add", "Sub", "Mul", "Div", "Add", "Mul", "Max", "Min", "Mod", "Pow", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr"]), [a, b])


def several(g):
    a = g.some()
    g.node(g.rng.choice(["Max", "Min", "Sum", "Mean"]), [a, g.like(a), g.like(a)][: g.rng.randrange(1, 4)])


def compare(g):
    a = g.some()
    pair = [a, g.like(a)]
    g.rng.shuffle(pair)
    g.node(g.rng.choice(["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"]), pair)


def where(g):
    condition = g.pick(lambda value: value.dtype == np.bool_)
    a = g.some()
    pair = [a, g.like(a)]
    g.rng.shuffle(pair)
    g.node("Where", [condition, *pair])


UNARY = "Relu Sigmoid Tanh Exp Log Sqrt Abs Neg Ceil Floor Round Sign Erf Softplus Softsign Reciprocal Sin Cos Not Identity Identity IsNaN IsInf HardSwish Elu Selu LeakyRelu HardSigmoid Gelu Mish Swish BitwiseNot Relu Abs Neg"


def unary(g):
    g.node(g.rng.choice(UNARY.split()), [g.some()])


def clip(g):
    a = g.some()
    dtype = g.values[a].dtype
    bounds = sorted(g.rng.choice([0, 1, 6, -1, 3]) for _ in range(2))
    if g.rng.random() < 0.1:
        bounds.reverse()
    if g.opset < 11:
        g.node("Clip", [a], min=float(bounds[0]), max=float(bounds[1]))
        return
    made = []
    for bound in bounds:
        number = np.array(max(bound, 0) if dtype.kind == "u" else bound, dtype)
        if dtype.kind == "f" and g.rng.random() < 0.15:
            number = np.array(g.rng.choice([np.nan, np.inf, -np.inf, -0.0]), dtype)
        made.append("" if g.rng.random() < 0.25 else g.constant(number))
    g.node("Clip", [a, *made])


def cast(g):
    to = g.rng.choice(FLOATS + WHOLE + [np.bool_])
    g.node("Cast", [g.some()], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def cast_back(g):
    a = g.some()
    own = g.values[a].dtype
    g.node("Cast", [a], to=helper.np_dtype_to_tensor_dtype(np.dtype(g.rng.choice(FLOATS + WHOLE + [np.bool_]))))
    middle = g.nodes[-1].output[0]
    if g.rng.random() < 0.5:
        middle = g.node(g.rng.choice(["Abs", "Neg", "Relu", "Identity", "Floor", "Ceil"]), [middle])
    elif g.rng.random() < 0.6:
        middle = g.node("Transpose", [middle])
    g.node("Cast", [middle], to=helper.np_dtype_to_tensor_dtype(own))


def slice_(g):
    a = g.some(1)
    rank = g.values[a].ndim
    axes = g.rng.sample(range(rank), g.rng.randrange(1, min(rank, 2) + 1))
    starts = [g.rng.choice([0, 0, 1, -1, -2, 2, 5, -(2**63), 2**63 - 1]) for _ in axes]
    ends = [g.rng.choice([1, 2, -1, 3, 2**63 - 1, 2**63 - 1, 2**31 - 1, 0, -(2**63), 100]) for _ in axes]
    if g.opset < 10:
        g.node("Slice", [a], starts=starts, ends=ends, axes=axes)
        return
    steps = [g.rng.choice([1, 1, 1, 2, -1, -2, 3]) for _ in axes]
    if g.rng.random() < 0.2:
        axes = [axis - rank for axis in axes]
    operands = [a, g.ints(*starts), g.ints(*ends), g.ints(*axes)]
    if g.rng.random() < 0.7:
        operands.append(g.ints(*steps))
    if axes == list(range(rank)) and g.rng.random() < 0.5:
        operands[3] = ""
    while not operands[-1]:
        operands.pop()
    g.node("Slice", operands)


def slice_computed(g):
    """A Slice whose end is a size of this tensor or another."""
    a, b = g.some(1), g.some(1)
    if g.opset < 13:
        raise Rejected
    size = g.node("Gather", [g.node("Shape", [b]), g.ints(g.rng.randrange(g.values[b].ndim))])
    if g.rng.random() < 0.5:
        size = g.node(g.rng.choice(["Add", "Sub", "Mul", "Div", "Min", "Max"]), [size, g.ints(g.rng.choice([1, 2, -1, 0, 3]))])
    axis = g.rng.randrange(g.values[a].ndim)
    bounds = [g.ints(g.rng.choice([0, 1, -1])), size]
    if g.rng.random() < 0.3:
        bounds.reverse()
    g.node("Slice", [a, *bounds, g.ints(axis)])


def concat(g):
    a = g.some(1)
    parts = [a]
    for _ in range(g.rng.randrange(0, 3)):
        value = g.values[a]
        parts.append(g.pick(lambda other: other.dtype == value.dtype and other.ndim == value.ndim) if g.rng.random() < 0.7 else a)
    g.rng.shuffle(parts)
    g.node("Concat", parts, axis=g.rng.randrange(-1, g.values[a].ndim))


def split(g):
    a = g.some(1)
    axis = g.rng.randrange(g.values[a].ndim)
    size = g.values[a].shape[axis]
    cuts = sorted(g.rng.randrange(size + 1) for _ in range(g.rng.choice([1, 1, 2])))
    sizes = [b - c for b, c in zip([*cuts, size], [0, *cuts])]
    if g.opset < 13:
        g.node("Split", [a], outputs=len(sizes), axis=axis, split=sizes)
    else:
        g.node("Split", [a, g.ints(*sizes)], outputs=len(sizes), axis=axis)


def transpose(g):
    a = g.some()
    order = list(range(g.values[a].ndim))
    g.rng.shuffle(order)
    g.node("Transpose", [a], perm=order)


def reshape(g):
    a = g.some()
    shape = list(g.values[a].shape)
    choice = g.rng.random()
    if choice < 0.3:
        target = [-1]
    elif choice < 0.6 and len(shape) > 1:
        at = g.rng.randrange(len(shape) - 1)
        target = [0] * at + [-1] + [dim for dim in shape[at + 2 :]]
    elif choice < 0.8:
        target = [dim if g.rng.random() < 0.5 else 0 for dim in shape]
        target.insert(g.rng.randrange(len(target) + 1), 1)
    else:
        target = shape[::-1]
        if target:
            target[g.rng.randrange(len(target))] = -1
    attributes = {"allowzero": 1} if g.opset >= 14 and g.rng.random() < 0.15 else {}
    g.node("Reshape", [a, g.ints(*target)], **attributes)


def reshape_computed(g):
    """To the shape of another value, or to sizes that are put together."""
    a = g.some()
    if g.rng.random() < 0.4:
        g.node("Reshape", [a, g.node("Shape", [g.some()])])
        return
    parts = []
    for dim in range(min(g.values[a].ndim, 3)):
        if g.rng.random() < 0.5:
            parts.append(g.node("Gather", [g.node("Shape", [a]), g.ints(dim)]))
        else:
            parts.append(g.ints(g.rng.choice([-1, 0, 1, g.values[a].shape[dim]])))
    g.node("Reshape", [a, g.node("Concat", parts, axis=0)])


def squeeze(g):
    a = g.some()
    axes = [at for at, dim in enumerate(g.values[a].shape) if dim == 1]
    if g.rng.random() < 0.4 and axes:
        axes = [g.rng.choice(axes)]
        operator = "Squeeze"
    else:
        axes, operator = [g.rng.randrange(g.values[a].ndim + 1)], "Unsqueeze"
    if g.opset < 13:
        g.node(operator, [a], axes=axes)
    else:
        g.node(operator, [a, g.ints(*axes)])


def expand(g):
    a = g.some()
    shape = [g.rng.choice([dim, dim, 1, 3 if dim == 1 else dim]) for dim in g.values[a].shape]
    if g.rng.random() < 0.4:
        shape.insert(0, g.rng.choice([1, 2, 0]))
    target = g.node("Shape", [g.some()]) if g.rng.random() < 0.35 else g.ints(*shape)
    g.node("Expand", [a, target])


def gather(g):
    a = g.some(1)
    axis = g.rng.randrange(g.values[a].ndim)
    shape = g.rng.choice([[], [1], [2], [3], [1, 2], [0]])
    indices = np.array([g.rng.choice([0, 0, 1, -1, 2]) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)
    g.node("Gather", [a, g.constant(indices)], axis=axis)


def gather_elements(g):
    a = g.some(1)
    axis = g.rng.randrange(g.values[a].ndim)
    shape = [max(dim - g.rng.randrange(2), 0) for dim in g.values[a].shape]
    g.node("GatherElements", [a, g.constant(np.zeros(shape, np.int64))], axis=axis)


def pad(g):
    a = g.some(1)
    rank = g.values[a].ndim
    amounts = [g.rng.choice([0, 0, 0, 1, 2, -1]) for _ in range(2 * rank)]
    mode = g.rng.choice(["constant", "constant", "constant", "edge", "reflect"])
    dtype = g.values[a].dtype
    if g.opset < 11:
        g.node("Pad", [a], pads=amounts, mode=mode)
        return
    with np.errstate(all="ignore"):
        fill = np.array(g.rng.choice([0.0, 1.0, -0.0, np.inf])).astype(dtype)
    g.node("Pad", [a, g.ints(*amounts)] + ([g.constant(fill)] if g.rng.random() < 0.5 else []), mode=mode)


REDUCE = ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"]


def reduce(g):
    a = g.some()
    rank = g.values[a].ndim
    axes = g.rng.sample(range(-rank, 0), g.rng.randrange(min(rank, 2) + 1))
    operator, keep = g.rng.choice(REDUCE), g.rng.randrange(2)
    if g.opset >= (13 if operator == "ReduceSum" else 18):
        more = {"noop_with_empty_axes": g.rng.randrange(2)} if g.rng.random() < 0.3 else {}
        g.node(operator, [a, g.ints(*axes)] if axes or g.rng.random() < 0.5 else [a], keepdims=keep, **more)
    else:
        g.node(operator, [a], keepdims=keep, **({"axes": axes} if axes else {}))


def arg(g):
    a = g.some(1)
    g.node(g.rng.choice(["ArgMax", "ArgMin"]), [a], axis=g.rng.randrange(g.values[a].ndim), keepdims=g.rng.randrange(2))


def axis_function(g):
    a = g.floating(1)
    g.node(g.rng.choice(["Softmax", "LogSoftmax", "Hardmax", "LpNormalization"]), [a], axis=g.rng.randrange(g.values[a].ndim))


def cumsum(g):
    a = g.some(1)
    axis = g.constant(np.array(g.rng.randrange(g.values[a].ndim), np.int64))
    g.node("CumSum", [a, axis], exclusive=g.rng.randrange(2), reverse=g.rng.randrange(2))


def matmul(g):
    a = g.some(1)
    value = g.values[a]
    size = value.shape[-1]
    weight = g.constant(drawn(g.rng, value.dtype, [size, g.rng.choice([1, 2, 3])], g.rng.random() < 0.1))
    made = g.node("MatMul", [a, weight])
    affine(g, made)


def gemm(g):
    a = g.pick(lambda value: value.ndim == 2)
    value, turned = g.values[a], g.rng.randrange(2)
    inner, outer = value.shape[::-1] if not turned else value.shape
    shape, flip = [inner, g.rng.choice([1, 3])], g.rng.randrange(2)
    weight = g.constant(drawn(g.rng, value.dtype, shape[::-1] if flip else shape, False))
    bias = [g.constant(drawn(g.rng, value.dtype, g.rng.choice([[], [1], [shape[1]], [outer, shape[1]]]), False))] if g.rng.random() < 0.6 else []
    alpha, beta = g.rng.choice([1.0, 1.0, 0.5, 0.0, -1.0]), g.rng.choice([1.0, 1.0, 2.0, 0.0])
    affine(g, g.node("Gemm", [a, weight, *bias], transA=turned, transB=flip, alpha=alpha, beta=beta))


def affine(g, made):
    """A factor or a shift behind weights."""
    for _ in range(g.rng.randrange(3)):
        value = g.values[made]
        shape = g.rng.choice([[], [1], [value.shape[-1]] if value.ndim else [], [value.shape[1], 1, 1] if value.ndim == 4 else []])
        with np.errstate(all="ignore"):
            number = drawn(g.rng, value.dtype, shape, g.rng.random() < 0.1)
            if g.rng.random() < 0.2:
                number = np.full(shape, g.rng.choice([0.0, 1e-20, 1e20, 1e-4]), np.float64).astype(value.dtype)
        pair = [made, g.constant(number)]
        if g.rng.random() < 0.3:
            pair.reverse()
        made = g.node(g.rng.choice(["Mul", "Add", "Sub", "Div"]), pair)


def conv(g):
    dtype = g.main if np.dtype(g.main).kind == "f" else np.float32
    a = g.pick(lambda value: value.ndim in (3, 4) and value.dtype.kind == "f") if g.rng.random() < 0.7 else g.input(dtype, ["batch", 2, 5, 4])
    value = g.values[a]
    spatial = value.ndim - 2
    channels, group = value.shape[1], 1
    if not channels:
        # ONNX Runtime's float Conv never ends for zero channels.
        raise Rejected
    if g.rng.random() < 0.4:
        a = g.node("Pad", [a, g.ints(*([0, 0] + [1] * spatial) * 2)], mode="constant") if g.opset > 10 else a
    if g.rng.random() < 0.3 and channels:
        group = channels
    outputs = g.rng.choice([1, 2]) * group
    turned = g.rng.random() < 0.3
    shape = [channels, outputs // group] if turned else [outputs, channels // group]
    weight = g.constant(drawn(g.rng, value.dtype, [*shape, *[g.rng.choice([1, 2, 3])] * spatial], False))
    bias = [g.constant(drawn(g.rng, value.dtype, [outputs], False))] if g.rng.random() < 0.5 else []
    pads = [g.rng.choice([0, 0, 1]) for _ in range(2 * spatial)]
    strides = [g.rng.choice([1, 1, 2]) for _ in range(spatial)]
    made = g.node("ConvTranspose" if turned else "Conv", [a, weight, *bias], group=group, pads=pads, strides=strides)
    if g.rng.random() < 0.3:
        scale = [g.constant(np.abs(drawn(g.rng, value.dtype, [outputs], False))) for _ in range(4)]
        made = g.node("BatchNormalization", [made, *scale])
    affine(g, made)


def pool(g):
    a = g.pick(lambda value: value.ndim in (3, 4) and value.dtype.kind == "f")
    spatial = g.values[a].ndim - 2
    if g.rng.random() < 0.4 and g.opset > 10:
        fill = [g.constant(np.array(g.rng.choice([0, -np.inf, -1]), g.values[a].dtype))] if g.rng.random() < 0.5 else []
        a = g.node("Pad", [a, g.ints(*([0, 0] + [g.rng.randrange(2)] * spatial) * 2), *fill], mode="constant")
    pads = [g.rng.choice([0, 0, 1]) for _ in range(2 * spatial)]
    more = {"count_include_pad": g.rng.randrange(2)} if g.rng.random() < 0.3 else {}
    operator = "AveragePool" if more else g.rng.choice(["MaxPool", "AveragePool"])
    kernel = [g.rng.choice([2, 3]) for _ in range(spatial)]
    made = g.node(operator, [a], kernel_shape=kernel, pads=pads, strides=[g.rng.choice([1, 2]) for _ in range(spatial)], **more)
    if g.rng.random() < 0.3:
        g.node(g.rng.choice(["Relu", "Clip"]), [made])


def quantize(g):
    a = g.floating()
    value = g.values[a]
    kind = g.rng.choice([np.uint8, np.int8, np.int8, np.uint8] + ([np.int16, np.uint16] if g.opset >= 21 else []))
    shape, more = [], {}
    if g.opset >= 13 and g.rng.random() < 0.3 and value.ndim:
        axis = g.rng.randrange(value.ndim)
        shape, more = [value.shape[axis]], {"axis": axis}
    scale = g.constant(np.abs(drawn(g.rng, value.dtype, shape, False)) + value.dtype.type(0.1))
    zero = g.constant(np.full(shape, g.rng.choice([0, 0, 3, 128]) % 127, kind))
    made = g.node("QuantizeLinear", [a, scale, zero], **more)
    if g.rng.random() < 0.4:
        g.rng.choice([transpose, slice_, unary, reshape, concat])(g)
        made = g.pick(lambda other: other.dtype == kind and other.ndim == value.ndim)
    if g.rng.random() < 0.3:
        scale = g.constant(np.asarray(g.values[scale] * value.dtype.type(g.rng.choice([1, 1.5]))))
    again = g.node("DequantizeLinear", [made, scale, zero], **more)
    if g.rng.random() < 0.5:
        g.node("QuantizeLinear", [again, scale, zero], **more)


def dequantize(g):
    """A quantized constant, moved and used."""
    kind = g.rng.choice([np.uint8, np.int8, np.int32])
    shape = [g.rng.choice([1, 2, 3]) for _ in range(g.rng.choice([1, 2, 2, 3]))]
    array = g.constant(np.array([g.rng.randrange(0, 100) for _ in range(int(np.prod(shape)))], kind).reshape(shape))
    per, more = [], {}
    if g.opset >= 13 and g.rng.random() < 0.5:
        axis = g.rng.randrange(len(shape))
        per, more = [shape[axis]], {"axis": axis}
    scale = g.constant(np.abs(drawn(g.rng, np.float32, per, False)) + np.float32(0.1))
    zero = [g.constant(np.full(per, 0 if kind == np.int32 else 3, kind))] if g.rng.random() < 0.7 else []
    g.node("DequantizeLinear", [array, scale, *zero], **more)
    for _ in range(g.rng.randrange(3)):
        g.rng.choice([transpose, slice_, reshape, squeeze, gather, concat, expand])(g)


def shape(g):
    a = g.some()
    draw = g.rng.random()
    if draw < 0.2:
        g.node("Size", [a])
    elif draw < 0.5 and g.opset >= 15:
        g.node("Shape", [a], start=g.rng.choice([0, 1, -1]), end=g.rng.choice([1, 2, 9]))
    else:
        g.node("Shape", [a])


def fill(g):
    shape_of = g.node("Shape", [g.some()])
    dtype = g.rng.choice(FLOATS + WHOLE)
    number = np.array([g.rng.choice([0, 1, 3])], dtype)
    g.node("ConstantOfShape", [shape_of], value=numpy_helper.from_array(number))


def positions(g):
    a = g.some(1)
    if g.opset < 13:
        raise Rejected
    size = g.node("Gather", [g.node("Shape", [a]), g.constant(np.array(g.rng.randrange(g.values[a].ndim), np.int64))])
    zero, one = (g.constant(np.array(number, np.int64)) for number in (g.rng.choice([0, 0, 1]), g.rng.choice([1, 1, 2, -1])))
    made = g.node("Range", [zero, size, one])
    if g.rng.random() < 0.5:
        made = g.node("Unsqueeze", [made, g.ints(g.rng.randrange(2))])
    if g.rng.random() < 0.5:
        g.node(g.rng.choice(["Less", "Equal", "Sub", "Mul", "Mod", "Div"]), [made, g.constant(np.array(g.rng.choice([1, 2, 3]), np.int64))])


def lookup(g):
    """A Gather by positions that were computed."""
    a = g.some(1)
    positions(g)
    index = g.pick(lambda value: value.dtype == np.int64 and value.ndim > 0)
    g.node("Gather", [a, index], axis=g.rng.randrange(g.values[a].ndim))


def topk(g):
    a = g.some(1)
    axis = g.rng.randrange(g.values[a].ndim)
    count = min(g.rng.choice([1, 2]), g.values[a].shape[axis])
    g.node("TopK", [a, g.ints(count)], outputs=2, axis=axis)


def tile(g):
    a = g.some(1)
    g.node("Tile", [a, g.ints(*[g.rng.choice([1, 1, 2, 0]) for _ in g.values[a].shape])])


def scatter(g):
    a = g.some(1)
    value = g.values[a]
    rows = g.rng.choice([0, 1, min(2, value.shape[0])])
    where_ = np.arange(rows, dtype=np.int64).reshape(rows, 1)
    updates = g.constant(drawn(g.rng, value.dtype, [rows, *value.shape[1:]], False))
    more = {"reduction": g.rng.choice(["none", "add", "max"])} if g.opset >= 18 and g.rng.random() < 0.3 else {}
    g.node("ScatterND", [a, g.constant(where_), updates], **more)


def normalization(g):
    """A normalization written out, in doubt with a constant nearby."""
    a = g.floating(2)
    dtype = g.values[a].dtype
    mean = lambda name: g.node("ReduceMean", [name, g.ints(-1)] if g.opset >= 18 else [name], **({} if g.opset >= 18 else {"axes": [-1]}))  # noqa: E731
    less = g.node("Sub", [a, mean(a)]) if g.rng.random() < 0.6 else a
    square = g.node("Mul", [less, less]) if g.rng.random() < 0.5 else g.node("Pow", [less, g.constant(np.array(2, dtype))])
    variance = g.node("Add", [mean(square), g.constant(np.array(g.rng.choice([1e-5, 1e-3, 0]), dtype))])
    root = g.node("Sqrt", [variance])
    made = g.node("Div", [less, root]) if g.rng.random() < 0.6 else g.node("Mul", [less, g.node("Reciprocal", [root])])
    affine(g, made)


def activation(g):
    a = g.floating()
    dtype = g.values[a].dtype
    kind = g.rng.random()
    if kind < 0.4:
        g.node("Mul", [a, g.node("Sigmoid", [a])])
    elif kind < 0.8:
        inner = g.node("Div", [a, g.constant(np.array(2**0.5, dtype))])
        outer = g.node("Add", [g.node("Erf", [inner]), g.constant(np.array(1, dtype))])
        g.node("Mul", [g.node("Mul", [a, outer]), g.constant(np.array(0.5, dtype))])
    else:
        inner = g.node("Add", [a, g.constant(np.array(3, dtype))])
        g.node("Mul", [a, g.node("Div", [g.node("Clip", [inner, g.constant(np.array(0, dtype)), g.constant(np.array(6, dtype))]), g.constant(np.array(6, dtype))])])


def parallel(g):
    """Products of one operand with several weights."""
    a = g.floating(2)
    value = g.values[a]
    made = []
    for _ in range(g.rng.choice([2, 3])):
        weight = g.constant(drawn(g.rng, value.dtype, [value.shape[-1], g.rng.choice([2, 2, 3])], False))
        one = g.node("MatMul", [a, weight])
        if g.rng.random() < 0.6:
            one = g.node("Add", [one, g.constant(drawn(g.rng, value.dtype, [g.values[one].shape[-1]], False))])
        made.append(one)
    if g.rng.random() < 0.6:
        g.node("Concat", made, axis=-1)


def whole(g):
    """The same done to every part of a whole."""
    a = g.some(1)
    axis = g.rng.randrange(g.values[a].ndim)
    if g.opset < 13:
        raise Rejected
    bounds = [0, 1, g.values[a].shape[axis]]
    operator, parts = g.rng.choice(["Relu", "Neg", "Sigmoid", "Abs", "Exp", "Identity"]), []
    for low, high in zip(bounds, bounds[1:]):
        part = g.node("Slice", [a, g.ints(low), g.ints(high if g.rng.random() < 0.7 else 2**63 - 1), g.ints(axis)])
        parts.append(g.node(operator, [part]) if g.rng.random() < 0.85 else part)
    g.node("Concat", parts, axis=axis)


def branch(g):
    """A decision whose bodies capture."""
    a = g.some()
    kinds = [value for value in g.values if g.values[value].dtype == g.values[a].dtype]
    b = g.rng.choice(kinds)
    flag = g.constant(np.array(g.rng.random() < 0.5)) if g.rng.random() < 0.5 else g.input(np.bool_, [])
    name = g.name()
    dtype = helper.np_dtype_to_tensor_dtype(g.values[a].dtype)
    bodies = []
    for label, read in (("t", a), ("e", b)):
        result = f"{name}{label}"
        nodes = [helper.make_node(g.rng.choice(["Identity", "Abs", "Relu", "Neg"]), [read], [result])]
        if g.rng.random() < 0.3:
            nodes = [helper.make_node("Add", [read, read], [f"{result}i"]), helper.make_node("Identity", [f"{result}i"], [result])]
        bodies.append(helper.make_graph(nodes, label, [], [helper.make_tensor_value_info(result, dtype, None)]))
    made = helper.make_node("If", [flag], [f"{name}r"], then_branch=bodies[0], else_branch=bodies[1])
    found = g.alone([made], [flag, a, b])
    g.nodes.append(made)
    g.values.update(zip(made.output, found))


def loop(g):
    """A loop that carries a value and stacks rows; it may not run."""
    a = g.some()
    b = g.like(a) if g.rng.random() < 0.7 else a
    name = g.name()
    dtype = helper.np_dtype_to_tensor_dtype(g.values[a].dtype)
    trips = g.input(np.int64, [], "trip") if g.rng.random() < 0.5 else g.constant(np.array(g.rng.choice([0, 1, 1, 2]), np.int64))
    g.values[trips] = np.array(min(int(g.values[trips]), 2), np.int64) if trips.startswith("trip") else g.values[trips]
    operator = g.rng.choice(["Add", "Mul", "Max", "Sub"])
    nodes = [
        helper.make_node("Identity", [f"{name}c"], [f"{name}d"]),
        helper.make_node(operator, [f"{name}s", b], [f"{name}t"]),
        helper.make_node(g.rng.choice(["Identity", "Neg", "Abs", "Shape"]), [g.rng.choice([f"{name}t", f"{name}s", b])], [f"{name}u"]),
    ]
    row = TensorProto.INT64 if nodes[-1].op_type == "Shape" else dtype
    info = helper.make_tensor_value_info
    given = [info(f"{name}i", TensorProto.INT64, []), info(f"{name}c", TensorProto.BOOL, []), info(f"{name}s", dtype, None)]
    results = [info(f"{name}d", TensorProto.BOOL, None), info(f"{name}t", dtype, None), info(f"{name}u", row, None)]
    body = helper.make_graph(nodes, "body", given, results)
    made = helper.make_node("Loop", [trips, "", a], [f"{name}r", f"{name}w"], body=body)
    found = g.alone([made], [trips, a, b])
    g.nodes.append(made)
    g.values.update(zip(made.output, found))


def recurrent(g):
    dtype = np.float32
    x = g.input(dtype, ["T", "batch", 2])
    operator = g.rng.choice(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    both = g.rng.randrange(1, 3)
    hidden = 3
    operands = [x, g.constant(drawn(g.rng, dtype, [both, gates * hidden, 2], False)), g.constant(drawn(g.rng, dtype, [both, gates * hidden, hidden], False))]
    operands += [g.constant(drawn(g.rng, dtype, [both, 2 * gates * hidden], False)) if g.rng.random() < 0.5 else "", ""]
    if g.rng.random() < 0.6:
        size = g.node("Gather", [g.node("Shape", [x]), g.ints(1)])
        target = g.node("Concat", [g.ints(both), size, g.ints(hidden)], axis=0)
        operands.append(g.node("Expand", [g.constant(np.array(g.rng.choice([0.0, 0.0, -0.0, 1.0]), dtype)), target]))
    while not operands[-1]:
        operands.pop()
    g.node(operator, operands, outputs=2, hidden_size=hidden, **({"direction": "bidirectional"} if both == 2 else {}))


def resize(g):
    a = g.pick(lambda value: value.ndim == 4)
    if g.opset < 13:
        raise Rejected
    factor = g.rng.choice([1.0, 2.0, 2.0, 1.5, 0.5])
    sizes = [int(dim * factor) if at > 1 else dim for at, dim in enumerate(g.values[a].shape)]
    more = {"mode": g.rng.choice(["nearest", "linear"]), "coordinate_transformation_mode": g.rng.choice(["asymmetric", "half_pixel", "align_corners"])}
    if g.rng.random() < 0.5:
        g.node("Resize", [a, "", "", g.ints(*sizes)], **more)
    else:
        g.node("Resize", [a, "", g.constant(np.array([1, 1, factor, factor], np.float32))], **more)


def trilu(g):
    a = g.some(2)
    g.node("Trilu", [a, g.constant(np.array(g.rng.choice([0, 1, -1, 5]), np.int64))], upper=g.rng.randrange(2))


def onehot(g):
    a = g.pick(lambda value: value.dtype == np.int64)
    g.node("OneHot", [a, g.constant(np.array(3, np.int64)), g.constant(drawn(g.rng, np.float32, [2], False))], axis=-1)


def dropout(g):
    a = g.floating()
    g.node("Dropout", [a], outputs=g.rng.choice([1, 2]))


def nonzero(g):
    g.node("NonZero", [g.some(1)])


TABLE = [
    (arithmetic, 12), (several, 2), (compare, 3), (where, 3), (unary, 7), (clip, 3), (cast, 4), (cast_back, 3), (slice_, 5), (slice_computed, 3),
    (concat, 4), (split, 3), (transpose, 4), (reshape, 4), (reshape_computed, 3), (squeeze, 3), (expand, 4), (gather, 3), (gather_elements, 1),
    (pad, 3), (reduce, 4), (arg, 1), (axis_function, 2), (cumsum, 1), (matmul, 3), (gemm, 2), (conv, 3), (pool, 2), (quantize, 3), (dequantize, 3),
    (shape, 2), (fill, 2), (positions, 2), (lookup, 2), (topk, 1), (tile, 2), (scatter, 2), (normalization, 2), (activation, 2), (parallel, 2),
    (whole, 3), (branch, 2), (loop, 3), (recurrent, 1), (resize, 1), (trilu, 1), (onehot, 1), (dropout, 1), (nonzero, 1),
]  # fmt: skip
TEMPLATES, WEIGHTS = zip(*TABLE)
