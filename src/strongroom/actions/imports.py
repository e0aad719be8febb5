"""Imports: rows of an export, stored in an account without vaults. No other write runs until the import is finished."""

from __future__ import annotations

from collections import Counter
from itertools import compress, groupby
from operator import not_
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from strongroom import descriptors, keyring_head, rules, store
from strongroom.actions import events, sessions
from strongroom.actions.account_write import require_quota
from strongroom.actions.retention import KEYRING_DAYS
from strongroom.errors import (
    AccountNotEmpty,
    ImportNotFound,
    ImportUnfinished,
    Invalid,
    InvalidCredentials,
    TooManyVaults,
    Unavailable,
)
from strongroom.export_rows import (
    ExportedBlob,
    ExportedDocument,
    ExportedKeyring,
    ExportedKeyringVersion,
    ExportedVault,
    ExportedVersion,
)
from strongroom.model import RETAINED_ROW_BYTES, CountedUsage, EventType, StoredKeyring
from strongroom.store import RollbackWith
from strongroom.wire.export_lines import bad_line

if TYPE_CHECKING:
    from strongroom.descriptors import Kdf
    from strongroom.export_rows import ExportRow, KeyringRow
    from strongroom.model import AccountLimits, Actor, Origin
    from strongroom.store import Tx
    from strongroom.store.queries.imports import Import, ImportProgress
    from strongroom.wire.export_lines import Header

DELETED_AT_ONCE: Final = 200  # documents, each with its history
_HISTORY: Final = (ExportedVersion, ExportedBlob)
_CLASH: Final[dict[type[ExportRow], dict[str, str]]] = {
    ExportedVault: {"uid": "or name is that of another line"},
    ExportedDocument: {"uid": "is that of another line"},
    ExportedVersion: {"version": "must be before that of its document, and is there once"},
    ExportedBlob: {"version": "must be before that of its vault, and is there once"},
}


class ImportBatch(Struct, frozen=True):
    """Consecutive lines of the file with their numbers, the number of lines before them, and the progress after them.

    `reached` is the clock of each vault that they belong to.
    """

    lines: list[tuple[int, ExportRow]]
    before: int
    progress: ImportProgress
    reached: dict[str, int]


_OTHER_KEYRING: Final = (
    "Your account has a keyring of its own, which does not belong to this file. Import the file into an account "
    "that has none."
)
_OTHER_KDF: Final = (
    "Your account derives its password in another way than the account of this file: its own keyring would not open "
    "with it. Import the file into an account that was registered with the password of the old one."
)


class ImportedKeys(Struct):
    """The key derivation and the keyrings of a file, which are stored when all else is; and the proof of the password.

    `password_hash` is the hash that the password matched, if one was given.
    """

    kdf: Kdf | None = None
    keyrings: list[KeyringRow] = []
    password_hash: str | None = None

    @property
    def current(self) -> ExportedKeyring | None:
        """The keyring of the account that was exported."""
        return next((one for one in self.keyrings if isinstance(one, ExportedKeyring)), None)

    @property
    def replaced(self) -> list[ExportedKeyringVersion]:
        """Those that it had replaced."""
        return [one for one in self.keyrings if isinstance(one, ExportedKeyringVersion)]

    def __repr__(self) -> str:
        return "ImportedKeys(...)"


async def require_empty_account(tx: Tx, actor: Actor) -> None:
    """Refuse an account that has vaults and no import, before its file is uploaded."""
    if await store.imports.get(tx, actor.user_id) is None and await store.imports.has_vaults(tx, actor.user_id):
        raise AccountNotEmpty


