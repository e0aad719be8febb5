"""The files of a SQLite database."""

from __future__ import annotations

from pathlib import Path


def raw_bytes(where: str) -> bytes:
    """All bytes of all files of a SQLite database, its log included."""
    return b"".join(path.read_bytes() for path in Path(where).parent.iterdir() if path.is_file())
