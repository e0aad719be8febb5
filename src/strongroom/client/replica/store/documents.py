"""Documents as the server has them, and those that are to be sent again to a restored server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.model import Document

if TYPE_CHECKING:
    from strongroom.client.replica.store.database import Database
    from strongroom.client.replica.store.records import Head
    from strongroom.client.replica.store.refusals import RefusalTable

_COLUMNS: Final = "uid, vault, collection, data, hmac, version, created_at, updated_at, deleted_at"
_PUT: Final = (
    f"INSERT INTO documents ({_COLUMNS}, deleted, mine) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (vault, uid) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in f"{_COLUMNS}, deleted, mine".split(", "))
)


class DocumentTable:
    """The documents of a replica."""

    def __init__(self, db: Database, refusals: RefusalTable) -> None:
        self._db = db
        self._refusals = refusals

    def get(self, vault: str, uid: str) -> Document | None:
        """One document."""
        found = self._db.select(f"SELECT {_COLUMNS} FROM documents WHERE vault = ? AND uid = ?", vault, uid)
        return Document(*found[0]) if found else None

    def exists(self, vault: str, uid: str) -> bool:
        """Whether a document, deleted or not, or a change of one is here."""
        statement = (
            "SELECT 1 FROM outbox WHERE vault = ?1 AND uid = ?2 UNION ALL"
            " SELECT 1 FROM documents WHERE vault = ?1 AND uid = ?2"
        )
        return bool(self._db.select(statement, vault, uid))

    def live(self, vault: str, collection: str | None = None) -> Iterator[Document]:
        """Iterate the live documents in the order of their last change, in chunks."""
        after: tuple[int, str] = (-1, "")
        condition = "" if collection is None else "AND collection = ?"
        scope = () if collection is None else (collection,)
        while True:
            found = self._db.select(
                f"SELECT {_COLUMNS} FROM documents WHERE vault = ? {condition} AND (updated_at, uid) > (?, ?)"
                " AND NOT deleted ORDER BY updated_at, uid LIMIT 256",
                vault,
                *scope,
                *after,
            )
            yield from (Document(*row) for row in found)
            if len(found) < 256:
                return
            after = found[-1][7], found[-1][0]

    def heads(self, vault: str, uids: list[str]) -> dict[str, Head]:
        """The heads of documents, by uid."""
        found: dict[str, Head] = {}
        if self.is_empty(vault):
            return found
        for start in range(0, len(uids), 500):
            some = uids[start : start + 500]
            marks = ", ".join("?" * len(some))
            statement = (
                f"SELECT uid, version, hmac, created_at, updated_at FROM documents WHERE vault = ? AND uid IN ({marks})"
            )
            found |= {row[0]: (row[1], row[2], row[3], row[4]) for row in self._db.select(statement, vault, *some)}
        return found

    def changed_after(self, vault: str, timestamp: int) -> dict[str, int]:
        """Uid and version of the documents that have changed after a moment: what was sent from here, as a rule."""
        statement = (
            "SELECT uid, version FROM documents AS d WHERE vault = ? AND updated_at > ?"
            " AND NOT EXISTS (SELECT 1 FROM repeats AS r WHERE r.vault = d.vault AND r.uid = d.uid)"
        )
        return {row[0]: row[1] for row in self._db.select(statement, vault, timestamp)}

    def uids(self, vault: str) -> set[str]:
        """The uids of all documents of a vault, deleted ones included."""
        return {row[0] for row in self._db.select("SELECT uid FROM documents WHERE vault = ?", vault)}

    def is_empty(self, vault: str) -> bool:
        """Whether a vault has no documents here."""
        return not self._db.select("SELECT 1 FROM documents WHERE vault = ? LIMIT 1", vault)

    def count_live(self, vault: str) -> tuple[int, int]:
        """The number of documents that the server has not deleted, and the latest timestamp of any."""
        [(count, last)] = self._db.select(
            "SELECT COUNT(*) FILTER (WHERE deleted_at IS NULL), MAX(updated_at) FROM documents WHERE vault = ?", vault
        )
        return count, last or 0

    def put(self, rows: Iterable[tuple[Document, bool]], *, mine: bool = False) -> None:
        """Keep documents as they were received, each with whether a key holder deleted it. `mine`: written here."""
        self._db.run_many(_PUT, ((*msgspec.structs.astuple(row), deleted, mine) for row, deleted in rows))

    def is_mine(self, vault: str, uid: str) -> bool:
        """Whether the newest version of a document was written by this device."""
        return bool(self._db.select("SELECT 1 FROM documents WHERE vault = ? AND uid = ? AND mine", vault, uid))

    def is_deleted(self, vault: str, uid: str) -> bool:
        """Whether a key holder deleted a document."""
        return bool(self._db.select("SELECT 1 FROM documents WHERE vault = ? AND uid = ? AND deleted", vault, uid))

    def forget_times(self, vault: str, uids: Iterable[str]) -> None:
        """A restored server does not have these rows: the times that another database gave them mean nothing."""
        statement = "UPDATE documents SET created_at = 0, updated_at = 0 WHERE vault = ? AND uid = ?"
        self._db.run_many(statement, ((vault, uid) for uid in uids))

    # What a restored server has forgotten

    def put_repeat(self, vault: str, uid: str, base: int) -> None:
        """Send a document again as it is; the server is at version `base`, or at 0 where it has nothing."""
        self._db.run("INSERT OR REPLACE INTO repeats (vault, uid, base) VALUES (?, ?, ?)", vault, uid, base)

    def repeats(self, vault: str) -> dict[str, int]:
        """Which documents are to be sent again, and the version that the server has."""
        return {row[0]: row[1] for row in self._db.select("SELECT uid, base FROM repeats WHERE vault = ?", vault)}

    def drop_repeat(self, vault: str, uid: str) -> None:
        """It is done, or decided otherwise."""
        self._db.run("DELETE FROM repeats WHERE vault = ? AND uid = ?", vault, uid)
        self._refusals.drop(vault, uid)

    def drop(self, vault: str, uid: str) -> None:
        """Delete a document that the server lost in a restore."""
        self._db.run("DELETE FROM documents WHERE vault = ? AND uid = ?", vault, uid)

    def had_version(self, row: Document) -> bool:
        """Whether this device had this version of a document earlier."""
        statement = "SELECT 1 FROM earlier WHERE vault = ? AND uid = ? AND version = ? AND hmac = ?"
        return bool(self._db.select(statement, row.vault_uid, row.uid, row.version, row.hmac))
