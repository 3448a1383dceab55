"""Counts how often each rewrite rule fires over models.

    scripts/python.sh scripts/count_rules.py --binary target/release/onnx-slice-fold MODEL_OR_FOLDER ...

Prints a table: the rule, how often it fired in all, in how many models, and the model where it fired most. Needs nothing but
Python; the numbers are those that `explain` gives for each model.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

FIRED = re.compile(r"\s+(\d+)\s+([a-z0-9-]+)")


def fired(binary, path, flags):
    """How often each rule fires in a model, or None if the model cannot be folded."""
    done = subprocess.run([binary, "explain", str(path), *flags], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        print(f"{path}: {done.stderr.strip()}", file=sys.stderr)
        return None
    rows = (FIRED.fullmatch(line) for line in done.stdout.splitlines())
    return {row[2]: int(row[1]) for row in rows if row}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--flags", default="", help="more arguments for the binary")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    paths = [path for given in arguments.models for path in (sorted(given.rglob("*.onnx")) if given.is_dir() else [given])]
    total, models, most = collections.Counter(), collections.Counter(), {}
    folded = 0
    for path in paths:
        counts = fired(arguments.binary, path, arguments.flags.split())
        folded += counts is not None
        for rule, count in (counts or {}).items():
            total[rule] += count
            models[rule] += count > 0
            if count > most.get(rule, (0,))[0]:
                most[rule] = (count, path.stem)
    print(f"{'rule':34} {'fired':>7} {'models':>7}  most in ({folded} models)")
    for rule, count in sorted(total.items(), key=lambda row: (-row[1], row[0])):
        print(f"{rule:34} {count:7} {models[rule]:7}  {most[rule][1]} ({most[rule][0]})")
    return 0 if folded == len(paths) else 1


if __name__ == "__main__":
    sys.exit(main())
