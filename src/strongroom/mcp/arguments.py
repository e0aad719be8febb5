"""Patterns of command lines. A command line fits a pattern word by word; there is no repetition and no shell.

A word of a pattern is taken literally, or has one of these placeholders in it:

    {number}   1 to 20 digits
    {word}     1 to 100 letters, digits, `.`, `_` and `-`, of which the first is no `-` and no `.`
    {text}     1 to 4,096 printable characters, of which the first is no `-`
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

PLACEHOLDERS: Final = {
    "{number}": r"[0-9]{1,20}",
    "{word}": r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}",
    "{text}": r"(?!-)[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,4096}",
}
_BRACES: Final = re.compile(r"\{[^{}]*\}")


class UnknownPlaceholderError(ValueError):
    """A word in braces that means nothing."""


def compile_word(word: str) -> re.Pattern[str]:
    """The pattern of a word."""
    found = _BRACES.findall(word)
    unknown = [one for one in found if one not in PLACEHOLDERS]
    if unknown:
        raise UnknownPlaceholderError(unknown[0])
    parts = _BRACES.split(word)
    middle = [PLACEHOLDERS[one] for one in found] + [""]
    return re.compile("".join(re.escape(part) + between for part, between in zip(parts, middle, strict=True)))


def fits(words: Sequence[re.Pattern[str]], given: Sequence[str]) -> bool:
    """Whether a command line fits."""
    return len(words) == len(given) and all(
        word.fullmatch(one) is not None for word, one in zip(words, given, strict=True)
    )
