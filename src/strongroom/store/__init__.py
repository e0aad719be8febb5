"""Everything that knows SQL. `open_database` is the door; the modules are one noun each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store import accounts, documents, failures, keys, sessions, vaults
from strongroom.store.db import CannotOpen, Database, Duplicate, Tx, Undo

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CannotOpen",
    "Database",
    "Duplicate",
    "Tx",
    "Undo",
    "accounts",
    "documents",
    "failures",
    "keys",
    "open_database",
    "sessions",
    "vaults",
]


def open_database(path: str, clock: Callable[[], int]) -> Database:
    """Open the database at this path, and bring its schema up to date."""
    from strongroom.store.sqlite import SqliteDatabase

    return SqliteDatabase(path, clock)
