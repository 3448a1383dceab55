"""Simplifies ONNX models: infers symbolic shapes, folds constants and rewrites the graph.

    from onnx_slice_fold import fold, simplify

    model, report = fold(onnx.load("model.onnx"), dims={"batch": 1})
    model, ok = simplify(model)                     # as onnxsim's

Every function accepts a path, ``bytes``, a binary file object, an ``onnx.ModelProto`` or an ``onnx_ir.Model``; ``simplify`` and ``slim`` accept the
forms of onnxsim and OnnxSlim. Messages go to ``logging.getLogger("onnx_slice_fold")``.
"""


from ._core import __version__
from ._diff import Change, Diff, diff
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
from ._fold import explain, fold, show
from ._operator import Node, Operand, Operator, Type
from ._options import FoldArguments, FoldOptions
from ._report import Avoided, Census, MissingData, Note, Report
from ._rules import Rule, Rules, rules
from ._shapes import SymbolicShapeInference, infer_shapes, infer_shapes_path
from ._simplify import simplify
from ._slim import slim

__all__ = [
    "AssumptionError",
    "Avoided",
    "Cause",
    "Census",
    "Change",
    "ChangedError",
    "Diff",
    "Error",
    "Explanation",
    "ExtractionError",
    "FileError",
    "FoldArguments",
    "FoldOptions",
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
    "Rule",
    "Rules",
    "Suggestion",
    "SymbolicShapeInference",
    "Type",
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
