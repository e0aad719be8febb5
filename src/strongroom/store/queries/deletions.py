"""Deletions: vaults and accounts that are gone for everybody, and whose rows are deleted in steps.

The row of a deleted vault is gone, and with it its name and its uid. Its documents and blobs wait, below its uid and
with times up to `until`; a new vault of that uid has later ones. So a statement that finds rows by their vault, or by
their own uid, has the condition `live`. An account that is deleted keeps its row, by which nobody finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from strongroom.model import ExpiredRow
from strongroom.store.statement import Sql, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.store.database import Tx

ACCOUNT: Final = ""  # in the place of a vault's uid
MOST_EMPTIED: Final = 1_000  # that are forgotten at once


class Deletion(Struct, frozen=True):
    """A vault or an account that was deleted, and whose rows wait."""

    user_id: str
    vault_uid: str
    until: int

    @property
    def is_account(self) -> bool:
        """Whether it is a whole account."""
        return self.vault_uid == ACCOUNT


class Emptied(Struct, frozen=True):
    """A deletion whose rows are gone, and since when."""

    user_id: str
    vault_uid: str
    emptied_at: int


class DeletionCounts(Struct, frozen=True):
    """How many vaults of an account were deleted and are not forgotten, and of how many the rows wait."""

    all: int
    waiting: int


class Waiting(Struct, frozen=True):
    """How many deletions wait, and since when the oldest of them does."""

    count: int
    since: int | None


def _until(user_id: str, vault_uid: str) -> str:
    """The time up to which rows of a vault belong to a deleted one of the same uid; NULL where none do."""
    return f"(SELECT until FROM deletions WHERE user_id = {user_id} AND vault_uid = {vault_uid} AND emptied_at IS NULL)"


def live(row: str = "", user_id: str = ":user_id", vault_uid: str = ":vault_uid") -> str:
    """The condition that a document, a version or a blob does not belong to a deleted vault.

    SQLite compares the time, for which it reads all of the content that lies before it, only where a deletion waits.
    """
    until = _until(user_id, vault_uid)
    return f"({until} IS NULL OR {row}updated_at > {until})"


def live_after(since: str) -> str:
    """The condition that a row of a vault changed after a time, and does not belong to a deleted vault.

    In a statement of `with_later`. An index leads past all rows that wait to be deleted.
    """
    return f"updated_at > {{later}}({since}, coalesce({_until(':user_id', ':vault_uid')}, -1))"


def with_later(statement: str) -> Sql:
    """A statement in which {later} is the function that gives the later of two times."""
    return Sql(sqlite=statement.format(later="max"), postgres=statement.format(later="greatest"))


_COLUMNS = columns(Deletion)
_ADD = Sql("""
    INSERT INTO deletions (user_id, vault_uid, until, deleted_at) VALUES (:user_id, :vault_uid, :until, :now)
    ON CONFLICT (user_id, vault_uid) DO UPDATE SET until = :until, emptied_at = NULL
""")
_OLDEST = f"""
    SELECT {_COLUMNS} FROM deletions WHERE deleted_at >= 0 AND emptied_at IS NULL
     ORDER BY deleted_at, user_id, vault_uid LIMIT 1
"""
# On PostgreSQL another node may be at work in the account, or its owner: then the next one is as good.
_UNLOCKED = Sql(
    sqlite=_OLDEST,
    postgres=f"""
        SELECT {", ".join(f"d.{name}" for name in _COLUMNS.split(", "))}
          FROM deletions AS d JOIN ledgers AS l ON l.user_id = d.user_id
         WHERE d.deleted_at >= 0 AND d.emptied_at IS NULL ORDER BY d.deleted_at, d.user_id, d.vault_uid LIMIT 1
           FOR NO KEY UPDATE OF l SKIP LOCKED
    """,
)
_FIRST = Sql(_OLDEST)
_OF_ACCOUNT = Sql(f"""
    SELECT {_COLUMNS} FROM deletions WHERE user_id = :user_id AND vault_uid > '' AND emptied_at IS NULL
     ORDER BY vault_uid LIMIT 1
