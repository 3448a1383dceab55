#!/usr/bin/env python3
"""Checks that the Python package gives the same bytes as the program on a folder of models.

    scripts/simplify_corpus.py --binary target/release/onnx-slice-fold MODELS...

Runs in an environment with the package installed. `simplify` of a path and of a ModelProto, and `fold` of bytes, are compared with the
program's output. Also prints the additional time of reading and returning a ModelProto instead of bytes, next to one serialization of the
message, over all models and for the largest. Exits with 1 if a result differs.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import onnx
import onnx_slice_fold
from onnx_slice_fold._models import opened, to_proto


def least(run, times=5):
    """Seconds of all threads that the quickest of several runs takes."""
    taken = []
    for _ in range(times):
        begin = time.process_time()
        run()
        taken.append(time.process_time() - begin)
    return min(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    paths = [path for name in options.models for path in (sorted(name.rglob("*.onnx")) if name.is_dir() else [name])]
    different, times = [], []
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            written = pathlib.Path(folder, "written.onnx")
            subprocess.run([options.binary, "--no-config", "-q", path, "-o", written], check=True)
            expected = written.read_bytes()
            data, proto = path.read_bytes(), onnx.load(path)
            of_path, of_proto = onnx_slice_fold.simplify(str(path))[0], onnx_slice_fold.simplify(proto)[0]
            # A message does not keep the order of the file's fields, so messages are compared in protobuf's serialized form.
            message = onnx.load_from_string(expected).SerializeToString()
            results = {
                "simplify of a path": of_path.SerializeToString() == message,
                "simplify of a ModelProto": of_proto.SerializeToString() == message,
                "fold of bytes": onnx_slice_fold.fold(data)[0] == expected,
            }
            different += [f"{path.stem}: {name}" for name, is_same in results.items() if not is_same]
            held = opened(data, None)
            held.fold({}, None)
            # Folding takes so much longer that the difference of two runs would be noise.
            taking = least(lambda: opened(proto, None)) - least(lambda: opened(data, None))
            giving = least(lambda: to_proto(held)) - least(held.to_bytes)
            times.append((len(data), taking + giving, least(proto.SerializeToString), path.stem))
    for name in different:
        print(f"differs from what the program writes: {name}")
    print(f"{len(paths)} models, {len(different)} results differ from what the program writes")
    more, once = (sum(row[at] for row in times) for at in (1, 2))
    print(f"taking and giving a ModelProto takes {more / once:.2f} times as long as serializing it")
    size, more, once, name = max(times)
    print(f"{name}, {size} bytes: {more / once:.2f} times")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
