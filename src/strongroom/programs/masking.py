"""Masking: a filter that replaces secrets in the output of a program.

It looks for each secret as it is, and encoded as base64, for URLs, for JSON and for shells. It prevents accidents: a
program that wants to show a secret can always encode it in another way.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK: Final = b"<masked>"
SHORTEST: Final = 4  # characters; shorter values are not masked, because they occur everywhere
_PIECE: Final = 512  # longer forms are searched in pieces, so that little of the output is held back
_KEY: Final = 4  # bytes by which a form is looked for; the shortest has so many
_WRAPPED: Final = (64, 76)  # where openssl and base64 begin a new line
_SAFE: Final = ("", "/", "!*'()", "!*'();/?:@&=+$,#")  # what encoders of URLs leave as it is


class Masker:
    """Masks these values. Each stream of output needs a filter of its own."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {piece for value in values for form in _forms(value) for piece in _pieces(form)}
        self.forms: Final = sorted(forms)
        self.longest: Final = max(map(len, forms), default=0)
        self.first: Final = frozenset(form[0] for form in forms)
        self._by_key: Final[dict[bytes, list[bytes]]] = {}
        for form in sorted(forms, key=len, reverse=True):
            self._by_key.setdefault(form[:_KEY], []).append(form)
        self._search: Final = _any_of(self._by_key).search

    def find(self, text: bytes, begin: int) -> tuple[int, int] | None:
        """Where the next secret begins and ends; the longest one, if several begin there."""
        while (match := self._search(text, begin)) is not None:
            begin = match.start()
            for form in self._by_key[match[0]]:
                if text.startswith(form, begin):
                    return begin, begin + len(form)
            begin += 1
        return None

    def filter(self) -> Filter:
        """A filter for one stream."""
        return Filter(self)

    def __call__(self, text: bytes) -> bytes:
        """A whole text, masked."""
        one = self.filter()
        return one.feed(text) + one.end()

    def __repr__(self) -> str:
        return "Masker()"  # not its values


def is_maskable(value: str) -> bool:
    """Whether a value is long enough to be masked."""
    return len(value) >= SHORTEST


class Filter:
    """The filter of one stream: what may be the beginning of a secret is held back until more is known."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = b""
        self._masked = (
            -1
        )  # so many bytes of what is held belong to a secret that was replaced; -1: none came just before

    def feed(self, data: bytes) -> bytes:
        """Take output; what can be shown of it."""
        text = self._held + data
        return self._show(text, self._undecided(text))

    def end(self) -> bytes:
        """The rest, when no more output comes. The beginning of a secret, which was cut off, is replaced too."""
        held, masked = self._held, self._masked
        self._held, self._masked = b"", -1
        if len(held) < SHORTEST:
            return held[max(0, masked) :]
        return MASK if masked < 0 else b""

    def _undecided(self, text: bytes) -> int:
        """Where the earliest end of the text begins that a secret may begin with."""
        forms, first = self._masker.forms, self._masker.first
        for at in range(max(0, len(text) - self._masker.longest + 1), len(text)):
            if text[at] in first:
                rest = text[at:]
                found = bisect_left(forms, rest)
                if found < len(forms) and forms[found] == rest:
                    found += 1  # a whole form, but perhaps the beginning of another one
                if found < len(forms) and forms[found].startswith(rest):
                    return at
        return len(text)

    def _show(self, text: bytes, end: int) -> bytes:
        """Show the text up to here, and hold the rest. Secrets that overlap or touch are replaced together."""
        shown = bytearray()
        done = max(0, self._masked)  # shown or replaced up to here
        covered = self._masked  # secrets that were found reach to here
        at = 0
        while (found := self._masker.find(text, at)) is not None and found[0] < end:
            if found[0] > covered:
                shown += text[done : found[0]] + MASK
            covered = done = max(covered, found[1])
            at = found[0] + 1
        shown += text[done:end]
        self._held = text[end:]
        self._masked = max(-1, covered - end)
        return bytes(shown)


def _pieces(form: str) -> Iterator[bytes]:
    """A form as bytes, in pieces that are not too long; the last one overlaps the one before it."""
    data = form.encode("utf-8", "surrogateescape")
    if len(data) <= _PIECE:
        yield data
        return
    for at in range(0, len(data) - _PIECE, _PIECE):
        yield data[at : at + _PIECE]
    yield data[-_PIECE:]


def _forms(value: str) -> Iterator[str]:
    """The forms in which a value is looked for."""
    if not is_maskable(value):
        return
    lines = [line.strip() for line in value.splitlines()]
    for line in lines if len(lines) > 1 else [value, *lines]:
        if is_maskable(line):
            yield line
            yield from _in_shells(line)
    for text in {value, value.strip()}:  # with and without the newline at its end
        if is_maskable(text):
            yield from _for_urls(text)
            yield from _in_json(text)
            yield from filter(is_maskable, _in_base64(text))


def _for_urls(value: str) -> Iterator[str]:
    for safe in _SAFE:
        encoded = quote(value, safe=safe, errors="surrogateescape")
        yield encoded
        yield re.sub("%..", lambda match: match[0].lower(), encoded)
    yield quote_plus(value, errors="surrogateescape")


def _in_json(value: str) -> Iterator[str]:
    for ascii_only in (True, False):
        encoded = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield encoded
        yield encoded.replace("/", "\\/")
        for sign in "<>&":  # as Go does
            encoded = encoded.replace(sign, f"\\u{ord(sign):04x}")
        yield encoded


def _in_shells(value: str) -> Iterator[str]:
    """Between single quotes, and between double quotes, as shells and Python show it."""
    yield value.replace("'", "'\\''")
    yield value.replace("'", "'\"'\"'")
    yield re.sub(r'(["$`\\])', r"\\\1", value)
    yield repr(value)[1:-1]


def _in_base64(value: str) -> Iterator[str]:
    """Alone, and within a longer text: at each of three offsets, without the signs that depend on the neighbours."""
    data = value.encode("utf-8", "surrogateescape")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            encoded = encode(bytes(offset) + data).decode().rstrip("=")
            begin = (0, 2, 3)[offset]
            yield encoded[begin:]
            if (offset + len(data)) % 3:
                yield encoded[begin:-1]
        whole = encode(data).decode()
        for text in {whole, whole.rstrip("=")[:-1] if len(data) % 3 else whole}:  # alone, and with a newline after it
            for width in _WRAPPED:
                yield from (text[at : at + width] for at in range(0, len(text), width) if len(text) > width)


def _any_of(keys: Iterable[bytes]) -> re.Pattern[bytes]:
    """A pattern that finds any of these keys; those with the same first two bytes are tried together."""
    groups: dict[bytes, dict[bytes, list[bytes]]] = {}
    for key in keys:
        groups.setdefault(key[:1], {}).setdefault(key[1:2], []).append(key[2:])
    firsts = []
    for first, seconds in groups.items():
        rests = (re.escape(second) + _either(map(re.escape, rest)) for second, rest in seconds.items())
        firsts.append(re.escape(first) + _either(rests))
    return re.compile(_either(firsts) if firsts else b"(?!)")


def _either(patterns: Iterable[bytes]) -> bytes:
    return b"(?:" + b"|".join(patterns) + b")"
