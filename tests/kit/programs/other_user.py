"""Runs the command `strongroom` as a user other than root, in a folder that such a user can enter."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user can only be taken by root")


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that everybody may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="strongroom-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def as_user(home: Path, user: int, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command as another user."""
    return processes.run(
        [*STRONGROOM, *arguments],
        cwd=home,
        env=clean_environment(**settings),
        user=user,
        group=user,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
