"""A fixture that compares models with snapshots next to the tests.

    def test_export(onnx_snapshot):
        onnx_snapshot(export(), name="decoder")

compares the text of the folded model with ``snapshots/decoder.onnxtxt`` next to the test file; ``pytest --onnx-snapshot-update`` writes it.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Protocol

import pytest

from ._types import ModelLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import FoldOptions


class OnnxSnapshot(Protocol):
    """The type of the fixture ``onnx_snapshot``."""

    def __call__(
        self, model: ModelLike, *, name: Optional[str] = None, folded: bool = True, **options: Unpack[FoldOptions]
    ) -> None:
        """Compares a model with its snapshot.

        Parameters
        ----------
        model : path, bytes, binary file object, onnx.ModelProto or onnx_ir.Model
            The model.
        name : str, optional
            The name of the snapshot; by default that of the test.
        folded : bool, default True
            False to store the model without folding.
        **options
            The options of `fold`.

        Raises
        ------
        pytest.fail.Exception
            The text differs, or there is no snapshot.
        """


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--onnx-snapshot-update", action="store_true", help="write the snapshots of ONNX models")


@pytest.fixture
def onnx_snapshot(request: pytest.FixtureRequest) -> OnnxSnapshot:
    """Returns a function that compares a model with its snapshot; see `OnnxSnapshot`."""

    def compare(
        model: ModelLike, *, name: Optional[str] = None, folded: bool = True, **options: Unpack[FoldOptions]
    ) -> None:
        from . import show

        name = name or re.sub(r"[^A-Za-z0-9_.-]+", "_", request.node.name)
        path = Path(request.path).parent / "snapshots" / f"{name}.onnxtxt"
        text = show(model, folded=folded, **options)
        if request.config.getoption("--onnx-snapshot-update"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"there is no snapshot {path}; --onnx-snapshot-update writes it", pytrace=False)
        kept = path.read_text(encoding="utf-8")
        if kept != text:
            lines = difflib.unified_diff(kept.splitlines(), text.splitlines(), str(path), "now", lineterm="")
            pytest.fail("\n".join(lines), pytrace=False)

    return compare
