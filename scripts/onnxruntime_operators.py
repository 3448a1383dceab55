"""Prints the operators that ONNX Runtime has in its own domain, com.microsoft, and how many results each has at most, from the schemas of the
installed package.

    python scripts/onnxruntime_operators.py > src/ops/microsoft/schemas.txt
    python scripts/onnxruntime_operators.py --check     # 1 if the package has an operator that the file lacks

A test asks for an entry in `src/ops/microsoft` for each of them. Operators that a newer ONNX Runtime no longer has stay in the file: models have
them still.
"""

import argparse
import pathlib
import sys

import onnxruntime.capi.onnxruntime_pybind11_state as onnxruntime

TARGET = pathlib.Path(__file__).resolve().parent.parent / "src/ops/microsoft/schemas.txt"
# The count of a variadic result.
MANY = 8


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the file")
    arguments = parser.parse_args()
    schemas = onnxruntime.get_all_operator_schema()
    found = {schema.name: len(schema.outputs) for schema in schemas if schema.domain == "com.microsoft"}
    known = dict(line.split() for line in TARGET.read_text().splitlines()) if TARGET.exists() else {}
    if arguments.check:
        missing = sorted(found.keys() - known.keys())
        print(f"missing: {', '.join(missing)}" if missing else f"all {len(found)} operators are in {TARGET.name}")
        sys.exit(bool(missing))
    for name in sorted(found.keys() | known.keys()):
        print(name, min(MANY, found.get(name, int(known.get(name, 1)))))


if __name__ == "__main__":
    main()