async def begin(
    tx: Tx, actor: Actor, header: Header, progress: ImportProgress, keys: ImportedKeys
) -> tuple[ImportProgress, bool]:
    """Begin or resume an import; the progress of earlier attempts, and whether the import is finished."""
    await store.imports.claim(tx, actor.user_id)
    await _check_keys(tx, actor.user_id, keys)
    known = await store.imports.get(tx, actor.user_id)
    if known is not None and known.state != store.imports.DONE:
        if known.id != header.id or known.state != store.imports.OPEN:
            raise ImportUnfinished
        return known.progress, False
    if not await store.imports.has_vaults(tx, actor.user_id):
        if await store.deletions.of_account(tx, actor.user_id) is not None:
            raise Unavailable(1)  # a vault was deleted after the file was sent
        await store.imports.begin(tx, actor.user_id, header.id, progress)
        return progress, False
    if known is None or known.id != header.id:
        raise AccountNotEmpty
    raise RollbackWith((known.progress, True))


async def store_batch(tx: Tx, actor: Actor, limits: AccountLimits, file_id: str, batch: ImportBatch) -> None:
    """Store consecutive lines, and record the progress."""
    if batch.progress.counts.vaults > rules.VAULTS_PER_ACCOUNT:
        raise TooManyVaults
    await _lock(tx, actor, limits, _live_usage([line for _, line in batch.lines]))
    if not await store.imports.advance(tx, actor.user_id, file_id, batch.before, batch.progress):
        raise ImportUnfinished
    lines, left_out = await _within_retention_limit(tx, actor, limits, batch.lines)
    retained: Counter[str] = Counter()
    for _, alike in groupby(lines, key=lambda numbered: type(numbered[1])):
        numbered = list(alike)
        added = await store.imports.add(tx, actor.user_id, [line for _, line in numbered])
        for number, line in compress(numbered, map(not_, added)):
            if not await _is_purged(tx, actor.user_id, line):
                raise bad_line(number, _CLASH[type(line)])
            left_out += 1
        stored = [line for _, line in compress(numbered, added)]
        for line in stored:
            retained[_vault_of(line)] += _retained_bytes(line)
        for vault, sizes in await _trim(tx, actor.user_id, stored, limits.versions):
            retained[vault] -= sum(sizes)
            left_out += len(sizes)
    if left_out:
        await store.imports.leave_out(tx, actor.user_id, left_out)
    inside: dict[str, list[ExportRow]] = {uid: [] for uid in batch.reached}
    for _, line in lines:
        if not isinstance(line, _HISTORY):
            inside[_vault_of(line)].append(line)
    for uid, timestamp in batch.reached.items():
        used = _live_usage(inside[uid])
        await store.vaults.add_usage(
            tx, actor.user_id, uid, timestamp, used.documents, used.bytes, retained.pop(uid, 0), used.row_bytes
        )
    for uid, size in retained.items():
        await store.retained.add(tx, actor.user_id, uid, size)


async def _within_retention_limit(
    tx: Tx, actor: Actor, limits: AccountLimits, lines: list[tuple[int, ExportRow]]
) -> tuple[list[tuple[int, ExportRow]], int]:
    """The lines that trash and history have space for, and how many are left out.

    Beyond the limit, versions are left out, and of a deleted document only the tombstone is stored.
    """
    limit, added = rules.retention_limit(limits.bytes), sum(_retained_bytes(line) for _, line in lines)
    if limit is None or not added or await store.retained.of_account(tx, actor.user_id) + added <= limit:
        return lines, 0
    fitting = [(number, _without_trash(line, tx.now)) for number, line in lines if not isinstance(line, _HISTORY)]
    return fitting, len(lines) - len(fitting)


def _without_trash(line: ExportRow, now: int) -> ExportRow:
    """A deleted document as a purged tombstone; any other line unchanged."""
    if not isinstance(line, ExportedDocument) or not _is_trash(line):
        return line
    return structs.replace(line, data=None, purged_at=max(now, line.deleted_at or 0))


def _vault_of(line: ExportRow) -> str:
    """The uid of a line's vault."""
    return line.vault_uid if isinstance(line, (ExportedDocument, ExportedVersion)) else line.uid


