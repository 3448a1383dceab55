"""Tests each rewrite rule alone: varies its fixtures, folds with this rule only and with all rules, and compares in ONNX Runtime.

    scripts/python.sh scripts/attack_rules.py --binary target/release/onnx-slice-fold --count 200 [--rule NAME ...] [--seed S]

Fixtures are models in the ONNX text syntax, `<rule>__<case>.onnxtxt`, anywhere below --fixtures. A variant has up to four changes: of
element types, sizes (0, 1, large; fixed or dynamic), opsets, ranks, axes (cut to one entry, negative), entries of constants (extreme
numbers, infinities, NaN and −0), attributes, operands (one read twice, one of size 1), other consumers of intermediate values, more
outputs, captures by a subgraph. One in five is moved into a branch, a loop or a function.

A variant counts if ONNX Runtime, without optimizations, loads it and runs it at one size at least. Then the folded model must load, run
wherever the original ran, give outputs of the same types and shapes, and with `--exact` the same bits (all NaNs are equal). Without
`--exact` only variants without extreme numbers are compared, up to rounding. Runs are set aside if ONNX Runtime deviates by the predicates
of `fuzz_models.misjudged`, or gives other results a second time. Models are short-lived files: with TMPDIR in memory (`/dev/shm`) about 170
variants take a second of a processor, on a disk a tenth of that.

A variant is identified by its rule, case and number: `--rule R --case C --only-variant N` repeats it and prints the model.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import google.protobuf.message
import numpy as np
import onnx
import onnx.parser
import onnx.printer
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from compare_error import widened
from compare_onnxruntime import evaluate
from fuzz_models import all_nodes, disagreement, exposed, misjudged, stated
from rule_variants import EXTREME, variant_of

SIZES = [0, 1, 2, 3, 5, 8]
SECONDS = 60
# The time limit of one run of a model.
RUN_SECONDS = 2
# The time limit of all runs of an original: ONNX Runtime never returns from some convolutions of empty operands, and ignores requests to
# stop.
BEGIN_SECONDS = 10
# The number of variants that one process folds.
TOGETHER = 40
MOST_ELEMENTS = 1 << 20
# The memory limit of a process that runs models, and of one that folds them.
MOST_BYTES = 3 << 30


# Operators that draw at random.
RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")

LEVELS = onnxruntime.GraphOptimizationLevel


def session(model, level=LEVELS.ORT_DISABLE_ALL, without=None):
    """A session of a file or of what is in one, without some of the optimizers of the level."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"], disabled_optimizers=without)


class Watch:
    """Ends runs that take too long: a loop may be one without end."""

    def __init__(self):
        self.options, self.end = None, 0.0
        threading.Thread(target=self.look, daemon=True).start()

    def look(self):
        while True:
            time.sleep(1)
            options = self.options
            if options is not None and time.monotonic() > self.end:
                options.terminate = True

    def run(self, opened, given):
        options = onnxruntime.RunOptions()
        self.options, self.end = options, time.monotonic() + RUN_SECONDS
        try:
            return opened.run(None, given, options)
        finally:
            self.options = None


# One for each process: threads do not survive a fork.
WATCHES = {}


def run(opened, given):
    """Returns the results of a session for these inputs.

    Raises the error of ONNX Runtime, after RUN_SECONDS at the latest.
    """
    if os.getpid() not in WATCHES:
        WATCHES[os.getpid()] = Watch()
    return WATCHES[os.getpid()].run(opened, given)


def size_of(dim, sizes):
    """A declared dim at these sizes, or None; it may be an expression of others."""
    if dim.HasField("dim_value"):
        return dim.dim_value
    return sizes[dim.dim_param] if dim.dim_param in sizes else evaluate(dim.dim_param, sizes) if dim.dim_param else 2


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
        shape = [size_of(d, sizes) for d in tensor.shape.dim]
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


def default_contradicts(model, sizes):
    """Whether an input's default, which runs use, has another shape at these sizes than is declared."""
    shapes = {tensor.name: tensor.dims for tensor in model.graph.initializer}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim if value.name in shapes and value.type.tensor_type.HasField("shape") else None
        if dims is not None and [size_of(d, sizes) for d in dims] != list(shapes[value.name]):
            return True
    return False


