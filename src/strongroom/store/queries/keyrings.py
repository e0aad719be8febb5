"""Keyrings: one text of wrapped keys for each account, and the version that it is at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, to_builtins

from strongroom.model import ExpiredRow, KeyringVersion, StoredKeyring
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.store.database import Tx


class HeldKeyring(Struct, frozen=True):
    """The version of a keyring, and when it was stored."""

    version: int
    updated_at: int


RETAINED: Final = 10  # replaced keyrings of an account, beside one for each day
_DAY: Final = 24 * 60 * 60 * 1_000

_GET = Sql("""
    SELECT keyring, version, keyrings.updated_at, kdf
      FROM keyrings JOIN users ON users.id = keyrings.user_id WHERE user_id = :user_id
""")
_VERSION_OF = "SELECT version, updated_at FROM keyrings WHERE user_id = :user_id"
_HOLD = Sql(sqlite=_VERSION_OF, postgres=f"{_VERSION_OF} FOR SHARE")
_INSERT = Sql("""
    INSERT INTO keyrings (user_id, version, updated_at, keyring) VALUES (:user_id, :version, :updated_at, :keyring)
    ON CONFLICT DO NOTHING
""")
_REPLACE = Sql("""
    UPDATE keyrings SET keyring = :keyring, version = :new_version, updated_at = :now
     WHERE user_id = :user_id AND version = :version
""")
_RETAIN = Sql("""
    INSERT INTO keyring_versions (user_id, version, updated_at, replaced_at, keyring, kdf)
    SELECT user_id, version, keyrings.updated_at, :now, keyring, kdf
      FROM keyrings JOIN users ON users.id = keyrings.user_id WHERE user_id = :user_id AND version = :version
    ON CONFLICT DO NOTHING
""")
_ADD_VERSION = Sql("""
    INSERT INTO keyring_versions (user_id, version, updated_at, replaced_at, keyring, kdf)
    VALUES (:user_id, :version, :updated_at, :replaced_at, :keyring, :kdf)
    ON CONFLICT DO NOTHING
""")
# The last ones, and the first that was replaced on each day: whoever has only an access token can replace a keyring as
# often as they like, and must not push out by that what was there before.
_TRIM = Sql(f"""
    DELETE FROM keyring_versions
     WHERE user_id = :user_id
       AND version NOT IN (
           SELECT version FROM keyring_versions WHERE user_id = :user_id ORDER BY version DESC LIMIT :limit)
       AND version NOT IN (
           SELECT min(version) FROM keyring_versions WHERE user_id = :user_id GROUP BY replaced_at / {_DAY})
""")
_VERSIONS = Sql("""
    SELECT version, updated_at, replaced_at, octet_length(keyring)
      FROM keyring_versions WHERE user_id = :user_id ORDER BY version DESC
""")
_VERSION = Sql("""
    SELECT keyring, version, updated_at, kdf FROM keyring_versions WHERE user_id = :user_id AND version = :version
""")
_REPLACED_BEFORE = Sql("""
    SELECT user_id, '' AS uid, version, octet_length(keyring), 1, replaced_at
      FROM keyring_versions WHERE replaced_at BETWEEN :reached AND :before ORDER BY replaced_at LIMIT :limit
""")
_DROP = Sql("DELETE FROM keyring_versions WHERE user_id = :user_id AND version = :at")


async def get(tx: Tx, user_id: str) -> StoredKeyring | None:
    """The account's keyring."""
    return await tx.one(StoredKeyring, _GET, user_id=user_id)


async def hold(tx: Tx, user_id: str) -> HeldKeyring | None:
    """The version of the account's keyring, which nobody replaces until commit."""
    return await tx.one(HeldKeyring, _HOLD, user_id=user_id)


async def insert(tx: Tx, user_id: str, keyring: str, version: int, updated_at: int | None = None) -> bool:
    """Add an account's first keyring, written now or (one that is imported) before; False if it has one."""
    at = tx.now if updated_at is None else updated_at
    return await tx.run(_INSERT, user_id=user_id, keyring=keyring, version=version, updated_at=at) > 0


async def add_version(tx: Tx, user_id: str, keyring: StoredKeyring, replaced_at: int) -> None:
    """Add a keyring that was replaced elsewhere, unless there is one of this version."""
    await tx.run(
        _ADD_VERSION,
        user_id=user_id,
        keyring=keyring.keyring,
        version=keyring.version,
        updated_at=keyring.updated_at,
        replaced_at=replaced_at,
        kdf=keyring.kdf,
    )


async def replace(tx: Tx, user_id: str, version: int, new_version: int, keyring: str) -> bool:
    """Replace the keyring at this version, and retain what it was; False if it is not at it any more."""
    await tx.run(_RETAIN, user_id=user_id, version=version, now=tx.now)
    replaced = await tx.run(
        _REPLACE, user_id=user_id, version=version, new_version=new_version, keyring=keyring, now=tx.now
    )
    await trim(tx, user_id)
    return replaced > 0


async def trim(tx: Tx, user_id: str, more: int = 0) -> None:
    """Delete the replaced keyrings of an account that are too many; `more` may stay than after a replacement."""
    await tx.run(_TRIM, user_id=user_id, limit=RETAINED + more)


async def versions(tx: Tx, user_id: str) -> list[KeyringVersion]:
    """The retained keyrings of an account, newest first."""
    return await tx.all(KeyringVersion, _VERSIONS, user_id=user_id)


async def version(tx: Tx, user_id: str, number: int) -> StoredKeyring | None:
    """A retained keyring."""
    return await tx.one(StoredKeyring, _VERSION, user_id=user_id, version=number)


async def replaced_before(tx: Tx, reached: int, before: int, limit: int) -> list[ExpiredRow]:
    """Some keyrings that were replaced from `reached` to this timestamp."""
    return await tx.all(ExpiredRow, _REPLACED_BEFORE, reached=reached, before=before, limit=limit)


async def drop(tx: Tx, found: Sequence[ExpiredRow]) -> None:
    """Delete retained keyrings."""
    await tx.each(_DROP, [to_builtins(one) for one in found], by=("user_id",))
