"""`evaluate` beside ONNX Runtime and numpy."""

import ml_dtypes
import numpy
import onnx
import onnx.parser
import onnxruntime
import pytest

import onnx_slice_fold as osf


def parsed(text):
    return onnx.parser.parse_model('<ir_version: 13, opset_import: ["" : 25]> g ' + text)


def test_a_real_model_computes_what_onnxruntime_computes(bert):
    feeds = {"input_ids": numpy.array([[1, 2, 3]]), "attention_mask": numpy.ones((1, 3), numpy.int64)}
    session = onnxruntime.InferenceSession(bert)
    feeds = {value.name: feeds[value.name] for value in session.get_inputs()}
    found = osf.evaluate(bert, feeds)
    for output, wanted in zip(session.get_outputs(), session.run(None, feeds)):
        numpy.testing.assert_allclose(found[output.name], wanted, rtol=1e-4, atol=1e-5)


def test_a_folded_model_computes_the_same(bert):
    feeds = {"input_ids": numpy.array([[1, 2]]), "attention_mask": numpy.ones((1, 2), numpy.int64)}
    folded, _ = osf.fold(bert.read_bytes(), exact=True)
    before, after = osf.evaluate(bert, feeds), osf.evaluate(folded, feeds)
    for name, wanted in before.items():
        numpy.testing.assert_allclose(after[name], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name, values",
    [
        ("float", numpy.float32([1.5, -2])),
        ("double", numpy.float64([1.5, -2])),
        ("float16", numpy.float16([1.5, -2])),
        ("bool", numpy.array([True, False])),
        ("uint8", numpy.uint8([1, 255])),
        ("int64", numpy.array([1, -(2**40)])),
        ("complex64", numpy.complex64([1 + 2j, 3])),
        ("string", numpy.array(["ä", "b"], dtype=object)),
        ("bfloat16", numpy.array([1.5, -2], ml_dtypes.bfloat16)),
        ("float8e4m3fn", numpy.array([1.5, -2], ml_dtypes.float8_e4m3fn)),
        ("float8e5m2", numpy.array([1.5, -2], ml_dtypes.float8_e5m2)),
        ("int4", numpy.array([-8, 7, -1], ml_dtypes.int4)),
        ("uint4", numpy.array([15, 0, 3], ml_dtypes.uint4)),
        ("float4e2m1", numpy.array([6, -0.5, 1], ml_dtypes.float4_e2m1fn)),
        ("int2", numpy.array([-2, 1, 0, -1, 1], ml_dtypes.int2)),
    ],
)
def test_every_element_type_goes_in_and_out(name, values):
    if name.upper() not in onnx.TensorProto.DataType.keys():
        pytest.skip(f"this onnx has no {name}")
    size = len(values)
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Identity", ["x"], ["y"])],
            "g",
            [onnx.helper.make_tensor_value_info("x", _number(name), [size])],
            [onnx.helper.make_tensor_value_info("y", _number(name), [size])],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 25)],
        ir_version=13,
    )
    (found,) = osf.evaluate(model, {"x": values}).values()
    assert found.dtype == values.dtype and found.tolist() == values.tolist()


def _number(name):
    names = {"float8e4m3fn": "FLOAT8E4M3FN", "float4e2m1": "FLOAT4E2M1"}
    return onnx.TensorProto.DataType.Value(names.get(name, name.upper()))


def test_layouts_sequences_and_dlpack():
    model = parsed("(float[2, 3] x) => (float[3, 2] y) { y = Transpose (x) }")
    x = numpy.arange(6, dtype=numpy.float32).reshape(3, 2).T
    assert (osf.evaluate(model, {"x": x})["y"] == x.T).all()
    assert (osf.evaluate(model, {"x": x.astype(">f4")})["y"] == x.T).all()

    class Shared:
        """Speaks DLPack and nothing else."""

        def __dlpack__(self, **arguments):
            return numpy.ascontiguousarray(x).__dlpack__(**arguments)

        def __dlpack_device__(self):
            return numpy.ascontiguousarray(x).__dlpack_device__()

    assert (osf.evaluate(model, {"x": Shared()})["y"] == x.T).all()
    model = parsed("(seq(float[n]) s) => (float[m] y) { y = ConcatFromSequence <axis = 0> (s) }")
    parts = [numpy.float32([1]), numpy.float32([2, 3])]
    assert osf.evaluate(model, {"s": parts})["y"].tolist() == [1, 2, 3]


def test_what_does_not_fit_is_told():
    model = parsed("(float[n, 2] x, float[n] z) => (float[n, 2] y) { y = Neg (x) }")
    x, z = numpy.zeros((3, 2), numpy.float32), numpy.zeros(3, numpy.float32)
    assert osf.evaluate(model, {"x": x, "z": z})["y"].shape == (3, 2)
    for inputs, told in [
        ({"x": x}, "the value of input 'z' is missing"),
        ({"x": x, "z": z, "q": z}, "no input named 'q'; its inputs are 'x', 'z'"),
        ({"x": x, "z": z[:2]}, "dimension 'n' is 3 in input 'x' and 2 in input 'z'"),
        ({"x": x.astype(numpy.float64), "z": z}, "elements of type float"),
        ({"x": x[:, :1], "z": z}, r"the shape \[n, 2\]"),
        ({"x": numpy.zeros((3, 2), "M8[s]"), "z": z}, "no tensors of ONNX"),
    ]:
        with pytest.raises(osf.UsageError, match=told):
            osf.evaluate(model, inputs)
    unknown = parsed("(float[2] x) => (float[2] y) { y = Mystery (x) }")
    with pytest.raises(osf.NotEvaluatedError, match="Mystery"):
        osf.evaluate(unknown, {"x": numpy.zeros(2, numpy.float32)})
