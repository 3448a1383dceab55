#!/usr/bin/env python3
"""Checks the output of `explain` on a folder of models.

    scripts/explain_corpus.py --binary target/release/onnx-slice-fold MODELS...

For each model, it counts the remaining Slice, Shape, Gather, Expand, Where and Range nodes with a named cause, and the tensors with sizes
that the inputs' sizes do not determine. It checks that each suggested flag has the announced effect, and measures the time of explaining on
all cores relative to folding. A cause is named if its chain or reason leads to an input, an input size, or an operator. Exits with 1 if a
flag does not have the announced effect.
"""
import argparse
import collections
import json
import pathlib
import resource
import shlex
import subprocess
import sys

FAMILIES = ["Slice", "Shape", "Gather", "Expand", "Where", "Range"]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def seconds(*command):
    """Seconds of all cores that a command takes, the least of three runs."""
    best = []
    for _ in range(3):
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(*command)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        best.append(end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime)
    return min(best)


def is_named(cause):
    """Whether the cause leads to something that the user can look at, and does not end with 'not found'."""
    return "no expression" not in cause["reason"] and "does not say" not in cause["reason"] and "not left" not in cause["reason"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--times", action="store_true", help="compare the time with that of folding")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    nodes, named, sizes, settled = collections.Counter(), collections.Counter(), [0, 0], 0
    flags, wrong, times = 0, 0, []
    for model in options.models:
        try:
            told = json.loads(run(options.binary, "explain", "--no-config", "--report", "json", model))
        except RuntimeError as error:
            print(f"{model.stem}: {error}")
            wrong += 1
            continue
        for cause in told["causes"]:
            if cause["operator"] in FAMILIES:
                nodes[cause["operator"]] += 1
                named[cause["operator"]] += is_named(cause)
        for size in told["open_sizes"]:
            sizes[0] += size["tensors"]
            sizes[1] += size["tensors"] * is_named(size)
        settled += bool(told["suggestions"])
        for found in told["suggestions"]:
            flags += 1
            again = json.loads(run(
                options.binary, "explain", "--no-config", "--report", "json", "--trials", "0", *shlex.split(found["flags"]), model))
            said, came = (found["nodes"], found["tensors_open"]), (again["nodes"], again["tensors_open"])
            helps = came < (told["nodes"], told["tensors_open"])
            if said != came or not helps:
                wrong += 1
                print(f"{model.stem}: {found['flags']}: said {said}, came {came}")
        if options.times:
            folding = seconds(options.binary, "--no-config", "-q", model, "-o", "/dev/null")
            explaining = seconds(options.binary, "explain", "--no-config", model)
            times.append((explaining / folding, explaining, model.stem))
    for operator in FAMILIES:
        print(f"{operator:7} {named[operator]:5} of {nodes[operator]:5} that stay have a named cause")
    print(f"{'sizes':7} {sizes[1]:5} of {sizes[0]:5} tensors with sizes that inputs do not tell have a named cause")
    print(f"{settled} models have suggestions; {flags} flags were tried again, {wrong} do not do what was said")
    for ratio, explaining, name in sorted(times, reverse=True)[:5]:
        print(f"{ratio:5.1f} times as long as folding: {name}, {explaining * 1000:.0f} ms")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
