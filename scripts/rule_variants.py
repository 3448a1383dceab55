"""Changed fixtures of rewrite rules, for `attack_rules.py`."""

import collections
import random

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

FLOATS = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16]
WHOLE = [TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8]
EXTREME = [0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e-40, 1e30, 1e-30, 65504.0, 16777217.0]
BOUNDS = [0, 1, -1, 2, -2, 3, -3, 7, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]


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
        kinds = FLOATS if self.rng.random() < 0.7 else WHOLE
        present = {v.type.tensor_type.elem_type for v in self.graph.input} & set(kinds)
        if not present:
            return False
        old = self.rng.choice(sorted(present))
        new = self.rng.choice([kind for kind in kinds + [TensorProto.FLOAT] if kind != old])
        whole = old in WHOLE
        for value in [*self.graph.input, *self.graph.output, *self.graph.value_info]:
            if value.type.tensor_type.elem_type == old:
                value.type.tensor_type.elem_type = new
        for tensor in self.constants([old]):
            # Sizes and indices stay what they are.
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
        # A default that may be overridden, or nothing.
        if self.rng.random() < 0.5:
            self.graph.initializer.remove(tensor)
        return True


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
]


def variant_of(text, seed):
    """A changed fixture, and whether it holds extreme numbers."""
    rng = random.Random(seed)
    variant = Variant(onnx.parser.parse_model(text), rng)
    changes = rng.choice([0, 1, 1, 2, 2, 3, 4])
    functions, weights = zip(*CHANGES)
    for _ in range(changes):
        for _ in range(4):
            if rng.choices(functions, weights)[0](variant):
                break
    return variant.model, variant.extreme
