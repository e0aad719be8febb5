"""Accounts: an id, an email, a password hash."""

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


async def delete(tx: Tx, user_id: str, password_hash: str) -> bool:
    """Delete an account and everything of it; False if its password is not the one that was checked any more."""
    tx.tell(user_id, None)
    return await tx.run(_DELETE, id=user_id, password_hash=password_hash) > 0


async def get(tx: Tx, user_id: str) -> User | None:
    """The account with this id."""
    return await tx.one(User, _GET, id=user_id)


async def by_email(tx: Tx, email: str) -> Login | None:
    """The account of this email, with what its password is checked against."""
    return await tx.one(Login, _BY_EMAIL, email=email)
