"""Runs the command `strongroom` as a user other than root, in a folder that such a user can enter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.command_line import clean_environment

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


_AS_USER = """
import encodings.ascii, encodings.utf_8_sig, glob, grp, importlib, os, pkgutil, pwd, resource, sys
import strongroom
for module in pkgutil.walk_packages(strongroom.__path__, "strongroom."):  # Python may lie where only root can read
    if "client" not in module.name and "__main__" not in module.name:
        importlib.import_module(module.name)
from strongroom.cli import main
from strongroom.store import migrations
migrations.load()
user = int(sys.argv[1])
os.setgroups([])
os.setgid(user)
os.setuid(user)
sys.exit(main(sys.argv[2:]))
"""


def as_user(home: Path, user: int, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command as another user."""
    return subprocess.run(
        [sys.executable, "-c", _AS_USER, str(user), *arguments],
        cwd=home,
        env=clean_environment(**settings),
        capture_output=True,
        text=True,
        check=False,
    )
