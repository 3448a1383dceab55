"""mypy and pyright on the package, on calls with known types, and on the blocks of docs/python.md. Skipped without the checkers."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import onnx_slice_fold as osf
from test_docs import BLOCK, ROOT

PACKAGE = Path(osf.__file__).parent
CASES = Path(__file__).parent / "types"
CHECKERS = ("mypy", "pyright")
# As in python/pyproject.toml: signatures of onnx contain `os.PathLike` without its argument.
PYRIGHT = {
    "typeCheckingMode": "strict",
    "reportPrivateUsage": False,
    "reportUnnecessaryIsInstance": False,
    "reportUnknownMemberType": False,
    "extraPaths": [str(PACKAGE.parent)],
}


def errors(checker, folder, path):
    """The lines of a checker's errors. The checker may be in another environment: CHECKER_PYTHON names its interpreter."""
    python = os.environ.get("CHECKER_PYTHON", sys.executable)
    if python == sys.executable and importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: pip install onnx-slice-fold[types]")
    command = [python, "-m", checker]
    if checker == "mypy":
        command += ["--strict", "--python-executable", sys.executable, "--cache-dir", str(folder / "cache"), str(path)]
    else:
        (folder / "pyrightconfig.json").write_text(json.dumps({**PYRIGHT, "include": [path.name]}))
        command += ["--pythonpath", sys.executable, "--project", str(folder)]
    environment = dict(os.environ)
    if "site-packages" not in PACKAGE.parts:
        environment["MYPYPATH"] = str(PACKAGE.parent)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line.strip() for line in done.stdout.splitlines() if re.search(r":\d+(:\d+)?( -|:) error", line)]


@pytest.fixture(params=CHECKERS)
def checker(request):
    return request.param


def test_the_package_has_no_errors(checker, tmp_path):
    copy = tmp_path / "checked"
    copy.mkdir()
    for path in PACKAGE.glob("*.py*"):
        (copy / path.name).write_bytes(path.read_bytes())
    assert errors(checker, tmp_path, copy) == []


def test_results_have_the_types_of_the_arguments(checker, tmp_path):
    case = tmp_path / "accepted.py"
    case.write_bytes((CASES / "accepted.py").read_bytes())
    assert errors(checker, tmp_path, case) == []


def test_wrong_arguments_are_errors(checker, tmp_path):
    case = tmp_path / "rejected.py"
    case.write_bytes((CASES / "rejected.py").read_bytes())
    found = {int(re.search(r"rejected\.py:(\d+)", line)[1]) for line in errors(checker, tmp_path, case)}
    wrong = [at for at, line in enumerate(case.read_text().splitlines(), 1) if line.endswith("# wrong")]
    assert len(wrong) > 10 and sorted(found) == wrong


def test_the_blocks_of_the_documentation_have_no_errors(checker, tmp_path):
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    case = tmp_path / "page.py"
    case.write_text("\n".join(text for language, text in BLOCK.findall(page) if language == "python"), encoding="utf-8")
    assert errors(checker, tmp_path, case) == []
