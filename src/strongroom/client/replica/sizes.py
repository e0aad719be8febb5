"""The size of requests: what a document needs, and what the server accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom.client.net import requests
from strongroom.errors import PayloadTooLarge

if TYPE_CHECKING:
    from strongroom.client.format.seal import Sealed
    from strongroom.client.replica.store.file import File

_FACT: Final = "max body bytes"
_LEAST: Final = 1_024  # no server has a lower limit
_AROUND: Final = 4_096  # bytes of a request besides the data of one document, at most
_DELETION: Final = 100  # bytes of the operation that follows on a notice of deletion, at most


class RequestLimit:
    """The largest request that the server accepts, as far as this replica knows."""

    def __init__(self, file: File) -> None:
        self._file = file
        known = file.fact(_FACT)
        self.max_bytes = None if known is None else int(known)
        self.asked = False  # whether the server was asked since the replica was opened

    def learn(self, max_bytes: object) -> None:
        """Remember what the server says, unless no server has such a limit."""
        if isinstance(max_bytes, int) and max_bytes >= _LEAST and max_bytes != self.max_bytes:
            self.max_bytes = max_bytes
            self._file.set_fact(_FACT, str(max_bytes))

    def require(self, uid: str, wire: str, sealed: Sealed) -> None:
        """Refuse a document that the server would not accept for its size."""
        if self.max_bytes is not None and len(sealed.data) + _AROUND > self.max_bytes:
            size = requests.batches.single_size(uid, wire, sealed)
            if size > self.max_bytes:
                raise PayloadTooLarge(self.max_bytes, size, too_large(size, self.max_bytes))

    def takes_deletion(self, uid: str, wire: str, sealed: Sealed) -> bool:
        """Whether the server accepts a notice of deletion, as far as its size goes."""
        return self.max_bytes is None or requests.batches.single_size(uid, wire, sealed) + _DELETION <= self.max_bytes


def too_large(size: int, limit: int) -> str:
    """The sentence for a value that the server does not accept for its size."""
    return (
        f"This document needs a request of {size:,} bytes, encrypted and padded, and the server accepts at most "
        f"{limit:,}. Make it smaller, or split it."
    )
