"""Every block of Python and every command in the README and in docs/ is run, each page in a directory of its own."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "python" / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("python", "concepts", "recipes", "runtimes", "exporters", "correctness"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, bert, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(bert.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_what_a_page_says_works(page, folder):
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert blocks, "the page has no block that could be run"
    names: dict = {"__name__": "page"}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, str(page), "exec"), names)
            continue
        for command in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
            program, *arguments = shlex.split(command)
            assert program == "onnx-slice-fold", command
            done = subprocess.run([sys.executable, "-m", "onnx_slice_fold", *arguments], capture_output=True, text=True)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
