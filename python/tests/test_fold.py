"""`fold`, `explain`, `show`: each kind of model in and out, options, reports."""

import io
import json
import subprocess
import sys
import threading
from pathlib import Path

import onnx
import onnx_ir
import pytest

import onnx_slice_fold as osf


def operators(model):
    return [node.op_type for node in model.graph.node]


def test_a_proto_gives_a_proto_and_is_not_changed(chain):
    before = chain.SerializeToString()
    folded, report = osf.fold(chain)
    assert isinstance(folded, onnx.ModelProto) and operators(folded) == ["Reshape", "Relu"]
    assert chain.SerializeToString() == before
    assert (report.before.nodes, report.after.nodes) == (7, 2)
    assert report.bytes_before == len(before) and report.bytes_after == folded.ByteSize()
    onnx.checker.check_model(folded, full_check=True)


def test_every_kind_gives_its_kind(chain, tmp_path):
    data = chain.SerializeToString()
    folded, _ = osf.fold(data)
    assert type(folded) is bytes
    assert type(osf.fold(bytearray(data))[0]) is bytearray and osf.fold(bytearray(data))[0] == folded
    assert bytes(osf.fold(memoryview(data))[0]) == folded
    stream, _ = osf.fold(io.BytesIO(data))
    assert stream.tell() == 0 and stream.read() == folded
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    written, report = osf.fold(path)
    assert written == tmp_path / "model.folded.onnx" and written.read_bytes() == folded
    assert report.bytes_after == len(folded)
    named, _ = osf.fold(str(path), str(tmp_path / "other.onnx"))
    assert named == str(tmp_path / "other.onnx") and Path(named).read_bytes() == folded
    sink = io.BytesIO()
    assert osf.fold(data, sink)[0] is sink and sink.getvalue() == folded
    model, _ = osf.fold(onnx_ir.from_proto(chain))
    assert isinstance(model, onnx_ir.Model) and [node.op_type for node in model.graph] == ["Reshape", "Relu"]


def test_another_kind_is_told_of(chain):
    with pytest.raises(TypeError, match="a model is a path, bytes.* and not a builtins.int"):
        osf.fold(3)
    with pytest.raises(osf.UsageError, match="binary mode"):
        osf.fold(io.StringIO("text"))


def test_bytes_are_those_of_the_program(each_model, tmp_path):
    target = tmp_path / "folded.onnx"
    program = [sys.executable, "-m", "onnx_slice_fold", str(each_model), "-o", str(target)]
    subprocess.run(program, check=True, capture_output=True)
    folded, report = osf.fold(each_model.read_bytes())
    assert folded == target.read_bytes()
    simplified, ok = osf.simplify(str(each_model))
    assert ok and simplified.SerializeToString(deterministic=True) == onnx.load(target).SerializeToString(
        deterministic=True
    )


def test_options_reach_the_library(chain):
    # The metadata contains the options, which differ.
    folded, _ = osf.fold(chain, dims={"batch": 2}, stamp=False)
    shaped, _ = osf.fold(chain.SerializeToString(), input_shapes={"x": [2, None, 6]}, stamp=False)
    assert onnx.load_from_string(shaped) == folded
    assert [dim.dim_value for dim in folded.graph.value_info[0].type.tensor_type.shape.dim] == [2, 6, 4]
    _, report = osf.fold(chain, only=["identity"])
    assert report.fired.keys() <= {"identity", "fold-constants"} and report.after.operators["Reshape"] == 1
    _, report = osf.fold(chain, stop_after=0)
    assert report.after.nodes == report.before.nodes
    for wrong in ({"no_such_option": 1}, {"skip": ["no-such-rule"]}, {"slice_rule": "mine"}, {"strided_slice": "x"}):
        with pytest.raises(osf.UsageError):
            osf.fold(chain, **wrong)
    with pytest.raises(osf.AssumptionError, match="no input of the model has a dimension named 'height'|height"):
        osf.fold(chain, dims={"height": 2})


