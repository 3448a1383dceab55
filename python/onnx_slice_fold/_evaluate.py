"""``evaluate``: the outputs of a model, computed by this package's own evaluator."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional

from ._arrays import array_of, value_of
from ._extras import require
from ._models import opened
from ._operator import Operator, register
from ._options import kind_of
from ._types import AnyPath, ModelLike


def evaluate(
    model: ModelLike,
    inputs: Mapping[str, Any],
    *,
    base_dir: Optional[AnyPath] = None,
    operators: Optional[Iterable[Operator]] = None,
) -> dict[str, Any]:
    """Computes the outputs of a model on the CPU, without a runtime.

    Parameters
    ----------
    model : path, bytes, binary file object, onnx.ModelProto or onnx_ir.Model
        The model.
    inputs : mapping from str to array
        The inputs by name: numpy arrays, objects that support DLPack or that ``numpy.asarray`` accepts, lists of arrays for sequences, and
        None for an absent optional. The data is copied.
    base_dir : path, optional
        The directory of external data for a model that is not given as a path.
    operators : iterable of Operator, optional
        Descriptions of custom operators.

    Returns
    -------
    dict from str to numpy.ndarray
        The outputs by name, as read-only arrays. A sequence is a list, a map is a dict, and an absent optional is None.

    Raises
    ------
    TypeError
        `model` is not a model, or `inputs` is not a mapping.
    UsageError
        An input is missing or unknown, or has a wrong shape or type.
    NotEvaluatedError
        Constant folding would not evaluate one of the nodes, such as a node about which runtimes disagree.
    Error, OSError
        The model cannot be read.
    ModuleNotFoundError
        numpy is not installed.
    """
    require("numpy", "evaluate")
    if not isinstance(inputs, Mapping):
        raise TypeError(f'inputs must be a dict of arrays by name, not {kind_of(inputs)}; write {{"x": array}}')
    held = opened(model, base_dir)
    register(held, operators)
    given = {name: value_of(value) for name, value in inputs.items()}
    return {name: array_of(value) for name, value in held.evaluate(given).items()}
