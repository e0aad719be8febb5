"""Runs tests against one mutant at a time, in a copy of the sources."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.mutation.mutants import Mutant

_NOTICED = re.compile(r"^(?:FAILED |ERROR (?!:)|ImportError while loading )(.+?)(?: - .*)?$", re.MULTILINE)
_OPTIONS = ("-x", "-q", "-rfE", "--tb=no", "--no-header", "-p", "no:cacheprovider", "--hypothesis-seed=0")
_NO_TESTS = (4, 5)  # exit codes of pytest: a test that is not there, none at all


class Outcome(NamedTuple):
    """What became of a mutant: killed, survived, timeout, not covered or unusable; and which test noticed it."""

    what: str
    by: str = ""


class Overlay:
    """A copy of the sources that stands before them on the path of Python."""

    def __init__(self, source: Path, root: Path) -> None:
        self._source = source
        self._root = root  # where pytest runs
        self._folder = Path(tempfile.mkdtemp(prefix="mutant-"))
        self._folder.chmod(0o755)  # a PostgreSQL that tests start has another user
        self._copy = self._folder / "src"
        shutil.copytree(source, self._copy, ignore=shutil.ignore_patterns("__pycache__"))
        self._changes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, mutant: Mutant, tests: list[str], seconds: float) -> Outcome:
        """Whether one of these tests notices the mutant, within so many seconds."""
        original = (self._source / mutant.path).read_bytes()
        changed = mutant.applied(original)
        try:
            compile(changed, mutant.path, "exec", dont_inherit=True)
        except SyntaxError:
            return Outcome("unusable")
        self._write(mutant.path, changed)
        try:
            return self.tests(tests, seconds)
        finally:
            self._write(mutant.path, original)

    def tests(self, tests: list[str], seconds: float, *options: str) -> Outcome:
        """Run tests on the copy as it is."""
        temporary = self._folder / "t"
        temporary.mkdir(mode=0o755)
        environment = os.environ | {"PYTHONPATH": str(self._copy), "TMPDIR": str(temporary)}
        command = [sys.executable, "-m", "pytest", *_OPTIONS, *options, *tests]
        with (self._folder / "said").open("w+") as said:
            process = subprocess.Popen(
                command, cwd=self._root, env=environment, stdout=said, stderr=said, start_new_session=True
            )
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                return Outcome("timeout")
            finally:
                _end_all(str(temporary))
                process.wait()
                shutil.rmtree(temporary, ignore_errors=True)
            said.seek(0)
            noticed = _NOTICED.findall(said.read())
        if code in _NO_TESTS and not noticed:
            return Outcome("unusable")
        return Outcome("killed", " ".join(noticed)) if code else Outcome("survived")

    def _write(self, path: str, content: bytes) -> None:
        """Write a file with a time of its own: Python takes compiled code for current by size and second."""
        (self._copy / path).write_bytes(content)
        self._changes += 1
        os.utime(self._copy / path, (self._changes, self._changes))


def _end_all(temporary: str) -> None:
    """End every process of a run, servers and databases included: they have its folder for temporary files."""
    mark = f"\0TMPDIR={temporary}\0".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in b"\0" + (process / "environ").read_bytes():
                os.kill(int(process.name), 9)
        except OSError:  # it has ended, or is not ours
            continue
