"""Looks from outside whether the memory of a process is kept from dumps and from others of its user."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.programs.other_user import NOBODY
from tests.kit.waiting import until

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it in /proc")
# Files in /proc belong to the user of a process, or to root where its memory is protected. So that the tests see a
# difference where they run as root, their process is of another group.
AS_SOMEBODY: dict[str, Any] = {} if os.geteuid() else {"group": NOBODY}


def until_protected(pid: int) -> None:
    """Wait until a process has no core dump and no debugger."""
    until(lambda: is_protected(pid), "the memory to be protected")


def is_protected(pid: int) -> bool:
    """Whether it has neither."""
    process = Path(f"/proc/{pid}")
    [limit] = [line for line in (process / "limits").read_text().splitlines() if line.startswith("Max core file size")]
    owner = (process / "environ").stat()
    return limit.split()[4] == "0" and (owner.st_uid, owner.st_gid) == (0, 0)
