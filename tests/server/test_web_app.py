"""The server serves the files of the web app, exactly these, with the headers that keep it safe; or none."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.model import Variant
from strongroom.server import routes
from strongroom.server.routing import Router
from strongroom.web_release import path_of
from tests.kit.browsers import small_web_app
from tests.kit.browsers.small_web_app import FILES
from tests.kit.programs.command_line import strongroom
from tests.kit.servers.process import Server

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' blob:; "
    "font-src 'none'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types strongroom strongroom-service-worker"
)
NOT_BUILT = (
    "The web app is not built here; 'make web' builds it. Only the API is served; WEB=off says that this is meant."
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a small app, which several processes serve."""
    folder = small_web_app.write(tmp_path_factory.mktemp("app"))
    running = Server(tmp_path_factory.mktemp("server"), WEB=str(folder), WORKERS="2", METRICS_PORT="0")
    try:
        yield running.start()
        assert running.end() == 0
    finally:
        running.abandon()


def test_each_file_is_served_at_its_path(server: Server) -> None:
    """With its type, the policy, and a year in caches if its name holds a hash; a HEAD has the same headers."""
    http = server.connect()
    for name, content in FILES.items():
        path = f"/app/{path_of(name)}"
        found = http.get(path, headers={"accept-encoding": "identity"})
        assert (found.status_code, found.content) == (200, content), name
        hashed = name.startswith("assets/")
        assert found.headers["cache-control"] == ("public, max-age=31536000, immutable" if hashed else "no-cache")
        assert found.headers.get_list("content-security-policy") == [POLICY]
        assert found.headers["cross-origin-opener-policy"] == "same-origin"
        assert found.headers["cross-origin-resource-policy"] == "same-origin"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert found.headers["x-content-type-options"] == "nosniff"
        assert "camera=()" in found.headers["permissions-policy"]
        bare = http.head(path, headers={"accept-encoding": "identity"})
        volatile = {"date", "x-request-id"}
        assert bare.content == b""
        assert {k: v for k, v in bare.headers.items() if k not in volatile} == {
            k: v for k, v in found.headers.items() if k not in volatile
        }
    assert http.get("/app/").headers["content-type"] == "text/html; charset=utf-8"
    assert http.get("/app/assets/app-AAAA.js").headers["content-type"] == "text/javascript; charset=utf-8"
    assert http.get("/app/assets/icon-AAAA.svg").headers["content-type"] == "image/svg+xml"
    assert hashlib.sha256(FILES["index.html"]).hexdigest() in http.get("/app/manifest.json").text


