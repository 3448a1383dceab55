"""Folds models and compares them with the originals in ONNX Runtime on random inputs.

    scripts/python.sh scripts/compare_onnxruntime.py --binary target/release/onnx-slice-fold MODEL_OR_FOLDER ...

Models are `.onnx` files, or `.onnxtxt` files in the standard's text syntax, which its own parser reads.

Each symbolic dimension takes every size of --sizes in turn (0 only if the original runs with it). A folded model must be valid, must have
the inputs and outputs of the original, and must give the same results; every declared shape must be the shape of the tensor. Integers,
booleans and strings are compared exactly, floats with a small tolerance. With --bits floats are compared bit for bit, in sessions with the
default optimizations, because `--flags=--exact` promises that. A model whose original passes `check_model(full_check=True)` must pass it
after folding.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.parser
import onnx.shape_inference
import onnxruntime

DTYPES = {
    onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.DOUBLE: np.float64, onnx.TensorProto.FLOAT16: np.float16,
    onnx.TensorProto.INT8: np.int8, onnx.TensorProto.INT16: np.int16, onnx.TensorProto.INT32: np.int32,
    onnx.TensorProto.INT64: np.int64, onnx.TensorProto.UINT8: np.uint8, onnx.TensorProto.UINT16: np.uint16,
    onnx.TensorProto.UINT32: np.uint32, onnx.TensorProto.UINT64: np.uint64, onnx.TensorProto.BOOL: np.bool_,
}


SUFFIXES = {".onnx", ".onnxtxt"}
# The message of a process for each size that passed, because ONNX Runtime may end the process at a later one.
EQUAL = "equal"
SKIPPED = "the original runs at none of the sizes"


def session(path, optimized=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def inputs(model):
    """The graph's inputs that have no default."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initializers]


def innermost(declared):
    """The type of the tensors in a sequence or an optional."""
    while declared.WhichOneof("value") in ("sequence_type", "optional_type"):
        declared = getattr(declared, declared.WhichOneof("value")).elem_type
    return declared


def symbols(model):
    """The dimensions of the graph's inputs that have no number, each under its own name."""
    found = {}
    for value in inputs(model):
        for axis, dim in enumerate(innermost(value.type).tensor_type.shape.dim):
            if not dim.HasField("dim_value") or dim.dim_value < 0:
                found.setdefault(dim.dim_param or f"{value.name}.{axis}", None)
    return list(found)


def feed(name, declared, sizes, rng):
    """A random value of a type. Integers are small, so that they may be indices and token numbers."""
    kind = declared.WhichOneof("value")
    if kind == "sequence_type":
        return [feed(name, declared.sequence_type.elem_type, sizes, rng) for _ in range(2)]
    if kind == "optional_type":
        return feed(name, declared.optional_type.elem_type, sizes, rng)
    if kind == "map_type":
        return {key: float(rng.standard_normal()) for key in range(3)}
    tensor = declared.tensor_type
    shape = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else sizes[dim.dim_param or f"{name}.{axis}"]
             for axis, dim in enumerate(tensor.shape.dim)]
    if tensor.elem_type == onnx.TensorProto.STRING:
        return rng.choice(np.array(["ant", "Bee", "cow hen"], object), shape)
    dtype = np.dtype(DTYPES.get(tensor.elem_type) or onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    if dtype.kind == "f":
        return np.asarray(rng.standard_normal(shape), dtype)
    return np.asarray(rng.integers(0, 2 if dtype.kind == "b" else 3, shape), dtype)


def feeds(model, sizes, rng):
    """Random inputs at these sizes."""
    return {value.name: feed(value.name, value.type, sizes, rng) for value in inputs(model)}


def evaluate(text, sizes):
    """The value of a dimension expression at these sizes; None for a label or another text."""
    names = {f"s{i}_": sizes[name] for i, name in enumerate(sizes)}
    for i, name in enumerate(sizes):
        text = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", f"s{i}_", text)
    if not re.fullmatch(r"[\w\s+\-*/%(),]*", text):
        return None
    from fractions import Fraction
    import math
    text = re.sub(r"\b\d+\b", r"Fraction(\g<0>)", text)
    functions = {"floor": math.floor, "ceil": math.ceil, "min": min, "max": max, "Mod": lambda a, b: a % b, "Fraction": Fraction}
    try:
        return int(eval(text, {"__builtins__": {}}, {**functions, **{k: Fraction(v) for k, v in names.items()}}))  # noqa: S307
    except Exception:  # noqa: BLE001
        return None


def check_shapes(path, sizes, values):
    """Runs the folded model with every tensor as an output and compares stated with true shapes."""
    model = onnx.load(path)
    stated = {v.name: v.type.tensor_type.shape.dim for v in [*model.graph.value_info, *model.graph.output]
              if v.type.HasField("tensor_type") and v.type.tensor_type.HasField("shape")}
    outputs = {v.name for v in model.graph.output}
    del model.graph.value_info[:]
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    # For an empty tensor, ONNX Runtime keeps the axes instead of reducing them.
    reduced = {name for node in model.graph.node if node.op_type.startswith(("Reduce", "Arg")) for name in node.output}
    for node in model.graph.node:
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name in stated and name not in outputs)
    with tempfile.NamedTemporaryFile(suffix=".onnx", dir=os.path.dirname(path)) as file:
        file.write(model.SerializeToString())
        file.flush()
        opened = session(file.name)
        for output, value in zip(opened.get_outputs(), opened.run(None, values)):
            if output.name not in stated or not isinstance(value, np.ndarray) or output.name in reduced and value.size == 0:
                continue
            dims = stated[output.name]
            if len(dims) != value.ndim:
                return f"'{output.name}' is stated to have rank {len(dims)} but has shape {value.shape}"
            for dim, size in zip(dims, value.shape):
                want = dim.dim_value if dim.HasField("dim_value") else evaluate(dim.dim_param, sizes)
                if want is not None and want != size:
                    return f"'{output.name}' is stated to be {dim.dim_param or dim.dim_value} long but has shape {value.shape}"
    return None