def _retained_bytes(line: ExportRow) -> int:
    """The bytes that a line adds to trash and history."""
    if isinstance(line, ExportedDocument):
        return rules.octets(line.data, line.hmac) + RETAINED_ROW_BYTES if _is_trash(line) else 0
    if isinstance(line, ExportedVersion):
        return rules.octets(line.data, line.hmac) + RETAINED_ROW_BYTES
    return rules.octets(line.data, line.salt) + RETAINED_ROW_BYTES if isinstance(line, ExportedBlob) else 0


def _is_trash(line: ExportedDocument) -> bool:
    return line.deleted_at is not None and line.purged_at is None


async def finish(
    tx: Tx,
    actor: Actor,
    limits: AccountLimits,
    file_id: str,
    rest: ImportBatch,
    keys: ImportedKeys,
    clock: int,
    origin: Origin,
) -> Import:
    """Store the last lines and the keys, and release the account with a clock later than every imported timestamp."""
    await store_batch(tx, actor, limits, file_id, rest)
    await _store_keys(tx, actor.user_id, keys)
    own = await store.ledgers.clock(tx, actor.user_id)
    await store.imports.finish(tx, actor.user_id, max(own, clock))
    await store.vault_changes.trim(tx, actor.user_id, rules.VAULT_CHANGES_PER_ACCOUNT)
    await events.record(tx, actor.user_id, EventType.IMPORTED, origin)
    return await latest(tx, actor)


async def _check_keys(tx: Tx, user_id: str, keys: ImportedKeys) -> StoredKeyring | None:
    """The account's own keyring. Refuses keys without the password, and where they would shut the account's owner out.

    An account that has a keyring keeps it: it is the file's, or one that was made from the file's.
    """
    kdf = await store.accounts.lock(tx, user_id)
    stored, current = await store.keyrings.get(tx, user_id), keys.current
    if stored is not None and not _is_same_or_newer(stored, current):
        raise AccountNotEmpty(_OTHER_KEYRING)
    if keys.kdf is None and current is None:
        return stored
    if keys.password_hash is None:
        raise Invalid(
            {"currentPassword": "is required: the file has the keys of an account, see docs/export.md"},
            "The file has the keys of an account. Send the password of your account as the first line, before the "
            'file: {"kind":"password","currentPassword":"…"}.',
        )
    if not await store.accounts.is_current(tx, user_id, keys.password_hash):
        raise InvalidCredentials
    if stored is None and kdf not in {None, _canonical(keys.kdf)}:
        raise AccountNotEmpty(_OTHER_KDF)
    if current is not None:
        account = keyring_head.account_of(current.keyring)
        for number, line in enumerate(keys.replaced, 3):  # after the header and the keyring
            if keyring_head.account_of(line.keyring) != account:
                raise bad_line(number, {"keyring": "must be of the same account as the one before"})
    return stored


def _is_same_or_newer(stored: StoredKeyring, current: ExportedKeyring | None) -> bool:
    """Whether a keyring of an account is the one of a file, or a later one of the same account."""
    if current is None:
        return False
    if stored.keyring == current.keyring:
        return stored.version == current.version
    account = keyring_head.account_of(stored.keyring)
    return (
        account is not None and account == keyring_head.account_of(current.keyring) and stored.version > current.version
    )


async def _store_keys(tx: Tx, user_id: str, keys: ImportedKeys) -> None:
    """Store what opens the account, unless it has something newer; and the keyrings that were replaced."""
    stored, current = await _check_keys(tx, user_id, keys), keys.current
    kdf = _canonical(keys.kdf)
    if stored is None and kdf is not None and keys.password_hash is not None:
        await store.accounts.change_kdf(tx, user_id, keys.password_hash, kdf)
    if current is None:
        return
    if stored is None:
        await store.keyrings.insert(tx, user_id, current.keyring, current.version, current.updated_at)
    elif stored.version > current.version:
        replaced = StoredKeyring(current.keyring, current.version, current.updated_at, kdf)
        await store.keyrings.add_version(tx, user_id, replaced, stored.updated_at)
    for line in keys.replaced:
        if line.replaced_at > tx.now - KEYRING_DAYS * rules.DAY:
            replaced = StoredKeyring(line.keyring, line.version, line.updated_at, _canonical(line.kdf))
            await store.keyrings.add_version(tx, user_id, replaced, line.replaced_at)
    await store.keyrings.trim(tx, user_id, more=1)  # the last one of the old server beside all that it retained


