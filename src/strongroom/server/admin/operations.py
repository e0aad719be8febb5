"""What an operator does beside a running server, through the same database, actions and rules."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from strongroom import credentials, identifiers, rules, store, wire
from strongroom._version import __version__
from strongroom.actions import accounts, admin, epochs
from strongroom.errors import Unavailable
from strongroom.model import AccountApiKey
from strongroom.server.client_address import counted_address
from strongroom.server.snapshots import LIST_SECONDS
from strongroom.store import CannotOpen, file_owners, location_of, locks, open_database
from strongroom.store.maintenance import backup as backups
from strongroom.store.maintenance import restore as restores
from strongroom.store.maintenance import salvage as salvaging
from strongroom.store.queries import schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from strongroom.archive import Manifest, Reader, Sink
    from strongroom.model import Account
    from strongroom.server.settings import Settings
    from strongroom.store import Database
    from strongroom.store.maintenance.copy import Watcher
    from strongroom.store.maintenance.restore import Restored
    from strongroom.store.maintenance.salvage import Outcome

R = TypeVar("R")
_PAGE = 500
_FOLDS = 10  # tries to empty the log, after something was deleted


class NoSuch(Exception):  # noqa: N818 - said to the operator in one sentence
    """What the operator named is not there; the message is a sentence."""


def add_user(settings: Settings, email: str, password: str) -> str:
    """Add an account; its id. Refused as a registration would be."""
    _existing(settings)  # before a password is hashed
    wanted = wire.decode(wire.requests.Register, msgspec.json.encode({"email": email, "password": password}))
    user_id = identifiers.new_uid(_clock())
    password_hash = credentials.hash_password(wanted.password)

    async def run(db: Database) -> None:
        await db.write(accounts.create, user_id, rules.normalise_email(wanted.email), password_hash, admin.OPERATOR)

    _with(_existing(settings), run)
    return user_id


def users(settings: Settings) -> list[Account]:
    """All accounts, oldest first."""

    async def run(db: Database) -> list[Account]:
        found: list[Account] = []
        while page := await db.read(store.accounts.page, found[-1].id if found else "", _PAGE):
            found += page
        return found

    return _with(_existing(settings), run)


def user(settings: Settings, who: str) -> Account:
    """The account of this email or id."""

    async def run(db: Database) -> Account | None:
        return await db.read(admin.find, who)

    found = _with(_existing(settings), run)
    if found is None:
        raise NoSuch(f"There is no account {who}.")
    return found


def disable(settings: Settings, account: Account) -> bool:
    """Disable an account; False if it was disabled already."""
    return _with(settings, lambda db: db.write(admin.disable, account.id))


def enable(settings: Settings, account: Account) -> bool:
    """Enable an account again; False if it was not disabled."""
    return _with(settings, lambda db: db.write(admin.enable, account.id))


def delete(settings: Settings, account: Account) -> None:
    """Delete an account and everything of it, for good."""

    async def run(db: Database) -> None:
        await db.write_long(admin.delete, account.id)
        for _ in range(_FOLDS):
            if await db.truncate_log():
                break
            await asyncio.sleep(LIST_SECONDS / _FOLDS)  # a server that runs on this file lets go of it within that time

    _with(settings, run)


def sign_out(settings: Settings, account: Account) -> int:
    """End every session of an account; how many those were."""
    return _with(settings, lambda db: db.write(admin.sign_out, account.id))


def reset_throttle(settings: Settings, email: str | None, address: str | None) -> int:
    """Forget what counts against an account or an address; how many failures those were."""
    normal = None if email is None else rules.normalise_email(email)
    counted = None if address is None else counted_address(address)
    return _with(_existing(settings), lambda db: db.write(admin.reset_throttle, normal, counted))


def keys(settings: Settings, account: Account | None) -> list[AccountApiKey]:
    """The API keys of one account, or of all."""

    async def run(db: Database) -> list[AccountApiKey]:
        if account is not None:
            owner, email = account.id, account.email
            return [
                AccountApiKey(owner, key.uid, email, key.name, key.created_at, key.expires_at, key.last_used_at)
                for key in await db.read(store.keys.of_user, owner)
            ]
        found: list[AccountApiKey] = []
        last = ("", "")
        while page := await db.read(store.keys.page, last, _PAGE):
            found += page
            last = page[-1].user_id, page[-1].uid
        return found

    return _with(_existing(settings), run)


def revoke(settings: Settings, key: AccountApiKey) -> None:
    """Revoke an API key."""
    if not _with(settings, lambda db: db.write(admin.revoke, key.user_id, key.uid)):
        raise NoSuch(f"There is no API key {key.uid} any more.")


def stats(settings: Settings) -> dict[str, Any]:
    """How much there is of everything, and where."""

    async def run(db: Database) -> dict[str, Any]:
        return {
            "data": db.describe,
            "epoch": await db.write(epochs.epoch),
            "schema": schema.newest(),
            **await db.read(store.stats.counts),
            "databaseBytes": await db.size(),
            "freeBytes": db.free_bytes,
        }

    return _with(_existing(settings), run)


def vacuum(settings: Settings) -> tuple[int, int]:
    """Give back the room that deleted things left; the bytes before and after."""

    async def run(db: Database) -> tuple[int, int]:
        before = await db.size()
        await db.vacuum()
        return before, await db.size()

    return _with(_existing(settings), run)


def location(settings: Settings) -> str:
    """Which service it is: the path of the file, or PostgreSQL's host and database. The database is not opened."""
    return location_of(settings.database)


