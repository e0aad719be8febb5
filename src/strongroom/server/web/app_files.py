"""The files of the web app: read once, verified against the manifest of the build, served from memory."""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.server.settings import WEB_APP, BadSetting

if TYPE_CHECKING:
    from strongroom.server.response import Header

MANIFEST: Final = "manifest.json"
PREFIX: Final = "/app/"  # nothing of the API begins with it
_INDEX: Final = "index.html"
_NAME: Final = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9._-]*")
_TYPES: Final = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".json": b"application/json",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
    ".webmanifest": b"application/manifest+json",
}
_POLICY: Final = (
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
SECURITY_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-security-policy", "; ".join(_POLICY).encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", ", ".join(f"{name}=()" for name in _CLOSED).encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
IMMUTABLE: Final = b"public, max-age=31536000, immutable"  # the name holds a hash of the content
REVALIDATED: Final = b"no-cache"


class BadBuild(BadSetting):
    """A folder that is no complete build of the app; the message is a sentence for the operator."""


class Manifest(msgspec.Struct, frozen=True):
    """What a build wrote: the release, and the SHA-256 of every file but the manifest itself."""

    version: str
    files: dict[str, str]


class AppFile:
    """One file, in memory."""

    __slots__ = ("_compressed", "content", "content_type", "etag", "headers")

    def __init__(self, name: str, content: bytes) -> None:
        self.content = content
        self.content_type = _TYPES[Path(name).suffix]
        self.etag = hashlib.sha256(content).hexdigest()[:32]
        caching = IMMUTABLE if name.startswith("assets/") else REVALIDATED
        self.headers: tuple[Header, ...] = (
            (b"cache-control", caching),
            (b"vary", b"accept-encoding"),
            *SECURITY_HEADERS,
        )
        self._compressed: bytes | None = None

    def compressed(self) -> bytes:
        """The content after gzip: made when it is first asked for, so that a server starts at once."""
        if self._compressed is None:
            self._compressed = gzip.compress(self.content, mtime=0)
        return self._compressed


class AppFiles:
    """The files of a build, by the paths at which they are served: exactly these, so that no other file can be had."""

    def __init__(self, manifest: Manifest, contents: dict[str, bytes]) -> None:
        self.version = manifest.version
        self._files = {path_of(name).encode(): AppFile(name, content) for name, content in contents.items()}

    def find(self, path: bytes) -> AppFile | None:
        """The file at the path of a request, as it was sent: nothing is decoded or normalised."""
        return self._files.get(path)


def path_of(name: str) -> str:
    """The path at which a file is served: a page at its folder."""
    return PREFIX + (name.removesuffix(_INDEX) if name.endswith(_INDEX) else name)


def served(folder: str) -> AppFiles | None:
    """The app of the setting WEB; None where it is off, or where none was built into this package."""
    try:
        return load(folder) if folder else None
    except BadBuild:
        if folder == WEB_APP:
            return None
        raise


def warning(folder: str) -> str | None:
    """Why the app of this package is not served although it is not switched off."""
    try:
        if folder == WEB_APP:
            load(folder)
    except BadBuild as reason:
        return f"{reason} Only the API is served; WEB=off says that this is meant."
    return None


@lru_cache(maxsize=4)
def load(folder: str) -> AppFiles:
    """The files of the build in a folder; raises BadBuild if a file is missing or altered."""
    manifest, raw = read_manifest(Path(folder))
    contents = {MANIFEST: raw}
    for name, expected in manifest.files.items():
        if not _NAME.fullmatch(name) or Path(name).suffix not in _TYPES:
            raise BadBuild(f"The manifest of the web app in {folder} names {name!r}, which no build has.")
        try:
            contents[name] = (Path(folder) / name).read_bytes()
        except OSError as error:
            raise BadBuild(f"The web app in {folder} lacks {name}: {error.strerror}. Build it anew.") from None
        if hashlib.sha256(contents[name]).hexdigest() != expected:
            raise BadBuild(f"{name} of the web app in {folder} is not the one of its manifest. Build it anew.")
    return AppFiles(manifest, contents)


def read_manifest(folder: Path) -> tuple[Manifest, bytes]:
    """The manifest of the build in a folder, and its bytes; raises BadBuild."""
    try:
        raw = (folder / MANIFEST).read_bytes()
        return msgspec.json.decode(raw, type=Manifest), raw
    except OSError as error:
        if str(folder) == WEB_APP:
            raise BadBuild("The web app is not built here; 'make web' builds it.") from None
        raise BadBuild(f"There is no web app in {folder}: {MANIFEST} cannot be read ({error.strerror}).") from None
    except msgspec.MsgspecError:
        raise BadBuild(f"{MANIFEST} of the web app in {folder} is not one that a build writes.") from None
