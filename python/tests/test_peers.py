"""`simplify`, `slim` and `infer_shapes` under the signatures of the tools they replace."""

import inspect
import warnings

import numpy
import onnx
import onnx.parser
import onnx.shape_inference
import pytest

import onnx_slice_fold as osf


def operators(model):
    return [node.op_type for node in model.graph.node]


def test_simplify_gives_a_model_and_a_verdict(chain, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(chain, path)
    for given in (chain, str(path)):
        model, ok = osf.simplify(given)
        assert ok is True and operators(model) == ["Reshape", "Relu"]
    model, ok = osf.simplify(chain, 2, test_input_shapes={"x": [3, 4, 6]})
    assert ok and operators(model) == ["Reshape", "Relu"]
    model, ok = osf.simplify(chain, check_n=1, overwrite_input_shapes={"x": [3, 4, 6]})
    assert ok and model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3
    assert osf.simplify(chain, check_n=1, input_data={"x": numpy.ones((2, 4, 6), numpy.float32)})[1]
    with pytest.raises(ValueError, match="open dimensions: give test_input_shapes"):
        osf.simplify(chain, check_n=1)


def test_static_shapes_are_overwritten_and_all_that_follows():
    static = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]> g (float[2, 6] x) => (float[2, 6] y) <float[2, 6] r> {
            r = Relu (x)
            s = Shape (r)
            y = Reshape (r, s)
        }""")
    model, ok = osf.simplify(static, check_n=1, overwrite_input_shapes={"x": [5, 6]})
    assert ok and operators(model) == ["Relu"]
    slimmed = osf.slim(static, input_shapes=["x:5,6"], model_check=True)
    for found in (model, slimmed):
        shapes = [value.type.tensor_type.shape.dim for value in (*found.graph.input, *found.graph.output)]
        assert [[dim.dim_value for dim in shape] for shape in shapes] == [[5, 6], [5, 6]]
    assert static.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
    with pytest.raises(osf.AssumptionError):
        osf.simplify(static, overwrite_input_shapes={"x": [5, 6, 7]})


def test_simplify_finds_a_model_that_differs(chain):
    def wrong(model):
        """Takes the Relu for a Neg."""
        for node in model.graph.node:
            if node.op_type == "Relu":
                node.op_type = "Neg"
                return model
        return False

    model, ok = osf.simplify(chain, check_n=1, test_input_shapes=[2, 4, 6], custom_rewriter=wrong)
    assert not ok and operators(model) == ["Reshape", "Neg"]


def test_simplify_does_what_its_arguments_say(chain, tmp_path):
    two = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]> g (float[2] x) => (float[2] y, float[2] z) {
            y = Neg (x)
            z = Abs (x)
        }""")
    model, _ = osf.simplify(two, unused_output=["z"])
    assert operators(model) == ["Neg"] and len(two.graph.output) == 2
    model, _ = osf.simplify(two, target_opset_version=17)
    assert model.opset_import[0].version == 17
    model, _ = osf.simplify(chain, perform_optimization=False)
    assert "Shape" in operators(model)
    path, target = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(chain, path)
    osf.simplify(str(path), output_path=str(target))
    assert operators(onnx.load(target)) == ["Reshape", "Relu"]
    large = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]> g (float[4000] x) => (float[4000] y) { y = Add (x, w) }""")
    weights = onnx.numpy_helper.from_array(numpy.arange(4000, dtype=numpy.float32), "w")
    large.graph.initializer.append(weights)
    onnx.save(large, path)
    for threshold, external in (("100MB", False), ("1KB", True)):
        osf.simplify(str(path), output_path=str(target), external_data_threshold=threshold)
        assert (tmp_path / "out.onnx.data").exists() is external
        assert onnx.numpy_helper.to_array(onnx.load(target).graph.initializer[0])[-1] == 3999
    named, _ = osf.simplify(chain, overwrite_input_shapes={"x": [0, 4, 6]})
    assert named.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    with pytest.raises(NotImplementedError):
        osf.simplify(chain, initializers_as_constants=False)
    with pytest.raises(osf.UsageError, match="no output 'q'; it has y, z"):
        osf.simplify(two, unused_output=["q"])
    with pytest.warns(UserWarning, match="skip_shape_inference"):
        osf.simplify(chain, skip_shape_inference=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        osf.simplify(chain, include_subgraph=True, mutable_initializer=True)


def test_simplify_has_the_arguments_of_onnxsim():
    onnxsim = pytest.importorskip("onnxsim")
    theirs, ours = inspect.signature(onnxsim.simplify), inspect.signature(osf.simplify)
    assert [(p.name, p.kind) for p in theirs.parameters.values()] == [(p.name, p.kind) for p in ours.parameters.values()]
    for name, parameter in theirs.parameters.items():
        assert parameter.default == ours.parameters[name].default, name


def test_slim(chain, tmp_path, caplog):
    caplog.set_level("INFO", logger="onnx_slice_fold")
    assert operators(osf.slim(chain)) == ["Reshape", "Relu"]
    target = tmp_path / "slim.onnx"
    assert osf.slim(chain, str(target), model_check=True, input_shapes=["x:2,4,6"]) is None
    assert onnx.load(target).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
    assert "all nodes" in caplog.text
    osf.slim(chain, str(target), save_as_external_data=True)
    assert operators(osf.slim(chain, outputs=["moved"])) == ["Reshape"]
    caplog.clear()
    assert [report.after.nodes for report in osf.slim([chain, str(target)])] == [7, 2]
    assert caplog.text.count("all nodes") == 2
    with pytest.raises(TypeError, match="no argument 'model_chek'"):
        osf.slim(chain, model_chek=True)
    with pytest.raises(NotImplementedError):
        osf.slim(chain, dtype="fp16")


def test_infer_shapes(chain, tmp_path):
    def shapes(model):
        return {v.name: [d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in model.graph.value_info}

    for infer in (osf.infer_shapes, osf.SymbolicShapeInference.infer_shapes):
        inferred = infer(chain)
        assert operators(inferred) == operators(chain)
        assert shapes(inferred)["moved"] == ["batch", 6, 4]
    assert inspect.signature(osf.infer_shapes).parameters.keys() == inspect.signature(
        onnx.shape_inference.infer_shapes
    ).parameters.keys()
    path, target = tmp_path / "model.onnx", tmp_path / "inferred.onnx"
    onnx.save(chain, path)
    osf.infer_shapes_path(path, target)
    assert shapes(onnx.load(target)) == shapes(osf.infer_shapes(chain))
    broken = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]> g (float[2] x, float[3] y) => (float[k] z) { z = Add (x, y) }""")
    osf.infer_shapes(broken)
    with pytest.raises(osf.ImpossibleError):
        osf.infer_shapes(broken, strict_mode=True)
