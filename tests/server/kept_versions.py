"""The versions that a history keeps."""

from __future__ import annotations

from typing import Any

from tests.kit.people.person import Person


async def kept_versions(person: Person, path: str, **more: Any) -> list[int]:
    """The numbers of the kept versions, as they are listed."""
    answer = await person("GET", f"{path}/versions", **more)
    assert answer.status_code == 200, answer.text
    return [version["version"] for version in answer.json()["versions"]]
