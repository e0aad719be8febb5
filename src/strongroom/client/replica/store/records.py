"""What the tables of a replica hold, as values."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from strongroom.model import Document

PUT: Final = "put"
DELETE: Final = "delete"
DIVERGED: Final = -1  # the base of a change that follows on nothing that the server has
DELETE_ONLY: Final = "bury"  # the notice is stored, the server's own deletion is not


Head: TypeAlias = tuple[int, str | None, int, int, str]  # version, proof, created_at, updated_at, collection


class Mark(NamedTuple):
    """The newest row of a document that was seen: no restore lowers it, only a person's decision."""

    version: int
    hmac: str
    collection: str
    deleted: bool

    def is_above(self, row: Document) -> bool:
        """Whether a row is older than this, or another one of the same version."""
        return row.version < self.version or (row.version == self.version and row.hmac != self.hmac)


class VaultRecord(Struct, frozen=True, kw_only=True):
    """A vault as last pulled. Everything up to `cursor` was received.

    `start` is the vault's clock when a first download began that has not ended yet.
    """

    uid: str
    wire: str
    version: int
    clock: int
    epoch: str
    cursor: int
    start: int | None = None
    data: str | None = None
    salt: str | None = None


class Entry(Struct, frozen=True, kw_only=True):
    """An outbox entry: a change sealed as `version`, and the version of the server's row that it is based on.

    What is sent gets a version above `floor`. `before` is the row that the change was made from.
    """

    vault: str
    uid: str
    collection: str
    kind: str
    data: str
    hmac: str
    version: int
    base: int
    floor: int = 0
    before: Document | None = None
    made_at: int = 0
    seq: int = 0

    def __repr__(self) -> str:
        return f"Entry(uid={self.uid!r}, kind={self.kind!r}, base={self.base})"


class RefusalRecord(Struct, frozen=True, kw_only=True):
    """Why the server refused the queued change of a document. `max_bytes` and `size` are of a request."""

    vault: str
    uid: str
    kind: str
    max_bytes: int | None = None
    size: int | None = None


class RenamedVault(Struct, frozen=True):
    """A vault that was made on this device under a name that another device has taken meanwhile, and its new name."""

    uid: str
    wanted: str
    name: str