def _canonical(kdf: Kdf | None) -> str | None:
    return None if kdf is None else descriptors.canonical_json(kdf)


async def latest(tx: Tx, actor: Actor) -> Import:
    """The last import into the account."""
    known = await store.imports.get(tx, actor.user_id)
    if known is None:
        raise ImportNotFound
    return known


async def abandon(tx: Tx, actor: Actor) -> None:
    """Abandon an unfinished import; what it stored is deleted in steps."""
    await store.imports.claim(tx, actor.user_id)
    if not await store.imports.give_up(tx, actor.user_id):
        raise ImportNotFound


async def delete_some(tx: Tx, actor: Actor) -> bool:
    """Delete some rows of an abandoned import; False when the account is empty again.

    Two requests may do this at once, and the account may be used in between: only an abandoned import is deleted.
    """
    await store.imports.claim(tx, actor.user_id)
    known = await store.imports.get(tx, actor.user_id)
    if known is None or known.state != store.imports.EMPTYING:
        return False
    if await store.imports.empty(tx, actor.user_id, DELETED_AT_ONCE):
        return True
    await store.imports.forget(tx, actor.user_id)
    return False


async def _lock(tx: Tx, actor: Actor, limits: AccountLimits, added: CountedUsage) -> None:
    """Lock the account and add the usage.

    The session or key is checked again: it may have ended while the file was uploaded.
    """
    await sessions.require_open(tx, actor)
    ledger = await store.imports.add_usage(tx, actor.user_id, added.documents, added.bytes, added.row_bytes)
    if ledger is None:
        raise ImportUnfinished
    require_quota(actor, limits, CountedUsage(ledger.documents, ledger.bytes, row_bytes=ledger.row_bytes), added)


async def _trim(tx: Tx, user_id: str, lines: list[ExportRow], most: int) -> list[tuple[str, list[int]]]:
    """Drop what exceeds the number of versions that this server retains of anything; the vaults, and the sizes.

    By their number, as when they were replaced: a client may choose the next version, so that there are gaps.
    """
    newest: dict[tuple[str, str], int] = {}
    for line in lines:
        if isinstance(line, _HISTORY):
            place = _vault_of(line), line.uid
            newest[place] = max(line.version, newest.get(place, 0))
    return [
        (
            vault,
            await (store.versions.trim_blobs if uid == vault else store.versions.trim)(tx, user_id, uid, last, most),
        )
        for (vault, uid), last in newest.items()
    ]


async def _is_purged(tx: Tx, user_id: str, line: ExportRow) -> bool:
    """Whether a version was not stored because its document was purged, which may happen while an import is open."""
    if not isinstance(line, ExportedVersion):
        return False
    head = await store.documents.head(tx, user_id, line.vault_uid, line.uid)
    return head is not None and head.purged_at is not None and line.version < head.version


def _live_usage(lines: list[ExportRow]) -> CountedUsage:
    """The usage that these lines add: live documents and blobs, without replaced versions; and the rows of all."""
    rows = sum(rules.row_bytes(line.collection) for line in lines if isinstance(line, ExportedDocument))
    live = [line for line in lines if isinstance(line, ExportedDocument) and line.deleted_at is None]
    size = sum(rules.octets(line.data, line.hmac) for line in live)
    size += sum(rules.octets(line.data, line.salt) for line in lines if isinstance(line, ExportedVault))
    return CountedUsage(len(live), size, row_bytes=rows)
