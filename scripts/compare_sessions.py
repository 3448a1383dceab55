"""Times original and folded models in ONNX Runtime sessions, in short alternating turns.

    scripts/python.sh scripts/compare_sessions.py --binary target/release/onnx-slice-fold [--flags FLAGS] [MODEL ...]

Without models it times two encoders as the TorchScript exporter writes BERT, with dynamic batch and sequence: six layers of width 384 and
four of width 768. Sessions have the defaults of users: all optimizations, on one thread. Prints the median milliseconds of both, the median
of the ratios of adjacent turns by wall-clock time and by processor time, and the fusions of sums with normalizations. The exit status is 1
if a ratio by processor time is above --most.
"""
import argparse
import collections
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from compare_onnxruntime import feeds, symbols

RNG = np.random.default_rng(1)


class Export:
    """A graph in the form of the TorchScript exporter."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def add(self, operator, *inputs, **attributes):
        name = f"/{operator}_{len(self.nodes)}_output_0"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=f"/{operator}_{len(self.nodes)}", **attributes))
        return name

    def number(self, value, dtype=np.float32):
        return self.add("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def weight(self, *shape):
        name = f"weight_{len(self.weights)}"
        values = RNG.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(shape[0]))
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def ints(self, *values):
        return self.number(list(values), np.int64)

    def size(self, tensor, axis):
        """The size of an axis in a tensor of one element."""
        return self.add("Unsqueeze", self.add("Gather", self.add("Shape", tensor), self.number(axis, np.int64), axis=0), self.ints(0))

    def view(self, tensor, *tail):
        """Keeps batch and sequence, and reshapes the rest to these sizes."""
        sizes = self.add("Concat", self.size(tensor, 0), self.size(tensor, 1), *[self.ints(size) for size in tail], axis=0)
        return self.add("Reshape", tensor, sizes)

    def linear(self, x, inside, outside):
        return self.add("Add", self.weight(outside), self.add("MatMul", x, self.weight(inside, outside)))

    def normalization(self, x, width):
        centred = self.add("Sub", x, self.add("ReduceMean", x, axes=[-1]))
        variance = self.add("ReduceMean", self.add("Pow", centred, self.number(2)), axes=[-1])
        deviation = self.add("Sqrt", self.add("Add", variance, self.number(1e-12)))
        return self.add("Add", self.add("Mul", self.add("Div", centred, deviation), self.weight(width)), self.weight(width))

    def gelu(self, x):
        error = self.add("Add", self.add("Erf", self.add("Div", x, self.number(np.sqrt(2)))), self.number(1))
        return self.add("Mul", self.add("Mul", x, error), self.number(0.5))


def encoder(layers, width, heads=12, words=1000, longest=512):
    export = Export()
    word = export.add("Gather", export.weight(words, width), "input_ids")
    export.weights.append(numpy_helper.from_array(np.arange(longest).reshape(1, longest), "position_ids"))
    ids = export.add("Slice", "position_ids", export.ints(0), export.size("input_ids", 1), export.ints(1), export.ints(1))
    x = export.add("Add", word, export.add("Gather", export.weight(longest, width), ids))
    x = export.normalization(x, width)
    mask = export.add("Unsqueeze", export.add("Unsqueeze", "attention_mask", export.ints(1)), export.ints(2))
    mask = export.add("Sub", export.number(1), export.add("Cast", mask, to=TensorProto.FLOAT))
    mask = export.add("Mul", mask, export.number(np.finfo(np.float32).min))
    for _ in range(layers):
        part = width // heads
        query, key, value = (export.view(export.linear(x, width, width), heads, part) for _ in range(3))
        query, value = (export.add("Transpose", tensor, perm=[0, 2, 1, 3]) for tensor in (query, value))
        scores = export.add("MatMul", query, export.add("Transpose", key, perm=[0, 2, 3, 1]))
        scores = export.add("Add", export.add("Div", scores, export.number(np.sqrt(part))), mask)
        context = export.add("MatMul", export.add("Softmax", scores, axis=-1), value)
        context = export.view(export.add("Transpose", context, perm=[0, 2, 1, 3]), width)
        x = export.normalization(export.add("Add", export.linear(context, width, width), x), width)
        inner = export.gelu(export.linear(x, width, 4 * width))
        x = export.normalization(export.add("Add", export.linear(inner, 4 * width, width), x), width)
    export.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in ("input_ids", "attention_mask")]
    result = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", width])
    graph = helper.make_graph(export.nodes, "torch_jit", given, [result], export.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=7)


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.optimized_model_filepath = f"{path}.optimized"
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def fused(path):
    model = onnx.load(f"{path}.optimized", load_external_data=False)
    return collections.Counter(node.op_type for node in model.graph.node)["SkipLayerNormalization"]


def timed(session, values):
    wall, own = time.perf_counter(), time.process_time()
    session.run(None, values)
    return time.perf_counter() - wall, time.process_time() - own


def compare(binary, flags, source, folder, batch, sequence, turns):
    """Milliseconds of both, the two ratios, and the fusions of both."""
    target = f"{folder}/folded.onnx"
    subprocess.run([binary, source, "-o", target, "-q", *flags], check=True)
    model = onnx.load(source)
    names = symbols(model)
    sizes = {name: batch if at == 0 else sequence for at, name in enumerate(names)}
    values = feeds(model, sizes, np.random.default_rng(1))
    both = [session(source), session(target)]
    for one in both:
        for _ in range(5):
            one.run(None, values)
    taken = []
    for turn in range(turns):
        order = (0, 1) if turn % 2 else (1, 0)
        pair = [None, None]
        for which in order:
            pair[which] = timed(both[which], values)
        taken.append(pair)
    times = [statistics.median(pair[which][0] for pair in taken) * 1e3 for which in (0, 1)]
    ratios = [statistics.median(pair[1][clock] / pair[0][clock] for pair in taken) for clock in (0, 1)]
    return times, ratios, [fused(path) for path in (source, target)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--flags", default="", help="more arguments for the binary")
    parser.add_argument("--batch", type=int, default=2, help="size of the first open dim")
    parser.add_argument("--sequence", type=int, default=128, help="size of the others")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--most", type=float, default=1.02, help="the largest ratio that passes")
    parser.add_argument("models", nargs="*")
    args = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        models = [(pathlib.Path(path).name, onnx.load(path)) for path in args.models]
        if not models:
            models = [(f"{layers} layers of width {width}", encoder(layers, width)) for layers, width in [(6, 384), (4, 768)]]
        for name, model in models:
            path = f"{folder}/original.onnx"
            onnx.save(model, path)
            times, ratios, fusions = compare(args.binary, args.flags.split(), path, folder, args.batch, args.sequence, args.turns)
            worst = max(worst, ratios[1])
            print(f"{name}: {times[0]:.2f} ms and {times[1]:.2f} ms, ratio {ratios[0]:.3f} by wall clock, {ratios[1]:.3f} by processor time, "
                  f"{fusions[0]} and {fusions[1]} fused sums", flush=True)
    return 1 if worst > args.most else 0


if __name__ == "__main__":
    sys.exit(main())
