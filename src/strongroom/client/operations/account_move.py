"""Moving an account to another server: its export into a file, and the import of such a file (docs/export.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from msgspec import Struct

from strongroom.client.errors import HistoryLeftOut, Locked, RolledBack, Tampered
from strongroom.client.format import account, derive, keyring, seal
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.keyring import Keyring
from strongroom.client.net import effects, requests
from strongroom.client.net.effects import CloseStream, NoResponse, ReadStream, Sleep
from strongroom.client.net.http import MIN_BYTES_PER_SECOND
from strongroom.client.operations import documents, keyrings, rollback
from strongroom.client.operations.account_comparison import USED_SINCE, Comparison
from strongroom.client.operations.account_file import AccountFile, LineSplitter, document_of
from strongroom.client.operations.factors import FactorSource
from strongroom.errors import (
    AccountNotEmpty,
    EmailAlreadyExists,
    ImportUnfinished,
    InvalidCredentials,
    InvalidInvitation,
    KeyringNotFound,
    Refusal,
    SignupsClosed,
    Unavailable,
)
from strongroom.export_rows import ExportedDocument, ExportedKeyring, ExportedVault
from strongroom.wire import responses

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.model import User

_GRACE: Final = 60  # seconds for which an export may be slower than `MIN_BYTES_PER_SECOND`
_ATTEMPTS: Final = 4  # while the server still has the request of a client that was killed
_LOST: Final = "The connection was lost before the export was complete, or it was too slow; export the account again."
_DOES_NOT_OPEN: Final = (
    "This email and this password do not open the account in the file, or its keyring was altered. They are those of "
    "the old server at the time of the export. Nothing was sent."
)
_TAKEN: Final = "The new server has another account with this email; import the file with that account deleted."
_SAME_SALT: Final = (
    "This server has the account, with the key derivation that is in the file. If it is the server that the file was "
    "exported from, there is nothing to import: call import_account with the address of the new server, or log in "
    "here. If it is another server, do not trust it: with that key derivation it would learn what logs in at the old "
    "one. Neither the password nor the file was sent."
)
_OTHER_IMPORT: Final = (
    "The account on the new server has an unfinished import of another file. Import that file, or call "
    "import_account with restart=True: what came in of the other file is then deleted there."
)


def export_account(core: Core, write: Callable[[bytes], object]) -> Effects[None]:
    """Write the file of the account, verified line by line, and with nothing older than what this device has seen."""
    if core.token is not None:
        raise Locked("A token opens what it was made for; log in to export the account.")
    ring, sealed = core.keyring(), core.sealed
    check = _SeenCheck(core)
    file = AccountFile()

    def take(raw: bytes) -> Effects[None]:
        line = file.read(raw)
        if isinstance(line, ExportedKeyring):
            file.use_keyring(line, (yield from _current_keyring(core, line, ring, sealed)))
        yield from check.compare(line, file)
        write(raw)

    yield from _read_export(core, take, lambda _: None)
    file.require_whole()
    check.require_complete()


def _read_export(core: Core, take: Callable[[bytes], Effects[None]], progress: Callable[[int], None]) -> Effects[None]:
    """Read the server's export line by line; `progress` is told the number of bytes that have arrived."""
    stream = yield from _open_export(core)
    try:
        yield from _read_lines(core, stream, take, progress)
    finally:
        yield CloseStream(stream)


def _open_export(core: Core) -> Effects[Any]:
    """Open the export. An account can run one at a time, and that of a client that was killed may still run."""
    for attempt in range(1, _ATTEMPTS):
        try:
            return (yield from core.session.open_stream(requests.accounts.export()))
        except Unavailable:
            yield Sleep(0.2 * 2**attempt)
    return (yield from core.session.open_stream(requests.accounts.export()))


def _read_lines(
    core: Core, stream: Any, take: Callable[[bytes], Effects[None]], progress: Callable[[int], None]
) -> Effects[None]:
    lines, began, received = LineSplitter(), core.clock(), 0
    while True:
        try:
            piece: bytes = yield ReadStream(stream)
        except NoResponse:
            raise Unavailable(message=_LOST) from None
        if not piece:
            break
        received += len(piece)
        if (core.clock() - began) / 1_000 > _GRACE + received / MIN_BYTES_PER_SECOND:
            raise Unavailable(message=_LOST)
        for raw in lines.add(piece):
            yield from take(raw)
        progress(received)
    lines.require_end()


