"""Counts the tensors of folded models with a complete shape, compared with the best other tool's share for each model.

    scripts/python.sh scripts/compare_shapes.py --binary target/release/onnx-slice-fold [--baseline RESULTS.json] MODEL_OR_FOLDER ...

Every node result counts, also in subgraphs. Its shape is `exact` if each dim is an integer or an expression in symbols that the graph's
inputs declare, `fresh` if some dim is another name, `rank` if some dim has no name, `none` if no shape is declared. The baseline holds
`{"rows": [{"model", "tool", "shapes": {"exact", ..}, "shape_check": {"wrong"}}]}` of other tools. A model where ours is the smaller share
is printed with the tensors concerned. A tool that declares false shapes for the model is marked, because its additional shapes may be the
false ones.

Data-dependent sizes are found in the graph. They derive from a result whose length depends on operand values (NonZero, Unique, Compress,
NonMaxSuppression, ..). Or they derive from an operand that determines the size of a result (of Reshape, Slice, Range, TopK, Loop, ..) and
is computed from more than sizes and constants. An initializer that is also an input is data. A model in which a tensor of such a size is
inexact is data-dependent.

Folding removes the tensors with the simplest shapes, so the share of the remaining ones falls. The table therefore also has the share of
the original's tensors with a known shape: tensors that a tool removed count as known, equally for every tool.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx

from compare_onnxruntime import evaluate

# Operators whose results have a length that depends on the operands' values.
COUNTING = {"NonZero", "Unique", "Compress", "NonMaxSuppression", "StringSplit", "TfIdfVectorizer", "RegexFullMatch"}
# The operands that determine the size of the result.
SIZING = {
    "Reshape": [1], "Expand": [1], "Tile": [1], "ConstantOfShape": [0], "Range": [0, 1, 2], "Slice": [1, 2, 3, 4], "Pad": [1, 3],
    "Resize": [1, 2, 3], "Upsample": [1], "TopK": [1], "OneHot": [1], "Split": [1], "SplitToSequence": [1], "SequenceAt": [1], "SequenceErase": [1],
    "SequenceInsert": [2], "CenterCropPad": [1], "MaxUnpool": [2], "AffineGrid": [1], "Squeeze": [1], "Unsqueeze": [1], "Loop": [0, 1],
    "BlackmanWindow": [0], "HannWindow": [0], "HammingWindow": [0], "MelWeightMatrix": [0, 1], "DFT": [1, 2], "STFT": [1, 3], "Col2Im": [1, 2],
    "ReduceSum": [1], "ReduceMax": [1], "ReduceMin": [1], "ReduceMean": [1], "ReduceProd": [1],
}
KINDS = ("exact", "fresh", "rank", "none")


def graphs_of(node):
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for graph in attribute.graphs:
            yield attribute.name, graph


def dims_of(value):
    """A tensor's dims: an integer, a text or None each; None if it has no shape."""
    if not value.type.tensor_type.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in value.type.tensor_type.shape.dim]


def declared_symbols(model):
    given = {tensor.name for tensor in model.graph.initializer}
    dims = [dims_of(value) or [] for value in model.graph.input if value.name not in given]
    return {dim for shape in dims for dim in shape if isinstance(dim, str)}


def kind_of(dims, sizes):
    if dims is None:
        return "none"
    if any(dim is None for dim in dims):
        return "rank"
    return "exact" if all(isinstance(dim, int) or dim in sizes or evaluate(dim, sizes) is not None for dim in dims) else "fresh"


class Walk:
    """Classifies the shape of every tensor, and whether it depends on data.

    Each value has two answers: whether its values derive from data, and whether its shape does.
    """

    def __init__(self, sizes):
        self.sizes = sizes
        self.found = []

    def graph(self, graph, known, record=True):
        """Visits the nodes in order; `known` has what the graph captures and is given."""
        known = dict(known)
        stated = {}
        for value in [*graph.value_info, *graph.output, *graph.input]:
            stated[value.name] = dims_of(value) if value.type.HasField("tensor_type") else "other" if value.type.WhichOneof("value") else None
        for tensor in graph.initializer:
            # An input's initializer is its default.
            known.setdefault(tensor.name, (False, False))
        for node in graph.node:
            answers = self.node(node, known, stated, record)
            for name, answer in zip(node.output, answers):
                known[name] = answer
                if name and record and stated.get(name) != "other":
                    self.found.append((node, name, stated.get(name), kind_of(stated.get(name), self.sizes), answer[1]))
        return known

    def node(self, node, known, stated, record):
        operands = [known.get(name, (False, False)) for name in node.input]
        name, count = node.op_type, len(node.output)
        shaped = any(shape for _, shape in operands)
        if name in ("Shape", "Size"):
            return [(shaped, False)]
        content = shaped or any(values for values, _ in operands) or name.startswith("Random") or name in ("Multinomial", "Bernoulli")
        if name in COUNTING:
            return [(content, content)] * count
        for index in SIZING.get(name, []):
            shaped |= index < len(operands) and operands[index][0]
        bodies = list(graphs_of(node))
        if name == "If" and bodies:
            inside = [(graph, self.graph(graph, known, record)) for _, graph in bodies]
            answers = []
            for at in range(count):
                results = [(graph.output[at], after[graph.output[at].name]) for graph, after in inside if at < len(graph.output)]
                differ = len({str(dims_of(value)) for value, _ in results}) > 1
                answers.append((content or any(a[0] for _, a in results), any(a[1] for _, a in results) or differ and operands[0][0]))
            return answers
        if bodies:
            graph = bodies[0][1]
            given = [(False, False), (True, False), *operands[2:]] if name == "Loop" else operands
            given = [*given, *([(True, shaped)] * (len(graph.input) - len(given)))]
            for last in (False, False, True):
                after = self.graph(graph, {**known, **{v.name: g for v, g in zip(graph.input, given)}}, record and last)
                results = [after.get(value.name, (True, False)) for value in graph.output]
                if name == "Loop":
                    # A condition that depends on data makes the number of iterations depend on data.
                    shaped |= results[0][0] and results[0] != given[1] and any(node.op_type != "Identity" for node in graph.node if graph.output[0].name in node.output)
                    given[2:] = [(a[0] or b[0], a[1] or b[1]) for a, b in zip(given[2:], results[1:])] + given[2 + len(results) - 1:]
                else:
                    given = [(a[0] or b[0], a[1] or b[1]) for a, b in zip(given, results)] + given[len(results):]
            results = results[1:] if name == "Loop" else results
            return [(content or r[0], shaped or r[1]) for r in results][:count]
        return [(content, shaped)] * count


