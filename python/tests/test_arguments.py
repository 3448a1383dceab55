"""Wrong arguments: the kind of the error, and the remedy in its text. Signatures and docstrings of public functions."""

import inspect
import io
import logging
import re
import subprocess
import sys
from pathlib import Path

import numpy
import onnx
import onnx_ir
import pytest

import onnx_slice_fold as osf
from onnx_slice_fold.ir_pass import FoldPass
from onnx_slice_fold.pytest_plugin import OnnxSnapshot
from onnx_slice_fold.torch_export import fold_program
from test_docs import ROOT


@pytest.mark.parametrize(
    "options, kind, text",
    [
        ({"dims": ["batch=1"]}, TypeError, r'dims must be a dict by name, not list; write dims=\{"batch": 1\}'),
        ({"dims": "batch=1..4"}, TypeError, r'not str; write dims=\{"batch": "1..4"\}'),
        ({"dims": [("batch", 1)]}, TypeError, r'write dims=\{"batch": 1\}'),
        ({"dims": {"batch": 1.5}}, TypeError, r"dims\['batch'\] must be a number or a range"),
        ({"dims": {"batch": True}}, TypeError, r"dims\['batch'\] must be a number or a range"),
        ({"dims": {"batch": -1}}, ValueError, r"dims\['batch'\] is -1; it must be at least 0"),
        ({"dims": {3: 1}}, TypeError, "the keys of dims must be names, not int 3"),
        ({"dims": {"bath": 1}}, osf.AssumptionError, "not found; .*batch.*did you mean batch"),
        ({"input_shapes": ["x:1,4,6"]}, TypeError, r'write input_shapes=\{"x": \[1, 4, 6\]\}'),
        ({"input_shapes": {"x": "1,4,6"}}, TypeError, r"input_shapes\['x'\] must be a list of sizes, not str; write \[1, 4, 6\]"),
        ({"input_shapes": {"x": [1.5, 4, 6]}}, TypeError, "must be a number, a name or None, not float 1.5"),
        ({"input_shapes": {"x": [-2, 4, 6]}}, ValueError, "it must be at least -1"),
        ({"max_growth": -1}, ValueError, "max_growth is -1; it must be at least 0, such as max_growth=0.1"),
        ({"max_growth": float("nan")}, ValueError, "max_growth is nan; it must be at least 0"),
        ({"max_growth": "10%"}, TypeError, "max_growth must be a number, not str '10%'; max_growth=0.1 allows 10 % growth"),
        ({"free_growth": -1}, ValueError, "free_growth is -1; it must be at least 0"),
        ({"max_constant": 1.5}, TypeError, "max_constant must be a whole number, not float 1.5"),
        ({"max_constant": 2**64}, ValueError, r"it must be at least 0 and at most 2\*\*63 - 1"),
        ({"opset": "17"}, TypeError, "opset must be a whole number, not str '17'"),
        ({"exact": "yes"}, TypeError, "exact must be True or False, not str 'yes'"),
        ({"skip": 3}, TypeError, r'skip must be a text or a list of texts, not int; write skip=\["matmul-add-to-gemm"\]'),
        ({"only": [b"identity"]}, TypeError, "only must be a text or a list of texts, not bytes"),
        ({"skip": "idntity"}, osf.UsageError, "did you mean 'identity'"),
        ({"shapes": "al"}, osf.UsageError, "shapes is 'al'; it must be one of 'auto', .*; did you mean 'all'?"),
        ({"slice_rule": "onnx-runtime"}, osf.UsageError, "did you mean 'onnxruntime'"),
        ({"dimz": {}}, osf.UsageError, "there is no option 'dimz'; the options are dims, .*; did you mean 'dims'?"),
        ({"overwrite_input_shapes": {}}, osf.UsageError, "did you mean 'input_shapes'?"),
        ({"xyzzy": 1}, osf.UsageError, "there is no option 'xyzzy'; the options are dims, .*verify_each$"),
        ({"base_dirs": "."}, osf.UsageError, "did you mean 'base_dir'?"),
        ({"base_dir": 3}, TypeError, "base_dir must be a directory, not int"),
        ({"external_data_roots": 3}, TypeError, "external_data_roots must be a directory, not int"),
        ({"progress": 3}, TypeError, "progress must be a function of one text, not int"),
        ({"operators": "Grow"}, TypeError, "operators must be a list of Operator, not str"),
        ({"output": 3}, TypeError, "output is a path, a binary file object or a class such as bytes, and not a int"),
        ({"output": str}, TypeError, "output is the class str; it must be bytes"),
        ({"output": io.StringIO()}, osf.UsageError, r'open it in binary mode: open\(path, "wb"\)'),
    ],
    ids=str,
)
def test_a_wrong_argument_of_fold_is_an_error_with_its_remedy(chain, options, kind, text):
    with pytest.raises(kind, match=text):
        osf.fold(chain, **options)


