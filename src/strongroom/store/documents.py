"""Documents: ciphertext in a collection of a vault, in the order of the account's clock."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from strongroom.model import Document, Head
from strongroom.store.db import Sql, columns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from strongroom.store.db import Tx

_COLUMNS = columns(Document)
# A uid names one row. The vault is only to be compared: PostgreSQL, as long as it has not counted a table, would as
# well go through an index of the whole vault.
_IN_VAULT = "vault_uid || '' = :vault_uid"

# An owner's uids are unique over vaults and documents alike.
_INSERT = Sql(f"""
    INSERT INTO documents (user_id, {_COLUMNS})
    SELECT :user_id, :uid, :vault_uid, :collection, :data, :hmac, 1, :moment, :moment, NULL
     WHERE NOT EXISTS (SELECT 1 FROM vaults WHERE user_id = :user_id AND uid = :uid)
    ON CONFLICT DO NOTHING
""")
_GET = Sql(f"SELECT {_COLUMNS} FROM documents WHERE user_id = :user_id AND uid = :uid AND {_IN_VAULT}")
_HEAD = Sql(f"""
    SELECT uid, collection, version, created_at, updated_at, deleted_at,
           octet_length(data) + coalesce(octet_length(hmac), 0)
      FROM documents WHERE user_id = :user_id AND uid = :uid AND {_IN_VAULT}
""")
_HOLDER = Sql(f"SELECT {_COLUMNS} FROM documents WHERE user_id = :user_id AND uid = :uid")
_REPLACE = Sql(f"""
    UPDATE documents
       SET data = :data, hmac = :hmac, version = version + 1, updated_at = :moment, deleted_at = NULL
     WHERE user_id = :user_id AND uid = :uid AND {_IN_VAULT} AND version = :version
""")
_BURY = Sql(f"""
    UPDATE documents SET version = version + 1, updated_at = :moment, deleted_at = :moment
     WHERE user_id = :user_id AND uid = :uid AND {_IN_VAULT} AND version = :version AND deleted_at IS NULL
""")


@lru_cache(maxsize=256)
def _list(collections: int, *, tombstones: bool) -> Sql:
    """The list, over a number of collections. One branch each, so that an index gives each in order and they merge."""
    live = "" if tombstones else " AND deleted_at IS NULL"
    branches = [
        f"SELECT {_COLUMNS} FROM documents WHERE user_id = :user_id AND vault_uid = :vault_uid{named}"
        f" AND updated_at > :since{live}"
        for named in ([f" AND collection = :collection_{n}" for n in range(collections)] or [""])
    ]
    return Sql(f"{' UNION ALL '.join(branches)} ORDER BY updated_at LIMIT :limit")


async def insert(tx: Tx, user_id: str, documents: Sequence[Document]) -> list[bool]:
    """Add new documents, each at its moment; False for one whose uid this owner uses already."""
    return await tx.each(
        _INSERT,
        [
            {
                "user_id": user_id,
                "uid": document.uid,
                "vault_uid": document.vault_uid,
                "collection": document.collection,
                "data": document.data,
                "hmac": document.hmac,
                "moment": document.updated_at,
            }
            for document in documents
        ],
        by="uid",
    )


async def get(tx: Tx, user_id: str, vault_uid: str, uid: str) -> Document | None:
    """A document of this vault, deleted or not."""
    return await tx.one(Document, _GET, user_id=user_id, uid=uid, vault_uid=vault_uid)


async def head(tx: Tx, user_id: str, vault_uid: str, uid: str) -> Head | None:
    """A document of this vault without its ciphertext, deleted or not."""
    return await tx.one(Head, _HEAD, user_id=user_id, uid=uid, vault_uid=vault_uid)


async def holder(tx: Tx, user_id: str, uid: str) -> Document | None:
    """The document of this owner that has the uid, in whichever vault."""
    return await tx.one(Document, _HOLDER, user_id=user_id, uid=uid)


async def replace(
    tx: Tx, user_id: str, vault_uid: str, stored: Head, moment: int, data: str, hmac: str | None
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
        moment=moment,
    )
    if not replaced:
        return None
    version, created = stored.version + 1, stored.created_at
    return Document(stored.uid, vault_uid, stored.collection, data, hmac, version, created, moment, None)


async def bury(tx: Tx, user_id: str, vault_uid: str, stored: Head, moment: int) -> Document | None:
    """Make a document a tombstone, shown without its ciphertext; None if it is not alive at the stored version."""
    version = stored.version
    buried = await tx.run(_BURY, user_id=user_id, uid=stored.uid, vault_uid=vault_uid, version=version, moment=moment)
    if not buried:
        return None
    created = stored.created_at
    return Document(stored.uid, vault_uid, stored.collection, "", None, version + 1, created, moment, moment)


def after(
    tx: Tx,
    user_id: str,
    vault_uid: str,
    since: int,
    collections: Sequence[str] | None,
    *,
    tombstones: bool,
    limit: int,
) -> AsyncIterator[list[Document]]:
    """The documents that changed after `since`, in order, in pages."""
    named = {f"collection_{n}": name for n, name in enumerate(collections or ())}
    statement = _list(len(named), tombstones=tombstones)
    return tx.pages(
        Document,
        statement,
        after="since",
        by="updated_at",
        user_id=user_id,
        vault_uid=vault_uid,
        since=since,
        limit=limit,
        **named,
    )
