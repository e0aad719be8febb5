"""The command `strongroom`, run as a process that knows nothing of this machine's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from strongroom.options import SETTINGS_FILE, TABLE

HIDDEN = {SETTINGS_FILE} | {name for option in TABLE for name in (option.variable, option.file_variable)}


def clean_environment() -> dict[str, str]:
    """This process's variables without any setting."""
    return {name: value for name, value in os.environ.items() if name not in HIDDEN}


def strongroom(*arguments: str, cwd: Path, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "strongroom", *arguments],
        cwd=cwd,
        env={**clean_environment(), **environment},
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
