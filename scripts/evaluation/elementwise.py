"""Elementwise operators and Cast."""
import ml_dtypes
import numpy as np

from .cases import (EIGHT, FEW, FLOATS, INTEGERS, REAL, SIGNED, UNSIGNED, Case, broadcastable, family, maybe, pick, shape, smooth,
                    tensor_type, values, wide)

UNARY, unary = family()
BINARY, binary = family()
CASTS, cast = family()

# Operator, since_version, units in the last place.
FUNCTIONS = [
    ("Acos", 7, 4), ("Acosh", 9, 4), ("Asin", 7, 4), ("Asinh", 9, 8), ("Atan", 7, 4), ("Atanh", 9, 8), ("Ceil", 13, 0), ("Cos", 7, 4),
    ("Cosh", 9, 4), ("Erf", 13, 8), ("Exp", 13, 4), ("Floor", 13, 0), ("HardSwish", 14, 4), ("Log", 13, 4), ("Mish", 18, 16),
    ("Reciprocal", 13, 1), ("Round", 11, 0), ("Sigmoid", 13, 8), ("Sin", 7, 4), ("Sinh", 9, 4), ("Softplus", 1, 8), ("Softsign", 1, 4),
    ("Sqrt", 13, 1), ("Tan", 7, 4), ("Tanh", 13, 8),
]


@unary
def function(rng):
    operator, opset, ulps = pick(rng, FUNCTIONS)
    dtype = pick(rng, FLOATS)
    x = values(rng, dtype, shape(rng))
    # The polynomials of ONNX Runtime have an absolute error, not a relative one.
    near = operator in ("Erf", "Sigmoid", "Tanh", "Mish", "Softplus", "Sin", "Cos", "Tan", "Asinh", "Atanh", "HardSwish")
    return Case(operator, [x], {}, max(opset, 13 if dtype == ml_dtypes.bfloat16 else 7), ulps=ulps, absolute=4 if near else 0, wide=wide(dtype), single=operator in ("HardSwish", "Erf"))


@unary
def activation(rng):
    operator, names = pick(rng, [("Elu", ["alpha"]), ("LeakyRelu", ["alpha"]), ("Selu", ["alpha", "gamma"]), ("HardSigmoid", ["alpha", "beta"]),
                                 ("ThresholdedRelu", ["alpha"]), ("Celu", ["alpha"]), ("Shrink", ["lambd", "bias"])])
    attributes = {name: maybe(rng, float(rng.uniform(0.1, 2))) for name in names}
    dtype = np.float32 if operator == "Celu" else pick(rng, REAL)
    if operator == "Shrink":
        dtype = pick(rng, REAL + [np.int32, np.int64, np.uint8])
        attributes = {name: maybe(rng, float(rng.integers(0, 4))) for name in names}
        x = values(rng, dtype, shape(rng), special=0)
        return Case(operator, [x], attributes, 16, ulps=2, absolute=4, single=True)
    return Case(operator, [values(rng, dtype, shape(rng))], attributes, 16, ulps=8, absolute=4)


@unary
def gelu(rng):
    x = smooth(rng, np.float32, shape(rng), scale=3.0)
    return Case("Gelu", [x], {"approximate": maybe(rng, pick(rng, ["none", "tanh"]))}, 20, ulps=16, absolute=16, single=True, only_runtime=True)


@unary
def number(rng):
    operator = pick(rng, ["Abs", "Neg", "Sign", "Relu"])
    dtype = pick(rng, FLOATS + (SIGNED if operator in ("Neg", "Relu") else INTEGERS))
    return Case(operator, [values(rng, dtype, shape(rng))], {}, 14, wide=wide(dtype), ulps=1e-3)


@unary
def logic(rng):
    operator, dtypes, opset = pick(rng, [("Not", [np.bool_], 7), ("BitwiseNot", INTEGERS, 18), ("IsNaN", FLOATS, 20), ("IsInf", FLOATS, 20), ("Identity", INTEGERS + REAL + [object], 14)])
    attributes = {"detect_negative": maybe(rng, int(rng.integers(2))), "detect_positive": maybe(rng, int(rng.integers(2)))} if operator == "IsInf" else {}
    return Case(operator, [values(rng, pick(rng, dtypes), shape(rng), special=0.4)], attributes, opset)


def operands(rng, dtypes, count=2, special=0.1):
    dims = shape(rng)
    return [values(rng, dtype, broadcastable(rng, dims), special=special) for dtype in dtypes[:1] * count]


@binary
def arithmetic(rng):
    operator, dtype = pick(rng, ["Add", "Sub", "Mul", "Div"]), pick(rng, FLOATS + INTEGERS)
    a, b = operands(rng, [dtype])
    if operator == "Div" and np.dtype(dtype).kind in "iu":
        b = np.where((b == 0) | (b == np.asarray(-1).astype(dtype)), np.asarray(3).astype(dtype), b)
    return Case(operator, [a, b], {}, 14, ulps=0 if np.dtype(dtype).kind in "iu" or dtype in (np.float32, np.float64) else 1, wide=wide(dtype))


