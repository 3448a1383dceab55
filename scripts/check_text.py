#!/usr/bin/env python3
"""Checks that onnx.parser reads the text of `show --full` as the printed model.

    scripts/check_text.py --binary target/release/onnx-slice-fold MODELS...

Both sides pass through the program once, so that the comparison covers the text and not the inference: the model written with
`--stop-after 0`, and the text of `show --full --stop-after 0`, read by onnx.parser. Compared are opsets, the heading, inputs, outputs,
value_info, initializers bit for bit, nodes with attributes, functions. The syntax cannot express documentation of nodes and values,
metadata of nodes, quantization annotations, training information, sparse tensors and the type of an attribute of a function; these are
removed on both sides and counted.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import numpy_helper, parser


def plain(tensor):
    """A tensor by type, shape and content."""
    if tensor.data_type == onnx.TensorProto.STRING:
        return tensor.data_type, tuple(tensor.dims), tuple(tensor.string_data)
    return tensor.data_type, tuple(tensor.dims), numpy_helper.to_array(tensor).tobytes()


def shape_of(value):
    copy = onnx.ValueInfoProto()
    copy.name = value.name
    copy.type.CopyFrom(value.type)
    clean(copy)
    return copy.SerializeToString(deterministic=True)


def clean(message):
    """Removes denotations, which the syntax does not have."""
    for field, value in list(message.ListFields()):
        if field.name == "denotation":
            message.ClearField(field.name)
        elif field.message_type is not None:
            for item in value if hasattr(value, "add") or hasattr(value, "__len__") else [value]:
                if hasattr(item, "ListFields"):
                    clean(item)


def attribute(held):
    kind = onnx.AttributeProto
    if held.ref_attr_name:
        return held.name, "reference", held.ref_attr_name
    if held.type == kind.GRAPH:
        return held.name, held.type, graph(held.g)
    if held.type == kind.GRAPHS:
        return held.name, held.type, tuple(graph(item) for item in held.graphs)
    if held.type == kind.TENSOR:
        return held.name, held.type, plain(held.t)
    if held.type == kind.TENSORS:
        return held.name, held.type, tuple(plain(item) for item in held.tensors)
    if held.type == kind.FLOAT:
        return held.name, held.type, numpy.float32(held.f).tobytes()
    if held.type == kind.FLOATS:
        return held.name, held.type, numpy.array(held.floats, numpy.float32).tobytes()
    copy = onnx.AttributeProto()
    copy.CopyFrom(held)
    copy.ClearField("doc_string")
    return held.name, held.type, copy.SerializeToString(deterministic=True)


def without_text(held):
    return held.type in (onnx.AttributeProto.SPARSE_TENSOR, onnx.AttributeProto.SPARSE_TENSORS)


def node(item):
    attributes = sorted((attribute(held) for held in item.attribute if not without_text(held)), key=lambda held: held[0])
    inputs, outputs = list(item.input), list(item.output)
    return item.op_type, item.domain, item.overload, item.name, tuple(inputs), tuple(outputs), tuple(attributes)


def graph(item):
    return (
        item.name or "g",
        tuple(shape_of(value) for value in item.input),
        tuple(shape_of(value) for value in item.output),
        tuple(sorted(shape_of(value) for value in item.value_info)),
        tuple((tensor.name, plain(tensor)) for tensor in item.initializer),
        tuple(node(item) for item in item.node),
    )


def whole(model):
    functions = tuple(
        (item.domain, item.name, item.overload, tuple(item.input), tuple(item.output), tuple(map(node, item.node)))
        for item in model.functions
    )
    heading = (model.ir_version, model.producer_name, model.producer_version, model.domain, model.model_version, model.doc_string)
    properties = tuple((entry.key, entry.value) for entry in model.metadata_props)
    opsets = tuple((entry.domain, entry.version) for entry in model.opset_import)
    return {"heading": heading, "metadata": properties, "opsets": opsets, "graph": graph(model.graph), "functions": functions}


PARTS = ["name", "inputs", "outputs", "value_info", "initializers", "nodes"]


def differences(left, right):
    for key in left:
        if left[key] == right[key]:
            continue
        if key != "graph":
            yield f"{key}: {str(left[key])[:200]} | {str(right[key])[:200]}"
            continue
        for part, a, b in zip(PARTS, left[key], right[key]):
            if a != b:
                pairs = [(x, y) for x, y in zip(a, b) if x != y] if not isinstance(a, str) else [(a, b)]
                yield f"{part}: {len(a)} | {len(b)}, first {str(pairs[:1])[:400]}"


def check(binary, path, folder):
    inferred = folder / "inferred.onnx"
    run = lambda *arguments: subprocess.run([binary, *arguments, "--no-config"], check=True, capture_output=True)
    run(str(path), "-o", str(inferred), "--stop-after", "0", "--no-stamp")
    text = run("show", "--full", "--stop-after", "0", str(path)).stdout.decode()
    onnx.parser.parse_model(run("show", str(path)).stdout.decode())
    return list(differences(whole(onnx.load(inferred)), whole(parser.parse_model(text))))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", default="target/release/onnx-slice-fold")
    arguments.add_argument("models", nargs="+", type=pathlib.Path)
    arguments = arguments.parse_args()
    paths = [path for name in arguments.models for path in (sorted(name.rglob("*.onnx")) if name.is_dir() else [name])]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            try:
                found = check(arguments.binary, path, pathlib.Path(folder))
            except Exception as error:  # what cannot be read is what is looked for
                found = [str(getattr(error, "stderr", None) or error)[:400]]
            failed += bool(found)
            for line in found:
                print(f"{path.name}: {line}")
    print(f"{len(paths) - failed} of {len(paths)} models are the same after show --full and onnx.parser")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
