"""The options of `fold`: their types, their checks, and their form for the compiled half."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Literal, Optional, TypedDict, Union

from ._errors import UsageError
from ._extras import is_a

if TYPE_CHECKING:
    from ._operator import Operator
    from ._types import AnyPath, Roots


class FoldOptions(TypedDict, total=False):
    """The options of a run and knowledge about the inputs. Names are those of the program's flags."""

    dims: Mapping[str, Union[int, str]]
    """Dims by name: ``{"batch": 1, "seq": "1..4096", "width": "8..4096:8"}``."""
    assume: Union[str, Iterable[str]]
    """Relations between dims that hold in every run: ``"past + seq <= 2048"``."""
    input_shapes: Mapping[str, Sequence[Union[int, str, None]]]
    """Shapes of inputs by name; a name, -1 or None leaves a dimension open."""
    exact: bool
    """True for only those rewrites that preserve every bit of the results."""
    skip: Union[str, Iterable[str]]
    """Rules and passes to leave out; `rules` lists them."""
    only: Union[str, Iterable[str]]
    """The only rules and passes to use."""
    avoid: Union[str, Iterable[str]]
    """Constructs that the consumer of the result lacks: ``"Loop"``, ``"negative-steps"``, ``"rank>5"``; `Report.avoided` lists the nodes that remain."""
    max_growth: float
    """The limit for growth by new constants, as a share of the size of the model (0.1 is 10 %)."""
    free_growth: int
    """The growth in bytes that is allowed whatever its share."""
    max_constant: int
    """The largest new constant in bytes."""
    rules: bool
    """False for no rewrite rules; inference and constant folding still run."""
    opset: int
    """The operator set of the default domain to write the model in."""
    stamp: bool
    """False for no note of this package's version and options in the metadata."""
    slice_rule: Literal["agree", "onnxruntime", "spec", "numpy"]
    """The reading of slices about which runtimes disagree."""
    strided_slice: Union[str, Iterable[str]]
    """Operators that are strided slices: ``"com.example::Crop=tensorflow"``."""
    trust_declared_shapes: bool
    """True to use the declared shapes of inner tensors as facts."""
    trust_input_names: bool
    """True to parse labels of input dims as expressions: ``"past + seq"`` is the sum of ``past`` and ``seq``."""
    fold_dequantize: bool
    """True to replace quantized weights by the dequantized weights."""
    unroll: int
    """The number of nodes by which unrolled loops may enlarge the model."""
    shapes: Literal["auto", "all", "keep", "lean", "none"]
    """The shapes of inner tensors to write."""
    lean: bool
    """True is an older name of ``shapes="lean"``."""
    new_shapes: bool
    """False is an older name of ``shapes="keep"``."""
    strict: bool
    """True to reject a model for which every run fails."""
    stop_after: Optional[int]
    """The largest number of edits."""
    verify_each: bool
    """True to verify the graph after each pass."""


class FoldArguments(FoldOptions, total=False):
    """The keyword arguments of `fold`."""

    base_dir: Optional[AnyPath]
    external_data_roots: Roots
    progress: Optional[Callable[[str], object]]
    operators: Optional[Iterable[Operator]]


class SlimOptions(TypedDict, total=False):
    """The keyword arguments of `slim`, except `model_check`."""

    input_shapes: Optional[Sequence[str]]
    inputs: Optional[Sequence[str]]
    outputs: Optional[Sequence[str]]
    model_check_inputs: Optional[Sequence[str]]
    dtype: Optional[str]
    size_threshold: Union[int, str, None]
    save_as_external_data: bool
    inspect: bool
    skip_optimizations: Optional[Sequence[str]]
    skip_fusion_patterns: Optional[Sequence[str]]
    no_shape_infer: bool
    dump_to_disk: bool
    verbose: bool


# The largest number that the compiled half accepts.
_MOST = (1 << 63) - 1
_CHOICES = {
    "slice_rule": ("agree", "onnxruntime", "spec", "numpy"),
    "shapes": ("auto", "all", "keep", "lean", "none"),
}
_EXAMPLES = {
    "assume": '"past + seq <= 2048"',
    "skip": '["matmul-add-to-gemm"]',
    "only": '["identity"]',
    "avoid": '["negative-steps"]',
    "strided_slice": '["com.example::Crop=tensorflow"]',
}


def nearest(name: str, names: Iterable[str]) -> str:
    """Returns ``"; did you mean 'X'?"`` for the name that is most similar to `name`, or nothing if none is similar."""
    names = list(names)
    inside = [known for known in names if known in name or name in known]
    import difflib
    found = difflib.get_close_matches(name, names, 1) or inside[:1]
    return f"; did you mean '{found[0]}'?" if found else ""


def plain(options: Mapping[str, Any], arguments: Iterable[str] = ()) -> dict[str, Any]:
    """Checks options and converts them for the compiled half: texts are in the syntax of the program's flags.

    `arguments` are further names that the caller accepts, for the suggestion after an unknown name.
    """
    made: dict[str, Any] = {}
    for name, value in options.items():
        if name not in FoldOptions.__annotations__:
            listed = ", ".join(FoldOptions.__annotations__)
            similar = nearest(name, [*FoldOptions.__annotations__, *arguments])
            raise UsageError(f"there is no option '{name}'; the options are {listed}{similar}")
        if value is None:
            continue
        check: Callable[[str, Any], Any] = _CHECKS.get(name, _flag)
        made[name] = check(name, value)
    return made


