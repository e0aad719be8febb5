"""Exports: all rows of an account, keyrings first, then vault by vault, in an order that an import can insert."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from strongroom.export_rows import ExportedBlob, ExportedDocument, ExportedVault, ExportedVersion
from strongroom.store import locks
from strongroom.store.queries.deletions import live, live_after, with_later
from strongroom.store.statement import ALL, Sql, columns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from strongroom.store.database import Tx

T = TypeVar("T")


class RetainedKeyring(Struct, frozen=True):
    """A keyring that was replaced, and the key derivation descriptor that the account had until then."""

    data: str  # the keyring
    version: int
    updated_at: int
    replaced_at: int
    kdf: str | None

    def __repr__(self) -> str:
        return f"RetainedKeyring(version={self.version})"


# On SQLite, where processes share a file, each has its own limit.
_CLAIM = Sql(
    sqlite="SELECT :user_id IS NOT NULL",
    postgres=f"SELECT pg_try_advisory_xact_lock(hashtextextended(:user_id, {locks.EXPORTING}))",
)
_KDF = Sql("SELECT kdf FROM users WHERE id = :user_id")
_KEYRINGS = Sql(f"""
    SELECT {columns(RetainedKeyring).replace("data", "keyring AS data")} FROM keyring_versions
     WHERE user_id = :user_id AND version > :beyond ORDER BY version LIMIT :limit
""")

_VAULTS = Sql(f"""
    SELECT {columns(ExportedVault)} FROM vaults WHERE user_id = :user_id AND uid > :beyond ORDER BY uid LIMIT :limit
""")
# A tombstone whose ciphertext was purged has none, and not an empty one.
_DOCUMENTS = with_later(f"""
    SELECT {columns(ExportedDocument).replace(", data,", ", NULLIF(data, '') AS data,")}
      FROM documents WHERE user_id = :user_id AND vault_uid = :vault_uid AND {live_after(":beyond")}
     ORDER BY updated_at LIMIT :limit
""")
_VERSIONS = with_later(f"""
    SELECT {columns(ExportedVersion)} FROM versions
     WHERE user_id = :user_id AND vault_uid = :vault_uid AND {live_after(":beyond")}
     ORDER BY updated_at LIMIT :limit
""")
_BLOBS = Sql(f"""
    SELECT {columns(ExportedBlob)} FROM blob_versions
     WHERE user_id = :user_id AND uid = :vault_uid AND version > :beyond AND {live()}
     ORDER BY version LIMIT :limit
""")


async def claim(tx: Tx, user_id: str) -> bool:
    """Whether no other snapshot has claimed this account; until the end of this one, none does."""
    return bool(await tx.value(_CLAIM, user_id=user_id))


async def kdf(tx: Tx, user_id: str) -> str | None:
    """The account's key derivation descriptor."""
    found: str | None = await tx.value(_KDF, user_id=user_id)
    return found


def keyrings(tx: Tx, user_id: str) -> AsyncGenerator[list[RetainedKeyring], None]:
    """The retained keyrings that were replaced, in the order of their versions."""
    return tx.pages(RetainedKeyring, _KEYRINGS, after="beyond", by="version", user_id=user_id, beyond=0, limit=ALL)


def vaults(tx: Tx, user_id: str) -> AsyncGenerator[list[ExportedVault], None]:
    """The vaults, in the order of their uids."""
    return tx.pages(ExportedVault, _VAULTS, after="beyond", by="uid", user_id=user_id, beyond="", limit=ALL)


def documents(tx: Tx, user_id: str, vault_uid: str) -> AsyncGenerator[list[ExportedDocument], None]:
    """The documents of a vault, tombstones included, in the order of their last changes."""
    return _of_vault(tx, ExportedDocument, _DOCUMENTS, user_id, vault_uid, by="updated_at", beyond=-1)


def versions(tx: Tx, user_id: str, vault_uid: str) -> AsyncGenerator[list[ExportedVersion], None]:
    """The retained versions of a vault's documents, in the order in which they were written."""
    return _of_vault(tx, ExportedVersion, _VERSIONS, user_id, vault_uid, by="updated_at", beyond=-1)


def blobs(tx: Tx, user_id: str, vault_uid: str) -> AsyncGenerator[list[ExportedBlob], None]:
    """The retained versions of a vault's blob, in the order of the versions."""
    return _of_vault(tx, ExportedBlob, _BLOBS, user_id, vault_uid, by="version", beyond=0)


def _of_vault(
    tx: Tx, kind: type[T], sql: Sql, user_id: str, vault_uid: str, *, by: str, beyond: int
) -> AsyncGenerator[list[T], None]:
    return tx.pages(kind, sql, after="beyond", by=by, user_id=user_id, vault_uid=vault_uid, beyond=beyond, limit=ALL)
