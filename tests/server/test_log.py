"""The log: one line for each request, and nothing in it that a user sent."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any, BinaryIO

import httpx2

from strongroom import create_server
from strongroom.server.monitoring.log import Log
from tests.kit.asynchronous import async_test
from tests.kit.servers.internals import context_of, database_of
from tests.kit.servers.secret import SECRET

CANARY = "canary-in-the-coal-mine"


async def lines_of(tmp_path: Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    read, write = os.pipe()
    log = Log(write)
    server = create_server(jwt_secret=SECRET, db_path=str(tmp_path / "x.db"), log=log)
    transport = httpx2.ASGITransport(app=server, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://server") as http:
        for request in requests:
            await http.request(**request)
    await context_of(server).close()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    assert CANARY not in text
    return [json.loads(line) for line in text.splitlines()]


@async_test
async def test_one_line_a_request(tmp_path: Path) -> None:
    """Method, template, status, duration, bytes, request id, account id."""
    register = {"json": {"email": f"{CANARY}@example.com", "password": CANARY}}
    lines = await lines_of(
        tmp_path,
        {"method": "POST", "url": "/auth/email/register", **register, "headers": {"x-request-id": "my-id-1"}},
        {"method": "POST", "url": "/auth/email/login", "json": {"email": f"{CANARY}@x", "password": CANARY}},
        {"method": "GET", "url": f"/vault/by-name/{CANARY}", "headers": {"authorization": f"Bearer {CANARY}"}},
        {"method": "GET", "url": f"/{CANARY}?{CANARY}={CANARY}"},
        {"method": "GET", "url": "/vault", "headers": {"authorization": f"Bearer srk_{CANARY}"}},
        {"method": "POST", "url": "/auth/refresh", "json": {"refreshToken": CANARY}},
        {"method": "POST", "url": "/auth/refresh", "content": CANARY, "headers": {"content-type": "application/json"}},
    )
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("POST", "/auth/email/register", 201),
        ("POST", "/auth/email/login", 401),
        ("GET", "/vault/by-name/{name*}", 401),
        ("GET", "-", 404),
        ("GET", "/vault", 401),
        ("POST", "/auth/refresh", 401),
        ("POST", "/auth/refresh", 400),
    ]
    assert lines[0]["requestId"] == "my-id-1"
    assert set(lines[0]) == {
        "time",
        "level",
        "event",
        "method",
        "route",
        "status",
        "ms",
        "bytes",
        "requestId",
        "account",
    }


@async_test
async def test_a_fault_of_our_own_is_a_clean_answer_and_a_trace_without_words(tmp_path: Path) -> None:
    """The client gets the request id and nothing else; the log gets where it was, not what was sent."""
    read, write = os.pipe()
    server = create_server(jwt_secret=SECRET, db_path=str(tmp_path / "x.db"), log=Log(write))

    async def breaks(*_: Any) -> None:
        raise KeyError(CANARY)

    database_of(server).read = breaks  # type: ignore[method-assign, assignment]
    transport = httpx2.ASGITransport(app=server, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://server") as http:
        answer = await http.post("/auth/email/login", json={"email": CANARY, "password": CANARY})
    await context_of(server).close()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert answer.json()["error"]["requestId"] == answer.headers["x-request-id"]
    assert CANARY not in answer.text + text
    fault = json.loads(text.splitlines()[0])
    assert fault["error"] == "KeyError"
    assert any("sessions.py" in frame for frame in fault["trace"])


def written(act: Any, **how: Any) -> str:
    """What a log writes."""
    read, write = os.pipe()
    log = Log(write, **how)
    act(log)
    log.flush()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode()


def everything(log: Log) -> None:
    log.request("GET", "/vault", 200, 0.0123, 42, "id-1", "acc-1")
    log.request("GET", "/vault", 404, 0.001, 42, "id-2", None)
    log.request("GET", "/vault", 500, 0.001, 42, "id-3", None)
    log.request("GET", "/vault", 507, 0.001, 42, "id-4", None)
    log.say("info", "began")
    log.say("warning", "beware\nof lines")
    log.say("error", "ended")
    try:
        dict[str, int]()[CANARY]
    except KeyError as error:
        log.fault(error, "id-5")


def test_the_level_decides_what_is_written() -> None:
    """A request that the server failed at is an error; what the client did wrong, or the disk, is not."""
    all_of_it = [json.loads(line) for line in written(everything).splitlines()]
    assert [line["level"] for line in all_of_it] == [
        *("info", "info", "error", "info"),
        *("info", "warning", "error", "error"),
    ]
    assert written(everything, level="debug").count("\n") == 8
    assert [json.loads(line)["level"] for line in written(everything, level="warning").splitlines()] == [
        *("error", "warning", "error", "error"),
    ]
    assert written(everything, level="error").count("\n") == 3


def test_people_get_plain_lines() -> None:
    """The same in fewer signs; nothing that was sent can begin a line of its own."""
    text = written(everything, plain=True)
    lines = text.splitlines()
    assert len(lines) == 8
    assert "200  GET    /vault  12.3 ms  42 B  id-1  acc-1" in lines[0]
    assert lines[5].endswith("warning  beware of lines")
    assert "KeyError at test_log.py:" in lines[7]
    assert CANARY not in text
    assert written(everything, plain=True, level="warning").count("\n") == 4


def _until_told(pipe: BinaryIO) -> list[bytes]:
    """The lines of a log up to the one that tells what was left out."""
    lines = [pipe.readline()]
    while b"leftOut" not in lines[-1]:
        lines.append(pipe.readline())
    return lines


@async_test
async def test_strangers_cannot_fill_the_log() -> None:
    """Of callers without a good token a hundred lines a second are written, then a count; of others every line."""
    read, write = os.pipe()
    log = Log(write)
    with os.fdopen(read, "rb") as pipe:
        before = time.monotonic()
        for _ in range(1_000):
            log.request("GET", "-", 404, 0.0, 9, "id", None, known=False)
        for _ in range(200):
            log.request("GET", "/vault", 200, 0.0, 9, "id", "ann", known=True)
        log.request("GET", "/vault", 500, 0.0, 9, "id", None, known=False)
        log.flush()
        told = await asyncio.to_thread(_until_told, pipe)
        log.close()
        os.close(write)
        lines = [json.loads(line) for line in told + pipe.readlines()]
    seconds = int(time.monotonic() - before) + 2
    strangers = [line for line in lines if line.get("status") == 404]
    assert 100 <= len(strangers) <= 100 * seconds
    assert sum(line.get("account") == "ann" for line in lines) == 200
    assert sum(line.get("status") == 500 for line in lines) == 1
    left_out = sum(line["leftOut"] for line in lines if line["event"] == "requests")
    assert len(strangers) + left_out == 1_000


@async_test
async def test_a_bad_token_is_a_strangers_and_a_good_one_is_not(tmp_path: Path) -> None:
    """Whoever proves who he is has every request in the log, however many they are."""
    read, write = os.pipe()
    server = create_server(jwt_secret=SECRET, db_path=str(tmp_path / "x.db"), log=Log(write))
    transport = httpx2.ASGITransport(app=server)
    async with httpx2.AsyncClient(transport=transport, base_url="http://server") as http:
        body = {"email": "a@example.com", "password": "correct horse"}
        token = (await http.post("/auth/email/register", json=body)).json()["accessToken"]
        for bearer in ("nonsense", token):
            for _ in range(150):
                await http.get("/vault", headers={"authorization": f"Bearer {bearer}"})
    await context_of(server).close()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        lines = [json.loads(line) for line in pipe.read().decode().splitlines()]
    assert sum(line.get("status") == 200 for line in lines) == 150
    refused = sum(line.get("status") == 401 for line in lines)
    assert refused + sum(line.get("leftOut", 0) for line in lines) == 150
