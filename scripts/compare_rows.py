"""Compares the declared shapes of rows of a Loop without iterations with the results of ONNX Runtime.

    scripts/python.sh scripts/compare_rows.py target/release/onnx-slice-fold [--seed N] [--count N] [--operator NAME ...]

Without an iteration ONNX Runtime gives rows the sizes that it inferred for the body at load time, and 0 for unknown ones. The operator
trait `shape_inference` describes this inference. Every case is one random node whose result is a row: its operands are constants or inputs,
some of whose sizes are dynamic. Every number in the declared shape must equal the original's result, and the folded model must give the
same shape.
"""
import argparse
import collections
import multiprocessing
import os
import subprocess
import tempfile
import warnings

import numpy as np
import onnx
from onnx import helper

from evaluation import FAMILIES
from evaluation.cases import PLAIN, tensor_type
from fuzz_evaluation import constant, describe

KINDS = "biuf"


def build(rng, case):
    """The model, its inputs, and its dynamic sizes; `None` if operands are no tensors that may be inputs."""
    inputs, initializers, names, fed, opened = [helper.make_tensor_value_info("trips", 7, [])], [], [], {}, []
    share = rng.choice([0.0, 0.2, 0.5])
    for place, operand in enumerate(case.operands):
        if operand is None:
            names.append("")
            continue
        if isinstance(operand, list):
            return None
        name = f"x{place}"
        names.append(name)
        may_come = operand.dtype in PLAIN and operand.dtype.kind in KINDS
        # Operands after the first are often parameters, whose content determines sizes.
        if not may_come or rng.random() < (0.2 if place == 0 else 0.7):
            initializers.append(constant(name, operand))
            continue
        dims = [f"d{place}_{axis}" if rng.random() < share else size for axis, size in enumerate(operand.shape)]
        opened += [dim for dim in dims if isinstance(dim, str)]
        inputs.append(helper.make_tensor_value_info(name, tensor_type(operand.dtype), dims))
        fed[name] = operand
    if not fed:
        return None
    results = [f"r{place}" for place in range(case.outputs)]
    nodes = [helper.make_node("Identity", ["more"], ["goes_on"]),
             helper.make_node(case.operator, names, results, domain=case.domain, **case.attributes)]
    flag = helper.make_tensor_value_info("more", 9, [])
    body = helper.make_graph(nodes, "body", [helper.make_tensor_value_info("i", 7, []), flag],
                             [helper.make_tensor_value_info("goes_on", 9, []), onnx.ValueInfoProto(name="r0")])
    graph = helper.make_graph([helper.make_node("Loop", ["trips", ""], ["y"], body=body)], "rows", inputs,
                              [onnx.ValueInfoProto(name="y")], initializers)
    opset = max(case.opset, 11)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3 if opset < 22 else 5)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8 if opset < 19 else 10 if opset < 23 else 11)
    return model, {"trips": np.array(0), **fed}, opened


def serve(pipe):
    """Runs models in ONNX Runtime, in a separate process that may crash."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    levels = onnxruntime.GraphOptimizationLevel
    while True:
        try:
            model, fed, optimizes = pipe.recv()
        except EOFError:
            return
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimizes else levels.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            taken = {value.name for value in session.get_inputs()}
            fed = {name: value for name, value in fed.items() if name in taken}
            pipe.send(tuple(session.run(["y"], fed)[0].shape))
        except Exception as error:  # noqa: BLE001
            pipe.send(str(error))


class Runtime:
    """ONNX Runtime behind a pipe."""

    def __init__(self):
        self.process = None

    def shape(self, *asked):
        """The shape of the rows, or the reason why there is none."""
        if self.process is None or not self.process.is_alive():
            self.pipe, other = multiprocessing.Pipe()
            self.process = multiprocessing.Process(target=serve, args=(other,), daemon=True)
            self.process.start()
            other.close()
        try:
            self.pipe.send(asked)
            if self.pipe.poll(60):
                return self.pipe.recv()
        except (EOFError, OSError):
            pass
        self.process.kill()
        self.process = None
        return "ONNX Runtime died"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3000, help="cases in all")
    parser.add_argument("--operator", action="append", help="only these")
    args = parser.parse_args()
    makers = [maker for family in FAMILIES.values() for maker in family]
    rng = np.random.default_rng(args.seed)
    runtime, counts, wrong = Runtime(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        before, after = os.path.join(folder, "before.onnx"), os.path.join(folder, "after.onnx")
        for number in range(args.count):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case = makers[number % len(makers)](rng)
            built = None if args.operator and case.operator not in args.operator else build(rng, case)
            if built is None:
                counts["no rows"] += 1
                continue
            model, fed, opened = built
            optimizes = bool(rng.random() < 0.5)
            theirs = runtime.shape(model.SerializeToString(), fed, optimizes)
            if isinstance(theirs, str):
                counts["not run by ONNX Runtime"] += 1
                continue
            onnx.save(model, before)
            done = subprocess.run([args.binary, before, "-o", after, "--shapes", "all"], capture_output=True, text=True)
            if done.returncode:
                wrong.append(f"{describe(case)} open {opened}: exit code {done.returncode}: {done.stderr[-200:]}")
                continue
            folded = onnx.load(after)
            kind = folded.graph.output[0].type.tensor_type
            stated = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
            ours = runtime.shape(folded.SerializeToString(), fed, optimizes)
            differ = kind.HasField("shape") and (
                len(stated) != len(theirs) or any(a not in (None, b) for a, b in zip(stated, theirs)))
            counts["sizes are stated" if kind.HasField("shape") else "nothing is stated"] += 1
            if differ or ours != theirs:
                wrong.append(f"{describe(case)} open {opened}: stated {stated}, folded {ours}, ONNX Runtime {theirs}")
    for line in wrong:
        print(line)
    print(f"{args.count} cases, {len(wrong)} wrong:", ", ".join(f"{what} {count}" for what, count in counts.most_common()))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
