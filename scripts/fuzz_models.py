"""Folds random models and compares them with the originals in ONNX Runtime: no false declaration, no other result, no crash.

    scripts/python.sh scripts/fuzz_models.py --binary target/release/onnx-slice-fold --seed 1 --count 1000 --jobs 2

Each graph is run at several sizes of its symbols (including 0 and 1) at which the original runs. Every declared dim of the folded model
must be the true one; the folded model must run and give the same results; the program must succeed. A failing graph is shrunk and printed
in the ONNX text syntax. `--seed S --count 1` repeats it; `--records FILE` stores the outcome of each graph, and resumes an interrupted run.
Runs in which ONNX Runtime is known to deviate are set aside by the predicates of `misjudged` and `misread`, and counted by reason.
"""
import argparse
import collections
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnx.inliner
from onnx import numpy_helper

from compare_onnxruntime import evaluate, same
from random_graphs import Case, random_case, read_by, session

SECONDS_PER_GRAPH = 30
SECONDS_TO_GROW = 10
SECONDS_TO_CHECK = 45
BYTES_PER_PROCESS = 6 << 30


FUNCTIONS = {"floor", "ceil", "min", "max", "Mod"}
# Nearest to 0 first, because most sizes are small.
SOLUTIONS = sorted([*range(-80, 81), *range(81, 5000, 1)], key=abs)


class Wrong(Exception):
    """A failure: its kind, and what it is in particular."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind


def without_functions(model):
    """The model with the calls of its functions written out."""
    return onnx.inliner.inline_local_functions(model) if model.functions else model


def exposed(model):
    """The model with every tensor of the main graph as an output, and nothing declared of them."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    del wide.graph.value_info[:]
    for value in wide.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    there = {value.name for value in wide.graph.output}
    # The result of a node that makes an optional cannot be inspected.
    names = dict.fromkeys(name for node in wide.graph.node if node.op_type != "Optional" for name in node.output if name and name not in there)
    wide.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return wide


PROBE = "probe of "


def stated_inside(graph):
    """What the nodes of a body are stated to give: names with their dims, of some rank above 0."""
    made = {name for node in graph.node for name in node.output}
    return {name: dims for name, dims in shapes_of([*graph.value_info, *graph.output]).items() if name in made and dims}


def probed(model):
    """The model with the shapes of its subgraphs' values as additional results of the nodes with the subgraphs, and the declared shape of
    each.

    A probe is `[.., rank]`: a row for each run of the subgraph, and -1 if another branch ran. Bodies of a Loop or a Scan inside another one
    are skipped, because their probes would vary in length.
    """
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    statements = {}

    def visit(graph, repeated):
        """Adds probes to the nodes of a graph; gives the names and ranks of those the graph then has."""
        found = []
        for node in graph.node:
            bodies = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
            loops = node.op_type in ("Loop", "Scan")
            if not bodies or node.op_type == "SequenceMap" or loops and repeated:
                continue
            inside = [(body, probes(body, repeated or loops)) for body in bodies]
            for body, own in inside:
                for name, rank, single in own:
                    for other, _ in inside:
                        result = name
                        if other is not body:
                            # The branch that is not taken gives a dummy.
                            result = f"{name} not"
                            dummy = numpy_helper.from_array(np.full(rank, -1, np.int64))
                            other.node.append(onnx.helper.make_node("Constant", [], [result], value=dummy))
                        shape = [rank] if single else None
                        other.output.append(onnx.helper.make_tensor_value_info(result, onnx.TensorProto.INT64, shape))
                    node.output.append(f"{name} out")
                    found.append((f"{name} out", rank, single and not loops))
            for attribute in node.attribute:
                if attribute.name in ("scan_output_axes", "scan_output_directions"):
                    attribute.ints.extend([0] * sum(len(own) for _, own in inside))
        return found

    def probes(body, repeated):
        """The shapes of what a body computes, as values of it."""
        nested = visit(body, repeated)
        own = []
        for name, dims in stated_inside(body).items():
            probe = f"{PROBE}{len(statements)}"
            statements[probe] = (name, dims)
            body.node.append(onnx.helper.make_node("Shape", [name], [probe]))
            own.append((probe, len(dims), True))
        return own + nested

    visit(wide.graph, False)
    return wide, statements


