"""Matrix products, convolutions, pooling, quantization."""
import ml_dtypes
import numpy as np

from .cases import EIGHT, FEW, Case, broadcastable, family, maybe, pick, shape, smooth, values, wide

PRODUCTS, product = family()
WINDOWS, window = family()
QUANTIZATION, quantization = family()
SLACK = {"ulps": 8, "absolute": 32, "relative_to_all": True}


def factors(rng):
    rows, inner, columns = (int(d) for d in rng.integers(1, 6, 3))
    outer = shape(rng, 0, 2, 3)
    a, b = broadcastable(rng, outer) + [rows, inner], broadcastable(rng, outer) + [inner, columns]
    if rng.random() < 0.15:
        a = [inner]
    if rng.random() < 0.15:
        b = [inner]
    return a, b


@product
def matmul(rng):
    a, b = factors(rng)
    dtype = pick(rng, [np.float32, np.float32, np.float64, np.float16, np.int32, np.int64, np.uint32, np.uint64])
    return Case("MatMul", [values(rng, dtype, a, special=0), values(rng, dtype, b, special=0)], {}, 13, **SLACK)


@product
def gemm(rng):
    m, k, n = (int(d) for d in rng.integers(1, 6, 3))
    ta, tb, dtype = int(rng.integers(2)), int(rng.integers(2)), pick(rng, [np.float32, np.float64])
    c = maybe(rng, smooth(rng, dtype, broadcastable(rng, [m, n])), 0.7)
    attributes = {"transA": ta, "transB": tb, "alpha": maybe(rng, float(rng.uniform(-2, 2))), "beta": maybe(rng, float(pick(rng, [0.0, 1.5])))}
    return Case("Gemm", [smooth(rng, dtype, [k, m] if ta else [m, k]), smooth(rng, dtype, [n, k] if tb else [k, n]), c], attributes, 13, **SLACK)


@product
def einsum(rng):
    sizes = {letter: int(rng.integers(1, 4)) for letter in "abcde"}
    terms = ["".join(rng.permutation(list("abcde"))[: rng.integers(1, 4)]) for _ in range(rng.integers(1, 4))]
    seen = sorted(set("".join(terms)))
    result = "".join(rng.permutation(seen)[: rng.integers(0, len(seen) + 1)])
    equation = ",".join(terms) + (f"->{result}" if rng.random() < 0.8 else "")
    dtype = pick(rng, [np.float32, np.float64, np.int32, np.int64])
    return Case("Einsum", [values(rng, dtype, [sizes[letter] for letter in term], special=0) for term in terms], {"equation": equation}, 12, **SLACK)


@product
def determinant(rng):
    n = int(rng.integers(1, 5))
    return Case("Det", [smooth(rng, pick(rng, [np.float32, np.float64]), [*shape(rng, 0, 2, 3), n, n])], {}, 11, ulps=32, absolute=64)


@product
def whole(rng):
    a, b = factors(rng)
    kinds = [pick(rng, [np.int8, np.uint8]), pick(rng, [np.int8, np.uint8])]
    x, y = (values(rng, kind, dims) for kind, dims in zip(kinds, (a, b)))
    if kinds == [np.uint8, np.int8]:
        # On processors without VNNI, ONNX Runtime adds two such products in 16 bits, which are only safe for factors of 7 bits.
        y = y // np.int8(2)
    zeros = [maybe(rng, values(rng, kind, [])) for kind in kinds]
    if rng.random() < 0.5:
        return Case("MatMulInteger", [x, y, *zeros], {}, 10)
    out = pick(rng, [np.int8, np.uint8])
    scale = lambda: np.array(rng.uniform(0.01, 0.2), np.float32)  # noqa: E731
    zero = lambda kind: values(rng, kind, [], special=0)  # noqa: E731
    return Case("QLinearMatMul", [x, scale(), zero(kinds[0]), y, scale(), zero(kinds[1]), scale() * 100, zero(out)], {}, 10)


