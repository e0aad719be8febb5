"""The files of the web app: read once, verified against the manifest of the build, served from memory."""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom import web_release
from strongroom.server.settings import BadSetting
from strongroom.web_release import MANIFEST, PREFIX, WEB_APP

if TYPE_CHECKING:
    from strongroom.server.response import Header

SECURITY_HEADERS: Final = tuple((name.encode(), value.encode()) for name, value in web_release.SECURITY_HEADERS.items())
REVALIDATED: Final = web_release.REVALIDATED.encode()
_IMMUTABLE: Final = b"public, max-age=31536000, immutable"  # the name holds a hash of the content


class BadBuild(BadSetting):
    """A folder that is no complete build of the app; the message is a sentence for the operator."""


class AppFile:
    """One file, in memory."""

    __slots__ = ("_compressed", "content", "content_type", "etag", "headers")

    def __init__(self, name: str, content: bytes) -> None:
        self.content = content
        self.content_type = web_release.content_type(name).encode()
        self.etag = hashlib.sha256(content).hexdigest()[:32]
        caching = _IMMUTABLE if web_release.is_hashed(name) else REVALIDATED
        common = ((b"cache-control", caching), (b"vary", b"accept-encoding"))
        self.headers: tuple[Header, ...] = (*common, *SECURITY_HEADERS)
        self._compressed: bytes | None = None

    def compressed(self) -> bytes:
        """The content after gzip: made when it is first asked for, so that a server starts at once."""
        if self._compressed is None:
            self._compressed = gzip.compress(self.content, mtime=0)
        return self._compressed


class AppFiles:
    """The files of a build, by the paths at which they are served: exactly these, so that no other file can be had."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self._files = {
            (PREFIX + web_release.path_of(name)).encode(): AppFile(name, content) for name, content in contents.items()
        }

    def find(self, path: bytes) -> AppFile | None:
        """The file at the path of a request, as it was sent: nothing is decoded or normalised."""
        return self._files.get(path)


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
    try:
        raw = (Path(folder) / MANIFEST).read_bytes()
        manifest = web_release.parse_manifest(raw)
    except OSError as error:
        if folder == WEB_APP:
            raise BadBuild("The web app is not built here; 'make web' builds it.") from None
        raise BadBuild(f"There is no web app in {folder}: {MANIFEST} cannot be read ({error.strerror}).") from None
    except web_release.BadManifest as reason:
        raise BadBuild(f"{MANIFEST} of the web app in {folder} cannot be used: {reason}. Build it anew.") from None
    contents = {MANIFEST: raw}
    for name, expected in manifest.files.items():
        try:
            contents[name] = (Path(folder) / name).read_bytes()
        except OSError as error:
            raise BadBuild(f"The web app in {folder} lacks {name}: {error.strerror}. Build it anew.") from None
        if hashlib.sha256(contents[name]).hexdigest() != expected:
            raise BadBuild(f"{name} of the web app in {folder} is not the one of its manifest. Build it anew.")
    return AppFiles(contents)