def same(a, b, bits=False):
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y, bits) for x, y in zip(a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "f" and bits:
        unlike = a.view(f"u{a.dtype.itemsize}") != b.view(f"u{b.dtype.itemsize}")
        return not np.any(unlike & ~(np.isnan(a) & np.isnan(b)))
    if a.dtype.kind == "f":
        tolerance = 2e-2 if a.dtype.itemsize == 2 else 1e-4
        return np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True)
    return np.array_equal(a, b)


def compare(binary, path, folder, sizes, flags, bits):
    """Returns None, or the error of the folded model."""
    if path.suffix == ".onnxtxt":
        source = pathlib.Path(folder, f"{path.stem}.source.onnx")
        onnx.save(onnx.parser.parse_model(path.read_text()), source)
        path = source
    target = os.path.join(folder, f"{path.stem}.out.onnx")
    done = subprocess.run([binary, str(path), "-o", target, *flags], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.strip()}"
    model, folded = onnx.load(path), onnx.load(target)
    typed = os.path.join(folder, f"{path.stem}.typed.onnx")
    interface = lambda m: ([v.name for v in m.graph.input], [v.name for v in m.graph.output])  # noqa: E731
    if interface(model) != interface(folded):
        return "inputs or outputs differ"
    try:
        # The original outputs may lack types; the inferred ones have them.
        onnx.checker.check_model(onnx.shape_inference.infer_shapes_path(str(path), typed) or typed, full_check=True)
        valid = True
    except Exception:  # noqa: BLE001
        valid = False
    if valid:
        onnx.checker.check_model(target, full_check=True)
    names, runs = symbols(model), 0
    for size in sizes if names else [0]:
        # All sizes are different, unless the model requires equal or even ones.
        for step in (1, 0) if size > 1 else (0,):
            chosen = {name: size + step * i for i, name in enumerate(names)}
            values = feeds(model, chosen, np.random.default_rng(size))
            try:
                original = session(str(path), bits)
                before = original.run(None, values)
                break
            except Exception:  # noqa: BLE001
                before = None
        if before is None:
            continue
        # For operands that do not fit, ONNX Runtime reads out of bounds; such a run is no measure.
        if not all(same(a, b, bits) for a, b in zip(before, original.run(None, values))):
            continue
        runs += 1
        try:
            after = session(target, bits).run(None, values)
        except Exception as error:  # noqa: BLE001
            return f"fails at {chosen}: {str(error).splitlines()[0][-200:]}"
        if not all(same(a, b, bits) for a, b in zip(before, after)):
            return f"results differ at {chosen}"
        wrong = check_shapes(target, chosen, values)
        if wrong:
            return f"{wrong} at {chosen}"
        print(EQUAL, file=sys.stderr, flush=True)
    return None if runs else SKIPPED


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--sizes", default="32,5,1,0", help="sizes for symbolic dimensions, comma-separated")
    parser.add_argument("--flags", default="", help="more arguments for the binary")
    parser.add_argument("--bits", action="store_true", help="compare floats bit for bit, in sessions with all optimizations")
    parser.add_argument("--one", action="store_true", help="compare the one model given, in this process")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    paths = [p for name in args.models for p in (sorted(p for p in pathlib.Path(name).rglob("*") if p.suffix in SUFFIXES) if os.path.isdir(name) else [pathlib.Path(name)])]
    paths = [p for p in paths if ".folded" not in p.name]
    if args.one:
        with tempfile.TemporaryDirectory() as folder:
            sizes = [int(s) for s in args.sizes.split(",")]
            print(compare(args.binary, paths[0], folder, sizes, args.flags.split(), args.bits) or "", end="")
        return 0
    passed = failed = 0
    for path in paths:
        # A process for each model, because a size that ONNX Runtime does not support may end the process.
        words = [sys.executable, __file__, "--binary", args.binary, "--sizes", args.sizes, f"--flags={args.flags}", *(["--bits"] if args.bits else []), "--one", str(path)]
        done = subprocess.run(words, capture_output=True, text=True)
        wrong = done.stdout or None
        if done.returncode > 0:
            wrong = done.stderr.strip().splitlines()[-1]
        elif done.returncode < 0:
            wrong = None if EQUAL in done.stderr else SKIPPED
        passed, failed = passed + (wrong is None), failed + (wrong not in (None, SKIPPED))
        if wrong:
            print(f"{path}: {wrong}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