def described(settings: Settings) -> str:
    """Which service it is; a file must be there."""
    return location(_existing(settings))


def migrate(settings: Settings) -> tuple[str, list[int]]:
    """Bring the schema up to date, or make it; where the data lies, and the steps that were taken."""
    now = _clock()

    async def run(db: Database) -> tuple[str, list[int]]:
        return db.describe, await db.read(schema.applied_at, now)

    return _with(settings, run, lambda: now)


def _existing(settings: Settings) -> Settings:
    """Refuse a file that is not there: to ask after accounts must not make a database."""
    if settings.database_url:
        return settings
    path = Path(settings.db_path).expanduser().absolute()
    locks.refuse_interrupted(file_owners.real_path(path))
    if not path.exists():
        raise CannotOpen(
            f"There is no database {path}. Say where the service is with --settings FILE or "
            "--db-path FILE; 'strongroom serve' and 'strongroom db migrate' make a new one."
        )
    return settings


def _with(settings: Settings, work: Callable[[Database], Awaitable[R]], clock: Callable[[], int] | None = None) -> R:
    """Open the database, do one thing, let go."""

    async def run() -> R:
        db = open_database(settings.database_url or settings.db_path, clock or _clock, pool=1)
        try:
            return await work(db)
        except Unavailable:
            if db.notice is not None:
                raise CannotOpen(db.notice) from None
            raise
        finally:
            await db.close()

    return asyncio.run(run())


def backup(settings: Settings, sink: Sink, watcher: Watcher, *, exclusive: bool = False) -> tuple[Manifest, str]:
    """Write one moment of the service as an archive; what it says of itself, and its checksum."""
    now = _clock()
    return asyncio.run(backups.backup(settings.database, sink, __version__, now, watcher, exclusive=exclusive))


def look_before_restore(settings: Settings, *, new: bool) -> Path:
    """Refuse a restore into a database that is not there, or a new one where there is one; a folder near it."""
    return asyncio.run(restores.check_target(settings.where, new=new))


def restore(settings: Settings, archive: Reader, watcher: Watcher, *, new: bool = False) -> Restored:
    """Put what an archive holds in the place of what is there, as a new lineage."""
    now = _clock()
    return asyncio.run(restores.restore(settings.database, archive, identifiers.new_uid(now), now, watcher, new=new))


def begin_new_epoch(settings: Settings) -> tuple[str, str, str]:
    """Give the database another epoch, so that clients notice that it went back; where, the old one, the new one."""
    now = _clock()
    epoch = identifiers.new_uid(now)
    where, before = asyncio.run(restores.begin_epoch(settings.database, epoch, now))
    return where, before, epoch


def salvage(source: Path, target: Path, log: Path | None) -> dict[str, Outcome]:
    """Bring what can be read of a damaged file into a new one; what became of each table's rows."""
    now = _clock()
    return salvaging.salvage(source, target, log, identifiers.new_uid(now), now)


def _clock() -> int:
    return time.time_ns() // 1_000_000


def newest_schema() -> int:
    """The newest step of the schema that this program knows."""
    return schema.newest()
