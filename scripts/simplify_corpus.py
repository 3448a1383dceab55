#!/usr/bin/env python3
"""Checks that the Python package gives what the program gives, byte for byte, over a folder of models.

    scripts/simplify_corpus.py --binary target/release/onnx-slice-fold MODELS...

Runs in an environment that has the package installed. `simplify` of a path and of a ModelProto, and `fold` of bytes, are compared with what the
program writes. Also tells how much longer `simplify` of a ModelProto takes than `fold` of its bytes, beside one serialization of each of the two
messages, over the largest model and over all. Exits with 1 if a result differs.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import onnx
import onnx_slice_fold


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
            # A message does not keep the order of the file's fields, so messages are compared as protobuf writes them.
            message = onnx.load_from_string(expected).SerializeToString()
            results = {
                "simplify of a path": of_path.SerializeToString() == message,
                "simplify of a ModelProto": of_proto.SerializeToString() == message,
                "fold of bytes": onnx_slice_fold.fold(data)[0] == expected,
            }
            different += [f"{path.stem}: {name}" for name, is_same in results.items() if not is_same]
            whole, inner = least(lambda: onnx_slice_fold.simplify(proto)), least(lambda: onnx_slice_fold.fold(data))
            both = least(proto.SerializeToString) + least(of_proto.SerializeToString)
            times.append((len(data), whole - inner, both, whole, path.stem))
    for name in different:
        print(f"differs from what the program writes: {name}")
    print(f"{len(paths)} models, {len(different)} results differ from what the program writes")
    more, both, whole = (sum(row[at] for row in times) for at in (1, 2, 3))
    print(f"a ModelProto takes {more / whole:.1%} more than bytes do, {more / both:.1f} times as long as serializing it and the result")
    size, more, both, whole, name = max(times)
    print(f"{name}, {size} bytes: {more / whole:.1%} more, {more / both:.1f} times")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
