"""Following the writer: a process that only reads a replica takes the newer keyring that the writer has stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.client.errors import Locked, Tampered
from strongroom.client.format import keyring
from strongroom.client.format.derive import Descriptor
from strongroom.client.operations.rollback import TWO_KEYRINGS

if TYPE_CHECKING:
    from strongroom.client.operations.core import Core
    from strongroom.client.replica.store.file import File


def follow_keys(core: Core, file: File) -> None:
    """Use the keyring in the file, if it is newer than the one in use and was made knowing of it."""
    ring, sealed = core.ring, file.fact("keyring")
    if ring is None or sealed is None or file.is_writer or int(file.fact("keyring version") or 0) <= ring.version:
        return
    try:
        newer = keyring.reopen(sealed, ring.key)
    except Tampered:
        raise Locked("The account's keys were rotated; log in again.") from None
    if newer.follows_on(ring.version, ring.digest) is False:
        raise Tampered(TWO_KEYRINGS)
    descriptor = Descriptor.read(file.fact("descriptor"))
    core.device.record_account(core.email or "", newer, descriptor)
    core.ring, core.sealed, core.descriptor = newer, sealed, descriptor
