"""``slim`` with OnnxSlim's signature and semantics."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, Union, overload

from . import _log
from ._check import agree
from ._errors import UsageError
from ._extras import is_a, require
from ._fold import fold
from ._models import is_path, is_proto, opened
from ._options import SlimOptions, kind_of, nearest, texts, whole
from ._overwrite import overwritten
from ._report import Report, report_of
from ._types import AnyPath

if TYPE_CHECKING:
    import onnx
    from typing_extensions import Unpack

    Source = Union[AnyPath, onnx.ModelProto]

# Arguments of OnnxSlim that configure its implementation or its output.
_IDLE = ("skip_optimizations", "skip_fusion_patterns", "no_shape_infer", "dump_to_disk", "verbose")


@overload
def slim(model: list[Any], output_model: None = None, **arguments: Unpack[SlimOptions]) -> list[Report]: ...
@overload
def slim(
    model: Source, output_model: None = None, *, model_check: Literal[False] = False, **arguments: Unpack[SlimOptions]
) -> onnx.ModelProto: ...
@overload
def slim(
    model: Source, output_model: None = None, *, model_check: bool, **arguments: Unpack[SlimOptions]
) -> Optional[onnx.ModelProto]: ...
@overload
def slim(
    model: Source, output_model: AnyPath, *, model_check: bool = False, **arguments: Unpack[SlimOptions]
) -> None: ...
def slim(
    model: Any, output_model: Optional[AnyPath] = None, *, model_check: bool = False, **arguments: Any
) -> Union[onnx.ModelProto, list[Report], None]:
    """Folds a model, with the arguments of OnnxSlim 0.1.

    The log (``logging.getLogger("onnx_slice_fold")``, level INFO) has the table of operators that OnnxSlim prints.

    Parameters
    ----------
    model : path, onnx.ModelProto, or list of them
        The model. It is not changed. A list of models is described and not folded.
    output_model : path, optional
        The file to write.
    model_check : bool, default False
        True to compare both models in ONNX Runtime.
    **arguments
        ``input_shapes`` (``["x:1,3,224,224"]``), ``outputs``, ``size_threshold``, ``save_as_external_data`` and ``model_check_inputs``
        (``["x:data.npy"]``) work as in OnnxSlim. ``skip_optimizations``, ``skip_fusion_patterns``, ``no_shape_infer``, ``dump_to_disk`` and
        ``verbose`` have no effect and cause a warning.

    Returns
    -------
    onnx.ModelProto or None
        The folded model. None if it was written to `output_model`, or if `model_check` found a difference. For a list of models, a list
        with a `Report` for each.

    Raises
    ------
    TypeError
        An argument is unknown or of the wrong type.
    NotImplementedError
        ``inputs`` or ``dtype`` is given.
    UsageError, AssumptionError
        The value of an argument does not fit the model.
    Error, OSError
        The model cannot be read or written.
    ModuleNotFoundError
        onnx is not installed, or, with `model_check`, onnxruntime.
    """
    require("onnx", "slim")
    import onnx

    known = [*SlimOptions.__annotations__, "model_check", "output_model"]
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise TypeError(f"slim() has no argument '{unknown[0]}'{nearest(unknown[0], known)}")
    if arguments.get("inputs") or arguments.get("dtype"):
        raise NotImplementedError("slim() has no inputs and dtype; use onnx.utils.extract_model or onnxconverter-common")
    idle = [name for name in _IDLE if arguments.get(name)]
    if idle:
        warnings.warn(f"{', '.join(idle)}: no effect in onnx_slice_fold.slim", UserWarning, stacklevel=2)
    if is_a(model, list):
        reports = [_inspected(each) for each in model]
        for report in reports:
            _log.info("%s", report)
        return reports
    if not is_path(model) and not is_proto(model):
        raise TypeError(f"model is a path, an onnx.ModelProto or a list of them, and not a {kind_of(model)}; fold accepts other forms")
    if output_model is not None and not is_path(output_model):
        raise TypeError(f"output_model is a path, and not a {kind_of(output_model)}")
    original: onnx.ModelProto = onnx.load(model) if isinstance(model, (str, os.PathLike)) else model
    if arguments.get("outputs"):
        original = _cut(original, texts("outputs", arguments["outputs"], '["y"]'))
    options: dict[str, Any] = {}
    if arguments.get("input_shapes"):
        options["input_shapes"] = _shapes(arguments["input_shapes"])
        original = overwritten(original, options["input_shapes"])
    if arguments.get("size_threshold"):
        threshold = arguments["size_threshold"]
        number = int(threshold) if isinstance(threshold, str) and threshold.isdecimal() else threshold
        options["max_constant"] = whole("size_threshold", number)
    folded: onnx.ModelProto
    folded, report = fold(original, **options)
    if model_check and not agree(
        original, folded, 1, shapes=options.get("input_shapes"), data=_data(arguments.get("model_check_inputs"))
    ):
        return None
    _log.info("%s", report)
    if output_model is None:
        return folded
    opened(folded, None).save(output_model, bool(arguments.get("save_as_external_data")))
    return None


def _inspected(model: Any) -> Report:
    """Describes a model without a change."""
    found = opened(model, None).fold({"fold": False}, None)
    return report_of(found, found["bytes_before"])


def _shapes(given: Any) -> dict[str, list[Any]]:
    """Reads ``x:1,3,224,224`` as a shape by name."""
    if is_a(given, dict):
        listed = [f"{name}:{','.join(map(str, shape))}" for name, shape in given.items()]
        raise TypeError(f"input_shapes must be a list of texts, not dict; write input_shapes={listed}")
    shapes: dict[str, list[Any]] = {}
    for text in texts("input_shapes", given, '["x:1,3,224,224"]'):
        name, colon, shape = text.rpartition(":")
        if not colon:
            raise UsageError(f"'{text}' is not the shape of an input; write x:1,3,224,224")
        shapes[name] = [int(size) if size.strip().lstrip("-").isdigit() else size.strip() for size in shape.split(",")]
    return shapes


def _cut(model: onnx.ModelProto, outputs: Sequence[str]) -> onnx.ModelProto:
    """Returns a copy of the model with these outputs, which may be inner values."""
    import onnx

    found = {value.name: value for value in (*model.graph.output, *model.graph.value_info)}
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    del copied.graph.output[:]
    for text in outputs:
        name = text.partition(":")[0]
        copied.graph.output.append(found.get(name) or onnx.ValueInfoProto(name=name))
    return copied


def _data(given: Any) -> Optional[dict[str, Any]]:
    """Loads the arrays of ``x:data.npy`` by name."""
    if not given:
        return None
    require("numpy", "model_check_inputs")
    import numpy

    pairs = [text.rpartition(":") for text in texts("model_check_inputs", given, '["x:data.npy"]')]
    return {name: numpy.load(path) for name, _, path in pairs}
