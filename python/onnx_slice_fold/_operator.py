"""``Operator``: the description of a custom operator by two functions."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional, Sequence, Tuple, Union

from ._arrays import array_of, name_of, value_of
from ._core import Model as Held
from ._errors import UsageError
from ._extras import is_a
from ._options import kind_of

Size = Union[int, str, None]
Type = Tuple[Any, Optional[Sequence[Size]]]


class Operand:
    """The known facts of an operand of a node."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.dtype: Optional[str] = known["dtype"]
        """The element type as in the ONNX text syntax (``float``, ``int64``), if known."""
        self.shape: Optional[list[str]] = known["shape"]
        """The dims, numbers or expressions, if the rank is known. The shape of a result may contain them."""
        self.elements: Optional[list[str]] = known["elements"]
        """The elements of an integer tensor, if each is known as a number or an expression of dims."""
        self._value: Any = known["value"]

    @property
    def value(self) -> Any:
        """The array of a constant operand, else None. `evaluate` of an `Operator` has the arrays of all operands."""
        return None if self._value is None else array_of(self._value)


class Node:
    """A node, as the argument of the functions of an `Operator`."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.name: str = known["name"]
        self.version: Optional[int] = known["version"]
        """The version of the operator's domain that the model imports, if any."""
        self.results: int = known["results"]
        """The number of results."""
        self.operands: list[Optional[Operand]] = [None if one is None else Operand(one) for one in known["operands"]]
        """The operands; None for an omitted one."""
        self.attributes: dict[str, Any] = {
            name: array_of(value) if isinstance(value, tuple) else value for name, value in known["attributes"].items()
        }


class Operator:
    """The description of a custom operator.

    An exception from either function ends the call that uses the operator.

    Parameters
    ----------
    domain, name : str
        The domain and the type of the operator's nodes.
    infer : callable
        A function that returns the element type and shape of each result of a `Node`, in order: ``[("float", ["n", "2*m", 4])]``. An
        element type is a name or a numpy dtype. A dim is a number, an expression of dims of the operands, or None if unknown. A shape is
        None if the rank is unknown, and the result is None if all is unknown.
    evaluate : callable, optional
        A function that returns the arrays of the results of a `Node` whose operands all have values. Equal operands must give equal
        results. Without it, nodes with constant operands are kept.
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
    """Registers operators with a model."""
    listed = [operators] if isinstance(operators, (Operator, str)) or not is_a(operators or (), Iterable) else operators or ()
    for operator in listed:
        if not isinstance(operator, Operator):
            raise TypeError(f"operators must be a list of Operator, not {kind_of(operator)}")
        evaluate = None if operator.evaluate is None else operator._values
        held.register(operator.domain, operator.name, operator._types, evaluate)


def _type(operator: Operator, item: Any) -> tuple[str, Optional[list[str]]]:
    try:
        dtype, shape = item
    except (TypeError, ValueError):
        text = f"the function infer of {operator!r} returns {item!r}, which is no pair of element type and shape"
        raise UsageError(f'{text}; return a list of pairs such as ("float", ["n", 4])') from None
    if not isinstance(dtype, str):
        import numpy

        dtype = name_of(numpy.dtype(dtype))
    return dtype, None if shape is None else ["?" if size is None else str(size) for size in shape]
