"""Folds models twice and reports what the second run changes: one run should reach a fixed point.

    check_idempotence.py --binary target/release/onnx-slice-fold [--options OPTIONS] MODEL_OR_FOLDER ...

Prints the kind of change for each changed model: `nodes` with the operators that are added or removed, `constants`, `types` (declared
types), or `bytes` for anything else. Ends with a count of each; the status is 1 if nodes or constants changed anywhere.
"""
import argparse
import collections
import pathlib
import shlex
import subprocess
import sys
import tempfile

import onnx


def graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from graphs(inner)


def operators(model):
    """The number of nodes of each operator, including bodies and functions."""
    nodes = [node for graph in graphs(model.graph) for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    return collections.Counter(f"{node.domain}.{node.op_type}".lstrip(".") for node in nodes)


def constants(model):
    return sorted(tensor.SerializeToString() for graph in graphs(model.graph) for tensor in graph.initializer)


def without_types(model):
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    for graph in graphs(plain.graph):
        del graph.value_info[:]
        for value in [*graph.input, *graph.output]:
            value.ClearField("type")
    return plain.SerializeToString(deterministic=True)


def change(first, second):
    """The kind and detail of the difference; None if there is none."""
    if first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True):
        return None
    before, after = operators(first), operators(second)
    if before != after:
        return "nodes", " ".join(f"{name}{after[name] - before[name]:+}" for name in sorted({*before, *after}) if before[name] != after[name])
    if constants(first) != constants(second):
        return "constants", f"{len(constants(first))} to {len(constants(second))}"
    return ("types", "") if without_types(first) == without_types(second) else ("bytes", "")


def fold(binary, options, source, target):
    done = subprocess.run([binary, source, "-o", target, *options], capture_output=True, text=True, timeout=600)
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[:1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--options", default="", help="more options for the program")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    options = shlex.split(arguments.options)
    paths = [path for given in arguments.models for path in (sorted(given.glob("**/*.onnx")) if given.is_dir() else [given])]
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        first, second = (pathlib.Path(folder) / name for name in ("first.onnx", "second.onnx"))
        for path in paths:
            error = fold(arguments.binary, options, path, first)
            if error is not None:
                counts["not folded"] += 1
                continue
            error = fold(arguments.binary, options, first, second)
            kind, detail = ("error", error) if error is not None else change(onnx.load(first, load_external_data=False), onnx.load(second, load_external_data=False)) or ("same", "")
            counts[kind] += 1
            if kind != "same":
                print(f"{path}: {kind} {detail}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 1 if counts["nodes"] or counts["constants"] or counts["error"] else 0


if __name__ == "__main__":
    sys.exit(main())
