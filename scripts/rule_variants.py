"""Changed fixtures of rewrite rules, for `attack_rules.py`."""

import collections
import random

import numpy as np
import onnx
import onnx.parser
import onnx.version_converter
from onnx import TensorProto, helper, numpy_helper

FLOATS = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16]
WHOLE = [TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8]
OTHERS = [TensorProto.INT16, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64, TensorProto.BOOL, TensorProto.BFLOAT16]
EXTREME = [0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e-40, 1e30, 1e-30, 65504.0, 16777217.0, 6e-8, 6.2e-5]
BOUNDS = [0, 1, -1, 2, -2, 3, -3, 7, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 1 - 2**63, 2**53 + 1]
OPSETS = [7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23]


class Variant:
    """A model that is being changed. Each change answers whether it found something to change."""

    def __init__(self, model, rng):
        self.model, self.graph, self.rng = model, model.graph, rng
        self.extreme = False

    def constants(self, kinds):
        found = [tensor for tensor in self.graph.initializer if tensor.data_type in kinds]
        for node in self.graph.node:
            found += [a.t for a in node.attribute if a.type == onnx.AttributeProto.TENSOR and a.t.data_type in kinds]
        return found

    def values(self):
        """Names of what nodes of the main graph compute."""
        return [name for node in self.graph.node for name in node.output if name]

    def change_type(self):
        """Every float of one type becomes one of another; or every integer input and constant of its type."""
        kinds = FLOATS if self.rng.random() < 0.7 else WHOLE + OTHERS
        present = {v.type.tensor_type.elem_type for v in self.graph.input} & set(kinds)
        if not present:
            return False
        old = self.rng.choice(sorted(present))
        new = self.rng.choice([kind for kind in kinds + [TensorProto.FLOAT] if kind != old])
        whole = old not in FLOATS
        for value in [*self.graph.input, *self.graph.output, *self.graph.value_info]:
            if value.type.tensor_type.elem_type == old:
                value.type.tensor_type.elem_type = new
        for tensor in self.constants([old]):
            # Sizes and indices are not changed.
            if whole and tensor.data_type == TensorProto.INT64:
                continue
            with np.errstate(all="ignore"):
                array = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(new))
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        for node in self.graph.node:
            for attribute in node.attribute:
                if attribute.name in ("to", "dtype") and attribute.i == old:
                    attribute.i = new
        del self.graph.value_info[:]
        return True

    def change_size(self):
        dims = [d for v in self.graph.input for d in v.type.tensor_type.shape.dim]
        if not dims:
            return False
        dim = self.rng.choice(dims)
        names = sorted({d.dim_param for d in dims if d.dim_param})
        kind = self.rng.random()
        if kind < 0.5:
            dim.dim_value = self.rng.choice([0, 1, 1, 2, 3, 4, 6, 17])
        elif kind < 0.75 and names:
            dim.dim_param = self.rng.choice(names)
        else:
            dim.dim_param = f"s{self.rng.randrange(3)}"
        return True

    def change_whole_constant(self):
        found = [t for t in self.constants([TensorProto.INT64, TensorProto.INT32]) if np.prod(t.dims, dtype=int) > 0]
        if not found:
            return False
        tensor = self.rng.choice(found)
        array = numpy_helper.to_array(tensor).copy()
        flat = array.reshape(-1)
        at = self.rng.randrange(flat.size)
        if self.rng.random() < 0.6:
            number = int(flat[at]) + self.rng.choice([-2, -1, 1, 2])
        else:
            number = self.rng.choice(BOUNDS)
        limits = np.iinfo(array.dtype)
        flat[at] = min(max(number, limits.min), limits.max)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        return True

    def change_float_constant(self):
        found = [t for t in self.constants(FLOATS) if np.prod(t.dims, dtype=int) > 0]
        if not found:
            return False
        tensor = self.rng.choice(found)
        array = numpy_helper.to_array(tensor).copy()
        flat = array.reshape(-1)
        chosen = range(flat.size) if self.rng.random() < 0.5 else [self.rng.randrange(flat.size)]
        number = self.rng.choice(EXTREME)
        with np.errstate(all="ignore"):
            for at in chosen:
                flat[at] = number
        self.extreme |= not (abs(number) in (0.0, 1.0))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        return True

    def change_attribute(self):
        found = [a for n in self.graph.node for a in n.attribute if a.type in (2, 7, 1) and a.name not in ("to", "dtype")]
        if not found:
            return False
        attribute = self.rng.choice(found)
        if attribute.type == 1:
            attribute.f = self.rng.choice([0.0, 1.0, -1.0, 0.5, 2.0])
        elif attribute.type == 2:
            attribute.i += self.rng.choice([-2, -1, 1, 2])
        elif len(attribute.ints) > 1 and self.rng.random() < 0.5:
            numbers = list(attribute.ints)
            self.rng.shuffle(numbers)
            attribute.ints[:] = numbers
        elif attribute.ints:
            at = self.rng.randrange(len(attribute.ints))
            attribute.ints[at] += self.rng.choice([-1, 1])
        return True

    def drop_attribute(self):
        found = [(n, a) for n in self.graph.node for a in n.attribute if a.type in (1, 2, 3, 7)]
        if not found:
            return False
        node, attribute = self.rng.choice(found)
        node.attribute.remove(attribute)
        return True

    def add_output(self):
        found = sorted(set(self.values()) - {v.name for v in self.graph.output})
        if not found:
            return False
        self.graph.output.append(onnx.ValueInfoProto(name=self.rng.choice(found)))
        return True

    def add_reader(self):
        found = self.values()
        if not found:
            return False
        name = f"again{len(self.graph.node)}"
        self.graph.node.append(helper.make_node("Identity", [self.rng.choice(found)], [name]))
        self.graph.output.append(onnx.ValueInfoProto(name=name))
        return True

    def add_capture(self):
        """A body reads an intermediate value."""
        found = self.values()
        if not found:
            return False
        number = len(self.graph.node)
        value = self.rng.choice(found)
        self.graph.initializer.append(numpy_helper.from_array(np.array(self.rng.random() < 0.5), f"flag{number}"))
        bodies = []
        for branch in ("then", "else"):
            result = f"{branch}{number}"
            node = helper.make_node("Identity", [value], [result])
            bodies.append(helper.make_graph([node], branch, [], [onnx.ValueInfoProto(name=result)]))
        given = helper.make_tensor_value_info(f"ask{number}", TensorProto.BOOL, [])
        asked = self.rng.random() < 0.7
        if asked:
            self.graph.input.append(given)
        flag = f"ask{number}" if asked else f"flag{number}"
        node = helper.make_node("If", [flag], [f"taken{number}"], then_branch=bodies[0], else_branch=bodies[1])
        self.graph.node.append(node)
        self.graph.output.append(onnx.ValueInfoProto(name=f"taken{number}"))
        return True

    def read_twice(self):
        """An operand in place of another."""
        found = [node for node in self.graph.node if len(node.input) > 1]
        if not found:
            return False
        node = self.rng.choice(found)
        a, b = self.rng.sample(range(len(node.input)), 2)
        node.input[a] = node.input[b]
        return True

    def change_operator(self):
        pairs = [
            "Add Sub",
            "Mul Div",
            "Max Min",
            "Relu Neg",
            "Relu Sigmoid",
            "ReduceSum ReduceMax",
            "Squeeze Unsqueeze",
            "Equal Less",
            "And Or",
            "Abs Exp",
            "Add Mul",
        ]
        table = collections.defaultdict(list)
        for a, b in (pair.split() for pair in pairs):
            table[a].append(b)
            table[b].append(a)
        found = [node for node in self.graph.node if node.op_type in table]
        if not found:
            return False
        node = self.rng.choice(found)
        node.op_type = self.rng.choice(table[node.op_type])
        return True

    def change_mode(self):
        others = {
            b"constant": [b"edge", b"reflect", b"wrap"],
            b"nearest": [b"linear"],
            b"asymmetric": [b"half_pixel", b"align_corners"],
            b"none": [b"add", b"max"],
        }
        found = [a for n in self.graph.node for a in n.attribute if a.type == 3 and a.s in others]
        if not found:
            return False
        attribute = self.rng.choice(found)
        attribute.s = self.rng.choice(others[attribute.s])
        return True

    def constant_as_input(self):
        """What a constant said is given when the model runs."""
        found = [t for t in self.graph.initializer if t.name not in {v.name for v in self.graph.input}]
        if not found:
            return False
        tensor = self.rng.choice(found)
        self.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        # A default that callers may override, or no default.
        if self.rng.random() < 0.5:
            self.graph.initializer.remove(tensor)
        return True

    def operands(self):
        """Constants, and inputs without a default, that have axes."""
        held = {tensor.name for tensor in self.graph.initializer}
        found = [t for t in self.constants(FLOATS + WHOLE + OTHERS) if t.dims]
        return found + [v for v in self.graph.input if v.name not in held and len(v.type.tensor_type.shape.dim)]

    def cut_to_one(self):
        """An operand keeps one entry along some of its axes, or along all: it is broadcast from now on."""
        found = self.operands()
        if not found:
            return False
        operand = self.rng.choice(found)
        axes = range(len(dims_of(operand)))
        some = self.rng.choice([[self.rng.choice(axes)], [axis for axis in axes if self.rng.random() < 0.5], axes])
        return self.take_first(operand, some, 1)

    def take_first(self, operand, axes, size):
        """Leaves `size` entries, the first, along axes."""
        if not isinstance(operand, onnx.TensorProto):
            for axis in axes:
                operand.type.tensor_type.shape.dim[axis].dim_value = size
            return bool(axes)
        array = numpy_helper.to_array(operand)
        for axis in axes:
            array = array.take(range(min(size, array.shape[axis])), axis)
        operand.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), operand.name))
        return bool(axes)

    def cut_everywhere(self):
        """A size, wherever it stands, becomes 1 or 0; or sizes of inputs become open."""
        found = self.operands()
        sizes = [(d.dim_param or d.dim_value) if not isinstance(d, int) else d for operand in found for d in dims_of(operand)]
        if not sizes:
            return False
        size, new = self.rng.choice(sizes), self.rng.choice([0, 1, 1])
        opened = isinstance(size, int) and self.rng.random() < 0.4
        for operand in found:
            axes = [axis for axis, d in enumerate(dims_of(operand)) if (d if isinstance(d, int) else d.dim_param or d.dim_value) == size]
            if not opened:
                self.take_first(operand, axes, new)
            elif not isinstance(operand, onnx.TensorProto):
                for axis in axes:
                    dims_of(operand)[axis].dim_param = f"n{size}"
        return True

    def change_rank(self):
        """Leading axes of size 1 come or go."""
        found = self.operands()
        if not found:
            return False
        operand = self.rng.choice(found)
        sizes = [d if isinstance(d, int) else d.dim_value for d in dims_of(operand)]
        first = next((axis for axis, size in enumerate(sizes) if size != 1), len(sizes))
        more, fewer = (self.rng.randint(1, 2), 0) if not first or self.rng.random() < 0.4 else (0, self.rng.randint(1, first))
        if isinstance(operand, onnx.TensorProto):
            kept = [1] * more + list(operand.dims)[fewer:]
            del operand.dims[:]
            operand.dims.extend(kept)
            return True
        dims = [onnx.TensorShapeProto.Dimension(dim_value=1) for _ in range(more)]
        for d in list(operand.type.tensor_type.shape.dim)[fewer:]:
            dims.append(onnx.TensorShapeProto.Dimension())
            dims[-1].CopyFrom(d)
        del operand.type.tensor_type.shape.dim[:]
        operand.type.tensor_type.shape.dim.extend(dims)
        return True

    def one_number(self):
        """A constant is a scalar, or the same number everywhere."""
        found = [t for t in self.constants(FLOATS + WHOLE) if np.prod(t.dims, dtype=int) > 0]
        if not found:
            return False
        tensor = self.rng.choice(found)
        array = numpy_helper.to_array(tensor)
        array = array.reshape(-1)[0].reshape(()) if self.rng.random() < 0.5 else np.full_like(array, array.reshape(-1)[0])
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(array), tensor.name))
        return True

    def input_as_constant(self):
        """What was given when the model runs is a constant."""
        found = [v for v in self.graph.input if v.type.tensor_type.elem_type in FLOATS + WHOLE]
        if not found:
            return False
        value = self.rng.choice(found)
        sizes = [d.dim_value if d.HasField("dim_value") else self.rng.choice([0, 1, 2, 3]) for d in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = np.random.default_rng(self.rng.randrange(2**32)).integers(0, 4, sizes).astype(dtype)
        if value.name not in {t.name for t in self.graph.initializer}:
            self.graph.initializer.append(numpy_helper.from_array(array, value.name))
        self.graph.input.remove(value)
        return True

    def from_the_end(self):
        """An axis, or a constant that may hold some, is counted from the end."""
        rank = self.rng.randint(1, 4)
        attributes = [a for n in self.graph.node for a in n.attribute if a.name in ("axis", "axes")]
        constants = [t for t in self.constants([TensorProto.INT64]) if 0 < np.prod(t.dims, dtype=int) < 5]
        if attributes and (not constants or self.rng.random() < 0.7):
            attribute = self.rng.choice(attributes)
            if attribute.type == onnx.AttributeProto.INT:
                attribute.i -= rank
            else:
                attribute.ints[:] = [axis - rank for axis in attribute.ints]
            return True
        if not constants:
            return False
        tensor = self.rng.choice(constants)
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) - rank, tensor.name))
        return True

    def change_opset(self):
        """Another operator set: converted, or under another number."""
        new = self.rng.choice(OPSETS)
        if self.rng.random() < 0.5:
            try:
                self.model = onnx.version_converter.convert_version(self.model, new)
            except Exception:  # noqa: BLE001
                return False
            self.graph = self.model.graph
            return True
        for used in self.model.opset_import:
            if used.domain in ("", "ai.onnx"):
                used.version = new
        return True

    def one_input(self):
        """An input is read where another was."""
        found = list(self.graph.input)
        if len(found) < 2:
            return False
        kept, gone = self.rng.sample(found, 2)
        if gone.name in {v.name for v in self.graph.output}:
            return False
        rename(self.graph.node, {gone.name: kept.name})
        self.graph.input.remove(gone)
        return True

    def swap_operands(self):
        found = [node for node in self.graph.node if len(node.input) > 1]
        if not found:
            return False
        node = self.rng.choice(found)
        a, b = self.rng.sample(range(len(node.input)), 2)
        node.input[a], node.input[b] = node.input[b], node.input[a]
        return True

    def all_outputs(self):
        """Every value is a result."""
        there = {v.name for v in self.graph.output}
        self.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(self.values()) if name not in there)
        return True

    def repeated(self):
        """The last nodes stand a second time beside themselves, under other names."""
        nodes = list(self.graph.node)
        if not nodes:
            return False
        again = [copy_of(node) for node in nodes[self.rng.randrange(len(nodes)):]]
        names = {name: f"{name}_2" for node in again for name in node.output if name}
        rename(again, names)
        self.graph.node.extend(again)
        self.graph.output.extend(onnx.ValueInfoProto(name=names[v.name]) for v in list(self.graph.output) if v.name in names)
        return True

    def into_body(self):
        """Moves the last nodes, or all, into the branches of an If or into the body of a Loop, which capture outer values."""
        nodes = list(self.graph.node)
        if not nodes:
            return False
        inner = nodes[self.rng.choice([0, self.rng.randrange(len(nodes))]):]
        made = {name for node in inner for name in node.output if name}
        results = [v.name for v in self.graph.output if v.name in made]
        if not results:
            return False
        number = len(nodes)
        names = {name: f"{name}_in" for name in results}
        inner = [copy_of(node) for node in inner]
        rename(inner, names)
        own = self.own_constants(inner) if self.rng.random() < 0.4 else []
        outputs = [onnx.ValueInfoProto(name=names[name]) for name in results]
        if self.rng.random() < 0.5:
            bodies = [helper.make_graph(inner, branch, [], outputs, own) for branch in ("then", "else")]
            self.graph.input.append(helper.make_tensor_value_info(f"ask{number}", TensorProto.BOOL, []))
            node = helper.make_node("If", [f"ask{number}"], results, then_branch=bodies[0], else_branch=bodies[1])
        else:
            flag, trip, going = f"flag{number}", f"trip{number}", f"going{number}"
            inputs = [helper.make_tensor_value_info(trip, TensorProto.INT64, []), helper.make_tensor_value_info(flag, TensorProto.BOOL, [])]
            inner.append(helper.make_node("Identity", [flag], [going]))
            body = helper.make_graph(inner, "body", inputs, [helper.make_tensor_value_info(going, TensorProto.BOOL, []), *outputs], own)
            self.graph.input.append(helper.make_tensor_value_info(f"trips{number}", TensorProto.INT64, []))
            node = helper.make_node("Loop", [f"trips{number}", ""], results, body=body)
        del self.graph.node[len(nodes) - len(inner) + (node.op_type == "Loop"):]
        self.graph.node.append(node)
        del self.graph.value_info[:]
        for value in self.graph.output:
            if value.name in names:
                value.ClearField("type")
        return True

    def own_constants(self, nodes):
        """Takes the constants that only these nodes read out of the graph."""
        there = {v.name for v in [*self.graph.input, *self.graph.output]}
        inside = {name for node in nodes for name in node.input}
        outside = {name for node in list(self.graph.node)[: len(self.graph.node) - len(nodes)] for name in read_by(node)}
        own = []
        for tensor in list(self.graph.initializer):
            if tensor.name in inside and tensor.name not in there | outside:
                own.append(onnx.TensorProto.FromString(tensor.SerializeToString()))
                self.graph.initializer.remove(tensor)
        return own

    def into_function(self):
        """All nodes go into a function of the model."""
        if self.model.functions or not self.graph.node:
            return False
        inputs = [*dict.fromkeys([v.name for v in self.graph.input] + [t.name for t in self.graph.initializer])]
        made = {name for node in self.graph.node for name in node.output}
        results = [v.name for v in self.graph.output if v.name in made]
        if any(not node.output or node.op_type in ("If", "Loop", "Scan") for node in self.graph.node) or not results:
            return False
        function = helper.make_function("own", "F", inputs, results, [copy_of(n) for n in self.graph.node], list(self.model.opset_import))
        self.model.functions.append(function)
        self.model.opset_import.append(helper.make_opsetid("own", 1))
        del self.graph.node[:]
        self.graph.node.append(helper.make_node("F", inputs, results, domain="own"))
        del self.graph.value_info[:]
        return True



