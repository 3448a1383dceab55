"""Models in every form that users have, as input and as output: paths, bytes, file objects, ``onnx.ModelProto``, ``onnx_ir.Model``.

Neither ``onnx`` nor ``onnx_ir`` is imported here before a model of its class is seen, so that importing this package is quick.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, Callable, Optional, cast

from . import _core
from ._errors import LimitError, UsageError
from ._extras import is_a, require
from ._options import directories, kind_of
from ._types import AnyPath, ModelLike, Roots

if TYPE_CHECKING:
    from typing import TypeGuard

    import onnx
    import onnx_ir

TWO_GIGABYTES = (1 << 31) - 1


def is_path(model: object) -> TypeGuard[AnyPath]:
    """Returns ``True`` if the model is a path."""
    return isinstance(model, (str, os.PathLike))


def is_proto(model: object) -> TypeGuard[onnx.ModelProto]:
    """Returns ``True`` if the model is an ``onnx.ModelProto``; without onnx in memory, no object is one."""
    onnx = sys.modules.get("onnx")
    return onnx is not None and isinstance(model, onnx.ModelProto)


def is_ir(model: object) -> TypeGuard[onnx_ir.Model]:
    """Returns ``True`` if the model is an ``onnx_ir.Model``; without onnx_ir in memory, no object is one."""
    onnx_ir = sys.modules.get("onnx_ir")
    return onnx_ir is not None and isinstance(model, onnx_ir.Model)


def opened(model: ModelLike, base_dir: Optional[AnyPath], roots: Roots = None) -> _core.Model:
    """Opens a model in the compiled half. External data is in the directory of the path or in ``base_dir``, or in one of ``roots``; a warning
    lists missing files."""
    held = opened_quietly(model, base_dir, roots)
    for text in held.missing_data():
        warnings.warn(f"{text}; if the file is elsewhere, name its directory in external_data_roots", stacklevel=3)
    return held


def opened_quietly(model: ModelLike, base_dir: Optional[AnyPath] = None, roots: Roots = None) -> _core.Model:
    """Opens a model without warnings."""
    more = directories("external_data_roots", roots)
    own = directories("base_dir", [] if base_dir is None else [base_dir])
    if is_path(model):
        return _core.Model.open(model, more)
    if isinstance(model, (bytes, bytearray)):
        return _core.Model.from_bytes(model, own + more)
    if isinstance(model, memoryview):
        return _core.Model.from_bytes(model.tobytes(), own + more)
    if is_proto(model):
        return _opened_proto(model, own + more)
    if is_ir(model):
        return _opened_ir(model, own, more)
    read = getattr(model, "read", None)
    if callable(read):
        data = read()
        if not isinstance(data, bytes):
            raise UsageError('the file object returns text; open it in binary mode: open(path, "rb")')
        return _core.Model.from_bytes(data, own + more)
    raise TypeError(
        "a model is a path, bytes, a binary file object, an onnx.ModelProto or an onnx_ir.Model, "
        f"and not a {type(model).__module__}.{type(model).__qualname__}{_fix(model)}"
    )


def _fix(model: object) -> str:
    """The remedy for objects that contain a model or a part of one."""
    if isinstance(model, type):
        return "; pass a model of this class, not the class"
    if hasattr(model, "model_proto"):
        return "; pass its attribute model_proto"
    if hasattr(model, "model"):
        return "; pass its attribute model, or use onnx_slice_fold.torch_export.fold_program"
    if type(model).__name__ == "GraphProto":
        return "; pass onnx.helper.make_model(graph)"
    if isinstance(model, (list, tuple)):
        return "; call the function once for each model"
    return ""


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
    """Opens a model over the 2 GiB of a protobuf message through temporary files. The compiled half keeps them open, so they are removed at once."""
    import onnx

    import tempfile
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
    """Returns the directory that contains all external tensors of the model, if there is one."""
    import onnx_ir

    found: set[str] = set()
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, onnx_ir.ExternalTensor):
                found.add(os.fspath(cast(AnyPath, value.const_value.base_dir)))
    if len(found) > 1:
        raise UsageError(f"external tensors of the model are in several directories: {', '.join(sorted(found))}")
    return list(found)


def check_output(output: Any) -> None:
    """Rejects a wrong destination before any work."""
    if is_a(output, type):
        if not issubclass(output, (bytes, bytearray)) and _name_of(output) not in ("onnx.ModelProto", "onnx_ir.Model"):
            raise TypeError(f"output is the class {output.__qualname__}; it must be bytes, bytearray, onnx.ModelProto or onnx_ir.Model")
    elif isinstance(output, io.TextIOBase):
        raise UsageError('output is a text file; open it in binary mode: open(path, "wb")')
    elif output is not None and not is_path(output) and not hasattr(output, "write"):
        raise TypeError(f"output is a path, a binary file object or a class such as bytes, and not a {kind_of(output)}")


def _name_of(form: type[Any]) -> str:
    """Returns the name of a class under its package, without an import of onnx or onnx_ir."""
    return f"{form.__module__.partition('.')[0]}.{form.__qualname__}"


def given_back(model: Any, folded: _core.Model, output: Any) -> tuple[Any, int]:
    """Returns the folded model and its size in bytes, after writing it if `output` or `model` is a path or `output` a file object."""
    if is_a(output, type):
        return _made(folded, output)
    if output is not None:
        return _written(folded, output)
    if is_path(model):
        return _written(folded, type_of_path(model)(beside(model)))
    if is_proto(model):
        return to_proto(folded)
    if is_ir(model):
        return _to_ir(folded)
    if is_a(model, bytes, bytearray, memoryview):
        return _made(folded, type(model))
    return _made(folded, io.BytesIO)


def _made(folded: _core.Model, form: Any) -> tuple[Any, int]:
    """Returns the model as an object of a class."""
    name = _name_of(form)
    if name == "onnx.ModelProto":
        return to_proto(folded)
    if name == "onnx_ir.Model":
        return _to_ir(folded)
    data = folded.to_bytes()
    return form(data), len(data)


def _to_ir(folded: _core.Model) -> tuple[onnx_ir.Model, int]:
    import onnx_ir

    proto, size = to_proto(folded)
    return onnx_ir.from_proto(proto), size


def _written(folded: _core.Model, output: Any) -> tuple[Any, int]:
    if is_path(output):
        return output, folded.save(output, False)
    data = folded.to_bytes()
    output.write(data)
    return output, len(data)


def type_of_path(path: AnyPath) -> Callable[[str], Any]:
    """Returns the constructor of paths of the caller's type."""
    return str if isinstance(path, str) else type(path)


def beside(path: AnyPath) -> str:
    """Returns ``model.folded.onnx`` for ``model.onnx``, the program's default path."""
    text: str = os.fspath(path)
    stem, extension = os.path.splitext(text)
    return f"{stem}.folded{extension}"


def to_proto(folded: _core.Model) -> tuple[onnx.ModelProto, int]:
    """Returns the model as a message, with its payloads."""
    require("onnx", "a result of type onnx.ModelProto")
    import onnx

    try:
        data = folded.to_bytes()
    except LimitError:
        import tempfile
        with tempfile.TemporaryDirectory(prefix="onnx-slice-fold-") as directory:
            path = os.path.join(directory, "model.onnx")
            size = folded.save(path, False)
            return onnx.load(path), size
    proto = onnx.ModelProto()
    proto.ParseFromString(data)
    return proto, len(data)
