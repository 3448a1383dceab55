"""Compares the evaluator's time with that of ONNX Runtime on one thread, over constants of 64 MiB.

    scripts/python.sh scripts/compare_speed.py [--filter REGEX] BENCH

BENCH is the program that `cargo bench --bench evaluate --no-run` names. Every node is timed three times in each, and the minimum counts.
ONNX Runtime runs without its arena, because folding computes a node once, in new memory. Operators should take at most 1.5 times as long as
there, rarer ones twice or four times. The time of all cores is printed as well, which is more reliable on a busy machine.
"""
import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

SIDE = 4096
RNG = np.random.default_rng(1)


def cases():
    """Name, how many times longer it may take, operator, operands, attributes, results."""
    flat = RNG.standard_normal(SIDE * SIDE).astype(np.float32)
    square = flat.reshape(SIDE, SIDE)
    deep = flat.reshape(1, 64, 512, 512)
    whole = RNG.integers(-1000, 1000, SIDE * SIDE).astype(np.int32)
    few = RNG.integers(0, 1000, 1 << 22)
    small = RNG.standard_normal((1024, 1024)).astype(np.float32)
    image, kernel = RNG.standard_normal((1, 64, 112, 112)).astype(np.float32), RNG.standard_normal((64, 64, 3, 3)).astype(np.float32)
    ints = lambda *numbers: np.array(numbers, np.int64)  # noqa: E731
    yield "MatMul 1024³", 1.5, "MatMul", [small, small], {}, 1
    yield "Conv 3×3 on 1×64×112×112", 1.5, "Conv", [image, kernel], {"pads": [1, 1, 1, 1]}, 1
    for operator in ("Exp", "Tanh", "Sigmoid", "Erf", "Log"):
        yield operator, 4, operator, [np.abs(square) if operator == "Log" else square], {}, 1
    for operator in ("Neg", "Relu", "Floor"):
        yield operator, 2, operator, [square], {}, 1
    for operator in ("Add", "Mul", "Max", "Greater"):
        yield operator, 2, operator, [square, square[::-1].copy()], {}, 1
    yield "Add of a row", 2, "Add", [square, square[0]], {}, 1
    for name, to in (("float16", 10), ("int32", 6), ("double", 11), ("uint8", 2)):
        yield f"Cast to {name}", 1.5, "Cast", [np.abs(square) * 40], {"to": to}, 1
    yield "Cast int32 to float", 2, "Cast", [whole], {"to": 1}, 1
    yield "Transpose 4096²", 2, "Transpose", [square], {"perm": [1, 0]}, 1
    for perm in ([0, 2, 3, 1], [0, 2, 1, 3], [3, 2, 1, 0]):
        yield f"Transpose 1×64×512×512 {perm}", 2, "Transpose", [deep], {"perm": perm}, 1
    yield "Transpose of bytes", 2, "Transpose", [(flat.reshape(8192, 2048) > 0).astype(np.uint8)], {"perm": [1, 0]}, 1
    yield "DepthToSpace DCR", 2, "DepthToSpace", [deep], {"blocksize": 2, "mode": "DCR"}, 1
    yield "DepthToSpace CRD", 2, "DepthToSpace", [deep], {"blocksize": 2, "mode": "CRD"}, 1
    yield "SpaceToDepth", 2, "SpaceToDepth", [deep], {"blocksize": 2}, 1
    yield "Gather rows", 2, "Gather", [square, RNG.integers(0, SIDE, SIDE)], {}, 1
    yield "Gather columns", 2, "Gather", [square, RNG.integers(0, SIDE, SIDE)], {"axis": 1}, 1
    yield "GatherElements", 2, "GatherElements", [square, RNG.integers(0, SIDE, (SIDE, SIDE))], {"axis": 1}, 1
    yield "Slice by 2", 2, "Slice", [square, ints(0, 0), ints(SIDE, SIDE), ints(0, 1), ints(1, 2)], {}, 1
    yield "Slice backwards", 2, "Slice", [square, ints(-1), ints(-SIDE - 1), ints(1), ints(-1)], {}, 1
    yield "Concat", 2, "Concat", [square, square], {"axis": 1}, 1
    yield "Pad", 2, "Pad", [deep, ints(0, 0, 1, 1, 0, 0, 1, 1)], {}, 1
    yield "Pad by reflection", 2, "Pad", [deep, ints(0, 0, 3, 3, 0, 0, 3, 3)], {"mode": "reflect"}, 1
    yield "Tile", 2, "Tile", [small, ints(4, 4)], {}, 1
    yield "Expand", 2, "Expand", [square[:1], ints(SIDE, SIDE)], {}, 1
    yield "Where", 2, "Where", [square > 0, square, square], {}, 1
    yield "CumSum along rows", 2, "CumSum", [square, np.array(1)], {}, 1
    yield "CumSum along columns", 2, "CumSum", [square, np.array(0)], {}, 1
    yield "TopK 5", 2, "TopK", [square, ints(5)], {}, 2
    yield "TopK 100", 2, "TopK", [square, ints(100)], {}, 2
    yield "TopK of columns", 2, "TopK", [square[:, :1024].copy(), ints(5)], {"axis": 0}, 2
    yield "Unique of 1000", 4, "Unique", [few], {}, 4
    yield "Unique of all", 4, "Unique", [flat[: 1 << 20]], {}, 4
    yield "ArgMax", 2, "ArgMax", [square], {"axis": 1}, 1
    yield "ReduceSum of rows", 1.5, "ReduceSum", [square, ints(1)], {}, 1
    yield "ReduceSum of columns", 1.5, "ReduceSum", [square, ints(0)], {}, 1
    yield "ReduceMax", 1.5, "ReduceMax", [square, ints(1)], {}, 1
    yield "Softmax", 1.5, "Softmax", [square], {}, 1
    yield "LayerNormalization", 1.5, "LayerNormalization", [square, square[0]], {}, 1
    yield "Range of floats", 2, "Range", [np.float32(0), np.float32(SIDE * SIDE), np.float32(1)], {}, 1
    yield "Range of int64", 2, "Range", [np.int64(0), np.int64(SIDE * SIDE // 2), np.int64(1)], {}, 1
    yield "OneHot", 2, "OneHot", [RNG.integers(0, SIDE, SIDE), ints(SIDE), np.array([0, 1], np.float32)], {}, 1
    yield "NonZero", 2, "NonZero", [(square > 1).astype(np.float32)], {}, 1
    yield "QuantizeLinear", 1.5, "QuantizeLinear", [square, np.float32(0.05), np.uint8(128)], {}, 1
    yield "DequantizeLinear", 2, "DequantizeLinear", [(whole % 256).astype(np.uint8).reshape(SIDE, SIDE), np.float32(0.05), np.uint8(128)], {}, 1
    yield "MaxPool 3×3", 1.5, "MaxPool", [deep], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, 1
    yield "Resize to twice the size", 4, "Resize", [deep[:, :16].copy(), None, np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}, 1


RUNS = 3


def runtime(model):
    """The shortest of some runs, and the average time of all cores, in milliseconds."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    shortest, cores = float("inf"), time.process_time()
    for _ in range(RUNS):
        begin = time.perf_counter()
        session.run_with_ort_values(None, {})
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest * 1e3, (time.process_time() - cores) * 1e3 / RUNS


def ours(bench, model):
    """As `runtime`: what more runs take of the cores than one."""
    used, shortest = [], 0
    for runs in (1, 1 + RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([bench, model, str(runs)], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[0])
        shortest = float(done.stdout)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    # On a busy machine the difference of two small times may be negative.
    return shortest, max(used[1] - used[0], 0) * 1e3 / RUNS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--filter", default="")
    args = parser.parse_args()
    slow = 0
    print(f"{'':40}{'ours ms':>10}{'theirs ms':>11}{'ratio':>8}{'cores':>8}{'limit':>7}")
    for name, limit, operator, operands, attributes, results in cases():
        if not re.search(args.filter, name):
            continue
        names = ["" if operand is None else f"x{place}" for place, operand in enumerate(operands)]
        initializers = [numpy_helper.from_array(np.asarray(operand), name) for name, operand in zip(names, operands) if name]
        outputs = [f"y{place}" for place in range(results)]
        node = helper.make_node(operator, names, outputs, **attributes)
        graph = helper.make_graph([node], "speed", [], [onnx.ValueInfoProto(name=name) for name in outputs], initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            onnx.save(model, path)
            theirs = runtime(path)
            try:
                own = ours(args.bench, path)
            except RuntimeError as error:
                print(f"{name:40} {error}")
                slow += 1
                continue
        ratio, cores = own[0] / theirs[0], own[1] / theirs[1]
        over = min(ratio, cores) > limit
        slow += over
        print(f"{name:40}{own[0]:10.1f}{theirs[0]:11.1f}{ratio:8.2f}{cores:8.2f}{limit:>7}{' slow' if over else ''}", flush=True)
    print(f"{slow} over the limit")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
