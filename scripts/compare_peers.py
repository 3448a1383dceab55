#!/usr/bin/env python3
"""Folds models with this program, onnxsim and OnnxSlim, and prints what each leaves as a table.

    scripts/compare_peers.py --binary target/release/onnx-slice-fold MODELS...

Runs in an environment that has onnx, onnxruntime, onnxsim and onnxslim. Told are the nodes in the file, the nodes that ONNX Runtime executes after its own
optimization, the results of nodes whose every size is stated in the file, and the time of the whole process (the least of three runs) as a multiple of this
program's. What a tool makes of a model that ONNX Runtime does not load is told as such.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import onnx
import onnxruntime

PEERS = {
    "onnxsim": ["-c", "import onnx, onnxsim, sys; onnx.save(onnxsim.simplify(sys.argv[1])[0], sys.argv[2])"],
    "OnnxSlim": ["-c", "import onnxslim, sys; onnxslim.slim(sys.argv[1], sys.argv[2])"],
}


def graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else []:
                yield from graphs(body)


def counted(path):
    """Nodes, and results whose every size is a number or has a name, of all results."""
    model = onnx.load(path)
    nodes = sum(len(graph.node) for graph in graphs(model.graph))
    stated = {
        value.name
        for value in [*model.graph.value_info, *model.graph.output]
        if value.type.tensor_type.HasField("shape")
        and all(dim.HasField("dim_value") or dim.dim_param for dim in value.type.tensor_type.shape.dim)
    }
    results = [name for node in model.graph.node for name in node.output if name]
    return nodes, sum(name in stated for name in results), len(results)


def executed(path, folder):
    """The nodes that ONNX Runtime executes, or None if it does not load the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception:  # its own kinds of error differ between versions
        return None
    return sum(len(graph.node) for graph in graphs(onnx.load(folder / "optimized.onnx").graph))


def seconds(command):
    taken = []
    for _ in range(3):
        begin = time.perf_counter()
        done = subprocess.run(command, capture_output=True)
        taken.append(time.perf_counter() - begin)
        if done.returncode:
            return None
    return min(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    paths = [path for name in options.models for path in (sorted(name.glob("*.onnx")) if name.is_dir() else [name])]
    names = ["the exporter", "this program", *PEERS]
    print("| model | " + " | ".join(names) + " |\n| --- |" + " --- |" * len(names))
    sums = {name: [0, 0, 0, 0] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for path in paths:
            cells, own = [], None
            for name in names:
                target, taken = folder / "result.onnx", None
                target.unlink(missing_ok=True)
                if name == "the exporter":
                    target.write_bytes(path.read_bytes())
                elif name == "this program":
                    own = taken = seconds([options.binary, "--no-config", "-q", "--shapes", "all", path, "-o", target])
                else:
                    taken = seconds([sys.executable, *PEERS[name], path, target])
                if not target.exists():
                    cells.append("fails")
                    continue
                (nodes, stated, results), run = counted(target), executed(target, folder)
                for at, number in enumerate((nodes, run or 0, stated, results)):
                    sums[name][at] += number
                time_of = f", {taken / own:.0f} ×" if taken and name in PEERS else ""
                cells.append(f"{nodes}, {run if run is not None else 'not loaded'}, {stated}/{results}{time_of}")
            print(f"| {path.stem} | " + " | ".join(cells) + " |", flush=True)
    print("| all | " + " | ".join("{}, {}, {}/{}".format(*sums[name]) for name in names) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
