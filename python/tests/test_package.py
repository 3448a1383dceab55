"""The package itself: imports, stubs, program, passes, hooks, plugin."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace

import onnx_ir
import onnx_ir.passes
import pytest

import onnx_slice_fold as osf
from conftest import CHAIN
from onnx_slice_fold.ir_pass import FoldPass
from onnx_slice_fold.torch_export import fold_program

pytest_plugins = ["pytester"]


def python(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_it_imports_nothing_large():
    loaded = python("import sys, onnx_slice_fold; print(*sys.modules)").split()
    assert not {"onnx", "numpy", "onnxruntime", "onnx_ir", "google.protobuf"} & set(loaded)


def test_files_are_folded_without_onnx(bert, tmp_path):
    """Neither onnx nor numpy is needed for paths and bytes."""
    block = "import sys; sys.modules['onnx'] = sys.modules['numpy'] = None; import onnx_slice_fold as o\n"
    told = python(f"{block}print(o.fold({str(bert)!r}, {str(tmp_path / 'out.onnx')!r})[1].after.nodes)")
    assert int(told) == osf.fold(bert.read_bytes())[1].after.nodes


def test_types_are_told():
    package = Path(osf.__file__).parent
    assert (package / "py.typed").exists()
    stub = (package / "_core.pyi").read_text()
    from onnx_slice_fold import _core

    for name in [name for name in dir(_core.Model) if not name.startswith("_")]:
        assert f"def {name}(" in stub, name
    assert "def run(" in stub and "def rules(" in stub


def program(*arguments):
    return subprocess.run([sys.executable, "-m", "onnx_slice_fold", *map(str, arguments)], capture_output=True, text=True)


def test_the_program(bert, tmp_path):
    assert program("--version").stdout.strip() == f"onnx-slice-fold {osf.__version__}"
    done = program(bert, "-o", tmp_path / "out.onnx")
    assert done.returncode == 0 and "all nodes" in done.stdout
    assert (tmp_path / "out.onnx").read_bytes() == osf.fold(bert.read_bytes())[0]
    missing = program(tmp_path / "none.onnx")
    assert missing.returncode == 1 and missing.stderr.startswith("error: ")
    assert program("--no-such-flag").returncode == 2


def test_the_pass_of_onnx_ir(chain):
    model = onnx_ir.from_proto(chain)
    fold = FoldPass(dims={"batch": 3})
    result = onnx_ir.passes.Sequential(fold)(model)
    assert result.modified and fold.report.after.nodes == 2
    assert len(list(model.graph)) == 7, "a functional pass leaves its model alone"
    assert not FoldPass()(result.model).modified


def test_what_torch_exports(chain):
    program = SimpleNamespace(model=onnx_ir.from_proto(chain), save=None)
    folded, report = fold_program(program, dims={"batch": 3})
    assert folded is program and isinstance(program.model, onnx_ir.Model) and report.after.nodes == 2
    with pytest.raises(TypeError, match="torch.onnx.export"):
        fold_program(object())


def test_the_snapshot_fixture(pytester, chain):
    pytester.makepyfile(f"""
        import onnx.parser
        def test_export(onnx_snapshot):
            onnx_snapshot(onnx.parser.parse_model({CHAIN!r}), name="chain")
    """)
    # An installed package is a plugin by its entry point.
    installed = any(point.name == "onnx_slice_fold" for point in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "onnx_slice_fold.pytest_plugin")
    pytester.runpytest_subprocess(*plugin).assert_outcomes(failed=1)
    pytester.runpytest_subprocess(*plugin, "--onnx-snapshot-update").assert_outcomes(passed=1)
    pytester.runpytest_subprocess(*plugin).assert_outcomes(passed=1)
    snapshot = pytester.path / "snapshots" / "chain.onnxtxt"
    snapshot.write_text(snapshot.read_text().replace("Relu", "Elu"))
    result = pytester.runpytest_subprocess(*plugin)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*-*Elu*", "*+*Relu*"])
