"""``simplify`` with onnxsim's signature and semantics, so that its users only change one import."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from ._check import agree
from ._errors import UsageError
from ._extras import require
from ._models import is_path, is_proto, opened, to_proto
from ._options import kind_of, plain, texts, whole
from ._overwrite import overwritten
from ._types import AnyPath

if TYPE_CHECKING:
    import onnx

    Shapes = Union[Mapping[Optional[str], Sequence[Optional[int]]], Sequence[int]]

DEFAULT_TENSOR_SIZE_THRESHOLD = "1.5GB"
DEFAULT_EXTERNAL_DATA_THRESHOLD = "100MB"
# The most turns of a user's rewriter and folding.
MOST_TURNS = 10
_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def simplify(
    model: Union[AnyPath, onnx.ModelProto],
    check_n: int = 0,
    perform_optimization: bool = True,
    skip_fuse_bn: bool = False,
    overwrite_input_shapes: Optional[Shapes] = None,
    test_input_shapes: Optional[Shapes] = None,
    skipped_optimizers: Optional[Sequence[str]] = None,
    skip_constant_folding: bool = False,
    skip_shape_inference: bool = False,
    input_data: Optional[Mapping[str, Any]] = None,
    dynamic_input_shape: bool = False,
    custom_lib: Optional[AnyPath] = None,
    include_subgraph: bool = False,
    unused_output: Optional[Sequence[str]] = None,
    tensor_size_threshold: Union[str, int] = DEFAULT_TENSOR_SIZE_THRESHOLD,
    mutable_initializer: bool = False,
    *,
    initializers_as_constants: bool = True,
    inline_functions: bool = False,
    import_custom_schemas: bool = True,
    input_shapes: Optional[Shapes] = None,
    target_opset_version: Union[int, str, None] = None,
    extra_optimizers: Optional[Sequence[str]] = None,
    custom_rewriter: Optional[Callable[[onnx.ModelProto], Union[onnx.ModelProto, bool, None]]] = None,
    function_rewrite_rules: Optional[Sequence[Any]] = None,
    check_rtol: float = 1e-4,
    check_atol: float = 1e-5,
    input_fill: str = "random",
    providers: Optional[Sequence[Any]] = None,
    gemm_fusion_backend: str = "ort_cpu",
    profile: Optional[str] = None,
    ort_profile: Optional[str] = None,
    merge_ort_profile: bool = False,
    output_path: Optional[AnyPath] = None,
    external_data_threshold: Union[str, int] = DEFAULT_EXTERNAL_DATA_THRESHOLD,
    range_opt: bool = False,
    certify: Optional[bool] = None,
    check_hazards: bool = False,
    check_gradients: bool = False,
    gradient_precision: str = "fp32",
) -> tuple[onnx.ModelProto, bool]:
    """Folds a model, with the arguments and results of onnxsim 0.8.

    No file is written without `output_path`, even if `model` is a path.

    Parameters
    ----------
    model : path or onnx.ModelProto
        The model. It is not changed.
    check_n : int, default 0
        The number of runs of ONNX Runtime that compare both models.
    perform_optimization : bool, default True
        False for only constant folding and dead code elimination.
    skip_fuse_bn : bool, default False
        True to keep factors and shifts out of weights.
    overwrite_input_shapes, test_input_shapes, input_shapes : mapping from str to list of int, or list of int for the only input
        Shapes to write into the model, shapes of the inputs of the runs, and a value for both.
    input_data : mapping from str to numpy.ndarray, optional
        The inputs of the runs.
    custom_lib : path, optional
        A library of custom operators for ONNX Runtime.
    unused_output : list of str, optional
        Outputs to remove.
    tensor_size_threshold : str or int, default "1.5GB"
        The size of the largest new constant.
    inline_functions : bool, default False
        True to inline the functions of the model first.
    target_opset_version : int or "latest", optional
        The operator set to write the model in.
    custom_rewriter : callable, optional
        A function that rewrites a model in turn with folding. It returns a model, None for a change in place, or False for no change.
    check_rtol, check_atol : float
        The tolerances of a comparison.
    input_fill : {"random", "ones", "zeros", "arange"}
        The contents of the inputs of the runs.
    providers : list, optional
        The execution providers of ONNX Runtime.
    output_path : path, optional
        A file to write in addition; requires a path as `model`.
    external_data_threshold : str or int, default "100MB"
        The size from which the written model gets a data file.
    include_subgraph, dynamic_input_shape, mutable_initializer, import_custom_schemas
        No effect: the behaviour of this package is their purpose.
    skipped_optimizers, skip_constant_folding, skip_shape_inference, gemm_fusion_backend, profile, ort_profile, merge_ort_profile, range_opt
        No effect and a warning: they configure the implementation of onnxsim.
    certify, check_hazards, check_gradients, gradient_precision
        No effect, and a warning except for the last.
    initializers_as_constants, extra_optimizers, function_rewrite_rules
        Other values than the defaults raise ``NotImplementedError``.

    Returns
    -------
    model : onnx.ModelProto
        The folded model.
    ok : bool
        True if both models computed the same values in `check_n` runs; True without runs.

    Raises
    ------
    TypeError
        An argument is of the wrong type.
    ValueError
        The value of an argument is wrong, or a run needs a shape that is not given.
    NotImplementedError
        An argument requests a result that this package does not offer.
    AssumptionError
        A shape contradicts the model.
    Error, OSError
        The model cannot be read, folded or written.
    ModuleNotFoundError
        onnx is not installed, or, with `check_n`, onnxruntime.
    """
    require("onnx", "simplify")
    import onnx

    _refuse(initializers_as_constants, extra_optimizers, function_rewrite_rules)
    _warn_of_idle(
        skipped_optimizers=skipped_optimizers,
        skip_constant_folding=skip_constant_folding,
        skip_shape_inference=skip_shape_inference,
        gemm_fusion_backend=gemm_fusion_backend != "ort_cpu",
        profile=profile is not None,
        ort_profile=ort_profile is not None,
        merge_ort_profile=merge_ort_profile,
        range_opt=range_opt,
        certify=certify,
        check_hazards=check_hazards,
        check_gradients=check_gradients,
    )
    if not is_path(model) and not is_proto(model):
        raise TypeError(f"model is a path or an onnx.ModelProto, and not a {kind_of(model)}; fold accepts other forms")
    if output_path is not None and not is_path(model):
        raise ValueError("output_path needs model to be a path; use onnx.save for the result")
    if output_path is not None and not is_path(output_path):
        raise TypeError(f"output_path is a path, and not a {kind_of(output_path)}")
    if custom_rewriter is not None and not callable(custom_rewriter):
        raise TypeError(f"custom_rewriter must be a function of a model, not {kind_of(custom_rewriter)}")
    if input_data is not None and not isinstance(input_data, Mapping):
        raise TypeError(f'input_data must be a dict of arrays by name, not {kind_of(input_data)}; write {{"x": array}}')
    check_n = whole("check_n", check_n)
    unused_output = texts("unused_output", unused_output or (), '["y"]')
    if input_shapes is not None:
        overwrite_input_shapes = test_input_shapes = input_shapes
    # A path without changes and runs is opened by the library itself.
    given: Any = onnx.load(model) if is_path(model) and _needs_proto(
        check_n, overwrite_input_shapes, unused_output, inline_functions
    ) else model
    if is_proto(given):
        given = _prepared(given, unused_output, inline_functions)
    options: dict[str, Any] = {}
    if overwrite_input_shapes:
        # Sizes that are not positive keep the model's sizes.
        named = _named(given, overwrite_input_shapes)
        options["input_shapes"] = {
            name: [None if isinstance(size, int) and size <= 0 else size for size in shape] for name, shape in named.items()
        }
        given = overwritten(given, options["input_shapes"])
    if not perform_optimization:
        options["rules"] = False
    elif skip_fuse_bn:
        options["skip"] = ["affine-after-weights"]
    if target_opset_version == "latest":
        target_opset_version = onnx.defs.onnx_opset_version()
    if target_opset_version is not None:
        if not isinstance(target_opset_version, int):
            raise ValueError(f"target_opset_version must be an int, 'latest' or None, and not {target_opset_version!r}")
        options["opset"] = target_opset_version
    threshold = _bytes(tensor_size_threshold)
    if threshold != _bytes(DEFAULT_TENSOR_SIZE_THRESHOLD):
        options["max_constant"] = threshold
    held = opened(given, None)
    held.fold(plain(options), None)
    simplified, _ = to_proto(held)
    if custom_rewriter is not None:
        simplified = _taking_turns(simplified, custom_rewriter, options)
        held = opened(simplified, None)
    if output_path is not None:
        held.save(output_path, simplified.ByteSize() > _bytes(external_data_threshold))
    ok = check_n == 0 or agree(
        given,
        simplified,
        check_n,
        shapes=_named(given, test_input_shapes or overwrite_input_shapes or {}),
        data=input_data,
        custom_lib=custom_lib,
        providers=providers,
        rtol=check_rtol,
        atol=check_atol,
        fill=input_fill,
    )
    return simplified, ok


def _refuse(initializers_as_constants: bool, extra_optimizers: object, function_rewrite_rules: object) -> None:
    if not initializers_as_constants:
        raise NotImplementedError("initializers_as_constants=False: this package always treats initializers as constants")
    if extra_optimizers:
        raise NotImplementedError("extra_optimizers: these are passes of onnx-optimizer; rules() lists the rules of this package")
    if function_rewrite_rules:
        raise NotImplementedError("function_rewrite_rules: use a custom_rewriter, such as one of onnxscript.rewriter")


def _warn_of_idle(**arguments: object) -> None:
    idle = [name for name, given in arguments.items() if given]
    if idle:
        warnings.warn(f"{', '.join(idle)}: no effect in onnx_slice_fold.simplify; fold has options for rules and checks", UserWarning, stacklevel=3)


def _needs_proto(check_n: int, *changes: object) -> bool:
    return check_n > 0 or any(changes)


def _prepared(
    model: onnx.ModelProto,
    unused_output: Optional[Sequence[str]],
    inline_functions: bool,
) -> onnx.ModelProto:
    """Returns a copy of the model with the changes that onnxsim makes before it simplifies; the model itself if there are none."""
    import onnx

    if inline_functions:
        import onnx.inliner

        model = onnx.inliner.inline_local_functions(model)
    if unused_output:
        names = [output.name for output in model.graph.output]
        unknown = [name for name in unused_output if name not in names]
        if unknown:
            raise UsageError(f"unused_output: the model has no output '{unknown[0]}'; it has {', '.join(names)}")
        kept = [output for output in model.graph.output if output.name not in unused_output]
        copied = onnx.ModelProto()
        copied.CopyFrom(model)
        del copied.graph.output[:]
        copied.graph.output.extend(kept)
        model = copied
    return model


def _named(model: onnx.ModelProto, shapes: Optional[Shapes]) -> dict[Any, list[Any]]:
    """Returns shapes by the names of inputs. A shape without a name belongs to the only input."""
    if not shapes:
        return {}
    if not isinstance(shapes, Mapping):
        shapes = {None: shapes}
    initializers = {initializer.name for initializer in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in initializers]
    named: dict[Any, list[Any]] = {}
    for name, shape in shapes.items():
        if name in (None, ""):
            if len(inputs) != 1:
                raise ValueError(f"a shape needs the name of its input: the model has {len(inputs)} of them")
            name = inputs[0]
        if name not in inputs:
            raise UsageError(f"the model has no input '{name}'; it has {', '.join(inputs)}")
        if isinstance(shape, (str, bytes, Mapping)) or not isinstance(shape, Sequence):
            raise TypeError(f"the shape of input '{name}' must be a list of sizes, not {kind_of(shape)}; write {{'{name}': [1, 3]}}")
        named[name] = list(shape)
    return named


def _bytes(size: Union[str, int]) -> int:
    """Reads a size such as ``1.5GB`` as a number of bytes."""
    parts = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMG]?B?)\s*", str(size), re.IGNORECASE)
    if parts is None:
        raise ValueError(f"'{size}' is not a size; write a number of bytes or a text such as 1.5GB")
    unit = parts[2].upper()
    return int(float(parts[1]) * _UNITS[unit if unit in _UNITS else f"{unit}B"])


def _taking_turns(model: onnx.ModelProto, rewriter: Callable[..., Any], options: Mapping[str, Any]) -> onnx.ModelProto:
    """Rewrites and folds until the rewriter changes nothing."""
    for _ in range(MOST_TURNS):
        before = model.SerializeToString(deterministic=True)
        rewritten = rewriter(model)
        if rewritten is False:
            return model
        model = rewritten if rewritten is not None else model
        if model.SerializeToString(deterministic=True) == before:
            return model
        held = opened(model, None)
        # The given sizes are part of the model by now.
        held.fold(plain({name: value for name, value in options.items() if name != "input_shapes"}), None)
        model, _ = to_proto(held)
    return model
