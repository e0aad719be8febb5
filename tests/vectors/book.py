"""How vectors are written down: every case is run when it is written, and says what it gives or how it is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from strongroom.client.format import encoding
from strongroom.errors import Refusal
from tests.vectors.operations import OPERATIONS, Given

Case = dict[str, Any]

ACCOUNT = bytes(range(160, 176)).hex()
OTHER_ACCOUNT = bytes(range(176, 192)).hex()
VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
OTHER_VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f7"
# Three generations of a vault's key, and another vault's.
VAULT_KEYS: list[list[Any]] = [
    [1, bytes(range(32)).hex()],
    [2, bytes(range(32, 64)).hex()],
    [7, bytes(range(128, 160)).hex()],
]
OTHER_KEYS: list[list[Any]] = [[1, bytes(range(192, 224)).hex()]]
UID = "0192f0c2-0000-7000-8000-000000000001"
OTHER_UID = "0192f0c2-0000-7000-8000-000000000002"
EMAIL = "ada@example.com"
PASSWORD = "correct horse battery staple"
NOON = 1_731_600_000_000


class Stream:
    """Bytes that look random and are always the same."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._at = 0
        self.drawn: list[str] = []

    def __call__(self, length: int) -> bytes:
        self._at += 1
        made = hashlib.shake_256(f"{self._seed} {self._at}".encode()).digest(length)
        self.drawn.append(made.hex())
        return made


class Book:
    """The cases of one chapter."""

    def __init__(self, about: str) -> None:
        self.about = about
        self.cases: list[Case] = []
        self._refused: set[str] = set()

    def good(self, name: str, does: str, given: Given) -> Given:
        """A case that succeeds; what it gives."""
        gives = OPERATIONS[does](given)
        self.cases.append({"name": name, "does": does, "given": given, "gives": gives})
        return gives

    def write(self, name: str, does: str, given: Given) -> Given:
        """A case of a writer that draws randomness: what it draws becomes part of what is given."""
        random = Stream(f"{self.about} {len(self.cases)}")
        OPERATIONS[does]({**given, "random": random})
        return self.good(name, does, {**given, "random": random.drawn})

    def bad(self, name: str, does: str, given: Given, error: str = "tampered") -> None:
        """A case that is refused, with the code of the refusal."""
        try:
            gives = OPERATIONS[does](given)
        except Refusal as refusal:
            assert refusal.code == error, f"{name}: {refusal.code}"
        else:
            raise AssertionError(f"{name}: not refused, gives {gives}")
        spelled = repr((does, given))
        if spelled not in self._refused:  # two ways to spoil something may come to the same
            self._refused.add(spelled)
            self.cases.append({"name": name, "does": does, "given": given, "error": error})

    def spelled(self) -> dict[str, Any]:
        """The chapter as JSON holds it."""
        return {"format": encoding.FORMAT, "about": self.about, "cases": self.cases}


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    """The bytes with one bit turned over."""
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


def damaged(data: bytes, parts: dict[str, int]) -> Iterator[tuple[str, bytes]]:
    """The bytes with a bit turned over at the beginning, in the middle and at the end of each part; cut; prolonged.

    `parts` says where each part begins, in ascending order.
    """
    starts = [*parts.values(), len(data)]
    for part, start, end in zip(parts, starts, starts[1:], strict=False):
        for at, bit in sorted({(start, 0), ((start + end) // 2, 3), (end - 1, 7)}):
            yield f"bit {bit} of byte {at} is turned over ({part})", flipped(data, at, bit)
    for part, start in list(parts.items())[1:]:
        yield f"it ends before its {part}", data[:start]
    for part, start, end in zip(parts, starts, starts[1:], strict=False):
        if data[start:end].strip(b"\0"):
            yield f"its {part} is zeros", data[:start] + bytes(end - start) + data[end:]
        if end - start > 2:
            yield f"its {part} is a byte shorter", data[:start] + data[start + 1 :]
    yield "it is empty", b""
    yield "it loses its last byte", data[:-1]
    yield "it loses its first byte", data[1:]
    yield "it gains a byte", data + b"\0"
    yield "it gains a block", data + bytes(16)
    yield "it gains a byte before", b"\0" + data
    yield "it stands twice", data + data
    yield "it is turned round", data[::-1]
    yield "it is all zeros", bytes(len(data))
    yield "it is all ones", b"\xff" * len(data)


def refusal_of(data: bytes, otherwise: str = "tampered") -> str:
    """How bytes are refused that begin with a format: as those of a newer or an older client, where it is another."""
    return otherwise if data[:1] in {b"", b"\0", b"\2"} else "unsupported"


def flipped_text(text: str, at: int, bit: int = 0) -> str:
    """Base64 of the same bytes with one bit turned over."""
    return encoding.to_base64(flipped(encoding.from_base64(text), at, bit))


def spellings(text: str) -> dict[str, str]:
    """Other texts that a careless reader of base64 takes for the same bytes."""
    found = {
        "with a line feed at the end": text + "\n",
        "with a line feed inside": text[:8] + "\n" + text[8:],
        "with a space before": " " + text,
        "in the other alphabet": text.replace("+", "-").replace("/", "_"),
        "with text after it": text + "AAAA",
        "with a sign that is none": text[:8] + "!" + text[9:],
        "with a letter from outside ASCII": text[:8] + "é" + text[9:],
        "with padding inside": text[:8] + "====" + text[8:],
    } | {f"with {count} signs of padding too many": text + "=" * count for count in range(1, 5)}
    if text.endswith("="):
        found["without its padding"] = text.rstrip("=")
        last = text.rstrip("=")[-1]
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        slack = alphabet[alphabet.index(last) ^ 1]
        found["with bits set that mean nothing"] = text.rstrip("=")[:-1] + slack + "=" * text.count("=")
    return {name: other for name, other in found.items() if other != text}