def dims_of(operand):
    """The dims of a constant, numbers, or of an input."""
    return operand.dims if isinstance(operand, onnx.TensorProto) else operand.type.tensor_type.shape.dim


def copy_of(node):
    return onnx.NodeProto.FromString(node.SerializeToString())


def bodies_of(node):
    return [a.g for a in node.attribute if a.HasField("g")]


def read_by(node):
    """What a node and its bodies read; names made inside may be among them."""
    return [*node.input, *(name for body in bodies_of(node) for inner in body.node for name in read_by(inner))]


def rename(nodes, names):
    """Gives values other names, in bodies as well."""
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for body in bodies_of(node):
            hidden = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
            inside = {old: new for old, new in names.items() if old not in hidden}
            rename(body.node, inside)
            for value in body.output:
                value.name = inside.get(value.name, value.name)


CHANGES = [
    (Variant.change_type, 3),
    (Variant.change_size, 5),
    (Variant.change_whole_constant, 6),
    (Variant.change_float_constant, 3),
    (Variant.change_attribute, 4),
    (Variant.drop_attribute, 1),
    (Variant.add_output, 2),
    (Variant.add_reader, 2),
    (Variant.add_capture, 1),
    (Variant.read_twice, 2),
    (Variant.change_operator, 2),
    (Variant.change_mode, 1),
    (Variant.constant_as_input, 1),
    (Variant.cut_to_one, 6),
    (Variant.cut_everywhere, 3),
    (Variant.change_rank, 4),
    (Variant.one_number, 3),
    (Variant.input_as_constant, 1),
    (Variant.from_the_end, 2),
    (Variant.change_opset, 2),
    (Variant.one_input, 2),
    (Variant.swap_operands, 2),
    (Variant.all_outputs, 1),
    (Variant.repeated, 1),
]
# At most one of these, as the last change.
LAST = [Variant.into_body, Variant.into_body, Variant.into_function]


def variant_of(text, seed):
    """A changed fixture, whether it has extreme numbers, and the same without bodies."""
    rng = random.Random(seed)
    variant = Variant(onnx.parser.parse_model(text), rng)
    changes = rng.choice([0, 1, 1, 2, 2, 3, 4])
    functions, weights = zip(*CHANGES)
    for _ in range(changes):
        for _ in range(4):
            if rng.choices(functions, weights)[0](variant):
                break
    plain = onnx.ModelProto()
    plain.CopyFrom(variant.model)
    if rng.random() < 0.2:
        rng.choice(LAST)(variant)
    return variant.model, variant.extreme, plain