def measure(model, original):
    """The counts, the tensors that are not exact, and whether data decide each of them."""
    symbols = sorted(declared_symbols(original) | declared_symbols(model))
    walk = Walk({name: 1009 + 7 * index for index, name in enumerate(symbols)})
    inputs = {value.name: (True, False) for value in model.graph.input}
    walk.graph(model.graph, inputs)
    counts = collections.Counter(kind for *_, kind, _ in walk.found)
    open_ones = [row for row in walk.found if row[3] != "exact"]
    return counts, open_ones


def folded(binary, path, flags):
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "folded.onnx"
        done = subprocess.run([binary, str(path), "-o", str(target), "--shapes", "all", *flags], capture_output=True, text=True, timeout=300)
        if done.returncode:
            print(f"{path}: {done.stderr.strip()}", file=sys.stderr)
            return None
        return onnx.load(target, load_external_data=False)


def total_of(counts):
    return sum(counts.get(kind, 0) for kind in KINDS)


def share(counts):
    return counts.get("exact", 0) / total_of(counts) if total_of(counts) else 1.0


def known_share(counts, before):
    """Of `before` tensors that the original has."""
    return 1 - (total_of(counts) - counts.get("exact", 0)) / max(1, before, total_of(counts))


def best_of(rows, measure):
    """The tool with the largest share: the share, its name, how many false shapes it is known to state."""
    rows = [row for row in rows if "shapes" in row and row["tool"] != "original"]
    return max(((measure(row["shapes"]), row["tool"], row.get("shape_check", {}).get("wrong", 0)) for row in rows), default=(0.0, "none", 0))


def shown(counts):
    total = max(1, sum(counts[kind] for kind in KINDS))
    return ", ".join(f"{counts[kind]} {kind} ({100 * counts[kind] / total:.2f} %)" for kind in KINDS if counts[kind] or kind == "exact")


def told(best):
    known, tool, false = best
    return f"{tool} {100 * known:.2f} %{f' ({false} of its statements are false)' if false else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--baseline", type=pathlib.Path, help="what other tools state, as JSON")
    parser.add_argument("--flags", default="", help="more arguments for the binary")
    parser.add_argument("--verbose", action="store_true", help="print the inexact tensors of every model")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    others = collections.defaultdict(list)
    for row in json.loads(arguments.baseline.read_text())["rows"] if arguments.baseline else []:
        others[row["model"]].append(row)
    paths = [path for given in arguments.models for path in (sorted(given.rglob("*.onnx")) if given.is_dir() else [given])]
    total, independent, dependent, by_sizes = (collections.Counter() for _ in range(4))
    below, below_known, failed, before_all = [], [], 0, 0
    for path in paths:
        try:
            original = onnx.load(path, load_external_data=False)
        except Exception as error:  # noqa: BLE001
            print(f"{path}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        model = folded(arguments.binary, path, arguments.flags.split())
        if model is None:
            failed += 1
            continue
        before = total_of(measure(original, original)[0])
        counts, open_ones = measure(model, original)
        by_data = any(row[4] for row in open_ones)
        before_all += before
        total.update(counts)
        (dependent if by_data else independent).update(counts)
        by_sizes.update(counts)
        by_sizes.subtract(row[3] for row in open_ones if row[4])
        best = best_of(others[path.stem], share)
        best_known = best_of(others[path.stem], lambda shapes: known_share(shapes, before))
        less = share(counts) < best[0] - 1e-9
        less_known = known_share(counts, before) < best_known[0] - 1e-9
        below += [path.stem] * less
        below_known += [path.stem] * less_known
        if less or less_known or open_ones and arguments.verbose:
            print(f"{path.stem}: {shown(counts)}{'; some sizes are decided by data' if by_data else ''}")
            if others[path.stem]:
                print(f"  left    {100 * share(counts):6.2f} %, {told(best)}{'   BELOW' if less else ''}")
                print(f"  before  {100 * known_share(counts, before):6.2f} %, {told(best_known)}{'   BELOW' if less_known else ''}")
            for node, name, dims, _, data in open_ones:
                print(f"    {node.op_type:20} {name}: {dims}{'' if data else '   (sizes decide it)'}")
    print(f"all:                  {shown(total)}")
    print(f"not data-dependent:   {shown(independent)}")
    print(f"data-dependent:       {shown(dependent)}")
    print(f"sizes decide it:      {shown(by_sizes)}")
    print(f"of the tensors before folding the shape is known of {100 * known_share(total, before_all):.2f} %")
    if arguments.baseline:
        print(f"below the best other tool: {len(below)} models by what is left ({', '.join(below)}), "
              f"{len(below_known)} by what there was ({', '.join(below_known)})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
