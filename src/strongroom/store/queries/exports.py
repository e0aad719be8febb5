"""Everything that an account keeps, vault by vault, in an order that an import can follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.export_rows import ExportedBlob, ExportedDocument, ExportedVault, ExportedVersion
from strongroom.store.statement import ALL, Sql, columns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from strongroom.store.database import Tx

_VAULTS = Sql(f"""
    SELECT {columns(ExportedVault)} FROM vaults WHERE user_id = :user_id AND uid > :beyond ORDER BY uid LIMIT :limit
""")
# A tombstone whose ciphertext was thrown away has none, and not an empty one.
_DOCUMENTS = Sql(f"""
    SELECT {columns(ExportedDocument).replace(", data,", ", NULLIF(data, '') AS data,")}
      FROM documents WHERE user_id = :user_id AND vault_uid = :vault_uid AND updated_at > :beyond
     ORDER BY updated_at LIMIT :limit
""")
_VERSIONS = Sql(f"""
    SELECT {columns(ExportedVersion)} FROM versions
     WHERE user_id = :user_id AND vault_uid = :vault_uid AND updated_at > :beyond
     ORDER BY updated_at LIMIT :limit
""")
_BLOBS = Sql(f"""
    SELECT {columns(ExportedBlob)} FROM blob_versions
     WHERE user_id = :user_id AND uid = :vault_uid AND version > :beyond
     ORDER BY version LIMIT :limit
""")


def vaults(tx: Tx, user_id: str) -> AsyncGenerator[list[ExportedVault], None]:
    """The vaults, in the order of their uids."""
    return tx.pages(ExportedVault, _VAULTS, after="beyond", by="uid", user_id=user_id, beyond="", limit=ALL)


def documents(tx: Tx, user_id: str, vault_uid: str) -> AsyncGenerator[list[ExportedDocument], None]:
    """The documents of a vault, tombstones included, in the order of their last changes."""
    return tx.pages(
        ExportedDocument,
        _DOCUMENTS,
        after="beyond",
        by="updated_at",
        user_id=user_id,
        vault_uid=vault_uid,
        beyond=-1,
        limit=ALL,
    )


def versions(tx: Tx, user_id: str, vault_uid: str) -> AsyncGenerator[list[ExportedVersion], None]:
    """What the documents of a vault were before, in the order in which it was written."""
    return tx.pages(
        ExportedVersion,
        _VERSIONS,
        after="beyond",
        by="updated_at",
        user_id=user_id,
        vault_uid=vault_uid,
        beyond=-1,
        limit=ALL,
    )


def blobs(tx: Tx, user_id: str, vault_uid: str) -> AsyncGenerator[list[ExportedBlob], None]:
    """What a vault's blob was before, in the order of the versions."""
    return tx.pages(
        ExportedBlob, _BLOBS, after="beyond", by="version", user_id=user_id, vault_uid=vault_uid, beyond=0, limit=ALL
    )
