"""Tests with pieces of real models: extracts them, changes them, folds them, and compares in ONNX Runtime.

    scripts/python.sh scripts/attack_pieces.py --binary target/release/onnx-slice-fold --count 20 [--index INDEX.json] MODEL_OR_FOLDER ...

A piece is a connected subgraph of a model: values that it reads from the rest are inputs, values that the rest reads are outputs. Each
model is run once or twice with all tensors as outputs, so pieces get realistic values, and sizes that differ between the runs are dynamic.
Most pieces are connected to another piece of the same model, changed as `rule_variants.py` changes fixtures, or both; some are moved into a
branch, a loop or a function. Fixtures of rules (`<rule>__<case>.onnxtxt`) are connected to each other, because one rule's result may be
another rule's pattern.

Pieces are folded with and without `--exact`, some to a newer opset, and compared as in `attack_rules.py`: the folded model loads, runs
wherever the original ran, gives the same results (with `--exact` bit for bit), and declares true shapes. They reach cases that handmade
models do not: the forms of exporters, rules that match half of an idiom, and sizes that are computed from removed nodes.

A piece is identified by its model, the seed and its number: `--only-piece N` repeats it and prints it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import sys
import tempfile
import zlib

import numpy as np
import onnx
import onnx.parser
import onnx.printer
from onnx import TensorProto, helper

from attack_rules import MOST_ELEMENTS, SIZES, Prepared, attack_all, contradicts, draws, feeds_of, run, same, session, size_of
from compare_error import drawn
from fuzz_models import exposed
from rule_variants import CHANGES, EXTREME, LAST, Variant, copy_of, read_by, rename

# The most kept elements of the tensors of one run.
MOST_KEPT = 1 << 16


class Traced:
    """A model and its tensors in one or two runs."""

    def __init__(self, path, spec):
        self.is_text = path.endswith(".onnxtxt")
        self.model = onnx.parser.parse_model(pathlib.Path(path).read_text()) if self.is_text else onnx.load(path)
        self.runs = []
        self.nodes = [copy_of(node) for node in self.model.graph.node]
        self.constants = {tensor.name: tensor for tensor in self.model.graph.initializer}
        self.producer = {name: at for at, node in enumerate(self.nodes) for name in node.output if name}
        self.readers = collections.defaultdict(list)
        for at, node in enumerate(self.nodes):
            for name in set(read_by(node)):
                self.readers[name].append(at)
        wide = exposed(self.model)
        opened = session(wide.SerializeToString())
        names = [value.name for value in wide.graph.output]
        for turn in range(2 if self.is_text else len((spec or {}).get("dims", [{}])[:2])):
            if self.is_text:
                sizes = {name: [4, 2][turn] for name in names_of(self.model)}
                given = feeds_of(self.model, sizes, np.random.default_rng(turn), False)
            else:
                given = drawn(self.model, {**spec, "dims": spec["dims"][turn:]} if spec else None, turn + 1)
            result = dict(zip(names, opened.run(None, given))) | given
            self.runs.append({name: a for name, a in result.items() if isinstance(a, np.ndarray) and a.size <= MOST_KEPT})
        self.size = sum(array.size for each in self.runs for array in each.values())

    def neighbours(self, at):
        node = self.nodes[at]
        before = [self.producer[name] for name in read_by(node) if name in self.producer]
        after = [reader for name in node.output for reader in self.readers[name]]
        return [other for other in before + after if self.nodes[other].op_type != "Constant"]

    def piece(self, rng):
        """A connected subgraph as a model, and the values of its inputs in each run; None if an input has no known value."""
        starts = [at for at, node in enumerate(self.nodes) if node.op_type not in ("Constant", "Identity")]
        if not starts:
            return None
        members = {rng.choice(starts)}
        wanted = rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 24, 40]) if not self.is_text or rng.random() < 0.3 else 100
        grow_from = list(members)
        while len(members) < wanted and grow_from:
            at = rng.choice(grow_from)
            found = [other for other in self.neighbours(at) if other not in members]
            if not found:
                grow_from.remove(at)
                continue
            other = rng.choice(found)
            members.add(other)
            grow_from.append(other)
        for at in list(members):
            for name in read_by(self.nodes[at]):
                source = self.producer.get(name)
                if source is not None and self.nodes[source].op_type == "Constant" and rng.random() < 0.97:
                    members.add(source)
        nodes = [copy_of(self.nodes[at]) for at in sorted(members)]
        made = {name for node in nodes for name in node.output if name}
        known = set(self.producer) | set(self.constants) | {value.name for value in self.model.graph.input}
        read = [name for name in dict.fromkeys(name for node in nodes for name in read_by(node) if name) if name not in made and name in known]
        results = {value.name for value in self.model.graph.output}
        leaves = [name for name in sorted(made) if name in results or not self.readers[name] or any(at not in members for at in self.readers[name])]
        leaves = [name for name in leaves if self.nodes[self.producer[name]].op_type != "Constant"]
        if not leaves:
            return None
        if len(leaves) > 3 and rng.random() < 0.5:
            leaves = rng.sample(leaves, rng.randint(1, 3))
        constants = [name for name in read if name in self.constants and rng.random() < 0.97]
        inputs = [name for name in read if name not in constants]
        fixed, values = rng.random() < 0.3, {}
        graph = onnx.GraphProto(name="piece")
        for name in inputs:
            arrays = [run.get(name) for run in self.runs]
            if name in self.constants:
                arrays = [onnx.numpy_helper.to_array(self.constants[name])] * len(self.runs)
            if any(array is None for array in arrays) or len({array.ndim for array in arrays}) > 1:
                return None
            values[name] = arrays
            graph.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(arrays[0].dtype), self.dims(arrays, fixed, rng)))
        graph.initializer.extend(self.constants[name] for name in constants)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in leaves)
        graph.node.extend(nodes)
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version, functions=self.model.functions)
        return model, values

    def dims(self, arrays, fixed, rng):
        """The declared dims of an input: sizes that differ between the runs are dynamic, and so are a few others."""
        dims = []
        for sizes in zip(*(array.shape for array in arrays)):
            chance = rng.random()
            if fixed or len(set(sizes)) == 1 and chance < 0.75:
                dims.append(sizes[0])
            elif chance < 0.95:
                dims.append("_".join(map(str, ["n", *sizes])))
            else:
                dims.append(None)
        return dims


def names_of(model):
    """The names of sizes in the inputs' shapes."""
    dims = {d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim if d.dim_param}
    return sorted({name for dim in dims for name in re.findall(r"[A-Za-z_]\w*", dim)})


