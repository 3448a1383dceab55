"""Operators that are described in Python."""

import numpy
import onnx
import onnx.parser
import pytest

import onnx_slice_fold as osf
from onnx_slice_fold import Operator

HEADER = '<ir_version: 8, opset_import: ["" : 17, "com.example" : 2]> g '


def parsed(text):
    return onnx.parser.parse_model(HEADER + text)


def grow(evaluate=None):
    def infer(node):
        assert node.version == 2 and node.results == 1 and node.operands[0].dtype == "int64"
        return [(numpy.int64, [f"{node.operands[0].shape[0]} + {node.attributes['by']}"])]

    return Operator("com.example", "Grow", infer, evaluate)


def grown(node):
    return [numpy.concatenate([node.operands[0].value, numpy.zeros(node.attributes["by"], numpy.int64)])]


def shape_of(value):
    return [dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim]


def test_shapes_behind_it_are_inferred():
    model = parsed("(int64[n] x) => (y) { h = com.example.Grow <by = 3> (x)  y = Neg (h) }")
    folded, _ = osf.fold(model, operators=[grow()])
    found = {value.name: shape_of(value) for value in (*folded.graph.value_info, *folded.graph.output)}
    assert found["h"] == ["n + 3"]
    assert "n + 3" in osf.show(model, operators=[grow()])


def test_constants_are_computed():
    text = "(float[n] x) => (y) <int64[2] c = {3, 1}, int64 one = {1}>"
    model = parsed(text + " { h = com.example.Grow <by = 1> (c)  e = Add (h, one)  y = Reshape (x, e) }")
    folded, report = osf.fold(model, operators=[grow(grown)])
    assert [node.op_type for node in folded.graph.node] == ["Reshape"]
    _, report = osf.fold(model, operators=[grow()])
    assert report.after.nodes == 3
    _, report = osf.fold(model)
    assert report.after.nodes == 3


def test_a_model_that_has_it_is_evaluated():
    model = parsed("(int64[n] x) => (int64[m] y) { h = com.example.Grow <by = 2> (x)  y = Neg (h) }")
    outputs = osf.evaluate(model, {"x": numpy.array([5, 6])}, operators=[grow(grown)])
    assert outputs["y"].tolist() == [-5, -6, 0, 0]
    with pytest.raises(osf.NotEvaluatedError):
        osf.evaluate(model, {"x": numpy.array([5, 6])})


def test_attributes_and_unknown_sizes():
    seen = {}

    def infer(node):
        seen.update(node.attributes, operands=[one and one.shape for one in node.operands])
        return [("float", [None, 2])]

    text = '(float[n] x) => (y) { y = com.example.Odd <a = 1, b = 2.5, c = "text", d = [1, 2], e = [1.5]> (x, , x) }'
    folded, _ = osf.fold(parsed(text), operators=[Operator("com.example", "Odd", infer)])
    assert seen == {"a": 1, "b": 2.5, "c": "text", "d": [1, 2], "e": [1.5], "operands": [["n"], None, ["n"]]}
    assert shape_of(folded.graph.output[0])[1] == 2


def test_what_it_raises_ends_the_call():
    model = parsed("(int64[n] x) => (int64[m] y) { y = com.example.Grow <by = 2> (x) }")

    def broken(node):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        osf.fold(model, operators=[Operator("com.example", "Grow", broken)])
    with pytest.raises(osf.UsageError, match="no pair"):
        osf.fold(model, operators=[Operator("com.example", "Grow", lambda node: [3])])
    with pytest.raises(osf.UsageError, match="already defines the operator Neg"):
        osf.fold(model, operators=[Operator("", "Neg", lambda node: None)])
    folded, _ = osf.fold(model, operators=[Operator("com.example", "Grow", lambda node: None)])
    assert len(folded.graph.node) == 1