def disagreement_inside(statements, results, sizes):
    """Describes a false declaration inside a subgraph. An undeclared name may have another size in each run of the subgraph."""
    for result, rows in results.items():
        if not result.startswith(PROBE):
            continue
        name, dims = statements[result.split(" out")[0]]
        for row in np.asarray(rows).reshape(-1, np.asarray(rows).shape[-1]) if np.asarray(rows).size else []:
            # The same for empty tensors that ONNX Runtime concatenates.
            if (row == -1).all() or 0 in row:
                continue
            if len(row) != len(dims):
                return f"'{name}' in a body is stated to be {dims}, but is {row.tolist()}"
            for dim, size in zip(dims, row):
                want = evaluate(dim, sizes) if isinstance(dim, str) else dim
                if want is not None and want != size:
                    return f"'{name}' in a body is stated to be {dims}, but is {row.tolist()}"
    return None


def stated(model):
    """What a model states of its main graph: names with their dims, an integer, a text or None each."""
    return shapes_of([*model.graph.value_info, *model.graph.output])


def shapes_of(values):
    shapes = {}
    for value in values:
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            shapes[value.name] = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims]
    return shapes


def disagreement(shapes, truth, sizes):
    """What a statement says that is not so."""
    known, open_names = dict(sizes), {}
    pairs = [(name, dims, truth[name].shape) for name, dims in shapes.items() if isinstance(truth.get(name), np.ndarray)]
    for name, dims, shape in pairs:
        if len(dims) != len(shape):
            return f"'{name}' is stated to be {dims}, but is {list(shape)}"
        for dim, size in zip(dims, shape):
            if isinstance(dim, str) and dim not in known and re.fullmatch(r"[A-Za-z_][\w.]*", dim):
                first, where = open_names.setdefault(dim, (size, name))
                if first != size:
                    return f"'{dim}' is {first} in '{where}' and {size} in '{name}'"
    known.update({dim: size for dim, (size, _) in open_names.items()})
    unsolved = {}
    for name, dims, shape in pairs:
        for dim, size in zip(dims, shape):
            want = evaluate(dim, known) if isinstance(dim, str) else dim
            if want is not None and want != size:
                return f"'{name}' is stated to be {dims}, but is {list(shape)}"
            if want is None and dim is not None:
                others = set(re.findall(r"[A-Za-z_][\w.]*", dim)) - set(known) - FUNCTIONS
                if len(others) == 1:
                    unsolved.setdefault(others.pop(), set()).add((dim, size))
    # A name that only occurs in expressions still represents one number.
    for name, equations in unsolved.items():
        holds = lambda value: all(evaluate(text, {**known, name: value}) in (size, None) for text, size in equations)  # noqa: B023, E731
        if not any(holds(value) for value in [*SOLUTIONS, *sorted(size for _, size in equations)]):
            return f"no value of '{name}' makes all of {sorted(equations)} true"
    return None


def rounds(case, seed):
    """Sizes to try, the guide's first."""
    rng = random.Random(seed + 1)
    yield dict(case.guide)
    yield {name: rng.choice([0, 1, 1, 2, 3, 4, 5, 7, 9, 16]) for name in case.symbols}
    yield {name: rng.choice([1, 2, 3, 6, 8, 13]) for name in case.symbols}
    yield dict.fromkeys(case.symbols, 1)
    yield {name: rng.choice([0, 0, size]) for name, size in case.guide.items()}
    if rng.random() < 0.3:
        large = {name: 1 for name in case.symbols}
        large[rng.choice(case.symbols)] = rng.choice([31, 64, 100])
        if all(math.prod(given.shape(large)) < 20_000 for given in case.inputs):
            yield large


