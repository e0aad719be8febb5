"""The JavaScript client in tests: its tests are bundled once in each test process, and run by Node.js or a browser."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

from tools import node

PACKAGE: Final = Path(__file__).parent.parent.parent / "js"


@functools.cache
def bundles() -> Path:
    """A folder with the bundled tests; skips the test where the packages of js/ are not installed."""
    if not (PACKAGE / "node_modules" / ".done").exists():
        pytest.skip("The packages of js/ are not installed; make js does it")
    folder = Path(tempfile.mkdtemp(prefix="strongroom-js-"))
    run("node", str(PACKAGE / "build.js"), "--tests", str(folder))
    return folder


def run(*command: str, seconds: float = 300, **variables: str) -> str:
    """What a command of Node.js prints; its output is shown where it fails."""
    place = node.environment()
    program = shutil.which(command[0], path=place["PATH"]) or command[0]
    done = subprocess.run(
        [program, *command[1:]],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=PACKAGE,
        env={**place, **variables},
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-20_000:]}\n{done.stderr[-20_000:]}"
    return done.stdout


def run_test(name: str, *, seconds: float = 300, **variables: str) -> str:
    """Run one bundled file of tests; the variables reach it as its environment."""
    return run("node", "--test", os.fspath(bundles() / f"{name}.test.js"), seconds=seconds, **variables)
