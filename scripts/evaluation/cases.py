"""The type of a case, and the numbers, shapes and types of cases."""
import dataclasses

import ml_dtypes
import numpy as np
from onnx import helper

SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
INTEGERS = SIGNED + UNSIGNED
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
REAL = [np.float32, np.float64, np.float16]
EIGHT = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz]
FEW = [ml_dtypes.int4, ml_dtypes.uint4]
PLAIN = {np.dtype(t) for t in [*INTEGERS, *REAL, np.bool_, object]}


@dataclasses.dataclass
class Case:
    """One node. Floats may differ by `ulps` units in the last place of the larger, and by `absolute` units of the last place
    of 1, or of the largest result when `relative_to_all`."""

    operator: str
    operands: list
    attributes: dict = dataclasses.field(default_factory=dict)
    opset: int = 21
    outputs: int = 1
    domain: str = ""
    ulps: float = 0
    absolute: float = 0
    relative_to_all: bool = False
    # The operator computes in binary32, or has constants of it, for operands of any type.
    single: bool = False
    # Results of types that ONNX Runtime cannot return.
    wide: tuple = ()
    # onnx.reference is known to be wrong or slow here.
    only_runtime: bool = False

    def __post_init__(self):
        self.operands = [x if x is None or isinstance(x, list) else np.asarray(x) for x in self.operands]
        self.attributes = {name: value for name, value in self.attributes.items() if value is not None}


def tensor_type(dtype):
    """The number of an element type."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def wide(dtype):
    """The places of one result of this type that has to be widened."""
    return () if np.dtype(dtype) in PLAIN else (0,)


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def maybe(rng, value, share=0.5):
    """The value, or None for an attribute or operand left out."""
    return value if rng.random() < share else None


def shape(rng, low=0, high=4, most=5, empty=0.05):
    """A random shape of a rank between the two."""
    dims = rng.integers(1, most + 1, int(rng.integers(low, high + 1)))
    if dims.size and rng.random() < empty:
        dims[rng.integers(dims.size)] = 0
    return [int(dim) for dim in dims]


def broadcastable(rng, dims):
    """A shape that broadcasts to this one."""
    dims = [1 if rng.random() < 0.25 else dim for dim in dims]
    return dims[int(rng.integers(len(dims) + 1)) :] if rng.random() < 0.4 else dims


def values(rng, dtype, dims, special=0.1, scale=None):
    """Random numbers of a type. Some floats are special values, some integers are at the ends of their range."""
    dtype = np.dtype(dtype)
    dims = tuple(dims)
    if dtype.kind == "b":
        return rng.integers(0, 2, dims).astype(bool)
    if dtype.kind == "O":
        return rng.choice(np.array(["", "a", "b", "ab", "B", "ü", "1"], dtype=object), dims)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        small = rng.integers(max(info.min, -9), 10, dims).astype(dtype)
        if not special:
            return small
        ends = rng.integers(info.min, info.max, dims, dtype=dtype, endpoint=True)
        return np.where(rng.random(dims) < 0.5, small, ends).astype(dtype)
    if dtype in [np.dtype(t) for t in FEW]:
        return rng.integers(-8 if dtype == ml_dtypes.int4 else 0, 8 if dtype == ml_dtypes.int4 else 16, dims).astype(dtype)
    numbers = rng.standard_normal(dims) * (scale or pick(rng, [1.0, 3.0, 30.0]))
    if special and rng.random() < 0.5:
        odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 100.0, -100.0, 1e30, -1e30, 1e-30]
        numbers = np.where(rng.random(dims) < special, rng.choice(odd, dims), numbers)
    with np.errstate(all="ignore"):
        return np.asarray(numbers).astype(dtype)


def smooth(rng, dtype, dims, scale=1.0):
    """Random finite floats around 0."""
    return values(rng, dtype, dims, special=0, scale=scale)


def axis(rng, rank):
    """An axis, from the front or the back."""
    return int(rng.integers(-rank, rank))


def ints(*numbers):
    return np.array(numbers, dtype=np.int64)


def family():
    """A list of makers and the decorator that adds to it."""
    makers = []

    def add(maker):
        makers.append(maker)
        return maker

    return makers, add
