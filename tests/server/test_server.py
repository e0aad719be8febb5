"""The server as a Python developer meets it: embedded, or listening in a thread."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import strongroom
from strongroom.server.monitoring.log import Log
from strongroom.server.settings import BadSetting
from strongroom.server.transport import runner
from strongroom.store import CannotOpen
from tests.kit.asynchronous import async_test
from tests.kit.network.raw_http import connected
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.internals import context_of, is_started
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until


@contextmanager
def listening(tmp_path: Path, **given: Any) -> Iterator[str]:
    """A server that listens in a thread: its URL. At the end it has stopped."""
    server = strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path / "x.db", variant="document", **given)
    thread = threading.Thread(target=server.listen, args=(0,))
    thread.start()
    try:
        until(lambda: is_started(server) or not thread.is_alive(), "the start")
        yield server.url or ""
    finally:
        server.close()
        thread.join(20)
    assert not thread.is_alive()


def test_it_listens_where_it_is_told_and_stops_when_it_is_asked(tmp_path: Path) -> None:
    """`create_server(...).listen(port)` runs it."""
    with listening(tmp_path) as url, httpx2.Client(base_url=url) as http:
        assert http.get("/health").json()["status"] == "ok"


def test_the_date_header_is_renewed(tmp_path: Path) -> None:
    """Every second, for as long as the server runs."""
    with listening(tmp_path) as url, httpx2.Client(base_url=url) as http:
        first = http.get("/health").headers["date"]
        until(lambda: http.get("/health").headers["date"] != first, "another second")


def test_a_request_that_does_not_end_does_not_keep_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has 30 seconds once the server stops; then it is cancelled, and the log says so."""
    monkeypatch.setattr(runner, "_FINISH_SECONDS", 0.5)
    with (
        (tmp_path / "log").open("wb") as log,
        ExitStack() as stack,
        listening(tmp_path, log=Log(log.fileno(), "info", plain=True)) as url,
    ):
        wire = stack.enter_context(connected(int(url.rpartition(":")[2])))
        wire.sendall(
            b"POST /auth/email/register HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"
        )
        assert wire.recv(12) == b"HTTP/1.1 100"  # it waits for the body
    assert "Cancelled 1 requests" in (tmp_path / "log").read_text()


def test_signal_handlers_of_the_host_program_are_restored(tmp_path: Path) -> None:
    """SIGTERM stops a server in the main thread, and is the program's own again once `listen` has returned."""
    program = """if True:
        import os, signal, sys, threading, strongroom
        signals = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
        before = [lambda *_: None for _ in signals]
        for number, handler in zip(signals, before):
            signal.signal(number, handler)
        server = strongroom.create_server(jwt_secret="x" * 32, db_path=sys.argv[1])
        def stop():
            while server._runner is None or not server._runner.started.wait(0.01):
                pass
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
        threading.Thread(target=stop).start()
        server.listen(0)
        assert [signal.getsignal(number) for number in signals] == before
        print("restored")
    """
    command = [sys.executable, "-c", program, str(tmp_path / "x.db")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.endswith("restored\n")


@async_test
async def test_it_can_be_mounted_below_a_path(open_server: OpenServer) -> None:
    """As an ASGI application inside another one."""
    async with open_server() as server:
        app = server.app

        async def mounted(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "root_path": "/inner"}, receive, send)

        transport = httpx2.ASGITransport(app=mounted)
        async with httpx2.AsyncClient(transport=transport, base_url="http://server") as http:
            assert (await http.get("/inner/health")).status_code == 200


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"jwt_secret": ""}, "JWT_SECRET is not set"),
        ({"variant": "neither"}, "VAULT_VARIANT must be one of both, document and blob, not 'neither'"),
        ({"jwt_access_expiry": "soon"}, "JWT_ACCESS_EXPIRY must be a number and ms, s, m, h, d or w"),
        ({"jwt_refresh_expiry": "0d"}, "JWT_REFRESH_EXPIRY must be"),
        ({"jwt_refresh_expiry": "1.5h"}, "JWT_REFRESH_EXPIRY must be"),
        ({"port": 70_000}, "PORT must be a whole number from 0 to 65535"),
        ({"cors_origins": "example.com"}, "CORS_ORIGINS must be"),
        ({"max_body_bytes": "lots"}, "MAX_BODY_BYTES must be"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, settings: dict[str, Any], says: str) -> None:
    """The sentence names the variable and what it takes."""
    given: dict[str, Any] = {"jwt_secret": SECRET, "db_path": tmp_path / "x.db", **settings}
    with pytest.raises(BadSetting, match=says):
        strongroom.create_server(**given)


def test_an_unwritable_path_is_a_sentence(tmp_path: Path) -> None:
    """Not a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotOpen, match="Cannot open the database"):
        strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path / "file" / "x.db")


def test_nothing_shows_the_secret(tmp_path: Path) -> None:
    """A repr ends in logs."""
    server = strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path / "x.db")
    for thing in (
        server,
        server.settings,
        context_of(server),
        context_of(server).token_signer,
        context_of(server).token_issuer,
    ):
        assert SECRET not in repr(thing)


@async_test
async def test_an_api_key_is_noted_at_most_once_a_minute(open_server: OpenServer) -> None:
    """`lastUsedAt` is exact to the minute and costs no write a request."""
    async with open_server() as server:
        person = await server.person()
        key = await person.key()
        start = server.clock.now

        async def last() -> int:
            moment: int = (await person("GET", "/auth/api-keys")).json()["keys"][0]["lastUsedAt"]
            return moment

        for wanted, passes in ((start, 0), (start, 59_999), (start + 60_000, 1), (start + 60_000, 100)):
            server.clock.pass_(passes)
            assert (await person("GET", "/vault", bearer=key)).status_code == 200
            assert await last() == wanted


@async_test
async def test_a_key_expires_when_it_says(open_server: OpenServer) -> None:
    """To the millisecond."""
    async with open_server() as server:
        person = await server.person()
        key = await person.key(expiresAt=server.clock.now + 1_000)
        server.clock.pass_(999)
        assert (await person("GET", "/vault", bearer=key)).status_code == 200
        server.clock.pass_(1)
        assert (await person("GET", "/vault", bearer=key)).status_code == 401


@async_test
async def test_a_key_of_some_collections_does_not_reach_the_blob(open_server: OpenServer) -> None:
    """The blob lies in no collection."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault(data="sealed", salt="")
        key = await person.key(collections=["notes"])
        for path in (f"/vault/{vault['uid']}", f"/vault/by-name/{vault['name']}"):
            assert "data" not in (await person("GET", path, bearer=key)).json()
        assert "data" not in (await person("GET", "/vault", bearer=key)).json()["vaults"][0]
        put = await person("PUT", f"/vault/{vault['uid']}", {"data": "x", "salt": ""}, bearer=key)
        assert put.status_code == 403
        narrow = await person.key(vaultUids=[vault["uid"]])
        assert (await person("GET", f"/vault/{vault['uid']}", bearer=narrow)).json()["data"] == "sealed"
        put = await person("PUT", f"/vault/{vault['uid']}", {"data": "x", "salt": ""}, bearer=narrow)
        assert put.status_code == 200
