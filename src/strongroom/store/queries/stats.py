"""Row counts of the database. They read whole tables, so they are for an operator's command, never for a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.store.queries.accounts import IS_THERE
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_COUNTS: Final = {
    "accounts": Sql(f"SELECT count(*) FROM users WHERE {IS_THERE}"),
    "disabledAccounts": Sql(f"SELECT count(*) FROM users WHERE disabled_at IS NOT NULL AND {IS_THERE}"),
    **{
        name: Sql(f"SELECT count(*) FROM {table} JOIN users ON users.id = user_id AND {IS_THERE}")
        for name, table in (("sessions", "sessions"), ("keys", "api_keys"), ("vaults", "vaults"))
    },
    "documents": Sql("SELECT CAST(coalesce(sum(documents), 0) AS BIGINT) FROM ledgers"),
    "bytes": Sql("SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM ledgers"),
    "tombstones": Sql("SELECT count(*) FROM documents WHERE deleted_at IS NOT NULL"),
    "deletions": Sql("SELECT count(*) FROM deletions"),
    "keptVersions": Sql("SELECT (SELECT count(*) FROM versions) + (SELECT count(*) FROM blob_versions)"),
}


async def counts(tx: Tx) -> dict[str, int]:
    """All counts, by name."""
    return {name: int(await tx.value(sql)) for name, sql in _COUNTS.items()}
