"""``fold``, ``explain`` and ``show``."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Callable, Iterable, Optional, Type, overload

from . import _log
from ._explanation import Explanation, explanation_of
from ._models import check_output, given_back, is_path, opened
from ._operator import Operator, register
from ._options import FoldArguments, FoldOptions, kind_of, plain, whole
from ._report import Report, report_of
from ._types import AnyPath, BinarySource, FormT, ModelLike, OutputT, Roots, SameT

if TYPE_CHECKING:
    from typing_extensions import Unpack


# An `onnx.ModelProto` whose base class the type checker does not find matches every type, so `SameT` comes before `str`.
@overload
def fold(model: ModelLike, output: Type[FormT], **arguments: Unpack[FoldArguments]) -> tuple[FormT, Report]: ...
@overload
def fold(model: ModelLike, output: OutputT, **arguments: Unpack[FoldArguments]) -> tuple[OutputT, Report]: ...
@overload
def fold(model: SameT, output: None = None, **arguments: Unpack[FoldArguments]) -> tuple[SameT, Report]: ...
@overload
def fold(model: str, output: None = None, **arguments: Unpack[FoldArguments]) -> tuple[str, Report]: ...
@overload
def fold(model: BinarySource, output: None = None, **arguments: Unpack[FoldArguments]) -> tuple[io.BytesIO, Report]: ...
def fold(
    model: Any,
    output: Any = None,
    *,
    base_dir: Optional[AnyPath] = None,
    external_data_roots: Roots = None,
    progress: Optional[Callable[[str], object]] = None,
    operators: Optional[Iterable[Operator]] = None,
    **options: Unpack[FoldOptions],
) -> tuple[Any, Report]:
    """Folds a model and returns the folded model with a report.

    Parameters
    ----------
    model : path, bytes, binary file object, onnx.ModelProto or onnx_ir.Model
        The model. It is not changed.
    output : path, binary file object, or class, optional
        The destination. None, the default, stands for the form of `model`; for a path ``x.onnx`` that is the new file ``x.folded.onnx``. A
        class (``bytes``, ``bytearray``, ``onnx.ModelProto``, ``onnx_ir.Model``) keeps the result in memory and writes no file.
    base_dir : path, optional
        The directory of external data for a model that is not given as a path.
    external_data_roots : path or iterable of paths, optional
        Further directories for external data.
    progress : callable, optional
        A function that is called with the name of each step.
    operators : iterable of Operator, optional
        Descriptions of custom operators.
    **options
        The options of `FoldOptions`: ``dims``, ``assume``, ``input_shapes``, ``exact``, ``skip``, ``only`` and others.

    Returns
    -------
    model : path, bytes, file object, onnx.ModelProto or onnx_ir.Model
        The folded model in the form of `model`. For a path it is the path of the written file, of the type of `model` (``str`` or
        ``pathlib.Path``); for a file object an ``io.BytesIO`` at its beginning. With `output`, it is `output`, or an object of this class.
    report : Report
        The operators before and after, the rules that fired, and notes on single nodes.

    Raises
    ------
    TypeError
        An argument is of the wrong type.
    UsageError
        An option or a value of an option is unknown.
    AssumptionError
        A dim, relation or shape contradicts the model.
    Error
        The model cannot be read, folded or written; the subclasses are the kinds of errors.
    OSError
        A file cannot be read or written.
    ModuleNotFoundError
        The result has a form whose package is not installed.
    """
    made = plain(options, ("output", *FoldArguments.__annotations__))
    check_output(output)
    _check_callable("progress", progress)
    held = opened(model, base_dir, external_data_roots)
    register(held, operators)
    report = held.fold(made, progress)
    result, size = given_back(model, held, output)
    found = report_of(report, size)
    name = str(model) if is_path(model) else "model"
    _log.info("folded %s: %d nodes, before %d; %d bytes", name, found.after.nodes, found.before.nodes, size)
    return result, found


def explain(
    model: ModelLike,
    *names: str,
    trials: int = 10,
    base_dir: Optional[AnyPath] = None,
    external_data_roots: Roots = None,
    operators: Optional[Iterable[Operator]] = None,
    **options: Unpack[FoldOptions],
) -> Explanation:
    """Folds a model without writing it, and explains the remaining nodes, as ``onnx-slice-fold explain`` does.

    Parameters
    ----------
    model : path, bytes, binary file object, onnx.ModelProto or onnx_ir.Model
        The model. It is not changed.
    *names : str
        Nodes, tensors or dims to explain in detail.
    trials : int, default 10
        The largest number of times to fold again, in search of knowledge about the inputs that allows more folding.
    base_dir, external_data_roots, operators, **options
        As for `fold`.

    Returns
    -------
    Explanation
        Causes, suggestions and open dims. Its text is the output of the program.

    Raises
    ------
    TypeError, UsageError, AssumptionError, Error, OSError
        As for `fold`.
    """
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f'names must be texts, not {kind_of(name)}; write explain(model, "name", ...)')
    made = plain(options, ("trials", "base_dir", "external_data_roots", "operators"))
    trials = whole("trials", trials)
    held = opened(model, base_dir, external_data_roots)
    register(held, operators)
    path = str(model) if is_path(model) else "-"
    return explanation_of(*held.explain({"shapes": "all", **made}, list(names), trials, path))


def show(
    model: ModelLike,
    *,
    folded: bool = False,
    full: bool = False,
    base_dir: Optional[AnyPath] = None,
    external_data_roots: Roots = None,
    operators: Optional[Iterable[Operator]] = None,
    **options: Unpack[FoldOptions],
) -> str:
    """Prints a model in the text syntax that ``onnx.parser`` reads, with inferred shapes.

    Parameters
    ----------
    model : path, bytes, binary file object, onnx.ModelProto or onnx_ir.Model
        The model. It is not changed.
    folded : bool, default False
        True to fold the model first.
    full : bool, default False
        True to print the data of every constant. By default a long constant is a type and a hash.
    base_dir, external_data_roots, operators, **options
        As for `fold`.

    Returns
    -------
    str
        The text.

    Raises
    ------
    TypeError, UsageError, AssumptionError, Error, OSError
        As for `fold`.
    """
    made = plain(options, ("folded", "full", "base_dir", "external_data_roots", "operators"))
    held = opened(model, base_dir, external_data_roots)
    register(held, operators)
    # A model that is only shown has no note of a run.
    noted = {} if folded else {"stamp": False}
    held.fold({"shapes": "all", **made, **noted, "fold": folded}, None)
    return held.text(full)


def _check_callable(name: str, value: object) -> None:
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function of one text, not {kind_of(value)}; write {name}=print")
