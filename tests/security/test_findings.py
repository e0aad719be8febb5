"""Holes that were found by trying, each with the try that found it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

from strongroom import store
from strongroom.store.sqlite.engine import SqliteDatabase
from tests.kit.asynchronous import async_test
from tests.kit.calibration import measured, reference_time
from tests.kit.clock import Clock
from tests.kit.people.settled import settle_in
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.process import Server


@async_test
async def test_no_content_type_costs_more_than_it_is_long(open_server: OpenServer) -> None:
    """A pattern once took minutes for seventy characters, and everybody waited."""
    async with open_server() as server:
        allowed = reference_time(4 * 1024 * 1024)
        with measured() as measure:
            for tail in (" ; " * 2_000 + "x", ";" * 20_000, "; charset" * 3_000):
                answer = await server.http.post(
                    "/auth/email/login", content=b"{}", headers={"content-type": "application/json" + tail}
                )
                assert answer.status_code in {400, 415}
        assert measure.seconds < allowed


@pytest.mark.parametrize("good", ["", "; charset=utf-8", ' ;charset="UTF-8" ', ";", "; charset = utf8;"])
@async_test
async def test_json_may_name_its_charset(open_server: OpenServer, good: str) -> None:
    """In all the ways in which clients write it."""
    async with open_server() as server:
        headers = {"content-type": "Application/JSON" + good}
        assert (await server.http.post("/auth/refresh", content=b"{}", headers=headers)).status_code == 400


@async_test
async def test_a_list_that_is_broken_off_leaves_no_old_moment_behind(open_server: OpenServer, where: str) -> None:
    """The next list shows what was written since."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        path = f"/vaults/{vault['uid']}/documents"
        for _ in range(6):
            await person.document(vault, data="A" * 100_000)
        app: Any = server.app
        for _ in range(3):
            await _hang_up(app, path, person.access)
            made = await person.document(vault)
            shown = (await person("GET", path)).json()["documents"]
            assert shown[-1]["uid"] == made["uid"], where


async def _hang_up(app: Any, path: str, token: str) -> None:
    """Ask for a list, and be gone after its first piece."""
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            gone.set()
        await asyncio.sleep(0)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {token}".encode())],
        "client": ("127.0.0.1", 5),
    }
    await app(scope, receive, send)


@async_test
async def test_vaults_of_wide_characters_are_all_listed(open_server: OpenServer) -> None:
    """A page is cut by bytes, so what was left must be told by bytes too."""
    async with open_server() as server:
        person = await server.person()
        for _ in range(5):
            await person.vault(data="€" * 60_000, salt="")
        assert len((await person("GET", "/vault")).json()["vaults"]) == 5


@async_test
async def test_a_right_password_in_a_burst_is_one_guess_among_many(
    open_server: OpenServer, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many accounts at once from one address: once the address is used up, no guess is told to be right."""
    monkeypatch.setattr(
        "strongroom.store.postgres.engine.WAIT_SECONDS", 60.0
    )  # however busy the machine is, all are answered
    async with open_server() as server:
        person = await server.person()

        async def guess(first: int, last: int, *more: Awaitable[httpx2.Response]) -> list[httpx2.Response]:
            guesses = (server.login(f"nobody{n}@example.com", "wrong password") for n in range(first, last))
            return list(await asyncio.gather(*guesses, *more))

        for first in range(0, 60, 20):  # not more at once than may wait from one address
            assert {answer.status_code for answer in await guess(first, first + 20)} == {401}
        answers = await guess(60, 110, server.login(person.email))
        assert sum(answer.status_code == 401 for answer in answers) == 40
        if "://" not in where:  # where the last to come is the last to be checked
            assert answers[-1].status_code == 429


@async_test
async def test_a_key_that_may_not_read_is_not_shown_what_is_stored(open_server: OpenServer) -> None:
    """Not in the answer to a rename, nor in that to a delete."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault(data="sealed", salt="c2FsdA==")
        document = await person.document(vault, data="QUJD", hmac="h")
        key = await person.key(permissions=["write", "delete"])
        renamed = await person("PUT", f"/vault/{vault['uid']}", {"name": "other", "version": 1}, bearer=key)
        assert renamed.status_code == 200
        assert "data" not in renamed.json()
        gone = await person("DELETE", f"/vaults/{vault['uid']}/documents/{document['uid']}", bearer=key)
        assert (gone.json()["data"], gone.json()["hmac"]) == ("", None)


@async_test
async def test_a_request_that_outlives_its_account_is_refused(open_server: OpenServer) -> None:
    """Its rows are gone: that is no fault of ours."""
    async with open_server() as server:
        person = await server.person()
        app: Any = server.app
        body = b'{"name": "late"}'
        started, go_on = asyncio.Event(), asyncio.Event()
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            started.set()
            await go_on.wait()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/vault",
            "raw_path": b"/vault",
            "query_string": b"",
            "headers": [
                (b"authorization", f"Bearer {person.access}".encode()),
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(body)),
            ],
            "client": ("127.0.0.1", 5),
        }
        held = asyncio.create_task(app(scope, receive, send))
        await started.wait()
        assert (await person("DELETE", "/auth/me", {"password": "correct horse"})).status_code == 200
        go_on.set()
        await held
        assert sent[0]["status"] == 401


