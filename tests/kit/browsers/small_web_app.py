"""A small build of a web app, as web/build.js writes one: for tests of how it is served and compared."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Final

import strongroom

FILES: Final = {
    "index.html": b"<!doctype html><title>strongroom</title><script type=module src=assets/app-AAAA.js></script>",
    "operator/index.html": b"<!doctype html><title>strongroom</title>",
    "assets/app-AAAA.js": b"export const shown = 'a file that is worth its compression';\n" * 50,
    "assets/app-AAAA.css": b"body { margin: 0 }\n",
    "assets/icon-AAAA.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "service-worker.js": b"self.addEventListener('install', () => {});\n",
    "app.webmanifest": b"{}",
    "licences.txt": b"MIT\n",
}


def write(folder: Path, version: str = "1.2.3") -> Path:
    """Write the build; its folder."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    (folder / "manifest.json").write_text(json.dumps({"version": version, "files": sums}), "utf-8")
    return folder


def package(folder: Path) -> Path:
    """A copy of the package without any build of the app, for PYTHONPATH; where a build of it belongs."""
    source = Path(strongroom.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "static*")
    shutil.copytree(source, folder / "strongroom", ignore=ignored)
    docs = "server/api_docs/static"
    shutil.copytree(source / docs, folder / "strongroom" / docs)
    return folder / "strongroom" / "server" / "web" / "static"
