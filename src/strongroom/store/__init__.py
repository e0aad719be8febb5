"""The database: everything that knows SQL. `open_database` opens one; the query modules are one noun each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from strongroom.store.change_notifications import ChangeHint
from strongroom.store.database import Database, Tx, is_postgres
from strongroom.store.exceptions import CannotOpen, CannotReach, Duplicate, MissingParent, RollbackWith
from strongroom.store.queries import (
    access_status,
    accounts,
    challenges,
    change_feed,
    collections,
    deletions,
    documents,
    epochs,
    events,
    exports,
    failures,
    imports,
    invitations,
    key_shares,
    keyrings,
    keys,
    ledgers,
    passkeys,
    retained,
    schema,
    second_factors,
    secrets,
    sessions,
    signups,
    stats,
    tickets,
    vault_changes,
    vaults,
    versions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CannotOpen",
    "CannotReach",
    "ChangeHint",
    "Database",
    "Duplicate",
    "MissingParent",
    "RollbackWith",
    "Tx",
    "access_status",
    "accounts",
    "challenges",
    "change_feed",
    "collections",
    "deletions",
    "documents",
    "epochs",
    "events",
    "exports",
    "failures",
    "imports",
    "invitations",
    "key_shares",
    "keyrings",
    "keys",
    "ledgers",
    "location_of",
    "open_database",
    "passkeys",
    "retained",
    "schema",
    "second_factors",
    "secrets",
    "sessions",
    "signups",
    "stats",
    "tickets",
    "vault_changes",
    "vaults",
    "versions",
]


def location_of(where: str) -> str:
    """The location of a database for the operator: a path, or host and name; never a password."""
    if is_postgres(where):
        from strongroom.store.postgres.connection import location

        return location(where)
    return os.path.realpath(Path(where).expanduser())


def open_database(
    where: str,
    clock: Callable[[], int],
    *,
    pool: int = 10,
    migrate: bool = True,
    recover: bool = False,
    pooler_url: str = "",
) -> Database:
    """Open the database at this path or URL, and bring its schema up to date; or refuse one that is not.

    A file whose write-ahead log is damaged is refused, unless it is to be recovered: then its `notice` says what is
    missing. Requests go through the connection pooler at `pooler_url`, if there is one; all else goes to the database.
    """
    if is_postgres(where):
        from strongroom.store.postgres.engine import PostgresDatabase

        return PostgresDatabase(where, clock, pool, migrate=migrate, pooler_url=pooler_url)
    from strongroom.store.sqlite.engine import SqliteDatabase

    return SqliteDatabase(where, clock, migrate=migrate, recover=recover)