def test_avoided_constructs_are_replaced_or_listed():
    source = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,n] x, float[4,3] z) => (y, w)
        <int64[1] s = {-1}, int64[1] e = {-9223372036854775808}, int64[1] a = {1}, int64[1] t = {-1}, int64[2,2] i = {0, 1, 3, 2}>
        { r = Relu (x)  y = Slice (r, s, e, a, t)  w = GatherND (z, i) }"""
    model = onnx.parser.parse_model(source)
    folded, report = osf.fold(model, avoid=["negative-steps", "GatherND"])
    assert "GatherND" not in operators(folded)
    assert [(avoided.construct, avoided.node) for avoided in report.avoided] == [("negative-steps", "Slice node 'x_sliced'")]
    assert report.avoided[0].reason.startswith("it selects from 'x'")
    with pytest.raises(osf.UsageError, match="names no construct"):
        osf.fold(model, avoid="negative steps")


def test_errors_have_kinds(tmp_path):
    with pytest.raises(osf.MalformedModelError, match="ZIP archive"):
        osf.fold(b"PK\x03\x04")
    with pytest.raises(FileNotFoundError, match="none.onnx"):
        osf.fold(tmp_path / "none.onnx")
    with pytest.raises(osf.Error):
        osf.fold(tmp_path)
    assert issubclass(osf.MalformedModelError, ValueError) and issubclass(osf.FileError, OSError)


def test_data_in_other_files(tmp_path, chain):
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 4] y) <float[4] w = {1, 2, 3, 4}> {
            same = Identity (x)
            y = Add (same, w)
        }""")
    # Only raw data can be written to a data file.
    weights = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(model.graph.initializer[0]), "w")
    model.graph.initializer[0].CopyFrom(weights)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="model.data")
    data = path.read_bytes()
    with pytest.warns(UserWarning, match="'model.data' is missing"):
        folded, report = osf.fold(data)
    assert [(missing.location, missing.tensors, missing.looked_in) for missing in report.missing_data] == [("model.data", 1, [])]
    assert json.loads(json.dumps(report.to_dict()))["missing_data"][0]["tensors"] == 1
    assert onnx.load_from_string(folded).graph.initializer[0].external_data[0].value == "model.data"
    with pytest.warns(UserWarning), pytest.raises(osf.ImpossibleError):
        osf.fold(data, strict=True)
    for place in ({"base_dir": tmp_path}, {"external_data_roots": tmp_path}, {"external_data_roots": ["/", str(tmp_path)]}):
        folded, report = osf.fold(data, **place)
        assert report.missing_data == []
    whole = onnx.load_from_string(folded)
    assert onnx.numpy_helper.to_array(whole.graph.initializer[0]).tolist() == [1, 2, 3, 4]
    for form in (onnx.ModelProto, bytes):
        made, _ = osf.fold(path, form)
        made = onnx.load_from_string(made) if form is bytes else made
        assert onnx.numpy_helper.to_array(made.graph.initializer[0]).tolist() == [1, 2, 3, 4]
    opened, _ = osf.fold(onnx_ir.load(path))
    assert opened.graph.initializers["w"].const_value.numpy().tolist() == [1, 2, 3, 4]
    assert operators(osf.simplify(str(path))[0]) == ["Add"]


def test_a_report_is_data_text_and_html(bert):
    _, report = osf.fold(bert.read_bytes())
    assert "all nodes" in str(report) and str(report.after.nodes) in str(report)
    assert report._repr_html_().startswith("<table>")
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["after"]["nodes"] == report.after.nodes < report.before.nodes
    assert report.fired["reshape-to-constant"] > 0
    hostile = report._replace(notes=[osf.Note("declined", "<script>", "&")])
    assert "<script>" not in hostile._repr_html_()


def test_explain_and_show(chain):
    explanation = osf.explain(chain)
    assert str(explanation).startswith(explanation.headline) and "What was done" in explanation.text
    assert explanation.nodes_before > explanation.nodes == len(explanation.causes)
    assert explanation.to_dict()["nodes"] == explanation.nodes
    assert "<p>" in explanation._repr_html_()
    shown = osf.show(chain)
    assert "Shape (x)" in shown and "Shape (x)" not in osf.show(chain, folded=True)
    assert onnx.parser.parse_model(osf.show(chain, folded=True)).graph.node[1].op_type == "Relu"
    assert "slices-to-split" in osf.rules() and "slices-to-split" == osf.rules("slices-to-split").name
    with pytest.raises(osf.UsageError, match="slices-to-split"):
        osf.rules("slices-to-splt")


def test_progress_is_told_and_may_raise(bert):
    told = []
    osf.fold(bert.read_bytes(), progress=told.append)
    assert told and all(isinstance(words, str) for words in told)

    def stop(words):
        raise KeyboardInterrupt(words)

    with pytest.raises(KeyboardInterrupt):
        osf.fold(bert.read_bytes(), progress=stop)


def test_other_threads_go_on(bert):
    """While the library works it calls back from another thread's time slice only if the interpreter's lock is free."""
    data, seen = bert.read_bytes(), []
    threads = [threading.Thread(target=lambda: seen.append(osf.fold(data)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 and len(set(seen)) == 1
