"""What a device remembers, and what it therefore does not believe any more.

A signature says that something was true once. Only memory says that it is not old: a device keeps, for each document,
the newest version and its proof; for an account, its id, the newest keyring and the strongest key derivation.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.format import primitives
from strongroom.client.format.derive import Descriptor, Floor
from strongroom.client.format.encoding import to_url
from strongroom.client.format.keyring import Keyring
from strongroom.model import Document

_TWO_CONTENTS: Final = "The server shows two contents for one version; one of them was withheld from this device."


class SeenRow(Struct, frozen=True):
    """The newest that this device has seen of a document."""

    version: int
    proof: str


def next_row(seen: SeenRow | None, row: Document) -> SeenRow:
    """What to remember after a row that was opened. An older version, or another content of the same, is refused."""
    now = SeenRow(row.version, row.hmac or "")
    if seen is None or row.version > seen.version:
        return now
    if row.version < seen.version:
        raise RolledBack
    if now != seen:
        raise Tampered(_TWO_CONTENTS)
    return seen


def digest(data: str | None) -> str | None:
    """What is remembered of a blob."""
    return None if data is None else to_url(primitives.sha256(data.encode("utf-8")))


def check_blob(version: int, blob: str | None, new_version: int, new_blob: str | None) -> None:
    """Refuse another blob for a version that was seen, and a vault that has lost its blob: nothing takes one away."""
    if blob is not None and new_blob is None:
        raise Tampered("The server shows a vault without the blob that this device has seen in it.")
    if version == new_version and blob != new_blob:
        raise Tampered(_TWO_CONTENTS)


class SeenAccount(Struct, frozen=True, kw_only=True):
    """The newest that this device has seen of an account: no secret is in it."""

    account: str
    version: int
    digest: str
    memory: int
    passes: int

    @property
    def floor(self) -> Floor:
        """What a descriptor of this account must not fall below."""
        return Floor(self.memory, self.passes)


def next_account(seen: SeenAccount | None, keyring: Keyring, sealed: str, descriptor: Descriptor) -> SeenAccount:
    """What to remember after a keyring that was opened. Another account's, or an older one, is refused."""
    now = SeenAccount(
        account=to_url(keyring.keys.account),
        version=keyring.version,
        digest=to_url(primitives.sha256(sealed.encode("ascii"))),
        memory=descriptor.memory,
        passes=descriptor.passes,
    )
    if seen is None:
        return now
    if now.account != seen.account:
        raise Tampered("The server sent the keyring of another account.")
    if now.version < seen.version:
        raise RolledBack("The server sent an older keyring than this device has seen.")
    if now.version == seen.version and now.digest != seen.digest:
        raise Tampered("The server shows two keyrings of one version.")
    descriptor.check(seen.floor)
    return now
