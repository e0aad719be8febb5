"""`strongroom web verify`: compares the web app that a server serves with this release, or with a manifest."""

from __future__ import annotations

import hashlib
import http.client
import random
import ssl
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from strongroom.cli import terminal
from strongroom.cli.exit_codes import FAILED, UNREACHABLE
from strongroom.web_release import (
    MANIFEST,
    POLICY,
    PREFIX,
    SECURITY_HEADERS,
    WEB_APP,
    BadManifest,
    Manifest,
    content_type,
    parse_manifest,
    path_of,
)

if TYPE_CHECKING:
    import argparse

_SECONDS: Final = 20.0
_LARGEST: Final = 16 * 2**20  # bytes of a file, after gzip is undone
_SHOWN: Final = 100  # differences
_POLICY_HEADER: Final = "content-security-policy"
# A server that has something to hide would show it to browsers only, so every file is asked for as browsers ask.
_BROWSERS: Final = {
    "Chromium": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36",
    "Firefox": "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:150.0) Gecko/20100101 Firefox/150.0",
}
_DESTINATIONS: Final = {".html": "document", ".js": "script", ".css": "style", ".svg": "image"}
_ACCEPT: Final = {
    "document": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "style": "text/css,*/*;q=0.1",
    "image": "image/avif,image/webp,image/svg+xml,image/*,*/*;q=0.8",
}
_LIMITS: Final = (
    "Every file was asked for as Chromium and as Firefox ask. This shows what the server serves to this machine now: "
    "it could serve something else to other people, or later. Who cannot trust it for that uses the command line."
)


class _Served(NamedTuple):
    """A response: its status, its headers, its content."""

    status: int
    headers: http.client.HTTPMessage
    content: bytes


class _Unreachable(Exception):  # noqa: N818 - an outcome
    """The server does not respond."""


class _Address(NamedTuple):
    """Where the app is served: scheme, host and port, and its folder."""

    scheme: str
    netloc: str
    folder: str

    @property
    def url(self) -> str:
        """The address as a text."""
        return f"{self.scheme}://{self.netloc}{self.folder}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commands of `strongroom web`."""
    parser.description = "Check the web app of a server."
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    verifying = commands.add_parser("verify", help="compare the app that a server serves with this release")
    verifying.description = (
        "Fetch every file of the web app from a server, and compare it with the one that this release of strongroom "
        "carries; its security headers too. Install the release that the server runs, from a source that you trust."
    )
    verifying.add_argument("url", metavar="URL", help="the server, or the folder of an app that is hosted apart")
    verifying.add_argument(
        "--manifest", metavar="FILE", help="compare with this manifest instead: of a build of your own"
    )
    verifying.epilog = terminal.exit_codes(
        "all is the same", f"{FAILED} something differs", f"{UNREACHABLE} the server does not respond"
    )
    verifying.set_defaults(run=verify)


def verify(options: argparse.Namespace) -> int:
    """Compare; exit code 0 if everything is the same."""
    address = _parse(options.url)
    expected = _expected(options.manifest)
    try:
        differences = _compare(address, expected, is_apart=options.manifest is not None)
    except _Unreachable as reason:
        terminal.print_error(f"{address.url} cannot be read: {reason}")
        return UNREACHABLE
    count = len(expected.files)
    if not differences:
        terminal.print_line(
            f"{address.url} serves the web app of strongroom {expected.version}: all {count} files and their security "
            f"headers are the same.\n{_LIMITS}"
        )
        return 0
    for line in differences[:_SHOWN]:
        terminal.print_line(line)
    more = f" The first {_SHOWN} are shown." if len(differences) > _SHOWN else ""
    terminal.print_line(
        f"{address.url} does not serve the web app of strongroom {expected.version}: {len(differences)} differences."
        f"{more} Enter no password there before you know why."
    )
    return FAILED


def _parse(text: str) -> _Address:
    try:
        url = urlsplit(text if "://" in text else f"https://{text}")
        fits = url.scheme in {"http", "https"} and url.hostname and (url.port or 1) and "@" not in url.netloc
    except ValueError:
        fits = False
    if not fits or url.query or url.fragment:
        raise terminal.CommandFailed("URL must be an address like https://vault.example.com.")
    folder = url.path.rstrip("/") + "/"
    return _Address(url.scheme, url.netloc, PREFIX if folder == "/" else folder)


def _expected(file: str | None) -> Manifest:
    place = Path(WEB_APP) / MANIFEST if file is None else Path(file)
    try:
        return parse_manifest(place.read_bytes())
    except OSError as error:
        if file is None:
            raise terminal.CommandFailed(
                "this installation has no web app to compare with; a release has one, and make web builds it in a clone"
            ) from None
        raise terminal.CommandFailed(f"cannot read {file}: {error.strerror}") from None
    except BadManifest as reason:
        raise terminal.CommandFailed(f"{place} is no manifest of a web app: {reason}") from None


