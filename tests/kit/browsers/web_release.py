"""A build of the web app as a release: its name in the service worker, and a newer one made from it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path


def encoded(content: bytes) -> str:
    """The hash of a file, as the service worker has it."""
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


def newer_release(folder: Path, target: Path) -> Path:
    """A copy of a build as a newer release has it: another page, and scripts with other names; its folder."""
    manifest = json.loads((folder / "manifest.json").read_text())
    parts = {path.name: f"{path.stem}0.js" for path in (folder / "assets").glob("*.js")}
    release = release_of(folder)
    sums: dict[str, str] = {}

    def renamed(text: bytes) -> bytes:
        for before, after in parts.items():
            text = text.replace(before.encode(), after.encode())
        return text

    for name in sorted(manifest["files"], key=lambda name: name == "service-worker.js"):  # it comes last
        before = (folder / name).read_bytes()
        after = renamed(before).replace(b"<body>", b'<body data-release="newer">')
        if name == "service-worker.js":
            for old, new in {**sums, release: encoded(b"newer")}.items():
                assert old.encode() in after or old == new
                after = after.replace(old.encode(), new.encode())
        elif not name.endswith(".txt"):
            sums[encoded(before)] = encoded(after)
        path = target / renamed(name.encode()).decode()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(after)
    files = [path for path in target.rglob("*") if path.is_file()]
    manifest["files"] = {
        path.relative_to(target).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    (target / "manifest.json").write_text(json.dumps(manifest))
    return target


def release_of(folder: Path) -> str:
    """The hash by which the service worker of a build names its cache."""
    worker = (folder / "service-worker.js").read_text()
    sums = {encoded(path.read_bytes()) for path in folder.rglob("*") if path.is_file()}
    found: str
    [found] = {one for one in re.findall(r"[A-Za-z0-9+/]{43}=", worker) if one not in sums}
    return found
