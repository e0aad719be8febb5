"""The JavaScript client in tests: it is built and its tests are bundled once, and run by Node.js or a browser."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import http.client
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.kit.requirements import skip_or_fail
from tools import node

ROOT: Final = Path(__file__).parents[3]
PACKAGE: Final = ROOT / "js"
VECTORS: Final = ROOT / "tests" / "vectors"
# Where builds lie that later runs use: no part of the repository, and removed by `make clean`.
BUILDS: Final = ROOT / ".venv" / "test-builds"
_KEPT_SECONDS: Final = 24 * 3600.0  # since it was last used; another run may still use it
# What a page needs at the least: its own scripts and workers, WebAssembly, and the servers that it talks to.
POLICY: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self' http://localhost:*; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types strongroom"
)
# Where what is built once lies, for all processes that run tests: tests/js/conftest.py sets it.
shared: Path = Path(tempfile.gettempdir())


def once(name: str, make: Callable[[Path], object], *, packages: Path = PACKAGE) -> Path:
    """A folder that the first process makes which needs it, and that all processes of this run use."""
    _need_packages(packages)
    return _made(shared, name, make)


def kept(
    name: str,
    make: Callable[[Path], object],
    *,
    packages: Path = PACKAGE,
    place: Path = BUILDS,
    sources: Callable[[], str] | None = None,
) -> Path:
    """A folder as `once` makes it, for later runs too, until something that a build reads has changed.

    No test writes to it. `sources` gives another hash than that of all sources.
    """
    _need_packages(packages)
    place.mkdir(parents=True, exist_ok=True)
    read = (sources or _hash_of_sources)()

    def make_of_these(folder: Path) -> None:
        make(folder)
        assert (sources or _hash_of_sources)() == read, "the sources of a build were changed while it was made"

    folder = _made(place, f"{name}-{read}", make_of_these)
    (folder / ".made").touch()
    for old in place.glob(f"{name}-*/.made"):
        if old.parent != folder and time.time() - old.stat().st_mtime > _KEPT_SECONDS:
            shutil.rmtree(old.parent, ignore_errors=True)
            old.parent.with_suffix(".lock").unlink(missing_ok=True)
    return folder


def _need_packages(packages: Path) -> None:
    if not (packages / "node_modules" / ".done").exists():
        skip_or_fail(f"The packages of {packages.name}/ are not installed. `make {packages.name}` installs them.")


def _made(place: Path, name: str, make: Callable[[Path], object]) -> Path:
    folder = place / name
    with (place / f"{name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".made").exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
            folder.mkdir()
            make(folder)
            (folder / ".made").touch()
    return folder


def _hash_of_sources() -> str:
    """A hash of all that a build reads, of the packages that are installed, and of the program that runs it."""
    found = hashlib.sha256()
    program = Path(shutil.which("node", path=node.environment()["PATH"]) or "").resolve()
    found.update(f"{program} {program.stat().st_mtime_ns} {program.stat().st_size}\0".encode())
    folders = (PACKAGE, ROOT / "web")
    files = [path for folder in folders for path in folder.rglob("*") if not {"node_modules", "dist"} & {*path.parts}]
    files += [folder / "node_modules" / ".package-lock.json" for folder in folders]
    files += [*(ROOT / "tests" / "web").glob("*.ts"), ROOT / "LICENSE", ROOT / "src/strongroom/_version.py"]
    for path in sorted(files):
        if path.is_file():
            digest = hashlib.sha256(path.read_bytes()).digest()
            found.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + digest)
    return found.hexdigest()[:32]


@functools.cache
def bundles() -> Path:
    """A folder with the bundled tests; skips the test where the packages of js/ are not installed."""

    def make(folder: Path) -> None:
        run("node", "build.js", "--tests", os.fspath(folder))
        (folder / "empty.html").write_text("<!doctype html><title>empty</title>", encoding="utf-8")

    return kept("javascript-tests", make)


@functools.cache
def package() -> Path:
    """A copy of js/ in which the package is built, so that no test meets the files of another, or of `make js`."""

    def make(folder: Path) -> None:
        shutil.copytree(PACKAGE, folder / "js", ignore=shutil.ignore_patterns("node_modules", "dist"))
        shutil.copy(PACKAGE.parent / "LICENSE", folder)
        (folder / "js" / "node_modules").symlink_to(PACKAGE / "node_modules")
        run("node", "build.js", folder=folder / "js")

    return kept("javascript-package", make) / "js"


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
def served(
    folder: Path | None = None, *, api: int | None = None, policy: str | list[str] = POLICY, port: int = 0
) -> Iterator[str]:
    """The bundles, or another folder, at an address of this machine under a policy; the address.

    Of a list, which may be changed meanwhile, the last policy is sent. `api` is the port of a server of strongroom that
    has the same origin, as behind a proxy.
    """
    place = folder or bundles()

    class Handler(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        extensions_map = {".js": "text/javascript", ".css": "text/css", "": "text/html"}

        def end_headers(self) -> None:
            self.send_header("Content-Security-Policy", policy if isinstance(policy, str) else policy[-1])
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

    with ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=os.fspath(place))) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
