"""Imports of optional packages, and type tests of their objects."""

from __future__ import annotations

import importlib
from typing import Any

# The extra of pyproject.toml that installs each package.
_EXTRAS = {"onnx": "onnx", "numpy": "numpy", "ml_dtypes": "numpy", "onnxruntime": "check", "onnx_ir": "ir"}


def require(module: str, purpose: str) -> Any:
    """Imports an optional package, so that a following ``import`` statement succeeds, and returns it.

    Raises
    ------
    ModuleNotFoundError
        The package is not installed. The message names the extra that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # The error of an installed package that lacks a dependency is not replaced.
        if error.name != module:
            raise
        text = f"{purpose} needs the package {module}, which is not installed; run: pip install onnx-slice-fold[{_EXTRAS[module]}]"
        raise ModuleNotFoundError(text, name=module) from error


def is_a(value: object, *kinds: type[Any]) -> bool:
    """Returns ``isinstance(value, kinds)`` without narrowing the type of `value`, because narrowed elements are of unknown type."""
    return isinstance(value, kinds)
