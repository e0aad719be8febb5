"""Rollback detection: refuses anything older than what this device has seen.

A proof shows that a key holder made something, not that it is current. So a device records, for each document, its
collection, the newest version and its proof; for an account, its id, the newest keyring and the strongest key
derivation.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.format import primitives
from strongroom.client.format.derive import Descriptor, Floor
from strongroom.client.format.encoding import from_url, to_url
from strongroom.client.format.keyring import Keyring
from strongroom.model import Document

OLDER_KEYRING: Final = "The server sent an older keyring than this device has seen."
TWO_KEYRINGS: Final = "The server shows a keyring that was made without knowing of the one that this device has seen."
OLD_KEYS: Final = "The server shows a newer keyring that was made without the keys that this device has seen."
_TWO_CONTENTS: Final = "The server shows two contents for one version; one of them was withheld from this device."
_MOVED: Final = "The server shows a document in another collection than the one that it was created in."


class SeenRow(Struct, frozen=True, array_like=True):
    """The newest version of a document that this device has seen, and the collection that it is in for good."""

    version: int
    proof: str
    collection: str


def require_collection(seen: str, row: Document) -> None:
    """Refuse a document that is shown in another collection: whoever has the keys of that one has none of this."""
    if row.collection != seen:
        raise Tampered(_MOVED)


def next_row(seen: SeenRow | None, row: Document) -> SeenRow:
    """The record after a row was opened. Refuses another collection, an older version, other content of the same."""
    now = SeenRow(row.version, row.hmac or "", row.collection)
    if seen is None:
        return now
    require_collection(seen.collection, row)
    if row.version > seen.version:
        return now
    if row.version < seen.version:
        raise RolledBack
    if now != seen:
        raise Tampered(_TWO_CONTENTS)
    return seen


def digest(data: str | None) -> str | None:
    """The digest of a blob, for comparison."""
    return None if data is None else to_url(primitives.sha256(data.encode("utf-8")))


def check_blob(version: int, blob: str | None, new_version: int, new_blob: str | None) -> None:
    """Refuse another blob for a version that was seen, and a vault without the blob that it had."""
    if blob is not None and new_blob is None:
        raise Tampered("The server shows a vault without the blob that this device has seen in it.")
    if version == new_version and blob != new_blob:
        raise Tampered(_TWO_CONTENTS)


class SeenAccount(Struct, frozen=True, kw_only=True):
    """The newest state of an account that this device has seen. Holds no secret."""

    account: str
    version: int
    digest: str
    identity: str  # `Keyring.identity_checks` of the newest generation
    memory: int
    passes: int

    @property
    def floor(self) -> Floor:
        """The minimum parameters of a descriptor of this account."""
        return Floor(self.memory, self.passes)


def is_gap(keyring: Keyring, version: int, digest: bytes) -> bool:
    """Whether a keyring does not say if it follows on one that was seen, by its version and digest: too long ago.

    One that says that it follows on another is refused.
    """
    follows = keyring.version == version or keyring.follows_on(version, digest)
    if follows is False:
        raise Tampered(TWO_KEYRINGS)
    return follows is None


def next_account(seen: SeenAccount | None, keyring: Keyring, descriptor: Descriptor) -> SeenAccount:
    """What to remember after a keyring that was opened. Another account's, or an older one, is refused."""
    now = SeenAccount(
        account=to_url(keyring.account),
        version=keyring.version,
        digest=to_url(keyring.digest),
        identity=keyring.identity_checks()[-1],
        memory=descriptor.memory,
        passes=descriptor.passes,
    )
    if seen is None:
        return now
    if now.account != seen.account:
        raise Tampered("The server sent the keyring of another account.")
    if now.version < seen.version:
        raise RolledBack(OLDER_KEYRING)
    if now.version == seen.version and now.digest != seen.digest:
        raise Tampered(TWO_KEYRINGS)
    is_gap(keyring, seen.version, from_url(seen.digest))
    if seen.identity not in keyring.identity_checks():
        raise Tampered(OLD_KEYS)
    descriptor.check(seen.floor)
    return now
