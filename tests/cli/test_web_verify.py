"""`strongroom web verify`: what a server serves is compared with the release, and every lie is told."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from strongroom.cli import web
from strongroom.web_release import SECURITY_HEADERS, content_type, path_of
from tests.kit.browsers import small_web_app
from tests.kit.browsers.small_web_app import FILES
from tests.kit.programs.command_line import strongroom
from tests.kit.samples import some
from tests.kit.servers.process import Server

Answer = tuple[int, dict[str, str | list[str]], bytes]
Lie = Callable[[str, Any, Answer], Answer | bytes]


@contextmanager
def lying(folder: Path, lie: Lie, address: str = "127.0.0.1", port: int = 0, *, prefix: str = "/app/") -> Iterator[str]:
    """A server of the build in a folder that answers as `lie` says: of the name, the request's headers, the truth.

    The name of a path that is no file is the path. Bytes are sent as they are, and the connection is closed.
    """
    names = {f"{prefix}{path_of(name)}": name for name in [*FILES, "manifest.json"]}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            name = names.get(self.path, self.path)
            told = lie(name, self.headers, self.truth(name))
            if isinstance(told, bytes):
                self.wfile.write(told)
                self.close_connection = True
                return
            status, headers, content = told
            self.send_response(status)
            for header, given in headers.items():
                for value in [given] if isinstance(given, str) else given:
                    self.send_header(header, value)
            if "transfer-encoding" not in headers:
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def truth(self, name: str) -> Answer:
            if name in {"/", "/app"}:
                return 302, {"location": "/app/"}, b""
            if name.startswith("/"):
                return 404, {}, b""
            content = (folder / name).read_bytes()
            headers: dict[str, str | list[str]] = {**SECURITY_HEADERS, "content-type": content_type(name)}
            etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            headers |= {"etag": etag, "cache-control": "no-cache" if not name.startswith("assets/") else "immutable"}
            return (304, headers, b"") if self.headers.get("If-None-Match") == etag else (200, headers, content)

        def log_message(self, *_: object) -> None:
            pass

    class Lying(ThreadingHTTPServer):
        daemon_threads = True

    with Lying((address, port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def verify(folder: Path, url: str, *options: str) -> tuple[int, str, str]:
    """The exit code of a comparison with the manifest of a build, and what it says."""
    done = strongroom(folder, "web", "verify", url, "--manifest", str(folder / "manifest.json"), *options)
    return done.returncode, done.stdout, done.stderr


def truth(_name: str, _headers: Any, answer: Answer) -> Answer:
    return answer


def on(wanted: str, **changes: Any) -> Lie:
    """A lie about one file: another status or content, headers that are changed or, with None, left out.

    It is told to those for whom `to` holds: of the headers of a request.
    """
    to = changes.get("to", lambda _headers: True)

    def lie(name: str, asked: Any, answer: Answer) -> Answer:
        if name != wanted or not to(asked):
            return answer
        status, headers, content = answer
        for header, value in changes.get("headers", {}).items():
            headers = {key: one for key, one in headers.items() if key != header}
            if value is not None:
                headers[header] = value
        told = changes.get("status", status)
        return told, headers, b"" if told == 304 else changes.get("content", content)

    return lie


def on_later_requests() -> Lie:
    """The first request for a file gets the truth, and later ones something else."""
    seen: set[str] = set()

    def lie(name: str, _headers: Any, answer: Answer) -> Answer:
        is_first = name not in seen
        seen.add(name)
        return answer if is_first or name != "service-worker.js" else (200, answer[1], b"evil()")

    return lie


def raw(make: Callable[[bytes, bytes], bytes], wanted: str = "index.html") -> Lie:
    """A lie in the bytes of a response: made of the lines of its true headers, and its true content."""

    def lie(name: str, _headers: Any, answer: Answer) -> Answer | bytes:
        if name != wanted or answer[0] == 304:
            return answer
        _, headers, content = answer
        return make("".join(f"{key}: {value}\r\n" for key, value in headers.items()).encode(), content)

    return lie


OK = b"HTTP/1.1 200 OK\r\n"


def sized(content: bytes) -> bytes:
    return b"content-length: %d\r\n" % len(content)


def whole(head: bytes, content: bytes) -> bytes:
    return OK + head + sized(content) + b"\r\n" + content


def chunked(head: bytes, content: bytes, trailer: bytes = b"", extension: bytes = b"") -> bytes:
    body = b"%x%b\r\n%b\r\n0\r\n%b\r\n" % (len(content), extension, content, trailer)
    return OK + head + b"transfer-encoding: chunked\r\n\r\n" + body


def with_manifest(**more: str) -> bytes:
    sums = dict.fromkeys(FILES, "0" * 64) | more
    return json.dumps({"version": "1.2.3", "files": sums}).encode()


POLICY = SECURITY_HEADERS["content-security-policy"]
WRONG_POLICY = "header     index.html: Content-Security-Policy must be sent once, and be: default-src 'none'"
BOMB = gzip.compress(b"\0" * (64 * 2**20))
ZIPPED = {"content-encoding": "gzip"}
PAGE = FILES["index.html"]


def with_policy(*policies: str) -> Lie:
    return on("index.html", headers={"content-security-policy": list(policies)})


def changed(before: str, after: str) -> Lie:
    assert before in POLICY
    return with_policy(POLICY.replace(before, after))


# Headers by which a browser does something, or which nobody knows.
OBEYED = {
    "refresh": "0;url=https://evil.example/",
    "link": "<https://evil.example/x.js>; rel=preload; as=script",
    "location": "https://evil.example/",
    "clear-site-data": '"storage"',
    "service-worker-allowed": "/",
    "set-cookie": "a=b",
    "report-to": "{}",
    "reporting-endpoints": 'a="https://evil.example/"',
    "nel": "{}",
    "content-security-policy-report-only": "default-src 'none'; report-uri https://evil.example/",
    "speculation-rules": '"/rules.json"',
    "origin-trial": "token",
    "sourcemap": "https://evil.example/map",
    "x-sourcemap": "https://evil.example/map",
    "x-dns-prefetch-control": "on",
    "x-xss-protection": "1",
    "accept-ch": "Sec-CH-UA-Model",
    "critical-ch": "Sec-CH-UA-Model",
    "use-as-dictionary": 'match="/app/*"',
    "content-disposition": "attachment",
    "default-style": "evil",
    "access-control-allow-origin": "*",
    "alt-svc": 'h3="evil.example:443"',
    "trailer": "refresh",
    "cross-origin-embedder-policy": "unsafe-none",
    "a-header-of-next-year": "evil",
}


LIES: list[tuple[Lie, str]] = [
    (on("index.html", content=b"<script src=evil.js>"), "altered    index.html: its content is another"),
    (on("service-worker.js", content=b"", status=200), "altered    service-worker.js: its content is another"),
    (on("operator/index.html", status=404), "missing    operator/index.html: the server responds with 404"),
    (
        on("index.html", status=302, headers={"location": "/evil/"}),
        "missing    index.html: the server responds with 302",
    ),
    (on("assets/app-AAAA.js", status=206), "missing    assets/app-AAAA.js: the server responds with 206"),
    (on("manifest.json", status=404), "missing    manifest.json: the server responds with 404"),
    (on("manifest.json", content=b"{}"), "altered    manifest.json: it is not one that a build writes"),
    (on("manifest.json", content=with_manifest(**{"assets/evil.js": "1" * 64})), "extra      assets/evil.js"),
    (on("manifest.json", content=b'{"version": "1.2.3", "files": {}}'), "missing    licences.txt: not in the server's"),
    (
        on("manifest.json", content=b'{"version": "9\\u001b[2J", "files": {}}'),
        r"release    the server says that it serves '9\x1b[2J'",
    ),
    # headers
    (on("index.html", headers={"content-security-policy": None}), WRONG_POLICY),
    (changed("'self' 'wasm", "'self' https://evil.example 'wasm"), WRONG_POLICY),
    (changed("; require-trusted-types-for 'script'", ""), WRONG_POLICY),
    (changed("connect-src 'self'", "connect-src 'self' *"), WRONG_POLICY),
    (changed("connect-src 'self'", "connect-src 'self' https:"), WRONG_POLICY),
    (changed("connect-src 'self'", "connect-src 'self' https://*.evil.example"), WRONG_POLICY),
    (changed("connect-src 'self'", "connect-src 'selfish'"), WRONG_POLICY),
    (changed("connect-src 'self'", "connect-src 'self', default-src *"), WRONG_POLICY),
    (changed("connect-src 'self'", "connect-src *; connect-src 'self'"), WRONG_POLICY),
    (with_policy(POLICY, "default-src 'none'; report-uri https://evil.example/"), WRONG_POLICY),
    (with_policy(POLICY, POLICY), WRONG_POLICY),
    (
        on("index.html", headers={"cross-origin-opener-policy": "unsafe-none"}),
        "index.html: Cross-Origin-Opener-Policy must",
    ),
    (
        on("index.html", headers={"cross-origin-opener-policy": ["same-origin", "unsafe-none"]}),
        "index.html: Cross-Origin-Opener-Policy must",
    ),
    (on("index.html", headers={"referrer-policy": ["no-referrer", "unsafe-url"]}), "index.html: Referrer-Policy must"),
    (
        on("assets/app-AAAA.css", headers={"x-content-type-options": None}),
        "assets/app-AAAA.css: X-Content-Type-Options must",
    ),
    (
        on("assets/icon-AAAA.svg", headers={"content-type": "text/html"}),
        "assets/icon-AAAA.svg: Content-Type must be sent once, and be: image/svg+xml",
    ),
    (on("index.html", headers={"content-type": "text/html; charset=utf-7"}), "index.html: Content-Type must"),
    (
        on("licences.txt", headers={"content-type": ["text/plain; charset=utf-8", "text/html"]}),
        "licences.txt: Content-Type must",
    ),
    (on("index.html", headers={"cache-control": "max-age=31536000"}), "index.html: Cache-Control must be sent once"),
    (
        on("index.html", headers={"cache-control": ["no-cache", "max-age=31536000"]}),
        "index.html: Cache-Control must be sent once",
    ),
    (
        on(
            "index.html",
            headers={"content-security-policy": "default-src *", "refresh": "0"},
            to=lambda asked: "If-None-Match" in asked,
        ),
        f"{WRONG_POLICY}",
    ),
    (
        on("index.html", headers={"refresh": "0"}, to=lambda asked: "If-None-Match" in asked),
        "Refresh must not be sent: '0' (asked as a browser with the file in its cache)",
    ),
    # codings
    (on("licences.txt", content=BOMB, headers=ZIPPED), "altered    licences.txt: its content is another"),
    (on("licences.txt", content=gzip.compress(b"MIT\n")[:-6], headers=ZIPPED), "altered    licences.txt"),
    (on("licences.txt", content=gzip.compress(b"MIT\n") + b"evil", headers=ZIPPED), "altered    licences.txt"),
    (
        on("licences.txt", content=gzip.compress(b"MIT\n") + gzip.compress(b"evil"), headers=ZIPPED),
        "altered    licences.txt",
    ),
    (
        on("licences.txt", headers={"content-encoding": "br"}),
        "unclear    licences.txt: it comes as 'br', which cannot be read here",
    ),
    (
        on("licences.txt", headers={"content-encoding": ["gzip", "gzip"]}),
        "unclear    licences.txt: it comes as 'gzip, gzip', which cannot be read here",
    ),
    # to some only
    (
        on(
            "assets/app-AAAA.js",
            content=b"evil()",
            to=lambda asked: "Firefox" in asked.get("User-Agent", "") and asked["Sec-Fetch-Dest"] == "script",
        ),
        "altered    assets/app-AAAA.js: its content is another (asked as Firefox)",
    ),
    (
        on("assets/app-AAAA.js", content=b"evil()", to=lambda asked: "iPhone" in asked.get("User-Agent", "")),
        "its content is another (asked as Safari)",
    ),
    (
        on("licences.txt", content=b"evil()", to=lambda asked: asked.get("Accept-Encoding") == "identity"),
        "its content is another (asked without compression)",
    ),
    (
        on("service-worker.js", content=b"evil()", to=lambda asked: asked.get("Service-Worker") == "script"),
        "altered    service-worker.js: its content is another (asked as Chromium, as Firefox, as Safari)",
    ),
    (on_later_requests(), "altered    service-worker.js: its content is another"),
    # the way to the app
    (on("/", status=200, content=b"<script src=evil.js>", headers={"location": None}), "altered    /: it must lead to"),
    (on("/", headers={"location": "https://evil.example/app/"}), "altered    /: it must lead to /app/, and nothing"),
    (on("/", content=b"<script>evil()</script>"), "altered    /: it must lead to /app/, and nothing else"),
    (on("/", headers={"set-cookie": "a=b"}), "header     /: Set-Cookie must not be sent"),
    (on("/app", headers={"location": "//evil.example/app/"}), "altered    /app: it must lead to"),
    # bytes that readers of HTTP take differently
    (
        raw(lambda head, page: b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + whole(head, page)),
        "unclear    index.html: an interim response 103 comes before it",
    ),
    (
        raw(lambda head, page: b"HTTP/1.1 100 Continue\r\nlink: </x>\r\n\r\n" + whole(head, page)),
        "unclear    index.html: an interim response 100 comes before it",
    ),
    (
        raw(lambda head, page: whole(b"refresh : 0\r\n" + head, page)),
        "unclear    index.html: its headers have the line b'refresh : 0'",
    ),
    (
        raw(lambda head, page: whole(head + b" folded\r\n", page)),
        "unclear    index.html: its headers have the line b' folded'",
    ),
    (
        raw(lambda head, page: whole(b"x-a: b\rrefresh: 0\r\n" + head, page)),
        "unclear    index.html: its lines do not end as those of HTTP",
    ),
    (
        raw(lambda head, page: whole(b"x-a: b\nrefresh: 0\r\n" + head, page)),
        "unclear    index.html: its lines do not end as those of HTTP",
    ),
    (
        raw(lambda head, page: whole(b"x-a: b\0\r\n" + head, page)),
        "unclear    index.html: its headers have the line",
    ),
    (
        raw(lambda head, page: OK + head + sized(page) + sized(page + b"evil") + b"\r\n" + page),
        "unclear    index.html: it says in two ways how long it is",
    ),
    (
        raw(lambda head, page: chunked(head + sized(page), page)),
        "unclear    index.html: it says in two ways how long it is",
    ),
    (
        raw(lambda head, page: OK + head + b"transfer-encoding: gzip, chunked\r\n\r\n" + page),
        "unclear    index.html: it says in two ways how long it is",
    ),
    (raw(lambda head, page: chunked(head, page, b"refresh: 0\r\n")), "index.html: headers come after its content"),
    (raw(lambda head, page: chunked(head, page, extension=b";a=b")), "unclear    index.html: it has a chunk"),
    (
        raw(lambda head, page: whole(head, page) + OK + b"\r\nevil"),
        "unclear    index.html: more bytes come after it",
    ),
    (
        raw(lambda head, _page: OK + head + b"content-length: 99999999\r\n\r\n"),
        "unclear    index.html: it is larger than any file of the app",
    ),
    (raw(lambda head, page: whole(head, page)[:-1]), "unclear    index.html: it ends too early"),
    (raw(lambda _head, page: b"ICY 200 OK\r\n\r\n" + page), "unclear    index.html: it begins with b'ICY 200 OK'"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_web_app.write(tmp_path)


def test_every_lie_is_told(folder: Path) -> None:
    """Altered, missing and extra files; headers that allow more or that browsers obey; what only some are served."""
    for lie, sentence in some("lies to `web verify`", LIES):
        with lying(folder, lie) as url:
            code, said, _ = verify(folder, url)
        assert sentence in said, (sentence, said)
        assert code == 1
        assert "Enter no password there before you know why." in said
        assert "\x1b" not in said


def test_headers_that_browsers_obey_are_told(folder: Path) -> None:
    """Each header by which a browser would do something, and one that nobody knows."""
    with lying(folder, on("index.html", headers=OBEYED)) as url:
        code, said, _ = verify(folder, url)
    assert code == 1
    for name, value in OBEYED.items():
        assert f"header     index.html: {name.title()} must not be sent: {value!r}" in said, name


def test_the_truth_is_told(folder: Path) -> None:
    """An honest server: all is the same, also compressed, and what this cannot show is said."""

    def zipped(_name: str, headers: Any, answer: Answer) -> Answer:
        if answer[0] != 200 or "gzip" not in headers.get("Accept-Encoding", ""):
            return answer
        return answer[0], {**answer[1], "content-encoding": "gzip"}, gzip.compress(answer[2])

    def proxied(_name: str, _headers: Any, answer: Answer) -> Answer:
        added: dict[str, str | list[str]] = {"via": "1.1 Caddy", "alt-svc": 'h3=":443"; ma=2592000', "x-cache": "MISS"}
        return answer[0], {**answer[1], **added, "strict-transport-security": "max-age=1"}, answer[2]

    in_chunks = raw(chunked, "licences.txt")
    until_closed = raw(lambda head, content: b"HTTP/1.0 200 OK\r\n" + head + b"\r\n" + content, "licences.txt")
    for lie in (truth, zipped, proxied, in_chunks, until_closed):
        with lying(folder, lie) as url:
            code, said, faults = verify(folder, url)
        assert (code, faults) == (0, ""), said
        assert f"all {len(FILES)} files and their security headers are the same" in said
        assert "Each file was asked for 6 times over HTTP/1.1 at 127.0.0.1: with headers like those of Chromium" in said
        assert "It could tell this command from a browser, and serve something else to people" in said
        assert "may connect to" not in said


def test_every_address_of_a_name_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that lies at one of its addresses is found; one that does not respond is named."""

    def addresses(_host: object, port: int, **_options: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{last}", port)) for last in (1, 2)]

    def asked(port: int) -> tuple[int, str]:
        options = argparse.Namespace(url=f"http://a.example:{port}", manifest=str(folder / "manifest.json"))
        with monkeypatch.context() as patched:
            patched.setattr(socket, "getaddrinfo", addresses)
            patched.setattr(socket, "create_connection", connect)
            return web.verify(options), capsys.readouterr().out

    def connect(place: tuple[str, int], timeout: float) -> socket.socket:
        with contextlib.ExitStack() as undo:
            made = undo.enter_context(socket.socket())
            made.settimeout(timeout)
            made.connect(place)
            undo.pop_all()
        return made

    with lying(folder, truth) as url:
        port = int(url.rpartition(":")[2])
        code, said = asked(port)
        assert (code, "Not asked: 127.0.0.2: no response (Connection refused)." in said) == (0, True), said
        with lying(folder, on("index.html", content=b"evil"), "127.0.0.2", port):
            code, said = asked(port)
            assert (code, "its content is another (asked at 127.0.0.2)" in said) == (1, True), said


def test_a_real_server_and_the_installed_release(tmp_path: Path) -> None:
    """Without --manifest, the release that is installed counts; one that carries no app says so."""
    place = small_web_app.package(tmp_path / "package")
    paths = {"PYTHONPATH": str(tmp_path / "package")}
    none = strongroom(tmp_path, "web", "verify", "localhost", **paths)
    assert (none.returncode, none.stdout) == (2, "")
    assert "this installation has no web app to compare with" in none.stderr
    small_web_app.write(place)
    running = Server(tmp_path / "home", **paths).start()
    try:
        for url in (f"http://127.0.0.1:{running.port}", f"http://127.0.0.1:{running.port}/app/"):
            same = strongroom(tmp_path, "web", "verify", url, **paths)
            assert same.returncode == 0, same.stdout + same.stderr
            assert "serves the web app of strongroom 1.2.3" in same.stdout
        (place / "licences.txt").write_bytes(b"other\n")
        small = json.loads((place / "manifest.json").read_text())
        small["files"]["licences.txt"] = "0" * 64
        (place / "manifest.json").write_text(json.dumps(small))
        other = strongroom(tmp_path, "web", "verify", f"http://127.0.0.1:{running.port}", **paths)
        assert (other.returncode, "altered    licences.txt" in other.stdout) == (1, True)
    finally:
        running.abandon()


def test_an_app_that_is_hosted_apart_may_name_its_server(folder: Path) -> None:
    """With a manifest of one's own, connect-src may name servers, and nothing else may differ."""
    apart = POLICY.replace("connect-src 'self'", "connect-src 'self' https://vault.example.com")

    def named(name: str, _headers: Any, answer: Answer) -> Answer:
        if name.startswith("/"):
            return answer
        return answer[0], {**answer[1], "content-security-policy": apart}, answer[2]

    with lying(folder, named) as url:
        code, said, _ = verify(folder, url)
        assert (code, "The app may connect to https://vault.example.com: check that" in said) == (0, True), said
        code, said, _ = verify(folder, f"{url}/app/")  # a folder: what else the host has is not the app's
        assert code == 0, said
    with lying(folder, named, prefix="/") as url:  # its files are all that the host has
        code, said, _ = verify(folder, f"{url}/")
        assert code == 0, said


def test_wrong_use_and_no_server(folder: Path) -> None:
    """Addresses that are none, a manifest that is none, and nobody who responds; each is a sentence."""
    for wrong in (
        "https://a.example/a b",
        "ftp://a.example",
        "https://user@a.example",
        "https://a.example/?q",
        "http://[",
        "http://a:99999",
    ):
        code, _, said = verify(folder, wrong)
        assert (code, "URL must be an address like" in said) == (2, True), wrong
    (folder / "bad.json").write_text("{}")
    bad = strongroom(folder, "web", "verify", "localhost", "--manifest", str(folder / "bad.json"))
    assert (bad.returncode, "is no manifest of a web app" in bad.stderr) == (2, True)
    with lying(folder, truth) as url:
        pass
    code, _, said = verify(folder, url)
    assert (code, "cannot be read: no response" in said) == (8, True)