def glued(a, b, rng):
    """Connects two pieces: an output of one, transposed or reshaped if necessary, replaces an input of the other."""
    (first, known), (second, more) = a, b
    names = {name for node in second.graph.node for name in [*node.output, *read_by(node)] if name}
    names |= {value.name for value in [*second.graph.input, *second.graph.output]} | {tensor.name for tensor in second.graph.initializer}
    renamed = {name: f"{name}'" for name in names}
    rename(second.graph.node, renamed)
    for value in [*second.graph.input, *second.graph.output, *second.graph.initializer]:
        value.name = renamed[value.name]
    values = known | {renamed[name]: arrays for name, arrays in more.items()}
    at_first = [{name: arrays[0] for name, arrays in known.items()}]
    try:
        results = dict(zip([value.name for value in first.graph.output], session(first.SerializeToString()).run(None, at_first[0])))
    except Exception:  # noqa: BLE001
        results = {}
    pairs = []
    for name, result in results.items():
        for value in second.graph.input:
            wanted = values[value.name][0]
            if isinstance(result, np.ndarray) and result.dtype == wanted.dtype and result.size == wanted.size:
                pairs.append((name, value, result.shape, wanted.shape))
    if not pairs or max(version_of(first), version_of(second)) != min(version_of(first), version_of(second)):
        return None
    # Exact matches come first, then matches in another order.
    closeness = {True: 3, False: 0}
    pairs.sort(key=lambda pair: closeness[pair[2] == pair[3]] + (sorted(pair[2]) == sorted(pair[3])), reverse=True)
    name, value, there, wanted = pairs[0] if rng.random() < 0.6 else rng.choice(pairs)
    if there != wanted:
        made = f"{name} as {value.name}"
        if sorted(there) == sorted(wanted) and rng.random() < 0.7:
            left, perm = list(there), []
            for size in wanted:
                perm.append(left.index(size))
                left[perm[-1]] = None
            first.graph.node.append(helper.make_node("Transpose", [name], [made], perm=perm))
        else:
            first.graph.initializer.append(onnx.numpy_helper.from_array(np.array(wanted, np.int64), f"{made} into"))
            first.graph.node.append(helper.make_node("Reshape", [name, f"{made} into"], [made]))
        name = made
    rename(second.graph.node, {value.name: name})
    second.graph.input.remove(value)
    del values[value.name]
    first.graph.node.extend(second.graph.node)
    first.graph.initializer.extend(second.graph.initializer)
    first.graph.input.extend(second.graph.input)
    first.graph.output.extend(second.graph.output)
    return first, values


