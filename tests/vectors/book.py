"""How vectors are written down: every case is run when it is written, and says what it gives or how it is refused."""

from __future__ import annotations

import hashlib
from typing import Any

from strongroom.client.format import encoding
from strongroom.errors import Refusal
from tests.vectors.operations import OPERATIONS, Given

Case = dict[str, Any]

ACCOUNT_KEY = bytes(range(32)).hex()
OTHER_ACCOUNT_KEY = bytes(range(32, 64)).hex()
VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
OTHER_VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f7"
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

    def __call__(self, length: int) -> bytes:
        self._at += 1
        return hashlib.shake_256(f"{self._seed} {self._at}".encode()).digest(length)


class Book:
    """The cases of one chapter."""

    def __init__(self, about: str) -> None:
        self.about = about
        self.cases: list[Case] = []

    def good(self, name: str, does: str, given: Given) -> Given:
        """A case that succeeds; what it gives."""
        gives = OPERATIONS[does](given)
        self.cases.append({"name": name, "does": does, "given": given, "gives": gives})
        return gives

    def bad(self, name: str, does: str, given: Given, error: str = "tampered") -> None:
        """A case that is refused, with the code of the refusal."""
        try:
            gives = OPERATIONS[does](given)
        except Refusal as refusal:
            assert refusal.code == error, f"{name}: {refusal.code}"
        else:
            raise AssertionError(f"{name}: not refused, gives {gives}")
        if any((case["does"], case["given"]) == (does, given) for case in self.cases):
            return  # two ways to spoil something may come to the same
        self.cases.append({"name": name, "does": does, "given": given, "error": error})

    def spelled(self) -> dict[str, Any]:
        """The chapter as JSON holds it."""
        return {"format": encoding.FORMAT, "about": self.about, "cases": self.cases}


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    """The bytes with one bit turned over."""
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


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
    }
    if text.endswith("="):
        found["without its padding"] = text.rstrip("=")
        last = text.rstrip("=")[-1]
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        slack = alphabet[alphabet.index(last) ^ 1]
        found["with bits set that mean nothing"] = text.rstrip("=")[:-1] + slack + "=" * text.count("=")
    return {name: other for name, other in found.items() if other != text}
