"""Runs the command `strongroom` as an operator types it: a process of its own, with none of the caller's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from strongroom.options import SETTINGS_FILE, TABLE
from tests.kit.programs import processes

STRONGROOM = (sys.executable, "-m", "strongroom")


def clean_environment(**settings: str) -> dict[str, str]:
    """The variables of this process without any setting of strongroom, and these."""
    hidden = {SETTINGS_FILE, *(name for option in TABLE for name in (option.variable, option.file_variable))}
    return {name: value for name, value in os.environ.items() if name not in hidden} | settings


def isolated_environment(home: Path, **settings: str) -> dict[str, str]:
    """The variables of a process that knows nothing of this machine's settings, and finds `strongroom` in its path."""
    kept = {
        name: value
        for name, value in clean_environment().items()
        if name != "CURL_HOME" and "proxy" not in name.lower()
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**kept, "PATH": path, "HOME": str(home), **settings}


def strongroom(home: Path, *arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; `input` is its standard input, the rest are settings."""
    given = settings.pop("input", "")
    return processes.run(
        [*STRONGROOM, *arguments],
        cwd=home,
        env=clean_environment(**settings),
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def place_of(where: str) -> dict[str, str]:
    """The setting that names a database."""
    return {"DATABASE_URL" if "://" in where else "DB_PATH": where}


def in_json(done: subprocess.CompletedProcess[str]) -> Any:
    """The JSON that a command printed; it must have succeeded."""
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout)


def findings(doctor: subprocess.CompletedProcess[str], check: str) -> list[dict[str, Any]]:
    """What `strongroom doctor --json` printed about one of its checks."""
    found: list[dict[str, Any]] = msgspec.json.decode(doctor.stdout)["findings"]
    return [one for one in found if one["check"] == check]