def version_of(model):
    return next((used.version for used in model.opset_import if used.domain in ("", "ai.onnx")), 1)


def changed_piece(traced, others, rng):
    """A piece, possibly changed, and connected to one of another fixture if it is of a fixture: (model, the same without bodies, values of
    inputs, whether it has extreme numbers), or None.
    """
    made = traced.piece(rng)
    if made and rng.random() < (0.9 if others else 0.2):
        made = glued_to_another(traced, others, made, rng)
    if not made:
        return None
    variant = Variant(made[0], rng)
    functions, weights = zip(*CHANGES)
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
        for _ in range(4):
            if rng.choices(functions, weights)[0](variant):
                break
    if rng.random() < 0.15:
        known_inputs(variant.model, made[1], rng)
    if rng.random() < 0.1:
        claim_sizes(variant.model, rng)
    plain = onnx.ModelProto()
    plain.CopyFrom(variant.model)
    for _ in range(rng.choice([0, 0, 0, 0, 1, 1, 2])):
        rng.choice(LAST)(variant)
    if rng.random() < 0.5:
        known_trips(variant.model, rng)
    return variant.model, plain, made[1], variant.extreme


def glued_to_another(traced, others, made, rng):
    """A piece connected to another one, or None if no fitting one is found soon."""
    for _ in range(8 if others else 1):
        other = traced_at(rng.choice(others), None) if others else traced
        second = other and other.piece(rng)
        first = onnx.ModelProto()
        first.CopyFrom(made[0])
        whole = second and glued((first, made[1]), second, rng)
        if whole:
            return whole
    return None


def known_inputs(model, values, rng):
    """Replaces some or all inputs by initializers with the values of the first run."""
    chance = rng.choice([0.5, 1.0])
    held = {tensor.name for tensor in model.graph.initializer}
    for value in list(model.graph.input):
        kind, arrays = value.type.tensor_type.elem_type, values.get(value.name)
        if value.name in held or not arrays or arrays[0].dtype == object or kind == TensorProto.STRING or rng.random() > chance:
            continue
        with np.errstate(all="ignore"):
            array = arrays[0].astype(helper.tensor_dtype_to_np_dtype(kind))
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
        model.graph.input.remove(value)


def known_trips(model, rng):
    """Makes the trip counts of the loops around pieces constant."""
    for value in [value for value in model.graph.input if value.name.startswith("trips")]:
        trips = np.array(rng.choice([0, 1, 2, 3, 17, 20]), np.int64)
        model.graph.initializer.append(onnx.numpy_helper.from_array(trips, value.name))
        model.graph.input.remove(value)


