"""The explanation of the remaining nodes of a model."""

from __future__ import annotations

import html
import json
from typing import Any, NamedTuple


class Suggestion(NamedTuple):
    """Knowledge about the inputs that allows more folding, with the result of folding with it."""

    flags: str
    """The flags of the program."""
    condition: str
    """The runs for which the result is correct, as text."""
    nodes: int
    """The number of remaining nodes."""
    tensors_open: int
    """The number of tensors with a dim that is no expression of the dims of the inputs."""


class Cause(NamedTuple):
    """The reason why a node remains."""

    node: str
    operator: str
    result: str
    """The name of its first result."""
    kind: str
    reason: str
    chain: list[str]
    """The path from the node to an input or operator."""


class OpenSize(NamedTuple):
    """A dim that is no expression of the dims of the inputs."""

    name: str
    tensor: str
    """The first tensor with the dim."""
    tensors: int
    """The number of tensors with the dim."""
    reason: str
    chain: list[str]


class Explanation(NamedTuple):
    """Reasons for the remaining nodes, and suggestions. Its text is the output of ``onnx-slice-fold explain``."""

    headline: str
    nodes_before: int
    nodes: int
    tensors: int
    tensors_open: int
    """The number of tensors with a dim that is no expression of the dims of the inputs."""
    suggestions: list[Suggestion]
    """The suggestions, by saved nodes."""
    more_to_try: bool
    """True if `trials` ended the search."""
    causes: list[Cause]
    open_sizes: list[OpenSize]
    answers: dict[str, str]
    """The explanations of `names`."""
    text: str
    json: str
    """The explanation as JSON, in the schema of docs/report.md."""

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation as plain data.

        Returns
        -------
        dict
            The data, in the schema of docs/report.md.
        """
        plain: dict[str, Any] = json.loads(self.json)
        return plain

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'><code>{html.escape(found.flags)}</code></td><td>{found.nodes}</td>"
            f"<td>{found.tensors_open}</td><td style='text-align:left'>{html.escape(found.condition)}</td></tr>"
            for found in self.suggestions
        )
        table = (
            "<table><thead><tr><th>suggestion</th><th>remaining nodes</th><th>tensors of unknown size</th><th>condition</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
        told = f"<details><summary>as text</summary><pre>{html.escape(self.text)}</pre></details>"
        return f"<p>{html.escape(self.headline)}</p>{table if rows else ''}{told}"


def explanation_of(text: str, told: str) -> Explanation:
    """Converts the explanation of the compiled half, which is text and JSON."""
    found = json.loads(told)
    return Explanation(
        headline=found["headline"],
        nodes_before=found["nodes_before"],
        nodes=found["nodes"],
        tensors=found["tensors"],
        tensors_open=found["tensors_open"],
        suggestions=[Suggestion(**item) for item in found["suggestions"]],
        more_to_try=found["more_to_try"],
        causes=[Cause(**item) for item in found["causes"]],
        open_sizes=[OpenSize(**item) for item in found["open_sizes"]],
        answers={item["name"]: item["text"] for item in found["answers"]},
        text=text,
        json=told,
    )
