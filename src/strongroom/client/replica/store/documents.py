"""Documents as the server has them, and those that are to be sent again to a restored server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from strongroom.client.replica.store.schema import COLLECTION_NUMBER, VAULT_NUMBER
from strongroom.model import Document

if TYPE_CHECKING:
    from strongroom.client.replica.store.database import Database
    from strongroom.client.replica.store.records import Head
    from strongroom.client.replica.store.refusals import RefusalTable

# A collection that is missing from a damaged file has no name, which no key opens.
_COLLECTION: Final = "COALESCE((SELECT collection FROM places WHERE id = documents.collection), '')"
_DOCUMENT: Final = f"uid, ?1, {_COLLECTION}, data, hmac, version, created_at, updated_at, deleted_at"
_COLUMNS: Final = "uid, vault, collection, data, hmac, version, created_at, updated_at, deleted_at, deleted, mine"
_INSERT: Final = f"INSERT INTO documents ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD: Final = f"{_INSERT} ON CONFLICT DO NOTHING"
_PUT: Final = f"{_INSERT} ON CONFLICT (vault, uid) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in _COLUMNS.split(", ")
)
_CHUNK: Final = 256  # documents that are read at a time


class DocumentTable:
    """The documents of a replica."""

    def __init__(self, db: Database, refusals: RefusalTable) -> None:
        self._db = db
        self._refusals = refusals

    def get(self, vault: str, uid: str) -> Document | None:
        """One document."""
        statement = f"SELECT {_DOCUMENT} FROM documents WHERE vault = {VAULT_NUMBER} AND uid = ?2"
        found = self._db.select(statement, vault, uid)
        return Document(*found[0]) if found else None

    def exists(self, vault: str, uid: str) -> bool:
        """Whether a document, deleted or not, or a change of one is here."""
        statement = (
            "SELECT 1 FROM outbox WHERE vault = ?1 AND uid = ?2 UNION ALL"
            f" SELECT 1 FROM documents WHERE vault = {VAULT_NUMBER} AND uid = ?2"
        )
        return bool(self._db.select(statement, vault, uid))

    def live(self, vault: str, collection: str | None = None) -> Iterator[Document]:
        """Iterate the live documents in the order of their last change, in chunks."""
        place = f"vault = {VAULT_NUMBER}" if collection is None else f"collection = {COLLECTION_NUMBER}"
        chosen = f"SELECT {_DOCUMENT}, id FROM documents WHERE {place} AND NOT deleted AND updated_at"
        # Many can have the time 0, so those of one time are continued by an index as well.
        statement = f"{chosen} = ?3 AND id > ?4 UNION ALL {chosen} > ?3 ORDER BY updated_at, id LIMIT {_CHUNK}"
        after: tuple[int, int] = (-1, 0)
        while True:
            found = self._db.select(statement, vault, collection, *after)
            yield from (Document(*row[:-1]) for row in found)
            if len(found) < _CHUNK:
                return
            after = found[-1][7], found[-1][-1]

    def all(self, vault: str) -> Iterator[Document]:
        """Iterate all documents, deleted ones included, in the order of their last change."""
        chosen = f"SELECT id FROM documents WHERE vault = {VAULT_NUMBER} ORDER BY updated_at, id"
        for (id_,) in self._db.select(chosen, vault):
            yield Document(*self._db.select(f"SELECT {_DOCUMENT} FROM documents WHERE id = ?2", vault, id_)[0])

    def live_proofs(self, vault: str) -> Iterator[str]:
        """The proofs of the live documents that wait for nothing: those to be sent again may be of any time."""
        statement = (
            f"SELECT hmac FROM documents AS d WHERE vault = {VAULT_NUMBER} AND NOT deleted"
            " AND NOT EXISTS (SELECT 1 FROM repeats AS r WHERE r.vault = ?1 AND r.uid = d.uid)"
        )
        return (row[0] or "" for row in self._db.select(statement, vault))

    def heads(self, vault: str, uids: list[str]) -> dict[str, Head]:
        """The heads of documents, by uid."""
        found: dict[str, Head] = {}
        if self.is_empty(vault):
            return found
        for start in range(0, len(uids), 500):
            some = uids[start : start + 500]
            marks = ", ".join("?" * len(some))
            statement = (
                f"SELECT uid, version, hmac, created_at, updated_at, {_COLLECTION} FROM documents"
                f" WHERE vault = {VAULT_NUMBER} AND uid IN ({marks})"
            )
            found |= {row[0]: row[1:] for row in self._db.select(statement, vault, *some)}
        return found

    def changed_after(self, vault: str, timestamp: int) -> dict[str, int]:
        """Uid and version of the documents that have changed after a moment: what was sent from here, as a rule."""
        statement = (
            f"SELECT uid, version FROM documents AS d WHERE vault = {VAULT_NUMBER} AND updated_at > ?2"
            " AND NOT EXISTS (SELECT 1 FROM repeats AS r WHERE r.vault = ?1 AND r.uid = d.uid)"
        )
        return {row[0]: row[1] for row in self._db.select(statement, vault, timestamp)}

    def uids(self, vault: str) -> set[str]:
        """The uids of all documents of a vault, deleted ones included."""
        return {row[0] for row in self._db.select(f"SELECT uid FROM documents WHERE vault = {VAULT_NUMBER}", vault)}

    def is_empty(self, vault: str) -> bool:
        """Whether a vault has no documents here."""
        return not self._db.select(f"SELECT 1 FROM documents WHERE vault = {VAULT_NUMBER} LIMIT 1", vault)

    def count_live(self, vault: str) -> tuple[int, int]:
        """The number of documents that the server has not deleted, and the latest timestamp of any."""
        [(count, last)] = self._db.select(
            "SELECT COUNT(*) FILTER (WHERE deleted_at IS NULL), MAX(updated_at) FROM documents"
            f" WHERE vault = {VAULT_NUMBER}",
            vault,
        )
        return count, last or 0

    def put(self, rows: Sequence[tuple[Document, bool]], *, mine: bool = False) -> None:
        """Keep documents as they were received, each with whether a key holder deleted it. `mine`: written here."""
        with self._db.transaction():
            self._db.run_many(_PUT, self._bindings(rows, mine=mine))

    def add(self, rows: Sequence[tuple[Document, bool]]) -> None:
        """The same for documents that are not here yet: much faster, because SQLite need not be able to undo a row."""
        with self._db.transaction():
            if self._db.run_many(_ADD, self._bindings(rows, mine=False)) < len(rows):
                self.put(rows)

    def _bindings(self, rows: Sequence[tuple[Document, bool]], *, mine: bool) -> Iterator[tuple[Any, ...]]:
        places = {(row.vault_uid, row.collection) for row, _ in rows}
        numbers = {place: self._numbers(*place) for place in places}
        return (
            (
                row.uid,
                *numbers[row.vault_uid, row.collection],
                row.data,
                row.hmac,
                row.version,
                row.created_at,
                row.updated_at,
                row.deleted_at,
                deleted,
                mine,
            )
            for row, deleted in rows
        )

    def _numbers(self, vault: str, collection: str) -> tuple[int, int]:
        """The numbers of a vault and of a collection in it; new ones if they have none."""
        statement = "INSERT INTO places (vault, collection) VALUES (?, ?) ON CONFLICT DO NOTHING"
        self._db.run_many(statement, ((vault, ""), (vault, collection)))
        [(vault_number, collection_number)] = self._db.select(
            f"SELECT {VAULT_NUMBER}, {COLLECTION_NUMBER}", vault, collection
        )
        return vault_number, collection_number

    def is_mine(self, vault: str, uid: str) -> bool:
        """Whether the newest version of a document was written by this device."""
        statement = f"SELECT 1 FROM documents WHERE vault = {VAULT_NUMBER} AND uid = ?2 AND mine"
        return bool(self._db.select(statement, vault, uid))

    def is_deleted(self, vault: str, uid: str) -> bool:
        """Whether a key holder deleted a document."""
        statement = f"SELECT 1 FROM documents WHERE vault = {VAULT_NUMBER} AND uid = ?2 AND deleted"
        return bool(self._db.select(statement, vault, uid))

    def forget_times(self, vault: str, uids: Iterable[str]) -> None:
        """A restored server does not have these rows: the times that another database gave them mean nothing."""
        statement = f"UPDATE documents SET created_at = 0, updated_at = 0 WHERE vault = {VAULT_NUMBER} AND uid = ?2"
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
        for table in ("documents", "marks"):
            self._db.run(f"DELETE FROM {table} WHERE vault = {VAULT_NUMBER} AND uid = ?2", vault, uid)

    def had_version(self, row: Document) -> bool:
        """Whether this device had this version of a document earlier."""
        statement = f"SELECT 1 FROM earlier WHERE vault = {VAULT_NUMBER} AND uid = ?2 AND version = ?3 AND hmac = ?4"
        return bool(self._db.select(statement, row.vault_uid, row.uid, row.version, row.hmac))
