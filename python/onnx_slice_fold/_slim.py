"""``slim`` with OnnxSlim's signature and meaning."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from ._check import agree
from ._errors import UsageError
from ._fold import fold
from ._models import is_path, opened
from ._overwrite import overwritten
from ._report import Report, report_of

if TYPE_CHECKING:
    import onnx

# Arguments of OnnxSlim that say how it works, or what it prints.
_IDLE = ("skip_optimizations", "skip_fusion_patterns", "no_shape_infer", "dump_to_disk", "verbose")
_KNOWN = {*_IDLE, "input_shapes", "inputs", "outputs", "model_check", "model_check_inputs", "dtype", "size_threshold",
          "save_as_external_data", "inspect", "output_model"}


def slim(
    model: Union[str, onnx.ModelProto, list[Any]], output_model: Optional[str] = None, **arguments: Any
) -> Optional[onnx.ModelProto]:
    """The folded model; or None, and the model in a file, if ``output_model`` is given. A list of models is only told of.

    Arguments are those of OnnxSlim 0.1, with its meaning, and as there None is what a failed ``model_check`` gives. Those that say how
    OnnxSlim works are warned of; ``inputs`` and ``dtype``, which ask for another model, raise ``NotImplementedError``.
    """
    import onnx

    unknown = [name for name in arguments if name not in _KNOWN]
    if unknown:
        raise TypeError(f"slim() has no argument '{unknown[0]}'")
    if arguments.get("inputs") or arguments.get("dtype"):
        raise NotImplementedError("inputs and dtype are not there: use onnx.utils.extract_model, onnxconverter-common")
    idle = [name for name in _IDLE if arguments.get(name)]
    if idle:
        warnings.warn(f"{', '.join(idle)}: nothing here to act on", UserWarning, stacklevel=2)
    if isinstance(model, list):
        for each in model:
            print(_inspected(each))
        return None
    original = onnx.load(model) if is_path(model) else model
    if arguments.get("outputs"):
        original = _cut(original, arguments["outputs"])
    options: dict[str, Any] = {}
    if arguments.get("input_shapes"):
        options["input_shapes"] = _shapes(arguments["input_shapes"])
        original = overwritten(original, options["input_shapes"])
    if arguments.get("size_threshold"):
        options["max_constant"] = int(arguments["size_threshold"])
    folded, report = fold(original, **options)
    if arguments.get("model_check") and not agree(
        original, folded, 1, shapes=options.get("input_shapes"), data=_data(arguments.get("model_check_inputs"))
    ):
        return None
    if output_model is None:
        return folded
    opened(folded, None).save(output_model, bool(arguments.get("save_as_external_data")))
    print(report)
    return None


def _inspected(model: Any) -> Report:
    """What a model consists of, nothing being changed."""
    found = opened(model, None).fold({"fold": False}, None)
    return report_of(found, found["bytes_before"])


def _shapes(texts: Sequence[str]) -> dict[str, list[Any]]:
    """``x:1,3,224,224`` by name."""
    shapes = {}
    for text in texts:
        name, colon, shape = text.rpartition(":")
        if not colon:
            raise UsageError(f"'{text}' is no shape of an input such as x:1,3,224,224")
        shapes[name] = [int(size) if size.strip().lstrip("-").isdigit() else size.strip() for size in shape.split(",")]
    return shapes


def _cut(model: onnx.ModelProto, outputs: Sequence[str]) -> onnx.ModelProto:
    """The model with these outputs, which may be any values inside."""
    import onnx

    found = {value.name: value for value in (*model.graph.output, *model.graph.value_info)}
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    del copied.graph.output[:]
    for text in outputs:
        name = text.partition(":")[0]
        copied.graph.output.append(found.get(name) or onnx.ValueInfoProto(name=name))
    return copied


def _data(texts: Optional[Sequence[str]]) -> Optional[dict[str, Any]]:
    """``x:data.npy`` by name."""
    import numpy

    if not texts:
        return None
    return {name: numpy.load(path) for name, _, path in (text.rpartition(":") for text in texts)}
