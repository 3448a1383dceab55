"""``fold``, ``explain`` and ``show``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from . import _core
from ._errors import UsageError
from ._explanation import Explanation, explanation_of
from ._models import AnyPath, Model, Roots, given_back, opened
from ._operator import Operator, register
from ._report import Report, report_of

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class FoldOptions(TypedDict, total=False):
        """What a run may do, and what is known of the inputs. Names are the command line's."""

        dims: Mapping[str, Union[int, str]]
        """Sizes by name: ``{"batch": 1, "seq": "1..4096", "width": "8..4096:8"}``."""
        assume: Union[str, Iterable[str]]
        """Relations between sizes that always hold: ``"past + seq <= 2048"``."""
        input_shapes: Mapping[str, Sequence[Union[int, str, None]]]
        """Shapes of inputs by name; a name, -1 or None leaves a dimension open."""
        exact: bool
        """Only rewrites that keep results equal bit for bit."""
        skip: Iterable[str]
        """Rules and passes to leave out; `rules()` lists them."""
        only: Iterable[str]
        """The only rules and passes to use."""
        max_growth: float
        """How much larger constants may make the model, as a share of its size."""
        free_growth: int
        """How many bytes of growth are too few to mind whatever the share."""
        max_constant: int
        """How many bytes a result may have that becomes a constant."""
        rules: bool
        """Whether rewrite rules are used; inference and folding of constants go on without."""
        opset: int
        """The operator set of the default domain to write the model in."""
        stamp: bool
        """Whether the model's metadata tell this package's version and what it was asked to do."""
        slice_rule: str
        """How slices are read about which runtimes disagree: agree, onnxruntime, spec, numpy."""
        strided_slice: Iterable[str]
        """Operators that are strided slices: ``"com.example::Crop=tensorflow"``."""
        trust_declared_shapes: bool
        trust_input_names: bool
        """Whether labels of inputs' dims are parsed as expressions: ``"past + seq"`` is the sum of ``past`` and ``seq``."""
        fold_dequantize: bool
        unroll: int
        shapes: str
        """Which shapes of inner tensors the result states: auto, all, keep, lean, none."""
        lean: bool
        """``shapes="lean"`` by its older name."""
        new_shapes: bool
        """False is ``shapes="keep"`` by its older name."""
        strict: bool
        stop_after: Optional[int]
        verify_each: bool


def fold(
    model: Model,
    output: Any = None,
    *,
    base_dir: Optional[AnyPath] = None,
    external_data_roots: Roots = None,
    progress: Optional[Callable[[str], object]] = None,
    operators: Optional[Iterable[Operator]] = None,
    **options: Unpack[FoldOptions],
) -> tuple[Model, Report]:
    """Folds a model and gives back one of the same kind, with a report.

    A path is read and the result written to ``output``, or beside it as ``model.folded.onnx``, and its path given back: models of
    any size go this way without being held in memory. Bytes give bytes, a file object gives one at its beginning (or writes to
    ``output``), an ``onnx.ModelProto`` or ``onnx_ir.Model`` gives a new one and is not changed.

    ``base_dir`` is where external data of a model is that is no path; ``external_data_roots`` are more directories it may lie below. ``progress`` is called with a few words whenever what is
    done changes. ``operators`` tell what the package does not know. Other threads go on meanwhile.
    """
    held = opened(model, base_dir, external_data_roots)
    register(held, operators)
    found = held.fold(plain(options), progress)
    result, size = given_back(model, held, output)
    return result, report_of(found, size)


def explain(
    model: Any,
    *names: str,
    trials: int = 10,
    base_dir: Optional[AnyPath] = None,
    external_data_roots: Roots = None,
    operators: Optional[Iterable[Operator]] = None,
    **options: Unpack[FoldOptions],
) -> Explanation:
    """Folds without writing, and tells why what is left is left, as ``onnx-slice-fold explain`` does.

    ``names`` are nodes, tensors or sizes to tell more of. What would let more be done if it were known of the inputs is found by
    folding again, at most ``trials`` times.
    """
    held = opened(model, base_dir, external_data_roots)
    register(held, operators)
    told = str(model) if isinstance(model, (str, os.PathLike)) else "-"
    return explanation_of(*held.explain({"shapes": "all", **plain(options)}, list(names), trials, told))


def show(
    model: Any,
    *,
    folded: bool = False,
    full: bool = False,
    base_dir: Optional[AnyPath] = None,
    external_data_roots: Roots = None,
    operators: Optional[Iterable[Operator]] = None,
    **options: Unpack[FoldOptions],
) -> str:
    """The model in the text syntax that ``onnx.parser`` reads, with inferred shapes, as it is or folded.

    Long constants are told of by type and hash; ``full`` prints all data, so that the text is the whole model.
    """
    held = opened(model, base_dir, external_data_roots)
    register(held, operators)
    # Nothing is made of a model that is only shown, so nothing is noted in it.
    noted = {} if folded else {"stamp": False}
    held.fold({"shapes": "all", **plain(options), **noted, "fold": folded}, None)
    return held.text(full)


def diff(before: Any, after: Any) -> str:
    """What is different in ``after``, a line each; empty if nothing is. Nodes are matched by what they compute, not by name."""
    return opened(before, None).diff(opened(after, None))


def rules(name: Optional[str] = None) -> str:
    """What the rewrite rules and passes do and when, or one of them: the text of ``onnx-slice-fold rules``."""
    return _core.rules(name)


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as the compiled half takes them: texts in the words of the command line."""
    made: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name == "dims":
            made[name] = [f"{dim}={size}" for dim, size in value.items()]
        elif name == "input_shapes":
            made[name] = [f"{name_}:{','.join(map(_dim, shape))}" for name_, shape in value.items()]
        elif name in ("assume", "skip", "only", "strided_slice"):
            made[name] = [value] if isinstance(value, str) else list(value)
        elif name == "fold":
            raise UsageError("there is no option 'fold'")
        else:
            made[name] = value
    return made


def _dim(size: Union[int, str, None]) -> str:
    return "-1" if size is None else str(size)
