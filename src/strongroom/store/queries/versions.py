"""Versions: the history of documents and blobs, retained for a while."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import to_builtins

from strongroom.model import RETAINED_ROW_BYTES, BlobVersion, Document, ExpiredRow, ReplacedVersion, VaultBlob, Version
from strongroom.store.queries import deletions
from strongroom.store.queries.deletions import live, live_after, with_later
from strongroom.store.statement import ALL, Sql, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.store.database import Tx

_DOCUMENT = columns(Document)
_BLOB = columns(VaultBlob)
_SIZE = "octet_length(data) + coalesce(octet_length(hmac), 0)"
_BLOB_SIZE = "octet_length(data) + coalesce(octet_length(salt), 0)"

# The ciphertext goes from one table to the other, and not through us. A blob that damage has left in the place of text
# is stored as text: a table takes no other, and to write a document again must mend it.
_RETAIN = f"""
    INSERT INTO versions (user_id, {_DOCUMENT}, replaced_at)
    SELECT user_id, {{}}, :timestamp FROM documents WHERE user_id = :user_id AND uid = :uid
"""
_RETAIN_DOCUMENT = Sql(
    sqlite=_RETAIN.format(_DOCUMENT.replace("data, hmac", "CAST(data AS TEXT), CAST(hmac AS TEXT)")),
    postgres=_RETAIN.format(_DOCUMENT),
)
_RETAIN_BLOB = Sql(f"""
    INSERT INTO blob_versions (user_id, {_BLOB}, replaced_at)
    SELECT user_id, {_BLOB}, :timestamp FROM vaults WHERE user_id = :user_id AND uid = :uid AND data IS NOT NULL
""")
_TRIMMED = "WHERE user_id = :user_id AND uid = :uid AND version <= :version"
_LIVE_BLOB = live(vault_uid=":uid")
_TRIM = Sql(f"DELETE FROM versions {_TRIMMED} RETURNING {_SIZE} + {RETAINED_ROW_BYTES}")
_TRIM_BLOB = Sql(f"DELETE FROM blob_versions {_TRIMMED} AND {_LIVE_BLOB} RETURNING {_BLOB_SIZE} + {RETAINED_ROW_BYTES}")
# By their number: versions may have gaps, because a client may choose the next one.
_BEYOND = """
    SELECT version FROM {} WHERE user_id = :user_id AND uid = :uid{} ORDER BY version DESC LIMIT 1 OFFSET :most
"""
_TRIM_BEYOND = Sql(_TRIM.sqlite.replace(":version", f"({_BEYOND.format('versions', '')})"))
_TRIM_BLOBS_BEYOND = Sql(
    _TRIM_BLOB.sqlite.replace(":version", f"({_BEYOND.format('blob_versions', f' AND {_LIVE_BLOB}')})")
)
_LIST = Sql(f"""
    SELECT version, updated_at, deleted_at, replaced_at, {_SIZE}
      FROM versions WHERE user_id = :user_id AND uid = :uid ORDER BY version DESC
""")
_LIST_BLOB = Sql(f"""
    SELECT version, updated_at, replaced_at, {_BLOB_SIZE}
      FROM blob_versions WHERE user_id = :user_id AND uid = :uid AND {_LIVE_BLOB} ORDER BY version DESC
""")
_GET = Sql(f"SELECT {_DOCUMENT} FROM versions WHERE user_id = :user_id AND uid = :uid AND version = :version")
_GET_BLOB = Sql(f"""
    SELECT {_BLOB} FROM blob_versions
     WHERE user_id = :user_id AND uid = :uid AND version = :version AND {_LIVE_BLOB}
""")
_OLDEST = "WHERE replaced_at BETWEEN :reached AND :before ORDER BY replaced_at LIMIT :limit"
_REPLACED_BEFORE = Sql(f"SELECT user_id, uid, version, {_SIZE}, 1, replaced_at FROM versions {_OLDEST}")
_BLOBS_REPLACED_BEFORE = Sql(f"SELECT user_id, uid, version, {_BLOB_SIZE}, 1, replaced_at FROM blob_versions {_OLDEST}")
_OF = Sql(f"""
    SELECT user_id, uid, version, {_SIZE}, 1
      FROM versions WHERE user_id = :user_id AND uid = :uid ORDER BY version LIMIT :limit
""")
_OF_BLOB = Sql(f"""
    SELECT user_id, uid, version, {_BLOB_SIZE}, 1
      FROM blob_versions WHERE user_id = :user_id AND uid = :uid AND {_LIVE_BLOB} ORDER BY version LIMIT :limit
""")
_DROP = Sql("DELETE FROM versions WHERE user_id = :user_id AND uid = :uid AND version = :at")
_DROP_BLOB = Sql("DELETE FROM blob_versions WHERE user_id = :user_id AND uid = :uid AND version = :at")
_DROP_OF = Sql("DELETE FROM versions WHERE user_id = :user_id AND uid = :uid")


@lru_cache(maxsize=256)
def _history(collections: int, *, of_one: bool) -> Sql:
    """The history of a vault by its index of timestamps, or of one document by the primary key, in some collections."""
    place = "uid = :uid AND vault_uid || '' = :vault_uid" if of_one else "vault_uid = :vault_uid"
    scope = ", ".join(f":collection_{number}" for number in range(collections))
    return with_later(f"""
        SELECT {columns(ReplacedVersion)} FROM versions
         WHERE user_id = :user_id AND {place} AND {live_after(":since")}
               {scope and f"AND collection IN ({scope})"}
         ORDER BY updated_at LIMIT :limit
    """)


async def retain(tx: Tx, user_id: str, uid: str, version: int, timestamp: int, most: int) -> int:
    """Retain a document as it is at this version, which is replaced at this timestamp; drop what exceeds `most`.

    Returns the size of the versions that were dropped.
    """
    await tx.run(_RETAIN_DOCUMENT, user_id=user_id, uid=uid, timestamp=timestamp)
    return sum(await trim(tx, user_id, uid, version, most))


async def retain_blob(tx: Tx, user_id: str, uid: str, version: int, timestamp: int, most: int) -> int:
    """Retain a vault's blob in the same way."""
    await deletions.evict_blob(tx, user_id, uid, version)
    await tx.run(_RETAIN_BLOB, user_id=user_id, uid=uid, timestamp=timestamp)
    return sum(await trim_blobs(tx, user_id, uid, version, most))


