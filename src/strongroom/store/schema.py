"""Which steps of the schema a database has."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from strongroom.store import migrations
from strongroom.store.db import Sql

if TYPE_CHECKING:
    from strongroom.store.db import Tx

_FROM = Sql("SELECT number FROM schema_migrations WHERE number >= :number ORDER BY number LIMIT 1")
_TAKEN = Sql("SELECT number FROM schema_migrations WHERE applied_at = :now ORDER BY number")


@lru_cache
def newest() -> int:
    """The newest step that this program knows."""
    return migrations.load()[-1].number


async def taken_at(tx: Tx, now: int) -> list[int]:
    """The steps that were taken at this moment."""
    return await tx.all(int, _TAKEN, now=now)


async def is_current(tx: Tx) -> bool:
    """Whether the database has every step that this program needs; a newer program may have added more."""
    found: int | None = await tx.value(_FROM, number=newest())
    return found is not None
