"""Schema: which migrations a database has."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from strongroom.store import migrations
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_FROM = Sql("SELECT number FROM schema_migrations WHERE number >= :number ORDER BY number LIMIT 1")
_APPLIED = Sql("SELECT number FROM schema_migrations WHERE number = :number AND applied_at = :now")


@lru_cache
def newest() -> int:
    """The newest migration that this program knows."""
    return migrations.load()[-1].number


async def applied_at(tx: Tx, now: int) -> list[int]:
    """The migrations that were applied at this timestamp."""
    found = [await tx.value(_APPLIED, number=step.number, now=now) for step in migrations.load()]
    return [number for number in found if number is not None]


async def is_current(tx: Tx) -> bool:
    """Whether the database has every migration that this program needs; a newer program may have added more."""
    found: int | None = await tx.value(_FROM, number=newest())
    return found is not None
