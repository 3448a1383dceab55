#!/usr/bin/env python3
"""Compares this program with onnxsim, OnnxSlim and ONNX Runtime's offline optimizer on a set of models.

    scripts/compare_peers.py --binary target/release/onnx-slice-fold [--plot FILE.svg] MODELS...

Needs onnx, onnxruntime, onnxsim and onnxslim. Prints a Markdown table per measure: nodes in the file, nodes that ONNX Runtime executes after its
own optimization, node outputs with a complete shape, and the duration of the whole process (the minimum of three runs, relative to this
program). `--plot` draws total nodes and total duration as an SVG file.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import onnx
import onnxruntime

EXPORTER, OWN = "export", "onnx-slice-fold"
PEERS = {
    "onnxsim": "import onnx, onnxsim, sys; onnx.save(onnxsim.simplify(sys.argv[1])[0], sys.argv[2])",
    "OnnxSlim": "import onnxslim, sys; onnxslim.slim(sys.argv[1], sys.argv[2])",
    "ONNX Runtime": "import onnxruntime as o, sys; s = o.SessionOptions(); s.log_severity_level = 4; "
    "s.graph_optimization_level = o.GraphOptimizationLevel.ORT_ENABLE_BASIC; s.optimized_model_filepath = sys.argv[2]; "
    "o.InferenceSession(sys.argv[1], s, providers=['CPUExecutionProvider'])",
}
TOOLS = [EXPORTER, OWN, *PEERS]


def graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else []:
                yield from graphs(body)


def counted(path):
    """Returns the number of nodes, of node outputs with a complete shape, and of all node outputs."""
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
    """Returns the number of nodes that ONNX Runtime executes, or None if it does not load the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception:  # the class of the exception differs between versions
        return None
    return sum(len(graph.node) for graph in graphs(onnx.load(folder / "optimized.onnx").graph))


def seconds(command):
    durations = []
    for _ in range(3):
        begin = time.perf_counter()
        done = subprocess.run(command, capture_output=True)
        durations.append(time.perf_counter() - begin)
        if done.returncode:
            return None
    return min(durations)


def measure(binary, path, folder):
    """Returns a record per tool: nodes, executed nodes, complete shapes, outputs, seconds; None for a tool that fails."""
    records = {}
    for tool in TOOLS:
        target, duration = folder / "result.onnx", None
        target.unlink(missing_ok=True)
        if tool == EXPORTER:
            target.write_bytes(path.read_bytes())
        elif tool == OWN:
            duration = seconds([binary, "--no-config", "-q", "--shapes", "all", path, "-o", target])
        else:
            duration = seconds([sys.executable, "-c", PEERS[tool], path, target])
        if target.exists():
            nodes, shapes, outputs = counted(target)
            records[tool] = (nodes, executed(target, folder), shapes, outputs, duration)
    return records


def table(title, measured, cell):
    print(f"\n### {title}\n\n| model | " + " | ".join(TOOLS) + " |\n| --- |" + " --- |" * len(TOOLS))
    for name, records in measured.items():
        print(f"| {name} | " + " | ".join(cell(records[tool], records) if tool in records else "fails" for tool in TOOLS) + " |")


def plot(path, nodes, times):
    """Writes a chart with two groups of horizontal bars."""
    width, bar, gap, left = 720, 22, 8, 130
    groups = [("nodes in all models (fewer is better)", nodes, "{:,.0f}"), ("time, relative to onnx-slice-fold (less is better)", times, "{:,.0f} ×")]
    parts, y = [], 16
    for title, values, form in groups:
        parts.append(f'<text x="0" y="{y}" class="title">{title}</text>')
        y += 12
        most = max(values.values())
        for name, value in values.items():
            length = max(2, (width - left - 90) * value / most)
            kind = "own" if name == OWN else "other"
            parts.append(f'<text x="{left - 8}" y="{y + 16}" text-anchor="end">{name}</text>')
            parts.append(f'<rect x="{left}" y="{y}" width="{length:.0f}" height="{bar}" rx="3" class="{kind}"/>')
            parts.append(f'<text x="{left + length + 8:.0f}" y="{y + 16}">{form.format(value)}</text>')
            y += bar + gap
        y += 24
    style = (
        "text{font:14px sans-serif;fill:#24292f}.title{font-weight:600}.own{fill:#0969da}.other{fill:#8c959f}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.own{fill:#58a6ff}.other{fill:#6e7681}}"
    )
    height = y - 24
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="Nodes and time of onnx-slice-fold and other tools"><style>{style}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE.svg")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    paths = [path for name in options.models for path in (sorted(name.glob("*.onnx")) if name.is_dir() else [name])]
    with tempfile.TemporaryDirectory() as folder:
        measured = {path.stem: measure(options.binary, path, pathlib.Path(folder)) for path in paths}
    table("Nodes in the file", measured, lambda record, _: str(record[0]))
    table("Nodes that ONNX Runtime executes", measured, lambda record, _: "not loaded" if record[1] is None else str(record[1]))
    table("Node outputs with a complete shape", measured, lambda record, _: f"{record[2]}/{record[3]}")
    table("Time, relative to this program", measured, lambda record, all: f"{record[4] / all[OWN][4]:.0f} ×" if record[4] else "")
    complete = [records for records in measured.values() if all(tool in records for tool in TOOLS)]
    nodes = {tool: sum(records[tool][0] for records in complete) for tool in TOOLS}
    times = {tool: sum(records[tool][4] for records in complete) for tool in TOOLS if tool != EXPORTER}
    times = {tool: value / times[OWN] for tool, value in times.items()}
    print(f"\n{len(complete)} models that every tool reads: nodes {nodes}; time {({tool: round(value) for tool, value in times.items()})}")
    if options.plot:
        plot(options.plot, nodes, times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
