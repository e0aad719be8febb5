"""Admin operations beside a running server, through the same database, actions and rules."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from strongroom import credentials, identifiers, rules, store, wire
from strongroom._version import __version__
from strongroom.actions import accounts, admin, epochs, invitations
from strongroom.errors import Invalid, Unavailable
from strongroom.model import AccountApiKey
from strongroom.server.client_address import counted_address
from strongroom.server.deletion_steps import DeletionSteps
from strongroom.server.settings import parse_duration
from strongroom.server.snapshots import LIST_SECONDS
from strongroom.store import CannotOpen, file_owners, location_of, locks, open_database
from strongroom.store.maintenance import backup as backups
from strongroom.store.maintenance import restore as restores
from strongroom.store.maintenance import salvage as salvaging
from strongroom.store.queries import schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from strongroom.archive import Manifest, Reader, Sink
    from strongroom.model import Account, Invitation
    from strongroom.server.settings import Settings
    from strongroom.store import Database
    from strongroom.store.maintenance.copy import Watcher
    from strongroom.store.maintenance.restore import Restored
    from strongroom.store.maintenance.salvage import Outcome

R = TypeVar("R")
_PAGE = 500
_TRUNCATE_ATTEMPTS = 10  # after a deletion


class DoesNotExist(Exception):  # noqa: N818 - the message is shown without a traceback
    """What the operator named does not exist; the message is a sentence."""


def add_user(settings: Settings, email: str, password: str) -> str:
    """Add an account; its id. Validated like a registration."""
    _require_existing(settings)  # before a password is hashed
    wanted = wire.decode(wire.requests.Register, msgspec.json.encode({"email": email, "password": password}))
    user_id = identifiers.new_uid(_clock())
    password_hash = credentials.hash_password(wanted.password)

    async def run(db: Database) -> None:
        await db.write(accounts.create, user_id, rules.normalise_email(wanted.email), password_hash, admin.OPERATOR)

    _with_database(_require_existing(settings), run)
    return user_id


def list_users(settings: Settings) -> list[Account]:
    """All accounts, oldest first."""

    async def run(db: Database) -> list[Account]:
        found: list[Account] = []
        while page := await db.read(store.accounts.page, found[-1].id if found else "", _PAGE):
            found += page
        return found

    return _with_database(_require_existing(settings), run)


def find_user(settings: Settings, who: str) -> Account:
    """Find the account of this email or id; raises DoesNotExist."""

    async def run(db: Database) -> Account | None:
        return await db.read(admin.find, who)

    found = _with_database(_require_existing(settings), run)
    if found is None:
        raise DoesNotExist(f"There is no account {who}.")
    return found


def disable(settings: Settings, account: Account) -> bool:
    """Disable an account; False if it was disabled already."""
    return _with_database(settings, lambda db: db.write(admin.disable, account.id))


def enable(settings: Settings, account: Account) -> bool:
    """Enable an account again; False if it was not disabled."""
    return _with_database(settings, lambda db: db.write(admin.enable, account.id))


def delete(settings: Settings, account: Account) -> None:
    """Delete an account and all its data, permanently."""

    async def run(db: Database) -> None:
        steps = DeletionSteps(db)
        await db.write_long(admin.delete, account.id)
        await steps.delete_all()
        for _ in range(_TRUNCATE_ATTEMPTS):
            if await steps.truncate():
                break
            await asyncio.sleep(
                LIST_SECONDS / _TRUNCATE_ATTEMPTS
            )  # a running server releases its snapshots within that time

    _with_database(settings, run)


def sign_out(settings: Settings, account: Account) -> int:
    """End every session of an account; how many there were."""
    return _with_database(settings, lambda db: db.write(admin.sign_out, account.id))


def reset_throttle(settings: Settings, email: str | None, address: str | None) -> int:
    """Delete the failures that count against an account or an address; how many there were."""
    normal = None if email is None else rules.normalise_email(email)
    counted = None if address is None else counted_address(address)
    return _with_database(_require_existing(settings), lambda db: db.write(admin.reset_throttle, normal, counted))


def reset_second_factor(settings: Settings, account: Account) -> bool:
    """Delete the second factors of an account; False if it has none."""
    return _with_database(settings, lambda db: db.write(admin.reset_second_factor, account.id))


def list_keys(settings: Settings, account: Account | None) -> list[AccountApiKey]:
    """The API keys of one account, or of all."""

    async def run(db: Database) -> list[AccountApiKey]:
        if account is not None:
            owner, email = account.id, account.email
            return [
                AccountApiKey(owner, key.uid, email, key.name, key.created_at, key.expires_at, key.last_used_at)
                for key in await db.read(store.keys.of_user, owner, "", rules.MAX_INTEGER)
            ]
        found: list[AccountApiKey] = []
        last = ("", "")
        while page := await db.read(store.keys.page, last, _PAGE):
            found += page
            last = page[-1].user_id, page[-1].uid
        return found

    return _with_database(_require_existing(settings), run)


def revoke(settings: Settings, key: AccountApiKey) -> None:
    """Revoke an API key."""
    if not _with_database(settings, lambda db: db.write(admin.revoke, key.user_id, key.uid)):
        raise DoesNotExist(f"The API key {key.uid} does not exist any more.")


def create_invitation(settings: Settings, email: str | None, note: str | None, expires: str) -> tuple[Invitation, str]:
    """Create an invitation, perhaps for one email only; with its code, of which only a hash is stored."""
    email = None if email is None else rules.normalise_email(email)
    faults: dict[str, str] = {}
    if email is not None and not rules.is_new_email(email):
        faults["email"] = "must be an email address of 3 to 254 characters with one @"
    if note is not None and (not 1 <= len(note) <= rules.MAX_NOTE or rules.has_control(note)):
        faults["note"] = f"must be 1 to {rules.MAX_NOTE} characters without control characters"
    try:
        lifetime = parse_duration(expires).milliseconds
    except ValueError:
        lifetime = 0
    if not rules.MINUTE <= lifetime <= rules.MAX_INVITATION:
        faults["expires"] = "must be a number and m, h, d or w, like 7d, from a minute to a year"
    if faults:
        raise Invalid(faults)
    code, code_hash = credentials.new_invitation()
    made = _with_database(
        _require_existing(settings), lambda db: db.write(invitations.create, code_hash, email, note, lifetime)
    )
    return made, code


def list_invitations(settings: Settings) -> list[tuple[Invitation, str]]:
    """All invitations, oldest first, each with its state."""
    now = _clock()

    async def run(db: Database) -> list[Invitation]:
        found: list[Invitation] = []
        while page := await db.read(store.invitations.page, found[-1].uid if found else "", _PAGE):
            found += page
        return found

    return [(one, rules.invitation_state(one, now)) for one in _with_database(_require_existing(settings), run)]


def find_invitation(settings: Settings, uid: str) -> Invitation:
    """Find the invitation with this uid; raises DoesNotExist."""
    for one, _ in list_invitations(settings):
        if one.uid == uid.strip().lower():
            return one
    raise DoesNotExist(f"There is no invitation {uid}.")


def revoke_invitation(settings: Settings, invitation: Invitation) -> None:
    """Revoke an invitation: its code is refused from now on."""
    if not _with_database(settings, lambda db: db.write(store.invitations.revoke, invitation.uid)):
        raise DoesNotExist(f"The invitation {invitation.uid} was used or revoked meanwhile.")


def stats(settings: Settings) -> dict[str, Any]:
    """Statistics: row counts, sizes, epoch and schema of the database."""

    async def run(db: Database) -> dict[str, Any]:
        return {
            "data": db.describe,
            "epoch": await db.write(epochs.epoch),
            "schema": schema.newest(),
            **await db.read(store.stats.counts),
            "databaseBytes": await db.size(),
            "freeBytes": db.free_bytes,
        }

    return _with_database(_require_existing(settings), run)


def vacuum(settings: Settings) -> tuple[int, int]:
    """Reclaim the disk space of deleted data, rows that still wait for it included; the bytes before and after."""

    async def run(db: Database) -> tuple[int, int]:
        before = await db.size()
        await DeletionSteps(db).delete_all()
        await db.vacuum()
        return before, await db.size()

    return _with_database(_require_existing(settings), run)


def location(settings: Settings) -> str:
    """The location of the database, for people to read; it is not opened."""
    return location_of(settings.database)


def existing_location(settings: Settings) -> str:
    """The location of the database; a file must exist."""
    return location(_require_existing(settings))


def migrate(settings: Settings) -> tuple[str, list[int]]:
    """Migrate the schema, or create it; the location of the database, and the migrations that were run."""
    now = _clock()

    async def run(db: Database) -> tuple[str, list[int]]:
        return db.describe, await db.read(schema.applied_at, now)

    return _with_database(settings, run, lambda: now)


def _require_existing(settings: Settings) -> Settings:
    """Refuse a file that does not exist: a command must not create a database as a side effect."""
    if settings.database_url:
        return settings
    path = Path(settings.db_path).expanduser().absolute()
    locks.refuse_interrupted(file_owners.real_path(path))
    if not path.exists():
        raise CannotOpen(
            f"There is no database {path}. Name the one of the service with --settings FILE or "
            "--db-path FILE; 'strongroom serve' and 'strongroom db migrate' create a new one."
        )
    return settings


def _with_database(
    settings: Settings, work: Callable[[Database], Awaitable[R]], clock: Callable[[], int] | None = None
) -> R:
    """Open the database, run one function with it, and close it."""

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
    """Write a consistent snapshot of the service as an archive; its manifest and checksum."""
    now = _clock()
    return asyncio.run(backups.backup(settings.database, sink, __version__, now, watcher, exclusive=exclusive))


def check_restore_target(settings: Settings, *, new: bool) -> Path:
    """Refuse a restore into a database that is missing, or with `new` into one that exists; a folder near it."""
    return asyncio.run(restores.check_target(settings.database, new=new))


def restore(settings: Settings, archive: Reader, watcher: Watcher, *, new: bool = False) -> Restored:
    """Replace the database with the content of an archive, and begin a new epoch."""
    now = _clock()
    return asyncio.run(restores.restore(settings.database, archive, identifiers.new_uid(now), now, watcher, new=new))


def begin_new_epoch(settings: Settings) -> tuple[str, str, str]:
    """Begin a new epoch, so that clients notice that the database went back; location, old and new epoch."""
    now = _clock()
    epoch = identifiers.new_uid(now)
    where, before = asyncio.run(restores.begin_epoch(settings.database, epoch, now))
    return where, before, epoch


def salvage(source: Path, target: Path, log: Path | None) -> dict[str, Outcome]:
    """Copy what can be read of a damaged file into a new one; the outcome of each table."""
    now = _clock()
    return salvaging.salvage(source, target, log, identifiers.new_uid(now), now)


def _clock() -> int:
    return time.time_ns() // 1_000_000


def newest_schema() -> int:
    """The newest schema version of this release."""
    return schema.newest()
