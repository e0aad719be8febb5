"""The data that every peer holds before it is timed: the same accounts, vaults, sizes and ciphertexts for all."""

from __future__ import annotations

import base64
import random
import uuid
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

MOST_CLIENTS: Final = 64
PAYLOAD_BYTES: Final = 1024  # characters of base64 in a document: the "1 KB" of every scenario
LISTED: Final = 1_000
UPDATES_EACH: Final = 16  # documents that each client updates in turn
MIXED_EACH: Final = 100  # documents in the vault that each client of the mixed load keeps in sync
ACCOUNTS: Final = 16  # accounts that log in
WRITERS: Final = 1_000  # accounts that write at once
PAGE: Final = 1_000  # documents in one answer, where a vault is listed in pages
SIZES: Final = {"100 B": 100, "10 KB": 10_240, "1 MB": 1_048_576}  # other sizes of documents, in characters
SIZED_EACH: Final = {100: 256, 10_240: 256, 1_048_576: 32}  # documents of each that are read
PASSWORD: Final = "correct horse battery staple"
COLLECTION: Final = "notes"

_RANDOM = random.Random(20)
HMAC: Final = "0" * 64
PAYLOADS: Final = [base64.b64encode(_RANDOM.randbytes(PAYLOAD_BYTES * 3 // 4)).decode() for _ in range(256)]


def payload(number: int, size: int = PAYLOAD_BYTES) -> str:
    """The ciphertext of document `number` of a vault."""
    return PAYLOADS[number % len(PAYLOADS)] if size == PAYLOAD_BYTES else _payload(number % 4, size)


@lru_cache
def _payload(number: int, size: int) -> str:
    return base64.b64encode(random.Random(number).randbytes(size * 3 // 4 + 3)).decode()[:size]


@dataclass
class Seeded:
    """A vault and the documents that lie in it, oldest change first."""

    name: str
    count: int
    size: int = PAYLOAD_BYTES  # characters of each document
    vault: str = ""  # its id, as the peer calls it
    uids: list[str] = field(default_factory=list)
    end: str = ""  # the cursor after the last change

    def payload(self, number: int) -> str:
        """The ciphertext of one of its documents."""
        return payload(number, self.size)


@dataclass
class Dataset:
    """All vaults of the owner, by what they are for."""

    large: Seeded
    listed: Seeded
    created: list[Seeded]  # one for each client, as of here
    updated: list[Seeded]
    mixed: list[Seeded]
    sized: dict[int, Seeded]  # by the size of its documents

    @property
    def vaults(self) -> list[Seeded]:
        """Every vault."""
        return [self.large, self.listed, *self.created, *self.updated, *self.mixed, *self.sized.values()]


def dataset(large: int) -> Dataset:
    """Descriptions of the vaults; the peer gives them ids and fills them."""
    return Dataset(
        Seeded("large", large),
        Seeded("listed", LISTED),
        [Seeded(f"created {number}", 0) for number in range(MOST_CLIENTS)],
        [Seeded(f"updated {number}", UPDATES_EACH) for number in range(MOST_CLIENTS)],
        [Seeded(f"mixed {number}", MIXED_EACH) for number in range(MOST_CLIENTS)],
        {size: Seeded(f"sized {size}", count, size) for size, count in SIZED_EACH.items()},
    )


def uuid7(milliseconds: int) -> str:
    """A UUIDv7 of this moment, as a server that makes such would have stored it."""
    tail = _RANDOM.getrandbits(74)
    number = milliseconds << 80 | 0x7 << 76 | (tail >> 62) << 64 | 0b10 << 62 | tail & (1 << 62) - 1
    return str(uuid.UUID(int=number))


def uuid4() -> str:
    """A random UUID."""
    return str(uuid.UUID(int=_RANDOM.getrandbits(128), version=4))