""")
_VAULT_OF_ACCOUNT = Sql("SELECT uid FROM vaults WHERE user_id = :user_id ORDER BY uid LIMIT 1")
_FINISH = Sql("UPDATE deletions SET emptied_at = :now WHERE user_id = :user_id AND vault_uid = :vault_uid")
_WAITING = Sql("SELECT count(*), min(deleted_at) FROM deletions WHERE deleted_at >= 0")
_EMPTIED = Sql(f"""
    SELECT {columns(Emptied)} FROM deletions WHERE emptied_at >= 0 ORDER BY emptied_at LIMIT :limit
""")
_EMPTIED_SINCE = Sql("SELECT min(emptied_at) FROM deletions WHERE emptied_at >= 0")
_FORGET = Sql("""
    DELETE FROM deletions WHERE user_id = :user_id AND vault_uid = :vault_uid AND emptied_at = :emptied_at
""")

# The sizes are known to the database without reading the texts themselves.
_DOCUMENTS = Sql("""
    SELECT user_id, uid, updated_at,
           octet_length(data) + coalesce(
               (SELECT sum(octet_length(v.data)) FROM versions AS v
                 WHERE v.user_id = documents.user_id AND v.uid = documents.uid), 0),
           1 + (SELECT count(*) FROM versions AS v WHERE v.user_id = documents.user_id AND v.uid = documents.uid),
           updated_at
      FROM documents
     WHERE user_id = :user_id AND vault_uid = :vault_uid AND updated_at BETWEEN :reached AND :until
     ORDER BY updated_at LIMIT :limit
""")
_BLOB = Sql("""
    SELECT version FROM blob_versions
     WHERE user_id = :user_id AND uid = :vault_uid AND updated_at <= :until ORDER BY version LIMIT 1
""")


def _among(table: str, column: str, kind: str) -> Sql:
    """Delete the rows of an account whose column is in a JSON list."""
    statement = f"DELETE FROM {table} WHERE user_id = :user_id AND {column}"
    return Sql(
        sqlite=f"{statement} IN (SELECT value FROM json_each(:keys))",
        postgres=f"{statement} = ANY (ARRAY(SELECT jsonb_array_elements_text(:keys::jsonb)::{kind}))",
    )


_COUNTS = Sql("SELECT count(*), count(*) - count(emptied_at) FROM deletions WHERE user_id = :user_id")
_DROP_DOCUMENTS = _among("documents", "uid", "text")
_DROP_BLOB = Sql("DELETE FROM blob_versions WHERE user_id = :user_id AND uid = :uid AND version = :version")
_DROP_VAULT = Sql("DELETE FROM vaults WHERE user_id = :user_id AND uid = :uid")
_EVICT = Sql(f"""
    DELETE FROM documents
     WHERE user_id = :user_id AND uid = :uid AND NOT {live(vault_uid="documents.vault_uid")}
""")
_EVICT_BLOB = Sql(f"""
    DELETE FROM blob_versions
     WHERE user_id = :user_id AND uid = :uid AND version = :version AND NOT {live(vault_uid=":uid")}
