"""The web app, served by real servers on both engines, in a real browser under the policy that they send.

Fixtures: `server` (on both engines in turn, or on one by `@on_a_file`), `pages` (a person's browser at the size of a
desktop; `pages.open(path)` is a tab of it), `phone_pages` (the same at the size of a phone), `make_pages` (more
browsers: another device, another colour scheme), `person` (somebody with an account and a Python device). A message on
the console or a violation of the policy fails the test; `pages.forgive(part)` says which it expects.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.kit.browsers import web_app
from tests.kit.browsers.web_app import DESKTOP, PHONE, MakePages, Pages
from tests.kit.clients import javascript
from tests.kit.servers.process import ENGINES, Server
from tests.web.page_helpers import BrowserUser


@pytest.fixture(scope="session", autouse=True)
def _shared_builds(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """All processes that run these tests use the same builds."""
    own = tmp_path_factory.getbasetemp()
    javascript.shared = own if worker_id == "master" else own.parent


_browsers: list[Browser] = []  # one, or none
_open_browsers = ExitStack()
_open_pages: list[Pages] = []  # those of the test that runs


@pytest.fixture
def browser() -> Browser:
    """Chromium, which the tests of this folder share."""
    if not _browsers:
        _browsers.append(_open_browsers.enter_context(web_app.browser()))
    return _browsers[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """End the browser before a test of another folder runs: while it is open, this thread has an event loop."""
    try:
        yield
    finally:
        if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
            _end_browser()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failed test what its pages show."""
    report = yield
    if call.when == "call" and report.failed:
        for pages in _open_pages:
            report.sections.append(("a page when the test failed", pages.describe()))
    return report


def pytest_sessionfinish() -> None:
    """End the browser also where the tests were stopped."""
    _end_browser()


def _end_browser() -> None:
    _browsers.clear()
    _open_browsers.close()


@pytest.fixture(scope="session")
def _servers() -> Iterator[dict[str, Server]]:
    """The servers that tests share, by engine."""
    running: dict[str, Server] = {}
    try:
        yield running
        for server in running.values():
            assert server.end() == 0
            assert "Traceback" not in server.log()
    finally:
        for server in running.values():
            server.abandon()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    name: str = request.param
    return name


@pytest.fixture
def server(engine: str, _servers: dict[str, Server], tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A real server with the app, which all tests of an engine share."""
    if engine not in _servers:
        home = tmp_path_factory.mktemp(f"server-{engine}")
        _servers[engine] = Server(home, engine, WEB=str(web_app.app_folder())).start()
    return _servers[engine]


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[Server]:
    """A server with the app for one test alone, on a file, not yet started; its settings may be changed."""
    running = Server(tmp_path / "server", WEB=str(web_app.app_folder()))
    yield running
    running.abandon()


@pytest.fixture
def make_pages(browser: Browser) -> Iterator[MakePages]:
    """Makes browsers of different people or devices: of a server, with options of Playwright's contexts."""
    made = _open_pages
    made.clear()

    def make(server: Server, **options: Any) -> Pages:
        context = browser.new_context(**{"viewport": DESKTOP, **options})
        made.append(Pages(context, f"http://localhost:{server.port}"))
        return made[-1]

    yield make
    try:
        for pages in made:
            pages.check()
    finally:
        for pages in made:
            pages.context.close()
        made.clear()


@pytest.fixture
def person(server: Server) -> Iterator[BrowserUser]:
    """Somebody with an account, and a Python device of theirs."""
    with closing(BrowserUser(server)) as found:
        yield found


@pytest.fixture
def pages(make_pages: MakePages, server: Server) -> Pages:
    """A person's browser, at the size of a desktop."""
    return make_pages(server)


@pytest.fixture
def phone_pages(make_pages: MakePages, server: Server) -> Pages:
    """A person's browser, at the size of a phone."""
    return make_pages(server, viewport=PHONE, has_touch=True, is_mobile=True)
