"""Converts the standard's own tests to another opset and evaluates them: the results must be those that the tests expect.

    scripts/python.sh scripts/convert_node_tests.py --binary target/release/onnx-slice-fold [--opset 24] [--down 17,13,11] [--only SUBSTRING]

Each test of `onnx.backend.test` in an older opset (with `--down` in a newer one, for each listed opset) is converted and run in ONNX
Runtime, or in the standard's reference implementation if that cannot. A second conversion has the inputs as initializers, so that this
program's own evaluator computes as much as possible.

The output also has the number of these models that `onnx.version_converter` converts to a valid model with the expected results. Refusals
are listed with the reason; a wrong result makes the exit status 1.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.backend.test
import onnx.numpy_helper
import onnx.reference
import onnx.version_converter
import onnxruntime
from onnx.backend.test.loader import load_model_tests


def old_tests():
    """Name, model, and pairs of inputs and expected outputs, of every test with data."""
    from onnx.backend.test.case.node import collect_testcases
    for test in collect_testcases(None):
        if test.model is not None and test.data_sets:
            yield test.name, test.model, test.data_sets, (test.rtol, test.atol)
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        for test in load_model_tests(kind=kind):
            folder = pathlib.Path(test.model_dir)
            model = onnx.load(folder / "model.onnx")
            sets = []
            for data in sorted(folder.glob("test_data_set_*")):
                try:
                    sets.append(tuple([read(path) for path in sorted(data.glob(f"{side}_*.pb"), key=number)]
                                      for side in ("input", "output")))
                except Exception:  # noqa: BLE001 - sequences and optional values are told apart by the node tests
                    continue
            if sets:
                yield test.name, model, sets, (test.rtol, test.atol)


def number(path):
    return int(re.search(r"_(\d+)\.pb$", path.name).group(1))


def read(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return onnx.numpy_helper.to_array(tensor)


def opset_of(model):
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None)


def convert(binary, model, opset, folder):
    """The converted model, or the reason why there is none."""
    source, target = folder / "in.onnx", folder / "out.onnx"
    target.unlink(missing_ok=True)
    onnx.save(model, source)
    done = subprocess.run([binary, source, "-o", target, "--opset", str(opset)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        return None, done.stderr.strip()
    return onnx.load(target), None


def close(expected, given, tolerance):
    if isinstance(expected, (list, tuple)):
        return isinstance(given, (list, tuple)) and len(expected) == len(given) \
            and all(close(a, b, tolerance) for a, b in zip(expected, given))
    if expected is None or given is None:
        return expected is None and given is None
    expected, given = np.asarray(expected), np.asarray(given)
    if expected.shape != given.shape:
        return False
    if expected.dtype.kind in "OSU" or given.dtype.kind in "OSU":
        return expected.astype(str).tolist() == given.astype(str).tolist()
    if expected.dtype.kind in "biu":
        return bool((expected == given).all())
    # The rounding of types with few digits depends on the order of the operations.
    coarse = {"float16": 5e-3, "bfloat16": 3e-2}.get(expected.dtype.name, 0)
    tolerance = [max(part, coarse) for part in tolerance]
    to = np.complex128 if expected.dtype.kind == "c" else np.float64
    return bool(np.allclose(expected.astype(to), given.astype(to), rtol=max(tolerance[0], 1e-3), atol=max(tolerance[1], 1e-6), equal_nan=True))


def run(model, inputs):
    """The results, and who computed them."""
    names = [value.name for value in model.graph.input]
    # ONNX Runtime accepts arrays, but no scalars.
    feed = {name: np.asarray(value) if isinstance(value, np.generic) else value for name, value in zip(names, inputs)}
    try:
        # ONNX Runtime refuses files of a newer format version, whatever their content is.
        model.ir_version = min(model.ir_version, 13)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        wanted = {value.name for value in session.get_inputs()}
        return session.run(None, {name: value for name, value in feed.items() if name in wanted}), "onnxruntime"
    except Exception:  # noqa: BLE001 - whatever it cannot, the reference may
        return onnx.reference.ReferenceEvaluator(model).run(None, feed), "reference"


def judge(model, sets, tolerance):
    """'equal', or what is wrong; and who computed it."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # noqa: BLE001
        return "invalid: " + str(error).strip().splitlines()[0][:150], None
    by = None
    for inputs, outputs in sets:
        try:
            given, by = run(model, inputs)
        except Exception as error:  # noqa: BLE001
            return "not run: " + str(error).strip().splitlines()[0][:150], None
        if not all(close(a, b, tolerance) for a, b in zip(outputs, given)):
            return "other results", by
    return "equal", by


