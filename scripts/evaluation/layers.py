"""Recurrent layers, attention, images, signals."""
import numpy as np

from . import cases
from .cases import Case, family, ints, maybe, pick, shape, smooth

RECURRENT, recurrent = family()
ATTENTION, attention = family()
IMAGES, image = family()
SIGNALS, signal = family()
SLACK = {"ulps": 32, "absolute": 64, "relative_to_all": True}


@recurrent
def layer(rng):
    operator, gates = pick(rng, [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
    time, batch, inputs, hidden = (int(d) for d in rng.integers(1, 5, 4))
    direction = pick(rng, ["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    f = np.float32
    attributes = {"hidden_size": hidden, "direction": direction, "clip": maybe(rng, 1.5, 0.2)}
    if rng.random() < 0.3:
        names = ["Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign", "LeakyRelu", "Elu", "Softplus", "Affine", "ScaledTanh", "ThresholdedRelu"]
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[operator] * d
        chosen = [pick(rng, names) for _ in range(count)]
        attributes["activations"] = chosen
        # One number for each function with a parameter.
        alpha = [0.5] * sum(name in ("LeakyRelu", "Elu", "Affine", "ScaledTanh", "HardSigmoid", "ThresholdedRelu") for name in chosen)
        beta = [0.25] * sum(name in ("Affine", "ScaledTanh", "HardSigmoid") for name in chosen)
        attributes |= {"activation_alpha": alpha or None, "activation_beta": beta or None}
    # With unbounded functions, states grow until ONNX Runtime has intermediate infinities.
    scale = 0.3 if "activations" in attributes else 1.0
    smooth = lambda rng, dtype, dims: cases.smooth(rng, dtype, dims, scale)  # noqa: E731
    operands = [smooth(rng, f, [time, batch, inputs]), smooth(rng, f, [d, gates * hidden, inputs]), smooth(rng, f, [d, gates * hidden, hidden]),
                maybe(rng, smooth(rng, f, [d, 2 * gates * hidden])), maybe(rng, rng.integers(1, time + 1, batch).astype(np.int32)),
                maybe(rng, smooth(rng, f, [d, batch, hidden]))]
    if operator == "LSTM":
        operands += [maybe(rng, smooth(rng, f, [d, batch, hidden])), maybe(rng, smooth(rng, f, [d, 3 * hidden]), 0.3)]
    if operator == "GRU":
        attributes["linear_before_reset"] = maybe(rng, int(rng.integers(2)))
    return Case(operator, operands, attributes, 14, outputs=3 if operator == "LSTM" else 2, ulps=32, absolute=64)


@attention
def scaled(rng):
    opset = pick(rng, [23, 24])
    batch, heads, size, value = (int(d) for d in rng.integers(1, 4, 4))
    share = int(pick(rng, [1, 1, 2]))
    query, key = (int(d) for d in rng.integers(1, 5, 2))
    f, flat = pick(rng, [np.float32, np.float32, np.float16]), rng.random() < 0.4
    lay = lambda count, length, width: [batch, length, count * width] if flat else [batch, count, length, width]  # noqa: E731
    operands = [smooth(rng, f, lay(heads * share, query, size)), smooth(rng, f, lay(heads, key, size)), smooth(rng, f, lay(heads, key, value))]
    past = int(rng.integers(1, 4)) if rng.random() < 0.3 else 0
    kind = pick(rng, [None, None, bool, f])
    mask = None
    if kind is not None:
        outer = pick(rng, [[], [batch, heads * share], [1, 1], [batch, 1]])
        mask = rng.random([*outer, query, past + key]) < 0.7 if kind is bool else smooth(rng, f, [*outer, query, past + key])
    operands.append(mask)
    if past:
        operands += [smooth(rng, f, [batch, heads, past, size]), smooth(rng, f, [batch, heads, past, value])]
    attributes = {"is_causal": maybe(rng, int(rng.integers(2))), "scale": maybe(rng, 0.3, 0.3), "softcap": maybe(rng, 2.0, 0.3)}
    if flat:
        attributes |= {"q_num_heads": heads * share, "kv_num_heads": heads}
    outputs = int(pick(rng, [3, 4]) if past else 1)
    if outputs == 4:
        attributes["qk_matmul_output_mode"] = maybe(rng, int(rng.integers(0, 4)))
    return Case("Attention", operands, attributes, opset, outputs=outputs, **SLACK)


@attention
def rotary(rng):
    batch, heads, length, half = (int(d) for d in rng.integers(1, 4, 4))
    flat, interleaved = rng.random() < 0.4, maybe(rng, int(rng.integers(2)))
    partial = maybe(rng, 2 * half, 0.4)
    size = 2 * half + (2 if partial else 0)
    x = smooth(rng, np.float32, [batch, length, heads * size] if flat else [batch, heads, length, size])
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": partial, "num_heads": heads if flat else None}
    if rng.random() < 0.5:
        table = [smooth(rng, np.float32, [8, half]) for _ in range(2)]
        return Case("RotaryEmbedding", [x, *table, rng.integers(0, 8, [batch, length])], attributes, 23, **SLACK)
    return Case("RotaryEmbedding", [x, *(smooth(rng, np.float32, [batch, length, half]) for _ in range(2))], attributes, 23, **SLACK)


@image
def resize(rng):
    rank = int(pick(rng, [1, 2, 3, 4, 4, 4, 5]))
    mode = pick(rng, ["nearest", "nearest", "linear", "cubic"])
    opset = int(pick(rng, [11, 13, 18, 19]))
    dims = [int(d) for d in rng.integers(1, 3, rank)]
    spatial = list(range(max(rank - 2, 0), rank))
    for a in spatial:
        dims[a] = int(rng.integers(1, 8))
    dtype = np.float32 if mode != "nearest" or rng.random() < 0.7 else pick(rng, [np.int32, np.uint8, np.int8])
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] + (["half_pixel_symmetric"] if opset >= 19 else []) + (["tf_half_pixel_for_nn"] if opset == 11 else [])
    attributes = {"mode": mode, "coordinate_transformation_mode": maybe(rng, pick(rng, modes), 0.8)}
    if mode == "nearest":
        attributes["nearest_mode"] = maybe(rng, pick(rng, ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        attributes |= {"cubic_coeff_a": maybe(rng, -0.5), "exclude_outside": maybe(rng, int(rng.integers(2)))}
    if opset >= 18 and mode != "nearest":
        attributes["antialias"] = maybe(rng, int(rng.integers(2)))
    roi = np.array([], np.float32) if opset == 11 else None
    axes = spatial if opset >= 18 and rng.random() < 0.4 else list(range(rank))
    if opset >= 18 and axes == spatial:
        attributes["axes"] = [a - rank if rng.random() < 0.3 else a for a in axes]
    if rng.random() < 0.5:
        scales = [float(pick(rng, [0.5, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0])) if a in spatial else 1.0 for a in axes]
        # In this mode the program follows the conformance tests, and ONNX Runtime does not.
        odd = attributes["coordinate_transformation_mode"] == "align_corners" and mode != "nearest" and any(dims[a] * s % 1 for a, s in zip(axes, scales))
        if odd or any(int(dims[a] * s) < 1 for a, s in zip(axes, scales)):
            return resize(rng)
        return Case("Resize", [smooth(rng, dtype, dims, scale=5.0), roi, np.array(scales, np.float32)], attributes, opset, only_runtime=True, **SLACK)
    sizes = [int(rng.integers(1, 12)) if a in spatial else dims[a] for a in axes]
    if opset >= 18 and rng.random() < 0.3:
        attributes["keep_aspect_ratio_policy"] = pick(rng, ["stretch", "not_larger", "not_smaller"])
    scales = np.array([], np.float32) if opset == 11 else None
    return Case("Resize", [smooth(rng, dtype, dims, scale=5.0), roi, scales, ints(*sizes)], attributes, opset, only_runtime=True, **SLACK)


@image
def upsample(rng):
    x = smooth(rng, np.float32, [1, int(rng.integers(1, 3)), *rng.integers(1, 5, 2).tolist()])
    scales = np.array([1, 1, *(pick(rng, [1.0, 1.5, 2.0, 3.0]) for _ in range(2))], np.float32)
    return Case("Upsample", [x, scales], {"mode": maybe(rng, pick(rng, ["nearest", "linear"]))}, 9, **SLACK)


@image
def grid(rng):
    rank = int(pick(rng, [4, 4, 5]))
    opset = int(pick(rng, [16, 20])) if rank == 4 else 20
    n, c = (int(d) for d in rng.integers(1, 3, 2))
    x = smooth(rng, np.float32, [n, c, *rng.integers(1, 6, rank - 2).tolist()])
    place = rng.uniform(-1.6, 1.6, [n, *rng.integers(1, 4, rank - 2).tolist(), rank - 2])
    place = np.round(place * 4) / 4 if rng.random() < 0.3 else place
    modes = ["bilinear", "nearest", "bicubic"] if opset == 16 else ["linear", "nearest"] + (["cubic"] if rank == 4 else [])
    attributes = {"mode": maybe(rng, pick(rng, modes)), "padding_mode": maybe(rng, pick(rng, ["zeros", "border", "reflection"])), "align_corners": maybe(rng, int(rng.integers(2)))}
    return Case("GridSample", [x, place.astype(np.float32)], attributes, opset, only_runtime=True, ulps=32, absolute=4096, relative_to_all=True)


@image
def affine(rng):
    rank, opset = int(pick(rng, [2, 3])), 20
    n = int(rng.integers(1, 3))
    theta = smooth(rng, pick(rng, [np.float32, np.float64]), [n, rank, rank + 1])
    return Case("AffineGrid", [theta, ints(n, 2, *rng.integers(1, 5, rank).tolist())], {"align_corners": maybe(rng, int(rng.integers(2)))}, opset, **SLACK)


@image
def align(rng):
    n, c, height, width = (int(d) for d in rng.integers(1, [3, 3, 9, 9]))
    corners = np.sort(rng.uniform(-3, 9, [int(rng.integers(0, 4)), 2, 2]), 1).reshape(-1, 4)
    opset = int(pick(rng, [10, 16]))
    attributes = {"mode": maybe(rng, pick(rng, ["avg", "max"])), "output_height": int(rng.integers(1, 4)), "output_width": int(rng.integers(1, 4)), "sampling_ratio": int(rng.integers(0, 3)), "spatial_scale": pick(rng, [1.0, 0.5, 0.7])}
    if opset == 16:
        attributes["coordinate_transformation_mode"] = maybe(rng, pick(rng, ["half_pixel", "output_half_pixel"]))
    return Case("RoiAlign", [smooth(rng, np.float32, [n, c, height, width]), corners.astype(np.float32), rng.integers(0, n, len(corners))], attributes, opset, only_runtime=True, **SLACK)


@image
def suppression(rng):
    n, classes, count = int(rng.integers(1, 3)), int(rng.integers(1, 4)), int(rng.integers(0, 9))
    boxes, scores = rng.integers(0, 6, [n, count, 4]) / 2, rng.integers(0, 5, [n, classes, count]) / 4
    operands = [boxes.astype(np.float32), scores.astype(np.float32), ints(int(pick(rng, [0, 1, 3, 100]))), np.array([pick(rng, [0.0, 0.3, 0.5, 1.0])], np.float32)]
    operands.append(maybe(rng, np.array([pick(rng, [0.25, 0.4])], np.float32)))
    return Case("NonMaxSuppression", operands, {"center_point_box": maybe(rng, int(rng.integers(2)))}, 11, only_runtime=True)


@signal
def fourier(rng):
    opset, rank = int(pick(rng, [17, 20])), int(pick(rng, [3, 3, 4]))
    inverse, one = int(rng.integers(2)), int(rng.integers(2))
    parts = (2 if inverse else 1) if one else int(rng.integers(1, 3))
    dims = [int(rng.integers(1, 4)), *rng.integers(1, 18, rank - 2).tolist(), parts]
    at, length = int(rng.integers(rank - 1)), maybe(rng, np.array(rng.integers(1, 20)), 0.4)
    x = smooth(rng, pick(rng, [np.float32, np.float64]), dims)
    attributes = {"inverse": inverse, "onesided": one}
    if opset == 17:
        return Case("DFT", [x, length], {**attributes, "axis": at}, 17, single=True, **SLACK)
    return Case("DFT", [x, length, np.array(at)], attributes, 20, single=True, **SLACK)


@signal
def short_time(rng):
    length = int(rng.integers(4, 40))
    frame, parts = int(rng.integers(1, length)), int(pick(rng, [1, 1, 2]))
    window = maybe(rng, rng.uniform(0, 1, frame).astype(np.float32), 0.6)
    given = np.array(frame) if window is None or rng.random() < 0.5 else None
    x = smooth(rng, np.float32, [int(rng.integers(1, 3)), length, parts])
    return Case("STFT", [x, np.array(rng.integers(1, 9)), window, given], {"onesided": 0 if parts == 2 else int(rng.integers(2))}, 17, **{**SLACK, "absolute": 4096})


@signal
def windows(rng):
    attributes = {"periodic": maybe(rng, int(rng.integers(2))), "output_datatype": maybe(rng, int(pick(rng, [1, 10, 11])))}
    return Case(pick(rng, ["HannWindow", "HammingWindow", "BlackmanWindow"]), [np.array(rng.integers(1, 50))], attributes, 17, ulps=8, absolute=8, single=True)


@signal
def mel(rng):
    operands = [np.array(rng.integers(1, 40)), np.array(pick(rng, [16, 64, 257, 512])), np.array(pick(rng, [8000, 16000])), np.array(pick(rng, [0.0, 20.0, 300.0]), np.float32), np.array(pick(rng, [3000.0, 4000.0]), np.float32)]
    return Case("MelWeightMatrix", operands, {}, 17, ulps=16, absolute=16)
