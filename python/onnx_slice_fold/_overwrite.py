"""Replaces declared shapes of inputs, static ones included, as onnxsim and OnnxSlim do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

if TYPE_CHECKING:
    import onnx


def overwritten(model: onnx.ModelProto, shapes: Mapping[str, Sequence[Any]]) -> onnx.ModelProto:
    """Returns a copy in which these inputs have these shapes; the model itself if every number equals the model's.

    The declared shapes of other values depend on the old sizes, so they are removed, and folding infers them again.
    """
    import onnx

    if not any(_differs(value, shapes[value.name]) for value in model.graph.input if value.name in shapes):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for value in changed.graph.input:
        if value.name not in shapes or not _differs(value, shapes[value.name]):
            continue
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes[value.name]):
            if isinstance(size, int) and size >= 0:
                dim.dim_value = size
            elif isinstance(size, str):
                dim.dim_param = size
    graphs = [changed.graph]
    while graphs:
        graph = graphs.pop()
        del graph.value_info[:]
        for value in graph.output:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
        for attribute in (attribute for node in graph.node for attribute in node.attribute):
            graphs.extend([attribute.g] if attribute.HasField("g") else attribute.graphs)
    return changed


def _differs(value: onnx.ValueInfoProto, shape: Sequence[Any]) -> bool:
    """Returns ``True`` if the shape has the declared rank and another number than the model for some dim."""
    dims = value.type.tensor_type.shape.dim
    if not value.type.tensor_type.HasField("shape") or len(dims) != len(shape):
        return False
    return any(
        dim.HasField("dim_value") and size not in (None, -1, dim.dim_value) for dim, size in zip(dims, shape)
    )
