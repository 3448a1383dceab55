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
from fuzz_models import all_nodes, exposed, misjudged
from rule_variants import EXTREME, variant_of

SIZES = [0, 1, 2, 3, 5, 8]
SECONDS = 60


# Operators that draw at random.
RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")

def session(model):
    """A session of a file or of what is in one."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


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
            return (
                f"{len(b)} elements for {len(a)}"
                if len(a) != len(b)
                else next(filter(None, (same(x, y, exact) for x, y in zip(a, b))), None)
            )
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


def computes_halves(model):
    """Whether anything is of float16. ONNX Runtime has few kernels of it for processors. What has none is computed in float32, and rounded only where a
    node follows that has one; so which results are rounded depends on what stands between them, be it a node that only moves elements."""
    typed = [value.type.tensor_type.elem_type for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]]
    typed += [tensor.data_type for tensor in model.graph.initializer]
    typed += [attribute.i for node in all_nodes(model) if node.op_type == "Cast" for attribute in node.attribute if attribute.name == "to"]
    return onnx.TensorProto.FLOAT16 in typed


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


def draws(model):
    """Whether a run may draw at random, be it with the same result twice."""
    return any(node.op_type == "Dropout" and len(node.input) > 2 or node.op_type in RANDOM for node in model.graph.node)


def computes_constants(model):
    """Whether a node computes floats from constants alone: the program does so in its own way, under --exact as well."""
    known = {value.name for value in model.graph.initializer} - {value.name for value in model.graph.input}
    computed = False
    for node in model.graph.node:
        # Fixed sizes are constants as well.
        if node.op_type in ("Shape", "Size") or all(not name or name in known for name in node.input):
            known.update(node.output)
            computed |= node.op_type not in ("Constant", "Identity", "Shape", "Size")
    return computed


def attack(task, say):
    """One variant: (outcome, message). Outcomes: passed, set aside, FAILED. `say` is told when the folded model is run."""
    binary, abilities, rule, text, seed, folder = task
    try:
        model, extreme = variant_of(text, seed)
    except Exception as error:  # noqa: BLE001
        return "set aside", f"no variant: {error}"
    source, target = os.path.join(folder, f"{os.getpid()}.onnx"), os.path.join(folder, f"{os.getpid()}.folded.onnx")
    if draws(model):
        return "set aside", "draws at random"
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
                    if not why and exact and computes_constants(model) and not same(a, b, False):
                        why = "a constant is computed in the program's own way"
                    if not why and exact and computes_halves(model) and (computes_constants(model) or not same(a, b, False)):
                        # A constant that is rounded otherwise may be a size further on.
                        why = "float16 is rounded between some nodes only"
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
    print(
        f"{len(rules)} rules, {sum(total.values())} variants: "
        + ", ".join(f"{count} {outcome}" for outcome, count in sorted(total.items()))
    )
    return 1 if total["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
