"""A fixture that compares models with snapshots kept beside the tests.

    def test_export(onnx_snapshot):
        onnx_snapshot(export(), name="decoder")

compares the folded model's text with ``snapshots/decoder.onnxtxt`` beside the test file; ``pytest --onnx-snapshot-update``
writes it.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any, Callable, Optional

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--onnx-snapshot-update", action="store_true", help="write the snapshots of ONNX models anew")


@pytest.fixture
def onnx_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compares a model with its snapshot; the options of `fold` after it."""

    def compare(model: Any, *, name: Optional[str] = None, folded: bool = True, **options: Any) -> None:
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
