"""What a browser leaves on the disk."""

from __future__ import annotations

from pathlib import Path


def assert_not_on_disk(folder: Path, secrets: list[str]) -> None:
    """No file of a browser's profile holds one of these, in UTF-8 or in UTF-16."""
    spelled = [(secret, secret.encode(kind)) for secret in secrets for kind in ("utf-8", "utf-16-le")]
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = [
        f"{path.relative_to(folder)} holds {secret!r}: {contents[max(0, at - 200) : at + 200]!r}"
        for path, contents in files.items()
        for secret, spelling in spelled
        if (at := contents.find(spelling)) >= 0
    ]
    assert not found, "\n".join(found)
