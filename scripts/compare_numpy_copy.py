"""Compares the constant copier with numpy on one large tensor.

    cargo build --release --manifest-path benches/slicing/Cargo.toml
    scripts/python.sh scripts/compare_numpy_copy.py --binary benches/slicing/target/release/slicing-benches

A tensor of rank 3 (256 MiB) is sliced with step 1 (from its second element on), 2 and -1 on its outer, middle or inner axis, with the other
axes whole, and then with every combination on all three. `numpy.ascontiguousarray` and `slicing::slice` make the result contiguous, each in
separate memory. Both alternate, and the fastest of several repeats counts. numpy copies on one thread; the program is timed on one thread
and on all. The ratio is numpy's time over the program's: above 1 the program is faster. A contiguous result is a view on both sides, so it
has no ratio.
"""
import argparse
import itertools
import os
import subprocess
import sys
import time

import numpy as np

STEPS = {"all": (0, 1), "1": (1, 1), "2": (0, 2), "-1": (-1, -1)}


def data(shape, width):
    count = int(np.prod(shape)) * width
    out = np.empty(count, np.uint8)
    for begin in range(0, count, 1 << 24):
        at = np.arange(begin, min(begin + (1 << 24), count), dtype=np.uint64)
        out[begin:begin + (1 << 24)] = (at * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(56)
    return out.view(f"u{width}").reshape(shape)


def checksum(array):
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    raw = np.concatenate([raw, np.zeros(-len(raw) % 8, np.uint8)]).view("<u8")
    total = 0
    for begin in range(0, len(raw), 1 << 22):
        part = raw[begin:begin + (1 << 22)]
        at = np.arange(begin + 1, begin + 1 + len(part), dtype=np.uint64)
        total = (total + int((part * (at * np.uint64(2) - np.uint64(1))).sum(dtype=np.uint64))) % (1 << 64)
    return total


def ours(binary, shape, width, repeats, pattern, threads):
    env = {**os.environ, **({"RAYON_NUM_THREADS": str(threads)} if threads else {})}
    command = [binary, *map(str, shape), str(width), str(repeats), pattern]
    row = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout.split()
    return float(row[1]), int(row[2]), row[3] == "1"


def numpy_copy(view, repeats):
    fastest, copy = float("inf"), None
    for _ in range(repeats):
        del copy
        begin = time.perf_counter()
        copy = np.ascontiguousarray(view)
        fastest = min(fastest, time.perf_counter() - begin)
    return fastest, copy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--shape", default="256,512,512", help="three dims (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=4, choices=[1, 2, 4, 8], help="bytes of an element (default: 4)")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    shape = tuple(int(dim) for dim in arguments.shape.split(","))
    array = data(shape, arguments.bytes)
    steps = ["1", "2", "-1"]
    combinations = [("all",) * axis + (step,) + ("all",) * (2 - axis) for axis in range(3) for step in steps]
    combinations += itertools.product(steps, repeat=3)
    print(f"{array.nbytes / 2**20:.0f} MiB, {shape}, {arguments.bytes} bytes an element; numpy {np.__version__}, 1 thread")
    print(f"{'outer, middle, inner':<22}{'numpy ms':>10}{'1 thread':>10}{os.cpu_count():>3} threads{'ratio':>9}{'ratio':>8}")
    slower, wrong = [], []
    for combination in combinations:
        pattern = ",".join("{}:{}".format(*STEPS[name]) for name in combination)
        ranges = [STEPS[name] for name in combination]
        view = array[tuple(slice(start if step > 0 else None, None, step) for start, step in ranges)]
        timed = lambda threads: ours(arguments.binary, shape, arguments.bytes, arguments.repeats, pattern, threads)  # noqa: E731
        before, copy = numpy_copy(view, arguments.repeats)
        expected = checksum(copy)
        del copy
        alone, total, is_view = timed(1)
        both, again, _ = timed(0)
        fastest = min(before, numpy_copy(view, arguments.repeats)[0])
        if {total, again} != {expected} or is_view != view.flags.c_contiguous:
            wrong.append(combination)
        ratios = ("view", "view") if is_view else (f"{fastest / alone:.2f}", f"{fastest / both:.2f}")
        if not is_view and fastest < alone:
            slower.append((fastest / alone, combination))
        print(f"{', '.join(combination):<22}{fastest * 1e3:>10.2f}{alone * 1e3:>10.2f}{both * 1e3:>11.2f}{ratios[0]:>9}{ratios[1]:>8}", flush=True)
    print(f"slower than numpy on one thread: {[f'{ratio:.2f} {c}' for ratio, c in sorted(slower)] or 'none'}")
    if wrong:
        sys.exit(f"results differ or are copied needlessly: {wrong}")


if __name__ == "__main__":
    main()
