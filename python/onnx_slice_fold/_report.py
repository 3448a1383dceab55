"""The report of a run."""

from __future__ import annotations

import html
from typing import Any, NamedTuple


class Census(NamedTuple):
    """The contents of a model, subgraphs included."""

    operators: dict[str, int]
    """The number of nodes by operator; names outside the default domain include the domain."""
    tensors: int
    """The number of results that are tensors or of unknown type."""
    shaped: int
    """The number of these with a declared shape without open dims."""
    initializers: int

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(self.operators.values())


class Note(NamedTuple):
    """A message about a node."""

    kind: str
    """invalid, undetermined, disputed, declined, false claim or claimed."""
    node: str
    reason: str


class Avoided(NamedTuple):
    """A remaining node with a construct that the option ``avoid`` names."""

    construct: str
    node: str
    reason: str
    """The reason why the node is kept."""


class MissingData(NamedTuple):
    """A data file of the model that was not found. Its tensors have types and shapes, but no values."""

    location: str
    """The path in the model."""
    tensors: int
    """The number of its tensors."""
    looked_in: list[str]
    """The searched directories."""


class Report(NamedTuple):
    """The report of a run. As text, and in a notebook, it is a table of the operators before and after."""

    before: Census
    after: Census
    bytes_before: int
    bytes_after: int
    rounds: int
    seconds: float
    fired: dict[str, int]
    """The number of edits by rule or pass."""
    notes: list[Note]
    missing_data: list[MissingData]
    """Data files that were not found."""
    avoided: list[Avoided]
    """The remaining nodes with constructs that the option ``avoid`` names."""
    explanation: str
    """The time of each pass, the edits of each rule, and the notes, as text."""

    def rows(self) -> list[tuple[str, int, int]]:
        """Returns the table of the report.

        Returns
        -------
        list of (str, int, int)
            Name, number before and number after: a row for each operator whose number changed, one for all others, and the totals.
        """
        counts = [
            (name, self.before.operators.get(name, 0), self.after.operators.get(name, 0))
            for name in sorted({*self.before.operators, *self.after.operators})
        ]
        changed = sorted((row for row in counts if row[1] != row[2]), key=lambda row: row[2] - row[1])
        same = [row for row in counts if row[1] == row[2]]
        rows = list(changed)
        if same:
            kept = sum(row[1] for row in same)
            rows.append((f"{len(same)} more operators" if changed else f"{len(same)} operators", kept, kept))
        rows.append(("all nodes", self.before.nodes, self.after.nodes))
        rows.append(("initializers", self.before.initializers, self.after.initializers))
        rows.append(("tensors", self.before.tensors, self.after.tensors))
        rows.append(("of known shape", self.before.shaped, self.after.shaped))
        rows.append(("bytes", self.bytes_before, self.bytes_after))
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        wide = max(len(row[0]) for row in rows)
        lines = [f"{'':{wide}} {'before':>12} {'after':>12}"]
        lines += [f"{name:{wide}} {before:>12} {after:>12}" for name, before, after in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td style='text-align:left'>{html.escape(name)}</td><td>{before}</td><td>{after}</td></tr>"
            for name, before, after in self.rows()
        )
        notes = "".join(
            f"<li>{html.escape(note.kind)}: {html.escape(note.node)}: {html.escape(note.reason)}</li>"
            for note in self.notes
        )
        told = f"<details><summary>{len(self.notes)} notes</summary><ul>{notes}</ul></details>" if notes else ""
        return f"<table><thead><tr><th></th><th>before</th><th>after</th></tr></thead><tbody>{cells}</tbody></table>{told}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain data, for JSON.

        Returns
        -------
        dict
            The fields by name.
        """
        plain = self._asdict()
        plain["before"] = {**self.before._asdict(), "nodes": self.before.nodes}
        plain["after"] = {**self.after._asdict(), "nodes": self.after.nodes}
        plain["notes"] = [note._asdict() for note in self.notes]
        plain["avoided"] = [avoided._asdict() for avoided in self.avoided]
        plain["missing_data"] = [missing._asdict() for missing in self.missing_data]
        return plain


def report_of(found: dict[str, Any], bytes_after: int) -> Report:
    """Converts the report of the compiled half."""
    return Report(
        before=Census(**found["before"]),
        after=Census(**found["after"]),
        bytes_before=found["bytes_before"],
        bytes_after=bytes_after,
        rounds=found["rounds"],
        seconds=found["seconds"],
        fired=found["fired"],
        notes=[Note(*note) for note in found["notes"]],
        missing_data=[
            MissingData(location, tensors, [str(path) for path in looked_in])
            for location, tensors, looked_in in found["missing_data"]
        ],
        avoided=[Avoided(*avoided) for avoided in found["avoided"]],
        explanation=found["explanation"],
    )