def kind_of(value: object) -> str:
    """Returns the type of a wrong argument for a message."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def texts(name: str, value: Any, example: str) -> list[str]:
    """Returns a text or an iterable of texts as a list."""
    if isinstance(value, str):
        return [value]
    found: Optional[list[Any]] = None if is_a(value, bytes, Mapping) or not is_a(value, Iterable) else list(value)
    if found is None or not all(isinstance(item, str) for item in found):
        wrong = value if found is None else next(item for item in found if not isinstance(item, str))
        raise TypeError(f"{name} must be a text or a list of texts, not {kind_of(wrong)}; write {name}={example}")
    return found


def whole(name: str, value: Any, least: int = 0) -> int:
    """Returns a whole number, also for one of numpy."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {kind_of(value)} {value!r}") from None
    if not least <= number <= _MOST:
        raise UsageError(f"{name} is {number}; it must be at least {least} and at most 2**63 - 1")
    return number


def directories(name: str, value: Any) -> list[AnyPath]:
    """Returns a path or an iterable of paths as a list."""
    if value is None:
        return []
    found: list[Any] = [value] if is_a(value, str, os.PathLike) or not is_a(value, Iterable) else list(value)
    for item in found:
        if not is_a(item, str, os.PathLike):
            raise TypeError(f'{name} must be a directory, not {kind_of(item)}; write {name}="weights"')
    return found


def _flag(name: str, value: Any) -> bool:
    # numpy.bool_ is named bool or bool_, depending on the version of numpy.
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} must be True or False, not {kind_of(value)} {value!r}")
    return bool(value)


def _amount(name: str, value: Any) -> int:
    return whole(name, value)


def _share(name: str, value: Any) -> float:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, not {kind_of(value)} {value!r}; {name}=0.1 allows 10 % growth")
    share = float(value)
    if math.isnan(share) or share < 0:
        raise UsageError(f"{name} is {value}; it must be at least 0, such as {name}=0.1 for 10 % growth")
    return share


def _choice(name: str, value: Any) -> str:
    choices = _CHOICES[name]
    listed = ", ".join(map(repr, choices))
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {listed}, not {kind_of(value)}")
    if value not in choices:
        raise UsageError(f"{name} is '{value}'; it must be one of {listed}{nearest(value, choices)}")
    return value


def _texts(name: str, value: Any) -> list[str]:
    return texts(name, value, _EXAMPLES[name])


def _mapping(name: str, value: Any, fix: Callable[[Any], str]) -> Mapping[Any, Any]:
    """Returns a mapping by names; `fix` formats a wrong argument as the intended mapping."""
    if not is_a(value, Mapping):
        raise TypeError(f"{name} must be a dict by name, not {kind_of(value)}; write {name}={{{fix(value)}}}")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"the keys of {name} must be names, not {kind_of(key)} {key!r}")
    checked: Mapping[Any, Any] = value
    return checked


def _listed(value: Any, separator: str) -> list[tuple[str, str]]:
    """Returns the pairs in texts such as ``s33=1`` or ``x:1,3``, or in tuples of a name and a value."""
    items: list[Any] = [value] if isinstance(value, str) else list(value) if is_a(value, Iterable) else []
    texts = [item if isinstance(item, str) else separator.join(map(str, item)) if is_a(item, tuple) else "" for item in items]
    pairs = [text.rpartition(separator) for text in texts]
    return [(name, right) for name, found, right in pairs if found]


def _literal(size: str) -> str:
    size = size.strip()
    return size if size.lstrip("-").isdigit() else f'"{size}"'


def _dims(name: str, value: Any) -> list[str]:
    def fix(given: Any) -> str:
        return ", ".join(f'"{dim}": {_literal(size)}' for dim, size in _listed(given, "=")) or '"batch": 1'

    made: list[str] = []
    for dim, size in _mapping(name, value, fix).items():
        if not isinstance(size, str):
            try:
                size = whole(f"{name}['{dim}']", size)
            except TypeError:
                text = f"{name}['{dim}'] must be a number or a range such as \"1..4096\", not {kind_of(size)} {size!r}"
                raise TypeError(text) from None
        made.append(f"{dim}={size}")
    return made


def _input_shapes(name: str, value: Any) -> list[str]:
    def fix(given: Any) -> str:
        pairs = _listed(given, ":")
        return ", ".join(f'"{key}": [{", ".join(map(_literal, shape.split(",")))}]' for key, shape in pairs) or '"x": [1, 3, "height", "width"]'

    made: list[str] = []
    for key, shape in _mapping(name, value, fix).items():
        if is_a(shape, str, bytes, Mapping) or not is_a(shape, Iterable):
            sizes = f"[{', '.join(map(_literal, shape.split(',')))}]" if isinstance(shape, str) else "[1, None]"
            raise TypeError(f"{name}['{key}'] must be a list of sizes, not {kind_of(shape)}; write {sizes}")
        made.append(f"{key}:{','.join(_size(f'''{name}['{key}']''', size) for size in shape)}")
    return made


def _size(place: str, size: Any) -> str:
    if size is None:
        return "-1"
    if isinstance(size, str):
        return size
    try:
        return str(whole(f"a size in {place}", size, -1))
    except TypeError:
        raise TypeError(f"a size in {place} must be a number, a name or None, not {kind_of(size)} {size!r}") from None


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "dims": _dims,
    "assume": _texts,
    "input_shapes": _input_shapes,
    "skip": _texts,
    "only": _texts,
    "avoid": _texts,
    "strided_slice": _texts,
    "max_growth": _share,
    "free_growth": _amount,
    "max_constant": _amount,
    "opset": lambda name, value: whole(name, value, 1),
    "unroll": _amount,
    "stop_after": _amount,
    "slice_rule": _choice,
    "shapes": _choice,
}
