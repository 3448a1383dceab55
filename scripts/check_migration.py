#!/usr/bin/env python3
"""Checks that every long flag in the `--help` of onnxsim, OnnxSlim and `polygraphy surgeon sanitize` is accepted or refused with a reason.

    scripts/check_migration.py --binary target/release/onnx-slice-fold [--table]

Looks for the other tools next to the Python interpreter; a missing tool is skipped. `--table` prints each flag with its verdict as a Markdown
table. Ends with `N passed, N failed`.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import onnx
import onnx.parser

TOOLS = {"onnxsim": ["onnxsim", "--help"], "OnnxSlim": ["onnxslim", "--help"], "polygraphy": ["polygraphy", "surgeon", "sanitize", "--help"]}
MODEL = """<ir_version: 8, opset_import: ["" : 17]> g (float[n,3] x) => (float[n,3] y, float[n,3] z) { y = Relu (x) z = Exp (x) }"""
# Values for flags that need one; every other flag gets `1`, or none.
VALUES = {"overwrite-input-shape": "x:2,3", "unused-output": "z", "exclude-outputs": "z", "input-shape": "x:2,3", "input-shapes": "x:2,3", "override-input-shapes": "x:[2,3]", "override-inputs": "x:[2,3]",
          "inputs": "x", "outputs": "y", "target-opset": "17", "opset": "17"}


def flags(command):
    """Returns the long flags of a tool, or None if it is not installed."""
    program = pathlib.Path(sys.executable).parent / command[0]
    if not program.exists():
        return None
    text = subprocess.run([program, *command[1:]], capture_output=True, text=True).stdout
    # The usage section has every flag once, and no line breaks inside flags.
    usage = text.split("\n\n")[0] if "usage:" in text else text
    return sorted(set(re.findall(r"--([a-z][a-z0-9-]*[a-z0-9])", usage)) - {"help"})


def verdict(binary, flag, folder):
    """Returns the verdict on a flag: the first line on standard error, or `accepted`; None if the program does not know the flag."""
    model, target = folder / "in.onnx", folder / "out.onnx"
    for value in [[VALUES[flag]]] if flag in VALUES else [[], ["1"], ["1KB"], ["a"]]:
        done = subprocess.run([binary, "--no-config", "-q", model, "-o", target, f"--{flag}", *value], capture_output=True, text=True)
        said = done.stderr.strip().splitlines()
        if done.returncode == 0:
            loud = subprocess.run([binary, "--no-config", model, "-o", target, f"--{flag}", *value], capture_output=True, text=True)
            notes = [line for line in loud.stderr.splitlines() if line.startswith("note: ")]
            return notes[0] if notes else "accepted"
        if said and "is not supported" in said[0]:
            return said[0].replace("error: ", "refused: ")
    known = said and "unexpected argument" not in said[0]
    return f"needs another value: {said[0]}" if known else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    passed = failed = 0
    if options.table:
        print("| tool | flag | verdict |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        onnx.save(onnx.parser.parse_model(MODEL), folder / "in.onnx")
        for tool, command in TOOLS.items():
            names = flags(command)
            if names is None:
                print(f"{tool} is not installed: skipped", file=sys.stderr)
                continue
            for flag in names:
                found = verdict(options.binary, flag, folder)
                if options.table:
                    print(f"| {tool} | `--{flag}` | {found or 'unknown'} |")
                elif found is None:
                    print(f"failed {tool} --{flag}: unknown flag")
                passed += found is not None
                failed += found is None
    print(f"{passed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
