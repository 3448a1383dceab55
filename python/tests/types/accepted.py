"""Calls whose results have these types for mypy and pyright."""

import io
from pathlib import Path
from typing import Any, Optional, Union

import onnx
import onnx_ir
from typing_extensions import assert_type

from onnx_slice_fold import (
    Diff, Explanation, Report, Rule, Rules, diff, evaluate, explain, fold, infer_shapes, rules, show, simplify, slim,
)

proto = onnx.ModelProto()
ir = onnx_ir.load("model.onnx")

assert_type(fold(proto), tuple[onnx.ModelProto, Report])
assert_type(fold(ir)[0], onnx_ir.Model)
assert_type(fold("model.onnx")[0], str)
assert_type(fold(Path("model.onnx"))[0], Path)
assert_type(fold(b"")[0], bytes)
assert_type(fold(bytearray())[0], bytearray)
assert_type(fold(open("model.onnx", "rb"))[0], io.BytesIO)
assert_type(fold(proto, "x.onnx")[0], str)
assert_type(fold(b"", Path("x.onnx"))[0], Path)
assert_type(fold("model.onnx", io.BytesIO())[0], io.BytesIO)
assert_type(fold("model.onnx", bytes)[0], bytes)
assert_type(fold("model.onnx", onnx.ModelProto)[0], onnx.ModelProto)
assert_type(fold("model.onnx", output=onnx_ir.Model)[0], onnx_ir.Model)
assert_type(fold("model.onnx", output=None, dims={"n": 1}, shapes="all", progress=print)[0], str)


# For mypy without types-protobuf, an `onnx.ModelProto` is a subtype of every type, and such a union becomes `str`.
def unions(model: Union[str, onnx_ir.Model], output: Optional[str]) -> None:
    assert_type(fold(model)[0], Union[str, onnx_ir.Model])
    assert_type(fold(ir, output)[0], Union[str, onnx_ir.Model])


assert_type(infer_shapes(proto), onnx.ModelProto)
assert_type(infer_shapes(ir), onnx_ir.Model)
assert_type(infer_shapes("model.onnx"), onnx.ModelProto)
assert_type(simplify(Path("model.onnx")), tuple[onnx.ModelProto, bool])
assert_type(slim("model.onnx"), onnx.ModelProto)
assert_type(slim(proto, model_check=True), Optional[onnx.ModelProto])
assert_type(slim(["model.onnx"]), list[Report])
assert_type(show(Path("model.onnx"), folded=True), str)
assert_type(explain(ir, "n", dims={"n": 1}), Explanation)
assert_type(diff("model.onnx", proto), Diff)
assert_type(evaluate(b"", {}), dict[str, Any])
assert_type(rules(), Rules)
assert_type(rules("identity"), Rule)
