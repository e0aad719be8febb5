"""Changes that the server has refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from strongroom.client.replica.store.records import RefusalRecord

if TYPE_CHECKING:
    from strongroom.client.replica.store.database import Database


class RefusalTable:
    """The refused changes of a replica."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def put(self, record: RefusalRecord) -> None:
        """Record that the server refuses a change."""
        self._db.run(
            "INSERT OR REPLACE INTO refusals (vault, uid, kind, max_bytes, size) VALUES (?, ?, ?, ?, ?)",
            *msgspec.structs.astuple(record),
        )

    def all(self) -> list[RefusalRecord]:
        """Every change that the server has refused."""
        names = ", ".join(RefusalRecord.__struct_fields__)
        rows = self._db.select(f"SELECT {names} FROM refusals ORDER BY vault, uid")
        return [RefusalRecord(**dict(zip(names.split(", "), row, strict=True))) for row in rows]

    def drop(self, vault: str, uid: str) -> None:
        """The change is sent again, or is gone."""
        self._db.run("DELETE FROM refusals WHERE vault = ? AND uid = ?", vault, uid)

    def offer_again(self, kinds: Iterable[str], max_bytes: int | None = None) -> None:
        """Let the next push send again what was refused for one of these reasons, or as too large for a lower limit."""
        with self._db.transaction():
            self._db.run_many("UPDATE refusals SET again = 1 WHERE kind = ?", ((kind,) for kind in kinds))
            if max_bytes is not None:
                self._db.run("UPDATE refusals SET again = 1 WHERE max_bytes IS NOT NULL AND size <= ?", max_bytes)

    def held_back(self, vault: str) -> set[str]:
        """The documents whose change was refused and is not sent again."""
        return {row[0] for row in self._db.select("SELECT uid FROM refusals WHERE vault = ? AND NOT again", vault)}
