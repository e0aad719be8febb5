"""Creates and replaces documents of one account in one statement, which is a transaction of its own.

The statement reads the account, and writes only if the ledger's clock is still what it has read: every write of an
account locks the ledger and advances its clock, so then nothing else has changed either. Otherwise, and wherever
something is to be refused, it writes nothing and returns no row; the actions themselves are run, which know why.

Rows are joined by the account of `wanted`, not by the parameter: a plan that is made for accounts of average size would
read all rows of the account and compare them, which takes as long as the account is large. OFFSET 0 keeps the planner
from searching by anything but the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from strongroom.model import DOCUMENT_ROW_BYTES, RETAINED_ROW_BYTES, Document
from strongroom.store.queries.deletions import live
from strongroom.store.statement import Sql, columns
from strongroom.store.write_forms import NewDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncpg import Connection

    from strongroom.store.write_forms import Form


DOCUMENT_COLUMNS: Final = columns(Document)
# Always true. The planner takes it for a rare case and expects one row: it looks rows up by their keys, however large
# the tables are, and has no reason to plan the statement anew at each execution.
EXPECT_ONE_ROW: Final = "given.place * 0 = 0"
# Evaluated once, before anything is locked: what the statement has read of the ledger, and the keyring, which stays.
_READ: Final = """
    seen AS MATERIALIZED (SELECT clock FROM ledgers WHERE user_id = :user_id),
    keyring AS MATERIALIZED (
        SELECT version FROM keyrings WHERE user_id = :user_id AND :keyring_version::bigint IS NOT NULL FOR SHARE)
"""
_ADVANCED: Final = """
    clock = CASE WHEN ledgers.clock < :now THEN :now::bigint + :count - 1 ELSE ledgers.clock + :count END
"""
_UNCHANGED: Final = """
    ledgers.user_id = :user_id AND ledgers.importing = 0 AND ledgers.clock = seen.clock
    AND NOT EXISTS (SELECT 1 FROM keyring WHERE version > :keyring_version)
    AND (:most_bytes::bigint IS NULL OR ledgers.bytes + :more_bytes <= :most_bytes)
"""
BOOKED_ROW_BYTES: Final = f"sum(octet_length(collection) + {DOCUMENT_ROW_BYTES}) AS row_bytes"
_TIMESTAMP: Final = "ledger.clock - :count + place"

_CREATE: Final = Sql(
    postgres=f"""
    WITH wanted AS MATERIALIZED (
        SELECT :user_id AS user_id, given.*
          FROM unnest(:uids::text[], :vault_uids::text[], :collections::text[], :datas::text[], :hmacs::bytea[],
                      :versions::bigint[], :sizes::bigint[])
          WITH ORDINALITY AS given (uid, vault_uid, collection, data, hmac, version, size, place)
         WHERE {EXPECT_ONE_ROW}),
    booked AS MATERIALIZED (
        SELECT user_id, vault_uid, count(*) AS documents, sum(size) AS bytes, max(place) AS place,
               {BOOKED_ROW_BYTES}
          FROM wanted GROUP BY user_id, vault_uid),
    {_READ},
    ledger AS (
        UPDATE ledgers SET {_ADVANCED}, documents = ledgers.documents + :count, bytes = ledgers.bytes + :more_bytes,
               row_bytes = ledgers.row_bytes + :more_row_bytes
          FROM seen
         WHERE {_UNCHANGED}
           AND (:most_documents::bigint IS NULL OR ledgers.documents + :count <= :most_documents)
           AND (:most_row_bytes::bigint IS NULL OR ledgers.row_bytes + :more_row_bytes <= :most_row_bytes)
           AND NOT EXISTS (SELECT 1 FROM wanted JOIN documents USING (user_id, uid))
           AND NOT EXISTS (SELECT 1 FROM wanted JOIN vaults USING (user_id, uid))
           AND (SELECT count(*) FROM booked)
             = (SELECT count(*) FROM booked JOIN vaults ON vaults.user_id = booked.user_id AND vaults.uid = vault_uid)
     RETURNING ledgers.clock),
    added AS (
        INSERT INTO documents (user_id, {DOCUMENT_COLUMNS})
        SELECT user_id, uid, vault_uid, collection, data, hmac, version, {_TIMESTAMP}, {_TIMESTAMP}, NULL
          FROM wanted, ledger),
    counted AS (
        UPDATE vaults
           SET updated_at = {_TIMESTAMP}, documents = vaults.documents + booked.documents,
               bytes = vaults.bytes + booked.bytes, row_bytes = vaults.row_bytes + booked.row_bytes
          FROM booked, ledger WHERE vaults.user_id = booked.user_id AND vaults.uid = booked.vault_uid)
    SELECT clock FROM ledger
