"""Shapes of inputs put in place of those the model declares, static ones included, as onnxsim and OnnxSlim do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

if TYPE_CHECKING:
    import onnx


def overwritten(model: onnx.ModelProto, shapes: Mapping[str, Sequence[Any]]) -> onnx.ModelProto:
    """A copy in which these inputs have these shapes, as far as they say another number than the model; otherwise the model itself.

    What the file declares of other values belongs to the old sizes then, and goes: folding states it anew.
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
    """Whether the shape is of the declared rank and says another number where the model has one."""
    dims = value.type.tensor_type.shape.dim
    if not value.type.tensor_type.HasField("shape") or len(dims) != len(shape):
        return False
    return any(
        dim.HasField("dim_value") and size not in (None, -1, dim.dim_value) for dim, size in zip(dims, shape)
    )