def test_compression_and_conditional_requests(server: Server) -> None:
    """A client that takes gzip gets it, under another ETag; one that has the file gets 304 with its headers."""
    http, path = server.connect(), "/app/assets/app-AAAA.js"
    content = FILES["assets/app-AAAA.js"]
    for accepted, zipped in {
        "gzip, deflate, br": True,
        "*": True,
        "GZIP;q=0.5": True,
        "gzip;q=0": False,
        "gzip; q=0.000, *": False,
        "br": False,
        "": False,
    }.items():
        raw = server.exchange(
            f"GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\nConnection: close\r\n\r\n".encode()
        )
        assert (raw.headers.get("content-encoding") == "gzip") == zipped, accepted
        assert raw.headers["vary"] == "accept-encoding"
        assert int(raw.headers["content-length"]) < len(content) or not zipped
    plain = http.get(path, headers={"accept-encoding": "identity"})
    packed = http.get(path, headers={"accept-encoding": "gzip"})
    assert plain.headers["etag"] != packed.headers["etag"]
    assert packed.content == content
    for answer, accepted in ((plain, "identity"), (packed, "gzip")):
        again = http.get(path, headers={"accept-encoding": accepted, "if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        for header in ("etag", "cache-control", "content-security-policy", "vary"):
            assert again.headers[header] == answer.headers[header]
    assert http.get(path, headers={"if-none-match": '"other"'}).status_code == 200
    ranged = http.get(path, headers={"accept-encoding": "identity", "range": "bytes=0-1"})
    assert (ranged.status_code, ranged.content) == (200, content)
    assert "accept-ranges" not in ranged.headers
    assert gzip.decompress(gzip.compress(content)) == content


PROBES = (
    *("/app/..", "/app/../health", "/app/../../etc/passwd", "/app/%2e%2e/health", "/app/%2e%2e%2f%2e%2e%2fetc/passwd"),
    *("/app/assets/../index.html", "/app/assets/..%2findex.html", "/app//", "/app//index.html", "/app/./", "//app/"),
    *("/app/assets%2Fapp-AAAA.js", "/app/assets//app-AAAA.js", "/app/assets/app-AAAA.js/", "/app/index.html"),
    *("/app/assets", "/app/assets/", "/app/operator/index.html", "/app/%00", "/app/index.html%00.js", "/app/.sources"),
    *("/app/assets/app-AAAA.JS", "/APP/", "/app/manifest.json/", "/app/\\..\\..", "/app/%ff%fe", "/app/" + "a" * 8_000),
    *("/app/" + "a/" * 2_000, "/app/%61ssets/app-AAAA.js", "/app;/", "/app/;", "/app.", "/app/service-worker.js.map"),
)


def test_nothing_else_can_be_had(server: Server) -> None:
    """Other spellings of paths, whatever they try, get 404 with a sentence and no file; names are not normalised."""
    for probe in PROBES:
        found = server.exchange(f"GET {probe} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode("latin-1"))
        assert found.status_code == 404, (probe[:60], found.status_code)
        assert all(content not in found.content for content in FILES.values()), probe[:60]
        if found.headers["content-type"] == "application/json":
            assert found.json()["error"]["code"] == "not_found"
        else:
            assert found.text == "The web app has no such file. It starts at /app/.\n", probe[:60]
            assert found.headers["content-security-policy"] == POLICY
    raw = server.exchange(b"GET /app/\0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert raw.status_code in {400, 404}


def test_folders_and_the_root_lead_to_the_app(server: Server) -> None:
    """/ leads to the app, and a folder without its slash to the one with it; a query changes nothing."""
    http = server.connect()
    for path, place in {"/": "/app/", "/app": "/app/", "/app/operator": "/app/operator/"}.items():
        found = http.get(path)
        assert found.is_redirect
        assert found.headers["location"] == place
    assert http.get("/app/?x=../../.env#y").content == FILES["index.html"]


def test_only_get_and_head(server: Server) -> None:
    """All other methods get 405, with those that are allowed."""
    http = server.connect()
    for path in ("/app", "/app/", "/app/assets/app-AAAA.js", "/app/none"):
        for method in ("POST", "PUT", "DELETE", "PATCH", "PROPFIND"):
            refused = http.request(method, path)
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS"), (method, path)


def test_the_port_of_the_metrics_has_no_app(server: Server) -> None:
    """METRICS_PORT serves metrics and health alone."""
    [line] = [line for line in (server.home / "stdout").read_text().splitlines() if "figures" in line]
    http = server.connect()
    assert http.get(line.split()[1].replace("/metrics", "/app/")).status_code == 404


@pytest.mark.parametrize("variant", list(Variant))
def test_the_app_and_the_api_never_share_a_path(variant: Variant, tmp_path: Path) -> None:
    """No route of the API begins with /app, and none takes a path of the app."""
    api = routes.router(variant)
    for endpoint in api.endpoints:
        for path in (endpoint.path, *endpoint.aliases):
            assert path != "/app"
            assert not path.startswith("/app/")
    from strongroom.server.web.app_files import load

    files = load(str(small_web_app.write(tmp_path)))
    both = Router([*api.endpoints, *routes.web_app.endpoints(files)])
    for name in FILES:
        endpoint, _ = both.find("GET", f"/app/{path_of(name)}".encode())
        assert endpoint.summary == "A file of the web app"
    for endpoint in api.endpoints:
        found, _ = both.find(endpoint.method, endpoint.path.encode())
        assert found is endpoint


def test_switched_off(tmp_path: Path) -> None:
    """WEB=off: the paths of the app are no paths, and / leads to the documentation."""
    running = Server(tmp_path, WEB="off").start()
    try:
        http = running.connect()
        for path in ("/app", "/app/", "/app/assets/x.js"):
            found = http.get(path)
            assert (found.status_code, found.json()["error"]["code"]) == (404, "not_found")
        assert http.get("/").headers["location"] == "/docs"
        assert "app " not in (tmp_path / "stdout").read_text()
    finally:
        running.abandon()


def _announced(server: Server) -> str:
    """What a server printed when it began to listen."""
    return (server.home / "stdout").read_text()


def test_a_start_that_fails_says_nothing_of_the_app(tmp_path: Path) -> None:
    """Where the server cannot start, its one sentence is about that."""
    small_web_app.package(tmp_path / "package")
    done = strongroom(tmp_path, "serve", PYTHONPATH=str(tmp_path / "package"), JWT_SECRET="x" * 40, TLS_CERT_FILE="no")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_without_a_build_the_api_is_served(tmp_path: Path) -> None:
    """The server says once, where it tells its addresses, that there is no app: not in the log. The rest works."""
    place = small_web_app.package(tmp_path / "package")
    running = Server(tmp_path / "home", WORKERS="2", PYTHONPATH=str(tmp_path / "package")).start()
    try:
        assert _announced(running).count(f"app     {NOT_BUILT}") == 1
        assert running.log() == ""
        http = running.connect()
        assert http.get("/").headers["location"] == "/docs"
        assert http.get("/app/").status_code == 404
        assert http.get("/health").status_code == 200
        assert running.end() == 0
        small_web_app.write(place)
        running.start()
        assert "web app" not in _announced(running)
        assert f"app     http://127.0.0.1:{running.port}/app/" in _announced(running)
        assert running.connect().get("/app/").content == FILES["index.html"]
        assert running.end() == 0
        (place / "index.html").write_text("<script>evil()</script>")
        running.start()
        assert "index.html of the web app in" in _announced(running)
        assert running.connect().get("/app/").status_code == 404
    finally:
        running.abandon()


def test_a_folder_that_is_no_build_is_refused(tmp_path: Path) -> None:
    """A folder that WEB names must be whole: the server does not start with one that was altered or lacks a file."""

    def start(value: object) -> str:
        done = strongroom(tmp_path, "serve", WEB=str(value), JWT_SECRET="x" * 40, PORT="0")
        assert done.returncode == 2, done.stderr
        return done.stderr

    assert "must be on, off, or the folder of a build, with a / in its path, not 'yes'" in start("yes")
    assert "There is no web app in" in start(tmp_path)
    folder = small_web_app.write(tmp_path / "app")
    (folder / "licences.txt").unlink()
    assert "lacks licences.txt" in start(folder)
    small_web_app.write(folder)
    (folder / "assets/app-AAAA.js").write_text("evil()")
    assert "assets/app-AAAA.js of the web app in" in start(folder)
    for name in ("../secret.txt", "/etc/passwd.txt", "a/../../x.js", ".hidden/x.js", "x.exe", "a\x1b[31m.js"):
        (folder / "manifest.json").write_text(
            f'{{"version": "1", "files": {{"{name}": "{"0" * 64}"}}}}'.replace("\x1b", "\\u001b")
        )
        assert "which no build has" in start(folder)
    (folder / "manifest.json").write_text("[]")
    assert "is not one that a build writes" in start(folder)
