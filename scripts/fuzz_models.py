"""Folds random models and compares them with the originals in ONNX Runtime: no false statement, no other result, no crash.

    scripts/python.sh scripts/fuzz_models.py --binary target/release/onnx-slice-fold --seed 1 --count 1000 --jobs 2

For each graph, at several sizes of its symbols (0 and 1 among them) at which the original runs: every dim that the folded model
states must be the true one; the folded model must run and give the same results; the program must succeed. A graph that
fails is made smaller and printed in the ONNX text syntax. `--seed S --count 1` repeats it.
"""
import argparse
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
from onnx import numpy_helper

from compare_onnxruntime import evaluate, same
from random_graphs import Case, random_case, read_by, session

SECONDS_PER_GRAPH = 60
SECONDS_TO_GROW = 10
BYTES_PER_PROCESS = 6 << 30


class Wrong(Exception):
    """A failure: its kind, and what it is in particular."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind


def exposed(model, keep_shapes):
    """The model with every tensor of the main graph as an output."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    del wide.graph.value_info[:]
    for value in wide.graph.output:
        if value.type.HasField("tensor_type") and not keep_shapes:
            value.type.tensor_type.ClearField("shape")
    there = {value.name for value in wide.graph.output}
    names = dict.fromkeys(name for node in wide.graph.node for name in node.output if name and name not in there)
    wide.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return wide


def stated(model):
    """What a model states: names with their dims, an integer, a text or None each."""
    shapes = {}
    for value in [*model.graph.value_info, *model.graph.output]:
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
    for name, dims, shape in pairs:
        for dim, size in zip(dims, shape):
            want = evaluate(dim, known) if isinstance(dim, str) else dim
            if want is not None and want != size:
                return f"'{name}' is stated to be {dims}, but is {list(shape)}"
    return None


def rounds(case, seed):
    """Sizes to try, the guide's first."""
    rng = random.Random(seed + 1)
    yield dict(case.guide)
    yield {name: rng.choice([0, 1, 1, 2, 3, 4, 5, 7, 9, 16]) for name in case.symbols}
    yield {name: rng.choice([1, 2, 3, 6, 8, 13]) for name in case.symbols}
    yield dict.fromkeys(case.symbols, 1)
    yield {name: rng.choice([0, 0, size]) for name, size in case.guide.items()}


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
    if rng.random() < 0.05:
        flags += ["--slice-rule", "onnxruntime"]
    return flags, fixed


