"""Generates passwords and passphrases, and says how many bits they have: how many equally likely ones there are."""

from __future__ import annotations

import math
import secrets
import string
from typing import Final, NamedTuple

LETTERS: Final = string.ascii_letters + string.digits
SYMBOLS: Final = "!#$%&*+-./:;=?@^_~"  # neither quotes nor backslashes, which shells and forms treat in their own ways
LENGTHS: Final = range(8, 257)
WORDS: Final = range(3, 33)
# Words that nobody has to have heard: five letters that can be spoken, 16.9 bits each.
_CONSONANTS: Final = "bdfghjklmnprstvwz"
_VOWELS: Final = "aeiou"
_WORD: Final = (_CONSONANTS, _VOWELS, _CONSONANTS, _VOWELS, _CONSONANTS)


class Generated(NamedTuple):
    """A secret, and how many bits it has."""

    value: str
    bits: float

    def __repr__(self) -> str:
        return f"Generated(bits={self.bits:.0f})"


def generate_password(length: int = 20, *, symbols: bool = True) -> Generated:
    """A password of letters and digits, and of symbols unless they are not wanted; of each kind at least one."""
    if length not in LENGTHS:
        raise ValueError(f"A password has {LENGTHS.start} to {LENGTHS.stop - 1} characters.")
    kinds = [string.ascii_lowercase, string.ascii_uppercase, string.digits, *([SYMBOLS] if symbols else [])]
    alphabet = "".join(kinds)
    while True:  # drawing anew until all kinds are there keeps all that are left equally likely
        value = "".join(secrets.choice(alphabet) for _ in range(length))
        if all(set(kind) & set(value) for kind in kinds):
            return Generated(value, _bits(kinds, length))


def generate_passphrase(words: int = 5, *, separator: str = "-") -> Generated:
    """A passphrase of words that can be spoken and typed."""
    if words not in WORDS:
        raise ValueError(f"A passphrase has {WORDS.start} to {WORDS.stop - 1} words.")
    made = ["".join(secrets.choice(letters) for letters in _WORD) for _ in range(words)]
    return Generated(separator.join(made), words * sum(math.log2(len(letters)) for letters in _WORD))


def _bits(kinds: list[str], length: int) -> float:
    """Those with every kind: all, less those that lack a kind, counted by inclusion and exclusion."""
    count = 0
    for chosen in range(1 << len(kinds)):
        left = [kind for at, kind in enumerate(kinds) if not chosen >> at & 1]
        sign = -1 if chosen.bit_count() % 2 else 1
        count += sign * sum(len(kind) for kind in left) ** length
    return math.log2(count)
