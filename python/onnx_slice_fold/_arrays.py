"""Converts tensors between numpy and the compiled half, which represents each by its element type, its shape and its payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import UsageError
from ._extras import is_a, require

if TYPE_CHECKING:
    import numpy

# Element types with another name in numpy than in ONNX text syntax; those below a byte are in a separate table.
_NUMPY = {"float": "float32", "double": "float64"}
_ML_DTYPES = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
}
_PACKED = {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}
_PACKED_ML_DTYPES = {"float4e2m1": "float4_e2m1fn"}


def value_of(value: Any) -> Any:
    import numpy

    if value is None:
        return None
    if is_a(value, list, tuple) and any(is_a(item, numpy.ndarray) for item in value):
        return [value_of(item) for item in value]
    if not is_a(value, numpy.ndarray, numpy.generic) and hasattr(value, "__dlpack__"):
        value = numpy.from_dlpack(value)
    array: numpy.ndarray[Any, Any] = numpy.asarray(value)
    name = name_of(array.dtype)
    if name == "string":
        items: list[Any] = array.ravel().tolist()
        strings = [item if isinstance(item, bytes) else str(item).encode() for item in items]
        return name, list(array.shape), strings
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    payload = array.tobytes()
    if name in _PACKED:
        payload = _packed(numpy.frombuffer(payload, numpy.uint8), _PACKED[name])
    return name, list(array.shape), payload


def name_of(dtype: numpy.dtype[Any]) -> str:
    if dtype.kind in "OSUT":
        return "string"
    for name, spelled in (*_NUMPY.items(), *_ML_DTYPES.items(), *_PACKED_ML_DTYPES.items()):
        if dtype.name == spelled:
            return name
    if dtype.name in _PACKED or dtype.kind in "biufc":
        return dtype.name
    raise UsageError(f"arrays of {dtype} are no tensors of ONNX; convert the array with astype")


def array_of(value: Any) -> Any:
    import numpy

    if is_a(value, list):
        return [array_of(item) for item in value]
    if value is None:
        return None
    if len(value) == 2:
        keys, values = value
        return dict(zip(array_of(keys).tolist(), map(array_of, values)))
    name, shape, payload = value
    if name == "string":
        strings: numpy.ndarray[Any, Any] = numpy.empty(len(payload), dtype=object)
        strings[:] = [text.decode(errors="surrogateescape") for text in payload]
        return strings.reshape(shape)
    if name in _PACKED:
        return _unpacked(name, shape, payload)
    return numpy.frombuffer(payload, _dtype(name)).reshape(shape)


def _dtype(name: str) -> Any:
    import numpy

    if name in _ML_DTYPES:
        require("ml_dtypes", f"an array of {name}")
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    dtype: numpy.dtype[Any] = numpy.dtype(_NUMPY.get(name, name))
    return dtype


def _packed(codes: numpy.ndarray[Any, Any], bits: int) -> bytes:
    """Packs elements of less than a byte, the first one in the lowest bits."""
    import numpy

    per_byte = 8 // bits
    padded = numpy.zeros(-(-codes.size // per_byte) * per_byte, numpy.uint8)
    padded[: codes.size] = codes & ((1 << bits) - 1)
    shifted = padded.reshape(-1, per_byte) << (numpy.arange(per_byte, dtype=numpy.uint8) * bits)
    packed: numpy.ndarray[Any, Any] = numpy.bitwise_or.reduce(shifted, axis=1)
    return packed.astype(numpy.uint8).tobytes()


def _unpacked(name: str, shape: list[int], payload: bytes) -> numpy.ndarray[Any, Any]:
    require("ml_dtypes", f"an array of {name}")
    import ml_dtypes
    import numpy

    bits = _PACKED[name]
    packed = numpy.frombuffer(payload, numpy.uint8)[:, None]
    codes = (packed >> (numpy.arange(8 // bits, dtype=numpy.uint8) * bits)) & ((1 << bits) - 1)
    codes = codes.reshape(-1)[: int(numpy.prod(shape, dtype=numpy.int64))].reshape(shape)
    dtype = numpy.dtype(getattr(ml_dtypes, _PACKED_ML_DTYPES.get(name, name)))
    if name.startswith("int"):
        signed = codes.astype(numpy.int8)
        return numpy.where(signed >= 1 << (bits - 1), signed - (1 << bits), signed).astype(dtype)
    return codes.astype(numpy.uint8).view(dtype) if name.startswith("float") else codes.astype(dtype)
