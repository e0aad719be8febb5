"""Releases as wheels: that of the working tree, and older ones, out of the history if that is here."""

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


def without_promises() -> str | None:
    """The commit of the last program that cannot read promises of the schema; None in a copy without history."""
    [commit] = [line for line in (ROOT / "tests/upgrade/previous").read_text().splitlines() if line[:1] != "#"]
    return commit if _git("cat-file", "-e", f"{commit}^{{commit}}") is not None else None


def last_release() -> str | None:
    """The tag of the newest release before the commit that is checked out; None if there is none."""
    tags = _git("tag", "--list", "v[0-9]*", "--sort=-version:refname", "--merged", "HEAD", "--no-contains", "HEAD")
    return tags.split()[0] if tags else None


def older_releases() -> list[str]:
    """All that the upgrade is tested from."""
    return [commit for commit in (without_promises(), last_release()) if commit is not None]


def _git(*words: str) -> str | None:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


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