def flags_of(case, seed):
    """Arguments for the program, and what sizes they allow."""
    rng = random.Random(seed + 2)
    flags, fixed = [], {}
    if rng.random() < 0.5:
        flags.append("--exact")
    if case.model.functions and rng.random() < 0.4:
        flags += ["--skip", "inline-function"]
    there = {dim.dim_param for value in case.model.graph.input for dim in value.type.tensor_type.shape.dim}
    if not all(name in there for name in case.symbols):
        return flags, fixed
    if rng.random() < 0.12:
        name = rng.choice(case.symbols)
        fixed[name] = case.guide[name]
        flags += ["--dim", f"{name}={case.guide[name]}"]
    elif rng.random() < 0.12:
        name = rng.choice(case.symbols)
        fixed[name] = (case.guide[name], case.guide[name] + 4, case.guide[name])
        flags += ["--dim", f"{name}={case.guide[name]}..{case.guide[name] + 4}:{case.guide[name]}"]
    elif rng.random() < 0.08 and len(case.symbols) > 1:
        small, large = sorted(rng.sample(case.symbols, 2), key=case.guide.get)
        fixed[small] = large
        flags += ["--assume", f"{small} <= {large}"]
    elif rng.random() < 0.08:
        given = rng.choice(case.inputs)
        inside = [name for name in case.symbols if any(name in dim for dim in given.dims if isinstance(dim, str))]
        if inside:
            fixed.update({name: case.guide[name] for name in inside})
            flags += ["--overwrite-input-shape", f"{given.name}:{','.join(map(str, given.shape(case.guide)))}"]
    if rng.random() < 0.05:
        flags += ["--slice-rule", "onnxruntime"]
    if rng.random() < 0.05:
        flags.append("--trust-declared-shapes")
    if rng.random() < 0.3:
        flags.append("--strict")
    return flags, fixed


