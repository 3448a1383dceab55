"""Compares the errors of models and their folded forms relative to double precision.

    compare_error.py --binary target/release/onnx-slice-fold [--factor 2] [--draws 4] [--index INDEX.json] MODEL_OR_FOLDER ...

Each model is folded, and original and result run in ONNX Runtime on the same inputs. The reference is the original with every
floating-point tensor as double, in ONNX Runtime or, if that lacks a kernel, in onnx's reference evaluator. Prints each model whose folded
form has a larger error than `factor` times the original's, which counts as half a unit in the last place of the largest result at least. A
count follows at the end.

Errors are means over several draws of the inputs: the error of one draw, the largest of a few thousand roundings, varies by a factor of
three in both. Inputs are normal floats and small integers; the index, if given, lists sizes and kinds (`models[].spec`), and without it
each symbol is 4.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.BFLOAT16)


def widened(model):
    """The model with doubles in place of narrower floats, bodies included."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)

    def tensor(proto):
        if proto.data_type in FLOATS:
            proto.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(proto).astype(np.float64), proto.name))

    def graph(proto):
        for constant in proto.initializer:
            tensor(constant)
        for value in (*proto.input, *proto.output):
            if value.type.tensor_type.elem_type in FLOATS:
                value.type.tensor_type.elem_type = TensorProto.DOUBLE
        del proto.value_info[:]
        for node in proto.node:
            if node.op_type == "ConstantOfShape" and not node.attribute:
                # Without an attribute, the fill value is a float.
                node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1, np.float32), "value")))
            for attribute in node.attribute:
                if attribute.type == AttributeProto.TENSOR:
                    tensor(attribute.t)
                elif attribute.type == AttributeProto.GRAPH:
                    graph(attribute.g)
                elif node.op_type == "Cast" and attribute.name == "to" and attribute.i in FLOATS:
                    attribute.i = TensorProto.DOUBLE
                elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                    number = attribute.f if attribute.name == "value_float" else list(attribute.floats)
                    value = numpy_helper.from_array(np.array(number, np.float64))
                    attribute.CopyFrom(helper.make_attribute("value", value))

    graph(wide.graph)
    return wide


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def drawn(model, spec, seed):
    """Inputs with the sizes and kinds of the index; by default 4 and the declared type."""
    rng = np.random.default_rng(seed)
    given = {entry["name"]: entry for entry in (spec or {}).get("inputs", [])}
    sizes = dict((spec or {}).get("dims", [{}])[0])
    held = {constant.name for constant in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name in held:
            continue
        ty = value.type.tensor_type
        told = given.get(value.name, {})
        dims = told.get("shape") or [dim.dim_param or dim.dim_value for dim in ty.shape.dim]
        shape = [dim if isinstance(dim, int) else int(eval(dim, {}, sizes)) if sizes else 4 for dim in dims]
        dtype = helper.tensor_dtype_to_np_dtype(ty.elem_type)
        kind = told.get("gen", {})
        if kind.get("kind") == "ones":
            array = np.ones(shape)
        elif np.issubdtype(dtype, np.floating):
            array = rng.standard_normal(shape)
        else:
            array = rng.integers(kind.get("lo", 0), max(kind.get("hi", 2), kind.get("lo", 0) + 1), shape)
        feeds[value.name] = array.astype(dtype)
    return feeds


def error(exact, found):
    """The largest difference over all results; None if shapes differ or a value is not finite."""
    most = 0.0
    for a, b in zip(exact, found):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or not np.issubdtype(b.dtype, np.floating):
            if a.shape != b.shape or not np.array_equal(a, b):
                return None
            continue
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
        if not np.isfinite(difference).all():
            return None
        ulp = float(np.finfo(b.dtype).eps) / 2 * float(np.max(np.abs(a), initial=0.0)) or 1.0
        most = max(most, float(np.max(difference, initial=0.0)) / ulp)
    return most


def widened_feeds(feeds):
    return {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in feeds.items()}


def compare(binary, path, spec, target, draws):
    """The mean errors of the original and of the result, in half units in the last place of the largest result."""
    model = onnx.load(path)
    done = subprocess.run([binary, path, "-o", target], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    original, folded, wide = session(model), session(onnx.load(target)), widened(model)
    try:
        reference = session(wide)
        reference.run(None, widened_feeds(drawn(model, spec, 1)))
    except Exception:  # noqa: BLE001 - ONNX Runtime lacks many kernels for doubles, some of which it misses only when it runs
        reference = ReferenceEvaluator(wide)
    errors = []
    for seed in range(1, draws + 1):
        feeds = drawn(model, spec, seed)
        before, after = original.run(None, feeds), folded.run(None, feeds)
        exact = reference.run(None, widened_feeds(feeds))
        errors.append((error(exact, before), error(exact, after)))
    if any(None in pair for pair in errors):
        return None, None
    return tuple(float(np.mean(side)) for side in zip(*errors))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--factor", type=float, default=2.0)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--index", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    index = json.loads(arguments.index.read_text())["models"] if arguments.index else []
    specs = {entry["file"]: entry.get("spec") for entry in index}
    paths = [path for given in arguments.models for path in (sorted(given.glob("**/*.onnx")) if given.is_dir() else [given])]
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            try:
                own, got = compare(arguments.binary, path, specs.get(path.name), pathlib.Path(folder) / "folded.onnx", arguments.draws)
            except Exception as said:  # noqa: BLE001 - whatever a runtime says
                counts["not run"] += 1
                print(f"{path.name} is not run: {' '.join(str(said).split())[:160]}", flush=True)
                continue
            if own is None or got is None:
                counts["not comparable"] += 1
                continue
            worse = got > arguments.factor * max(own, 1.0)
            counts["worse" if worse else "as good"] += 1
            if worse:
                print(f"{path.name}: {got:.3g} half units, the original {own:.3g}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 1 if counts["worse"] else 0


if __name__ == "__main__":
    sys.exit(main())
