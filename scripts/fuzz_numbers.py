"""Folds random graphs of every element type and compares bit for bit in ONNX Runtime, with numbers at the limits of arithmetic.

    scripts/python.sh scripts/fuzz_numbers.py --binary target/release/onnx-slice-fold --seed 1 --count 1000

`fuzz_models.py` has realistic graphs and small integers. This script has short chains in all integer and float types on NaN, infinities,
−0, subnormals, and integers at the ends of their range. It also has operands that are read twice, neutral constants and almost neutral
ones, sizes of 0, inputs with defaults, outputs that are inputs, constants or duplicates, names with a common prefix, captures, and loops
that do not run. A folded model must load and run where the original does, declare true shapes, and give the same bits under `--exact`;
without it, results up to rounding on ordinary numbers. A failing graph is shrunk and printed; `--seed S --count 1` repeats it.
"""

import argparse
import collections
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnx.printer
from onnx import numpy_helper

from attack_rules import computes_constants, computes_halves, same, session
from fuzz_models import disagreement, exposed, misjudged, stated
from random_numbers import Chain, feeds_for

SECONDS = 60
# Reports the next run, because the runtime may end the process.
STAGE = {"say": lambda what: None}


def run(model, feeds):
    """What a model gives for each of the feeds; None where it does not run. Raises if it does not load."""
    opened = session(model.SerializeToString())
    given = []
    for feed in feeds:
        try:
            first, second = opened.run(None, feed), opened.run(None, feed)
            given.append(None if any(same(a, b, True) for a, b in zip(first, second)) else first)
        except Exception:  # noqa: BLE001
            given.append(None)
    return given


def complaint(model, tries, binary, folder, flags, exact):
    """What is wrong with the folded model, or None."""
    source, target = os.path.join(folder, "a.onnx"), os.path.join(folder, "b.onnx")
    feeds = [feed for _, feed, _ in tries]
    STAGE["say"]("the original")
    try:
        expected = run(model, feeds)
    except Exception:  # noqa: BLE001
        return None, 0
    if all(results is None for results in expected):
        return None, 0
    onnx.save(model, source)
    done = subprocess.run([binary, source, "-o", target, "--shapes", "all", *flags], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr.strip()[-200:]}", 1
    folded = onnx.load(target)
    STAGE["say"]("the folded model")
    try:
        opened = session(target)
    except Exception as error:  # noqa: BLE001
        return f"does not load: {str(error)[:300]}", 1
    declared = stated(model)
    shapes = {name: dims for name, dims in stated(folded).items() if dims != declared.get(name)}
    wide, names = None, []
    ran = 0
    for (sizes, feed, wild), results in zip(tries, expected):
        if results is None:
            continue
        ran += 1
        try:
            found = opened.run(None, feed)
        except Exception as error:  # noqa: BLE001
            return f"does not run at {sizes}: {str(error)[:300]}", ran
        if exact or not wild:
            for value, a, b in zip(model.graph.output, results, found):
                difference = same(a, b, exact)
                if difference and exact and not same(a, b, False) and (computes_constants(model) or computes_halves(model)):
                    difference = None
                # Results computed from float16 have no more digits in another type, and between constants each node rounds them.
                if difference and not exact and computes_halves(model) and (computes_constants(model) or not same(halves(a), halves(b), False)):
                    difference = None
                if difference:
                    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
                    reason = strays(model, constants | feed)
                    if not reason:
                        return f"{value.name} at {sizes}: {difference}", ran
        if shapes:
            try:
                wide = wide or session(exposed(model).SerializeToString())
                names = names or [value.name for value in wide.get_outputs()]
                truth = dict(zip(names, wide.run(None, feed))) | feed
            except Exception:  # noqa: BLE001
                continue
            wrong = disagreement({name: dims for name, dims in shapes.items() if name in truth}, truth, sizes)
            if wrong and not misjudged(model, {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer} | truth):
                return f"at {sizes}: {wrong}", ran
    return None, ran


def halves(array):
    with np.errstate(all="ignore"):
        return array.astype(np.float16) if isinstance(array, np.ndarray) and array.dtype.kind == "f" else array


def strays(model, values):
    try:
        wide = exposed(model)
        opened = session(wide.SerializeToString())
        given = {name: values[name] for name in (value.name for value in opened.get_inputs()) if name in values}
        values = values | dict(zip([value.name for value in wide.graph.output], opened.run(None, given)))
    except Exception:  # noqa: BLE001
        pass
    return misjudged(model, values)


