"""Folds random nodes of constants and compares the values with ONNX Runtime's.

    scripts/python.sh scripts/fuzz_evaluation.py target/release/onnx-slice-fold [--seed N] [--count N] [--family NAME ...]

Every case is one node with initializers as operands. Many cases make one model, so that thousands take one run of the program and one
session. Integers, booleans and strings must be equal, floats within the units in the last place of the case. If ONNX Runtime has no kernel,
or crashes, onnx.reference is used; without either result, the case counts as skipped. A node that the program does not fold counts as kept:
it declines where runtimes disagree.
"""
import argparse
import collections
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from evaluation import FAMILIES
from evaluation.cases import Case, tensor_type

# Types without a numpy equivalent are cast to float before they leave ONNX Runtime.
PLAIN = {np.dtype(name) for name in ("float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool").split()}
BATCH = 100


def build(cases, widen):
    """One model of all cases; `widen` adds casts so that ONNX Runtime can hand over every result."""
    nodes, initializers, outputs = [], [], []
    for number, case in cases:
        names = []
        for place, operand in enumerate(case.operands):
            if operand is None:
                names.append("")
                continue
            name = f"c{number}_{place}"
            if isinstance(operand, list):
                items = [f"{name}_{item}" for item in range(len(operand))]
                initializers += [constant(item, value) for item, value in zip(items, operand)]
                nodes.append(helper.make_node("SequenceConstruct", items, [name]))
            else:
                initializers.append(constant(name, operand))
            names.append(name)
        results = [f"c{number}_out{place}" for place in range(case.outputs)]
        nodes.append(helper.make_node(case.operator, names, results, domain=case.domain, **case.attributes))
        for place, name in enumerate(results):
            if widen and place in case.wide:
                nodes.append(helper.make_node("Cast", [name], [name + "_wide"], to=onnx.TensorProto.FLOAT))
                name += "_wide"
            outputs.append(onnx.ValueInfoProto(name=name))
    opset = cases[0][1].opset
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3 if opset < 22 else 5)]
    graph = helper.make_graph(nodes, "fuzz", [], outputs, initializers)
    return helper.make_model(graph, opset_imports=imports, ir_version=8 if opset < 19 else 10 if opset < 23 else 11)


def constant(name, value):
    if value.dtype.kind in "OU":
        return helper.make_tensor(name, onnx.TensorProto.STRING, value.shape, [str(item).encode() for item in value.ravel()])
    tensor = numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
    return tensor


def fold(binary, cases):
    """What the program makes of each case: a list of arrays, or None where a node is left."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = os.path.join(folder, "before.onnx"), os.path.join(folder, "after.onnx")
        onnx.save(build(cases, False), before)
        done = subprocess.run([binary, before, "-o", after, "--max-growth", "1e9"], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-500:]}")
        graph = onnx.load(after).graph
    known = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Identity" and node.input[0] in known:
            known[node.output[0]] = known[node.input[0]]
    found = []
    for number, case in cases:
        tensors = [known.get(f"c{number}_out{place}") for place in range(case.outputs)]
        found.append(None if None in tensors else [numpy_helper.to_array(tensor) for tensor in tensors])
    return found


def reasons(binary, cases):
    """Why the program leaves nodes alone, by the name of a result."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "before.onnx")
        onnx.save(build(cases, False), path)
        done = subprocess.run([binary, "explain", path, "--max-growth", "1e9"], capture_output=True, text=True)
    return {name: reason for name, reason in re.findall(r"node that computes '(\w+)': (.*)", done.stdout)}


