"""A build of the web app: its manifest, the paths of its files, and the headers that each of them is served with.

The server shares it with `strongroom web verify`, which runs without a server.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

WEB_APP: Final = str(Path(__file__).parent / "server" / "web" / "static")  # where `make web` writes
MANIFEST: Final = "manifest.json"
PREFIX: Final = "/app/"  # nothing of the API begins with it
_INDEX: Final = "index.html"
_NAME: Final = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*")
_SUM: Final = re.compile(r"[0-9a-f]{64}")
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
}
REVALIDATED: Final = "no-cache"  # how caches treat a file whose name holds no hash
POLICY: Final = (
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",  # Argon2id is WebAssembly
    "style-src 'self'",
    "img-src 'self' blob:",
    "font-src 'none'",
    "connect-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types strongroom strongroom-service-worker",
)
_CLOSED: Final = (
    *("accelerometer", "autoplay", "camera", "clipboard-read", "display-capture", "encrypted-media"),
    *("fullscreen", "geolocation", "gyroscope", "hid", "magnetometer", "microphone", "midi", "payment"),
    *("picture-in-picture", "screen-wake-lock", "serial", "usb", "xr-spatial-tracking"),
)
# The security headers of every file of the app.
SECURITY_HEADERS: Final = {
    "content-security-policy": "; ".join(POLICY),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": ", ".join(f"{name}=()" for name in _CLOSED),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class BadManifest(Exception):  # noqa: N818 - the message is shown without a traceback
    """A manifest that no build writes; the message says why."""


class Manifest(msgspec.Struct, frozen=True):
    """What a build wrote: the release, and the SHA-256 of every file but the manifest itself."""

    version: str
    files: dict[str, str]


def parse_manifest(raw: bytes) -> Manifest:
    """Read a manifest; raises BadManifest."""
    try:
        found = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadManifest("it is not one that a build writes") from None
    for name, sum_ in found.files.items():
        if not _NAME.fullmatch(name) or PurePosixPath(name).suffix not in _TYPES or not _SUM.fullmatch(sum_):
            raise BadManifest(f"it names {name[:100]!r}, which no build has")
    return found


def content_type(name: str) -> str:
    """The media type of a file, by its name."""
    return _TYPES[PurePosixPath(name).suffix]


def is_hashed(name: str) -> bool:
    """Whether the name of a file holds a hash of its content: it never changes."""
    return name.startswith("assets/")


def path_of(name: str) -> str:
    """The path of a file below the folder of the app: a page is at its folder."""
    return name.removesuffix(_INDEX) if name.endswith(_INDEX) else name