def allowed(sizes, fixed):
    """The sizes, made to fit what the flags promise."""
    for name, promise in fixed.items():
        low, high, step = promise if isinstance(promise, tuple) else (promise, promise, 1)
        sizes[name] = min(max(low, sizes[name] // step * step), high // step * step)
    return sizes


def check(case, seed, binary, folder):
    """How many sizes could be compared.

    Raises Wrong if the program is.
    """
    source, target = os.path.join(folder, "model.onnx"), os.path.join(folder, "folded.onnx")
    with open(source, "wb") as file:
        file.write(case.model.SerializeToString())
    flags, fixed = flags_of(case, seed)
    done = subprocess.run([binary, source, "-o", target, *flags], capture_output=True, timeout=SECONDS_PER_GRAPH, close_fds=False)
    message = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0 or done.returncode > 100:
        raise Wrong("crash", f"exit code {done.returncode}: {message}")
    try:
        original = session(exposed(case.model, False))
    except Exception:  # noqa: BLE001
        return 0
    if done.returncode:
        raise Wrong("refused", re.sub(r"'[^']*'", "_", message.splitlines()[-1]))
    folded_model = onnx.load(target)
    names = lambda values: [value.name for value in values]  # noqa: E731
    for kind in ("input", "output"):
        before, after = getattr(case.model.graph, kind), getattr(folded_model.graph, kind)
        if names(before) != names(after):
            raise Wrong("interface", f"{kind}s {names(before)} became {names(after)}")
    declared = stated(case.model)
    shapes = {name: dims for name, dims in stated(folded_model).items() if dims != declared.get(name)}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in case.model.graph.initializer}
    folded = None
    runs = 0
    for turn, sizes in enumerate(rounds(case, seed)):
        sizes = allowed(sizes, fixed)
        numbers = np.random.default_rng([seed, turn])
        feeds = {given.name: given.feed(sizes, numbers) for given in case.inputs}
        feeds = {name: value for name, value in feeds.items() if name not in constants or turn % 2}
        try:
            before = original.run(None, feeds)
        except Exception:  # noqa: BLE001
            continue
        # What reads memory that is not its own gives something else each time; such a run says nothing.
        if not all(same(a, b) for a, b in zip(before, original.run(None, feeds))):
            continue
        given = dict(zip([o.name for o in original.get_outputs()], before))
        if misjudged(case.model, {**constants, **feeds, **given}):
            continue
        runs += 1
        if folded is None:
            try:
                folded = session(exposed(folded_model, False))
            except Exception as error:  # noqa: BLE001
                raise Wrong("does not load", short(error)) from None
        try:
            after = folded.run(None, feeds)
        except Exception as error:  # noqa: BLE001
            raise Wrong("does not run", f"at {sizes} {flags}: {short(error)}") from None
        truth = dict(zip([o.name for o in folded.get_outputs()], after))
        wrong = disagreement(shapes, truth, sizes)
        if wrong:
            raise Wrong("false statement", f"at {sizes} {flags}: {wrong}")
        for name in names(case.model.graph.output):
            if not equal(given[name], truth[name]):
                raise Wrong("other result", f"at {sizes} {flags}: '{name}' was {brief(given[name])}, is {brief(truth[name])}")
    return runs


def misjudged(model, values):
    """Whether ONNX Runtime is known to stray from the operators' text in this run."""
    for node in all_nodes(model):
        operands = [values.get(name) for name in node.input]
        first = operands[0] if operands else None
        if not isinstance(first, np.ndarray):
            continue
        second = operands[1] if len(operands) > 1 else None
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute if not a.HasField("g") and not a.ref_attr_name}
        name = node.op_type
        if (name.startswith("Reduce") or name in ("ArgMax", "ArgMin")) and first.size == 0:
            # Axes counted from the end are not counted so where the operand is empty.
            axes = attributes.get("axes", second if name.startswith("Reduce") else [attributes.get("axis", 0)])
            if axes is None or any(axis < 0 for axis in axes):
                return True
        if name in ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool") and first.ndim > 2:
            # A window larger than what it slides over counts as one where the stride is large enough.
            spatial = first.ndim - 2
            if first.shape[1] == 0:
                return True
            kernel = attributes.get("kernel_shape", second.shape[2:] if second is not None else [])
            pads, dilations = attributes.get("pads", [0] * 2 * spatial), attributes.get("dilations", [1] * spatial)
            sizes = zip(first.shape[2:], kernel, dilations, pads[:spatial], pads[spatial:])
            if any(size + a + b < (k - 1) * d + 1 for size, k, d, a, b in sizes):
                return True
        if name == "Reshape" and second is not None and 0 in second:
            # Which of the sizes of an empty tensor is 0; see the head of ops/movement/reshape.rs.
            if first.size == 0 or attributes.get("allowzero") and -1 in second:
                return True
        if name in ("LSTM", "GRU", "RNN") and first.size == 0:
            # The last state of nothing is whatever was in memory.
            return True
        if name == "Slice" and len(operands) > 4:
            # Whether the largest integer is an open end where the step is negative.
            ends, steps = operands[2], operands[4]
            if ends is None or steps is None or any(end >= 2**31 - 1 and step < 0 for end, step in zip(ends, steps)):
                return True
        if name == "PRelu" and second is not None:
            # Only the slope may be broadcast.
            if np.broadcast_shapes(first.shape, second.shape) != first.shape:
                return True
        if name == "Loop":
            # Without an iteration what is scanned has no rank.
            results = [values.get(output) for output in node.output]
            states = len(node.input) - 2
            if any(isinstance(result, np.ndarray) and result.shape[:1] == (0,) for result in results[states:]):
                return True
    return False


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


# Making a failing graph smaller

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
        opened = session(exposed(case.model, False))
        numbers = np.random.default_rng(0)
        feeds = {given.name: given.feed(case.guide, numbers) for given in case.inputs}
        truth = dict(zip([o.name for o in opened.get_outputs()], opened.run(None, feeds)))
        truth.update(feeds)
    except Exception:  # noqa: BLE001
        pass
    truth.update({tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer})
    outputs = {value.name for value in graph.output}
    for index, node in reversed(list(enumerate(graph.node))):
        # A node's operand, or a constant, in its place.
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