def test_the_options_are_those_of_the_compiled_half():
    source = (ROOT / "python" / "src" / "options.rs").read_text(encoding="utf-8")
    handled = re.findall(r'^ {12}"(\w+)" =>', source, re.MULTILINE)
    assert sorted(handled) == sorted([*osf.FoldOptions.__annotations__, "fold"])


def test_wrong_arguments_of_other_functions(chain, tmp_path):
    for call, kind, text in [
        (lambda: osf.fold([chain]), TypeError, "not a builtins.list; call the function once for each model"),
        (lambda: osf.fold(chain.graph), TypeError, "onnx.helper.make_model"),
        (lambda: osf.fold(onnx.ModelProto), TypeError, "pass a model of this class"),
        (lambda: osf.diff(chain, 3), TypeError, "and not a builtins.int"),
        (lambda: osf.explain(chain, 3), TypeError, "names must be texts, not int"),
        (lambda: osf.explain(chain, trials=-1), ValueError, "trials is -1; it must be at least 0"),
        (lambda: osf.explain(chain, trails=1), osf.UsageError, "did you mean 'trials'"),
        (lambda: osf.show(chain, foldde=True), osf.UsageError, "did you mean 'folded'"),
        (lambda: osf.evaluate(chain, [1]), TypeError, "inputs must be a dict of arrays by name, not list"),
        (lambda: osf.infer_shapes_path(chain), TypeError, "model_path must be a path"),
        (lambda: osf.SymbolicShapeInference.infer_shapes("x.onnx"), TypeError, "in_mp is an onnx.ModelProto, and not a str"),
        (lambda: osf.rules(3), TypeError, "name must be the name of a rule or pass, not int"),
        (lambda: osf.simplify(b""), TypeError, "and not a bytes; fold accepts other forms"),
        (lambda: osf.simplify(chain, check_n=-1), ValueError, "check_n is -1"),
        (lambda: osf.simplify(chain, unused_output=3), TypeError, "unused_output must be a text or a list of texts"),
        (lambda: osf.simplify(chain, custom_rewriter=3), TypeError, "custom_rewriter must be a function"),
        (lambda: osf.simplify(chain, overwrite_input_shapes={"x": "1,2"}), TypeError, "the shape of input 'x' must be a list of sizes"),
        (lambda: osf.slim(chain, input_shapes={"x": [1, 4, 6]}), TypeError, r"write input_shapes=\['x:1,4,6'\]"),
        (lambda: osf.slim(chain, modelcheck=True), TypeError, "did you mean 'model_check'"),
        (lambda: osf.slim(b""), TypeError, "and not a bytes"),
    ]:
        with pytest.raises(kind, match=text):
            call()


def test_numbers_and_truth_of_numpy_are_accepted(chain):
    folded, _ = osf.fold(chain, dims={"batch": numpy.int32(2)}, max_growth=numpy.float32(0.5), exact=numpy.bool_(True))
    assert folded.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
    assert osf.fold(chain, skip="identity", assume="batch >= 2")