def allowed(sizes, fixed):
    """The sizes, made to fit what the flags promise."""
    for name, promise in fixed.items():
        if isinstance(promise, str):
            sizes[name] = min(sizes[name], sizes[promise])
            continue
        low, high, step = promise if isinstance(promise, tuple) else (promise, promise, 1)
        sizes[name] = min(max(low, sizes[name] // step * step), high // step * step)
    return sizes


def check(case, seed, binary, folder):
    """The number of compared sizes, and the reasons for which others were set aside.

    Raises Wrong if the program is wrong.
    """
    source, target = os.path.join(folder, "model.onnx"), os.path.join(folder, "folded.onnx")
    with open(source, "wb") as file:
        file.write(case.model.SerializeToString())
    flags, fixed = flags_of(case, seed)
    done = subprocess.run([binary, source, "-o", target, "--shapes", "all", *flags], capture_output=True, timeout=SECONDS_PER_GRAPH, close_fds=False)
    message = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0 or done.returncode > 100:
        raise Wrong("crash", f"exit code {done.returncode}: {message}")
    whole = without_functions(case.model)
    try:
        original = session(exposed(whole))
    except Exception:  # noqa: BLE001
        return 0, {}
    refused = re.sub(r"'[^']*'", "_", message.splitlines()[-1]) if done.returncode else None
    folded_model = onnx.ModelProto() if refused else onnx.load(target)
    names = lambda values: [value.name for value in values]  # noqa: E731
    for kind in ("input", "output") if not refused else ():
        before, after = getattr(case.model.graph, kind), getattr(folded_model.graph, kind)
        if names(before) != names(after):
            raise Wrong("interface", f"{kind}s {names(before)} became {names(after)}")
    declared = stated(case.model)
    shapes = {name: dims for name, dims in stated(folded_model).items() if dims != declared.get(name)}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in case.model.graph.initializer}
    folded, statements = None, {}
    runs, aside = 0, collections.Counter()
    for turn, sizes in enumerate(rounds(case, seed)):
        sizes = allowed(sizes, fixed)
        numbers = np.random.default_rng([seed, turn])
        feeds = {given.name: given.feed(sizes, numbers) for given in case.inputs}
        feeds = {name: value for name, value in feeds.items() if name not in constants or turn % 2}
        try:
            before = original.run(None, feeds)
            again = original.run(None, feeds)
        except Exception:  # noqa: BLE001
            continue
        # A run that reads foreign memory gives another result each time.
        if not all(same(a, b) for a, b in zip(before, again)):
            aside["not the same twice"] += 1
            continue
        given = dict(zip([o.name for o in original.get_outputs()], before))
        values = {**constants, **feeds, **given}
        reason = misjudged(whole, values)
        if reason:
            aside[reason] += 1
            continue
        if refused:
            raise Wrong("refused", f"at {sizes} {flags}: {refused}")
        if folded is None:
            try:
                folded, statements = opened(folded_model)
            except Exception as error:  # noqa: BLE001
                reason = misread(whole, folded_model, values, str(error)) or unreadable(case.model)
                if reason:
                    aside[reason] += 1
                    break
                raise Wrong("does not load", short(error)) from None
        runs += 1
        try:
            after = folded.run(None, feeds)
        except Exception as error:  # noqa: BLE001
            if not statements:
                raise Wrong("does not run", f"at {sizes} {flags}: {short(error)}") from None
            # The probes have the declared rank, which may be the file's own declaration; without them only values outside of subgraphs are
            # compared.
            folded, statements = session(exposed(folded_model)), {}
            aside["probes do not fit what the file claims in bodies"] += 1
            try:
                after = folded.run(None, feeds)
            except Exception as error:  # noqa: BLE001
                raise Wrong("does not run", f"at {sizes} {flags}: {short(error)}") from None
        truth = dict(zip([o.name for o in folded.get_outputs()], after))
        wrong = disagreement(shapes, truth, sizes) or disagreement_inside(statements, truth, sizes)
        # Declarations of the file are kept where nothing is proved, with their consequences.
        if wrong and disagreement(declared, {**given, **truth}, sizes):
            aside["the file's own claims are false"] += 1
        elif wrong:
            raise Wrong("false statement", f"at {sizes} {flags}: {wrong}")
        for name in names(case.model.graph.output):
            if not equal(given[name], truth[name]):
                if hangs_on_rounding(whole, feeds, given, name):
                    aside["a rounding decides"] += 1
                    break
                raise Wrong("other result", f"at {sizes} {flags}: '{name}' was {brief(given[name])}, is {brief(truth[name])}")
    return runs, dict(aside)


def opened(model):
    """A session that returns every tensor, if possible also those in subgraphs, and the declarations of the latter."""
    plain = session(exposed(model))
    wide, statements = probed(model)
    if not statements:
        return plain, {}
    try:
        return session(exposed(wide)), statements
    except Exception:  # noqa: BLE001
        return plain, {}


# Operators whose results differ by rounding between any two programs.
ROUNDED = {"BlackmanWindow", "HannWindow", "HammingWindow", "GridSample", "Resize", "Upsample", "Exp", "Log", "Sin", "Cos", "Tan", "Tanh", "Sigmoid",
           "Softmax", "LogSoftmax", "Erf", "Gelu", "Sqrt", "Pow", "MelWeightMatrix", "DFT", "STFT", "LayerNormalization", "RotaryEmbedding", "AffineGrid", "Attention", "MeanVarianceNormalization",
           "InstanceNormalization", "GroupNormalization", "BatchNormalization", "LRN", "LpNormalization", "ReduceLogSumExp", "ReduceL2", "ReduceMean"}


def hangs_on_rounding(model, feeds, given, name):
    """Whether a result changes by more than its last digits when those of what is rounded do."""
    for step in (1e-6, -1e-6):
        moved = onnx.ModelProto()
        moved.CopyFrom(exposed(model))
        nodes = []
        for index, node in enumerate(moved.graph.node):
            nodes.append(node)
            result = given.get(node.output[0])
            if node.op_type in ROUNDED and isinstance(result, np.ndarray) and result.dtype == np.float32:
                noise = (np.random.default_rng(index).random(result.shape) * step).astype(np.float32)
                exact, node.output[0] = node.output[0], f"{node.output[0]} before"
                nodes.append(onnx.helper.make_node("Constant", [], [f"noise {index}"], value=numpy_helper.from_array(noise)))
                nodes.append(onnx.helper.make_node("Add", [node.output[0], f"noise {index}"], [exact]))
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del moved.graph.node[:]
        moved.graph.node.extend(nodes)
        try:
            runs = session(moved)
            after = dict(zip([o.name for o in runs.get_outputs()], runs.run(None, feeds)))
        except Exception:  # noqa: BLE001
            return True
        if not equal(given[name], after[name]):
            return True
    return False


# Known deviations of ONNX Runtime. A run is set aside, and counted, only if one of these applies.

def misread(whole, folded, values, message):
    """The reason why ONNX Runtime refuses a valid model, if it is known to; `values` are those of a run of the original."""
    if "ShapeInferenceError" not in message:
        return None
    for node in all_nodes(whole):
        first = values.get(node.input[0]) if node.input else None
        attributes = attributes_of(node)
        if node.op_type in ("MaxPool", "AveragePool", "LpPool") and attributes.get("ceil_mode") and isinstance(first, np.ndarray):
            spatial = first.ndim - 2
            ones, kernel = [1] * spatial, attributes["kernel_shape"]
            strides, dilations = attributes.get("strides", ones), attributes.get("dilations", ones)
            pads = attributes.get("pads", [0] * 2 * spatial)
            for size, k, step, dilation, begin, end in zip(first.shape[2:], kernel, strides, dilations, pads[:spatial], pads[spatial:]):
                windows = -(-(size + begin + end - (k - 1) * dilation - 1) // step) + 1
                if (windows - 1) * step >= size + begin:
                    return "loading counts a pooling window that starts in the padding, running does not"
    for node in all_nodes(folded):
        if node.op_type in ("MaxPool", "AveragePool", "LpPool") and str(attributes_of(node).get("auto_pad", "")).find("SAME") >= 0:
            if any(step != 1 for step in attributes_of(node).get("dilations", [])):
                return "loading and running differ in what a dilated window with SAME padding gives"
    lengths = stated(folded)
    for node in all_nodes(whole):
        packed = values.get(node.input[0]) if node.op_type == "Attention" else None
        if isinstance(packed, np.ndarray) and packed.ndim == 3 and not all(isinstance(dim, int) for dim in lengths.get(node.output[0], [None])):
            return "loading takes the packed heads of an Attention for 0 where their size has a name"
    for node in all_nodes(folded):
        if node.op_type == "Resize" and "Number of elements of input 'sizes' (0)" in message:
            return "loading counts no sizes of a Resize whose sizes it does not know"
    return None


def unreadable(model):
    """Why the original cannot be loaded as it is, with the functions that were written out to run it."""
    try:
        session(model)
        return None
    except Exception:  # noqa: BLE001
        return "the original loads only with its functions written out"


def attributes_of(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute if not a.HasField("g") and not a.ref_attr_name}


BROADCASTING = {"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Sum", "Mean", "Where", "Equal", "Less", "Greater", "LessOrEqual",
                "GreaterOrEqual", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"}


def broadcasts(shapes):
    try:
        np.broadcast_shapes(*shapes)
        return True
    except ValueError:
        return False


def joins(parts, axis):
    """Whether tensors are of one rank, and equal along all axes but one, or along all."""
    if axis is None:
        return len({part.shape for part in parts}) == 1
    ranks = {part.ndim for part in parts}
    if len(ranks) != 1:
        return False
    axis = axis % max(1, *ranks)
    return len({part.shape[:axis] + part.shape[axis + 1:] for part in parts}) == 1


def misjudged(model, values):
    """How ONNX Runtime is known to stray from the operators' text in this run, if it does."""
    for node in all_nodes(model):
        operands = [values.get(name) for name in node.input]
        first = operands[0] if operands else None
        attributes = attributes_of(node)
        name = node.op_type
        if name == "ConcatFromSequence" and isinstance(first, list) and first and not joins(first, None if attributes.get("new_axis") else attributes.get("axis", 0)):
            return "ConcatFromSequence leaves empty tensors out that do not fit"
        if name == "Loop":
            # Without an iteration, scanned results have no rank, even those of a Loop in the body.
            results = [values.get(output) for output in node.output]
            states = len(node.input) - 2
            nested = any(inner.op_type == "Loop" for body in node.attribute if body.HasField("g") for inner in body.g.node)
            depth = 2 if nested else 1
            if any(isinstance(result, np.ndarray) and 0 in result.shape[:depth] for result in results[states:]):
                return "what no iteration scanned has no rank"
        if not isinstance(first, np.ndarray):
            continue
        second = operands[1] if len(operands) > 1 else None
        arrays = [value for value in operands if isinstance(value, np.ndarray)]
        if name == "Concat" and not joins(arrays, attributes.get("axis", 1)):
            return "Concat leaves empty tensors out that do not fit"
        if name in ("MatMul", "MatMulInteger", "FusedMatMul") and len(arrays) > 1 and not broadcasts([array.shape[:-2] for array in arrays[:2]]):
            return "MatMul takes batch dims that do not broadcast where one is 0"
        if name in ("MatMul", "MatMulInteger", "FusedMatMul") and (first.shape[-1:] == (0,) or any(0 in array.shape[:-2] for array in arrays[:2])):
            # If one of two batch dims is 0, the larger one counts, and empty sums are uninitialized memory.
            return "MatMul of something empty"
        if name in BROADCASTING and not broadcasts([array.shape for array in arrays]):
            return "operands that do not broadcast are taken where one is empty"
        if (name.startswith("Reduce") or name in ("ArgMax", "ArgMin")) and first.size == 0:
            # Negative axes are not normalized for an empty operand, and any number is accepted as an axis.
            axes = attributes.get("axes", second if name.startswith("Reduce") else [attributes.get("axis", 0)])
            if axes is None or any(not 0 <= axis < first.ndim for axis in axes):
                return "axes of an empty reduction that count from the end do not"
        if name == "ReduceMean" and first.size == 0:
            return "the mean of nothing is whatever was in memory"
        if name == "Gemm" and len(operands) > 2 and attributes.get("beta", 1) != 1:
            if first.ndim == 2 and first.shape[0 if attributes.get("transA") else 1] == 0:
                return "a product over nothing leaves beta out"
        if name == "RotaryEmbedding" and first.shape[-1] // (1 if first.ndim == 4 else attributes.get("num_heads") or 1) % 2:
            return "a rotary embedding of an odd size leaves an element unwritten"
        if name == "MaxUnpool" and len(operands) > 2 and isinstance(operands[2], np.ndarray):
            return "MaxUnpool counts in the shape given, not in the shape that was pooled"
        if name == "Resize" and first.size == 0 and any(isinstance(each, np.ndarray) and each.size not in (0, first.ndim) for each in operands[2:]):
            if "axes" not in attributes:
                return "of something empty a Resize takes any number of sizes"
        if name == "Scan" and any(isinstance(values.get(each), np.ndarray) and values[each].size == 0 for each in node.output):
            return "what a Scan makes of nothing has the rank its body declares"
        if name in ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool") and first.ndim > 2:
            # A window that is larger than its axis counts as one window if the stride is large enough.
            spatial = first.ndim - 2
            if first.shape[1] == 0:
                return "a convolution of no channels"
            if name in ("Conv", "ConvTranspose") and second is not None and second.size == 0:
                return "a convolution with no weights is whatever was in memory"
            kernel = attributes.get("kernel_shape", second.shape[2:] if second is not None else [])
            pads, dilations = attributes.get("pads", [0] * 2 * spatial), attributes.get("dilations", [1] * spatial)
            sizes = zip(first.shape[2:], kernel, dilations, pads[:spatial], pads[spatial:])
            if any(size + a + b < (k - 1) * d + 1 for size, k, d, a, b in sizes):
                return "a window larger than what it slides over"
        if name == "Reshape" and second is not None and 0 in second:
            # The position of the 0 in the shape of an empty tensor; see the head of ops/movement/reshape.rs.
            if first.size == 0 or attributes.get("allowzero") and -1 in second:
                return "Reshape and 0"
        if name in ("LSTM", "GRU", "RNN") and first.size == 0:
            # The last state of an empty sequence is uninitialized memory.
            return "the last state of nothing"
        if name == "Slice" and len(operands) > 4:
            # Whether the largest integer is an open end for a negative step.
            ends, steps = operands[2], operands[4]
            if ends is None or steps is None or any(end >= 2**31 - 1 and step < 0 for end, step in zip(ends, steps)):
                return "the largest integer as an end of a negative step"
        if name == "DFT" and attributes.get("onesided") and not attributes.get("inverse") and first.shape[-1] == 2:
            return "a one-sided DFT of complex numbers"
        if name == "PRelu" and second is not None:
            # Only the slope may be broadcast.
            if not broadcasts([first.shape, second.shape]) or np.broadcast_shapes(first.shape, second.shape) != first.shape:
                return "PRelu whose slope is the larger"
    return None


def all_nodes(model):
    """The nodes of a model, those in bodies and functions among them."""
    waiting = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [inner for attribute in node.attribute if attribute.HasField("g") for inner in attribute.g.node]


def equal(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    if same(a, b):
        return True
    if a.dtype != b.dtype or a.shape != b.shape or a.dtype.kind != "f":
        return False
    x, y = a.astype(np.float64), b.astype(np.float64)
    scale = max(1.0, float(np.max(np.abs(x[np.isfinite(x)]), initial=0)))
    return bool(np.allclose(x, y, rtol=1e-3, atol=1e-4 * scale if a.dtype.itemsize > 2 else 1e-2 * scale, equal_nan=True))


def brief(value):
    if isinstance(value, list):
        return f"{len(value)} tensors"
    return f"{value.dtype}{list(value.shape)} {np.array2string(value.reshape(-1)[:12], precision=5)}"


def short(error):
    return str(error).splitlines()[0][-300:]


# Shrinking a failing graph

def pruned(model):
    """Without nodes, initializers and functions that nothing reads."""
    small = onnx.ModelProto()
    small.CopyFrom(model)
    graph = small.graph
    live = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if any(name in live for name in node.output):
            kept.append(node)
            live.update(read_by(node))
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(kept)]
    del graph.node[:]
    graph.node.extend(kept)
    inputs = {value.name for value in graph.input}
    tensors = [tensor for tensor in graph.initializer if tensor.name in live or tensor.name in inputs]
    tensors = [onnx.TensorProto.FromString(tensor.SerializeToString()) for tensor in tensors]
    del graph.initializer[:]
    graph.initializer.extend(tensors)
    if not any(node.domain for node in graph.node):
        del small.functions[:]
    return small


def smaller(case):
    """Cases that are simpler in one way."""
    graph = case.model.graph
    if len(graph.output) > 1:
        for value in graph.output:
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            del model.graph.output[:]
            model.graph.output.append(value)
            yield case.with_model(pruned(model))
        for index in range(len(graph.output)):
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            del model.graph.output[index]
            yield case.with_model(pruned(model))
    truth = {}
    try:
        shown = session(exposed(case.model))
        numbers = np.random.default_rng(0)
        feeds = {given.name: given.feed(case.guide, numbers) for given in case.inputs}
        truth = dict(zip([o.name for o in shown.get_outputs()], shown.run(None, feeds)))
        truth.update(feeds)
    except Exception:  # noqa: BLE001
        pass
    truth.update({tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer})
    outputs = {value.name for value in graph.output}
    for index, node in reversed(list(enumerate(graph.node))):
        # Replaces a node by its operand, or by a constant.
        for name in [*[name for name in node.input if name], None]:
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            old = node.output[0]
            if len(node.output) != 1 and name is not None:
                continue
            if name is None:
                if node.op_type == "Constant" or not all(isinstance(truth.get(o), np.ndarray) for o in node.output if o) or any(o in outputs for o in node.output):
                    continue
                model.graph.initializer.extend(numpy_helper.from_array(truth[o], o) for o in node.output if o)
            else:
                if old in outputs:
                    if name in outputs or name not in {o for other in graph.node for o in other.output}:
                        continue
                    for value in model.graph.output:
                        if value.name == old:
                            value.CopyFrom(onnx.ValueInfoProto(name=name))
                for other in model.graph.node:
                    renamed(other, old, name)
            del model.graph.node[index]
            yield case.with_model(pruned(model))
    unused = [i for i, given in enumerate(case.inputs) if not any(given.name in read_by(node) for node in graph.node) and given.name not in outputs]
    for i in unused:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        del model.graph.input[i]
        yield Case(model, case.inputs[:i] + case.inputs[i + 1:], case.symbols, case.guide)


def renamed(node, old, new):
    for i, name in enumerate(node.input):
        if name == old:
            node.input[i] = new
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                renamed(inner, old, new)


def shrink(case, seed, binary, folder, kind, seconds=25):
    """The smallest case found that fails in the same way."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in smaller(case):
            if time.monotonic() > end:
                break
            try:
                check(candidate, seed, binary, folder)
            except Wrong as wrong:
                if wrong.kind == kind:
                    case, progress = candidate, True
                    break
            except Exception:  # noqa: BLE001
                continue
    return case


# Running many graphs

def one(seed, binary, folder):
    """What became of one seed, as a record."""
    # A node may keep ONNX Runtime busy forever.
    signal.alarm(SECONDS_TO_GROW)
    case = random_case(seed)
    signal.alarm(SECONDS_TO_CHECK)
    try:
        runs, aside = check(case, seed, binary, folder)
        return {"seed": seed, "verdict": "ok" if runs else "idle", "runs": runs, "nodes": len(case.model.graph.node), "aside": aside}
    except subprocess.TimeoutExpired:
        wrong = Wrong("hangs", f"no answer in {SECONDS_PER_GRAPH} s")
        return {"seed": seed, "verdict": "wrong", "kind": wrong.kind, "text": f"seed {seed}: {wrong}\n{onnx.printer.to_text(case.model)}\n"}
    except Wrong as found:
        wrong = found
    signal.alarm(SECONDS_TO_CHECK)
    small = shrink(case, seed, binary, folder, wrong.kind)
    try:
        check(small, seed, binary, folder)
    except Wrong as found:
        wrong = found
    flags, _ = flags_of(case, seed)
    given = ", ".join(f"{i.name}: {i.low}..{i.high}" for i in small.inputs)
    text = f"seed {seed}: {wrong}\nflags {flags}; inputs {given}\n{onnx.printer.to_text(small.model)}\n"
    return {"seed": seed, "verdict": "wrong", "kind": wrong.kind, "text": text}


def batch(seeds, binary, pipe):
    """In a process of its own, which ONNX Runtime may end."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES_PER_PROCESS, BYTES_PER_PROCESS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for seed in seeds:
            try:
                record = one(seed, binary, folder)
            except Exception as error:  # noqa: BLE001
                record = {"seed": seed, "verdict": "wrong", "kind": "the fuzzer", "text": f"seed {seed}: the fuzzer failed: {error!r}\n"}
            os.write(pipe, json.dumps(record).encode() + b"\0")


def run(seeds, binary, report):
    """Runs seeds in forked processes; goes on behind one that ends its process."""
    while seeds:
        part = seeds[:50]
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            try:
                batch(part, binary, writer)
            finally:
                os._exit(0)
        os.close(writer)
        done = 0
        with os.fdopen(reader, "rb") as file:
            for answer in file.read().split(b"\0"):
                if answer:
                    report(json.loads(answer))
                    done += 1
        os.waitpid(child, 0)
        if done < len(part):
            report({"seed": part[done], "verdict": "lost"})
        seeds = seeds[done + (done < len(part)):]


def records_of(path):
    """What a file of records tells, by seed; a line that was cut off is no record."""
    found = {}
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    record = json.loads(line)
                    found[record["seed"]] = record
                except ValueError:
                    continue
    return found


def summary(records, seconds):
    """Tells what became of all; 1 if anything is wrong, or nothing ran."""
    count = collections.Counter(record["verdict"] for record in records)
    kinds = collections.Counter(record["kind"] for record in records if record["verdict"] == "wrong")
    aside = collections.Counter()
    for record in records:
        aside.update(record.get("aside", {}))
    runs, nodes = (sum(record.get(key, 0) for record in records) for key in ("runs", "nodes"))
    print(f"{len(records)} graphs with {nodes} nodes, {runs} comparisons in {seconds:.0f} s: {count['wrong']} wrong; "
          f"{count['idle']} could be compared at no size, {count['lost']} ended ONNX Runtime's process")
    for kind, number in kinds.most_common():
        print(f"  wrong, {number} times: {kind}")
    for reason, number in aside.most_common():
        print(f"  set aside, {number} runs: {reason}")
    return 1 if count["wrong"] or not runs else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no graph after this time")
    parser.add_argument("--records", help="a file with a line of JSON for each graph; graphs that it has are not run again")
    args = parser.parse_args()
    begin = time.monotonic()
    wanted = range(args.seed, args.seed + args.count)
    before = {seed: record for seed, record in records_of(args.records).items() if seed in wanted}
    todo = [seed for seed in wanted if seed not in before]
    path = args.records
    if not path:
        handle, path = tempfile.mkstemp(suffix=".jsonl")
        os.close(handle)
    children = []
    for job in range(args.jobs):
        child = os.fork()
        if child == 0:
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

            def report(record):
                os.write(file, json.dumps(record).encode() + b"\n")
                if record["verdict"] == "wrong":
                    sys.stdout.write(record["text"] + "\n")
                    sys.stdout.flush()

            mine = todo[job::args.jobs]
            for at in range(0, len(mine), 50):
                if time.monotonic() - begin > args.seconds:
                    break
                run(mine[at:at + 50], args.binary, report)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    found = {seed: record for seed, record in records_of(path).items() if seed in wanted}
    if not args.records:
        os.remove(path)
    return summary(list(found.values()), time.monotonic() - begin)


if __name__ == "__main__":
    sys.exit(main())
