"""Attacks each rewrite rule by itself: varies its fixtures, folds with that rule alone and with all, and compares in ONNX Runtime.

    scripts/python.sh scripts/attack_rules.py --binary target/release/onnx-slice-fold --count 200 [--rule NAME ...] [--seed S]

Fixtures are models in the ONNX text syntax, `<rule>__<case>.onnxtxt` anywhere below --fixtures. A variant changes up to four things: element types,
sizes (0, 1, large; fixed or open), entries of constants (extreme numbers, infinities, NaN and −0 among them), attributes, operands (one
read twice, one of size 1), other readers of intermediate values, more outputs, captures by a body. A variant counts if ONNX Runtime, which
optimizes nothing, loads and runs it at one size at least. Then the folded model must load, run wherever the original ran, give outputs of the same types
and shapes, and with `--exact` the same bits (a NaN is a NaN). Without `--exact` only variants without extreme numbers are compared, up to rounding.
Runs in which ONNX Runtime strays by the predicates of `fuzz_models.misjudged`, or gives other results a second time, are set aside.

A variant is known by its rule, case and number: `--rule R --case C --only-variant N` does it again and prints the model.
"""
import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import onnx
import onnx.parser
import onnx.printer
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from compare_onnxruntime import evaluate
from fuzz_models import exposed, misjudged