def contradicts(value, result):
    """Whether an output has another rank or fixed dim than is declared."""
    if not isinstance(result, np.ndarray) or not value.type.tensor_type.HasField("shape"):
        return False
    dims = value.type.tensor_type.shape.dim
    return len(dims) != result.ndim or any(d.HasField("dim_value") and d.dim_value != size for d, size in zip(dims, result.shape))


def same(a, b, exact):
    """The difference of two results, or None."""
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
    # The second is the rounding of subnormal float16 numbers.
    step, least = {2: (2.0**-8, 2.0**-22), 4: (2.0**-17, 0.0), 8: (2.0**-40, 0.0)}[a.dtype.itemsize]
    with np.errstate(all="ignore"):
        equal = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= step * (np.abs(x) + scale) + least)
    return None if equal.all() else f"{brief(y[~equal])} for {brief(x[~equal])}"


def computes_halves(model):
    """Whether any value is float16. ONNX Runtime has few CPU kernels for it. Nodes without one compute in float32, and the result is
    rounded only at the next node with a kernel. So the set of rounded results depends on the nodes in between, even on movements.
    """
    typed = [value.type.tensor_type.elem_type for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]]
    typed += [tensor.data_type for tensor in model.graph.initializer]
    typed += [attribute.i for node in all_nodes(model) if node.op_type == "Cast" for attribute in node.attribute if attribute.name == "to"]
    return onnx.TensorProto.FLOAT16 in typed


def brief(array):
    return np.array2string(np.asarray(array).reshape(-1)[:6], precision=8)


def fold(binary, source, target, flags):
    run = subprocess.run([binary, source, "-o", target, "--no-stamp", "--shapes", "all", *flags], capture_output=True, text=True, timeout=SECONDS)
    if run.returncode == 0:
        return None
    return f"the program ends with {run.returncode}: {(run.stderr or run.stdout).strip()[-300:]}"


def modes(rule, abilities):
    """Flags to fold with, and whether results must stay equal bit for bit."""
    found = [(["--exact"], True), ([], False)]
    if "only" in abilities:
        found += [(["--only", rule, "--exact"], True), (["--only", rule], False)]
    return found


def strays(model, given):
    """The reason why the results of the original are no measure, if ONNX Runtime deviates in this run."""
    for whole in [model, *lifted(model)]:
        values = {tensor.name: numpy_helper.to_array(tensor) for tensor in whole.graph.initializer} | given
        wide = exposed(whole)
        try:
            opened = session(wide.SerializeToString())
            read = {value.name: given[value.name] for value in opened.get_inputs() if value.name in given}
            values |= dict(zip([value.name for value in wide.graph.output], run(opened, read)))
        except Exception:  # noqa: BLE001
            continue
        why = misjudged(whole, values)
        if why:
            return why
    return None


def lifted(model):
    """For each branch of an If of the main graph, the model up to the If with the branch's nodes: its results are those of the branch."""
    for at, node in enumerate(model.graph.node):
        for branch in (attribute.g for attribute in node.attribute if node.op_type == "If" and attribute.HasField("g")):
            whole = onnx.ModelProto()
            whole.CopyFrom(model)
            del whole.graph.node[at:], whole.graph.output[:]
            whole.graph.node.extend(branch.node)
            whole.graph.initializer.extend(branch.initializer)
            yield whole


def draws(model):
    """Whether a run may draw at random, be it with the same result twice."""
    return any(node.op_type == "Dropout" and len(node.input) > 2 or node.op_type in RANDOM for node in all_nodes(model))


def computes_constants(model):
    """Whether a node computes floats from constants only: the program folds them with its own kernels, even under --exact."""
    given = {value.name for value in model.graph.input}
    known = {tensor.name for tensor in model.graph.initializer} - given
    return computes_from(model.graph.node, known) or any(computes_from(each.node, each.input) for each in model.functions)


