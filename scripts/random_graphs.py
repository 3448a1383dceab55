"""Random models in which every node runs: the generator of `fuzz_models.py`.

A graph grows node by node. Each value is stored with its content for the guide sizes of the symbols. Each new node runs alone in ONNX
Runtime on these contents, and is dropped if it fails. Operands that are sizes (`Growth.size`) are built as exporters build them: gathered
from shapes, added, divided, cast to float and back, or constant.
"""
import collections
import random

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FLOAT, DOUBLE, HALF = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)
INT64, INT32, BOOL = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_)
INT8, UINT8, STRING = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(object)
MOST_ELEMENTS = 6000
OPSETS = [7, 8, 9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 20, 21, 22, 23, 23, 24, 24, 25, 26]

onnxruntime.set_default_logger_severity(4)


class Rejected(Exception):
    """A node that does not run."""


def session(model):
    """Runs a model as it is, unoptimized."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def element_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def value_type(name, value, shape=None):
    """The declaration of a value like this one."""
    if isinstance(value, list):
        inner = helper.make_tensor_type_proto(element_type(value[0].dtype if value else FLOAT), None)
        return helper.make_value_info(name, helper.make_sequence_type_proto(inner))
    return helper.make_tensor_value_info(name, element_type(value.dtype), shape)


def read_by(node):
    """The names a node reads, those its subgraphs capture among them."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            graph = attribute.g
            own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            own |= {name for inner in graph.node for name in inner.output}
            inside = [name for inner in graph.node for name in read_by(inner)] + [value.name for value in graph.output]
            names += [name for name in inside if name not in own]
    return list(dict.fromkeys(names))


class Input:
    """A graph input: its dims are numbers, expressions in symbols, or None."""

    def __init__(self, name, dtype, dims, low=-3, high=4):
        self.name, self.dtype, self.dims, self.low, self.high = name, np.dtype(dtype), dims, low, high

    def shape(self, sizes):
        return [dim if isinstance(dim, int) else int(eval(dim, {}, sizes)) for dim in self.dims]  # noqa: S307

    def feed(self, sizes, rng):
        shape = self.shape(sizes)
        if self.dtype == BOOL:
            return rng.integers(0, 2, shape).astype(bool)
        # Small integers: their sums and products are exact in every float type.
        low = max(0, self.low) if self.dtype == UINT8 else self.low
        return rng.integers(low, self.high, shape).astype(self.dtype)


