"""The JavaScript client in tests: it is built and its tests are bundled once, and run by Node.js or a browser."""

from __future__ import annotations

import fcntl
import functools
import http.client
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from tools import node

PACKAGE: Final = Path(__file__).parent.parent.parent / "js"
VECTORS: Final = PACKAGE.parent / "tests" / "vectors"
# What a page needs at the least: its own scripts and workers, WebAssembly, and the servers that it talks to.
POLICY: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self' http://localhost:*; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types strongroom"
)
# Where what is built once lies, for all processes that run tests: tests/js/conftest.py sets it.
shared: Path = Path(tempfile.gettempdir())


def once(name: str, make: Callable[[Path], object], *, packages: Path = PACKAGE) -> Path:
    """A folder that the first process makes which needs it, and that all processes use."""
    if not (packages / "node_modules" / ".done").exists():
        pytest.skip(f"The packages of {packages.name}/ are not installed; make {packages.name} does it")
    folder = shared / name
    with (shared / f"{name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".made").exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
            folder.mkdir()
            make(folder)
            (folder / ".made").touch()
    return folder


def bundles() -> Path:
    """A folder with the bundled tests; skips the test where the packages of js/ are not installed."""
    return once("javascript-tests", lambda folder: run("node", "build.js", "--tests", os.fspath(folder)))


def package() -> Path:
    """A copy of js/ in which the package is built, so that no test meets the files of another, or of `make js`."""

    def make(folder: Path) -> None:
        shutil.copytree(PACKAGE, folder / "js", ignore=shutil.ignore_patterns("node_modules", "dist"))
        shutil.copy(PACKAGE.parent / "LICENSE", folder)
        (folder / "js" / "node_modules").symlink_to(PACKAGE / "node_modules")
        run("node", "build.js", folder=folder / "js")

    return once("javascript-package", make) / "js"


def run(*command: str, seconds: float = 300, folder: Path = PACKAGE, **variables: str) -> str:
    """What a command of Node.js prints; its output is shown where it fails."""
    place = node.environment()
    program = shutil.which(command[0], path=place["PATH"]) or command[0]
    done = subprocess.run(
        [program, *command[1:]],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=folder,
        env={**place, **variables},
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-20_000:]}\n{done.stderr[-20_000:]}"
    return done.stdout


@contextmanager
def started(*command: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Node.js that runs beside the test, and ends with it."""
    place = node.environment()
    program = shutil.which(command[0], path=place["PATH"]) or command[0]
    with subprocess.Popen([program, *command[1:]], cwd=PACKAGE, env=place, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def run_test(name: str, *, seconds: float = 300, **variables: str) -> str:
    """Run one bundled file of tests; the variables reach it as its environment."""
    program = os.fspath(bundles() / f"{name}.test.js")
    return run("node", "--test", program, seconds=seconds, folder=PACKAGE, VECTORS=os.fspath(VECTORS), **variables)


@contextmanager
def served(folder: Path | None = None, *, api: int | None = None, policy: str = POLICY, port: int = 0) -> Iterator[str]:
    """The bundles, or another folder, at an address of this machine under a policy; the address.

    `api` is the port of a server of strongroom that has the same origin, as behind a proxy.
    """
    place = folder or bundles()

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        extensions_map = {".js": "text/javascript", ".css": "text/css", "": "text/html"}

        def end_headers(self) -> None:
            self.send_header("Content-Security-Policy", policy)
            self.send_header("Access-Control-Allow-Origin", "*")  # a page of a server may load them too
            super().end_headers()

        def do_GET(self) -> None:
            if api is None or Path(self.translate_path(self.path)).is_file():
                super().do_GET()
            else:
                self._forward()

        def _forward(self) -> None:
            assert api is not None
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with closing(http.client.HTTPConnection("127.0.0.1", api)) as there:
                there.request(self.command, self.path, body, dict(self.headers))
                answer = there.getresponse()
                told = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"connection", "content-length", "transfer-encoding"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(told)))
            super().end_headers()
            self.wfile.write(told)

        do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815 - the names that the base class calls

        def log_message(self, *_: object) -> None:
            pass

    if folder is None:
        (place / "empty.html").write_text("<!doctype html><title>empty</title>", encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=os.fspath(place))) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