def computes_from(nodes, known):
    """Whether a node, or one in a body, computes anything from what is known and constants alone."""
    known, computed = set(known), False
    for node in nodes:
        # Only the type of the second operand of CastLike matters. Shapes with fixed sizes are constants as well.
        read = node.input[:1] if node.op_type == "CastLike" else node.input
        if node.op_type in ("Shape", "Size") or all(not name or name in known for name in read):
            known.update(node.output)
            computed |= node.op_type not in ("Constant", "Identity", "Shape", "Size")
        for body in (attribute.g for attribute in node.attribute if attribute.HasField("g")):
            computed |= computes_from(body.node, known | {tensor.name for tensor in body.initializer})
    return computed


class Prepared:
    """A variant whose original runs: its results, the modes of folding, and the paths of the folded models, by the flags. `plain` is the
    model with nothing moved into a body. With `asks_more` the declared shapes of folded models are also compared with the true ones, and
    models are loaded with optimizations.
    """

    def __init__(self, modes, model, plain, runs, asks_more=False):
        self.modes, self.model, self.plain, self.runs, self.asks_more = modes, model, plain, runs, asks_more
        self.folded = {}


def prepare(task):
    """A variant of a fixture: (Prepared, None), or (None, why it is set aside)."""
    rule, text, seed, abilities = task
    try:
        model, extreme, plain = variant_of(text, seed)
        data = model.SerializeToString()
    except Exception as error:  # noqa: BLE001
        return None, f"no variant: {error}"
    if draws(model):
        return None, "draws at random"
    results = [name for node in model.graph.node for name in node.output if name]
    if len(results) != len(set(results)):
        return None, "defines a name twice"
    try:
        original = session(data)
    except Exception:  # noqa: BLE001
        return None, "the original does not load"
    dims = {d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim}
    names = sorted({name for dim in dims for name in re.findall(r"[A-Za-z_]\w*", dim)})
    runs = []
    chooser = random.Random(seed)
    for attempt in range(5):
        one = [3, 0, 1, None, None][attempt]
        sizes = {name: chooser.choice(SIZES) if one is None else one for name in names}
        if default_contradicts(model, sizes):
            continue
        given = feeds_of(model, sizes, np.random.default_rng(seed + attempt), extreme or attempt == 4)
        if given is None:
            return None, "inputs that are no tensors"
        try:
            expected = run(original, given)
            if any(isinstance(each, np.ndarray) and each.size > MOST_ELEMENTS for each in expected):
                return None, "too large"
            again = run(original, given)
        except Exception as error:  # noqa: BLE001
            if "terminate" in str(error):
                return None, "the original does not end"
            continue
        if any(same(a, b, True) for a, b in zip(expected, again)):
            return None, "another result at each run"
        if any(contradicts(value, each) for value, each in zip(model.graph.output, expected)):
            # Whether a runtime loads a model with such a declaration depends on its own inference.
            return None, "the original declares an output falsely"
        runs.append((sizes, given, expected, extreme or attempt == 4))
    return (Prepared(modes(rule, abilities), model, plain, runs), None) if runs else (None, "the original runs at no size")