"""
)
_REPLACE: Final = Sql(
    postgres=f"""
    WITH wanted AS MATERIALIZED (
        SELECT :user_id AS user_id, given.*
          FROM unnest(:uids::text[], :vault_uids::text[], :datas::text[], :hmacs::bytea[], :versions::bigint[],
                      :new_versions::bigint[], :sizes::bigint[])
          WITH ORDINALITY AS given (uid, vault_uid, data, hmac, version, chosen, size, place)
         WHERE {EXPECT_ONE_ROW}),
    stored AS MATERIALIZED (
        SELECT * FROM (
            SELECT place, user_id, uid, documents.vault_uid, collection, documents.version, created_at, size,
                   coalesce(chosen, documents.version + 1) AS new_version, deleted_at, purged_at,
                   wanted.vault_uid AS wanted_vault, wanted.version AS wanted_version, wanted.data, wanted.hmac,
                   octet_length(documents.data) + coalesce(octet_length(documents.hmac), 0) AS bytes,
                   {live("documents.", ":user_id", "documents.vault_uid")} AS is_live
              FROM wanted JOIN documents USING (user_id, uid) OFFSET 0) AS found
         WHERE vault_uid = wanted_vault AND version = wanted_version AND new_version > version
           AND deleted_at IS NULL AND purged_at IS NULL AND is_live),
    added AS MATERIALIZED (
        SELECT count(*) AS documents, coalesce(sum(size - bytes), 0) AS bytes,
               coalesce(sum(greatest(size - bytes, 0)), 0) AS more, coalesce(sum(bytes), 0) AS replaced FROM stored),
    {_READ},
    ledger AS (
        UPDATE ledgers SET {_ADVANCED}, bytes = ledgers.bytes + added.bytes
          FROM seen, added
         WHERE {_UNCHANGED.replace(":more_bytes", "added.more")} AND added.documents = :count
           AND (:most_retained::bigint IS NULL OR :most_retained >= added.replaced + :count * {RETAINED_ROW_BYTES}
                + (SELECT coalesce(sum(kept), 0) FROM vaults WHERE user_id = :user_id))
     RETURNING ledgers.clock),
    retained AS (
        INSERT INTO versions (user_id, {DOCUMENT_COLUMNS}, replaced_at)
        SELECT documents.user_id, {", ".join(f"documents.{one}" for one in DOCUMENT_COLUMNS.split(", "))}, {_TIMESTAMP}
          FROM stored, documents, ledger
         WHERE documents.user_id = stored.user_id AND documents.uid = stored.uid AND :most_versions > 0),
    crowded AS MATERIALIZED (
        SELECT user_id, uid, vault_uid,
               (SELECT older.version FROM versions AS older
                 WHERE older.user_id = stored.user_id AND older.uid = stored.uid
                 ORDER BY older.version DESC LIMIT 1 OFFSET greatest(:most_versions - 1, 0)) AS newest
          FROM stored, ledger WHERE stored.version > :most_versions AND :most_versions > 0),
    dropped AS (
        DELETE FROM versions USING crowded
         WHERE versions.user_id = crowded.user_id AND versions.uid = crowded.uid AND versions.version <= crowded.newest
     RETURNING crowded.vault_uid,
               octet_length(versions.data) + coalesce(octet_length(versions.hmac), 0) + {RETAINED_ROW_BYTES} AS bytes),
    replaced AS (
        UPDATE documents
           SET data = stored.data, hmac = stored.hmac, version = stored.new_version, updated_at = {_TIMESTAMP}
          FROM stored, ledger WHERE documents.user_id = stored.user_id AND documents.uid = stored.uid),
    counted AS (
        UPDATE vaults
           SET updated_at = {_TIMESTAMP}, bytes = vaults.bytes + booked.bytes, kept = vaults.kept + booked.kept
             - (SELECT coalesce(sum(dropped.bytes), 0) FROM dropped WHERE dropped.vault_uid = booked.vault_uid)
          FROM ledger, (
              SELECT user_id, vault_uid, max(place) AS place, sum(size - bytes) AS bytes,
                     CASE WHEN :most_versions > 0 THEN sum(bytes + {RETAINED_ROW_BYTES}) ELSE 0 END AS kept
                FROM stored GROUP BY user_id, vault_uid) AS booked
         WHERE vaults.user_id = booked.user_id AND vaults.uid = booked.vault_uid)
    SELECT collection, new_version, created_at, {_TIMESTAMP} FROM stored, ledger ORDER BY place
"""
)


async def run(connection: Connection, user_id: str, rows: Sequence[Form], now: int) -> list[Document] | None:
    """The documents that these writes, which are all of one kind and of different uids, store; None: not written."""
    first = rows[0]
    seen = [row.keyring_version for row in rows if row.keyring_version is not None]
    parameters: dict[str, Any] = {
        "user_id": user_id,
        "now": now,
        "count": len(rows),
        "keyring_version": min(seen, default=None),
        "most_bytes": first.limits.bytes,
        "uids": [row.uid for row in rows],
        "vault_uids": [row.vault_uid for row in rows],
        "datas": [row.data for row in rows],
        "hmacs": [row.hmac for row in rows],
        "versions": [row.version for row in rows],
        "sizes": [row.size for row in rows],
    }
    if isinstance(first, NewDocument):
        return await _create(connection, rows, parameters)
    return await _replace(connection, rows, parameters)


async def _create(connection: Connection, rows: Any, parameters: dict[str, Any]) -> list[Document] | None:
    parameters["collections"] = [row.collection for row in rows]
    parameters["more_bytes"] = sum(parameters["sizes"])
    parameters["most_documents"] = rows[0].limits.documents
    parameters["more_row_bytes"] = sum(row.row_bytes for row in rows)
    parameters["most_row_bytes"] = rows[0].most_row_bytes
    last: int | None = await connection.fetchval(_CREATE.postgres, *[parameters[name] for name in _CREATE.names])
    if last is None:
        return None
    begin = last - len(rows) + 1
    return [
        Document(row.uid, row.vault_uid, row.collection, row.data, row.hmac, row.version, at, at, None)
        for at, row in enumerate(rows, begin)
    ]


async def _replace(connection: Connection, rows: Any, parameters: dict[str, Any]) -> list[Document] | None:
    parameters["new_versions"] = [row.new_version for row in rows]
    parameters["most_versions"] = rows[0].limits.versions
    parameters["most_retained"] = rows[0].most_retained
    stored = await connection.fetch(_REPLACE.postgres, *[parameters[name] for name in _REPLACE.names])
    return (
        [
            Document(row.uid, row.vault_uid, collection, row.data, row.hmac, version, created_at, timestamp, None)
            for row, (collection, version, created_at, timestamp) in zip(rows, stored, strict=True)
        ]
        if stored
        else None
    )
