"""Row counts of the database. They read whole tables, so they are for an operator's command, never for a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_COUNTS: Final = {
    "accounts": Sql("SELECT count(*) FROM users"),
    "disabledAccounts": Sql("SELECT count(*) FROM users WHERE disabled_at IS NOT NULL"),
    "sessions": Sql("SELECT count(*) FROM sessions"),
    "keys": Sql("SELECT count(*) FROM api_keys"),
    "vaults": Sql("SELECT count(*) FROM vaults"),
    "documents": Sql("SELECT CAST(coalesce(sum(documents), 0) AS BIGINT) FROM ledgers"),
    "bytes": Sql("SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM ledgers"),
    "tombstones": Sql("SELECT count(*) FROM documents WHERE deleted_at IS NOT NULL"),
    "keptVersions": Sql("SELECT (SELECT count(*) FROM versions) + (SELECT count(*) FROM blob_versions)"),
}


async def counts(tx: Tx) -> dict[str, int]:
    """All counts, by name."""
    return {name: int(await tx.value(sql)) for name, sql in _COUNTS.items()}