def fold_all(binary, prepared, folder):
    """Folds variants in every mode, those of one set of flags in one process."""
    groups = collections.defaultdict(list)
    for at, variant in enumerate(prepared):
        onnx.save(variant.model, os.path.join(folder, f"{at}.onnx"))
        for flags, _ in variant.modes:
            groups[tuple(flags)].append(at)
    for number, (flags, members) in enumerate(groups.items()):
        target = os.path.join(folder, str(number))
        sources = [os.path.join(folder, f"{at}.onnx") for at in members]
        os.mkdir(target)
        try:
            subprocess.run([binary, *sources, "--out-dir", target, "--jobs", "1", "--quiet", "--no-stamp", "--shapes", "all", *flags], capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            pass
        for at, source in zip(members, sources):
            result = os.path.join(target, f"{at}.onnx")
            # A missing result is computed separately, to get the reason.
            try:
                failure = None if os.path.exists(result) else fold(binary, source, result, flags)
            except subprocess.TimeoutExpired:
                failure = "the program does not end"
            prepared[at].folded[flags] = result, failure


def attack(variant):
    """Compares a variant with its folded forms: (outcome, message). Outcomes: passed, set aside, FAILED."""
    model = variant.model
    outputs = [value.name for value in model.graph.output]
    compared = set()
    for flags, exact in variant.modes:
        said = " ".join(flags) or "all rules"
        target, failure = variant.folded[tuple(flags)]
        if failure:
            return "FAILED", f"{said}: {failure}"
        data = pathlib.Path(target).read_bytes()
        # The same model was compared before, at least as strictly.
        if (data, True) in compared or (data, exact) in compared:
            continue
        compared.add((data, exact))
        try:
            folded = session(data)
        except Exception as error:  # noqa: BLE001
            return "FAILED", f"{said}: the folded model does not load: {str(error)[:300]}"
        if variant.asks_more and (failure := fails_optimized(variant, data)):
            return "FAILED", f"{said}: with optimizations {failure}"
        wide, stated_alone = opened_wide(data, model) if variant.asks_more else (None, {})
        for sizes, given, expected, wild in variant.runs:
            if wild and not exact:
                continue
            at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            try:
                results = run(folded, given)
            except Exception as error:  # noqa: BLE001
                why = strays(variant.plain, given) or strays(model, given)
                return ("set aside", why) if why else ("FAILED", f"{said}: the folded model does not run at {at}: {str(error)[:300]}")
            for name, a, b in zip(outputs, expected, results):
                difference = same(a, b, exact)
                if difference:
                    why = excuse(variant, data, sizes, given, outputs.index(name), a, b, exact)
                    return ("set aside", why) if why else ("FAILED", f"{said}: {name} at {at}: {difference}")
            said_falsely = wide and false_statement(wide, stated_alone, model, sizes, given)
            if said_falsely:
                why = strays(variant.plain, given) or strays(model, given)
                return ("set aside", why) if why else ("FAILED", f"{said}: at {at}: {said_falsely}")
    return "passed", ""


def fails_optimized(variant, data):
    """Describes how a folded model fails under ONNX Runtime's optimizations, if the original does not: it is refused, or computes other
    results.
    """
    try:
        folded = session(data, LEVELS.ORT_ENABLE_ALL)
    except Exception as error:  # noqa: BLE001
        try:
            session(variant.model.SerializeToString(), LEVELS.ORT_ENABLE_ALL)
        except Exception:  # noqa: BLE001
            return None
        return f"the folded model does not load: {str(error)[:300]}"
    # If a dequantized matrix is next to its product, ONNX Runtime rounds the other operand to 8 bits (MatMulNBits).
    if takes(variant.model, "DequantizeLinear"):
        return None
    for sizes, given, expected, wild in variant.runs:
        if wild:
            continue
        try:
            results = run(folded, given)
            wrong = next(filter(None, (same(a, b, False) for a, b in zip(expected, results))), None)
        except Exception as error:  # noqa: BLE001
            wrong = str(error)[:300]
        if not wrong:
            continue
        try:
            own = run(session(variant.model.SerializeToString(), LEVELS.ORT_ENABLE_ALL), given)
        except Exception:  # noqa: BLE001
            continue
        if any(same(a, b, False) for a, b in zip(expected, own)) or computes_halves(variant.model):
            continue
        if strays(variant.plain, given) or strays(variant.model, given):
            continue
        if any(as_near(variant, given, at, a, b) for at, (a, b) in enumerate(zip(expected, results)) if same(a, b, False)):
            continue
        return f"at {sizes}: {wrong}"
    return None


def opened_wide(data, model):
    """A session that returns every tensor of a folded model, and the declarations that the original does not have; (None, {}) if there is
    none.
    """
    folded = onnx.load_from_string(data)
    declared = stated(model)
    try:
        return session(exposed(folded).SerializeToString()), {k: dims for k, dims in stated(folded).items() if dims != declared.get(k)}
    except Exception:  # noqa: BLE001
        return None, {}


def false_statement(wide, shapes, model, sizes, given):
    """A declared shape that is false in a run and does not follow from the declarations of the file, or None."""
    try:
        truth = dict(zip([value.name for value in wide.get_outputs()], run(wide, given)))
    except Exception:  # noqa: BLE001
        return None
    wrong = disagreement(shapes, truth, sizes)
    return wrong if wrong and not disagreement(stated(model), truth, sizes) else None


def takes(model, operator):
    """Whether a node of this operator stands anywhere in a model."""
    return any(node.op_type == operator for node in all_nodes(model))


def bodies_of(model, operator):
    """The bodies of the nodes of this operator."""
    nodes = (node for node in all_nodes(model) if node.op_type == operator)
    return [attribute.g for node in nodes for attribute in node.attribute if attribute.HasField("g")]


def hands_on(body):
    """Whether an output of a body is one of its inputs."""
    return bool({value.name for value in body.input} & {value.name for value in body.output})


def excuse(variant, data, sizes, given, at, a, b, exact):
    """The reason why two results may differ, if there is one."""
    model = variant.model
    empty = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.size == b.size == 0
    # If two sizes are 0, the position of the 0 in the shape of an empty tensor is undefined (ops/movement/reshape.rs).
    if empty and list(sizes.values()).count(0) > 1:
        return "Reshape and two sizes of 0"
    why = strays(variant.plain, given) or strays(model, given)
    if not why and isinstance(a, np.ndarray) and a.dtype == object and takes(model, "Loop") and "" in a:
        why = "a Loop takes strings that others read"
    if not why and isinstance(a, list) and not a and takes(model, "Loop"):
        why = "a Loop takes a sequence that others read"
    if not why and any(hands_on(body) for body in bodies_of(model, "Scan")):
        why = "a Scan hands on what is in its buffer where the body gives what it took"
    if not why and not exact and as_near(variant, given, at, a, b):
        why = "as near to what doubles give as the original is"
    if not why and exact and folds_alike(model, given, at, b):
        why = "ONNX Runtime gives the same where it folds the constants itself"
    if not why and exact and holds_result(data, at) and (not same(a, b, False) or as_near(variant, given, at, a, b) or gates_alike(model, a, b)):
        why = "a result that is constant is computed in the program's own way"
    if not why and exact and computes_constants(model) and (not same(a, b, False) or as_near(variant, given, at, a, b)):
        why = "a constant is computed in the program's own way"
    if not why and exact and computes_halves(model) and (computes_constants(model) or not same(a, b, False) or as_near(variant, given, at, a, b)):
        # A constant with another rounding may differ by one size later.
        why = "float16 is rounded between some nodes only"
    return why


def holds_result(data, at):
    """Whether output `at` of a folded model is a constant."""
    graph = onnx.load_from_string(data).graph
    return graph.output[at].name in {tensor.name for tensor in graph.initializer}


def gates_alike(model, a, b):
    """Whether results differ by at most the rounding of a number near 1, if a gate of 1 is subtracted from 1. ONNX Runtime computes no GRU
    in double, so neither can be preferred.
    """
    if not takes(model, "GRU") or a.dtype.kind != "f" or a.shape != b.shape:
        return False
    return bool(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0.0) <= np.finfo(a.dtype).eps)


