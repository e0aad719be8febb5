"""Streams in pieces, and shorter ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

PROBE: Final = b"GET /echo?probe HTTP/1.1\r\nHost: x\r\nX-Request-Id: probe\r\n\r\n"  # the end of every stream


@dataclass(frozen=True)
class Cut:
    """A stream in pieces."""

    pieces: Sequence[bytes]
    turns: Sequence[bool]  # whether the loop turns after a piece until nothing moves
    stalls: bool = False  # whether the client takes an answer only when all is sent

    def __str__(self) -> str:
        return f"cut as {[len(piece) for piece in self.pieces]}, turns {list(map(int, self.turns))}, {self.stalls=}"


async def fewest(stream: bytes, fails: Callable[[bytes], Awaitable[bool]]) -> bytes:
    """The stream with whole lines left out for as long as it still fails."""
    lines, at = stream.split(b"\r\n"), 0
    while at < len(lines):
        fewer = lines[:at] + lines[at + 1 :]
        if await fails(b"\r\n".join(fewer)):
            lines = fewer
        else:
            at += 1
    return b"\r\n".join(lines)
