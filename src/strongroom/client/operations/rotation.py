"""Rotation: new keys for the account or a vault, and everything encrypted again under them.

What is still to do follows from the generations on the wire: an interrupted rotation continues where it was. Only what
this device has read before the keys changed is encrypted again, or what its caller accepts: whoever has had the keys of
before, and works with the server, can show more under them. When nothing is left, the floor of the vault rises, and
nothing under the keys of before is believed as current any more.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import Struct

from strongroom.client.format import derive, seal
from strongroom.client.operations import accounts, documents, keyrings, passkeys, sessions_and_keys, vaults
from strongroom.client.operations.batches import BatchWrites, deletions, replacements
from strongroom.client.operations.documents import Document
from strongroom.client.operations.listing import Listing
from strongroom.client.operations.passkeys import ListedPasskey
from strongroom.client.operations.vaults import Blob
from strongroom.errors import DocumentConflict, DocumentNotFound, Invalid, VaultNotFound
from strongroom.wire.responses import ListedSession

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.operations.factors import FactorSource
    from strongroom.client.operations.vaults import OpenVault
    from strongroom.wire import responses

Progress = Callable[[int, int], None]
Unseen: TypeAlias = Document | Blob
_PASSES: Final = 10  # over a vault in which others write meanwhile


class Rotation(Struct, frozen=True, kw_only=True):
    """What a rotation has done.

    `recovery_key` is the new one, if there was one before. `unseen` are documents and blobs under old keys that
    this device had not read when the keys changed: they are as they were. Whoever has had those keys, and works with
    the server, may have made them. `finish_rotation(accept=...)` encrypts again what its caller accepts of them.
    `passkeys` opened the account before, and do not any more: `passkeys.enable_unlock` lets one again, which is touched
    for that. `devices` are the other sessions that were open when the keys changed, as the server reports them: devices
    that have not seen the rotation.
    """

    recovery_key: str | None = None
    unseen: tuple[Unseen, ...] = ()
    passkeys: tuple[ListedPasskey, ...] = ()
    devices: tuple[ListedSession, ...] = ()

    def __repr__(self) -> str:
        return f"Rotation(unseen={len(self.unseen)}, ...)"


def rotate_keys(
    core: Core, password: str, new_password: str | None, progress: Progress | None, source: FactorSource
) -> Effects[Rotation]:
    """New keys for the account and every vault; then everything is encrypted again under them.

    A recovery key is replaced too, and the new one returned: who had the old keys knows its public keys. So
    passkeys open the account no more, until each is touched again.
    """
    if new_password is not None:
        derive.check_new_password(new_password)
    keys = yield from keyrings.checked_password(core, password)
    believed = yield from _read_all(core, (yield from vaults.list_vaults(core)))
    rotation = yield from _who_is_concerned(core)
    yield from _revoke(core, None)  # first: an interrupted rotation leaves nothing to do that cannot be seen later
    yield from keyrings.rotate(core, keys, new_password, source)
    unseen = yield from _encrypt_all(core, believed, progress)
    key = None
    if core.keyring().recovery is not None:
        # Last, so that it is returned as soon as it is stored: until then the one of before opens the account.
        key = yield from accounts.set_recovery(core, new_password or password, source)
    return msgspec.structs.replace(rotation, recovery_key=key, unseen=unseen)


def _who_is_concerned(core: Core) -> Effects[Rotation]:
    """The passkeys that will open the account no more, and the devices that will not have seen the rotation."""
    opening = (yield from passkeys.list_(core)) if core.keyring().passkeys() else []
    dropped = tuple(msgspec.structs.replace(one, unlocks=False) for one in opening if one.unlocks)
    devices = tuple(one for one in (yield from sessions_and_keys.sessions(core)) if not one.current)
    return Rotation(passkeys=dropped, devices=devices)


def rotate_vault(core: Core, vault: OpenVault, progress: Progress | None) -> Effects[tuple[OpenVault, Rotation]]:
    """A new key for one vault; then everything in it is encrypted again under it."""
    believed = yield from _read_all(core, [vaults.renewed(core, vault)])
    yield from _revoke(core, vault.uid)
    yield from keyrings.update(core, lambda ring: ring.with_rotated_vault(vault.uid))
    entry = core.keyring().entry(vault.uid)
    if entry is None:
        raise VaultNotFound
    opened = vaults.open_entry(core, entry)
    unseen = yield from _EncryptionAgain(core, believed, progress).run([opened])
    return vaults.renewed(core, opened), Rotation(unseen=unseen)


def finish(core: Core, accept: Iterable[Unseen], progress: Progress | None) -> Effects[Rotation]:
    """Encrypt again what is not of the newest generation, if this device has read it or its caller accepts it."""
    believed = _remembered(core)
    for one in accept:
        believed.add(_accepted(core, one))
    return Rotation(unseen=(yield from _encrypt_all(core, believed, progress)))


def _accepted(core: Core, one: Unseen) -> str:
    """What identifies a document or a blob that the caller accepts: exactly what it was shown."""
    if isinstance(one, Document):
        return one.proof
    if isinstance(one, Blob):
        row = core.device.blob(one.vault)
        return "" if row is None or row.version != one.version else row.data or ""
    raise Invalid({"accept": f"must be what `unseen` holds, a Document or a Blob, not {type(one).__name__}"})


def _revoke(core: Core, vault: str | None) -> Effects[None]:
    """Revoke the API keys of every token, or of those for one vault."""
    for key in (yield from sessions_and_keys.api_keys(core)):
        if vault is None or (key.vault_uids is not None and vault in key.vault_uids):
            yield from sessions_and_keys.revoke_key(core, key.uid)


def _remembered(core: Core) -> set[str]:
    """What this device has read of documents and blobs, by what identifies them."""
    found = set()
    for entry in core.keyring().vaults:
        found |= {known.row.proof for known in core.device.rows(entry.uid).values()}
        blob = core.device.blob(entry.uid)
        if blob is not None and blob.data is not None:
            found.add(blob.data)
    return found - core.doubted


def _read_all(core: Core, opened: list[OpenVault]) -> Effects[set[str]]:
    """Read everything, before the keys change: what is under the newest of them was made by those who have them now.

    What is under older ones counts only if this device had read it before: an earlier rotation was interrupted.
    """
    believed = _remembered(core)
    for vault in opened:
        newest = vault.keys.newest.generation
        _, row, _ = yield from vaults.current_row(core, vault)
        if row.data is not None and seal.blob_generation(row.data) == newest:
            believed.add(row.data)
        for trash in (False, True):
            listing = Listing(core, _scope(vault), None, trash=trash, survey=True)
            while listing.more:
                page = yield from listing.page()
                believed.update(one.proof for one in page if _generation(one) == newest)
    return believed


def _encrypt_all(core: Core, believed: Container[str], progress: Progress | None) -> Effects[tuple[Unseen, ...]]:
    opened = yield from vaults.list_vaults(core)
    return (yield from _EncryptionAgain(core, believed, progress).run(opened))


def _scope(vault: OpenVault) -> KeyScope:
    """Where the documents of a vault lie, those below its floor included: nothing of them is believed for that."""
    return documents.key_scope(msgspec.structs.replace(vault.keys, floor=1))


def _generation(document: Document) -> int:
    return seal.read_proof(document.proof).generation


class _EncryptionAgain:
    """One run over vaults, with what was done so far. `believed` identifies what may be encrypted again."""

    def __init__(self, core: Core, believed: Container[str], progress: Progress | None) -> None:
        self._core = core
        self._believed = believed
        self._progress = progress
        self._done = self._total = 0
        self._unseen: list[Unseen] = []
        self._floors: dict[str, int] = {}

    def run(self, opened: list[OpenVault]) -> Effects[tuple[Unseen, ...]]:
        """The names and the blobs of the vaults; then their documents, vault by vault; then the floors."""
        for vault in opened:
            self._floors[vault.uid] = vault.keys.newest.generation
            row = yield from vaults.update_wire(self._core, vault, believed=self._believed)
            self._total += row.documents or 0
            if row.data is not None and seal.blob_generation(row.data) < vault.keys.newest.generation:
                self._leave_blob(vault, row)
        for vault in opened:
            yield from self._documents(vault)
            yield from self._trash(vault)
        self._core.doubted.update(one.proof for one in self._unseen if isinstance(one, Document))
        yield from keyrings.update(self._core, self._raised)
        return tuple(self._unseen)

    def _raised(self, ring: Keyring) -> Keyring | None:
        """The keyring with the floors as they are now; a vault that was never made has no rows under any key."""
        unmade = {entry.uid: entry.keys[-1][0] for entry in ring.vaults if not entry.made}
        return ring.with_floors(unmade | self._floors)

    def _leave(self, vault: OpenVault, one: Unseen, generation: int) -> None:
        """Leave something as it is: what is below the floor already holds the floor back no more."""
        self._unseen.append(one)
        if generation >= vault.keys.floor:
            self._floors[vault.uid] = min(self._floors[vault.uid], generation)

    def _leave_blob(self, vault: OpenVault, row: responses.Vault) -> None:
        blob = vaults.to_blob(vault, row, gap=False)
        if blob is not None:
            self._core.device.record_blob(row)
            self._core.doubted.add(row.data or "")
            self._leave(vault, blob, seal.blob_generation(row.data or ""))

    def _documents(self, vault: OpenVault) -> Effects[None]:
        """The live documents, and notices that no DELETE has followed; again, where others have written meanwhile."""
        left, floor, done = len(self._unseen), self._floors[vault.uid], self._done
        for _ in range(_PASSES):
            if (yield from self._pass(vault)):
                return
            del self._unseen[left:]
            self._floors[vault.uid], self._done = floor, done
        self._floors[vault.uid] = vault.keys.floor  # the next run sees to it

    def _pass(self, vault: OpenVault) -> Effects[bool]:
        scope, newest, is_whole = _scope(vault), vault.keys.newest.generation, True
        listing = Listing(self._core, scope, None, survey=True)
        while listing.more:
            page = yield from listing.page()
            old = [one for one in page if _generation(one) != newest]
            for one in old:
                if one.proof not in self._believed:
                    self._leave(vault, one, _generation(one))
            believed = [one for one in old if one.proof in self._believed]
            self._report_progress(len(page) - len(believed))
            is_whole &= yield from self._write(scope, believed, self._report_progress)
        return is_whole

    def _trash(self, vault: OpenVault) -> Effects[None]:
        """The trash: a deletion under a key of before would not be believed by a device that has not seen it."""
        scope, newest = _scope(vault), vault.keys.newest.generation
        listing = Listing(self._core, scope, None, trash=True, survey=True)
        while listing.more:
            page = yield from listing.page()
            old = [one for one in page if _generation(one) != newest and one.proof in self._believed]
            yield from self._write(scope, old, lambda _: None)

    def _write(self, scope: KeyScope, old: list[Document], report: Callable[[int], None]) -> Effects[bool]:
        """Replace documents by themselves, and deletions by themselves; whether nobody was quicker."""
        alive = replacements((one, one.raw) for one in old if not one.deleted)
        writes = BatchWrites(self._core, scope, chain(alive, deletions(one for one in old if one.deleted)))
        is_whole = True
        while writes.more:
            results = yield from writes.page()
            for result in results:
                if result.error is not None and not isinstance(result.error, DocumentConflict | DocumentNotFound):
                    raise result.error
                is_whole &= result.error is None
            report(len(results))
        return is_whole

    def _report_progress(self, more: int) -> None:
        self._done += more
        if self._progress is not None:
            self._total = max(self._total, self._done)  # others may write meanwhile
            self._progress(self._done, self._total)