def claim_sizes(model, rng):
    """Writes facts about sizes into the metadata, as an earlier run of the program would, true or false; anybody can write metadata."""
    claims = [f"{name} {rng.choice(['>=', '<='])} {rng.choice([0, 1, 2, 4, 100])}" for name in names_of(model)]
    entry = model.metadata_props.add()
    entry.key, entry.value = "onnx-slice-fold.sizes", "; ".join(rng.sample(claims, min(len(claims), 3)))


def fitted(array, shape, dtype, rng):
    """Values like those of an array in another shape and type."""
    if array is None or array.size == 0 or array.dtype == object or dtype == object:
        if dtype == object:
            return rng.choice(np.array(["ant", "bee"], object), shape)
        kind = np.dtype(dtype).kind
        return (rng.standard_normal(shape) if kind in "fV" else rng.integers(0, 2 if kind == "b" else 4, shape)).astype(dtype)
    with np.errstate(all="ignore"):
        return np.resize(array, shape).astype(dtype)


def feeds(model, sizes, values, turn, rng, extreme):
    """Inputs at these sizes, with values of a run if they fit; None for an input that is no tensor."""
    held, given = {tensor.name for tensor in model.graph.initializer}, {}
    for value in model.graph.input:
        if value.name in held:
            continue
        tensor = value.type.tensor_type
        arrays = values.get(value.name)
        array = arrays[turn % len(arrays)] if arrays else None
        shape = [size_of(dim, sizes) for dim in tensor.shape.dim]
        if array is not None and len(array.shape) == len(shape):
            shape = [own if not (dim.dim_param or dim.HasField("dim_value")) else size for dim, own, size in zip(tensor.shape.dim, array.shape, shape)]
        if any(dim is None or dim < 0 for dim in shape) or np.prod(shape) > MOST_ELEMENTS:
            return None
        dtype = object if tensor.elem_type == TensorProto.STRING else helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        found = fitted(array, shape, dtype, rng)
        if extreme and np.dtype(dtype).kind in "iu" and array is None:
            limits = np.iinfo(dtype)
            bounds = np.array([0, 1, limits.min, limits.max, limits.min + 1, limits.max - 1]).astype(dtype)
            found = np.where(rng.random(shape) < 0.2, rng.choice(bounds, shape), found)
        if extreme and np.dtype(dtype).kind in "fV":
            spots = rng.random(shape) < 0.1
            with np.errstate(all="ignore"):
                found = np.asarray(np.where(spots, rng.choice(np.array(EXTREME), shape), found.astype(np.float64)).astype(dtype))
        given[value.name] = np.asarray(found)
    return given


TRACED = {}
# The most kept elements of all traced models.
MOST_KEPT_OF_ALL = 1 << 22


def traced_at(path, spec):
    """The model of a file with its runs, or None if it does not run."""
    if path not in TRACED:
        if sum(traced.size for traced in TRACED.values() if traced) > MOST_KEPT_OF_ALL or len(TRACED) > 200:
            TRACED.clear()
        try:
            TRACED[path] = Traced(path, spec)
        except Exception:  # noqa: BLE001
            TRACED[path] = None
    return TRACED[path]


