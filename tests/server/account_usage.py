"""What an account uses, as the server says and as its rows say."""

from __future__ import annotations

from typing import Any

from tests.kit.people.person import Person
from tests.kit.servers.populated_database import Rows


async def usage(person: Person, **more: Any) -> dict[str, int]:
    """What the account uses, as the server reports it."""
    told: dict[str, int] = (await person("GET", "/auth/me", **more)).json()["usage"]
    return {name: told[name] for name in ("documents", "bytes")}


async def kept_bytes(person: Person) -> int:
    """What the account's trash and history take, as the server reports it."""
    told: int = (await person("GET", "/auth/me")).json()["usage"]["kept"]
    return told


def recounted_kept_bytes(tables: Rows, owner: str, vault: str) -> int:
    """What the trash and the history of a vault take, counted row by row."""
    texts = [row[4:6] for row in tables["documents"] if (row[0], row[2]) == (owner, vault) and row[9] and not row[10]]
    texts += [row[5:7] for row in tables["versions"] if (row[0], row[3]) == (owner, vault)]
    texts += [row[3:5] for row in tables["blob_versions"] if row[:2] == (owner, vault)]
    return sum(256 + sum(len(text.encode()) for text in row if text is not None) for row in texts)
