"""Shape inference under the signatures of ``onnx.shape_inference`` and of ONNX Runtime's ``SymbolicShapeInference``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._models import AnyPath, is_ir, is_proto, opened_quietly, to_proto

if TYPE_CHECKING:
    import onnx


def infer_shapes(
    model: Any, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> onnx.ModelProto:
    """The model with every shape that is proved written into ``value_info``; nodes stay as they are.

    The signature is that of ``onnx.shape_inference.infer_shapes``. Contents are always followed, whatever ``data_prop`` says;
    ``strict_mode`` and ``check_type`` make a model an error of which no run can succeed. An ``onnx_ir.Model`` gives one back.
    """
    held = opened_quietly(model)
    held.fold({"fold": False, "shapes": "all", "stamp": False, "strict": strict_mode or check_type}, None)
    proto, _ = to_proto(held)
    if is_ir(model):
        import onnx_ir

        return onnx_ir.from_proto(proto)
    return proto


def infer_shapes_path(
    model_path: AnyPath,
    output_path: AnyPath = "",
    check_type: bool = False,
    strict_mode: bool = False,
    data_prop: bool = False,
) -> None:
    """The same from file to file, for models of any size; in place if ``output_path`` is empty."""
    held = opened_quietly(model_path)
    held.fold({"fold": False, "shapes": "all", "stamp": False, "strict": strict_mode or check_type}, None)
    held.save(output_path or model_path, False)


class SymbolicShapeInference:
    """Under the name and signature of ``onnxruntime.tools.symbolic_shape_infer``."""

    @staticmethod
    def infer_shapes(
        in_mp: onnx.ModelProto,
        int_max: int = 2**31 - 1,
        auto_merge: bool = False,
        guess_output_rank: bool = False,
        verbose: int = 0,
    ) -> onnx.ModelProto:
        """The model with every shape that is proved. Nothing is merged or guessed: ``auto_merge`` and ``guess_output_rank`` ask
        for shapes that may be wrong, and what is proved is proved without."""
        if not is_proto(in_mp):
            raise TypeError("in_mp is an onnx.ModelProto")
        return infer_shapes(in_mp)