class Growth:
    """A graph that grows; `outer` is the graph around a body."""

    def __init__(self, rng, opset, outer=None):
        self.rng, self.opset, self.outer = rng, opset, outer
        self.nodes, self.initializers, self.own = [], {}, []
        self.values = outer.values.new_child() if outer else collections.ChainMap()
        self.constant = outer.constant if outer else set()
        self.symbols = outer.symbols if outer else {}
        self.inputs = outer.inputs if outer else []
        self.count = outer.count if outer else [0]
        self.depth = outer.depth + 1 if outer else 0

    # Values

    def name(self, stem="v"):
        self.count[0] += 1
        return f"{stem}{self.count[0]}"

    def define(self, name, value):
        self.values[name] = value
        self.own.append(name)
        return name

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, accept=lambda value: True, recent=True):
        """A value that a predicate accepts, of the later ones more often."""
        names = [name for name, value in self.values.items() if not isinstance(value, list) and accept(value)]
        if not names:
            raise Rejected("nothing to pick")
        names.sort(key=lambda name: int(name.lstrip("abcdefghijklmnopqrstuvwxyz")))
        if recent and self.chance(0.5):
            names = names[-6:]
        return self.rng.choice(names)

    def dtype(self, dtype, rank=None, least=0, accept=lambda value: True):
        return self.pick(lambda v: v.dtype == dtype and (rank is None or v.ndim == rank) and v.ndim >= least and accept(v))

    def numeric(self, **kind):
        return self.dtype(self.rng.choice([FLOAT, FLOAT, INT64]), **kind)

    def const(self, value):
        """A constant, as an initializer or a Constant node."""
        value = np.asarray(value)
        name = self.name("c")
        if self.opset >= 13 and self.chance(0.1) and value.dtype == INT64 and value.ndim < 2:
            kind = {"value_int": int(value)} if value.ndim == 0 else {"value_ints": [int(v) for v in value]}
            if value.size:
                self.nodes.append(helper.make_node("Constant", [], [name], **kind))
                self.constant.add(name)
                return self.define(name, value)
        if self.chance(0.35) or (self.depth and self.chance(0.5)):
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value)))
        else:
            self.initializers[name] = value
            if not self.depth and self.chance(0.04) and value.size and (value.dtype == BOOL or np.abs(value).max() < 2**31):
                # An initializer that is an input, too: the caller may give another value.
                low = int(value.min()) if value.dtype != BOOL else 0
                self.inputs.append(Input(name, value.dtype, list(value.shape), low, low + 1 + self.rng.randrange(2)))
                return self.define(name, value)
        self.constant.add(name)
        return self.define(name, value)

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    # Nodes

    def add(self, operator, inputs, outputs=1, domain="", **attributes):
        """Adds a node if it runs; its output, or the list of them."""
        names = [self.name() for _ in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(operator, list(inputs), names, domain=domain, **attributes)
        for name, value in zip(names, self.alone(node)):
            if sum(part.size for part in (value if isinstance(value, list) else [value])) > MOST_ELEMENTS:
                raise Rejected("too large")
            self.define(name, value)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def add_all(self, nodes, results):
        """Adds nodes of which only the results are looked at: what is between them may be no tensor."""
        for name, value in zip(results, self.together(nodes, results)):
            self.define(name, value)
        self.nodes += nodes
        return results

    def alone(self, node):
        """What a node gives at the guide sizes."""
        return self.together([node], node.output)

    def together(self, nodes, results):
        made = {name for node in nodes for name in node.output}
        names = list(dict.fromkeys(name for node in nodes for name in read_by(node) if name not in made))
        constants = [name for name in names if name in self.constant]
        if any(name not in self.values for name in names):
            raise Rejected("an operand is no tensor")
        feeds = {name: self.values[name] for name in names if name not in self.constant}
        try:
            tensors = [numpy_helper.from_array(self.values[name], name) for name in constants]
        except NotImplementedError as error:
            raise Rejected(str(error)) from None
        graph = helper.make_graph(
            nodes, "g", [value_type(name, value) for name, value in feeds.items()],
            [onnx.ValueInfoProto(name=name) for name in results], tensors)
        try:
            return session(model_of(graph, self.opset, 8)).run(None, feeds)
        except Exception as error:
            raise Rejected(str(error)) from None

    # Sizes

    def size(self, number, depth=2):
        """A one-element int64 (rank 0 or 1) that is `number` at the guide sizes."""
        number = int(number)
        ways = [lambda: self.const(np.array(number, np.int64)), lambda: self.ints(number)]
        if depth and not self.chance(0.35):
            ways = [self.size_known, self.size_gathered, self.size_gathered, self.size_gathered, self.size_computed, self.size_computed]
        way = self.rng.choice(ways)
        try:
            return way(number, depth) if depth and len(ways) == 6 else way()
        except Rejected:
            return self.ints(number)

    def size_known(self, number, _):
        return self.dtype(INT64, accept=lambda v: v.size == 1 and v.ndim < 2 and v.reshape(-1)[0] == number)

    def size_gathered(self, number, _):
        tensor = self.pick(lambda v: number in v.shape)
        shape = self.values[tensor].shape
        axis = self.rng.choice([axis for axis, size in enumerate(shape) if size == number])
        if self.opset >= 15 and self.chance(0.3):
            return self.add("Shape", [tensor], start=axis, end=self.rng.choice([axis + 1, axis + 1 - len(shape) or None]))
        whole = self.add("Shape", [tensor])
        if self.chance(0.3) and self.opset >= 10:
            return self.add("Slice", [whole, self.ints(axis), self.ints(axis + 1), self.ints(0)])
        index = self.rng.choice([axis, axis - len(shape)])
        return self.add("Gather", [whole, self.const(np.array(self.rng.choice([index, [index]]), np.int64))], axis=0)

    def size_computed(self, number, depth):
        rng, depth = self.rng, depth - 1
        way = rng.randrange(11)
        if way == 0:
            part = rng.randint(0, max(0, number))
            return self.add("Add", [self.size(part, depth), self.size(number - part, depth)])
        if way == 1:
            part = rng.randint(0, 4)
            return self.add("Sub", [self.size(number + part, depth), self.size(part, depth)])
        if way == 2:
            factors = [k for k in (1, 2, 3, 4) if number % k == 0]
            factor = rng.choice(factors)
            return self.add("Mul", [self.size(number // factor, depth), self.size(factor, 0)])
        if way == 3:
            factor = rng.choice([1, 2, 3, 4])
            return self.add("Div", [self.size(number * factor + rng.randrange(factor), depth), self.ints(factor)])
        if way == 4 and number >= 0:
            factor = number + rng.randint(1, 4)
            return self.add("Mod", [self.size(number + factor * rng.randrange(3), depth), self.ints(factor)])
        if way == 5:
            return self.add(*rng.choice([("Max", [self.size(number, depth), self.size(number - rng.randint(0, 4), depth)]),
                                         ("Min", [self.size(number, depth), self.size(number + rng.randint(0, 4), depth)])]))
        if way == 6:
            # The conversion through floats: floor(S * 0.5), as the scales of a Resize compute it.
            to = rng.choice([TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.DOUBLE])
            scale = rng.choice([0.5, 0.25, 2.0, 1.0, 1 / 3])
            start = self.size(round(number / scale), depth)
            real = self.add("Cast", [start], to=to)
            scaled = self.add(rng.choice(["Mul"]), [real, self.const(np.array(scale, FLOAT if to == TensorProto.FLOAT else DOUBLE))])
            rounded = self.add(rng.choice(["Floor", "Ceil"]), [scaled]) if self.chance(0.8) else scaled
            return self.add("Cast", [rounded], to=TensorProto.INT64)
        if way == 7 and self.opset >= 9:
            equal = self.add(rng.choice(["Equal", "Less", "Greater"]), [self.size(number, depth), self.size(number, depth)])
            other = self.size(number, depth)
            return self.add("Where", [equal, self.size(number, depth), other])
        if way == 8:
            return self.add("Cast", [self.add("Cast", [self.size(number, depth)], to=TensorProto.INT32)], to=TensorProto.INT64)
        if way == 9:
            factors = [k for k in (1, 2, 3) if number % k == 0]
            factor = rng.choice(factors)
            pair = self.vector([factor, number // factor], depth)
            return self.add("ReduceProd", [pair], keepdims=rng.randrange(2))
        return self.add("Abs", [self.add("Neg", [self.size(abs(number), depth)])]) if number >= 0 else self.add("Neg", [self.size(-number, depth)])

    def flat(self, name):
        """The same as a vector."""
        if self.values[name].ndim == 1:
            return name
        if self.chance(0.3):
            return self.add("Reshape", [name, self.ints(self.rng.choice([-1, 1]))])
        return self.unsqueeze(name, [0])

    def scalar(self, number, depth=2):
        """The size as a scalar."""
        name = self.size(number, depth)
        if self.values[name].ndim == 0:
            return name
        return self.squeeze(name, self.rng.choice([[0], None]))

    def vector(self, numbers, depth=2):
        """An int64 vector that is this at the guide sizes."""
        numbers = [int(number) for number in numbers]
        if not numbers or self.chance(0.25):
            return self.ints(*numbers)
        if self.chance(0.3):
            found = [name for name, v in self.values.items()
                     if not isinstance(v, list) and v.dtype == INT64 and v.ndim == 1 and v.tolist() == numbers]
            if found:
                return self.rng.choice(found)
        if self.chance(0.3):
            same = [name for name, v in self.values.items() if not isinstance(v, list) and list(v.shape) == numbers]
            if same:
                return self.add("Shape", [self.rng.choice(same)])
        parts = [self.flat(self.size(number, depth)) for number in numbers]
        if len(parts) == 1 and self.chance(0.8):
            return parts[0]
        return self.add("Concat", parts, axis=self.rng.choice([0, 0, -1]) if self.opset >= 11 else 0)

    def squeeze(self, name, axes):
        if self.opset < 13:
            return self.add("Squeeze", [name], axes=axes)
        return self.add("Squeeze", [name] if axes is None else [name, self.ints(*axes)])

    def unsqueeze(self, name, axes):
        if self.opset < 13:
            return self.add("Unsqueeze", [name], axes=axes)
        return self.add("Unsqueeze", [name, self.ints(*axes)])

    def axis(self, value, extra=0):
        """An axis of a value, sometimes counted from the end."""
        rank = value.ndim + extra
        if rank == 0:
            raise Rejected("no axis")
        axis = self.rng.randrange(rank)
        return axis - rank if self.opset >= 11 and self.chance(0.4) else axis

    def axes(self, value, least=1):
        """Some axes of a value."""
        if value.ndim < least:
            raise Rejected("no axes")
        axes = self.rng.sample(range(value.ndim), self.rng.randint(least, value.ndim))
        return [axis - value.ndim if self.opset >= 11 and self.chance(0.3) else axis for axis in axes]


DOMAINS = {"ai.onnx.ml": 3, "com.microsoft": 1}


def domains_of(nodes):
    """The domains that nodes and those in their bodies are of, but for the default one."""
    found, waiting = set(), list(nodes)
    while waiting:
        node = waiting.pop()
        found.add(node.domain)
        waiting += [inner for attribute in node.attribute if attribute.HasField("g") for inner in attribute.g.node]
    return sorted(found & set(DOMAINS))


def model_of(graph, opset, ir_version, functions=()):
    nodes = [*graph.node, *(node for function in functions for node in function.node)]
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("local", 1)] if functions else [])
    imports += [helper.make_opsetid(domain, DOMAINS[domain]) for domain in domains_of(nodes)]
    model = helper.make_model(graph, opset_imports=imports, functions=functions)
    model.ir_version = ir_version
    return model


class Case:
    """A model with what it takes to run it."""

    def __init__(self, model, inputs, symbols, guide):
        self.model, self.inputs, self.symbols, self.guide = model, inputs, symbols, guide

    def with_model(self, model):
        return Case(model, self.inputs, self.symbols, self.guide)


def random_case(seed):
    """A model by its seed."""
    import random_families  # noqa: F401
    import random_idioms  # noqa: F401
    from random_nodes import TEMPLATES, WEIGHTS
    rng = random.Random(seed)
    growth = Growth(rng, rng.choice(OPSETS))
    guide = {name: rng.choice([1, 2, 2, 3, 3, 4, 4, 5, 6, 8]) for name in rng.sample(["N", "S", "H", "W", "k"], rng.randint(1, 4))}
    growth.symbols.update(guide)
    numbers = np.random.default_rng(seed)
    for _ in range(rng.randint(1, 4)):
        dims = []
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4])):
            some = rng.choice(list(guide))
            dims.append(rng.choice([some, some, some, rng.choice([1, 2, 3, 4, 1, 2, 3, 4, 0, 8]), rng.choice([f"{some} + 1", f"2*{some}", f"{some}*{rng.choice(list(guide))}"])
                                    if rng.random() < 0.15 else some]))
        dtype = rng.choice([FLOAT, FLOAT, FLOAT, FLOAT, INT64, INT64, INT32, BOOL, HALF, DOUBLE, UINT8 if rng.random() < 0.3 else FLOAT])
        growth.inputs.append(Input(growth.name("x"), dtype, dims))
    if rng.random() < 0.5:
        growth.inputs.append(Input(growth.name("x"), INT64, rng.choice([[], [1], [2]]), rng.choice([-4, 0]), 5))
    if rng.random() < 0.3:
        growth.inputs.append(Input(growth.name("x"), BOOL, []))
    for given in growth.inputs:
        growth.define(given.name, given.feed(guide, numbers))
    wanted = rng.choice([4, 8, 8, 12, 12, 20])
    grow(growth, wanted, TEMPLATES, WEIGHTS)
    return finish(growth, guide)


def grow(growth, wanted, templates, weights):
    """Adds nodes by templates until some `wanted` of them ran."""
    for _ in range(wanted):
        template = growth.rng.choices(templates, weights)[0]
        try:
            template(growth)
        except (Rejected, IndexError, ValueError, ZeroDivisionError, OverflowError):
            continue


def finish(growth, guide):
    """The model of a graph that is grown."""
    rng = growth.rng
    computed = [name for node in growth.nodes for name in node.output if name in growth.values]
    read = {name for node in growth.nodes for name in read_by(node)}
    sinks = [name for name in computed if name not in read]
    style = rng.random()
    outputs = computed if style < 0.3 else sinks if style < 0.8 else rng.sample(sinks, 1) if sinks else sinks
    if not outputs:
        outputs = computed[-1:]
    if rng.random() < 0.05:
        outputs = outputs + [growth.inputs[0].name]
    declared = []
    for name in dict.fromkeys(outputs):
        value, how = growth.values[name], rng.random()
        if isinstance(value, list) or how < 0.6:
            declared.append(value_type(name, value))
        elif how < 0.7:
            declared.append(onnx.ValueInfoProto(name=name))
        else:
            declared.append(value_type(name, value, [f"{name}_{axis}" for axis in range(value.ndim)]))
    anonymous, unranked = rng.random() < 0.1, rng.random() < 0.03
    inputs = []
    for given in growth.inputs:
        dims = [None if anonymous and isinstance(dim, str) and rng.random() < 0.5 else dim for dim in given.dims]
        if unranked and rng.random() < 0.5 and given.name not in growth.initializers:
            dims = None
        inputs.append(helper.make_tensor_value_info(given.name, element_type(given.dtype), dims))
    # The author's names, true for every size.
    named = rng.random() < 0.15
    claims = [value_type(name, growth.values[name], [f"{name}_{axis}" for axis in range(growth.values[name].ndim)]) for name in computed
              if named and name not in {value.name for value in declared} and isinstance(growth.values[name], np.ndarray) and rng.random() < 0.5]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in growth.initializers.items()]
    functions, nodes = [], growth.nodes
    if growth.opset >= 13 and rng.random() < 0.15:
        functions, nodes = outlined(growth, {value.name for value in declared}, declared)
    graph = helper.make_graph(nodes, "g", inputs, declared, initializers)
    if not functions:
        graph.value_info.extend(claims)
    model = model_of(graph, growth.opset, 8 if functions else rng.choice([4, 6, 7, 8, 10]), functions)
    return Case(model, growth.inputs, list(guide), dict(guide))


