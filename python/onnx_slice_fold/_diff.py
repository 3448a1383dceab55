"""``diff``: the differences of two models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, Literal

from ._models import opened
from ._types import ModelLike

Kind = Literal["added", "removed", "changed"]
_KINDS: dict[str, Kind] = {"+": "added", "-": "removed", "~": "changed"}


@dataclass(frozen=True)
class Change:
    """One difference of two models."""

    kind: Kind
    """``added``: only the second model has this part; ``removed``: only the first model has it; ``changed``: both have it, and it differs."""
    text: str
    """The part, without the sign. Differences inside a subgraph or function follow on indented lines."""

    def __str__(self) -> str:
        sign = next(sign for sign, kind in _KINDS.items() if kind == self.kind)
        return f"{sign} {self.text}"


@dataclass(frozen=True)
class Diff:
    """The differences of two models. Its text is the output of ``onnx-slice-fold diff``; it is false if there are none."""

    changes: tuple[Change, ...]
    text: str = field(repr=False)
    """The differences, and the numbers of equal nodes."""

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)


def diff(before: ModelLike, after: ModelLike) -> Diff:
    """Compares two models by the values that their nodes compute, not by the names of nodes.

    Parameters
    ----------
    before, after : path, bytes, binary file object, onnx.ModelProto or onnx_ir.Model
        The models. They may have different forms.

    Returns
    -------
    Diff
        The differences. ``print(diff(a, b))`` prints a line for each, and ``if diff(a, b):`` tests for any.

    Raises
    ------
    TypeError
        An argument is not a model.
    Error
        A model cannot be read.
    """
    return diff_of(opened(before, None).diff(opened(after, None)))


def diff_of(text: str) -> Diff:
    """Parses the text of a comparison: a line with a sign begins a difference, and indented lines continue it. Other lines are numbers of nodes."""
    changes: list[Change] = []
    for line in text.split("\n"):
        if line[:1] in _KINDS and line[1:2] == " ":
            changes.append(Change(_KINDS[line[0]], line[2:]))
        elif changes and line.startswith("    "):
            last = changes.pop()
            changes.append(Change(last.kind, f"{last.text}\n{line}"))
    return Diff(tuple(changes), text)
