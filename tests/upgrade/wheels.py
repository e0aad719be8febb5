"""Releases as wheels: the one of the working tree, and the one before it, from the history if that is here."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BUILD = "import sys; from flit_core.buildapi import build_wheel; print(build_wheel(sys.argv[1]))"


def previous() -> str | None:
    """The commit of the release before this one; None where it is not to be had, as in a copy without history."""
    [commit] = [line for line in (ROOT / "tests/upgrade/previous").read_text().splitlines() if line[:1] != "#"]
    found = subprocess.run(
        ["git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True, check=False
    )
    return commit if found.returncode == 0 else None


@cache
def tracked(commit: str) -> bytes:
    """All files of a commit, as an archive."""
    return subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "src", "pyproject.toml", "README.md", "LICENSE"],
        capture_output=True,
        check=True,
    ).stdout


def unpacked(source: Path, folder: Path) -> Path:
    """Build the wheel of a source tree with what the lock has installed, and unpack it as an install would."""
    folder.mkdir(parents=True)
    built = subprocess.run(
        [sys.executable, "-c", _BUILD, str(folder)], cwd=source, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(folder / "site")  # noqa: S202 - made here
    return folder / "site"


def of_commit(commit: str, folder: Path) -> Path:
    """A release out of the history, unpacked."""
    with tarfile.open(fileobj=io.BytesIO(tracked(commit))) as files:
        files.extractall(folder / "source", filter="data")
    return unpacked(folder / "source", folder / "wheel")
