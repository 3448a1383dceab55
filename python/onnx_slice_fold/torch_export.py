"""Folding of what ``torch.onnx.export`` returns. Neither torch nor onnx_ir is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ._fold import fold
from ._report import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._fold import FoldOptions

Program = TypeVar("Program")


def fold_program(program: Program, **options: Unpack[FoldOptions]) -> tuple[Program, Report]:
    """Folds the model of an ``ONNXProgram`` in place, and gives the program back with a report.

        program, report = fold_program(torch.onnx.export(model, args, dynamo=True))
        program.save("model.onnx")
    """
    held: Any = program
    if not hasattr(held, "model"):
        raise TypeError("program has no model: give what torch.onnx.export(..., dynamo=True) returns")
    held.model, report = fold(held.model, **options)
    return program, report
