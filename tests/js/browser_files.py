"""What a browser leaves on the disk."""

from __future__ import annotations

import re
from pathlib import Path


def assert_not_on_disk(folder: Path, secrets: list[str]) -> None:
    """No file of a browser's profile holds one of these, in UTF-8 or in UTF-16."""
    spelled = [secret.encode(kind) for secret in secrets for kind in ("utf-8", "utf-16-le")]
    pattern = re.compile(b"|".join(map(re.escape, spelled)))
    found = [path for path in folder.rglob("*") if path.is_file() and pattern.search(path.read_bytes())]
    assert found == []
