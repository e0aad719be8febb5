"""Accounts: an id, an email, a password hash, and how a client derives the password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.model import Account, Login, User
from strongroom.store.statement import Sql, columns

if TYPE_CHECKING:
    from strongroom.store.database import Tx

# In the place of the time at which an account was disabled: it was deleted, and its rows go in steps. The index of
# disabled accounts, which every request asks, has it then.
DELETED: Final = 2**62
IS_THERE: Final = f"coalesce(disabled_at, 0) <> {DELETED}"

_INSERT = Sql(f"""
    INSERT INTO users (id, email, password_hash, created_at, updated_at)
    VALUES (:id, :email, :password_hash, :now, :now)
    ON CONFLICT (email) DO NOTHING
    RETURNING {columns(User)}
""")
_GET = Sql(f"SELECT {columns(User)} FROM users WHERE id = :id AND {IS_THERE}")
_WITH_HASH = Sql(f"SELECT {columns(Login)} FROM users WHERE id = :id AND {IS_THERE}")
_CHANGE_HASH = Sql("""
    UPDATE users SET password_hash = :new, updated_at = :now WHERE id = :id AND password_hash = :old
""")
_CHANGE_KDF = Sql("""
    UPDATE users SET kdf = :kdf, updated_at = :now WHERE id = :id AND password_hash = :password_hash
""")
_KDF = "SELECT kdf FROM users WHERE id = :id"
_LOCK = Sql(sqlite=_KDF, postgres=f"{_KDF} FOR NO KEY UPDATE")
_KDF_OF = Sql("SELECT kdf FROM users WHERE email = :email")
_IS_CURRENT = Sql("SELECT 1 FROM users WHERE id = :id AND password_hash = :password_hash")
# An id is no email: the account's own is free again, and nobody finds this one by any.
_DELETE = Sql(f"""
    UPDATE users SET email = id, password_hash = NULL, kdf = NULL, disabled_at = {DELETED}, updated_at = :now
     WHERE id = :id AND {IS_THERE} AND (CAST(:password_hash AS TEXT) IS NULL OR password_hash = :password_hash)
""")
# What must be free for another account at once, is known by more than its account, or opens what a device has saved; an
# account has few of each.
_DELETE_CREDENTIALS = tuple(
    Sql(f"DELETE FROM {table} WHERE {column} = :id")
    for table, column in (
        ("passkeys", "user_id"),
        ("one_time_codes", "user_id"),
        ("recovery_codes", "user_id"),
        ("login_tickets", "user_id"),
        ("challenges", "user_id"),
        ("key_shares", "user_id"),
        ("invitations", "used_by"),
    )
)
# No writer that was let in before passes beside it: a ledger that is closed is not advanced.
_CLOSE_LEDGER = Sql("""
    INSERT INTO ledgers (user_id, clock, documents, bytes, importing) VALUES (:id, 0, 0, 0, 2)
    ON CONFLICT (user_id) DO UPDATE SET documents = 0, bytes = 0, importing = 2
""")
_IS_DELETED = Sql(f"SELECT 1 FROM users WHERE id = :id AND disabled_at = {DELETED}")
_BY_EMAIL = Sql(f"SELECT {columns(Login)} FROM users WHERE email = :email")


_DISABLE = Sql("UPDATE users SET disabled_at = :now, updated_at = :now WHERE id = :id AND disabled_at IS NULL")
_IS_SHUT = f"disabled_at IS NOT NULL AND {IS_THERE}"
_ENABLE = Sql(f"UPDATE users SET disabled_at = NULL, updated_at = :now WHERE id = :id AND {_IS_SHUT}")
_IS_DISABLED = Sql(f"SELECT 1 FROM users WHERE id = :id AND {_IS_SHUT}")
_REMOVE = Sql("DELETE FROM users WHERE id = :id")
_OVERVIEW = """
    SELECT id, email, created_at, disabled_at,
           (SELECT max(last_used_at) FROM sessions WHERE sessions.user_id = users.id),
           (SELECT count(*) FROM vaults WHERE vaults.user_id = users.id),
           coalesce((SELECT documents FROM ledgers WHERE ledgers.user_id = users.id), 0),
           coalesce((SELECT bytes FROM ledgers WHERE ledgers.user_id = users.id), 0),
           (SELECT count(*) FROM sessions WHERE sessions.user_id = users.id),
           (SELECT count(*) FROM api_keys WHERE api_keys.user_id = users.id)
      FROM users
