"""Folding of the programs that ``torch.onnx.export`` returns. Neither torch nor onnx_ir is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ._fold import fold
from ._report import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import FoldOptions

Program = TypeVar("Program")


def fold_program(program: Program, **options: Unpack[FoldOptions]) -> tuple[Program, Report]:
    """Folds the model of an ``ONNXProgram`` in place.

        program, report = fold_program(torch.onnx.export(model, args, dynamo=True))
        program.save("model.onnx")

    Parameters
    ----------
    program : torch.onnx.ONNXProgram
        The result of ``torch.onnx.export(..., dynamo=True)``.
    **options
        The options of `fold`.

    Returns
    -------
    program : torch.onnx.ONNXProgram
        The same object.
    report : Report
        The report of `fold`.

    Raises
    ------
    TypeError
        `program` has no model, or an option is of the wrong type.
    Error
        As for `fold`.
    """
    held: Any = program
    if not hasattr(held, "model"):
        raise TypeError("program has no model; pass the result of torch.onnx.export(..., dynamo=True)")
    held.model, report = fold(held.model, **options)
    return program, report
