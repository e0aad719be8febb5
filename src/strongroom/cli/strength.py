"""How strong a password is that a person has chosen: an upper bound, for nobody can know how it was chosen."""

from __future__ import annotations

import itertools
import math
import re
from typing import Final

WEAK: Final = 45  # bits: each guess takes a second of a computer, and an attacker has thousands for years
FAIR: Final = 65
_WORD: Final = 11.0  # bits of a word that was drawn from a list of some thousand
_COMMON: Final = frozenset(
    {"password", "passwort", "qwerty", "qwertz", "azerty", "letmein", "welcome", "admin", "iloveyou", "monkey",
     "dragon", "secret", "master", "strongroom", "football", "baseball", "sunshine", "princess", "login", "abc", "test"}
)  # fmt: skip
_CLASSES: Final = ((r"[a-z]", 26), (r"[A-Z]", 26), (r"[0-9]", 10), (r"[^a-zA-Z0-9]", 33))


def bits(password: str) -> float:
    """At most so many bits: of the cheaper way to guess it, by its words or by its characters."""
    by_characters = len(_without_runs(password)) * math.log2(
        max(2, sum(size for pattern, size in _CLASSES if re.search(pattern, password)))
    )
    words = [word for word in re.split(r"[\W\d_]+", password.casefold()) if word]
    if not words or any(char.isalpha() and char.isupper() for char in password[1:]):
        return by_characters
    rest = len(re.sub(r"[^\W\d_]", "", password)) * math.log2(10)
    by_words = sum(3.0 if word in _COMMON else min(_WORD, len(word) * math.log2(26)) for word in set(words))
    separators = math.log2(10) if len(words) > 1 else rest
    return min(by_characters, by_words + separators)


def sentence(password: str) -> str:
    """What to say about a new master password."""
    found = bits(password)
    if found < WEAK:
        return (
            f"This master password is weak (at most {found:.0f} bits): whoever copies the server's data can guess it. "
            "Five random words are better; run: strongroom passwd"
        )
    if found < FAIR:
        return f"This master password is fair (at most {found:.0f} bits, if it was chosen at random)."
    return f"This master password is strong (at most {found:.0f} bits, if it was chosen at random)."


def _without_runs(password: str) -> str:
    """Repeated characters, and those that follow on each other (abc, 321), count once."""
    kept = password[:1]
    for before, char in itertools.pairwise(password):
        if abs(ord(char) - ord(before)) > 1:
            kept += char
    return kept
