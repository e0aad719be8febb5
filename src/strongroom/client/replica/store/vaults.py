"""Vaults as they were last pulled, and their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom.client.format.encoding import short, to_url
from strongroom.client.replica.store.records import VaultRecord
from strongroom.client.replica.store.schema import EARLIER_VERSIONS, VAULT_NUMBER

if TYPE_CHECKING:
    from strongroom.client.replica.store.database import Database
_COLUMNS: Final = ", ".join(VaultRecord.__struct_fields__)
_RENAMED: Final = "renamed"
_CLEAR_RENAMED: Final = "renamed vaults"


class VaultTable:
    """The vaults of a replica."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self) -> list[VaultRecord]:
        """All vaults of the replica."""
        return [_record(row) for row in self._db.select(f"SELECT {_COLUMNS} FROM vaults ORDER BY uid")]

    def get(self, uid: str) -> VaultRecord | None:
        """Get a vault."""
        found = self._db.select(f"SELECT {_COLUMNS} FROM vaults WHERE uid = ?", uid)
        return _record(found[0]) if found else None

    def put(self, vault: VaultRecord) -> None:
        """Keep a vault, and of its blobs of before that they were here."""
        before = self.get(vault.uid)
        if before is not None and before.data not in {None, vault.data}:
            past = [*self._past_blobs(vault.uid), to_url(short(before.data or ""))]
            self._db.set_fact(f"blobs {vault.uid}", " ".join(past[-EARLIER_VERSIONS:]))
        self._db.run(
            f"INSERT OR REPLACE INTO vaults ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *msgspec.structs.astuple(vault),
        )
        self.forget_new(vault.uid)

    def _past_blobs(self, uid: str) -> list[str]:
        return (self._db.fact(f"blobs {uid}") or "").split()

    def had_blob(self, uid: str, data: str) -> bool:
        """Whether a vault had this blob earlier."""
        return to_url(short(data)) in self._past_blobs(uid)

    def put_blob_aside(self, vault: VaultRecord) -> None:
        """Keep the blob that is here apart: a restored server has gone on with another one."""
        if self.blob_aside(vault.uid) is None:  # otherwise what is here was the server's, and undecided
            self._db.set_fact(f"blob aside {vault.uid}", msgspec.json.encode(vault).decode())

    def blob_aside(self, uid: str) -> VaultRecord | None:
        """The vault with the blob that was kept apart."""
        kept = self._db.fact(f"blob aside {uid}")
        return None if kept is None else msgspec.json.decode(kept, type=VaultRecord)

    def drop_blob_aside(self, uid: str) -> None:
        """It was decided about, or the server has it again."""
        self._db.run("DELETE FROM facts WHERE name = ?", f"blob aside {uid}")

    def advance_clock(self, uid: str, timestamp: int) -> None:
        """Advance the clock of a vault to at least this timestamp."""
        self._db.run("UPDATE vaults SET clock = MAX(clock, ?) WHERE uid = ?", timestamp, uid)

    def drop(self, uid: str) -> None:
        """Delete a vault and its documents; changes that are queued in it, and its keys, stay."""
        with self._db.transaction():
            for table in ("documents", "earlier", "marks"):
                self._db.run(f"DELETE FROM {table} WHERE vault = {VAULT_NUMBER}", uid)
            for table in ("places", "repeats", "sent"):
                self._db.run(f"DELETE FROM {table} WHERE vault = ?", uid)
            self._db.run("DELETE FROM vaults WHERE uid = ?", uid)
            self._db.run("DELETE FROM facts WHERE name IN (?, ?)", f"blobs {uid}", f"blob aside {uid}")

    def put_keys(self, uid: str, sealed: str, *, new: bool = False) -> None:
        """Keep the sealed keys of a vault. `new`: it was made here, and the server does not have it yet."""
        self._db.run(
            "INSERT INTO vault_keys (vault, sealed, new) VALUES (?, ?, ?)"
            " ON CONFLICT (vault) DO UPDATE SET sealed = excluded.sealed",
            uid,
            sealed,
            new,
        )

    def new(self) -> set[str]:
        """The vaults that were made here and that the server does not have yet."""
        return {row[0] for row in self._db.select("SELECT vault FROM vault_keys WHERE new")}

    def forget_new(self, uid: str) -> None:
        """The server has a vault that was made here, or it was deleted."""
        self._db.run("UPDATE vault_keys SET new = 0 WHERE vault = ? AND new", uid)

    def sealed_keys(self) -> list[tuple[str, str]]:
        """The vaults whose keys are kept, and the sealed keys of each."""
        return [(row[0], row[1]) for row in self._db.select("SELECT vault, sealed FROM vault_keys ORDER BY vault")]

    def drop_keys(self, uid: str) -> None:
        """Forget the keys of a vault."""
        self._db.run("DELETE FROM vault_keys WHERE vault = ?", uid)

    def set_renamed(self, sealed: str) -> None:
        """Record which vaults have got another name than was wanted, until that is told."""
        self._db.set_fact(_RENAMED, sealed)

    def renamed(self) -> str | None:
        """What was recorded of such vaults, sealed; None where there are none, or all were told."""
        return self._db.fact(_RENAMED)

    def forget_renamed(self) -> None:
        """It is told."""
        self._db.run("DELETE FROM facts WHERE name = ?", _RENAMED)

    def take_clear_renamed(self) -> str | None:
        """What an earlier release has recorded of such vaults in the clear; it is erased."""
        found = self._db.fact(_CLEAR_RENAMED)
        if found is not None:
            self._db.run("DELETE FROM facts WHERE name = ?", _CLEAR_RENAMED)
            self._db.erase_replaced()
        return found

    def set_generations(self, newest: dict[str, int]) -> None:
        """Set the newest generation of each vault's key, by uid, that the keyring in this file has."""
        self._db.set_fact("generations", msgspec.json.encode(newest).decode())

    def generation(self, vault: str) -> int | None:
        """The newest generation of a vault's key that the keyring in this file has."""
        return msgspec.json.decode(self._db.fact("generations") or "{}", type=dict[str, int]).get(vault)


def _record(row: tuple[Any, ...]) -> VaultRecord:
    return VaultRecord(**dict(zip(VaultRecord.__struct_fields__, row, strict=True)))