def smaller(model, fails):
    """The model without what the failure does not need."""
    changed = True
    while changed:
        changed = False
        for at in range(len(model.graph.output) - 1, -1, -1):
            if len(model.graph.output) == 1:
                break
            other = onnx.ModelProto()
            other.CopyFrom(model)
            del other.graph.output[at]
            if fails(other):
                model, changed = other, True
        for at in range(len(model.graph.node) - 1, -1, -1):
            other = onnx.ModelProto()
            other.CopyFrom(model)
            del other.graph.node[at]
            if fails(other):
                model, changed = other, True
                continue
            # The result of a node may become an input of the model.
            node = model.graph.node[at]
            if len(node.input) and node.output[0] and node.input[0]:
                other = onnx.ModelProto()
                other.CopyFrom(model)
                gone, kept = node.output[0], node.input[0]
                del other.graph.node[at]
                for rest in other.graph.node:
                    for slot, name in enumerate(rest.input):
                        if name == gone:
                            rest.input[slot] = kept
                if fails(other):
                    model, changed = other, True
    for field in ("initializer", "input"):
        for at in range(len(getattr(model.graph, field)) - 1, -1, -1):
            other = onnx.ModelProto()
            other.CopyFrom(model)
            del getattr(other.graph, field)[at]
            if fails(other):
                model = other
    return model


def attack(seed, binary, folder, counts):
    rng = random.Random(seed)
    chain = Chain(rng)
    chain.grow(rng.randrange(2, 14))
    model = chain.finish()
    tries = [(sizes, feeds_for(model, sizes, random.Random(seed + turn), wild), wild) for turn, (sizes, wild) in enumerate(chain.rounds())]
    kinds = [([], False), (["--exact"], True)]
    for flags, exact in kinds:
        found, ran = complaint(model, tries, binary, folder, flags, exact)
        counts["runs"] += ran
        if not ran:
            counts["graphs that do not run"] += 1
            return None
        if found:
            kind = found.split(":")[0].split(" at ")[0].split(" ")[0]

            def fails(other, flags=flags, exact=exact, kind=kind):
                fed = {value.name for value in other.graph.input}
                rest = [(s, {n: v for n, v in f.items() if n in fed}, w) for s, f, w in tries]
                try:
                    again = complaint(other, rest, binary, folder, flags, exact)[0]
                except Exception:  # noqa: BLE001
                    return False
                return bool(again) and (kind in ("exit", "does")) == (again.split(" ")[0] in ("exit", "does"))

            least = smaller(model, fails)
            fed = {value.name for value in least.graph.input}
            again = complaint(least, [(s, {n: v for n, v in f.items() if n in fed}, w) for s, f, w in tries], binary, folder, flags, exact)[0]
            return f"{' '.join(flags)} {again or found}", least
    counts["graphs compared"] += 1
    return None


def worker(first, last, binary, folder, pipe):
    STAGE["say"] = lambda what: pipe.send(what)
    for seed in range(first, last):
        STAGE["say"]("the making of the graph")
        counts = collections.Counter()
        found = attack(seed, binary, folder, counts)
        if found:
            found = found[0], onnx.printer.to_text(found[1]), found[1].SerializeToString()
        pipe.send((seed, found, counts))
    pipe.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/onnx-slice-fold")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--save", help="a folder for the models that fail")
    options = parser.parse_args()
    binary, counts, began = os.path.abspath(options.binary), collections.Counter(), time.time()
    last = options.seed + options.count
    with tempfile.TemporaryDirectory() as folder:
        seed = options.seed
        while seed < last:
            # A runtime that crashes ends the process, and costs one graph.
            ours, theirs = multiprocessing.Pipe(duplex=False)
            process = multiprocessing.get_context("fork").Process(target=worker, args=(seed, last, binary, folder, theirs))
            process.start()
            theirs.close()
            stage = "the making of the graph"
            try:
                while ours.poll(5 * SECONDS):
                    message = ours.recv()
                    if isinstance(message, str):
                        stage = message
                        continue
                    seed, found, more = message
                    counts.update(more)
                    if found:
                        counts["FAILED"] += 1
                        message, text, data = found
                        print(f"seed {seed}: {' '.join(message.split())}\n{text}\n", flush=True)
                        if options.save:
                            with open(os.path.join(options.save, f"{seed}.onnx"), "wb") as file:
                                file.write(data)
                    seed += 1
            except EOFError:
                pass
            process.kill()
            process.join()
            if seed < last:
                counts[f"{stage} ends ONNX Runtime's process"] += 1
                if stage == "the folded model":
                    counts["FAILED"] += 1
                    print(f"seed {seed}: the folded model ends ONNX Runtime's process", flush=True)
                seed += 1
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) + f"; {time.time() - began:.0f} s")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
