#!/usr/bin/env python3
"""Decides every law with Z3, and checks that every rewrite rule rests on one.

    laws/prove.py [NAME ...]        all laws, or those whose names begin so
    laws/prove.py --mutants         every law with a premise left out, or a wrong claim, must have a counterexample
    laws/prove.py --rules [FILE]    every rule must be listed in laws/rules.toml; FILE has one name a line, and without it the names
                                    are read from the source
    laws/prove.py --list            the laws as a table

Exits with 1 if anything fails. Needs Python 3.11 and z3-solver.
"""

import argparse
import multiprocessing
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import law  # noqa: E402
import ties  # noqa: E402

AREAS = ["slicing", "bounds", "quotient", "maximum", "prover", "scope", "slices", "layout", "index_map", "counting", "rewrite", "chains"]


def load():
    for area in AREAS:
        __import__(area)
    return law.LAWS


def work(task):
    name, mutant, timeout = task
    begun = time.monotonic()
    try:
        if mutant is None:
            verdict, note = law.decide(law.LAWS[name], timeout)
        else:
            refuted, note = law.refute(law.LAWS[name], mutant, timeout)
            verdict = "refuted" if refuted else "FAILED"
    except Exception as error:  # A law that cannot be stated is a law that fails.
        verdict, note = "FAILED", f"{type(error).__name__}: {error}"
    return name, mutant, verdict, note, time.monotonic() - begun


def run(tasks, workers):
    """Runs the tasks, prints a line for each, and returns the number of failures."""
    counts = {}
    begun = time.monotonic()
    with multiprocessing.Pool(workers, initializer=load) as pool:
        for name, mutant, verdict, note, seconds in pool.imap(work, tasks):
            counts[verdict] = counts.get(verdict, 0) + 1
            what = name if mutant is None else f"{name}, {mutant}"
            print(f"{verdict:8} {what}  ({note}; {seconds:.1f} s)", flush=True)
    failed = counts.get("FAILED", 0)
    passed = sum(counts.values()) - failed
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    print(f"{passed} passed, {failed} failed ({kinds}; {time.monotonic() - begun:.0f} s)")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="laws whose names begin so; all without")
    parser.add_argument("--mutants", action="store_true", help="decide the spoiled laws instead")
    parser.add_argument("--rules", nargs="?", const="", metavar="FILE", help="check the tie of rules and laws")
    parser.add_argument("--list", action="store_true", help="print the laws")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=150.0, help="seconds for each question to Z3")
    options = parser.parse_args()
    laws = load()
    if options.rules is not None:
        return ties.check(laws, HERE, options.rules)
    chosen = [one for one in laws.values() if not options.names or one.name.startswith(tuple(options.names))]
    if options.list:
        for one in chosen:
            print(f"{one.name:44} {one.says}  [{one.at}]")
        return 0
    if not chosen:
        print("no law has such a name", file=sys.stderr)
        return 1
    tasks = [(one.name, None, options.timeout) for one in chosen]
    if options.mutants:
        tasks = [(one.name, mutant, options.timeout) for one in chosen for mutant in law.mutants_of(one)]
    return 1 if run(tasks, options.workers) else 0


if __name__ == "__main__":
    sys.exit(main())
