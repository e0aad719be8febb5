"""What the tests share: a clock that obeys, a real database, a server behind real ASGI."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib.util
import itertools
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import httpcore2
import httpx2
import hypothesis
import pytest

from strongroom import create_server
from strongroom.server import Server
from strongroom.store import Database, open_database
from strongroom.store.postgres.engine import PostgresDatabase
from tests.kit import cheap_hashing, requirements
from tests.kit.programs import mount_namespace
from tests.kit.report import SOAK, Report
from tests.kit.samples import LONG
from tests.kit.servers.internals import context_of, purge, wait_for_databases
from tests.kit.servers.postgres import postgres

REPORT = pytest.StashKey[Report]()


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers of tests that need something of their own."""
    config.addinivalue_line("markers", "alone: compares times; `make test` runs it after all others, by itself")
    config.addinivalue_line("markers", "needs(*programs): runs these programs of Debian; tests/kit/requirements.py")
    config.addinivalue_line("markers", "soak: takes minutes, or installs from a registry; only `make soak` runs it")
    config.addinivalue_line("markers", "production_hashing: about Argon2id at the cost that it has in production")
    config.addinivalue_line("markers", "without_schema: the database of the test has no schema yet")
    if not config.getoption("numprocesses", None):  # here, or in a worker of pytest-xdist, tests are collected
        gc.disable()  # until then: it would look again and again at all that is kept
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; processes inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)

    config.stash[REPORT] = Report(config)
    config.pluginmanager.register(config.stash[REPORT])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test, or fail it, where a program that it needs is missing."""
    requirements.check(item)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of `make soak`; begin with the slow ones."""
    long = [] if LONG else [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=long)
    config.stash[REPORT].leave_out((item.nodeid for item in long), SOAK)
    left = set(long)
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Let the garbage collector look at what tests make, and no more at what was collected."""
    gc.freeze()
    gc.enable()


# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("strongroom", deadline=None)
hypothesis.settings.load_profile("strongroom")
# Every client of httpx2 reads the certificates that the machine trusts, which takes longer than most tests: once is
# enough.
httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)
# For every request to an application, httpx2 looks for this module in all folders; where it is not, once is enough.
if importlib.util.find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]
# A busy machine may need longer to connect to a database than an operator would wait.
wait_for_databases(30.0)
_hash_as_in_production = cheap_hashing.install()


@pytest.fixture(autouse=True)
def _hashing(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hash passwords at the least cost, unless the test is about that cost."""
    if request.node.get_closest_marker("production_hashing") is None:
        yield
        return
    _hash_as_in_production()
    yield
    cheap_hashing.install()


START = 1_731_600_000_000
SECRET = "a secret of the tests, 32 bytes or more"
_numbers = itertools.count(1)


class Clock:
    """Time as the test says it is."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def pass_(self, milliseconds: int) -> None:
        self.now += milliseconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def namespace_of_another_user() -> None:
    """Skip a test that runs as another user where that cannot be had."""
    if not mount_namespace.is_possible():
        pytest.skip("only root can become another user in a namespace")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight megabytes."""
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(mount)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("mounting a small file system needs root")
    yield mount
    subprocess.run(["umount", "--lazy", str(mount)], check=False)


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place for a new database, on each engine in turn."""
    if request.param == "sqlite":
        yield str(tmp_path / "vault.db")
        return
    made = postgres().fresh() if request.node.get_closest_marker("without_schema") else postgres().migrated()
    yield made
    postgres().discard(made)


@pytest.fixture
def open_db(where: str, clock: Clock) -> Callable[[], Database]:
    """Open the database of this test; again after a close, it is the same one."""

    def opened() -> Database:
        db = open_database(where, clock)
        if isinstance(db, PostgresDatabase):
            _opened.append(db)
        return db

    return opened


class Person:
    """A user of the server, with a client that carries the access token."""

    def __init__(self, http: httpx2.AsyncClient, email: str, signed_in: dict[str, Any]) -> None:
        self.http = http
        self.email = email
        self.access: str = signed_in["accessToken"]
        self.refresh: str = signed_in["refreshToken"]
        self.id: str = signed_in["user"]["id"]

    async def __call__(self, method: str, path: str, json: Any = None, **more: Any) -> httpx2.Response:
        headers = {"authorization": f"Bearer {more.pop('bearer', self.access)}", **more.pop("headers", {})}
        if json is not None:
            more["json"] = json
        return await self.http.request(method, path, headers=headers, **more)

    async def vault(self, **body: Any) -> dict[str, Any]:
        made = await self("POST", "/vault", {"name": f"vault {next(_numbers)}", **body})
        assert made.status_code == 201, made.text
        vault: dict[str, Any] = made.json()
        return vault

    async def document(self, vault: dict[str, Any], **body: Any) -> dict[str, Any]:
        made = await self("POST", f"/vaults/{vault['uid']}/documents", {"collection": "c", "data": "AAAA", **body})
        assert made.status_code == 201, made.text
        document: dict[str, Any] = made.json()
        return document

    async def key(self, **scopes: Any) -> str:
        made = await self("POST", "/auth/api-keys", {"name": "k", **scopes})
        assert made.status_code == 201, made.text
        key: str = made.json()["key"]
        return key


class House:
    """A server and those who use it."""

    def __init__(self, http: httpx2.AsyncClient, clock: Clock, server: Server) -> None:
        self.http = http
        self.clock = clock
        self.server = self.app = server

    async def chores(self) -> None:
        """What a running server does now and then: throw away what was kept for long enough."""
        await purge(self.server)

    async def person(self, email: str | None = None, password: str = "correct horse", **more: Any) -> Person:
        email = email or f"person{next(_numbers)}@example.com"
        made = await self.http.post("/auth/email/register", json={"email": email, "password": password, **more})
        assert made.status_code == 201, made.text
        return Person(self.http, email, made.json())

    async def login(self, email: str, password: str = "correct horse") -> httpx2.Response:
        return await self.http.post("/auth/email/login", json={"email": email, "password": password})


Open = Callable[..., Any]


@pytest.fixture
def house(where: str, clock: Clock) -> Open:
    """Opens a house, of which `async with` makes a block."""

    @asynccontextmanager
    async def open_house(address: str = "127.0.0.1", **settings: Any) -> AsyncIterator[House]:
        place: dict[str, Any] = {"database_url" if "://" in where else "db_path": where}
        server = create_server(jwt_secret=SECRET, clock=clock, **place, **settings)
        transport = httpx2.ASGITransport(app=server, client=(address, 5), raise_app_exceptions=False)
        try:
            async with httpx2.AsyncClient(transport=transport, base_url="http://house") as http:
                yield House(http, clock, server)
        finally:
            await context_of(server).close()

    return open_house


def runs(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Let a test be a coroutine."""

    @wraps(test)
    def run(*args: Any, **keywords: Any) -> None:
        asyncio.run(_to_the_end(test(*args, **keywords)))

    return run


_opened: list[PostgresDatabase] = []


async def _to_the_end(test: Coroutine[Any, Any, None]) -> None:
    """Connections that a test leaves open are closed on the loop that they belong to."""
    try:
        await test
    finally:
        while _opened:
            await _opened.pop().close()
