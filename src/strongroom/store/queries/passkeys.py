"""Passkeys: credentials of WebAuthn, by account and by credential id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from strongroom.model import Passkey, StoredPasskey
from strongroom.store.statement import Sql, columns

if TYPE_CHECKING:
    from strongroom.store.database import Tx


class _Row(Struct, frozen=True):
    """A passkey as its columns hold it: engines agree on numbers, not on truth values."""

    uid: str
    credential_id: str
    name: str
    prf: int
    created_at: int
    last_used_at: int | None


_INSERT = Sql(f"""
    INSERT INTO passkeys (user_id, public_key, sign_count, {columns(_Row)})
    VALUES (:user_id, :public_key, :sign_count, :uid, :credential_id, :name, :prf, :now, NULL)
    ON CONFLICT (credential_id) DO NOTHING
""")
_LIST = Sql(f"SELECT {columns(_Row)} FROM passkeys WHERE user_id = :user_id ORDER BY created_at, uid")
_COUNT = Sql("SELECT count(*) FROM passkeys WHERE user_id = :user_id")
_BY_CREDENTIAL = Sql(f"SELECT {columns(StoredPasskey)} FROM passkeys WHERE credential_id = :credential_id")
_RENAME = Sql("UPDATE passkeys SET name = :name WHERE user_id = :user_id AND uid = :uid")
_DELETE = Sql("DELETE FROM passkeys WHERE user_id = :user_id AND uid = :uid")
_DELETE_ALL = Sql("DELETE FROM passkeys WHERE user_id = :user_id")
# The counter of an authenticator that counts must rise: of two that have the same key, one falls behind.
_USE = Sql("""
    UPDATE passkeys SET sign_count = :sign_count, last_used_at = :now
     WHERE user_id = :user_id AND uid = :uid
       AND (sign_count < :sign_count OR (sign_count = 0 AND :sign_count = 0))
""")


def _passkey(row: _Row) -> Passkey:
    return Passkey(row.uid, row.credential_id, row.name, bool(row.prf), row.created_at, row.last_used_at)


async def insert(tx: Tx, stored: StoredPasskey, name: str, *, prf: bool) -> bool:
    """Add a passkey; False if its credential is registered already."""
    added = await tx.run(
        _INSERT,
        user_id=stored.user_id,
        uid=stored.uid,
        credential_id=stored.credential_id,
        public_key=stored.public_key,
        sign_count=stored.sign_count,
        name=name,
        prf=int(prf),
        now=tx.now,
    )
    return added > 0


async def of_user(tx: Tx, user_id: str) -> list[Passkey]:
    """The passkeys of an account, oldest first."""
    return [_passkey(row) for row in await tx.all(_Row, _LIST, user_id=user_id)]


async def count(tx: Tx, user_id: str) -> int:
    """How many passkeys an account has."""
    found: int = await tx.value(_COUNT, user_id=user_id)
    return found


async def by_credential(tx: Tx, credential_id: str) -> StoredPasskey | None:
    """The passkey with this credential id, whosever it is."""
    return await tx.one(StoredPasskey, _BY_CREDENTIAL, credential_id=credential_id)


async def rename(tx: Tx, user_id: str, uid: str, name: str) -> bool:
    """Give a passkey another name; False if there is none."""
    return await tx.run(_RENAME, user_id=user_id, uid=uid, name=name) > 0


async def delete(tx: Tx, user_id: str, uid: str) -> bool:
    """Delete a passkey; False if there is none."""
    return await tx.run(_DELETE, user_id=user_id, uid=uid) > 0


async def delete_all(tx: Tx, user_id: str) -> int:
    """Delete all passkeys of an account; how many there were."""
    return await tx.run(_DELETE_ALL, user_id=user_id)


async def use(tx: Tx, user_id: str, uid: str, sign_count: int) -> bool:
    """Record a use; False if the passkey is gone, or its counter has not risen."""
    return await tx.run(_USE, user_id=user_id, uid=uid, sign_count=sign_count, now=tx.now) > 0
