"""Documents: ciphertext in a collection of a vault, in the order of the account's clock."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from strongroom.model import Document, ExpiredRow, Head
from strongroom.store.queries.deletions import live, live_after, with_later
from strongroom.store.statement import LARGE, Sql, columns, data_up_to

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from strongroom.store.database import Tx

SHORT_LIST_ROWS: Final = 32  # documents of a list that is read at once
SHORT_LIST_BYTES: Final = 4_096  # of the data of each of them, at most

_COLUMNS = columns(Document)
# A uid names one row. The vault is only to be compared: PostgreSQL, as long as it has not counted a table, would as
# well go through an index of the whole vault.
_IN_VAULT = "vault_uid || '' = :vault_uid"
_FOUND = f"user_id = :user_id AND uid = :uid AND {_IN_VAULT} AND {live()}"

# Under a uid that was made for it just now, and that nothing else can have.
_ADD = Sql(f"""
    INSERT INTO documents (user_id, {_COLUMNS})
    VALUES (:user_id, :uid, :vault_uid, :collection, :data, :hmac, :version, :timestamp, :timestamp, NULL)
    ON CONFLICT DO NOTHING
""")
# Under a uid that the client chose. An owner's uids are unique over vaults and documents alike.
_INSERT = Sql(f"""
    INSERT INTO documents (user_id, {_COLUMNS})
    SELECT :user_id, :uid, :vault_uid, :collection, :data, :hmac, CAST(:version AS BIGINT), :timestamp, :timestamp, NULL
     WHERE NOT EXISTS (SELECT 1 FROM vaults WHERE user_id = :user_id AND uid = :uid)
    ON CONFLICT DO NOTHING
""")
_GET = Sql(f"SELECT {_COLUMNS} FROM documents WHERE {_FOUND}")
_HEAD = Sql(f"""
    SELECT uid, collection, version, created_at, updated_at, deleted_at, purged_at,
           octet_length(data) + coalesce(octet_length(hmac), 0)
      FROM documents WHERE {_FOUND}
""")
_BY_UID = Sql(f"""
    SELECT {_COLUMNS} FROM documents
     WHERE user_id = :user_id AND uid = :uid AND {live(vault_uid="documents.vault_uid")}
""")
_REPLACE = Sql(f"""
    UPDATE documents
       SET data = :data, hmac = :hmac, version = :new_version, updated_at = :timestamp, deleted_at = NULL
     WHERE user_id = :user_id AND uid = :uid AND {_IN_VAULT} AND version = :version AND purged_at IS NULL
""")
_MARK_DELETED = Sql(f"""
    UPDATE documents SET version = version + 1, updated_at = :timestamp, deleted_at = :timestamp
     WHERE user_id = :user_id AND uid = :uid AND {_IN_VAULT} AND version = :version AND deleted_at IS NULL
""")
# With the versions that go with each. The sizes are known to the database without reading the texts themselves. To read
# a column behind the text, such as the version, SQLite would read all of its pages: the time, which is in the index,
# tells a tombstone from a later one as well.
_EXPIRED = """
    SELECT user_id, uid, {0},
           octet_length(data) + coalesce(
               (SELECT sum(octet_length(v.data)) FROM versions AS v
                 WHERE v.user_id = documents.user_id AND v.uid = documents.uid), 0),
           1 + (SELECT count(*) FROM versions AS v WHERE v.user_id = documents.user_id AND v.uid = documents.uid),
           {0}
      FROM documents
     WHERE deleted_at IS NOT NULL AND purged_at IS NULL
"""
_DELETED_BEFORE = Sql(
    f"{_EXPIRED.format('deleted_at')} AND deleted_at BETWEEN :reached AND :before ORDER BY deleted_at LIMIT :limit"
)
_OF_VAULT = (
    f"{_EXPIRED.format('updated_at')} AND user_id = :user_id AND vault_uid = :vault_uid AND updated_at >= :reached"
    f" AND {live()}"
)
_TRASH_OF_VAULT = Sql(f"{_OF_VAULT} ORDER BY updated_at LIMIT :limit")
_TRASH_OF_COLLECTION = Sql(f"{_OF_VAULT} AND collection = :collection ORDER BY updated_at LIMIT :limit")
_TRASH_OF_DOCUMENT = Sql(f"{_EXPIRED.format('updated_at')} AND {_FOUND}")
_TRASH = "(deleted_at = :at OR updated_at = :at) AND deleted_at IS NOT NULL AND purged_at IS NULL"
_PURGE = Sql(f"""
    UPDATE documents SET data = '', purged_at = :now WHERE user_id = :user_id AND uid = :uid AND {_TRASH}
