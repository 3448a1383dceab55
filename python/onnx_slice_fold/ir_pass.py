"""Folding as a pass of ``onnx_ir``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._extras import require
from ._fold import fold
from ._options import FoldOptions
from ._report import Report

require("onnx_ir", "onnx_slice_fold.ir_pass")

import onnx_ir  # noqa: E402
from onnx_ir.passes import FunctionalPass, PassResult  # noqa: E402

if TYPE_CHECKING:
    from typing_extensions import Unpack


class FoldPass(FunctionalPass):
    """Folds a model as a functional pass: the input model is not changed.

        onnx_ir.passes.Sequential(FoldPass(dims={"batch": 1}), ...)(model)

    Parameters
    ----------
    **options
        The options of `fold`.

    Attributes
    ----------
    report : Report or None
        The report of the last run.
    """

    report: Report | None = None

    def __init__(self, **options: Unpack[FoldOptions]) -> None:
        super().__init__()
        self.options = options

    def call(self, model: onnx_ir.Model) -> PassResult:
        """Folds a model.

        Parameters
        ----------
        model : onnx_ir.Model
            The model.

        Returns
        -------
        onnx_ir.passes.PassResult
            A new model, and ``modified`` if it differs.

        Raises
        ------
        Error, TypeError
            As for `fold`.
        """
        folded, self.report = fold(model, **self.options)
        return PassResult(folded, modified=any(self.report.fired.values()) or self.report.before != self.report.after)
