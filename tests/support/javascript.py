"""The JavaScript client in tests: its tests are bundled once in each test process, and run by Node.js or a browser."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
    "connect-src 'self' http://localhost:*; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@functools.cache
def bundles() -> Path:
    """A folder with the bundled tests; skips the test where the packages of js/ are not installed."""
    if not (PACKAGE / "node_modules" / ".done").exists():
        pytest.skip("The packages of js/ are not installed; make js does it")
    folder = Path(tempfile.mkdtemp(prefix="strongroom-js-"))
    run("node", str(PACKAGE / "build.js"), "--tests", str(folder))
    return folder


def run(*command: str, seconds: float = 300, **variables: str) -> str:
    """What a command of Node.js prints; its output is shown where it fails."""
    place = node.environment()
    program = shutil.which(command[0], path=place["PATH"]) or command[0]
    done = subprocess.run(
        [program, *command[1:]],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=PACKAGE,
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
    return run("node", "--test", program, seconds=seconds, VECTORS=os.fspath(VECTORS), **variables)


@contextmanager
def served() -> Iterator[str]:
    """The bundles at an address of this machine, under the strict policy that the client is made for; the address."""

    class Handler(SimpleHTTPRequestHandler):
        extensions_map = {".js": "text/javascript", "": "text/html"}

        def end_headers(self) -> None:
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("Access-Control-Allow-Origin", "*")  # a page of a server may load them too
            super().end_headers()

        def log_message(self, *_: object) -> None:
            pass

    (bundles() / "empty.html").write_text("<!doctype html><title>empty</title>", encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=os.fspath(bundles()))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
