"""`strongroom web verify`: what a server serves is compared with the release, and every lie is told."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from strongroom.web_release import SECURITY_HEADERS, content_type, path_of
from tests.contract.harness import Server
from tests.support import small_web_app
from tests.support.command_line import strongroom
from tests.support.small_web_app import FILES

Answer = tuple[int, dict[str, str], bytes]
Lie = Callable[[str, Any, Answer], Answer]


@contextmanager
def lying(folder: Path, lie: Lie) -> Iterator[str]:
    """A server of the build in a folder that answers as `lie` says: of the name, the request's headers, the truth."""
    names = {f"/app/{path_of(name)}": name for name in [*FILES, "manifest.json"]}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name = names.get(self.path, "")
            content = (folder / name).read_bytes() if name else b""
            headers = {**SECURITY_HEADERS, "content-type": content_type(name or "x.txt")}
            status, headers, content = lie(name, self.headers, (200 if name else 404, headers, content))
            self.send_response(status)
            for header, value in headers.items():
                self.send_header(header, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
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
    """A lie about one file: another status or content, headers that are changed or, with None, left out."""

    def lie(name: str, _headers: Any, answer: Answer) -> Answer:
        if name != wanted:
            return answer
        status, headers, content = answer
        for header, value in changes.get("headers", {}).items():
            headers = {key: one for key, one in headers.items() if key != header}
            if value is not None:
                headers[header] = value
        return changes.get("status", status), headers, changes.get("content", content)

    return lie


def to_browsers_only(name: str, headers: Any, answer: Answer) -> Answer:
    """Serve the truth to programs, and something else to those who say that they are a browser."""
    status, own, content = answer
    is_browser = "Firefox" in headers["User-Agent"] and headers["Sec-Fetch-Dest"] == "script"
    return status, own, content + b"evil()" if name.endswith(".js") and is_browser else content


def with_manifest(**more: str) -> bytes:
    sums = dict.fromkeys(FILES, "0" * 64) | more
    return json.dumps({"version": "1.2.3", "files": sums}).encode()


POLICY = SECURITY_HEADERS["content-security-policy"]
BOMB = gzip.compress(b"\0" * (64 * 2**20))
LIES: list[tuple[Lie, str]] = [
    (on("index.html", content=b"<script src=evil.js>"), "altered    index.html: its content is another"),
    (on("service-worker.js", content=b""), "altered    service-worker.js: its content is another"),
    (on("operator/index.html", status=404), "missing    operator/index.html: the server responds with 404"),
    (
        on("index.html", status=302, headers={"location": "/evil/"}),
        "missing    index.html: the server responds with 302",
    ),
    (on("manifest.json", status=404), "missing    manifest.json: the server responds with 404"),
    (on("manifest.json", content=b"{}"), "altered    manifest.json: it is not one that a build writes"),
    (on("manifest.json", content=with_manifest(**{"assets/evil.js": "1" * 64})), "extra      assets/evil.js"),
    (on("manifest.json", content=b'{"version": "1.2.3", "files": {}}'), "missing    licences.txt: not in the server's"),
    (
        on("manifest.json", content=b'{"version": "9\\u001b[2J", "files": {}}'),
        r"release    the server says that it serves '9\x1b[2J'",
    ),
    (
        on("index.html", headers={"content-security-policy": None}),
        "header     index.html: Content-Security-Policy must be",
    ),
    (
        on(
            "index.html",
            headers={"content-security-policy": POLICY.replace("'self' 'wasm", "'self' https://evil.example 'wasm")},
        ),
        "header     index.html: Content-Security-Policy must be",
    ),
    (
        on(
            "index.html",
            headers={"content-security-policy": POLICY.replace("; require-trusted-types-for 'script'", "")},
        ),
        "header     index.html: Content-Security-Policy must be",
    ),
    (
        on(
            "index.html",
            headers={"content-security-policy": POLICY.replace("connect-src 'self'", "connect-src 'self' *")},
        ),
        "header     index.html: Content-Security-Policy must be",
    ),
    (
        on("index.html", headers={"cross-origin-opener-policy": "unsafe-none"}),
        "index.html: Cross-Origin-Opener-Policy must",
    ),
    (
        on("assets/app-AAAA.css", headers={"x-content-type-options": None}),
        "assets/app-AAAA.css: X-Content-Type-Options must",
    ),
    (
        on("assets/icon-AAAA.svg", headers={"content-type": "text/html"}),
        "assets/icon-AAAA.svg: Content-Type must be image/svg",
    ),
    (
        on("licences.txt", content=BOMB, headers={"content-encoding": "gzip"}),
        "altered    licences.txt: its content is another",
    ),
    (
        on("licences.txt", content=gzip.compress(b"MIT\n")[:-6], headers={"content-encoding": "gzip"}),
        "altered    licences.txt",
    ),
    (to_browsers_only, "altered    assets/app-AAAA.js: its content is another"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_web_app.write(tmp_path)


def test_every_lie_is_told(folder: Path) -> None:
    """A file that is altered, missing, extra or served to browsers alone, and headers that allow more."""
    for lie, sentence in LIES:
        with lying(folder, lie) as url:
            code, said, _ = verify(folder, url)
        assert sentence in said, (sentence, said)
        assert code == 1
        assert "Enter no password there before you know why." in said
        assert "\x1b" not in said


def test_the_truth_is_told(folder: Path) -> None:
    """An honest server: all is the same, also compressed, and what this cannot show is said."""

    def zipped(_name: str, headers: Any, answer: Answer) -> Answer:
        assert "gzip" in headers["Accept-Encoding"]
        return answer[0], {**answer[1], "content-encoding": "gzip"}, gzip.compress(answer[2])

    for lie in (truth, zipped):
        with lying(folder, lie) as url:
            code, said, faults = verify(folder, url)
        assert (code, faults) == (0, "")
        assert f"all {len(FILES)} files and their security headers are the same" in said
        assert "it could serve something else to other people, or later" in said


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

    def named(_name: str, _headers: Any, answer: Answer) -> Answer:
        return answer[0], {**answer[1], "content-security-policy": apart}, answer[2]

    with lying(folder, named) as url:
        assert verify(folder, url)[0] == 0


def test_wrong_use_and_no_server(folder: Path) -> None:
    """Addresses that are none, a manifest that is none, and nobody who responds; each is a sentence."""
    for wrong in ("ftp://a.example", "https://user@a.example", "https://a.example/?q", "http://[", "http://a:99999"):
        code, _, said = verify(folder, wrong)
        assert (code, "URL must be an address like" in said) == (2, True), wrong
    (folder / "bad.json").write_text("{}")
    bad = strongroom(folder, "web", "verify", "localhost", "--manifest", str(folder / "bad.json"))
    assert (bad.returncode, "is no manifest of a web app" in bad.stderr) == (2, True)
    with lying(folder, truth) as url:
        pass
    code, _, said = verify(folder, url)
    assert (code, "cannot be read: no response" in said) == (8, True)
