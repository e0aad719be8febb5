"""Programs that use the client, as type checkers see them: right ones pass, and of wrong ones each mistake is found.

The programs are copied into a folder of their own, so that the checkers know neither this project's settings nor its
sources, only the installed package.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.project import ROOT

MARK = "  # wrong"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """All programs: the examples, the README's, and those of tests/typing."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for path in (*ROOT.glob("tests/typing/*.py"), *ROOT.glob("examples/*.py")):
        shutil.copy(path, folder)
    [readme] = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (folder / "readme.py").write_text(readme)
    return folder


def marked(folder: Path) -> set[tuple[str, int]]:
    """The lines that are wrong, by file and number."""
    lines = [
        (path.name, number, line)
        for path in folder.glob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
    ]
    assert len({name for name, _, _ in lines}) >= 6
    return {(name, number) for name, number, line in lines if line.endswith(MARK)}


def test_mypy_finds_each_mistake_and_no_other(programs: Path) -> None:
    """`mypy --strict`, which knows the types by the package's py.typed."""
    cache = ROOT / ".mypy_cache" / "programs"
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}", "."]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True, check=False)
    found = re.findall(r"^(\w+\.py):(\d+): error: ", done.stdout, re.MULTILINE)
    assert {(name, int(line)) for name, line in found} == marked(programs), done.stdout + done.stderr
    assert len(marked(programs)) >= 50


def test_pyright_finds_each_mistake_and_no_other(programs: Path, tmp_path: Path) -> None:
    """In its strict mode, with the Node.js of its wheel; it downloads nothing and leaves nothing behind."""
    (programs / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    home = tmp_path / "home"
    home.mkdir()
    unreachable = dict.fromkeys(("http_proxy", "https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:1")
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "PYRIGHT_PYTHON_GLOBAL_NODE": "0"}
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        command, cwd=programs, env={**os.environ, **unreachable, **own}, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] == len(list(programs.glob("*.py")))
    found = {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in told["generalDiagnostics"]}
    assert found == marked(programs), done.stdout
    assert list(home.iterdir()) == []
