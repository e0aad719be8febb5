"""High-water marks: of each document, the newest row that was seen, where a lower one has taken its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.client.replica.store.records import Mark
from strongroom.client.replica.store.schema import VAULT_NUMBER

if TYPE_CHECKING:
    from strongroom.client.replica.store.database import Database

_MARK: Final = "uid, version, hmac, COALESCE((SELECT collection FROM places WHERE id = marks.collection), ''), deleted"


class MarkTable:
    """The high-water marks of a replica. Triggers keep them; a document without one is itself the newest row seen."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def of(self, vault: str) -> dict[str, Mark]:
        """The marks of a vault above what the server has shown since, by uid."""
        found = self._db.select(f"SELECT {_MARK} FROM marks WHERE vault = {VAULT_NUMBER}", vault)
        return {
            uid: Mark(version, hmac, collection, bool(deleted)) for uid, version, hmac, collection, deleted in found
        }

    def get(self, vault: str, uid: str) -> Mark | None:
        """The mark of a document, if the server has shown a lower row since."""
        found = self._db.select(f"SELECT {_MARK} FROM marks WHERE vault = {VAULT_NUMBER} AND uid = ?2", vault, uid)
        if not found:
            return None
        [(_, version, hmac, collection, deleted)] = found
        return Mark(version, hmac, collection, bool(deleted))

    def lower(self, vault: str, uid: str) -> None:
        """Let what the server shows be the mark: a person has decided so."""
        self._db.run(f"DELETE FROM marks WHERE vault = {VAULT_NUMBER} AND uid = ?2", vault, uid)
