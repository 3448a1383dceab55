"""Comparison of a folded model with the original in ONNX Runtime, on random inputs or given ones."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

from ._errors import UsageError
from ._extras import is_a, require
from ._types import AnyPath

if TYPE_CHECKING:
    import numpy
    import onnx

FILLS = ("random", "ones", "zeros", "arange")


def agree(
    original: onnx.ModelProto,
    folded: onnx.ModelProto,
    times: int,
    *,
    shapes: Optional[Mapping[Optional[str], Sequence[Optional[int]]]] = None,
    data: Optional[Mapping[str, numpy.ndarray[Any, Any]]] = None,
    custom_lib: Optional[AnyPath] = None,
    providers: Optional[Sequence[Any]] = None,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    fill: str = "random",
) -> bool:
    """Returns ``True`` if both models compute the same outputs up to rounding, in ``times`` runs."""
    if fill not in FILLS:
        raise ValueError(f"input_fill is {fill!r}; it must be one of {', '.join(FILLS)}")
    sessions = [_session(model, custom_lib, providers) for model in (original, folded)]
    for run in range(times):
        feeds = dict(data) if data is not None else _inputs(original, shapes or {}, fill, run)
        wanted, found = (session.run(None, feeds) for session in sessions)
        if len(wanted) != len(found) or not all(_close(a, b, rtol, atol) for a, b in zip(wanted, found)):
            return False
    return True


def _session(model: onnx.ModelProto, custom_lib: Optional[AnyPath], providers: Optional[Sequence[Any]]) -> Any:
    onnxruntime = require("onnxruntime", "a comparison in ONNX Runtime")
    options = onnxruntime.SessionOptions()
    # Optimizations are disabled, so that the models themselves are compared.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    if custom_lib is not None:
        options.register_custom_ops_library(os.fspath(custom_lib))
    providers = list(providers) if providers else ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)


def _inputs(
    model: onnx.ModelProto, shapes: Mapping[Optional[str], Sequence[Optional[int]]], fill: str, seed: int
) -> dict[str, numpy.ndarray[Any, Any]]:
    import numpy
    import onnx

    generator = numpy.random.default_rng(seed)
    given = {initializer.name for initializer in model.graph.initializer}
    feeds: dict[str, numpy.ndarray[Any, Any]] = {}
    inputs = [value for value in model.graph.input if value.name not in given]
    for value in inputs:
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type"):
            raise UsageError(f"input '{value.name}' is not a tensor; pass its value in input_data")
        shape: Optional[Sequence[Optional[int]]] = shapes.get(value.name)
        if shape is None and len(inputs) == 1:
            shape = shapes.get(None, shapes.get(""))
        if shape is None:
            shape = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
        sizes = [size for size in shape if size is not None and size >= 0]
        if len(sizes) != len(shape):
            raise ValueError(f"input '{value.name}' has open dimensions: give test_input_shapes")
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        feeds[value.name] = _filled(generator, tuple(sizes), numpy.dtype(dtype), fill)
    return feeds


def _filled(
    generator: numpy.random.Generator, shape: tuple[int, ...], dtype: numpy.dtype[Any], fill: str
) -> numpy.ndarray[Any, Any]:
    import numpy

    count = int(numpy.prod(shape, dtype=numpy.int64))
    if dtype == object:
        return numpy.full(shape, "a", dtype=object)
    if fill == "ones":
        return numpy.ones(shape, dtype)
    if fill == "zeros":
        return numpy.zeros(shape, dtype)
    if fill == "arange":
        return numpy.arange(count).reshape(shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        # Integers may be indices or amounts: small enough to be in range for most operators.
        return generator.integers(0, 2, shape).astype(dtype)
    return generator.random(shape).astype(dtype)


def _close(wanted: Any, found: Any, rtol: float, atol: float) -> bool:
    import numpy

    if is_a(wanted, list, tuple):
        return len(wanted) == len(found) and all(_close(a, b, rtol, atol) for a, b in zip(wanted, found))
    if is_a(wanted, dict):
        return wanted.keys() == found.keys() and all(_close(wanted[key], found[key], rtol, atol) for key in wanted)
    if wanted is None or found is None:
        return wanted is found
    wanted, found = numpy.asarray(wanted), numpy.asarray(found)
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return False
    if wanted.dtype.kind in "fc" or wanted.dtype.name == "bfloat16":
        return bool(numpy.allclose(wanted.astype(numpy.complex128), found.astype(numpy.complex128), rtol, atol, True))
    return bool(numpy.array_equal(wanted, found))
