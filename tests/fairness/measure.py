"""What is measured of a server process from outside: its processor time, and the bytes that its database holds."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import tests.kit.servers.loop_watchdog
from tests.kit.servers.loop_watchdog import MILLISECOND
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server

_SCHEDULED: Final = 2  # CPUCLOCK_SCHED of Linux: all threads of a process


class WatchedServer(Server):
    """A server whose event loop is measured, callback by callback."""

    program = (str(Path(tests.kit.servers.loop_watchdog.__file__)),)

    def __init__(self, home: Path, engine: str, **settings: str) -> None:
        super().__init__(home, engine, WATCHDOG_FILE=str(home / "callbacks"), **settings)
        self.engine = engine
        self._seen = 0

    @property
    def processor(self) -> float:
        """The seconds of processor that the process has taken."""
        return time.clock_gettime(~self.process.pid << 3 | _SCHEDULED)

    def longest(self) -> tuple[float, str]:
        """The callback that took the longest since the last look, in milliseconds of an idle machine, and its name."""
        path = self.home / "callbacks"
        lines = path.read_text().splitlines() if path.exists() else []
        new, self._seen = lines[self._seen :], len(lines)
        noted = [json.loads(line) for line in new]
        return max(((each["turns"] / MILLISECOND, each["what"]) for each in noted), default=(0.0, ""))

    @property
    def stored(self) -> int:
        """The bytes of the database: pages that are in use, the log not counted."""
        if self.engine == "postgres":
            name = urlsplit(self.settings["DATABASE_URL"]).path.strip("/")
            size = re.search(r"^\s*(\d+)\s*$", postgres().sql(f"SELECT pg_database_size('{name}')"), re.MULTILINE)
            assert size is not None
            return int(size[1])
        with closing(sqlite3.connect(f"file:{self.settings['DB_PATH']}?mode=ro", uri=True)) as file:
            pages, free, each = (
                int(file.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("page_count", "freelist_count", "page_size")
            )
        return (pages - free) * each
