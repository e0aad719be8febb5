"""`strongroom web verify`: compares the web app that a server serves with this release, or with a manifest."""

from __future__ import annotations

import hashlib
import random
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from strongroom.cli import terminal
from strongroom.cli.exit_codes import FAILED, UNREACHABLE
from strongroom.cli.strict_http import LARGEST, AmbiguousResponse, Connection, Host, Response, Unreachable
from strongroom.cli.web_request_headers import CACHED, REQUESTERS, headers_of, headers_with_copy
from strongroom.web_release import (
    MANIFEST,
    POLICY,
    PREFIX,
    REVALIDATED,
    SECURITY_HEADERS,
    WEB_APP,
    BadManifest,
    Manifest,
    content_type,
    is_hashed,
    parse_manifest,
    path_of,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Set as AbstractSet

_SHOWN: Final = 100  # differences
_MOST_ADDRESSES: Final = 8
_POLICY_HEADER: Final = "content-security-policy"
_PLAIN: Final = re.compile(r"[!-~]+")
_OWN_SERVER: Final = "connect-src 'self'"
_ORIGIN: Final = re.compile(r"https?://(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(?::[0-9]{1,5})?")
# What besides the app's own headers may come: no browser does anything by them that matters here. All others are named
# as differences, known or not: a browser may obey them, as refresh, link or origin-trial.
_HARMLESS: Final = frozenset(
    (
        *("accept-ranges", "age", "cache-control", "cf-cache-status", "cf-ray", "connection", "content-encoding"),
        *("content-length", "content-type", "date", "etag", "expires", "keep-alive", "last-modified", "pragma"),
        *("server", "strict-transport-security", "transfer-encoding", "vary", "via"),
    )
)
# Of those that begin with x-, browsers obey or obeyed these.
_OBEYED: Final = frozenset(
    (
        *("x-content-security-policy", "x-dns-prefetch-control", "x-sourcemap", "x-ua-compatible"),
        *("x-webkit-csp", "x-webkit-csp-report-only", "x-xss-protection"),
    )
)
_SAME_HOST: Final = re.compile(r'h[23](?:-[0-9]+)?=":[0-9]{1,5}"(?:; *(?:ma|persist)=[0-9]+)*')  # alt-svc
_ONCE: Final = ("cache-control", "content-encoding", "content-type", "etag")


class _Address(NamedTuple):
    """Where the app is served: the host, its folder, and whether / of the host is that of the app's server."""

    host: Host
    folder: str
    has_root: bool

    @property
    def url(self) -> str:
        """The address as a text."""
        return f"{self.host.scheme}://{self.host.netloc}{self.folder}"


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
    address = _parse(options.url, is_apart=options.manifest is not None)
    expected = _expected(options.manifest)
    comparison = _Comparison(address, expected, is_apart=options.manifest is not None)
    try:
        comparison.run()
    except Unreachable as reason:
        terminal.print_error(f"{address.url} cannot be read: {reason}")
        return UNREACHABLE
    differences = comparison.lines()
    if not differences:
        terminal.print_line(
            f"{address.url} serves the web app of strongroom {expected.version}: all {len(expected.files)} files and "
            f"their security headers are the same."
        )
        terminal.print_line(comparison.limits())
        return 0
    for line in differences[:_SHOWN]:
        terminal.print_line(line)
    more = f" The first {_SHOWN} are shown." if len(differences) > _SHOWN else ""
    count = f"{len(differences)} differences" if len(differences) > 1 else "1 difference"
    terminal.print_line(
        f"{address.url} does not serve the web app of strongroom {expected.version}: {count}."
        f"{more} Enter no password there before you know why."
    )
    return FAILED


def _parse(text: str, *, is_apart: bool) -> _Address:
    try:
        url = urlsplit(text if "://" in text else f"https://{text}")
        port = url.port or (443 if url.scheme == "https" else 80)
        fits = url.scheme in {"http", "https"} and "@" not in url.netloc and _PLAIN.fullmatch(url.netloc + url.path)
    except ValueError:
        fits = None
    if not fits or url.query or url.fragment or not url.hostname:
        raise terminal.CommandFailed("URL must be an address like https://vault.example.com.")
    is_server = not url.path or (url.path == "/" and not is_apart)
    folder = PREFIX if is_server else url.path.rstrip("/") + "/"
    host = Host(url.scheme, url.netloc, url.hostname, port)
    return _Address(host, folder, has_root=is_server or (folder == PREFIX and not is_apart))


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


class _Comparison:
    """A comparison of what a server serves with a manifest."""

    def __init__(self, address: _Address, expected: Manifest, *, is_apart: bool) -> None:
        self._address = address
        self._expected = expected
        self._is_apart = is_apart
        self._reached: list[str] = []
        self._not_reached: list[str] = []
        self._servers: set[str] = set()  # that connect-src names
        self._found: dict[str, set[tuple[str, str]]] = {}  # who met each difference: the requester, the address

    def run(self) -> None:
        """Ask for everything, at every address of the host, in another order each time."""
        names = self._address.host.addresses()[:_MOST_ADDRESSES]
        failure = None
        for one in names:
            connection = Connection(self._address.host, one)
            try:
                self._look(connection, one)
                self._reached.append(one)
            except Unreachable as reason:
                if "certificate" in str(reason):
                    raise
                failure = reason
                self._not_reached.append(f"{one}: {reason}")
            finally:
                connection.close()
        if not self._reached and failure is not None:
            raise failure

    def lines(self) -> list[str]:
        """What differs, a line each; where not everybody meets it, who does."""
        shown = []
        for line, met in self._found.items():
            who, where = {requester for requester, _ in met}, {place for _, place in met}
            own = [] if "" in who or who >= set(REQUESTERS) else sorted(who)
            own += [f"at {place}" for place in sorted(where)] if len(where) < len(self._reached) else []
            shown.append(f"{line} (asked {', '.join(own)})" if own else line)
        return sorted(shown)

    def limits(self) -> str:
        """What was asked, and what that cannot show."""
        parts = []
        if self._servers:
            parts.append(f"The app may connect to {', '.join(sorted(self._servers))}: check that this is your server.")
        parts.append(
            f"Each file was asked for {len(REQUESTERS) + 1} times over HTTP/1.1 at {', '.join(self._reached)}: with "
            "headers like those of Chromium, Firefox and Safari, without them, and with the file in a cache."
        )
        if self._not_reached:
            parts.append(f"Not asked: {'; '.join(self._not_reached)}.")
        parts.append(
            "This shows what the server serves to this machine now. It could tell this command from a browser, and "
            "serve something else to people, over HTTP/2 or HTTP/3, or later. Who cannot trust it for that uses the "
            "command line."
        )
        return "\n".join(parts)

    def _look(self, connection: Connection, place: str) -> None:
        requests = [(name, requester) for name in (*self._expected.files, MANIFEST) for requester in REQUESTERS]
        random.shuffle(requests)
        for name, requester in requests:
            response = self._ask(connection, place, name, requester)
            if response is None:
                continue
            if requester == REQUESTERS[0] and response.status == 200 and len(response.all("etag")) == 1:
                self._ask(connection, place, name, CACHED, etag=response.all("etag")[0])
        if self._address.has_root:
            for path in ("/", PREFIX.removesuffix("/")):
                self._ask_redirect(connection, place, path)

    def _ask(self, connection: Connection, place: str, name: str, requester: str, etag: str = "") -> Response | None:
        """Ask for a file, and note what differs; the response, if there is one."""
        is_secure = self._address.host.scheme == "https"
        headers = (
            headers_with_copy(name, etag, is_secure=is_secure)
            if requester == CACHED
            else headers_of(requester, name, is_secure=is_secure)
        )
        try:
            response = connection.get(self._address.folder + path_of(name), headers)
        except AmbiguousResponse as reason:
            self._note(f"unclear    {name}: {reason}", requester, place)
            return None
        if requester == CACHED and response.status == 304:
            found = self._policy_differences(name, response, is_update=True)
        elif response.status != 200:
            found = [f"missing    {name}: the server responds with {response.status}"]
        else:
            found = [*self._content_differences(name, response), *self._policy_differences(name, response)]
        for line in found:
            self._note(line, requester, place)
        return response

    def _ask_redirect(self, connection: Connection, place: str, path: str) -> None:
        """Ask for a path that must lead to the app, with nothing in it that a browser shows or runs."""
        try:
            response = connection.get(path, headers_of(REQUESTERS[0], "index.html", is_secure=False))
        except AmbiguousResponse as reason:
            self._note(f"unclear    {path}: {reason}", "", place)
            return
        fits = response.status in {301, 302, 307, 308} and not response.content
        if not fits or response.all("location") not in ([PREFIX], [self._address.url]):
            self._note(f"altered    {path}: it must lead to {PREFIX}, and nothing else", "", place)
        expected = {"location", "content-security-policy", "referrer-policy", "x-content-type-options"}
        for line in _unexpected(path, response, expected):
            self._note(line, "", place)

    def _note(self, line: str, requester: str, place: str) -> None:
        self._found.setdefault(line, set()).add((requester, place))

    def _content_differences(self, name: str, response: Response) -> list[str]:
        codings = response.all("content-encoding")
        if codings not in ([], ["gzip"], ["identity"]):
            return [f"unclear    {name}: it comes as {', '.join(codings)[:40]!r}, which cannot be read here"]
        content = _unpacked(response.content) if codings == ["gzip"] else response.content
        if name == MANIFEST:
            return _manifest_differences(content, self._expected)
        if content is None or hashlib.sha256(content).hexdigest() != self._expected.files[name]:
            return [f"altered    {name}: its content is another"]
        return []

    def _policy_differences(self, name: str, response: Response, *, is_update: bool = False) -> list[str]:
        """How headers differ. Those of 304 change what a browser has: what they have must be right, the rest stays."""
        wanted = dict(SECURITY_HEADERS)
        if not is_hashed(name):
            wanted["cache-control"] = REVALIDATED
        if not is_update:
            wanted["content-type"] = content_type(name)
        found = []
        for header, value in wanted.items():
            given = response.all(header)
            if is_update and not given:
                continue
            if header == _POLICY_HEADER and self._is_apart and len(given) == 1:
                servers = _servers_of(given[0])
                self._servers.update(servers or ())
                fits = servers is not None
            else:
                fits = given == [value] or (header == "content-type" and _is_type(given, value))
            if not fits:
                found.append(f"header     {name}: {header.title()} must be sent once, and be: {value}")
        return found + _unexpected(name, response, wanted.keys())


def _is_type(given: list[str], wanted: str) -> bool:
    """Whether a media type is given once, however it is spelled."""
    return [one.lower().replace("; ", ";") for one in given] == [wanted.replace("; ", ";")]


def _unexpected(name: str, response: Response, expected: AbstractSet[str]) -> list[str]:
    """The headers of a response that are neither expected nor harmless, and those that come twice."""
    found = []
    for header, value in response.headers:
        is_harmless = header in _HARMLESS or (header.startswith("x-") and header not in _OBEYED)
        if header == "alt-svc":
            is_harmless = all(_SAME_HOST.fullmatch(part.strip()) for part in value.split(","))
        if header not in expected and not is_harmless:
            found.append(f"header     {name}: {header.title()[:60]} must not be sent: {value[:80]!r}")
        elif header in _ONCE and header not in expected and len(response.all(header)) > 1:
            found.append(f"header     {name}: {header.title()} must be sent once")
    return found


def _manifest_differences(content: bytes | None, expected: Manifest) -> list[str]:
    """How the server's own manifest differs; what it names besides is not fetched, and is a difference."""
    try:
        theirs = parse_manifest(content or b"")
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
    return found


def _servers_of(policy: str) -> list[str] | None:
    """The servers that connect-src names, if the rest of a policy is the app's; None if it is not."""
    given, own = policy.split("; "), list(POLICY)
    at = own.index(_OWN_SERVER)
    if len(given) != len(own) or [*given[:at], _OWN_SERVER, *given[at + 1 :]] != own:
        return None
    named = given[at].removeprefix(_OWN_SERVER).split(" ")
    is_list = given[at].startswith(_OWN_SERVER) and named[0] == ""
    return named[1:] if is_list and all(_ORIGIN.fullmatch(one) for one in named[1:]) else None


def _unpacked(raw: bytes) -> bytes | None:
    """The content of gzip, within bounds; None where it is not exactly one."""
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        content = unpacking.decompress(raw, LARGEST)
    except zlib.error:
        return None
    return content if unpacking.eof and not unpacking.unused_data else None
