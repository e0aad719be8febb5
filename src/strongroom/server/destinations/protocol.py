"""The protocol of a destination of backups, and what all kinds of destinations share."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from pathlib import Path

PIECE: Final = 4 * 1024 * 1024  # bytes that are sent or read at once
EDGE: Final = 64 * 1024  # bytes of the beginning and of the end of a file by which it is told from another
HALF: Final = ".half"


class CannotSend(Exception):  # noqa: N818 - said to the operator in one sentence
    """A backup could not be sent or fetched; the message is a sentence for the operator, without secrets."""


class Destination(Protocol):
    """A place for files, each of which appears whole or not at all."""

    named: str  # what a sentence calls it

    async def __aenter__(self) -> Self:
        """Connect."""

    async def __aexit__(self, *_: object) -> None:
        """Let go."""

    async def sizes(self) -> dict[str, int]:
        """The names and sizes of the files that lie there; what lies below them does not count."""

    async def has(self, path: Path) -> bool:
        """Whether the file there of the same name and size is this one, as far as that can be told at little cost."""

    async def put(self, path: Path) -> None:
        """Send a file, and see that it arrived as it is here."""

    async def get(self, name: str, file: IO[bytes]) -> None:
        """Fetch a file."""

    async def delete(self, name: str) -> None:
        """Delete a file."""


def edges_of(path: Path) -> dict[int, bytes]:
    """The first and the last bytes of a file that is not empty, by where they begin."""
    size = path.stat().st_size
    found = {}
    with path.open("rb") as file:
        for offset in sorted({0, max(0, size - EDGE)}):
            file.seek(offset)
            found[offset] = file.read(EDGE)
    return found