def outlined(growth, outputs, more):
    """Moves a run of nodes into a function. What a second call of it leaves is added to `more`."""
    nodes = growth.nodes
    start = growth.rng.randrange(len(nodes)) if nodes else 0
    moved = nodes[start:start + growth.rng.randint(1, 6)]
    inside = {name for node in moved for name in node.output}
    if not moved:
        return [], nodes
    taken = list(dict.fromkeys(name for node in moved for name in read_by(node) if name not in inside))
    later = {name for node in nodes[start + len(moved):] for name in read_by(node)} | outputs
    given = [name for node in moved for name in node.output if name in later]
    if not given:
        return [], nodes
    moved, attributes = generic(growth.rng, moved)
    imports = [helper.make_opsetid("", growth.opset)] + [helper.make_opsetid(domain, DOMAINS[domain]) for domain in domains_of(moved)]
    functions = [helper.make_function("local", "F", taken, given, moved, imports, attributes=list(attributes))]
    called = "F"
    if growth.rng.random() < 0.3:
        # A function that only calls the other one.
        inner = helper.make_node("F", taken, given, domain="local")
        for name, attribute in attributes.items():
            inner.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=name, type=attribute.type))
        functions.append(helper.make_function("local", "G", taken, given, [inner], imports + [helper.make_opsetid("local", 1)], attributes=list(attributes)))
        called = "G"

    def call(results):
        node = helper.make_node(called, taken, results, domain="local")
        for name, attribute in attributes.items():
            node.attribute.append(attribute)
            node.attribute[-1].name = name
        return node

    calls = [call(given)]
    if growth.rng.random() < 0.6:
        again = [f"{name}_again" for name in given]
        calls.append(call(again))
        more += [onnx.ValueInfoProto(name=name) for name in again]
    return functions, nodes[:start] + calls + nodes[start + len(moved):]


def generic(rng, nodes):
    """The nodes, with some of their numbers taken from attributes of the call; those attributes by name."""
    copies, attributes = [], {}
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for attribute in copy.attribute:
            simple = attribute.type in (onnx.AttributeProto.FLOAT, onnx.AttributeProto.INT, onnx.AttributeProto.INTS)
            if simple and rng.random() < 0.3:
                name = f"a{len(attributes)}"
                attributes[name] = onnx.AttributeProto()
                attributes[name].CopyFrom(attribute)
                attribute.CopyFrom(onnx.AttributeProto(name=attribute.name, ref_attr_name=name, type=attribute.type))
        copies.append(copy)
    return copies, attributes
