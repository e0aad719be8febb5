"""The fixtures that all tests share, and what pytest is to know of them."""

from __future__ import annotations

import functools
import gc
import importlib.util
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpcore2
import hypothesis
import pytest

from strongroom.store import Database, open_database
from strongroom.store.postgres.engine import PostgresDatabase

pytest.register_assert_rewrite("tests.kit", "tests.store")  # before anything of them is imported

from tests.kit import cheap_hashing, requirements
from tests.kit.asynchronous import close_after_test
from tests.kit.clock import Clock
from tests.kit.order import slow_first
from tests.kit.programs import mount_namespace
from tests.kit.report import SOAK, Report
from tests.kit.samples import LONG
from tests.kit.servers.in_process import OpenServer, in_process_server
from tests.kit.servers.internals import wait_for_databases
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
    left_out = set(long)
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)  # set in a worker of pytest-xdist
    items[:] = slow_first([item for item in items if item not in left_out], workers)


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
    """The location of a new database, on each engine in turn: a path or a URL."""
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
            close_after_test(db)
        return db

    return opened


@pytest.fixture
def open_server(where: str, clock: Clock) -> OpenServer:
    """Opens a server in this process, for as long as the block of an `async with` lasts."""
    return functools.partial(in_process_server, where, clock)