def spatial(rng, rank=None):
    """Dims, kernel and attributes of a window that fits."""
    rank = rank or int(pick(rng, [1, 2, 2, 2, 3]))
    kernel = [int(k) for k in rng.integers(1, 4, rank)]
    attributes = {"strides": maybe(rng, rng.integers(1, 4, rank).tolist())}
    dilations = maybe(rng, rng.integers(1, 3, rank).tolist())
    reach = [(k - 1) * (dilations[i] if dilations else 1) + 1 for i, k in enumerate(kernel)]
    dims = [int(rng.integers(r, r + 5)) for r in reach]
    attributes["dilations"] = dilations
    if rng.random() < 0.5:
        attributes["pads"] = [int(rng.integers(0, (k + 1) // 2 + (0 if k > 1 else 0))) for k in kernel + kernel]
    else:
        attributes["auto_pad"] = pick(rng, ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
        if attributes["auto_pad"].startswith("SAME"):
            attributes["dilations"] = None
    return dims, kernel, attributes


@window
def conv(rng):
    dims, kernel, attributes = spatial(rng)
    groups, per, out = int(pick(rng, [1, 1, 2, 3])), int(rng.integers(1, 3)), int(rng.integers(1, 3))
    dtype = np.float32
    x, w = smooth(rng, dtype, [int(rng.integers(1, 3)), groups * per, *dims]), smooth(rng, dtype, [groups * out, per, *kernel])
    bias = maybe(rng, smooth(rng, dtype, [groups * out]))
    return Case("Conv", [x, w, bias], {**attributes, "group": maybe(rng, groups) if groups == 1 else groups}, 11, **SLACK)


@window
def conv_transpose(rng):
    dims, kernel, attributes = spatial(rng)
    groups, per, out = int(pick(rng, [1, 1, 2])), int(rng.integers(1, 3)), int(rng.integers(1, 3))
    x, w = smooth(rng, np.float32, [int(rng.integers(1, 3)), groups * per, *dims]), smooth(rng, np.float32, [groups * per, out, *kernel])
    strides = attributes["strides"]
    if strides and rng.random() < 0.3:
        attributes["output_padding"] = [int(rng.integers(0, s)) for s in strides]
    return Case("ConvTranspose", [x, w, maybe(rng, smooth(rng, np.float32, [groups * out]))], {**attributes, "group": groups}, 11, **SLACK)


@window
def deformable(rng):
    kernel, strides = [int(k) for k in rng.integers(1, 4, 2)], rng.integers(1, 3, 2)
    dims = [k + int(d) for k, d in zip(kernel, rng.integers(0, 4, 2))]
    out = [(d - k) // s + 1 for d, k, s in zip(dims, kernel, strides)]
    n, c, m = (int(d) for d in rng.integers(1, 3, 3))
    points = kernel[0] * kernel[1]
    x, w = smooth(rng, np.float32, [n, c, *dims]), smooth(rng, np.float32, [m, c, *kernel])
    offset, mask = smooth(rng, np.float32, [n, 2 * points, *out]), maybe(rng, smooth(rng, np.float32, [n, points, *out]))
    return Case("DeformConv", [x, w, offset, maybe(rng, smooth(rng, np.float32, [m])), mask], {"strides": strides.tolist(), "kernel_shape": kernel}, 19, **SLACK)


@window
def pool(rng):
    operator = pick(rng, ["MaxPool", "MaxPool", "AveragePool", "LpPool"])
    dims, kernel, attributes = spatial(rng)
    attributes["ceil_mode"] = maybe(rng, int(rng.integers(2)))
    dtype = pick(rng, [np.float32, np.float64, np.int8, np.uint8]) if operator == "MaxPool" else np.float32
    outputs = 1
    if operator == "MaxPool":
        outputs = int(rng.integers(1, 3))
        attributes["storage_order"] = maybe(rng, int(rng.integers(2))) if outputs == 2 else None
    elif operator == "AveragePool":
        attributes["count_include_pad"] = maybe(rng, int(rng.integers(2)))
    else:
        attributes["p"] = maybe(rng, int(rng.integers(1, 4)))
    x = values(rng, dtype, [int(rng.integers(1, 3)), int(rng.integers(1, 3)), *dims], special=0)
    return Case(operator, [x], {**attributes, "kernel_shape": kernel}, 19, outputs=outputs, **SLACK)


@window
def overall(rng):
    operator = pick(rng, ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    return Case(operator, [smooth(rng, np.float32, shape(rng, 3, 5, empty=0))], {}, 2 if operator == "GlobalLpPool" else 7, **SLACK)


@window
def unpool(rng):
    kernel, n, c = [int(k) for k in rng.integers(1, 4, 2)], int(rng.integers(1, 3)), int(rng.integers(1, 3))
    dims = [int(d) for d in rng.integers(1, 4, 2)]
    full = n * c * (dims[0] * kernel[0]) * (dims[1] * kernel[1])
    where = rng.choice(full, [n, c, *dims], replace=False)
    return Case("MaxUnpool", [smooth(rng, np.float32, [n, c, *dims]), where], {"kernel_shape": kernel, "strides": kernel}, 11)


@window
def regions(rng):
    rois = np.sort(rng.integers(0, 8, [int(rng.integers(0, 4)), 2, 2]), 1).reshape(-1, 4)
    boxes = np.concatenate([np.zeros([len(rois), 1]), rois], 1).astype(np.float32)
    return Case("MaxRoiPool", [smooth(rng, np.float32, [1, 2, 6, 6]), boxes], {"pooled_shape": rng.integers(1, 4, 2).tolist(), "spatial_scale": maybe(rng, 0.5)}, 1)


@window
def conv_whole(rng):
    dims, kernel, attributes = spatial(rng, 2)
    kinds = pick(rng, [np.uint8, np.uint8, np.int8]), pick(rng, [np.int8, np.uint8])
    c, m = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    x, w = values(rng, kinds[0], [1, c, *dims]), values(rng, kinds[1], [m, c, *kernel])
    zero = lambda kind: values(rng, kind, [], special=0)  # noqa: E731
    if rng.random() < 0.5:
        return Case("ConvInteger", [x, w, maybe(rng, zero(kinds[0])), maybe(rng, zero(kinds[1]))], attributes, 10)
    scale = lambda: np.array(rng.uniform(0.01, 0.2), np.float32)  # noqa: E731
    bias = maybe(rng, rng.integers(-1000, 1000, m).astype(np.int32))
    return Case("QLinearConv", [x, scale(), zero(kinds[0]), w, scale(), zero(kinds[1]), scale() * 50, zero(kinds[0]), bias], attributes, 10)


@quantization
def quantize(rng):
    dims = shape(rng, 1, 3)
    kind = pick(rng, [np.int8, np.uint8, np.int16, np.uint16, *FEW, *EIGHT])
    grain = pick(rng, ["tensor", "axis", "block"])
    at, attributes, scales = int(rng.integers(len(dims))), {}, []
    if grain == "axis":
        attributes, scales = {"axis": at}, [dims[at]]
    elif grain == "block":
        size = int(rng.integers(1, 4))
        attributes, scales = {"axis": at, "block_size": size}, [-(-d // size) if i == at else d for i, d in enumerate(dims)]
    dtype = pick(rng, [np.float32, np.float32, np.float16])
    scale = (np.abs(smooth(rng, np.float32, scales)) + np.float32(0.05)).astype(dtype)
    zero = np.zeros(scales, kind) if kind in EIGHT else values(rng, kind, scales, special=0)
    if rng.random() < 0.5:
        if kind in EIGHT:
            attributes["saturate"] = maybe(rng, int(rng.integers(2)))
        return Case("QuantizeLinear", [smooth(rng, dtype, dims, scale=5.0), scale, zero], attributes, 21, wide=wide(kind))
    x = values(rng, kind, dims, special=0)
    if rng.random() < 0.2 and grain != "block":
        x, zero = rng.integers(-10000, 10000, dims).astype(np.int32), None
    return Case("DequantizeLinear", [x, scale, zero], attributes, 21, ulps=1)


@quantization
def dynamic(rng):
    return Case("DynamicQuantizeLinear", [smooth(rng, np.float32, shape(rng, 1, 3, empty=0), scale=4.0)], {}, 11, outputs=3, ulps=1)