FLOATS = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16]
WHOLE = [TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8]
EXTREME = [0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e-40, 1e30, 1e-30, 65504.0, 16777217.0]
BOUNDS = [0, 1, -1, 2, -2, 3, -3, 7, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
SIZES = [0, 1, 2, 3, 5, 8]
SECONDS = 60


def session(model):
    """A session of a file or of what is in one."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


# ---- variants ----


class Variant:
    """A model that is being changed. Each change answers whether it found something to change."""

    def __init__(self, model, rng):
        self.model, self.graph, self.rng = model, model.graph, rng
        self.extreme = False

    def constants(self, kinds):
        found = [tensor for tensor in self.graph.initializer if tensor.data_type in kinds]
        for node in self.graph.node:
            found += [a.t for a in node.attribute if a.type == onnx.AttributeProto.TENSOR and a.t.data_type in kinds]
        return found

    def values(self):
        """Names of what nodes of the main graph compute."""
        return [name for node in self.graph.node for name in node.output if name]

    def change_type(self):
        """Every float of one type becomes one of another; or every integer input and constant of its type."""
        kinds = FLOATS if self.rng.random() < 0.7 else WHOLE
        present = {v.type.tensor_type.elem_type for v in self.graph.input} & set(kinds)
        if not present:
            return False
        old = self.rng.choice(sorted(present))
        new = self.rng.choice([kind for kind in kinds + [TensorProto.FLOAT] if kind != old])
        whole = old in WHOLE
        for value in [*self.graph.input, *self.graph.output, *self.graph.value_info]:
            if value.type.tensor_type.elem_type == old:
                value.type.tensor_type.elem_type = new
        for tensor in self.constants([old]):
            # Sizes and indices stay what they are.
            if whole and tensor.data_type == TensorProto.INT64:
                continue
            with np.errstate(all="ignore"):
                array = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(new))
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        for node in self.graph.node:
            for attribute in node.attribute:
                if attribute.name in ("to", "dtype") and attribute.i == old:
                    attribute.i = new
        del self.graph.value_info[:]
        return True

    def change_size(self):
        dims = [d for v in self.graph.input for d in v.type.tensor_type.shape.dim]
        if not dims:
            return False
        dim = self.rng.choice(dims)
        names = sorted({d.dim_param for d in dims if d.dim_param})
        kind = self.rng.random()
        if kind < 0.5:
            dim.dim_value = self.rng.choice([0, 1, 1, 2, 3, 4, 6, 17])
        elif kind < 0.75 and names:
            dim.dim_param = self.rng.choice(names)
        else:
            dim.dim_param = f"s{self.rng.randrange(3)}"
        return True

    def change_whole_constant(self):
        found = [t for t in self.constants([TensorProto.INT64, TensorProto.INT32]) if np.prod(t.dims, dtype=int) > 0]
        if not found:
            return False
        tensor = self.rng.choice(found)
        array = numpy_helper.to_array(tensor).copy()
        flat = array.reshape(-1)
        at = self.rng.randrange(flat.size)
        if self.rng.random() < 0.6:
            number = int(flat[at]) + self.rng.choice([-2, -1, 1, 2])
        else:
            number = self.rng.choice(BOUNDS)
        limits = np.iinfo(array.dtype)
        flat[at] = min(max(number, limits.min), limits.max)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        return True

    def change_float_constant(self):
        found = [t for t in self.constants(FLOATS) if np.prod(t.dims, dtype=int) > 0]
        if not found:
            return False
        tensor = self.rng.choice(found)
        array = numpy_helper.to_array(tensor).copy()
        flat = array.reshape(-1)
        chosen = range(flat.size) if self.rng.random() < 0.5 else [self.rng.randrange(flat.size)]
        number = self.rng.choice(EXTREME)
        with np.errstate(all="ignore"):
            for at in chosen:
                flat[at] = number
        self.extreme |= not (abs(number) in (0.0, 1.0))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        return True

    def change_attribute(self):
        found = [a for n in self.graph.node for a in n.attribute if a.type in (2, 7, 1) and a.name not in ("to", "dtype")]
        if not found:
            return False
        attribute = self.rng.choice(found)
        if attribute.type == 1:
            attribute.f = self.rng.choice([0.0, 1.0, -1.0, 0.5, 2.0])
        elif attribute.type == 2:
            attribute.i += self.rng.choice([-2, -1, 1, 2])
        elif len(attribute.ints) > 1 and self.rng.random() < 0.5:
            numbers = list(attribute.ints)
            self.rng.shuffle(numbers)
            attribute.ints[:] = numbers
        elif attribute.ints:
            at = self.rng.randrange(len(attribute.ints))
            attribute.ints[at] += self.rng.choice([-1, 1])
        return True

    def drop_attribute(self):
        found = [(n, a) for n in self.graph.node for a in n.attribute if a.type in (1, 2, 3, 7)]
        if not found:
            return False
        node, attribute = self.rng.choice(found)
        node.attribute.remove(attribute)
        return True

    def add_output(self):
        found = sorted(set(self.values()) - {v.name for v in self.graph.output})
        if not found:
            return False
        self.graph.output.append(onnx.ValueInfoProto(name=self.rng.choice(found)))
        return True

    def add_reader(self):
        found = self.values()
        if not found:
            return False
        name = f"again{len(self.graph.node)}"
        self.graph.node.append(helper.make_node("Identity", [self.rng.choice(found)], [name]))
        self.graph.output.append(onnx.ValueInfoProto(name=name))
        return True

    def add_capture(self):
        """A body reads an intermediate value."""
        found = self.values()
        if not found:
            return False
        number = len(self.graph.node)
        value = self.rng.choice(found)
        self.graph.initializer.append(numpy_helper.from_array(np.array(self.rng.random() < 0.5), f"flag{number}"))
        bodies = []
        for branch in ("then", "else"):
            result = f"{branch}{number}"
            node = helper.make_node("Identity", [value], [result])
            bodies.append(helper.make_graph([node], branch, [], [onnx.ValueInfoProto(name=result)]))
        given = helper.make_tensor_value_info(f"ask{number}", TensorProto.BOOL, [])
        asked = self.rng.random() < 0.7
        if asked:
            self.graph.input.append(given)
        flag = f"ask{number}" if asked else f"flag{number}"
        node = helper.make_node("If", [flag], [f"taken{number}"], then_branch=bodies[0], else_branch=bodies[1])
        self.graph.node.append(node)
        self.graph.output.append(onnx.ValueInfoProto(name=f"taken{number}"))
        return True

    def read_twice(self):
        """An operand in place of another."""
        found = [node for node in self.graph.node if len(node.input) > 1]
        if not found:
            return False
        node = self.rng.choice(found)
        a, b = self.rng.sample(range(len(node.input)), 2)
        node.input[a] = node.input[b]
        return True

    def change_operator(self):
        pairs = ["Add Sub", "Mul Div", "Max Min", "Relu Neg", "Relu Sigmoid", "ReduceSum ReduceMax", "Squeeze Unsqueeze", "Equal Less", "And Or",
                 "Abs Exp", "Add Mul"]
        table = collections.defaultdict(list)
        for a, b in (pair.split() for pair in pairs):
            table[a].append(b)
            table[b].append(a)
        found = [node for node in self.graph.node if node.op_type in table]
        if not found:
            return False
        node = self.rng.choice(found)
        node.op_type = self.rng.choice(table[node.op_type])
        return True

    def change_mode(self):
        others = {b"constant": [b"edge", b"reflect", b"wrap"], b"nearest": [b"linear"], b"asymmetric": [b"half_pixel", b"align_corners"],
                  b"none": [b"add", b"max"]}
        found = [a for n in self.graph.node for a in n.attribute if a.type == 3 and a.s in others]
        if not found:
            return False
        attribute = self.rng.choice(found)
        attribute.s = self.rng.choice(others[attribute.s])
        return True

    def constant_as_input(self):
        """What a constant said is given when the model runs."""
        found = [t for t in self.graph.initializer if t.name not in {v.name for v in self.graph.input}]
        if not found:
            return False
        tensor = self.rng.choice(found)
        self.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        # A default that may be overridden, or nothing.
        if self.rng.random() < 0.5:
            self.graph.initializer.remove(tensor)
        return True


CHANGES = [
    (Variant.change_type, 3), (Variant.change_size, 5), (Variant.change_whole_constant, 6), (Variant.change_float_constant, 3),
    (Variant.change_attribute, 4), (Variant.drop_attribute, 1), (Variant.add_output, 2), (Variant.add_reader, 2), (Variant.add_capture, 1),
    (Variant.read_twice, 2), (Variant.change_operator, 2), (Variant.change_mode, 1), (Variant.constant_as_input, 1),
]


def variant_of(text, seed):
    """A changed fixture, and whether it holds extreme numbers."""
    rng = random.Random(seed)
    variant = Variant(onnx.parser.parse_model(text), rng)
    changes = rng.choice([0, 1, 1, 2, 2, 3, 4])
    functions, weights = zip(*CHANGES)
    for _ in range(changes):
        for _ in range(4):
            if rng.choices(functions, weights)[0](variant):
                break
    return variant.model, variant.extreme


# ---- runs ----


def feeds_of(model, sizes, rng, extreme):
    """Inputs at these sizes; integers are small, and may be indices."""
    given = {}
    defaults = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in defaults:
            continue
        tensor = value.type.tensor_type
        if value.type.WhichOneof("value") != "tensor_type":
            return None
        # A dim may be declared as an expression of others.
        shape = [d.dim_value if d.HasField("dim_value") else evaluate(d.dim_param, sizes) if d.dim_param else 2 for d in tensor.shape.dim]
        if any(dim is None or dim < 0 for dim in shape):
            return None
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        kind = np.dtype(dtype).kind
        if tensor.elem_type == TensorProto.STRING:
            given[value.name] = rng.choice(np.array(["ant", "bee"], object), shape)
        elif kind == "b":
            given[value.name] = rng.integers(0, 2, shape).astype(dtype)
        elif kind in "iu":
            given[value.name] = rng.integers(0 if kind == "u" else -1, 4, shape).astype(dtype)
        else:
            array = rng.standard_normal(shape) * 2
            if extreme:
                spots = rng.random(shape) < 0.2
                array = np.where(spots, rng.choice(np.array(EXTREME), shape), array)
            with np.errstate(all="ignore"):
                given[value.name] = np.asarray(array.astype(dtype))
    return given


def same(a, b, exact):
    """Why two results differ, or None."""
    if isinstance(a, (list, dict)) or isinstance(b, (list, dict)) or a is None or b is None:
        if isinstance(a, list) and isinstance(b, list):
            return f"{len(b)} elements for {len(a)}" if len(a) != len(b) else next(filter(None, (same(x, y, exact) for x, y in zip(a, b))), None)
        return None if type(a) is type(b) and (a == b) else f"{b} for {a}"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{b.dtype}{list(b.shape)} for {a.dtype}{list(a.shape)}"
    if a.dtype.kind not in "fV" or a.size == 0:
        return None if np.array_equal(a, b) else f"{brief(b)} for {brief(a)}"
    x, y = a.astype(np.float64), b.astype(np.float64)
    if exact:
        equal = (np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))
        return None if equal.all() else f"{brief(y[~equal])} for {brief(x[~equal])}, bit for bit"
    scale = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
    step = {2: 2.0**-8, 4: 2.0**-17, 8: 2.0**-40}[a.dtype.itemsize]
    with np.errstate(all="ignore"):
        equal = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= step * (np.abs(x) + scale))
    return None if equal.all() else f"{brief(y[~equal])} for {brief(x[~equal])}"


def brief(array):
    return np.array2string(np.asarray(array).reshape(-1)[:6], precision=8)


def fold(binary, source, target, flags):
    run = subprocess.run([binary, source, "-o", target, *flags], capture_output=True, text=True, timeout=SECONDS)
    if run.returncode == 0:
        return None
    return f"the program ends with {run.returncode}: {(run.stderr or run.stdout).strip()[-300:]}"


def modes(rule, abilities):
    """Flags to fold with, and whether results must stay equal bit for bit."""
    found = [(["--exact"], True), ([], False)]
    if "only" in abilities:
        found += [(["--only", rule], False), (["--only", rule, "--exact"], True)]
    return found


def strays(model, given):
    """Why the results of the original are no measure, if ONNX Runtime strays in this run."""
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer} | given
    wide = exposed(model)
    try:
        session_ = session(wide.SerializeToString())
        values |= dict(zip([value.name for value in wide.graph.output], session_.run(None, given)))
    except Exception:  # noqa: BLE001
        return None
    return misjudged(model, values)


def attack(task, say):
    """One variant: (outcome, message). Outcomes: passed, set aside, FAILED. `say` is told when the folded model is run."""
    binary, abilities, rule, text, seed, folder = task
    try:
        model, extreme = variant_of(text, seed)
    except Exception as error:  # noqa: BLE001
        return "set aside", f"no variant: {error}"
    source, target = os.path.join(folder, f"{os.getpid()}.onnx"), os.path.join(folder, f"{os.getpid()}.folded.onnx")
    onnx.save(model, source)
    try:
        original = session(source)
    except Exception:  # noqa: BLE001
        return "set aside", "the original does not load"
    dims = {d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim}
    names = sorted({name for dim in dims for name in re.findall(r"[A-Za-z_]\w*", dim)})
    runs = []
    chooser = random.Random(seed)
    for attempt in range(5):
        one = [3, 0, 1, None, None][attempt]
        sizes = {name: chooser.choice(SIZES) if one is None else one for name in names}
        given = feeds_of(model, sizes, np.random.default_rng(seed + attempt), extreme or attempt == 4)
        if given is None:
            return "set aside", "inputs that are no tensors"
        try:
            expected = original.run(None, given)
            again = original.run(None, given)
        except Exception:  # noqa: BLE001
            continue
        if any(same(a, b, True) for a, b in zip(expected, again)):
            return "set aside", "another result at each run"
        runs.append((sizes, given, expected, extreme or attempt == 4))
    if not runs:
        return "set aside", "the original runs at no size"
    outputs = [value.name for value in model.graph.output]
    say()
    for flags, exact in modes(rule, abilities):
        said = " ".join(flags) or "all rules"
        try:
            failure = fold(binary, source, target, flags)
        except subprocess.TimeoutExpired:
            failure = "the program does not end"
        if failure:
            return "FAILED", f"{said}: {failure}"
        try:
            folded = session(target)
        except Exception as error:  # noqa: BLE001
            return "FAILED", f"{said}: the folded model does not load: {str(error)[:300]}"
        for sizes, given, expected, wild in runs:
            if wild and not exact:
                continue
            at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            try:
                results = folded.run(None, given)
            except Exception as error:  # noqa: BLE001
                why = strays(model, given)
                return ("set aside", why) if why else ("FAILED", f"{said}: the folded model does not run at {at}: {str(error)[:300]}")
            for name, a, b in zip(outputs, expected, results):
                difference = same(a, b, exact)
                if difference:
                    empty = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.size == b.size == 0
                    # Which dim of an empty tensor is 0 is left open where two sizes are (ops/movement/reshape.rs).
                    both = empty and list(sizes.values()).count(0) > 1
                    why = "Reshape and two sizes of 0" if both else strays(model, given)
                    return ("set aside", why) if why else ("FAILED", f"{said}: {name} at {at}: {difference}")
    return "passed", ""


def worker(tasks, pipe):
    """Does tasks in turn, and says of each that it begins: a runtime that breaks down ends the process."""
    for at, task in tasks:
        pipe.send((at, "begins", ""))
        pipe.send((at, *attack(task, lambda at=at: pipe.send((at, "is folded", "")))))
    pipe.close()


def attack_all(tasks):
    """The outcome of each task; a process that breaks down costs one task."""
    rest, outcomes = list(enumerate(tasks)), {}
    while rest:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=worker, args=(rest, theirs))
        process.start()
        theirs.close()
        current, stage = None, ""
        try:
            while ours.poll(5 * SECONDS):
                current, stage, message = ours.recv()
                if stage not in ("begins", "is folded"):
                    outcomes[current] = (stage, message)
                    current = None
        except EOFError:
            pass
        process.kill()
        process.join()
        if current is not None and stage == "begins":
            outcomes[current] = ("set aside", "the original ends ONNX Runtime's process")
        elif current is not None:
            outcomes[current] = ("FAILED", "the folded model ends ONNX Runtime's process")
        rest = [(at, task) for at, task in rest if at not in outcomes]
    return outcomes


def abilities_of(binary):
    text = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
    return {name for name in ("only", "exact") if f"--{name}" in text}


def attack_rule(rule, cases, options, abilities):
    """Attacks one rule with all its cases; counts of outcomes, and what failed."""
    with tempfile.TemporaryDirectory() as folder:
        tasks, known = [], []
        numbers = [options.only_variant] if options.only_variant is not None else range(options.count)
        for number in numbers:
            case, text = cases[number % len(cases)] if options.case is None else cases[0]
            seed = zlib.crc32(f"{rule}/{case}/{options.seed}/{number}".encode())
            tasks.append((options.binary, abilities, rule, text, seed, folder))
            known.append((case, number, text, seed))
        outcomes = attack_all(tasks)
    counts, failures = collections.Counter(), []
    for at, (outcome, message) in sorted(outcomes.items()):
        counts[outcome] += 1
        if outcome == "FAILED":
            failures.append((known[at], message))
    return rule, counts, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/onnx-slice-fold")
    parser.add_argument("--fixtures", default="tests/rules")
    parser.add_argument("--rule", action="append", default=[])
    parser.add_argument("--case")
    parser.add_argument("--count", type=int, default=200, help="variants of each rule")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only-variant", type=int, help="the number of one variant, which is printed")
    parser.add_argument("--show", action="store_true", help="print the models that fail")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    rules = collections.defaultdict(list)
    for path in sorted(pathlib.Path(options.fixtures).rglob("*__*.onnxtxt")):
        rule, _, case = path.stem.partition("__")
        text = path.read_text()
        try:
            onnx.parser.parse_model(text)
        except Exception:  # noqa: BLE001
            # The standard's own parser does not read everything of its syntax.
            continue
        if (not options.rule or rule in options.rule) and (options.case is None or case == options.case):
            rules[rule].append((case, text))
    if not rules:
        print(f"no fixtures below {options.fixtures}", file=sys.stderr)
        return 1
    abilities = abilities_of(options.binary)
    total = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(attack_rule, rule, cases, options, abilities) for rule, cases in rules.items()]
        for future in waiting:
            rule, counts, failures = future.result()
            total += counts
            print(f"{rule}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())), flush=True)
            for (case, number, text, seed), message in failures:
                print(f"    FAILED {rule}__{case}, variant {number}: {' '.join(message.split())}", flush=True)
                if options.show or options.only_variant is not None:
                    print(onnx.printer.to_text(variant_of(text, seed)[0]))
    print(f"{len(rules)} rules, {sum(total.values())} variants: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(total.items())))
    return 1 if total["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