def test_no_output_and_none_are_the_same_and_a_class_writes_no_file(chain, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(chain, path)
    wanted = osf.fold(path.read_bytes())[0]
    for form in (bytes, bytearray, onnx.ModelProto, onnx_ir.Model):
        made, report = osf.fold(str(path), form)
        assert type(made) is form and report.bytes_after == len(wanted)
    assert osf.fold(path, bytes)[0] == wanted and osf.fold(chain, bytes)[0] == wanted
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    assert osf.fold(str(path), output=None)[0] == str(tmp_path / "model.folded.onnx")
    assert (tmp_path / "model.folded.onnx").read_bytes() == wanted
    (tmp_path / "model.folded.onnx").unlink()
    osf.simplify(path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_the_log_has_what_was_done_and_nothing_is_printed(chain, caplog, capfd):
    caplog.set_level(logging.INFO, logger="onnx_slice_fold")
    osf.fold(chain)
    assert "folded model: 2 nodes, before 7" in caplog.text
    osf.slim([chain])
    assert "all nodes" in caplog.text
    assert capfd.readouterr() == ("", "")


def test_differences_are_data_and_text(chain):
    folded, _ = osf.fold(chain, stamp=False)
    found = osf.diff(chain, folded)
    signed = [line for line in str(found).splitlines() if line[0] in "+-~"]
    assert found and [str(change) for change in found] == signed and len(found) == len(signed)
    assert str(found).endswith("nodes compute the same values in both models\n")
    assert {change.kind for change in found}  == {"added", "removed", "changed"}
    same = osf.diff(chain, chain)
    assert not same and str(same) == "" and len(same) == 0


def test_differences_inside_a_subgraph_belong_to_one_change():
    text = """<ir_version: 8, opset_import: ["" : 17]> g (bool c, float[2] x) => (z) {
        z = If (c) <then_branch = t () => (float[2] a) { a = Neg (x) }, else_branch = e () => (float[2] b) { b = Abs (x) }> }"""
    before, after = (onnx.parser.parse_model(text.replace("Neg", name)) for name in ("Neg", "Exp"))
    found = osf.diff(before, after)
    assert any("then_branch" in change.text and "\n" in change.text for change in found)
    program = osf._core.Model.from_bytes(before.SerializeToString(), [])
    assert str(found) == program.diff(osf._core.Model.from_bytes(after.SerializeToString(), []))


def test_rules_are_data_and_text():
    every = osf.rules()
    assert str(every) == osf._core.rules(None) and len(every) == str(every).count("\n### ")
    for rule in every:
        assert rule.summary and rule.law and rule.name in every
        assert osf.rules(rule.name) == rule and str(rule) == osf._core.rules(rule.name)
        assert len(rule.premises) == str(rule).count("\n* `")
    assert every["identity"].operators == ("Identity", "Dropout", "Transpose", "Pad", "Split") and every["identity"].exact
    assert not every["matmul-add-to-gemm"].exact
    assert every["common-subexpression"].kind == "pass" and every["common-subexpression"].operators == ()


@pytest.mark.parametrize(
    "missing, code, extra",
    [
        ("onnx", "o.simplify('m.onnx')", "onnx"),
        ("onnx", "o.slim('m.onnx')", "onnx"),
        ("onnx", "o.infer_shapes({model!r})", "onnx"),
        ("numpy", "o.evaluate({model!r}, {{}})", "numpy"),
        ("onnx_ir", "import onnx_slice_fold.ir_pass", "ir"),
        ("onnxruntime", "o.simplify({model!r}, check_n=1, test_input_shapes={{'input_ids': [1, 2], 'attention_mask': [1, 2]}})", "check"),
    ],
)
def test_a_missing_package_names_its_extra(bert, missing, code, extra):
    block = f"import sys; sys.modules[{missing!r}] = None; import onnx_slice_fold as o\n"
    done = subprocess.run([sys.executable, "-c", block + code.format(model=str(bert))], capture_output=True, text=True)
    assert re.search(rf"ModuleNotFoundError: .*{missing}.*pip install onnx-slice-fold\[{extra}\]", done.stderr), done.stderr


def public():
    for name in osf.__all__:
        found = getattr(osf, name)
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found) and not issubclass(found, Exception):
            for method, function in vars(found).items():
                function = getattr(function, "__func__", function)
                if not method.startswith("_") and inspect.isfunction(function):
                    yield f"{name}.{method}", function
    yield "FoldPass.call", FoldPass.call
    yield "fold_program", fold_program
    yield "OnnxSnapshot", OnnxSnapshot.__call__
    yield "Operator", osf.Operator


@pytest.mark.parametrize("name, function", list(public()), ids=lambda value: value if isinstance(value, str) else "")
def test_docstrings_have_the_sections_of_numpy(name, function):
    text = inspect.getdoc(function)
    assert text and text.splitlines()[0].endswith("."), name
    signature = inspect.signature(function)
    parameters = [parameter for parameter in signature.parameters if parameter != "self"]
    assert ("Parameters\n----------" in text) is bool(parameters), name
    documented = text.partition("Parameters\n----------")[2].partition("\n\n")[0]
    for parameter in parameters:
        assert re.search(rf"^\*{{0,2}}(\w+, )*\*{{0,2}}{parameter}\b|, \*{{0,2}}{parameter}\b", documented, re.MULTILINE), f"{name}: {parameter}"
    if signature.return_annotation not in ("None", None, inspect.Signature.empty):
        assert re.search(r"^Returns\n-------$", text, re.MULTILINE), name
    if inspect.isfunction(function) and "." not in name:
        assert re.search(r"^Raises\n------$", text, re.MULTILINE), name
