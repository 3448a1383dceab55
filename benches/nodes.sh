#!/usr/bin/env bash
# What a node costs, whole processes: generated graphs of 10 to a million nodes, reading and writing included.
#
#   benches/nodes.sh [BINARY ...]
#
# With several programs the runs are in turn, and what is printed last is the first's time over each other's. Seconds are of processor time,
# user and system, the median of RUNS (5). NODES names the sizes. With KEEP the models are written into that folder, and nothing is timed.
# Needs python3 with onnx and numpy (PYTHON names it).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
if [ $# = 0 ]; then set -- "$here/target/release/onnx-slice-fold"; fi
room=$(mktemp -d "${TMPDIR:-/tmp}/nodes.XXXXXX")
trap 'rm -rf "$room"' EXIT
if [ -n "${KEEP:-}" ]; then
    set --
fi

"${PYTHON:-python3}" - "${KEEP:-$room}" "${RUNS:-5}" "${NODES:-10 1000 10000 100000 1000000}" "$@" <<'PYTHON'
import os, resource, statistics, subprocess, sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper

room, runs, sizes, binaries = sys.argv[1], int(sys.argv[2]), [int(size) for size in sys.argv[3].split()], sys.argv[4:]


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def node(self, operator, operands, **attributes):
        self.nodes.append(helper.make_node(operator, operands, [f"v{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name


def chain(graph, count):
    """One elementwise operator after the other."""
    value = "x"
    for number in range(count):
        value = graph.node(("Relu", "Sigmoid", "Tanh", "Exp")[number % 4], [value])
    return value, ["N", 8]


def transformer(graph, count):
    """Layers as exporters write them: normalizations in pieces, and every Reshape's sizes read anew."""
    node, constant = graph.node, graph.constant
    ints = lambda *numbers: constant(np.array(numbers, np.int64))
    zero, one = constant(np.int64(0)), constant(np.int64(1))
    axis, heads, each, whole = ints(0), ints(2), ints(2), ints(4)
    two, eps, root, half, unit = (constant(np.float32(number)) for number in (2, 1e-5, 1.41421354, 0.5, 1))
    random = np.random.default_rng(0)
    weight = lambda *shape: constant(random.standard_normal(shape).astype(np.float32))

    def normalized(value):
        apart = node("Sub", [value, node("ReduceMean", [value], axes=[-1])])
        variance = node("ReduceMean", [node("Pow", [apart, two])], axes=[-1])
        even = node("Div", [apart, node("Sqrt", [node("Add", [variance, eps])])])
        return node("Add", [node("Mul", [even, weight(4)]), weight(4)])

    def reshaped(value, *rest):
        sizes = [node("Unsqueeze", [node("Gather", [node("Shape", [value]), index]), axis]) for index in (zero, one)]
        return node("Reshape", [value, node("Concat", [*sizes, *rest], axis=0)])

    linear = lambda value: node("Add", [node("MatMul", [value, weight(4, 4)]), weight(4)])
    value = "x"
    while len(graph.nodes) + 77 <= count or not graph.nodes:
        given = normalized(value)
        q, k, v = (
            node("Transpose", [reshaped(linear(given), heads, each)], perm=perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        shares = node("Softmax", [node("Div", [node("MatMul", [q, k]), root])], axis=-1)
        mixed = node("Transpose", [node("MatMul", [shares, v])], perm=[0, 2, 1, 3])
        value = node("Add", [linear(reshaped(mixed, whole)), value])
        up = linear(normalized(value))
        gate = node("Add", [node("Erf", [node("Div", [up, root])]), unit])
        value = node("Add", [linear(node("Mul", [node("Mul", [up, gate]), half])), value])
    return value, ["N", "S", 4]


def windows(graph, count):
    """Attention in windows as exporters write it: every number a node, ranges of indices and what assigns to a part of a tensor."""
    node, random = graph.node, np.random.default_rng(0)
    weight = lambda: graph.constant(random.standard_normal((8, 8)).astype(np.float32))
    number = lambda value: node("Constant", [], value=numpy_helper.from_array(np.array(value, np.int64)))
    one = lambda value: node("Unsqueeze", [value, number([0])])
    size = lambda value, axis: node("Gather", [node("Shape", [value]), number(axis)])
    whole = np.iinfo(np.int64).max

    def cut(value, axis, start, end):
        return node("Slice", [value, number([start]), number([end]), number([axis]), number([1])])

    def stretched(value, sizes):
        # As PyTorch's `expand` is written: sizes of -1 stay what they are.
        ones = node("ConstantOfShape", [node("Shape", [sizes])], value=numpy_helper.from_array(np.ones(1, np.int64)))
        kept = node("Equal", [sizes, node("Mul", [ones, number(-1)])])
        return node("Expand", [value, node("Where", [kept, ones, sizes])])

    def assigned(target, part):
        """`target[:, :-1, :, 4:] = part`"""
        places = []
        for axis, (start, end) in enumerate([(0, whole), (0, -1), (0, whole), (4, whole)]):
            index = node("Range", [number(0), node("Cast", [size(target, axis)], to=TensorProto.INT64), number(1)])
            if (start, end) != (0, whole):
                index = cut(index, 0, start, end)
            places.append(node("Reshape", [index, number([-1] + [1] * (3 - axis))]) if axis < 3 else index)
        spread = node("Add", [node("Add", [node("Add", places[:2]), places[2]]), places[3]])
        sizes = node("Shape", [spread])
        indices = [node("Unsqueeze", [stretched(place, sizes), number([-1])]) for place in places]
        part = node("Expand", [part, node("Shape", [cut(cut(target, 1, 0, -1), 3, 4, whole)])])
        return node("ScatterND", [target, node("Concat", indices, axis=-1), node("Reshape", [part, sizes])])

    value = "x"
    while len(graph.nodes) + 164 <= count or not graph.nodes:
        batch, length = size(value, 0), size(value, 1)
        chunks = node("Div", [length, number(4)])

        def in_windows(value):
            sizes = [one(batch), one(chunks), number([4]), number([8])]
            return node("Reshape", [value, node("Concat", sizes, axis=0)])

        q, k, v = (in_windows(node("MatMul", [value, weight()])) for _ in range(3))
        shares = node("MatMul", [q, node("Transpose", [k], perm=[0, 1, 3, 2])])
        more = node("Add", [chunks, number(1)])
        sizes = node("Concat", [one(batch), one(more), number([4]), number([8])], axis=0)
        band = assigned(node("ConstantOfShape", [sizes]), shares)
        shares = node("Softmax", [cut(cut(band, 1, 0, -1), 3, 4, whole)], axis=-1)
        sizes = node("Concat", [one(batch), one(length), number([8])], axis=0)
        mixed = node("Reshape", [node("MatMul", [shares, v]), sizes])
        value = node("Add", [node("MatMul", [mixed, weight()]), value])
    return value, ["N", "S", 8]


def write(make, count):
    graph = Graph()
    value, shape = make(graph, count)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", value)]
    graph_proto = helper.make_graph(graph.nodes, "g", ends[:1], ends[1:], graph.constants)
    model = helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = os.path.join(room, f"{make.__name__}.onnx")
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    return path, len(graph.nodes)


def seconds(binary, path):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([binary, path, "-o", os.path.join(room, "out.onnx"), "-q"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


print(f"{'':14}{'nodes':>9}" + "".join(f"{'seconds':>10}{'µs a node':>11}" for _ in binaries) + "     ratio" * (len(binaries) - 1))
for make in (chain, transformer, windows):
    for size in sizes:
        path, nodes = write(make, size)
        if not binaries:
            continue
        # The first run of each warms up.
        times = [[seconds(binary, path) for binary in binaries] for _ in range(runs + 1)][1:]
        medians = [statistics.median(column) for column in zip(*times)]
        ratios = [statistics.median(row[0] / max(row[other], 1e-6) for row in times) for other in range(1, len(binaries))]
        cells = "".join(f"{median:>10.4f}{median / nodes * 1e6:>11.2f}" for median in medians)
        print(f"{make.__name__:14}{nodes:>9}{cells}" + "".join(f"{ratio:>10.2f}" for ratio in ratios), flush=True)
PYTHON