def folds_alike(model, given, at, b):
    """Whether result `at` has the same bits if ONNX Runtime folds the constant subgraphs of the original: it computes some products in
    another order for constant operands.
    """
    try:
        # A Gemm in place of a product and a sum has other bits again.
        folded = session(model.SerializeToString(), LEVELS.ORT_ENABLE_BASIC, ["MatMulAddFusion"])
        return not same(run(folded, given)[at], b, True)
    except Exception:  # noqa: BLE001
        return False


def in_doubles(wide, read):
    """Computes a model in double: with ONNX Runtime or, if that lacks a kernel, with the standard's reference."""
    try:
        opened = session(wide.SerializeToString())
        run(opened, read)
        return lambda given: run(opened, given)
    except Exception:  # noqa: BLE001
        reference = onnx.reference.ReferenceEvaluator(wide)
        return lambda given: reference.run(None, given)


def as_near(variant, given, at, a, b):
    """Whether the error of result `at`, relative to double, is at most twice that of the original, or at most the effect of a change in the
    last two bits of the inputs plus a rounding of the largest value.
    """
    if not isinstance(a, np.ndarray) or a.dtype.kind != "f" or a.dtype.itemsize > 4 or a.shape != b.shape:
        return False
    try:
        wide = exposed(widened(variant.plain))
        defaults = {tensor.name for tensor in wide.graph.initializer}
        read = {value.name: given[value.name] for value in wide.graph.input if value.name in given and value.name not in defaults}
        read = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in read.items()}
        compute = in_doubles(wide, read)
        values = compute(read)
        # Terms that cancel keep the error of their operands.
        most = max(np.max(np.abs(each), initial=0.0) for each in values if isinstance(each, np.ndarray) and each.dtype.kind == "f")
        truth = values[at]
        rng, step, moved = np.random.default_rng(1), float(np.finfo(a.dtype).eps), 0.0
        for _ in range(4):
            beside = {n: x * (1 + step * rng.choice([-2, 0, 2], x.shape)) if x.dtype == np.float64 else x for n, x in read.items()}
            moved = max(moved, np.max(np.abs(compute(beside)[at] - truth), initial=0.0))
    except Exception:  # noqa: BLE001
        return False
    if truth.shape != a.shape or not np.isfinite(truth).all():
        return False
    with np.errstate(all="ignore"):
        own, got = (np.max(np.abs(each.astype(np.float64) - truth), initial=0.0) for each in (a, b))
    return bool(got <= max(2 * own, moved) + step * most)


