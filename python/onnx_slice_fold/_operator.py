"""``Operator``: the description of a custom operator by two functions."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional, Sequence, Tuple, Union

from ._arrays import array_of, name_of, value_of
from ._core import Model as Held
from ._errors import UsageError

Size = Union[int, str, None]
Type = Tuple[Any, Optional[Sequence[Size]]]


class Operand:
    """What is known of an operand of a node."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.dtype: Optional[str] = known["dtype"]
        """The element type in the words of the ONNX text syntax (``float``, ``int64``), if known."""
        self.shape: Optional[list[str]] = known["shape"]
        """The sizes, if their number is known: numbers or expressions, which may stand in the shape of a result."""
        self.elements: Optional[list[str]] = known["elements"]
        """The elements of integers, if each is known as a number or an expression of sizes."""
        self._value: Any = known["value"]

    @property
    def value(self) -> Any:
        """The value as an array, if it is decided, else None. Where a node is evaluated that of every operand is."""
        return None if self._value is None else array_of(self._value)


class Node:
    """A node of an operator, as its functions see it."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.name: str = known["name"]
        self.version: Optional[int] = known["version"]
        """The version of the operator's domain that the model imports, if it does."""
        self.results: int = known["results"]
        """How many results the node lists."""
        self.operands: list[Optional[Operand]] = [None if one is None else Operand(one) for one in known["operands"]]
        """The operands; None for one that is left out."""
        self.attributes: dict[str, Any] = {
            name: array_of(value) if isinstance(value, tuple) else value for name, value in known["attributes"].items()
        }


class Operator:
    """An operator that the package does not know.

    ``infer`` is given a `Node` and answers with element type and shape of each result, in order: ``[("float", ["n", "2*m", 4])]``. An
    element type is a name or a numpy dtype. A size is a number, an expression of sizes of the operands, or None where nobody knows; a
    shape of None says that not even the rank is known, and an answer of None that nothing is.

    ``evaluate`` is given a `Node` whose operands all have a value and answers with the arrays of the results. Without it nodes of
    constants stay. Equal operands must give equal results. What either raises ends the call that asked.
    """

    def __init__(
        self,
        domain: str,
        name: str,
        infer: Callable[[Node], Optional[Iterable[Type]]],
        evaluate: Optional[Callable[[Node], Iterable[Any]]] = None,
    ) -> None:
        self.domain, self.name, self.infer, self.evaluate = domain, name, infer, evaluate

    def __repr__(self) -> str:
        return f"Operator({self.domain!r}, {self.name!r})"

    def _types(self, known: dict[str, Any]) -> list[tuple[str, Optional[list[str]]]]:
        answer = self.infer(Node(known))
        return [] if answer is None else [_type(self, item) for item in answer]

    def _values(self, known: dict[str, Any]) -> list[Any]:
        if self.evaluate is None:
            raise UsageError(f"{self!r} is not evaluated")
        return [value_of(value) for value in self.evaluate(Node(known))]


def register(held: Held, operators: Optional[Iterable[Operator]]) -> None:
    """Makes operators known to a model."""
    for operator in operators or ():
        evaluate = None if operator.evaluate is None else operator._values
        held.register(operator.domain, operator.name, operator._types, evaluate)


def _type(operator: Operator, item: Any) -> tuple[str, Optional[list[str]]]:
    try:
        dtype, shape = item
    except (TypeError, ValueError):
        raise UsageError(f"inference of {operator!r} gives {item!r}, which is no pair of element type and shape") from None
    if not isinstance(dtype, str):
        import numpy

        dtype = name_of(numpy.dtype(dtype))
    return dtype, None if shape is None else ["?" if size is None else str(size) for size in shape]
