"""Accounts: an id, an email, a password hash, and how a client derives the password."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.model import Login, User
from strongroom.store.db import Sql, columns

if TYPE_CHECKING:
    from strongroom.store.db import Tx

_INSERT = Sql(f"""
    INSERT INTO users (id, email, password_hash, created_at, updated_at)
    VALUES (:id, :email, :password_hash, :now, :now)
    ON CONFLICT (email) DO NOTHING
    RETURNING {columns(User)}
""")
_GET = Sql(f"SELECT {columns(User)} FROM users WHERE id = :id")
_WITH_HASH = Sql(f"SELECT {columns(Login)} FROM users WHERE id = :id")
_CHANGE_HASH = Sql("""
    UPDATE users SET password_hash = :new, updated_at = :now WHERE id = :id AND password_hash = :old
""")
_CHANGE_KDF = Sql("""
    UPDATE users SET kdf = :kdf, updated_at = :now WHERE id = :id AND password_hash = :password_hash
""")
_KDF = "SELECT kdf FROM users WHERE id = :id"
_HOLD = Sql(sqlite=_KDF, postgres=f"{_KDF} FOR NO KEY UPDATE")
_KDF_OF = Sql("SELECT kdf FROM users WHERE email = :email")
_DELETE = Sql("DELETE FROM users WHERE id = :id AND password_hash = :password_hash")
_BY_EMAIL = Sql(f"SELECT {columns(Login)} FROM users WHERE email = :email")


async def insert(tx: Tx, user_id: str, email: str, password_hash: str) -> User | None:
    """Add an account; None if the email is taken."""
    return await tx.one(User, _INSERT, id=user_id, email=email, password_hash=password_hash, now=tx.now)


async def with_hash(tx: Tx, user_id: str) -> Login | None:
    """The account with this id, with what its password is checked against."""
    return await tx.one(Login, _WITH_HASH, id=user_id)


async def change_hash(tx: Tx, user_id: str, old: str, new: str) -> bool:
    """Replace a password hash; False if it is not the one that was checked any more."""
    return await tx.run(_CHANGE_HASH, id=user_id, old=old, new=new, now=tx.now) > 0


async def change_kdf(tx: Tx, user_id: str, password_hash: str, kdf: str) -> bool:
    """Replace the descriptor of a password; False if the password is not the one that was checked any more."""
    return await tx.run(_CHANGE_KDF, id=user_id, password_hash=password_hash, kdf=kdf, now=tx.now) > 0


async def hold(tx: Tx, user_id: str) -> str | None:
    """The descriptor of the account's password; until commit, nobody else changes it, the password or the keyring."""
    kdf: str | None = await tx.value(_HOLD, id=user_id)
    return kdf


async def kdf_of(tx: Tx, email: str) -> str | None:
    """The descriptor of the password that belongs to this email; None too where there is no such account."""
    kdf: str | None = await tx.value(_KDF_OF, email=email)
    return kdf


async def delete(tx: Tx, user_id: str, password_hash: str) -> bool:
    """Delete an account and everything of it; False if its password is not the one that was checked any more."""
    return await tx.run(_DELETE, id=user_id, password_hash=password_hash) > 0


async def get(tx: Tx, user_id: str) -> User | None:
    """The account with this id."""
    return await tx.one(User, _GET, id=user_id)


async def by_email(tx: Tx, email: str) -> Login | None:
    """The account of this email, with what its password is checked against."""
    return await tx.one(Login, _BY_EMAIL, email=email)
