"""strongroom itself, started as an operator starts it: `strongroom serve`, its log on, on SQLite or on PostgreSQL."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench import postgres
from bench.dataset import COLLECTION, HMAC, Dataset, Seeded, uuid7
from bench.peers.base import PROJECT, PROJECT_BIN, SECRET, NotHere
from bench.peers.vault_api import VaultApi

_INSERT = (
    "INSERT INTO documents (user_id, uid, vault_uid, collection, data, hmac, version, created_at, updated_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class OnSqlite(VaultApi):
    """Everything on: session look-up, request ids, log, synchronous=FULL."""

    name = "strongroom"
    title = "strongroom, SQLite"

    @property
    def database(self) -> Path:
        """The database file."""
        return self.folder / "vault.db"

    def environment(self) -> dict[str, str]:
        """Settings; tokens live longer than the run."""
        return {
            "JWT_SECRET": SECRET,
            "DB_PATH": str(self.database),
            "HOST": "127.0.0.1",
            "PORT": "0",
            "JWT_ACCESS_EXPIRY": "6h",
        }

    def launch(self) -> None:
        url = self.spawn([PROJECT_BIN / "strongroom", "serve"], self.environment(), r"listens on http://(\S+)")
        self.host = url

    def insert(self, data: Dataset, owner: str) -> None:
        insert_sqlite(self.database, data, owner)

    def add_accounts(self, count: int) -> list[str]:
        return accounts_of_store(str(self.database), count)


class OnPostgres(OnSqlite):
    """The same server against PostgreSQL. Its CPU and memory count PostgreSQL's processes too."""

    name = "strongroom-pg"
    title = "strongroom, PostgreSQL"

    def __init__(self) -> None:
        super().__init__()
        self._postgres: postgres.Postgres | None = None

    def environment(self) -> dict[str, str]:
        assert self._postgres is not None
        own = {name: text for name, text in super().environment().items() if name != "DB_PATH"}
        return {**own, "DATABASE_URL": self._postgres.url}

    def launch(self) -> None:
        if not postgres.present():
            raise NotHere("PostgreSQL is not installed: run `make bench-setup`.")
        if self._postgres is None:
            self._postgres = postgres.Postgres(self.folder / "pg")
        super().launch()
        if (self.folder / "data").exists():
            raise NotHere("This strongroom does not heed DATABASE_URL: it opened a SQLite file instead.")

    def insert(self, data: Dataset, owner: str) -> None:
        assert self._postgres is not None
        columns = ("user_id", "uid", "vault_uid", "collection", "data", "hmac", "version", "created_at", "updated_at")
        for seeded in data.vaults:
            self._postgres.copy("documents", columns, _rows(seeded, owner))
            self._postgres.run(f"UPDATE vaults SET updated_at = {seeded.end} WHERE uid = '{seeded.vault}'")
        self._postgres.run("VACUUM ANALYZE")

    def add_accounts(self, count: int) -> list[str]:
        assert self._postgres is not None
        return accounts_of_store(self._postgres.url, count)

    def stop(self) -> None:
        self.halt()
        if self._postgres is not None:
            self._postgres.stop()
        super().stop()

    def pids(self) -> list[int]:
        assert self._postgres is not None
        return super().pids() + self._postgres.pids()


class OnSqlite2(OnSqlite):
    """Two worker processes on one file."""

    name = "strongroom-2"
    title = "strongroom, SQLite, 2 workers"

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "WORKERS": "2"}


class OnPostgres2(OnPostgres):
    """Two worker processes on one PostgreSQL."""

    name = "strongroom-pg-2"
    title = "strongroom, PostgreSQL, 2 workers"

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "WORKERS": "2"}


def accounts_of_store(database: str, count: int, issuer: str = "strongroom") -> list[str]:
    """Accounts with an open session each, made by strongroom's own store and token issuer; their access tokens."""
    command: list[str | Path] = [PROJECT_BIN / "python", "-m", "bench.accounts", str(count), issuer]
    secrets = {"DATABASE": database, "JWT_SECRET": SECRET}
    made = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=PROJECT, timeout=300, env={**os.environ, **secrets}
    )
    tokens: list[str] = json.loads(made.stdout)
    return tokens


def _rows(seeded: Seeded, owner: str) -> Iterator[tuple[str | int, ...]]:
    """The rows of a vault: a millisecond apart, the vault's clock at the last."""
    first = time.time_ns() // 1_000_000 - seeded.count - 60_000
    seeded.uids = [uuid7(first + number) for number in range(seeded.count)]
    seeded.end = str(first + max(seeded.count - 1, 0))
    return (
        (owner, uid, seeded.vault, COLLECTION, seeded.payload(number), HMAC, 1, first + number, first + number)
        for number, uid in enumerate(seeded.uids)
    )


def insert_sqlite(path: Path, data: Dataset, owner: str) -> None:
    """The documents of every vault, as strongroom's schema has them."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -200000")
    with connection:
        for seeded in data.vaults:
            connection.executemany(_INSERT, _rows(seeded, owner))
            connection.execute("UPDATE vaults SET updated_at = ? WHERE uid = ?", (int(seeded.end), seeded.vault))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