"""
_SHOW = Sql(f"{_OVERVIEW} WHERE id = :id AND {IS_THERE}")
_SHOW_BY_EMAIL = Sql(f"{_OVERVIEW} WHERE email = :email AND {IS_THERE}")
_PAGE = Sql(f"{_OVERVIEW} WHERE id > :after AND {IS_THERE} ORDER BY id LIMIT :limit")


def of_open_accounts(statement: str, owner: str) -> Sql:
    """A statement in which {disabled} is a subquery: when the account of this owner was disabled, or NULL.

    By itself SQLite would search all accounts for it, which costs ten times as much.
    """
    subquery = "(SELECT disabled_at FROM users {how} WHERE users.id = {owner} AND users.disabled_at IS NOT NULL)"
    return Sql(
        sqlite=statement.format(disabled=subquery.format(how="INDEXED BY users_disabled", owner=owner)),
        postgres=statement.format(disabled=subquery.format(how="", owner=owner)),
    )


async def disable(tx: Tx, user_id: str) -> bool:
    """Disable an account; False if it was disabled already."""
    disabled = await tx.run(_DISABLE, id=user_id, now=tx.now) > 0
    if disabled:
        tx.notify(user_id, None)
    return disabled


async def enable(tx: Tx, user_id: str) -> bool:
    """Enable an account that was disabled; False if it was not."""
    return await tx.run(_ENABLE, id=user_id, now=tx.now) > 0


async def is_disabled(tx: Tx, user_id: str) -> bool:
    """Whether an account is disabled."""
    return await tx.value(_IS_DISABLED, id=user_id) is not None


async def remove(tx: Tx, user_id: str) -> None:
    """Delete the row of an account, and the few rows that go with it."""
    await tx.run(_REMOVE, id=user_id)


async def show(tx: Tx, id_or_email: str) -> Account | None:
    """The account with this id or this email, as an operator sees it."""
    return await tx.one(Account, _SHOW, id=id_or_email) or await tx.one(Account, _SHOW_BY_EMAIL, email=id_or_email)


async def page(tx: Tx, after: str, limit: int) -> list[Account]:
    """The accounts after this id, oldest first."""
    return await tx.all(Account, _PAGE, after=after, limit=limit)


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


async def lock(tx: Tx, user_id: str) -> str | None:
    """Lock the account's password and keyring until commit; the descriptor of the password."""
    kdf: str | None = await tx.value(_LOCK, id=user_id)
    return kdf


async def is_current(tx: Tx, user_id: str, password_hash: str) -> bool:
    """Whether the password is still the one that was checked."""
    return await tx.value(_IS_CURRENT, id=user_id, password_hash=password_hash) is not None


async def kdf_of(tx: Tx, email: str) -> str | None:
    """The descriptor of the password that belongs to this email; None too where there is no such account."""
    kdf: str | None = await tx.value(_KDF_OF, email=email)
    return kdf


async def delete(tx: Tx, user_id: str, password_hash: str | None = None) -> bool:
    """Delete an account for everybody; its rows stay. False if its password is not the one that was checked any more.

    Without a password that was checked, whatever it is.
    """
    tx.notify(user_id, None)
    if not await tx.run(_DELETE, id=user_id, password_hash=password_hash, now=tx.now):
        return False
    for statement in (*_DELETE_CREDENTIALS, _CLOSE_LEDGER):
        await tx.run(statement, id=user_id)
    return True


async def is_deleted(tx: Tx, user_id: str) -> bool:
    """Whether an account was deleted, and its rows wait."""
    return await tx.value(_IS_DELETED, id=user_id) is not None


async def get(tx: Tx, user_id: str) -> User | None:
    """The account with this id."""
    return await tx.one(User, _GET, id=user_id)


async def by_email(tx: Tx, email: str) -> Login | None:
    """The account of this email, with what its password is checked against."""
    return await tx.one(Login, _BY_EMAIL, email=email)