# Running many

def one(seed, binary, folder):
    """A line about one seed: how many runs, or the failure."""
    # A node may keep ONNX Runtime busy for ever.
    signal.alarm(SECONDS_TO_GROW)
    case = random_case(seed)
    signal.alarm(SECONDS_PER_GRAPH * 2)
    try:
        return f"ok {check(case, seed, binary, folder)} {len(case.model.graph.node)}", None
    except subprocess.TimeoutExpired:
        wrong = Wrong("hangs", f"no answer in {SECONDS_PER_GRAPH} s")
        return "wrong", f"seed {seed}: {wrong}\n{onnx.printer.to_text(case.model)}\n"
    except Wrong as found:
        wrong = found
    small = shrink(case, seed, binary, folder, wrong.kind)
    try:
        check(small, seed, binary, folder)
    except Wrong as found:
        wrong = found
    flags, _ = flags_of(case, seed)
    given = ", ".join(f"{i.name}: {i.low}..{i.high}" for i in small.inputs)
    return "wrong", f"seed {seed}: {wrong}\nflags {flags}; inputs {given}\n{onnx.printer.to_text(small.model)}\n"


def batch(seeds, binary, pipe):
    """In a process of its own, which ONNX Runtime may end."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES_PER_PROCESS, BYTES_PER_PROCESS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for seed in seeds:
            try:
                verdict, text = one(seed, binary, folder)
            except Exception as error:  # noqa: BLE001
                verdict, text = "wrong", f"seed {seed}: the fuzzer failed: {error!r}\n"
            os.write(pipe, f"{seed} {verdict}\n{text or ''}".encode() + b"\0")


def run(seeds, binary, report):
    """Runs seeds in forked processes; goes on behind one that ends its process."""
    seeds = list(seeds)
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
        with os.fdopen(reader, "rb") as file:
            answers = [answer for answer in file.read().split(b"\0") if answer]
        os.waitpid(child, 0)
        for answer in answers:
            head, _, text = answer.decode(errors="replace").partition("\n")
            report(head.split(" ", 1)[1], text)
        if len(answers) < len(part):
            report(f"lost {part[len(answers)]}", "")
        seeds = seeds[len(answers) + (len(answers) < len(part)):]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no graph after this time")
    args = parser.parse_args()
    begin = time.monotonic()
    children = []
    for job in range(args.jobs):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            counts = {"graphs": 0, "nodes": 0, "runs": 0, "lost": 0, "idle": 0, "wrong": 0}

            def report(verdict, text):
                words = verdict.split()
                counts["graphs"] += 1
                if words[0] == "ok":
                    counts["runs"] += int(words[1])
                    counts["idle"] += words[1] == "0"
                    counts["nodes"] += int(words[2])
                elif words[0] == "lost":
                    counts["lost"] += 1
                else:
                    counts["wrong"] += 1
                    sys.stdout.write(text + "\n")
                    sys.stdout.flush()

            mine = range(args.seed + job, args.seed + args.count, args.jobs)
            for at in range(0, len(mine), 50):
                if time.monotonic() - begin > args.seconds:
                    break
                run(mine[at:at + 50], args.binary, report)
            os.write(writer, repr(counts).encode())
            os._exit(0)
        os.close(writer)
        children.append((child, reader))
    total = {}
    for child, reader in children:
        with os.fdopen(reader, "rb") as file:
            for key, value in eval(file.read().decode() or "{}").items():  # noqa: S307
                total[key] = total.get(key, 0) + value
        os.waitpid(child, 0)
    seconds = time.monotonic() - begin
    print(f"{total.get('graphs', 0)} graphs with {total.get('nodes', 0)} nodes, {total.get('runs', 0)} comparisons in {seconds:.0f} s: "
          f"{total.get('wrong', 0)} wrong; {total.get('idle', 0)} did not run at any size, {total.get('lost', 0)} ended ONNX Runtime's process")
    return 1 if total.get("wrong") or not total.get("runs") else 0


if __name__ == "__main__":
    sys.exit(main())