def worker(tasks, prepare, binary, folder, pipe):
    """Runs tasks, several at a time, and reports the begin of each: a runtime that crashes ends the process."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for start in range(0, len(tasks), TOGETHER):
        prepared = {}
        for at, task in tasks[start : start + TOGETHER]:
            pipe.send((at, "begins", ""))
            try:
                variant, why = prepare(task)
            except (MemoryError, google.protobuf.message.EncodeError):
                variant, why = None, "too large beside others"
            if variant:
                prepared[at] = variant
            else:
                pipe.send((at, "set aside", why))
        pipe.send((None, "folds", ""))
        with tempfile.TemporaryDirectory(dir=folder) as place:
            fold_all(binary, list(prepared.values()), place)
            for at, variant in prepared.items():
                pipe.send((at, "is folded", ""))
                pipe.send((at, *attack(variant)))
    pipe.close()


def attack_all(tasks, prepare, binary, folder):
    """Returns the outcome of each task, of which `prepare` makes a variant; a process that crashes costs one task."""
    rest, outcomes = list(enumerate(tasks)), {}
    while rest:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=worker, args=(rest, prepare, binary, folder, theirs))
        process.start()
        theirs.close()
        current, stage, hangs = None, "", False
        try:
            while ours.poll(BEGIN_SECONDS if stage == "begins" else 5 * SECONDS):
                current, stage, message = ours.recv()
                if stage not in ("begins", "folds", "is folded"):
                    outcomes[current] = (stage, message)
                    current = None
            hangs = True
        except EOFError:
            pass
        process.kill()
        process.join()
        if current is not None and stage == "begins":
            outcomes[current] = ("set aside", "the original does not end" if hangs else "the original ends ONNX Runtime's process")
        elif current is not None:
            outcomes[current] = ("FAILED", "the folded model ends ONNX Runtime's process")
        left = [(at, task) for at, task in rest if at not in outcomes]
        if len(left) == len(rest):
            outcomes.update(dict.fromkeys((at for at, _ in rest), ("FAILED", "the process ends before it compares")))
            return outcomes
        rest = left
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
            tasks.append((rule, text, seed, abilities))
            known.append((case, number, text, seed))
        outcomes = attack_all(tasks, prepare, options.binary, folder)
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
            # The standard's own parser does not support its whole syntax.
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