def prepare(task):
    """Returns a piece as (Prepared, None), or (None, the reason why it is set aside)."""
    path, spec, others, seed = task
    traced = traced_at(path, spec)
    if traced is None:
        return None, "the model does not run with all tensors told"
    rng = random.Random(seed)
    try:
        made = changed_piece(traced, others, rng)
        if not made:
            return None, "no piece"
        model, plain, values, extreme = made
        data = model.SerializeToString()
        if draws(model):
            return None, "draws at random"
    except Exception as error:  # noqa: BLE001
        return None, f"no piece: {error}"
    try:
        original = session(data)
    except Exception:  # noqa: BLE001
        return None, "the original does not load"
    names = names_of(model)
    runs = []
    for turn in range(6):
        sizes = {}
        for name in names:
            own = [int(size) for size in re.findall(r"(?<=_)\d+", name)] or [rng.choice(SIZES)]
            sizes[name] = own[turn % len(own)]
            if turn > 1:
                sizes[name] = rng.choice([1, 0, own[0]] if turn < 4 else [*SIZES, *own])
        wild = extreme or turn == 5
        given = feeds(model, sizes, values, turn, np.random.default_rng(seed + turn), wild)
        if given is None:
            continue
        try:
            expected = run(original, given)
            again = run(original, given)
        except Exception as error:  # noqa: BLE001
            if "terminate" in str(error):
                return None, "the original does not end"
            continue
        if any(isinstance(each, np.ndarray) and each.size > MOST_ELEMENTS for each in expected):
            return None, "too large"
        if any(same(a, b, True) for a, b in zip(expected, again)):
            return None, "another result at each run"
        if any(contradicts(value, each) for value, each in zip(model.graph.output, expected)):
            return None, "the original declares an output falsely"
        runs.append((sizes, given, expected, wild))
    if not runs:
        return None, "the original runs at no size"
    modes = [(["--exact"], True), ([], False)]
    newer = [number for number in (13, 17, 18, 20, 21, 22, 23, 24) if number > version_of(model)]
    if newer and rng.random() < 0.25:
        modes.append((["--opset", str(rng.choice(newer))], False))
    return Prepared(modes, model, plain, runs, asks_more=True), None


def attack_model(path, spec, texts, options):
    """Tests pieces of one model: counts of outcomes, and the failures."""
    others = texts if path.suffix == ".onnxtxt" or options.together else []
    numbers = [options.only_piece] if options.only_piece is not None else range(options.count)
    tasks = [(str(path), spec, others, zlib.crc32(f"{path.stem}/{options.seed}/{number}".encode())) for number in numbers]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = attack_all(tasks, prepare, options.binary, folder)
    counts, failures, reasons = collections.Counter(), [], collections.Counter()
    for at, (outcome, message) in sorted(outcomes.items()):
        counts[outcome] += 1
        if outcome == "set aside":
            reasons[message.split(":")[0]] += 1
        if outcome == "FAILED":
            failures.append((numbers[at], tasks[at], message))
    return path, counts, failures, reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/onnx-slice-fold")
    parser.add_argument("--count", type=int, default=20, help="pieces of each model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--index", type=pathlib.Path, help="tells sizes and kinds of inputs (`models[].spec`)")
    parser.add_argument("--together", action="store_true", help="glue pieces to those of other models: for many small ones, such as the standard's tests")
    parser.add_argument("--only-piece", type=int, help="the number of one piece, which is printed")
    parser.add_argument("--save", type=pathlib.Path, help="a folder for the pieces that fail")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    index = json.loads(options.index.read_text())["models"] if options.index else []
    specs = {entry["file"]: entry.get("spec") for entry in index}
    models = lambda folder: sorted([*folder.glob("**/*.onnx"), *folder.glob("**/*__*.onnxtxt")])  # noqa: E731
    paths = [path for given in options.models for path in (models(given) if given.is_dir() else [given])]
    texts = [str(path) for path in paths if path.suffix == ".onnxtxt" or options.together]
    total, why = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(attack_model, path, specs.get(path.name), texts, options) for path in paths]
        for future in waiting:
            path, counts, failures, reasons = future.result()
            total += counts
            why += reasons
            if failures:
                print(f"{path.name}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())), flush=True)
            for number, (name, spec, others, seed), message in failures:
                print(f"    FAILED piece {number}: {' '.join(message.split())}", flush=True)
                if options.save or options.only_piece is not None:
                    model = changed_piece(Traced(name, spec), others, random.Random(seed))[0]
                    if options.save:
                        onnx.save(model, options.save / f"{path.stem}-{options.seed}-{number}.onnx")
                    else:
                        print(onnx.printer.to_text(model))
    for reason, count in why.most_common():
        print(f"set aside: {count} {reason}")
    print(f"{len(paths)} models, {sum(total.values())} pieces: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(total.items())))
    return 1 if total["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
