"""Infers every shape of an ONNX model, folds everything that is already decided, and gives back the smaller model.

    from onnx_slice_fold import fold, simplify

    model, report = fold(onnx.load("model.onnx"), dims={"batch": 1})
    model, ok = simplify(model)                     # as onnxsim's

Every function takes a path, ``bytes``, a file object, an ``onnx.ModelProto`` or an ``onnx_ir.Model``.
"""

from ._core import __version__
from ._errors import (
    AssumptionError,
    ChangedError,
    Error,
    ExtractionError,
    FileError,
    ImpossibleError,
    InternalError,
    LimitError,
    MalformedModelError,
    NotEvaluatedError,
    UnsupportedError,
    UsageError,
)
from ._evaluate import evaluate
from ._explanation import Cause, Explanation, OpenSize, Suggestion
from ._fold import diff, explain, fold, rules, show
from ._operator import Node, Operand, Operator
from ._report import Census, MissingData, Note, Report
from ._shapes import SymbolicShapeInference, infer_shapes, infer_shapes_path
from ._simplify import simplify
from ._slim import slim

__all__ = [
    "AssumptionError",
    "Cause",
    "Census",
    "ChangedError",
    "Error",
    "Explanation",
    "ExtractionError",
    "FileError",
    "ImpossibleError",
    "InternalError",
    "LimitError",
    "MalformedModelError",
    "Node",
    "NotEvaluatedError",
    "MissingData",
    "Note",
    "OpenSize",
    "Operand",
    "Operator",
    "Report",
    "Suggestion",
    "SymbolicShapeInference",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "diff",
    "evaluate",
    "explain",
    "fold",
    "infer_shapes",
    "infer_shapes_path",
    "rules",
    "show",
    "simplify",
    "slim",
]
