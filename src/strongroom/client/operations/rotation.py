"""Rotation: new keys for the account or a vault, and everything sealed anew under them.

What is still to do follows from the generations on the wire: an interrupted rotation goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from strongroom.client.format import derive, seal
from strongroom.client.operations import accounts, documents, keyrings, sessions_and_keys, vaults
from strongroom.client.operations.batches import BatchWrites, WriteResult, replacements
from strongroom.client.operations.listing import Listing
from strongroom.errors import DocumentConflict, DocumentNotFound, VaultNotFound

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
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


def reseal(core: Core, progress: Progress | None) -> Effects[None]:
    """Seal anew whatever is not of the newest generation."""
    yield from _Resealing(core, progress).run((yield from vaults.list_vaults(core)))


class _Resealing:
    """One run over vaults, with what was done so far."""

    def __init__(self, core: Core, progress: Progress | None) -> None:
        self._core = core
        self._progress = progress
        self._done = self._total = 0

    def run(self, opened: list[OpenVault]) -> Effects[None]:
        """The names and the blobs of the vaults; then their documents, vault by vault."""
        for vault in opened:
            row = yield from vaults.update_wire(self._core, vault)
            self._total += row.documents or 0
        for vault in opened:
            yield from self._documents(documents.key_scope(vault.keys), vault.keys.newest.generation)

    def _documents(self, scope: KeyScope, newest: int) -> Effects[None]:
        listing = Listing(self._core, scope, None)
        while listing.more:
            page = yield from listing.page()
            old = [one for one in page if seal.read_proof(one.proof).generation != newest]
            self._report_progress(len(page) - len(old))
            writes = BatchWrites(self._core, scope, replacements((one, one.raw) for one in old))
            while writes.more:
                results = yield from writes.page()
                for result in results:
                    if result.error is not None:
                        yield from self._retry(scope, result)
                self._report_progress(len(results))

    def _retry(self, scope: KeyScope, refused: WriteResult) -> Effects[None]:
        """Somebody changed it meanwhile: what they wrote may be of the old generation still."""
        if not isinstance(refused.error, DocumentConflict | DocumentNotFound):
            raise refused.error or DocumentNotFound
        try:
            now = yield from documents.get(self._core, scope, refused.uid)
            if seal.read_proof(now.proof).generation != scope.key(now.wire).newest.generation:
                yield from documents.replace_raw(self._core, scope, now, now.raw)
        except (DocumentConflict, DocumentNotFound):
            pass  # changed or deleted again: a writer that has the new keys, or the next run, sees to it

    def _report_progress(self, more: int) -> None:
        self._done += more
        if self._progress is not None:
            self._total = max(self._total, self._done)  # others may write meanwhile
            self._progress(self._done, self._total)
