"""``evaluate``: what a model computes, by this package's own evaluator."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional

from ._arrays import array_of, value_of
from ._models import AnyPath, opened
from ._operator import Operator, register


def evaluate(
    model: Any,
    inputs: Mapping[str, Any],
    *,
    base_dir: Optional[AnyPath] = None,
    operators: Optional[Iterable[Operator]] = None,
) -> dict[str, Any]:
    """The outputs of a model by name, computed from the inputs by name.

    Inputs are numpy arrays, anything that speaks DLPack or can be made an array, lists for sequences and None for an absent
    optional. Inputs are copied, because the evaluator works while other threads may write to them; outputs are arrays that cannot
    be written to and share the memory of the result. It is there to look at what a model computes, and is no runtime: nodes about
    which runtimes disagree are refused with `NotEvaluatedError`. ``operators`` tell what the package does not know.
    """
    held = opened(model, base_dir)
    register(held, operators)
    given = {name: value_of(value) for name, value in inputs.items()}
    return {name: array_of(value) for name, value in held.evaluate(given).items()}
