"""A server that is started as a document says."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.programs import processes
from tests.kit.programs.command_line import isolated_environment
from tests.kit.waiting import PATIENCE

_LISTENS = re.compile(r"strongroom listens on (http://\S+)")


@contextmanager
def serving(folder: Path, *command: str) -> Iterator[str]:
    """A server process; the address that it says it listens on."""
    settings = {
        "JWT_SECRET": "a secret of the tests, 32 bytes or more",
        "PORT": "0",
        "DB_PATH": str(folder / "vault.db"),
    }
    with (
        (folder / "stderr").open("wb") as errors,
        processes.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=isolated_environment(folder, **settings),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            heard = next((match for line in process.stdout if (match := _LISTENS.match(line))), None)
            assert heard is not None, (folder / "stderr").read_text()
            yield heard[1]
        finally:
            watchdog.cancel()
            process.terminate()
