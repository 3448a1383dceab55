"""Types of models, outputs and paths in signatures.

``onnx`` and ``onnx_ir`` are optional, and their classes are ``Any`` for a type checker that does not find them. Protocols describe their models
here, so that ``fold(42)`` is a type error without them, too.
"""

from __future__ import annotations

import os
from typing import Any, Iterable, Protocol, Type, TypeVar, Union

AnyPath = Union[str, os.PathLike[str]]
Roots = Union[AnyPath, Iterable[AnyPath], None]


class ProtoModel(Protocol):
    """The part of ``onnx.ModelProto`` that identifies it."""

    @property
    def graph(self) -> Any: ...

    @property
    def opset_import(self) -> Any: ...

    def ByteSize(self) -> int: ...

    def SerializeToString(self) -> bytes: ...


class IrModel(Protocol):
    """The part of ``onnx_ir.Model`` that identifies it."""

    @property
    def graph(self) -> Any: ...

    @property
    def opset_imports(self) -> Any: ...

    @property
    def functions(self) -> Any: ...


class BinarySource(Protocol):
    """A file object opened for reading in binary mode."""

    def read(self) -> bytes: ...


class BinarySink(Protocol):
    """A file object opened for writing in binary mode."""

    def write(self, data: bytes, /) -> object: ...


Memory = Union[bytes, bytearray, memoryview]
ModelLike = Union[ProtoModel, IrModel, AnyPath, Memory, BinarySource]
Output = Union[AnyPath, BinarySink]

# A model that comes back in its own type. ``str`` and file objects have overloads of their own.
SameT = TypeVar("SameT", bound=Union[ProtoModel, IrModel, os.PathLike[str], Memory])
OutputT = TypeVar("OutputT", bound=Output)
# A form that is requested by its class, as in ``fold("model.onnx", bytes)``.
FormT = TypeVar("FormT", bound=Union[ProtoModel, IrModel, bytes, bytearray])
IrT = TypeVar("IrT", bound=IrModel)
Form = Type[Union[ProtoModel, IrModel, bytes, bytearray]]
