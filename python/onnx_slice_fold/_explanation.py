"""Why what is left of a model is left."""

from __future__ import annotations

import html
import json
from typing import Any, NamedTuple


class Suggestion(NamedTuple):
    """Something that could be known of the inputs, and what came of it: the model was folded under it."""

    flags: str
    """The flags of the program that say it."""
    condition: str
    """The runs that the result would be for, in words. With others it may be wrong."""
    nodes: int
    """Nodes that are left under it."""
    tensors_open: int
    """Results with a size that the inputs' sizes do not tell."""


class Cause(NamedTuple):
    """Why one node is left."""

    node: str
    operator: str
    result: str
    """The name of its first result."""
    kind: str
    reason: str
    chain: list[str]
    """The way from there to an input or operator, a place each."""


class OpenSize(NamedTuple):
    """A size that the inputs' sizes do not tell."""

    name: str
    tensor: str
    """The first tensor that has it."""
    tensors: int
    """How many have it."""
    reason: str
    chain: list[str]


class Explanation(NamedTuple):
    """Why what is left of a model is left, and what would let more be done. As text it is what the program prints."""

    headline: str
    nodes_before: int
    nodes: int
    tensors: int
    tensors_open: int
    """Results with a size that the inputs' sizes do not tell."""
    suggestions: list[Suggestion]
    """What saves most comes first."""
    more_to_try: bool
    """Whether something was left untried because no trial was left."""
    causes: list[Cause]
    open_sizes: list[OpenSize]
    answers: dict[str, str]
    """What there is to tell of each name that was asked about."""
    text: str
    json: str
    """The same as JSON, of the schema in docs/report.md."""

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, by the schema in docs/report.md."""
        plain: dict[str, Any] = json.loads(self.json)
        return plain

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'><code>{html.escape(found.flags)}</code></td><td>{found.nodes}</td>"
            f"<td>{found.tensors_open}</td><td style='text-align:left'>{html.escape(found.condition)}</td></tr>"
            for found in self.suggestions
        )
        table = (
            "<table><thead><tr><th>what could be said</th><th>nodes left</th><th>tensors of open size</th><th>only if</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
        told = f"<details><summary>as text</summary><pre>{html.escape(self.text)}</pre></details>"
        return f"<p>{html.escape(self.headline)}</p>{table if rows else ''}{told}"


def explanation_of(text: str, told: str) -> Explanation:
    """The explanation that the compiled half gives as text and as JSON."""
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