def serve(pipe):
    """Runs models in ONNX Runtime, in a process of its own: it may die."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    while True:
        try:
            model = pipe.recv()
        except EOFError:
            return
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            pipe.send((True, session.run(None, {})))
        except Exception as error:  # noqa: BLE001
            pipe.send((False, str(error)))


class Runtime:
    """ONNX Runtime behind a pipe."""

    def __init__(self):
        self.process = None

    def run(self, model):
        """The results, or why there are none."""
        if self.process is None or not self.process.is_alive():
            self.pipe, other = multiprocessing.Pipe()
            self.process = multiprocessing.Process(target=serve, args=(other,), daemon=True)
            self.process.start()
            other.close()
        try:
            self.pipe.send(model.SerializeToString())
            if self.pipe.poll(60):
                return self.pipe.recv()
        except (EOFError, OSError):
            pass
        self.process.kill()
        self.process = None
        return False, "ONNX Runtime died"

    def evaluate(self, cases):
        """For each case its results, or the reason for none; cases that fail are set apart by halving."""
        good, found = self.run(build(cases, True))
        if good:
            results = iter(found)
            return [[next(results) for _ in range(case.outputs)] for _, case in cases]
        if len(cases) == 1:
            return [str(found)]
        half = len(cases) // 2
        return self.evaluate(cases[:half]) + self.evaluate(cases[half:])


def reference(number, case):
    from onnx.reference import ReferenceEvaluator

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [np.asarray(value) for value in ReferenceEvaluator(build([(number, case)], False)).run(None, {})]
    except Exception as error:  # noqa: BLE001
        return str(error)


def difference(case, ours, theirs):
    """None, or how two lists of results differ."""
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return f"result {place}: shape {a.shape} is not {b.shape}"
        if a.dtype.kind in "OUS":
            text = [[item.decode() if isinstance(item, bytes) else str(item) for item in x.ravel()] for x in (a, b)]
            if text[0] != text[1]:
                return f"result {place}: {text[0][:8]} is not {text[1][:8]}"
            continue
        narrow = a.dtype
        if narrow not in PLAIN:
            a, b = a.astype(np.float32), b.astype(np.float32)
        elif a.dtype != b.dtype:
            return f"result {place}: {a.dtype} is not {b.dtype}"
        if a.dtype.kind != "f":
            wrong = a != b
        else:
            epsilon = float(ml_dtypes.finfo(narrow).eps) if narrow.kind == "f" or narrow == ml_dtypes.bfloat16 else 0.0
            if case.single:
                epsilon = max(epsilon, float(np.finfo(np.float32).eps))
            x, y = a.astype(np.float64), b.astype(np.float64)
            with np.errstate(all="ignore"):
                size = np.maximum(np.abs(x), np.abs(y))
                # The error of a sum is relative to its terms, which may cancel.
                finite = size[np.isfinite(size)]
                floor = case.absolute * (finite.max() if case.relative_to_all and finite.size else 1.0)
                near = np.abs(x - y) <= case.ulps * epsilon * size + floor * epsilon
                signs = (np.signbit(x) == np.signbit(y)) | (x != 0) | (case.ulps + case.absolute > 0)
                wrong = ~((near & signs) | (x == y) & signs | np.isnan(x) & np.isnan(y))
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            return f"result {place}: {int(wrong.sum())} of {wrong.size} differ, at {list(at)} {a[at]!r} is not {b[at]!r}"
    return None


def describe(case):
    def text(value):
        if value is None:
            return "-"
        if isinstance(value, list):
            return f"[{', '.join(text(item) for item in value)}]"
        shape = "x".join(map(str, value.shape))
        return f"{value.dtype}[{shape}]" + (f"{value.ravel().tolist()}" if value.size <= 6 else "")

    attributes = ", ".join(f"{name}={str(value)[:80]}" for name, value in case.attributes.items())
    return f"{case.operator}-{case.opset}({', '.join(text(operand) for operand in case.operands)}; {attributes})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10_000, help="cases in all")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="only these")
    parser.add_argument("--show", type=int, default=3, help="how many differences to print for each operator")
    parser.add_argument("--kept", action="store_true", help="count why nodes are kept that ONNX Runtime computes")
    args = parser.parse_args()
    names = args.family or sorted(FAMILIES)
    runtime = Runtime()
    counts = collections.defaultdict(collections.Counter)
    shown, kept = collections.Counter(), collections.Counter()
    for place, name in enumerate(names):
        rng = np.random.default_rng([args.seed, sorted(FAMILIES).index(name)])
        makers = FAMILIES[name]
        wanted = args.count // len(names) + (place < args.count % len(names))
        by_opset = collections.defaultdict(list)
        for number in range(wanted):
            case = makers[number % len(makers)](rng)
            by_opset[case.opset].append((number, case))
        for cases in by_opset.values():
            for start in range(0, len(cases), BATCH):
                batch, why = cases[start : start + BATCH], {}
                for (number, case), ours, theirs in zip(batch, fold(args.binary, batch), runtime.evaluate(batch)):
                    oracle = "ONNX Runtime"
                    if isinstance(theirs, str):
                        theirs, oracle = reference(number, case), "onnx.reference"
                    if isinstance(theirs, str) or case.only_runtime and oracle != "ONNX Runtime":
                        verdict = "skipped"
                    elif ours is None:
                        verdict = "kept"
                        if args.kept:
                            why = why or reasons(args.binary, batch)
                            kept[case.operator, why.get(f"c{number}_out0", "?")] += 1
                    else:
                        wrong = difference(case, ours, theirs)
                        verdict = "wrong" if wrong else "equal"
                        if wrong and shown[case.operator] < args.show:
                            shown[case.operator] += 1
                            print(f"{describe(case)}\n    {wrong} ({oracle})", flush=True)
                    counts[name, case.operator][verdict] += 1
    for (operator, reason), count in sorted(kept.items()):
        print(f"{count:6} {operator}: {reason}")
    total = collections.Counter()
    print(f"{'family':14}{'operator':26}{'equal':>7}{'kept':>7}{'skipped':>9}{'wrong':>7}")
    for (name, operator), count in sorted(counts.items()):
        total.update(count)
        print(f"{name:14}{operator:26}{count['equal']:7}{count['kept']:7}{count['skipped']:9}{count['wrong']:7}")
    print(f"{total['equal']} equal, {total['kept']} kept, {total['skipped']} skipped, {total['wrong']} wrong")
    return 1 if total["wrong"] or not total["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
