"""How `strongroom web verify` asks for the files of the web app: with headers like those of browsers, and without."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from strongroom.cli.strict_http import Headers

WORKER: Final = "service-worker.js"
CACHED: Final = "as a browser with the file in its cache"  # the requester that has seen the file before
_DESTINATIONS: Final = {".html": "document", ".css": "style", ".svg": "image", ".webmanifest": "manifest"}
_MODES: Final = {"document": "navigate", "style": "no-cors", "image": "no-cors", "serviceworker": "same-origin"}
_PAGE: Final = "text/html,application/xhtml+xml,application/xml;q=0.9,"
_ANY: Final = "*/*"


class _Browser(NamedTuple):
    """What a browser says of itself."""

    agent: str
    language: str
    page: str
    image: str
    hints: Headers  # over https only


_BROWSERS: Final = {
    "Chromium": _Browser(
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36",
        "en-US,en;q=0.9",
        f"{_PAGE}image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
        "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        (
            ("sec-ch-ua", '"Not;A=Brand";v="8", "Chromium";v="150"'),
            ("sec-ch-ua-mobile", "?0"),
            ("sec-ch-ua-platform", '"Linux"'),
        ),
    ),
    "Firefox": _Browser(
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:150.0) Gecko/20100101 Firefox/150.0",
        "en-US,en;q=0.5",
        f"{_PAGE}*/*;q=0.8",
        "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
        (),
    ),
    "Safari": _Browser(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/18.5 Mobile/15E148 Safari/604.1",
        "en-US,en;q=0.9",
        f"{_PAGE}*/*;q=0.8",
        "image/webp,image/avif,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
        (),
    ),
}
_PROGRAMS: Final[dict[str, Headers]] = {
    "without a name": (("Accept", _ANY), ("Connection", "keep-alive")),
    "without compression": (("User-Agent", "curl/8.14.1"), ("Accept", _ANY), ("Accept-Encoding", "identity")),
}
REQUESTERS: Final = (*(f"as {name}" for name in _BROWSERS), *_PROGRAMS)


def headers_of(requester: str, name: str, *, is_secure: bool) -> Headers:
    """The headers of a request for a file."""
    if requester in _PROGRAMS:
        return _PROGRAMS[requester]
    browser = _BROWSERS[requester.removeprefix("as ")]
    kind = _destination(name)
    accepted = {"document": browser.page, "image": browser.image, "style": "text/css,*/*;q=0.1"}.get(kind, _ANY)
    found = [("Connection", "keep-alive"), *(browser.hints if is_secure else ())]
    if kind == "document":
        found.append(("Upgrade-Insecure-Requests", "1"))
    if kind == "serviceworker":
        found += [("Cache-Control", "max-age=0"), ("Service-Worker", "script")]
    found += [
        ("User-Agent", browser.agent),
        ("Accept", accepted),
        ("Sec-Fetch-Site", "none" if kind == "document" else "same-origin"),
        ("Sec-Fetch-Mode", _MODES.get(kind, "cors")),
        *([("Sec-Fetch-User", "?1")] if kind == "document" else []),
        ("Sec-Fetch-Dest", kind),
        ("Accept-Encoding", "gzip, deflate, br, zstd" if is_secure else "gzip, deflate"),
        ("Accept-Language", browser.language),
    ]
    return found


def headers_with_copy(name: str, etag: str, *, is_secure: bool) -> Headers:
    """The headers of a browser that has the file in its cache, and asks whether it is still the same."""
    return [*headers_of(REQUESTERS[0], name, is_secure=is_secure), ("If-None-Match", etag)]


def _destination(name: str) -> str:
    """What a browser fetches the file for."""
    if name == WORKER:
        return "serviceworker"
    if name.startswith("assets/argon2-worker-"):
        return "worker"
    if name.endswith(".js"):
        return "script"
    return _DESTINATIONS.get(PurePosixPath(name).suffix, "empty")
