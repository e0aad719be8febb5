"""Rotation: new keys for the account or a vault, and everything sealed anew under them.

What is still to do follows from the generations on the wire: an interrupted rotation goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from strongroom.client.format import derive, seal
from strongroom.client.operations import accounts, documents, keyrings, sessions_and_keys, vaults
from strongroom.client.operations.batches import BatchWrites, WriteResult, deletions, replacements
from strongroom.client.operations.listing import Listing
from strongroom.errors import DocumentConflict, DocumentNotFound, VaultNotFound

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.format.keys import VaultKeys
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import Document, KeyScope
    from strongroom.client.operations.factors import FactorSource
    from strongroom.client.operations.vaults import OpenVault

Progress = Callable[[int, int], None]


def rotate_keys(
    core: Core, password: str, new_password: str | None, progress: Progress | None, source: FactorSource
) -> Effects[str | None]:
    """New keys for the account and every vault; then everything is sealed anew under them.

    A recovery key is replaced too, and the new one returned: who has had the keys of before knows its public keys.
    """
    if new_password is not None:
        derive.check_new_password(new_password)
    keys = yield from keyrings.checked_password(core, password)
    yield from _revoke(core, None)  # first: an interrupted rotation leaves nothing to do that cannot be seen later
    yield from keyrings.rotate(core, keys, new_password, source)
    yield from reseal(core, progress)
    if core.keyring().recovery is None:
        return None
    # Last, so that it is returned as soon as it is stored: until then the one of before opens the account.
    return (yield from accounts.set_recovery(core, new_password or password, source))


def rotate_vault(core: Core, vault: OpenVault, progress: Progress | None) -> Effects[OpenVault]:
    """A new key for one vault; then everything in it is sealed anew under it."""
    yield from _revoke(core, vault.uid)
    yield from keyrings.update(core, lambda ring: ring.with_rotated_vault(vault.uid))
    entry = core.keyring().entry(vault.uid)
    if entry is None:
        raise VaultNotFound
    opened = vaults.open_entry(core, entry)
    yield from _Resealing(core, progress).run([opened])
    return opened


def _revoke(core: Core, vault: str | None) -> Effects[None]:
    """Revoke the API keys of every token, or of those for one vault."""
    for key in (yield from sessions_and_keys.api_keys(core)):
        if vault is None or (key.vault_uids is not None and vault in key.vault_uids):
            yield from sessions_and_keys.revoke_key(core, key.uid)


def finish(core: Core, progress: Progress | None, *, restored: bool) -> Effects[None]:
    """Seal anew whatever is not of the newest generation.

    `restored`: a person says that the server was restored from a backup of before a rotation. What it shows of that
    time is taken then, and the API keys that the backup has brought back are revoked.
    """
    if not restored:
        yield from reseal(core, progress)
        return
    yield from _revoke(core, None)
    found = yield from vaults.list_with_rows(core)
    opened = [msgspec.structs.replace(vault, keys=_without_floor(vault.keys)) for vault, _ in found]
    yield from _Resealing(core, progress, restored=True).run(opened)


def reseal(core: Core, progress: Progress | None) -> Effects[None]:
    """Seal anew whatever is not of the newest generation."""
    yield from _Resealing(core, progress).run((yield from vaults.list_vaults(core)))


def _without_floor(keys: VaultKeys) -> VaultKeys:
    return msgspec.structs.replace(keys, floor=keys.keys[0].generation)


class _Resealing:
    """One run over vaults, with what was done so far."""

    def __init__(self, core: Core, progress: Progress | None, *, restored: bool = False) -> None:
        self._core = core
        self._progress = progress
        self._restored = restored
        self._done = self._total = 0
        self._floors: dict[str, int] = {}  # of the vaults in which nothing older is left

    def run(self, opened: list[OpenVault]) -> Effects[None]:
        """The names and the blobs of the vaults; then their documents, vault by vault; then the floors."""
        for vault in opened:
            row = yield from vaults.update_wire(self._core, vault)
            self._total += row.documents or 0
        for vault in opened:
            scope = msgspec.structs.replace(documents.key_scope(vault.keys), restored=self._restored)
            yield from self._documents(scope, vault.keys.newest.generation)
        yield from keyrings.update(self._core, self._with_floors)

    def _with_floors(self, ring: Keyring) -> Keyring | None:
        """Say in the directory that nothing is current that is older than this."""
        changed = ring
        for uid, floor in self._floors.items():
            entry = ring.entry(uid)
            if entry is not None and entry.floor < floor:
                changed = changed.with_entry(uid, floor=floor)
        return None if changed is ring else changed

    def _documents(self, scope: KeyScope, newest: int) -> Effects[None]:
        """The documents of a vault, and the deleted ones whose content is still there."""
        listing, left, told = Listing(self._core, scope, 0), False, set[str]()
        while listing.more:
            page = yield from listing.page()
            old = [one for one in page if _is_old(one, newest)]
            live = [one for one in old if not one.deleted]
            done = {one.uid for one in page if not one.deleted} - told  # what was sealed anew comes again
            told |= done
            self._report_progress(len(done) - len(live))
            for writes in (
                BatchWrites(self._core, scope, replacements((one, one.raw) for one in live)),
                BatchWrites(self._core, scope, deletions(one for one in old if one.deleted)),
            ):
                while writes.more:
                    results = yield from writes.page()
                    for result in results:
                        if result.error is not None:
                            left = (yield from self._retry(scope, result, newest)) or left
                    self._report_progress(sum(result.uid in done for result in results))
        if not left:
            self._floors[scope.vault] = newest

    def _retry(self, scope: KeyScope, refused: WriteResult, newest: int) -> Effects[bool]:
        """Somebody changed it meanwhile; whether what is there is older still. Then the next run sees to it."""
        if not isinstance(refused.error, DocumentConflict | DocumentNotFound):
            raise refused.error or DocumentNotFound
        now = yield from documents.get(self._core, scope, refused.uid, deleted=True)
        return _is_old(now, newest)

    def _report_progress(self, more: int) -> None:
        self._done += more
        if self._progress is not None:
            self._total = max(self._total, self._done)  # others may write meanwhile
            self._progress(self._done, self._total)


def _is_old(document: Document, newest: int) -> bool:
    """Whether a document is to be sealed anew. A deletion whose content the server has thrown away cannot be."""
    return seal.read_proof(document.proof).generation < newest and not document._emptied  # noqa: SLF001 - of the package
