"""Folding as a pass of ``onnx_ir``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir
from onnx_ir.passes import FunctionalPass, PassResult

from ._fold import fold
from ._report import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._fold import FoldOptions


class FoldPass(FunctionalPass):
    """Folds a model; options are those of `fold`. What the last run did is in ``report``.

        onnx_ir.passes.Sequential(FoldPass(dims={"batch": 1}), ...)(model)
    """

    report: Report | None = None

    def __init__(self, **options: Unpack[FoldOptions]) -> None:
        super().__init__()
        self.options = options

    def call(self, model: onnx_ir.Model) -> PassResult:
        folded, self.report = fold(model, **self.options)
        return PassResult(folded, modified=any(self.report.fired.values()) or self.report.before != self.report.after)
