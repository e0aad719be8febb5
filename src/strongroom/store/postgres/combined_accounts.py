"""Creates documents of several accounts in one statement, which is a transaction of its own.

It follows the rules of `combined_writes`, account by account: an account whose ledger has changed since it was read, or
of which something is to be refused, is left out, and the others are written. Nothing here waits for another's lock: an
account that is being written to elsewhere is left out too. So no account keeps the others waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from strongroom.model import Document
from strongroom.store.postgres.combined_writes import BOOKED_ROW_BYTES, DOCUMENT_COLUMNS, EXPECT_ONE_ROW
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from asyncpg import Connection

    from strongroom.store.write_forms import NewDocument

_TIMESTAMP: Final = "ledger.before + place"
_CREATE: Final = Sql(
    postgres=f"""
    WITH account AS MATERIALIZED (
        SELECT given.*
          FROM unnest(:owners::text[], :counts::bigint[], :more_bytes::bigint[], :most_bytes::bigint[],
                      :most_documents::bigint[], :more_row_bytes::bigint[], :most_row_bytes::bigint[],
                      :keyring_versions::bigint[])
          WITH ORDINALITY AS given (user_id, count, more_bytes, most_bytes, most_documents, more_row_bytes,
                                    most_row_bytes, keyring_version, place)
         WHERE {EXPECT_ONE_ROW}),
    wanted AS MATERIALIZED (
        SELECT given.*
          FROM unnest(:user_ids::text[], :places::bigint[], :uids::text[], :vault_uids::text[], :collections::text[],
                      :datas::text[], :hmacs::bytea[], :versions::bigint[], :sizes::bigint[])
            AS given (user_id, place, uid, vault_uid, collection, data, hmac, version, size)
         WHERE {EXPECT_ONE_ROW}),
    booked AS MATERIALIZED (
        SELECT user_id, vault_uid, count(*) AS documents, sum(size) AS bytes, max(place) AS place,
               {BOOKED_ROW_BYTES}
          FROM wanted GROUP BY user_id, vault_uid),
    seen AS MATERIALIZED (SELECT account.*, ledgers.clock FROM account JOIN ledgers USING (user_id)),
    locked AS MATERIALIZED (
        SELECT seen.* FROM seen JOIN ledgers USING (user_id)
         WHERE ledgers.clock = seen.clock FOR UPDATE OF ledgers SKIP LOCKED),
    keyring AS MATERIALIZED (
        SELECT keyrings.user_id FROM account JOIN keyrings USING (user_id) WHERE keyring_version IS NOT NULL),
    held AS MATERIALIZED (
        SELECT keyrings.user_id FROM account JOIN keyrings USING (user_id)
         WHERE keyrings.version <= keyring_version FOR SHARE OF keyrings SKIP LOCKED),
    refused AS MATERIALIZED (
        SELECT user_id FROM wanted JOIN documents USING (user_id, uid)
         UNION ALL
        SELECT user_id FROM wanted JOIN vaults USING (user_id, uid)
         UNION ALL
        SELECT user_id FROM booked
         WHERE NOT EXISTS (SELECT FROM vaults WHERE vaults.user_id = booked.user_id AND vaults.uid = booked.vault_uid)
         UNION ALL
        SELECT user_id FROM keyring WHERE user_id NOT IN (SELECT user_id FROM held)),
    ledger AS (
        UPDATE ledgers
           SET clock = CASE WHEN ledgers.clock < :now THEN :now::bigint - 1 ELSE ledgers.clock END + locked.count,
               documents = ledgers.documents + locked.count, bytes = ledgers.bytes + locked.more_bytes,
               row_bytes = ledgers.row_bytes + locked.more_row_bytes
          FROM locked
         WHERE ledgers.user_id = locked.user_id AND ledgers.importing = 0
           AND (locked.most_bytes IS NULL OR ledgers.bytes + locked.more_bytes <= locked.most_bytes)
           AND (locked.most_documents IS NULL OR ledgers.documents + locked.count <= locked.most_documents)
           AND (locked.most_row_bytes IS NULL OR ledgers.row_bytes + locked.more_row_bytes <= locked.most_row_bytes)
           AND locked.user_id NOT IN (SELECT user_id FROM refused)
     RETURNING ledgers.user_id, ledgers.clock - locked.count AS before),
    added AS (
        INSERT INTO documents (user_id, {DOCUMENT_COLUMNS})
        SELECT user_id, uid, vault_uid, collection, data, hmac, version, {_TIMESTAMP}, {_TIMESTAMP}, NULL
          FROM wanted JOIN ledger USING (user_id)),
    counted AS (
        UPDATE vaults
           SET updated_at = {_TIMESTAMP}, documents = vaults.documents + booked.documents,
               bytes = vaults.bytes + booked.bytes, row_bytes = vaults.row_bytes + booked.row_bytes
          FROM booked JOIN ledger USING (user_id)
         WHERE vaults.user_id = booked.user_id AND vaults.uid = booked.vault_uid)
    SELECT user_id, before FROM ledger
"""
)


async def create(
    connection: Connection, wanted: Mapping[str, Sequence[NewDocument]], now: int
) -> dict[str, list[Document]]:
    """The documents that were stored, by account; of an account that is not among them, nothing was written."""
    rows = [(user_id, place, row) for user_id, forms in wanted.items() for place, row in enumerate(forms, 1)]
    parameters: dict[str, Any] = {
        "now": now,
        "owners": list(wanted),
        "counts": [len(forms) for forms in wanted.values()],
        "more_bytes": [sum(row.size for row in forms) for forms in wanted.values()],
        "most_bytes": [forms[0].limits.bytes for forms in wanted.values()],
        "most_documents": [forms[0].limits.documents for forms in wanted.values()],
        "more_row_bytes": [sum(row.row_bytes for row in forms) for forms in wanted.values()],
        "most_row_bytes": [forms[0].most_row_bytes for forms in wanted.values()],
        "keyring_versions": [
            min((row.keyring_version for row in forms if row.keyring_version is not None), default=None)
            for forms in wanted.values()
        ],
        "user_ids": [user_id for user_id, _, _ in rows],
        "places": [place for _, place, _ in rows],
        "uids": [row.uid for _, _, row in rows],
        "vault_uids": [row.vault_uid for _, _, row in rows],
        "collections": [row.collection for _, _, row in rows],
        "datas": [row.data for _, _, row in rows],
        "hmacs": [row.hmac for _, _, row in rows],
        "versions": [row.version for _, _, row in rows],
        "sizes": [row.size for _, _, row in rows],
    }
    written = await connection.fetch(_CREATE.postgres, *[parameters[name] for name in _CREATE.names])
    return {
        user_id: [
            Document(row.uid, row.vault_uid, row.collection, row.data, row.hmac, row.version, at, at, None)
            for at, row in enumerate(wanted[user_id], before + 1)
        ]
        for user_id, before in written
    }