""")

# What else an account has many rows of, and how many of them one transaction may delete: fewer where they are large.
_TABLES: Final = {
    "documents": 64,
    "vault_changes": 256,
    "keyring_versions": 4,
    "keyrings": 1,
    "refresh_tokens": 256,
    "sessions": 256,
    "api_keys": 16,
    "events": 256,
}


def _some_of(table: str) -> Sql:
    """Delete some rows of an account."""
    found = f"FROM {table} WHERE user_id = :user_id LIMIT :limit"
    return Sql(
        sqlite=f"DELETE FROM {table} WHERE rowid IN (SELECT rowid {found})",
        postgres=f"DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid {found}))",
    )


_SOME: Final = tuple((_some_of(table), limit) for table, limit in _TABLES.items())


async def add(tx: Tx, user_id: str, vault_uid: str, until: int) -> None:
    """Record that a vault was deleted, with all rows that have times up to this one; or an account."""
    await tx.run(_ADD, user_id=user_id, vault_uid=vault_uid, until=until, now=tx.now)


async def counts(tx: Tx, user_id: str) -> DeletionCounts:
    """How many deleted vaults of an account are not forgotten yet."""
    return await tx.one(DeletionCounts, _COUNTS, user_id=user_id) or DeletionCounts(0, 0)


async def claim(tx: Tx) -> Deletion | None:
    """The oldest deletion whose rows wait, its account locked; on PostgreSQL, one that no other node is at, if any."""
    return await tx.one(Deletion, _UNLOCKED)


async def oldest(tx: Tx) -> Deletion | None:
    """The oldest deletion whose rows wait."""
    return await tx.one(Deletion, _FIRST)


async def of_account(tx: Tx, user_id: str) -> Deletion | None:
    """A vault of this account that was deleted, and whose rows wait."""
    return await tx.one(Deletion, _OF_ACCOUNT, user_id=user_id)


async def vault_of_account(tx: Tx, user_id: str) -> str | None:
    """The first vault of an account."""
    uid: str | None = await tx.value(_VAULT_OF_ACCOUNT, user_id=user_id)
    return uid


async def documents(tx: Tx, deletion: Deletion, reached: int, limit: int) -> list[ExpiredRow]:
    """Some documents of a deleted vault that changed since `reached`, each with its versions."""
    return await tx.all(ExpiredRow, _DOCUMENTS, **_place(deletion), reached=reached, limit=limit)


async def blob(tx: Tx, deletion: Deletion) -> int | None:
    """The version of the oldest replaced blob of a deleted vault; one, because its time lies behind its content."""
    version: int | None = await tx.value(_BLOB, **_place(deletion))
    return version


async def drop_documents(tx: Tx, user_id: str, found: Sequence[ExpiredRow]) -> None:
    """Delete documents with their versions."""
    await tx.run(_DROP_DOCUMENTS, user_id=user_id, keys=msgspec.json.encode([one.uid for one in found]).decode())


async def drop_blob(tx: Tx, deletion: Deletion, version: int) -> None:
    """Delete a replaced blob of a deleted vault."""
    await tx.run(_DROP_BLOB, user_id=deletion.user_id, uid=deletion.vault_uid, version=version)


async def drop_vault(tx: Tx, user_id: str, uid: str) -> None:
    """Delete the row of a vault."""
    await tx.run(_DROP_VAULT, user_id=user_id, uid=uid)


async def drop_some(tx: Tx, user_id: str) -> bool:
    """Delete some of the other rows of an account; False where there are none."""
    for statement, limit in _SOME:
        if await tx.run(statement, user_id=user_id, limit=limit):
            return True
    return False


async def finish(tx: Tx, deletion: Deletion) -> None:
    """Record that all rows of a deletion are gone."""
    await tx.run(_FINISH, user_id=deletion.user_id, vault_uid=deletion.vault_uid, now=tx.now)


async def evict(tx: Tx, user_id: str, uid: str) -> bool:
    """Delete the document with this uid, if it belongs to a deleted vault; whether it did."""
    return await tx.run(_EVICT, user_id=user_id, uid=uid) > 0


async def evict_blob(tx: Tx, user_id: str, uid: str, version: int) -> None:
    """Delete a replaced blob, if it belongs to a deleted vault."""
    await tx.run(_EVICT_BLOB, user_id=user_id, uid=uid, version=version)


async def waiting(tx: Tx) -> Waiting:
    """How many deletions wait for their rows, or for the log to be truncated."""
    return await tx.one(Waiting, _WAITING) or Waiting(0, None)


async def emptied(tx: Tx) -> list[Emptied]:
    """The first deletions whose rows are gone, and after which the log is still to be truncated."""
    return await tx.all(Emptied, _EMPTIED, limit=MOST_EMPTIED)


async def emptied_since(tx: Tx) -> int | None:
    """Since when the log is to be truncated after a deletion; None where it is not."""
    since: int | None = await tx.value(_EMPTIED_SINCE)
    return since


async def forget(tx: Tx, found: Sequence[Emptied]) -> None:
    """Forget these deletions, after the log was truncated."""
    await tx.each(_FORGET, [msgspec.structs.asdict(one) for one in found], by=("user_id", "vault_uid"))


def _place(deletion: Deletion) -> dict[str, str | int]:
    return {"user_id": deletion.user_id, "vault_uid": deletion.vault_uid, "until": deletion.until}