@async_test
async def test_a_full_disk_while_the_log_is_folded_stops_nobody(tmp_path: Path, clock: Clock) -> None:
    """The writer goes on, and the next fold is another chance."""
    db = SqliteDatabase(str(tmp_path / "x.db"), clock)
    real = db._writer.connection

    class Full:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def wal_checkpoint(self, **_: Any) -> None:
            raise apsw.FullError("no space")

    db._writer.connection = Full()  # type: ignore[assignment]
    await asyncio.wait_for(db.truncate_log(), 10)
    assert await asyncio.wait_for(db.write(store.accounts.insert, "u", "e@x", "hash"), 10) is not None
    db._writer.connection = real
    await db.close()


@pytest.fixture
def lone(tmp_path: Path) -> Any:
    server = Server(tmp_path).start()
    yield server
    server.abandon()


def test_a_held_request_does_not_outlive_its_session(lone: Server) -> None:
    """Who sends the headers, waits for the session to end, and then sends the body, is refused."""
    _, token, _ = settle_in(lone)
    body = b'{"name": "for the thief"}'
    head = (
        "POST /auth/api-keys HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", lone.port), timeout=20) as wire:
        wire.sendall(head.encode())
        with lone.connect(token) as http:
            deadline = time.monotonic() + 0.5
            while time.monotonic() < deadline:
                assert http.get("/auth/me").status_code == 200
            assert http.post("/auth/logout", json={}).status_code == 200
        wire.sendall(body)
        assert b" 401 " in wire.makefile("rb").readline()


def test_trailers_are_no_headers(lone: Server) -> None:
    """An authority that comes after the body comes too late."""
    _, token, _ = settle_in(lone)
    body = b'{"name": "x"}'
    request = (
        b"POST /vault HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"%x\r\n%s\r\n0\r\nAuthorization: Bearer %s\r\n\r\n" % (len(body), body, token.encode())
    )
    assert lone.exchange(request).status_code == 401


def test_a_body_that_is_dropped_on_the_way_is_not_taken_for_none(lone: Server) -> None:
    """An offer to upgrade makes the parser skip the body: the request must not be carried out without it."""
    _, token, vault = settle_in(lone)
    with lone.connect(token) as http:
        path = f"/vaults/{vault}/documents"
        made = http.post(path, json={"collection": "c", "data": "AAAA"}).json()
        http.put(f"{path}/{made['uid']}", json={"data": "BBBB", "version": 1})
        body = b'{"version": 1}'
        request = (
            f"DELETE {path}/{made['uid']} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQBAAAAAAUAAEAA\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        assert lone.exchange(request).status_code in {400, 409}
        answer: httpx2.Response = http.get(f"{path}/{made['uid']}")
        assert answer.json()["deletedAt"] is None