def _current_keyring(core: Core, line: ExportedKeyring, seen: Keyring, sealed: str | None) -> Effects[Keyring]:
    """The keyring of an export, if it is not older than the one that this client had when it asked."""
    if line.version < seen.version:
        raise RolledBack(rollback.OLDER_KEYRING)
    if line.version == seen.version:
        if line.keyring != sealed:
            raise Tampered(rollback.TWO_KEYRINGS)
        return seen
    if line.version > core.keyring().version:
        yield from keyrings.reload(core, responses.Keyring(line.keyring, line.version, line.updated_at, None))
    return keyring.reopen(line.keyring, core.keyring().key)


class _SeenCheck:
    """Compares an export with what this device has seen."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._mark = core.device.mark()
        self._expected: dict[str, set[str]] = {}  # documents that were seen live, by vault

    def compare(self, line: object, file: AccountFile) -> Effects[None]:
        """Refuse a row that is older than what was seen."""
        device = self._core.device
        if isinstance(line, ExportedVault):
            known = device.vault(line.uid)
            if known is not None and known.order <= self._mark:
                if line.version < known.version:
                    raise RolledBack
                rollback.check_blob(known.version, known.data, line.version, line.data)
            live = device.live(line.uid)
            self._expected[line.uid] = {uid for uid, one in live.items() if one.order <= self._mark}
        elif isinstance(line, ExportedDocument):
            scope = file.scope(line.vault_uid)
            if scope is not None and device.known(line.vault_uid, line.uid) is not None:
                yield from documents.open_row(self._core, scope, document_of(line), self._mark)
            self._expected[line.vault_uid].discard(line.uid)

    def require_complete(self) -> None:
        """Refuse an export without a document that was seen."""
        if any(self._expected.values()):
            raise RolledBack(documents.WITHHELD)


class _Progress:
    """Tells how much of an import is done. Each byte of the file counts three times: verified, sent and compared."""

    def __init__(self, size: int, told: Callable[[int, int], None] | None) -> None:
        self.size = size
        self._told = told

    def verified(self, done: int) -> None:
        """The file is verified up to here."""
        self._tell(0, done)

    def sent(self, done: int) -> None:
        """The file is sent up to here."""
        self._tell(1, done)

    def compared(self, done: int) -> None:
        """So much of what the server has is compared; it may be less than the file, or a little more."""
        self._tell(2, done)

    def _tell(self, before: int, done: int) -> None:
        if self._told is not None:
            self._told(before * self.size + min(done, self.size), 3 * self.size)


class _NewAccount(Struct, frozen=True, kw_only=True):
    """The account on the new server: the keys of the password there, and the keyring that is sealed for them."""

    user: User
    keys: PasswordKeys
    descriptor: Descriptor
    ring: Keyring
    sealed: str

    def __repr__(self) -> str:
        return "_NewAccount(...)"


def import_account(
    core: Core,
    path: Path,
    email: str,
    password: str,
    invitation: str | None,
    *,
    allow_less_history: bool,
    restart: bool,
    progress: Callable[[int, int], None] | None,
) -> Effects[User]:
    """Verify a file, register its account here, import it, and compare all that the server then has with the file.

    What an interruption has left is continued. The account gets a new descriptor, and so a new auth key: what the old
    server knows does not log in here, and the other way round.
    """
    email = derive.normal_email(email)
    core.lock()
    file, told = AccountFile(), _Progress(path.stat().st_size, progress)
    with path.open("rb") as source:
        descriptor = yield from _open_file(file, source, email, password)
        while (yield from effects.compute(lambda: file.read_some(source))):
            told.verified(source.tell())
    told.verified(told.size)
    try:
        new = yield from _enter(core, email, password, invitation, file.ring, descriptor)
        yield from _upload(core, path, new, told, restart=restart)
        left_out = yield from _compare(core, path, file, new, told)
        stored = yield from keyrings.get_descriptor(core, email)
        _require_kept(new, stored, 0 if allow_less_history else left_out)
    except BaseException:
        core.lock()
        raise
    core.device.forget_account(email)
    yield from keyrings.use(core, email, new.ring, new.sealed, new.descriptor)
    return new.user


def _require_kept(new: _NewAccount, descriptor: Descriptor, left_out: int) -> None:
    if descriptor != new.descriptor:
        raise Tampered("The server did not keep the key-derivation descriptor that it was given.")
    if left_out:
        raise HistoryLeftOut(details={"leftOut": left_out})


def _open_file(file: AccountFile, source: BinaryIO, email: str, password: str) -> Effects[Descriptor]:
    """Open the keyring of a file with the password; its descriptor."""
    line = file.read_head(source)
    descriptor = Descriptor.read(file.header.kdf)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    try:
        ring = keyring.open_with_password(line.keyring, keys, descriptor)
    except Tampered:
        raise InvalidCredentials(_DOES_NOT_OPEN) from None
    file.use_keyring(line, ring)
    return descriptor


def _enter(
    core: Core, email: str, password: str, invitation: str | None, ring: Keyring, old: Descriptor
) -> Effects[_NewAccount]:
    """Register the account, or log in where that was done before; and store the keyring for the password there."""
    made = yield from effects.compute(lambda: account.change_password(ring, email, password, old))
    spelled = made.descriptor.spelled()
    call = requests.accounts.register(email, made.password.password, spelled, None, core.device_name, invitation)
    refused: Refusal | None = None
    try:
        opened = yield from core.session.send_or_done(call)
    except (EmailAlreadyExists, InvalidInvitation, SignupsClosed) as error:  # an earlier attempt may have registered
        opened, refused = None, error
    if opened is not None:
        user = core.begin(email, opened)
        yield from _store_keyring(core, made)
    else:
        descriptor = yield from keyrings.get_descriptor(core, email)
        if descriptor.salt == old.salt:
            raise Tampered(_SAME_SALT)
        keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
        try:
            user = yield from core.open_session(email, keys.password, FactorSource(None))
        except InvalidCredentials:
            if isinstance(refused, InvalidInvitation | SignupsClosed):
                raise refused from None
            raise EmailAlreadyExists(_TAKEN) from None
        made = yield from _stored_keyring(core, ring, keys, descriptor)
    return _NewAccount(user=user, keys=made.password, descriptor=made.descriptor, ring=made.keyring, sealed=made.sealed)


def _store_keyring(core: Core, made: account.Prepared) -> Effects[None]:
    """Store the account's first keyring on this server."""
    version = made.keyring.version
    call = requests.keyrings.put(made.sealed, 0, version, password=made.password.password)
    keyrings.require_stored((yield from core.session.send(call)), made.sealed, version)


