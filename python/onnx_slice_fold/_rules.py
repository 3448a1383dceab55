"""``rules``: the rewrite rules and passes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator, Literal, Optional, overload

from . import _core

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_RULE = re.compile(r"^### (\S+)\n\n", re.MULTILINE)
_EXACT = re.compile(r"^(Exact|Approximate)\. Operators: (.+)\.$", re.MULTILINE)
_PREMISE = re.compile(r"^\* `([^`]+)`: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    """A rewrite rule or pass. Its text is the output of ``onnx-slice-fold rules NAME``."""

    name: str
    """The name for `skip`, `only` and ``report.fired``."""
    kind: Literal["rule", "pass"]
    """``rule``: edits one place of the graph; ``pass``: edits the whole model."""
    summary: str
    law: str
    """The equation that the rewrite rests on."""
    exact: bool
    """True if every bit of the results is preserved. ``exact=True`` disables the others."""
    operators: tuple[str, ...]
    """The operators at which the rule starts; empty for every operator."""
    premises: dict[str, str]
    """Conditions that are proved before an edit, by name."""
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Rules:
    """All rewrite rules and passes, in the order of use. The text is the output of ``onnx-slice-fold rules``."""

    rules: tuple[Rule, ...]
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __contains__(self, name: object) -> bool:
        return any(name in (rule.name, rule) for rule in self.rules)

    def __getitem__(self, name: str) -> Rule:
        for rule in self.rules:
            if rule.name == name:
                return rule
        raise KeyError(name)


@overload
def rules(name: None = None) -> Rules: ...
@overload
def rules(name: str) -> Rule: ...
def rules(name: Optional[str] = None) -> Rules | Rule:
    """Describes the rewrite rules and passes.

    Parameters
    ----------
    name : str, optional
        The rule or pass to describe; all if None.

    Returns
    -------
    Rules or Rule
        All rules and passes, or the one with this name. ``print`` shows the text of ``onnx-slice-fold rules``.

    Raises
    ------
    UsageError
        No rule or pass has this name; the message suggests the nearest name.
    TypeError
        `name` is not a text.
    """
    if name is None:
        text = _core.rules(None)
        return Rules(tuple(_rules_of(text)), text)
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of a rule or pass, not {type(name).__name__}")
    text = _core.rules(name)
    return next(_rule_of(rule.name, rule.kind, text) for rule in _rules_of(_core.rules(None)) if rule.name == name)


def _rules_of(table: str) -> Iterator[Rule]:
    # The text before the first section is an introduction; then titles and sections take turns.
    _, *parts = _SECTION.split(table)
    for title, section in zip(parts[::2], parts[1::2]):
        _, *found = _RULE.split(section)
        for name, body in zip(found[::2], found[1::2]):
            yield _rule_of(name, "pass" if title == "Passes" else "rule", f"{name}\n\n{body.rstrip()}\n")


def _rule_of(name: str, kind: Literal["rule", "pass"], text: str) -> Rule:
    exact = _EXACT.search(text)
    assert exact is not None, text
    _, summary, law = text[: exact.start()].rstrip().split("\n\n", 2)
    operators = () if exact[2] == "every operator" else tuple(exact[2].split(", "))
    law = "\n".join(line.removeprefix("    ") for line in law.splitlines())
    return Rule(name, kind, summary, law, exact[1] == "Exact", operators, dict(_PREMISE.findall(text)), text)