def _compare(address: _Address, expected: Manifest, *, is_apart: bool) -> list[str]:
    """What differs, a line each. The order of the requests is another each time."""
    found = _manifest_differences(address, expected)
    requests = [(name, browser) for name in expected.files for browser in _BROWSERS]
    random.shuffle(requests)
    lines: dict[str, list[str]] = {}
    connection: http.client.HTTPConnection | None = None
    for name, browser in requests:
        connection = connection or _connect(address)
        served = _fetch(connection, address, name, browser)
        if served.headers.get("connection", "").lower() == "close":
            connection.close()
            connection = None
        lines.setdefault(name, []).extend(_file_differences(name, served, expected.files[name], is_apart=is_apart))
    if connection is not None:
        connection.close()
    for name in sorted(lines):
        found += dict.fromkeys(lines[name])  # the same for both browsers: once
    return found


def _manifest_differences(address: _Address, expected: Manifest) -> list[str]:
    """How the server's own manifest differs; what it names besides is not fetched, and is a difference."""
    connection = _connect(address)
    served = _fetch(connection, address, MANIFEST, "Chromium")
    connection.close()
    if served.status != 200:
        return [f"missing    {MANIFEST}: the server responds with {served.status}"]
    try:
        theirs = parse_manifest(served.content)
    except BadManifest as reason:
        return [f"altered    {MANIFEST}: {reason}"]
    found = [
        f"extra      {name}: in the server's manifest, not in this one"
        for name in theirs.files.keys() - expected.files.keys()
    ]
    found += [
        f"missing    {name}: not in the server's manifest" for name in expected.files.keys() - theirs.files.keys()
    ]
    if theirs.version != expected.version:
        found.append(
            f"release    the server says that it serves {theirs.version[:40]!r}, and this is {expected.version}"
        )
    return sorted(found)


def _file_differences(name: str, served: _Served, expected: str, *, is_apart: bool) -> list[str]:
    if served.status != 200:
        return [f"missing    {name}: the server responds with {served.status}"]
    found = []
    if hashlib.sha256(served.content).hexdigest() != expected:
        found.append(f"altered    {name}: its content is another")
    if (served.headers.get("content-type") or "").replace(" ", "").lower() != content_type(name).replace(" ", ""):
        found.append(f"header     {name}: Content-Type must be {content_type(name)}")
    for header, value in SECURITY_HEADERS.items():
        given = served.headers.get_all(header) or []
        good = any(_allows_no_more(one) for one in given) if header == _POLICY_HEADER and is_apart else value in given
        if not good:
            found.append(f"header     {name}: {header.title()} must be: {value}")
    return found


def _allows_no_more(policy: str) -> bool:
    """Whether a policy is the app's, but for servers that connect-src names: the app is hosted apart from them."""
    given = [part.strip() for part in policy.split(";") if part.strip()]
    own = [part for part in given if not part.startswith("connect-src 'self'")]
    return own == [part for part in POLICY if not part.startswith("connect-src")] and "*" not in policy


def _connect(address: _Address) -> http.client.HTTPConnection:
    if address.scheme == "http":
        return http.client.HTTPConnection(address.netloc, timeout=_SECONDS)
    return http.client.HTTPSConnection(address.netloc, timeout=_SECONDS, context=ssl.create_default_context())


def _fetch(connection: http.client.HTTPConnection, address: _Address, name: str, browser: str) -> _Served:
    """One file, asked for as a browser asks. Redirects are not followed: a browser's address would change."""
    destination = "serviceworker" if name == "service-worker.js" else _DESTINATIONS.get(Path(name).suffix, "empty")
    headers = {
        "User-Agent": _BROWSERS[browser],
        "Accept": _ACCEPT.get(destination, "*/*"),
        "Accept-Language": "en-US,en;q=0.5",
        "Accept-Encoding": "gzip, deflate",
        "Sec-Fetch-Dest": destination,
        "Sec-Fetch-Mode": "navigate" if destination == "document" else "cors",
        "Sec-Fetch-Site": "none" if destination == "document" else "same-origin",
    }
    try:
        connection.request("GET", address.folder + path_of(name), headers=headers)
        response = connection.getresponse()
        raw = response.read(_LARGEST + 1)
        if len(raw) > _LARGEST:
            raise _Unreachable(f"{name} is larger than any file of the app")
    except ssl.SSLCertVerificationError as error:
        raise _Unreachable(f"its certificate is not trusted ({error.verify_message})") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise _Unreachable(f"no response ({reason})") from None
    return _Served(response.status, response.headers, _decoded(raw, response.headers.get("content-encoding", "")))


def _decoded(raw: bytes, coding: str) -> bytes:
    """The content without its coding, within bounds; what cannot be decoded is taken as it is, and differs."""
    if coding.strip().lower() not in {"gzip", "x-gzip", "deflate"}:
        return raw
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        content = unpacking.decompress(raw, _LARGEST)
    except zlib.error:
        return raw
    return content if unpacking.eof and not unpacking.unused_data else raw
