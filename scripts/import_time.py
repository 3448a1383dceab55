"""Fails if importing the Python package takes 50 ms or more: the least of several runs, less what an empty program takes."""

import subprocess
import sys
import time

RUNS = 7
MOST = 0.050


def least(code: str) -> float:
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - begin)
    return min(times)


taken = least("import onnx_slice_fold") - least("pass")
print(f"import onnx_slice_fold: {taken * 1000:.0f} ms")
sys.exit(taken >= MOST)