async def trim(tx: Tx, user_id: str, uid: str, version: int, most: int) -> list[int]:
    """Drop the oldest versions of a document, of which `version` is the newest, so that `most` stay; their sizes."""
    if version <= most:
        return []
    return await tx.all(int, _TRIM_BEYOND, user_id=user_id, uid=uid, most=most)


async def trim_blobs(tx: Tx, user_id: str, uid: str, version: int, most: int) -> list[int]:
    """Drop the oldest versions of a vault's blob in the same way."""
    if version <= most:
        return []
    return await tx.all(int, _TRIM_BLOBS_BEYOND, user_id=user_id, uid=uid, most=most)


async def drop_oldest(tx: Tx, user_id: str, uid: str, size: int) -> int:
    """Drop the oldest versions of a document until this size is freed, or all of them; the size that was freed."""
    return await _drop_oldest(tx, _OF, _TRIM, user_id, uid, size)


async def drop_oldest_blobs(tx: Tx, user_id: str, uid: str, size: int) -> int:
    """Drop the oldest versions of a vault's blob in the same way."""
    return await _drop_oldest(tx, _OF_BLOB, _TRIM_BLOB, user_id, uid, size)


async def _drop_oldest(tx: Tx, listed: Sql, trim: Sql, user_id: str, uid: str, size: int) -> int:
    freed = last = 0
    for old in await tx.all(ExpiredRow, listed, user_id=user_id, uid=uid, limit=ALL):
        if freed >= size:
            break
        freed, last = freed + old.bytes + RETAINED_ROW_BYTES, old.at
    return sum(await tx.all(int, trim, user_id=user_id, uid=uid, version=last)) if last else 0


async def of_document(tx: Tx, user_id: str, uid: str) -> list[Version]:
    """The retained versions of a document, newest first."""
    return await tx.all(Version, _LIST, user_id=user_id, uid=uid)


async def of_vault(
    tx: Tx,
    user_id: str,
    vault_uid: str,
    uid: str | None,
    collections: Sequence[str] | None,
    since: int,
    limit: int,
) -> list[ReplacedVersion]:
    """The first retained versions of a vault's documents, or of one, in these collections, written after `since`."""
    scope = {f"collection_{number}": name for number, name in enumerate(collections or ())}
    return await tx.all(
        ReplacedVersion,
        _history(len(scope), of_one=uid is not None),
        user_id=user_id,
        vault_uid=vault_uid,
        **({} if uid is None else {"uid": uid}),
        **scope,
        since=since,
        limit=limit,
    )


async def of_blob(tx: Tx, user_id: str, uid: str) -> list[BlobVersion]:
    """The retained versions of a vault's blob, newest first."""
    return await tx.all(BlobVersion, _LIST_BLOB, user_id=user_id, uid=uid)


async def get(tx: Tx, user_id: str, uid: str, version: int) -> Document | None:
    """A document as it was at this version."""
    return await tx.one(Document, _GET, user_id=user_id, uid=uid, version=version)


async def blob(tx: Tx, user_id: str, uid: str, version: int) -> VaultBlob | None:
    """A vault's blob as it was at this version."""
    return await tx.one(VaultBlob, _GET_BLOB, user_id=user_id, uid=uid, version=version)


async def replaced_before(tx: Tx, reached: int, timestamp: int, limit: int) -> list[ExpiredRow]:
    """Some versions of documents that were replaced from `reached` to this timestamp."""
    return await tx.all(ExpiredRow, _REPLACED_BEFORE, reached=reached, before=timestamp, limit=limit)


async def blobs_replaced_before(tx: Tx, reached: int, timestamp: int, limit: int) -> list[ExpiredRow]:
    """Some versions of blobs that were replaced from `reached` to this timestamp."""
    return await tx.all(ExpiredRow, _BLOBS_REPLACED_BEFORE, reached=reached, before=timestamp, limit=limit)


async def oldest_of(tx: Tx, due: ExpiredRow, limit: int) -> list[ExpiredRow]:
    """Some versions of this document, oldest first."""
    return await tx.all(ExpiredRow, _OF, user_id=due.user_id, uid=due.uid, limit=limit)


async def drop(tx: Tx, found: Sequence[ExpiredRow]) -> None:
    """Delete versions of documents."""
    await tx.each(_DROP, [to_builtins(due) for due in found], by=("user_id", "uid"))


async def drop_blobs(tx: Tx, found: Sequence[ExpiredRow]) -> None:
    """Delete versions of blobs."""
    await tx.each(_DROP_BLOB, [to_builtins(due) for due in found], by=("user_id", "uid"))


async def drop_all_of(tx: Tx, found: Sequence[ExpiredRow]) -> None:
    """Delete all versions of these documents."""
    await tx.each(_DROP_OF, [to_builtins(due) for due in found], by=("user_id", "uid"))