@binary
def power(rng):
    dtypes = [np.float32, np.float64, np.int32, np.int64]
    a, b = pick(rng, dtypes + [np.float16]), pick(rng, dtypes)
    dims = shape(rng)
    x, y = smooth(rng, a, broadcastable(rng, dims), scale=3.0), smooth(rng, b, broadcastable(rng, dims), scale=3.0)
    if np.dtype(a).kind == "i":
        x, y = np.abs(x) + 1, np.abs(y)
    return Case("Pow", [x, y], {}, 15, ulps=4)


@binary
def remainder(rng):
    dtype = pick(rng, INTEGERS + REAL)
    a, b = operands(rng, [dtype], special=0.1 if np.dtype(dtype).kind in "iu" else 0)
    if np.dtype(dtype).kind in "iu":
        b = np.where((b == 0) | (b == np.asarray(-1).astype(dtype)), np.asarray(3).astype(dtype), b)
        return Case("Mod", [a, b], {"fmod": maybe(rng, int(rng.integers(2)))}, 13)
    return Case("Mod", [a, b], {"fmod": 1}, 13)


@binary
def several(rng):
    operator, dtype = pick(rng, ["Max", "Min", "Sum", "Mean"]), pick(rng, REAL + INTEGERS)
    if operator in ("Sum", "Mean"):
        dtype = pick(rng, REAL)
    return Case(operator, operands(rng, [dtype], count=int(rng.integers(1, 5))), {}, 13, ulps=2, absolute=2 if operator in ("Sum", "Mean") else 0, relative_to_all=True)


@binary
def bits(rng):
    operator, dtypes = pick(rng, [("And", [np.bool_]), ("Or", [np.bool_]), ("Xor", [np.bool_]), ("BitwiseAnd", INTEGERS), ("BitwiseOr", INTEGERS), ("BitwiseXor", INTEGERS)])
    return Case(operator, operands(rng, [pick(rng, dtypes)]), {}, 18)


@binary
def shift(rng):
    dtype = pick(rng, UNSIGNED)
    a, b = operands(rng, [dtype])
    return Case("BitShift", [a, b % np.asarray(np.iinfo(dtype).bits).astype(dtype)], {"direction": pick(rng, ["LEFT", "RIGHT"])}, 11)


@binary
def comparison(rng):
    operator = pick(rng, ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
    dtype = pick(rng, FLOATS + INTEGERS + ([np.bool_, object] if operator == "Equal" else []))
    a, b = operands(rng, [dtype])
    return Case(operator, [a, b], {}, 19)


@binary
def where(rng):
    dims, dtype = shape(rng), pick(rng, REAL + INTEGERS + [object, np.bool_])
    return Case("Where", [values(rng, np.bool_, broadcastable(rng, dims)), *(values(rng, dtype, broadcastable(rng, dims)) for _ in range(2))], {}, 16, ulps=1e-3)


@binary
def clip(rng):
    dtype = pick(rng, REAL + INTEGERS)
    low, high = sorted([values(rng, dtype, [], special=0), values(rng, dtype, [], special=0)])
    return Case("Clip", [values(rng, dtype, shape(rng)), maybe(rng, low, 0.7), maybe(rng, high, 0.7)], {}, 13)


@binary
def prelu(rng):
    dims, dtype = shape(rng, 1), pick(rng, REAL + [np.int32, np.int64, np.uint32, np.uint64])
    slope = [1 if rng.random() < 0.3 else dim for dim in dims]
    return Case("PRelu", [values(rng, dtype, dims), values(rng, dtype, slope)], {}, 16, ulps=1)


@cast
def convert(rng):
    plain = REAL + INTEGERS + [np.bool_, ml_dtypes.bfloat16]
    a = pick(rng, plain + plain + EIGHT + FEW)
    b = pick(rng, plain + plain + EIGHT + FEW)
    x = values(rng, a, shape(rng))
    attributes = {"to": tensor_type(b)}
    if b in EIGHT:
        attributes["saturate"] = maybe(rng, int(rng.integers(2)))
    if np.dtype(a).kind in "fV" and (np.dtype(b).kind in "iu" or b in FEW):
        limit = 7 if b in FEW else 100
        x = np.nan_to_num(x.astype(np.float32), nan=1, posinf=2, neginf=0).clip(0, limit).astype(a)
    return Case("Cast", [x], attributes, 21, wide=wide(b))


@cast
def text(rng):
    if rng.random() < 0.5:
        dtype = pick(rng, [np.float32, np.float64, np.int32, np.int64])
        numbers = rng.choice(np.array(["1", "-12", "+7", "100", "0", "31000"] if np.dtype(dtype).kind == "i" else ["1", "-1.5", "1e3", "NaN", "inf", "-INF", "0.1", "3.1415927"], dtype=object), shape(rng))
        return Case("Cast", [numbers], {"to": tensor_type(dtype)}, 21)
    x = values(rng, pick(rng, [np.float32, np.int8, np.int64, np.uint64]), shape(rng))
    return Case("Cast", [x], {"to": 8}, 21)