def _stored_keyring(core: Core, ring: Keyring, keys: PasswordKeys, descriptor: Descriptor) -> Effects[account.Prepared]:
    """The keyring that an earlier attempt has stored; a new one for the same password where it came not so far."""
    try:
        stored = yield from core.session.send(requests.keyrings.get())
    except KeyringNotFound:
        made = yield from effects.compute(lambda: account.rewrap(ring, keys, descriptor))
        yield from _store_keyring(core, made)
        return made
    if keyring.account_of(stored.keyring) != ring.account:
        raise EmailAlreadyExists(_TAKEN)
    opened = keyring.open_with_password(stored.keyring, keys, descriptor)
    if opened.previous != ring.digest or opened.version != ring.version + 1:
        raise AccountNotEmpty(USED_SINCE)
    return account.Prepared(password=keys, descriptor=descriptor, keyring=opened, sealed=stored.keyring)


def _upload(core: Core, path: Path, new: _NewAccount, told: _Progress, *, restart: bool) -> Effects[None]:
    """Send the file. The server skips what it has of it already."""
    call = requests.accounts.import_(new.keys.password, str(path), told.size, told.sent)
    for attempt in range(_ATTEMPTS):
        try:
            yield from core.session.send(call)
        except ImportUnfinished:
            if attempt + 1 == _ATTEMPTS:
                raise ImportUnfinished(_OTHER_IMPORT) from None
            if restart:
                yield from core.session.send_or_done(requests.accounts.abandon_import())
            else:  # the upload of a client that was killed may be under way still
                yield Sleep(0.2 * 2**attempt)
        else:
            return


def _compare(core: Core, path: Path, file: AccountFile, new: _NewAccount, told: _Progress) -> Effects[int]:
    """Compare what the server has with the file, row by row, and remember it; how much of the history is missing."""
    scopes = {entry.uid: documents.key_scope(file.ring.vault_keys(entry)) for entry in file.ring.vaults}
    with path.open("rb") as source:
        comparison = Comparison(file, source, new.ring, new.sealed)

        def take(raw: bytes) -> Effects[None]:
            line = comparison.take(raw)
            if isinstance(line, ExportedDocument) and line.vault_uid in scopes:
                row = document_of(line)
                made = seal.verify_document(scopes[line.vault_uid].key(line.collection), row)
                core.device.record(row, core.device.mark(), deleted=made.deleted)
            yield from ()

        yield from _read_export(core, take, told.compared)
        left_out = comparison.finish()
    told.compared(told.size)
    return left_out