""")
_IS_TRASH = Sql(f"SELECT 1 FROM documents WHERE user_id = :user_id AND uid = :uid AND {_TRASH}")


class Show(Enum):
    """Which documents a list holds."""

    LIVE = " AND deleted_at IS NULL"
    ALL = ""
    TRASH = " AND deleted_at IS NOT NULL AND purged_at IS NULL"


def _listed(collections: int, show: Show, *, ends: bool = False, few: bool = False) -> str:
    """The list, over a number of collections. One branch each, so that an index gives each in order and they merge."""
    names = [
        f"{data_up_to(SHORT_LIST_BYTES)} AS data" if few and name == "data" else name for name in _COLUMNS.split(", ")
    ]
    branches = [
        f"SELECT {', '.join(names)} FROM documents WHERE user_id = :user_id AND vault_uid = :vault_uid{named}"
        f" AND {live_after(':since')}{' AND updated_at <= :until' if ends else ''}{show.value}"
        for named in ([f" AND collection = :collection_{n}" for n in range(collections)] or [""])
    ]
    return f"{' UNION ALL '.join(branches)} ORDER BY updated_at LIMIT :limit"


@lru_cache(maxsize=256)
def _list(collections: int, show: Show, *, ends: bool = False, few: bool = False) -> Sql:
    """The statement of that list."""
    return with_later(_listed(collections, show, ends=ends, few=few))


@lru_cache(maxsize=256)
def _any(collections: int, show: Show) -> Sql:
    """Whether that list has a row."""
    return with_later(f"SELECT EXISTS ({_listed(collections, show)})")


async def insert(tx: Tx, user_id: str, documents: Sequence[Document], *, own_uids: bool) -> list[bool]:
    """Add new documents, each at its timestamp; False for one whose uid this owner uses already.

    With `own_uids` each was made by us for its document.
    """
    return await tx.each(
        _ADD if own_uids else _INSERT,
        [
            {
                "user_id": user_id,
                "uid": document.uid,
                "vault_uid": document.vault_uid,
                "collection": document.collection,
                "data": document.data,
                "hmac": document.hmac,
                "version": document.version,
                "timestamp": document.updated_at,
            }
            for document in documents
        ],
        by=("uid",),
    )


async def get(tx: Tx, user_id: str, vault_uid: str, uid: str) -> Document | None:
    """A document of this vault, deleted or not."""
    return await tx.one(Document, _GET, user_id=user_id, uid=uid, vault_uid=vault_uid)


async def head(tx: Tx, user_id: str, vault_uid: str, uid: str) -> Head | None:
    """A document of this vault without its ciphertext, deleted or not."""
    return await tx.one(Head, _HEAD, user_id=user_id, uid=uid, vault_uid=vault_uid)


async def by_uid(tx: Tx, user_id: str, uid: str) -> Document | None:
    """The document of this owner that has the uid, in whichever vault."""
    return await tx.one(Document, _BY_UID, user_id=user_id, uid=uid)


async def replace(
    tx: Tx, user_id: str, vault_uid: str, stored: Head, timestamp: int, data: str, hmac: str | None, new_version: int
) -> Document | None:
    """Replace a document, or revive a deleted one; None if it is not at the stored version any more."""
    replaced = await tx.run(
        _REPLACE,
        user_id=user_id,
        uid=stored.uid,
        vault_uid=vault_uid,
        data=data,
        hmac=hmac,
        version=stored.version,
        new_version=new_version,
        timestamp=timestamp,
    )
    if not replaced:
        return None
    created = stored.created_at
    return Document(stored.uid, vault_uid, stored.collection, data, hmac, new_version, created, timestamp, None)


async def mark_deleted(tx: Tx, user_id: str, vault_uid: str, stored: Head, timestamp: int) -> Document | None:
    """Make a document a tombstone, shown without its ciphertext; None if it is not alive at the stored version."""
    version = stored.version
    deleted = await tx.run(
        _MARK_DELETED, user_id=user_id, uid=stored.uid, vault_uid=vault_uid, version=version, timestamp=timestamp
    )
    if not deleted:
        return None
    created = stored.created_at
    return Document(stored.uid, vault_uid, stored.collection, "", None, version + 1, created, timestamp, timestamp)


def after(
    tx: Tx,
    user_id: str,
    vault_uid: str,
    since: int,
    collections: Sequence[str] | None,
    *,
    show: Show,
    limit: int,
    mean_bytes: int | None = None,
    until: int | None = None,
) -> AsyncGenerator[list[Document], None]:
    """The documents that changed after `since`, and not after `until` where there is one, in order, in pages."""
    named: dict[str, Any] = {f"collection_{n}": name for n, name in enumerate(collections or ())}
    statement = _list(len(collections or ()), show, ends=until is not None)
    if until is not None:
        named["until"] = until
    return tx.pages(
        Document,
        statement,
        after="since",
        by="updated_at",
        mean_bytes=mean_bytes,
        user_id=user_id,
        vault_uid=vault_uid,
        since=since,
        limit=limit,
        **named,
    )


async def few_after(
    tx: Tx, user_id: str, vault_uid: str, since: int, collections: Sequence[str] | None, show: Show, limit: int
) -> list[Document] | None:
    """The documents that changed after `since`, in order, if they are few and small; otherwise None."""
    named = {f"collection_{n}": name for n, name in enumerate(collections or ())}
    statement, most = _list(len(named), show, few=True), min(limit, SHORT_LIST_ROWS + 1)
    found = await tx.few(Document, statement, user_id=user_id, vault_uid=vault_uid, since=since, limit=most, **named)
    if found is None or len(found) > SHORT_LIST_ROWS or any(document.data == LARGE for document in found):
        return None
    return found


async def any_after(
    tx: Tx, user_id: str, vault_uid: str, since: int, collections: Sequence[str] | None, show: Show
) -> bool:
    """Whether any document changed after `since`."""
    named = {f"collection_{n}": name for n, name in enumerate(collections or ())}
    statement = _any(len(named), show)
    return bool(await tx.value(statement, user_id=user_id, vault_uid=vault_uid, since=since, limit=1, **named))


async def deleted_before(tx: Tx, reached: int, timestamp: int, limit: int) -> list[ExpiredRow]:
    """Some documents that were deleted from `reached` to this timestamp, and still have their ciphertext."""
    return await tx.all(ExpiredRow, _DELETED_BEFORE, reached=reached, before=timestamp, limit=limit)


async def trash_of_vault(
    tx: Tx, user_id: str, vault_uid: str, collection: str | None, reached: int, limit: int
) -> list[ExpiredRow]:
    """Some documents of a vault, or of one collection, deleted since `reached`, that still have their ciphertext."""
    where: dict[str, Any] = {"user_id": user_id, "vault_uid": vault_uid, "reached": reached, "limit": limit}
    if collection is None:
        return await tx.all(ExpiredRow, _TRASH_OF_VAULT, **where)
    return await tx.all(ExpiredRow, _TRASH_OF_COLLECTION, **where, collection=collection)


async def trash_of_document(tx: Tx, user_id: str, vault_uid: str, uid: str) -> list[ExpiredRow]:
    """The document, if it is deleted and still has its ciphertext."""
    return await tx.all(ExpiredRow, _TRASH_OF_DOCUMENT, user_id=user_id, vault_uid=vault_uid, uid=uid)


async def is_trash(tx: Tx, due: ExpiredRow) -> bool:
    """Whether a document is a tombstone of this time, and still has its ciphertext."""
    return await tx.value(_IS_TRASH, user_id=due.user_id, uid=due.uid, at=due.at) is not None


async def purge(tx: Tx, found: Sequence[ExpiredRow]) -> list[ExpiredRow]:
    """Delete the ciphertext of tombstones; which of them still were some. Neither version nor timestamp changes."""
    done = await tx.each(_PURGE, [{**to_builtins(due), "now": tx.now} for due in found], by=("user_id", "uid"))
    return [due for due, was_trash in zip(found, done, strict=True) if was_trash]
