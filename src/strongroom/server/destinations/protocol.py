"""The protocol of a backup destination, and what all kinds of destinations share."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from pathlib import Path

PIECE: Final = 4 * 1024 * 1024  # bytes that are sent or read at once
EDGE: Final = 64 * 1024  # bytes at the start and at the end of a file, compared to identify it
PARTIAL_SUFFIX: Final = ".half"


class CannotSend(Exception):  # noqa: N818 - the message is shown without a traceback
    """A backup could not be sent or fetched; the message is a sentence for the operator, without secrets."""


class Destination(Protocol):
    """Storage for files; a file appears completely or not at all."""

    label: str  # its name in messages

    async def __aenter__(self) -> Self:
        """Connect."""

    async def __aexit__(self, *_: object) -> None:
        """Disconnect."""

    async def sizes(self) -> dict[str, int]:
        """The names and sizes of the files there, without subfolders."""

    async def has(self, path: Path) -> bool:
        """Whether the file of the same name and size there is this one, by an inexpensive comparison."""

    async def put(self, path: Path) -> None:
        """Send a file, and verify that it arrived unchanged."""

    async def get(self, name: str, file: IO[bytes]) -> None:
        """Fetch a file."""

    async def delete(self, name: str) -> None:
        """Delete a file."""


def read_edges(path: Path) -> dict[int, bytes]:
    """The first and last bytes of a file that is not empty, by offset."""
    size = path.stat().st_size
    found = {}
    with path.open("rb") as file:
        for offset in sorted({0, max(0, size - EDGE)}):
            file.seek(offset)
            found[offset] = file.read(EDGE)
    return found
