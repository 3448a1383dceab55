"""Fails if importing the Python package takes more than 0.6 of what importing numpy takes, in the same run.

Of each the least of several runs counts, less what an empty program takes. So the package imports nothing large, however slow the machine is.
"""

import subprocess
import sys
import time

RUNS = 7
MOST = 0.6


def least(code: str) -> float:
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - begin)
    return min(times)


empty = least("pass")
taken, numpy = (least(f"import {package}") - empty for package in ("onnx_slice_fold", "numpy"))
print(f"import onnx_slice_fold: {taken / numpy:.2f} of importing numpy")
sys.exit(taken >= MOST * numpy)