def with_constants(model, inputs):
    """The model with its inputs as initializers; None where one is no tensor."""
    closed = onnx.ModelProto()
    closed.CopyFrom(model)
    if len(inputs) != len(model.graph.input) or not all(isinstance(value, np.ndarray) for value in inputs):
        return None
    for value, array in zip(model.graph.input, inputs):
        try:
            closed.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
        except Exception:  # noqa: BLE001 - a type numpy has no name for
            return None
    if closed.ir_version >= 4:
        del closed.graph.input[:]
    return closed if closed.ir_version >= 4 else None


def folded_equal(model, outputs, tolerance):
    """Whether each output that is a constant is the one expected, and how many are."""
    held = {tensor.name: tensor for tensor in model.graph.initializer}
    found = [(held[value.name], expected) for value, expected in zip(model.graph.output, outputs) if value.name in held]
    return all(close(expected, onnx.numpy_helper.to_array(tensor), tolerance) for tensor, expected in found), len(found)


def down(arguments, folder, test, version, counts, wrong):
    """Converts one test to the requested older opsets. A test that cannot run before the conversion is not judged."""
    name, model, sets, tolerance = test
    before = None
    for target in arguments.down:
        if version <= target:
            continue
        converted, reason = convert(arguments.binary, model, target, folder)
        if converted is None:
            counts[target, "refused"] += 1
            if arguments.list:
                print(f"refused  {target}  {name}: {reason}")
            continue
        if opset_of(converted) != target:
            wrong.append(f"{name} ({version} to {target}): it is in operator set {opset_of(converted)}")
        verdict, _ = judge(converted, sets, tolerance)
        if verdict != "equal":
            before = before or judge(model, sets, tolerance)[0]
            if before == "equal":
                wrong.append(f"{name} ({version} to {target}): {verdict}")
            else:
                verdict = "not judged"
        counts[target, verdict.split(":")[0]] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--opset", type=int, default=24)
    parser.add_argument("--down", default=[], type=lambda text: [int(part) for part in text.split(",")],
                        help="older operator sets to convert to")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="name every test that is not converted by either")
    arguments = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    counts, theirs, wrong = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, model, sets, tolerance in old_tests():
            version = opset_of(model)
            if version is None or arguments.only not in name:
                continue
            if arguments.down:
                down(arguments, folder, (name, model, sets, tolerance), version, counts, wrong)
                continue
            if version >= arguments.opset:
                continue
            before, _ = judge(model, sets, tolerance)
            if before != "equal":
                # Neither runtime gives the expected result before the conversion, so there is nothing to compare with.
                counts["not judged"] += 1
                continue
            converted, reason = convert(arguments.binary, model, arguments.opset, folder)
            if converted is None:
                counts["refused"] += 1
                print(f"refused  {name}: {reason}")
            else:
                verdict, by = judge(converted, sets, tolerance)
                counts[verdict.split(":")[0]] += 1
                if verdict == "equal":
                    counts[f"  in {by}"] += 1
                else:
                    wrong.append(f"{name} ({version}): {verdict}")
                closed = with_constants(model, sets[0][0])
                evaluated = convert(arguments.binary, closed, arguments.opset, folder)[0] if closed is not None else None
                if evaluated is not None:
                    same, count = folded_equal(evaluated, sets[0][1], tolerance)
                    counts["  outputs this program evaluated"] += count
                    if not same:
                        wrong.append(f"{name} ({version}): this program's evaluator gives other results")
            try:
                other = onnx.version_converter.convert_version(model, arguments.opset)
                verdict = judge(other, sets, tolerance)[0].split(":")[0]
            except Exception:  # noqa: BLE001 - it refuses in many ways
                verdict = "refused"
            theirs[verdict] += 1
            if arguments.list and verdict != "equal":
                print(f"onnx.version_converter: {verdict}  {name}")
    if arguments.down:
        for (target, what), count in sorted(counts.items()):
            print(f"{target:>4} {count:>7}  {what}")
        for line in wrong:
            print("WRONG", line)
        return 1 if wrong else 0
    print(f"this program to operator set {arguments.opset}:")
    for what, count in sorted(counts.items()):
        print(f"{count:>7}  {what}")
    print("onnx.version_converter:")
    for what, count in sorted(theirs.items()):
        print(f"{count:>7}  {what}")
    for line in wrong:
        print("WRONG", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
