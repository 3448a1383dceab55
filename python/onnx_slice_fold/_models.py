"""Models of every kind users hold, in and out: paths, bytes, file objects, ``onnx.ModelProto``, ``onnx_ir.Model``.

Neither ``onnx`` nor ``onnx_ir`` is imported here before a model of theirs is seen, so that importing this package is quick.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Iterable, Optional, TypeVar, Union

from . import _core
from ._errors import LimitError, UsageError

if TYPE_CHECKING:
    import onnx
    import onnx_ir

    ModelLike = Union[str, os.PathLike[str], bytes, bytearray, memoryview, BinaryIO, onnx.ModelProto, onnx_ir.Model]

AnyPath = Union[str, "os.PathLike[str]"]
Roots = Union[AnyPath, Iterable[AnyPath], None]
Model = TypeVar("Model")

TWO_GIGABYTES = (1 << 31) - 1


def is_path(model: object) -> bool:
    return isinstance(model, (str, os.PathLike))


def is_proto(model: object) -> bool:
    """Whether it is an ``onnx.ModelProto``; if onnx was never imported nothing is one."""
    onnx = sys.modules.get("onnx")
    return onnx is not None and isinstance(model, onnx.ModelProto)


def is_ir(model: object) -> bool:
    onnx_ir = sys.modules.get("onnx_ir")
    return onnx_ir is not None and isinstance(model, onnx_ir.Model)


def opened(model: Any, base_dir: Optional[AnyPath], roots: Roots = None) -> _core.Model:
    """The compiled half's model of what the user holds. External data is looked for below ``base_dir``, or beside the path, and
    below ``roots``; a warning tells which files are missing."""
    held = opened_quietly(model, base_dir, roots)
    for text in held.missing_data():
        warnings.warn(f"{text}; if the file is elsewhere, name its directory in external_data_roots", stacklevel=3)
    return held


def opened_quietly(model: Any, base_dir: Optional[AnyPath] = None, roots: Roots = None) -> _core.Model:
    """The same without warnings."""
    more = [roots] if isinstance(roots, (str, os.PathLike)) else list(roots or ())
    if is_path(model):
        return _core.Model.open(model, more)
    own = [] if base_dir is None else [base_dir]
    if isinstance(model, (bytes, bytearray)):
        return _core.Model.from_bytes(model, own + more)
    if isinstance(model, memoryview):
        return _core.Model.from_bytes(model.tobytes(), own + more)
    if is_proto(model):
        return _opened_proto(model, own + more)
    if is_ir(model):
        return _opened_ir(model, own, more)
    if hasattr(model, "read"):
        data = model.read()
        if not isinstance(data, bytes):
            raise UsageError("the file object gives text; it must be opened in binary mode")
        return _core.Model.from_bytes(data, own + more)
    raise TypeError(
        "a model is a path, bytes, a binary file object, an onnx.ModelProto or an onnx_ir.Model, "
        f"and not a {type(model).__module__}.{type(model).__qualname__}"
    )


def _opened_proto(model: onnx.ModelProto, roots: list[AnyPath]) -> _core.Model:
    try:
        data = model.SerializeToString()
    except Exception as error:  # Protobuf's own kinds of error differ between its versions.
        if model.ByteSize() > TWO_GIGABYTES:
            return _opened_by_file(model)
        raise UsageError(f"the ModelProto cannot be serialized: {error}") from error
    if len(data) > TWO_GIGABYTES:
        return _opened_by_file(model)
    return _core.Model.from_bytes(data, roots)


def _opened_by_file(model: onnx.ModelProto) -> _core.Model:
    """A model over the 2 GiB of a protobuf message goes through files. The compiled half keeps them open, so they can go at once."""
    import onnx

    with tempfile.TemporaryDirectory(prefix="onnx-slice-fold-") as directory:
        path = os.path.join(directory, "model.onnx")
        # onnx moves the payloads out of the message it saves.
        copied = onnx.ModelProto()
        copied.CopyFrom(model)
        onnx.save_model(copied, path, save_as_external_data=True, location="model.onnx.data")
        return _core.Model.open(path, [])


def _opened_ir(model: onnx_ir.Model, own: list[AnyPath], more: list[AnyPath]) -> _core.Model:
    import onnx_ir

    return _opened_proto(onnx_ir.to_proto(model), (own or _directory_of(model)) + more)


def _directory_of(model: onnx_ir.Model) -> list[AnyPath]:
    """The one directory that the model's external tensors are in, if they are."""
    import onnx_ir

    found = set()
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, onnx_ir.ExternalTensor):
                found.add(os.fspath(value.const_value.base_dir))
    if len(found) > 1:
        raise UsageError(f"external tensors of the model are in several directories: {', '.join(sorted(found))}")
    return list(found)


def given_back(model: Any, folded: _core.Model, output: Any) -> tuple[Any, int]:
    """The folded model as the kind that ``model`` was, or written to ``output``, and its bytes."""
    if output is not None:
        return _written(folded, output)
    if is_path(model):
        return _written(folded, type_of_path(model)(beside(model)))
    if is_proto(model):
        return to_proto(folded)
    if is_ir(model):
        import onnx_ir

        proto, size = to_proto(folded)
        return onnx_ir.from_proto(proto), size
    data = folded.to_bytes()
    if isinstance(model, (bytes, bytearray, memoryview)):
        return type(model)(data), len(data)
    return io.BytesIO(data), len(data)


def _written(folded: _core.Model, output: Any) -> tuple[Any, int]:
    if is_path(output):
        return output, folded.save(output, False)
    if hasattr(output, "write"):
        data = folded.to_bytes()
        output.write(data)
        return output, len(data)
    raise TypeError(f"output is a path or a binary file object, and not a {type(output).__qualname__}")


def type_of_path(path: AnyPath) -> Callable[[str], Any]:
    """Makes paths of the kind the user uses."""
    return str if isinstance(path, str) else type(path)


def beside(path: AnyPath) -> str:
    """``model.folded.onnx`` for ``model.onnx``, as the program names it."""
    stem, extension = os.path.splitext(os.fspath(path))
    return f"{stem}.folded{extension}"


def to_proto(folded: _core.Model) -> tuple[onnx.ModelProto, int]:
    """The model as a message, payloads included."""
    import onnx

    try:
        data = folded.to_bytes()
    except LimitError:
        with tempfile.TemporaryDirectory(prefix="onnx-slice-fold-") as directory:
            path = os.path.join(directory, "model.onnx")
            size = folded.save(path, False)
            return onnx.load(path), size
    proto = onnx.ModelProto()
    proto.ParseFromString(data)
    return proto, len(data)
