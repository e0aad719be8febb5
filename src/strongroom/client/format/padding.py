"""Padding by Padmé, to at least 256 bytes."""

from __future__ import annotations

from typing import Final, NamedTuple

from strongroom.client.errors import Tampered
from strongroom.errors import Invalid

LEAST: Final = 256
MOST: Final = 2**30  # bytes of content
_HEAD: Final = 5  # kind of content, and its length in four bytes


class Content(NamedTuple):
    """What is sealed: its kind, and its bytes."""

    kind: int
    data: bytes

    def __repr__(self) -> str:
        return "Content(...)"


NOTHING: Final = 0
JSON: Final = 1
BYTES: Final = 2


def padded_length(length: int) -> int:
    """The length that this many bytes are padded to: at most twelve in a hundred more, from 256 on."""
    if length <= LEAST:
        return LEAST
    exponent = length.bit_length() - 1
    free = exponent - exponent.bit_length()  # low bits that are rounded up to zero
    mask = (1 << free) - 1
    return (length + mask) & ~mask


def pad(content: Content) -> bytes:
    """Content with its head and its padding."""
    size = len(content.data)
    if size > MOST:
        raise Invalid({"value": f"must be at most {MOST:,} bytes, and has {size:,}"})
    head = content.kind.to_bytes(1, "big") + size.to_bytes(4, "big")
    return (head + content.data).ljust(padded_length(_HEAD + size), b"\0")


def unpad(padded: bytes) -> Content:
    """The content, if head, length and padding are exactly those that `pad` makes."""
    size = int.from_bytes(padded[1:_HEAD], "big")
    end = _HEAD + size
    if len(padded) < LEAST or size > MOST or padded_length(end) != len(padded) or padded[0] > BYTES:
        raise Tampered
    if padded.count(0, end) != len(padded) - end or (padded[0] == NOTHING and size):
        raise Tampered
    return Content(padded[0], padded[_HEAD:end])
