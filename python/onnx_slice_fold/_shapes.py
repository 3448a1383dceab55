"""Shape inference under the signatures of ``onnx.shape_inference`` and of ONNX Runtime's ``SymbolicShapeInference``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union, overload

from . import _core
from ._models import is_ir, is_path, is_proto, opened_quietly, to_proto
from ._options import kind_of
from ._types import AnyPath, BinarySource, IrT, Memory, ModelLike, ProtoModel

if TYPE_CHECKING:
    import onnx


@overload
def infer_shapes(
    model: ProtoModel, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> onnx.ModelProto: ...
@overload
def infer_shapes(model: IrT, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False) -> IrT: ...
@overload
def infer_shapes(
    model: Union[AnyPath, Memory, BinarySource], check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> onnx.ModelProto: ...
def infer_shapes(
    model: ModelLike, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> Any:
    """Writes every shape that holds for all inputs into ``value_info``. Nodes are not changed.

    The signature is that of ``onnx.shape_inference.infer_shapes``.

    Parameters
    ----------
    model : path, bytes, binary file object, onnx.ModelProto or onnx_ir.Model
        The model. It is not changed.
    check_type, strict_mode : bool, default False
        True to reject a model for which every run fails.
    data_prop : bool, default False
        No effect: the contents of integer tensors are always propagated.

    Returns
    -------
    onnx.ModelProto or onnx_ir.Model
        A new ``onnx_ir.Model`` for an ``onnx_ir.Model``, and a new ``onnx.ModelProto`` for all other forms, paths and bytes included. No
        file is written; `infer_shapes_path` writes one.

    Raises
    ------
    TypeError
        `model` is not a model.
    ImpossibleError
        Every run fails, and `check_type` or `strict_mode` is set.
    Error, OSError
        The model cannot be read.
    ModuleNotFoundError
        onnx is not installed.
    """
    held = _inferred(model, strict_mode or check_type)
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
    """Infers shapes like `infer_shapes`, from file to file, for models of any size.

    Parameters
    ----------
    model_path : path
        The file to read.
    output_path : path, optional
        The file to write; `model_path` if empty.
    check_type, strict_mode, data_prop : bool, default False
        As for `infer_shapes`.

    Raises
    ------
    TypeError
        An argument is not a path.
    ImpossibleError
        Every run fails, and `check_type` or `strict_mode` is set.
    Error, OSError
        The model cannot be read or written.
    """
    for name, path in (("model_path", model_path), ("output_path", output_path)):
        if not is_path(path):
            raise TypeError(f"{name} must be a path, not {kind_of(path)}; infer_shapes accepts models in memory")
    _inferred(model_path, strict_mode or check_type).save(output_path or model_path, False)


def _inferred(model: ModelLike, strict: bool) -> _core.Model:
    held = opened_quietly(model)
    held.fold({"fold": False, "shapes": "all", "stamp": False, "strict": bool(strict)}, None)
    return held


class SymbolicShapeInference:
    """Shape inference under the name and signature of ``onnxruntime.tools.symbolic_shape_infer``."""

    @staticmethod
    def infer_shapes(
        in_mp: onnx.ModelProto,
        int_max: int = 2**31 - 1,
        auto_merge: bool = False,
        guess_output_rank: bool = False,
        verbose: int = 0,
    ) -> onnx.ModelProto:
        """Writes every shape that holds for all inputs into ``value_info``.

        Parameters
        ----------
        in_mp : onnx.ModelProto
            The model. It is not changed.
        int_max, verbose : int
            No effect.
        auto_merge, guess_output_rank : bool, default False
            No effect: they request shapes that may be wrong.

        Returns
        -------
        onnx.ModelProto
            A new model.

        Raises
        ------
        TypeError
            `in_mp` is not an ``onnx.ModelProto``.
        Error
            The model is malformed.
        """
        if not is_proto(in_mp):
            raise TypeError(f"in_mp is an onnx.ModelProto, and not a {kind_of(in_mp)}; infer_shapes accepts other forms")
        return infer_shapes(in_mp)
