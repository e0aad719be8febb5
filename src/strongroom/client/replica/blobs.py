"""Comparing a vault's blob with the one that is here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.client.errors import Tampered
from strongroom.client.format import seal
from strongroom.client.format.encoding import short
from strongroom.client.format.parents import Descent, Link
from strongroom.client.net import requests
from strongroom.client.operations import rollback, vaults
from strongroom.client.replica import outgoing

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.replica.local import Local
    from strongroom.client.replica.store.file import File
    from strongroom.client.replica.store.records import VaultRecord
    from strongroom.wire import responses


def reconcile(
    local: Local, scope: KeyScope, record: VaultRecord | None, row: responses.Vault
) -> Effects[tuple[responses.Vault, int]]:
    """Compare a vault's blob with the one that is here; the vault's row then, and the number of gaps.

    What a restored server has forgotten is sent again.
    """
    core, file = local.core, local.file
    if scope.vault_keys is None:
        return row, 0
    if row.data is not None:
        seal.open_blob(scope.vault_keys, row)
    if record is not None and record.epoch == row.epoch:
        rollback.check_blob(record.version, record.data, row.version, row.data)
    if record is None or record.data is None or (record.version, record.data) == (row.version, row.data):
        return row, 0
    if record.epoch == row.epoch:
        seen = Link(record.version, record.data)
        gaps = yield from vaults.require_blob_descent(core, row, seen)
        return row, gaps
    aside = file.vaults.blob_aside(row.uid)
    if aside is not None and aside.data == row.data:  # the server has it again
        file.vaults.drop_blob_aside(row.uid)
        return row, 0
    if row.version > record.version and row.data is not None:
        descent = yield from vaults.blob_descent(core, row, Link(record.version, record.data))
        if descent is not Descent.FORKED:
            return row, 0
    if row.version >= record.version or (row.data is not None and not _is_past(file, record, row.data)):
        file.vaults.put_blob_aside(record)
        return row, 0
    sealed = seal.SealedBlob(record.data, record.salt or "")
    call = requests.vaults.put(row.uid, record.wire, sealed, row.version, record.version)
    try:
        again = yield from core.session.send(call)
    except outgoing.REFUSED:
        file.vaults.put_blob_aside(record)
        return row, 0
    if (again.version, again.data, again.salt, again.name) != (record.version, sealed.data, record.salt, record.wire):
        raise Tampered("The server did not keep what it was given for a vault.")
    return again, 0


def _is_past(file: File, record: VaultRecord, data: str) -> bool:
    """Whether the blob that is here was made knowing of this one."""
    return seal.blob_parent(record.data or "") == short(data) or file.vaults.had_blob(record.uid, data)
