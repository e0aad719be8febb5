"""The outbox: changes that are not sent yet, and what was sent without a response."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom.client.replica.store.records import DIVERGED, Entry
from strongroom.model import Document

if TYPE_CHECKING:
    from strongroom.client.replica.store.database import Database
    from strongroom.client.replica.store.refusals import RefusalTable

_ENTRY: Final = "seq, vault, uid, collection, kind, data, hmac, version, base, floor, before, made_at"
_WITH_DOCUMENT: Final = (  # the document that an entry changes, if the server has one
    "outbox AS o LEFT JOIN places AS p ON p.vault = o.vault AND p.collection = ''"
    " LEFT JOIN documents AS d ON d.vault = p.id AND d.uid = o.uid"
)
_row_text = msgspec.json.Encoder().encode
_row_back = msgspec.json.Decoder(Document).decode


class Outbox:
    """The queued changes of a replica."""

    def __init__(self, db: Database, refusals: RefusalTable) -> None:
        self._db = db
        self._refusals = refusals

    def entries(self, vault: str | None = None) -> list[Entry]:
        """The outbox, oldest first."""
        if vault is None:
            return [_entry(row) for row in self._db.select(f"SELECT {_ENTRY} FROM outbox ORDER BY seq")]
        return [
            _entry(row) for row in self._db.select(f"SELECT {_ENTRY} FROM outbox WHERE vault = ? ORDER BY seq", vault)
        ]

    def ready(self, vault: str, after: int, limit: int) -> list[Entry]:
        """The entries that can be sent, in order: their base is the server's version, and it has not refused them."""
        names = ", ".join(f"o.{name}" for name in _ENTRY.split(", "))
        statement = (
            f"SELECT {names} FROM {_WITH_DOCUMENT} WHERE o.vault = ? AND o.seq > ? AND o.base = COALESCE(d.version, 0)"
            " AND NOT EXISTS (SELECT 1 FROM repeats AS r WHERE r.vault = o.vault AND r.uid = o.uid)"
            " AND NOT EXISTS (SELECT 1 FROM refusals AS f WHERE f.vault = o.vault AND f.uid = o.uid AND NOT f.again)"
            " ORDER BY o.seq LIMIT ?"
        )
        return [_entry(row) for row in self._db.select(statement, vault, after, limit)]

    def conflicting(self) -> list[tuple[str, str]]:
        """The vault and uid of every entry whose base is not the server's version.

        A new document that has the uid of one in another collection is none: it is refused.
        """
        statement = (
            f"SELECT o.vault, o.uid FROM {_WITH_DOCUMENT} JOIN places AS c ON c.id = d.collection"
            " WHERE o.base != d.version AND o.collection = c.collection ORDER BY o.seq"
        )
        return [(row[0], row[1]) for row in self._db.select(statement)]

    def waits_since_restore(self, vault: str) -> bool:
        """Whether a conflict waits in a vault with something that follows on nothing that the server has."""
        statement = f"SELECT 1 FROM {_WITH_DOCUMENT} WHERE o.vault = ? AND o.base = {DIVERGED} AND d.version LIMIT 1"
        return bool(self._db.select(statement, vault))

    def length(self) -> int:
        """The number of queued changes."""
        return int(self._db.select("SELECT COUNT(*) FROM outbox")[0][0])

    def documents(self) -> set[tuple[str, str]]:
        """The vault and uid of every entry."""
        return {(row[0], row[1]) for row in self._db.select("SELECT vault, uid FROM outbox")}

    def vaults(self) -> set[str]:
        """The vaults of all entries."""
        return {row[0] for row in self._db.select("SELECT DISTINCT vault FROM outbox")}

    def get(self, vault: str, uid: str) -> Entry | None:
        """The outbox entry of a document."""
        found = self._db.select(f"SELECT {_ENTRY} FROM outbox WHERE vault = ? AND uid = ?", vault, uid)
        return _entry(found[0]) if found else None

    def put(self, entry: Entry, *, resealed: bool = False) -> None:
        """Queue a change; it replaces an earlier entry of the same document, and is sent even if that was refused.

        `resealed`: it is the same change, which stays refused.
        """
        if not resealed:
            self._refusals.drop(entry.vault, entry.uid)
        before = None if entry.before is None else _row_text(entry.before).decode()
        values = (
            entry.vault,
            entry.uid,
            entry.collection,
            entry.kind,
            entry.data,
            entry.hmac,
            entry.version,
            entry.base,
            entry.floor,
            before,
            entry.made_at,
        )
        self._db.run(
            "INSERT INTO outbox (vault, uid, collection, kind, data, hmac, version, base, floor, before, made_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (vault, uid) DO UPDATE SET collection = excluded.collection, kind = excluded.kind,"
            " data = excluded.data, hmac = excluded.hmac, version = excluded.version, base = excluded.base,"
            " floor = excluded.floor, before = excluded.before, made_at = excluded.made_at",
            *values,
        )

    def drop(self, vault: str, uid: str) -> None:
        """Remove an entry from the outbox."""
        with self._db.transaction():
            self._db.run("DELETE FROM outbox WHERE vault = ? AND uid = ?", vault, uid)
            self.forget_sent(vault, uid)
            self._refusals.drop(vault, uid)

    def record_sent(self, sendings: Iterable[tuple[str, str, str]]) -> None:
        """Record what is about to be sent (vault, uid, proof), to recognise it if the response is lost."""
        self._db.run_many("INSERT OR IGNORE INTO sent (vault, uid, hmac) VALUES (?, ?, ?)", sendings)

    def forget_sent(self, vault: str, uid: str) -> None:
        """Forget what was sent of a document: it is stored, or certainly not."""
        self._db.run("DELETE FROM sent WHERE vault = ? AND uid = ?", vault, uid)

    def sent_uids(self, vault: str) -> set[str]:
        """The documents of which something was sent from here without a response."""
        return {row[0] for row in self._db.select("SELECT uid FROM sent WHERE vault = ?", vault)}

    def was_sent(self, vault: str, uid: str, hmac: str | None = None) -> bool:
        """Whether content of this proof, or any, was sent from here without a response."""
        if hmac is None:
            return bool(self._db.select("SELECT 1 FROM sent WHERE vault = ? AND uid = ?", vault, uid))
        return bool(self._db.select("SELECT 1 FROM sent WHERE vault = ? AND uid = ? AND hmac = ?", vault, uid, hmac))

    def count_sendable(self) -> int:
        """The number of queued changes that a sync would send."""
        statement = (
            f"SELECT COUNT(*) FROM {_WITH_DOCUMENT} WHERE o.base = COALESCE(d.version, 0)"
            " AND NOT EXISTS (SELECT 1 FROM refusals AS f WHERE f.vault = o.vault AND f.uid = o.uid)"
        )
        return int(self._db.select(statement)[0][0])


def _entry(row: tuple[Any, ...]) -> Entry:
    made = dict(zip(_ENTRY.split(", "), row, strict=True))
    made["before"] = None if made["before"] is None else _row_back(made["before"])
    return Entry(**made)
