"""What live events cost, and how soon they come: strongroom alone, on SQLite and on PostgreSQL.

Three questions. How much memory do idle streams take, each of an account of its own? Do they slow those who write?
And when a document is written, how long after the write's own answer does every stream of the vault have the event,
from the same process and from another one?
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import uvloop

from bench import proc
from bench.progress import show_progress
from strongroom.credentials import Lifetime, TokenIssuer, TokenSigner
from strongroom.model import Origin
from strongroom.store import Tx, open_database
from strongroom.store.queries import accounts, sessions

SECRET = "a secret of the benchmark, 32 bytes or more"
BIN = Path(sys.executable).parent
WRITERS = 16


class Person:
    """An account with an open session, made without waiting for a password to be hashed."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.vault = ""


async def settle(where: str, count: int, secret: str = SECRET, issued_by: str = "strongroom") -> list[Person]:
    """So many accounts, straight through the store."""
    now = time.time_ns() // 1_000_000
    lifetime = Lifetime(86_400_000)
    issuer = TokenIssuer(TokenSigner(secret.encode(), issued_by), issued_by, lifetime, lifetime)
    db = open_database(where, lambda: now)

    async def add(tx: Tx, user_id: str, pair: Any) -> None:
        await accounts.insert(tx, user_id, f"{user_id}@example.com", "no password")
        await sessions.open_(tx, user_id, pair.session_id, "no password", pair.session_expires_at, Origin("bench", ""))

    async def one() -> Person:
        user_id = str(uuid.uuid4())
        pair = issuer.pair(user_id, str(uuid.uuid4()), now)
        await db.write(add, user_id, pair)
        return Person(pair.access_token)

    people: list[Person] = []
    while len(people) < count:  # those of a round share a commit
        people += await asyncio.gather(*(one() for _ in range(min(100, count - len(people)))))
    await db.close()
    return people


class Wire(asyncio.Protocol):
    """One connection: requests one after the other, or a stream whose events are counted."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.awaited = 0  # bytes of the answer that is under way
        self.events = 0
        self.last = 0.0
        self.streaming = False
        self.on_event: Callable[[], None] | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self.streaming:
            found = data.count(b"event: document\n")
            if found:
                self.events += found
                self.last = time.perf_counter()
                if self.on_event is not None:
                    self.on_event()
            return
        self.buffer += data
        if len(self.buffer) < self.awaited:
            return
        head, end, rest = self.buffer.partition(b"\r\n\r\n")
        if not end or self._answer is None:
            return
        if b"text/event-stream" in head:
            if b"event: ready" in rest:
                self.streaming = True
                self._answer.set_result(bytes(rest))
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        self.awaited = len(head) + 4 + length
        if len(rest) >= length:
            self.buffer, self.awaited = bytearray(), 0
            self._answer.set_result(bytes(head[:12] + b"\n" + rest))

    def ask(self, method: str, path: str, token: str, body: Any = None) -> Awaitable[bytes]:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        kind = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{kind}\r\n"
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(head.encode() + raw)
        return self._answer

    def close(self) -> None:
        self._transport.close()


async def wire(port: int) -> Wire:
    _, made = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", port)
    return made


async def asked(connection: Wire, method: str, path: str, token: str, body: Any = None) -> Any:
    answer = await connection.ask(method, path, token, body)
    status, _, text = answer.partition(b"\n")
    assert status[9:10] == b"2", answer
    return json.loads(text)


async def stream(port: int, person: Person, path: str = "") -> Wire:
    made = await wire(port)
    await made.ask("GET", path or f"/vaults/{person.vault}/events", person.token)
    return made


class Place:
    """A database and the server processes on it."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.folder = folder
        self.engine = engine
        if engine == "postgres":
            from bench.postgres import Postgres

            self._postgres: Postgres | None = Postgres(folder / "pg")
            self.where = self._postgres.url
        else:
            self._postgres = None
            self.where = str(folder / "vault.db")

    @classmethod
    @contextmanager
    def new(cls, engine: str) -> Iterator[Self]:
        """An empty database, for as long as it is needed."""
        with tempfile.TemporaryDirectory() as folder:
            place = cls(engine, Path(folder))
            try:
                yield place
            finally:
                if place._postgres is not None:
                    place._postgres.stop()

    def pids(self, pid: int) -> list[int]:
        """A server process and those of PostgreSQL, if that is under it."""
        return [pid] if self._postgres is None else [pid, *self._postgres.pids()]

    @contextmanager
    def serving(self) -> Iterator[tuple[int, int]]:
        """A server process: its id and its port."""
        own = {"JWT_SECRET": SECRET, "PORT": "0", "HOST": "127.0.0.1", "JWT_ACCESS_EXPIRY": "1d"}
        own["DATABASE_URL" if self.engine == "postgres" else "DB_PATH"] = self.where
        with Path(os.devnull).open("wb") as nothing:
            server = subprocess.Popen(
                [BIN / "strongroom", "serve"],
                env={**os.environ, **own},
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=nothing,
                text=True,
            )
        assert server.stdout is not None
        port = next(int(found[1]) for line in server.stdout if (found := re.search(r"listens on \S+:(\d+)", line)))
        try:
            yield server.pid, port
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(40)
            server.stdout.close()


async def furnished(port: int, people: list[Person]) -> None:
    """A vault for each."""
    connection = await wire(port)
    for person in people:
        person.vault = (await asked(connection, "POST", "/vault", person.token, {"name": "v"}))["uid"]
    connection.close()


async def writes(port: int, person: Person, seconds: float) -> tuple[float, float]:
    """Closed-loop writers: writes a second, and the median time of one in milliseconds."""
    path, body = f"/vaults/{person.vault}/documents", {"collection": "c", "data": "A" * 1_024}
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def write() -> None:
        connection = await wire(port)
        while time.perf_counter() < end:
            began = time.perf_counter()
            await asked(connection, "POST", path, person.token, body)
            times.append(time.perf_counter() - began)
        connection.close()

    began = time.perf_counter()
    await asyncio.gather(*(write() for _ in range(WRITERS)))
    return len(times) / (time.perf_counter() - began), statistics.median(times) * 1000


async def idle(place: Place, count: int, rounds: int, seconds: float) -> dict[str, float]:
    """Memory of idle streams, and what they do to those who write in a vault that nobody follows."""
    people = await settle(place.where, count + 1)
    *readers, writer = people
    with place.serving() as (pid, port):
        await furnished(port, people)
        await writes(port, writer, seconds)  # whatever grows once has grown
        for _ in range(2):
            opened = [await stream(port, reader) for reader in readers[: count // 10]]
            for one in opened:
                one.close()
        alone: list[tuple[float, float]] = []
        beside: list[tuple[float, float]] = []
        grown: list[int] = []
        for number in range(rounds):
            show_progress(f"{place.engine}: {count} idle streams, round {number + 1} of {rounds}")
            alone.append(await writes(port, writer, seconds))
            before = proc.memory_bytes([pid])
            opened = [await stream(port, reader) for reader in readers]
            grown.append(proc.memory_bytes([pid]) - before)
            began = proc.cpu_seconds([pid])
            await asyncio.sleep(5)
            cpu = (proc.cpu_seconds([pid]) - began) / 5
            beside.append(await writes(port, writer, seconds))
            for one in opened:
                one.close()
            await asyncio.sleep(1)
    return {
        "MiB more with the streams, first time": grown[0] / 2**20,
        "KiB for each stream": grown[0] / count / 1024,
        "CPU while nothing happens, %": cpu * 100,
        "writes/s alone": statistics.median(rate for rate, _ in alone),
        "writes/s beside the streams": statistics.median(rate for rate, _ in beside),
        "write p50 ms alone": statistics.median(p50 for _, p50 in alone),
        "write p50 ms beside the streams": statistics.median(p50 for _, p50 in beside),
    }


async def latency(place: Place, count: int, number: int, *, apart: bool) -> dict[str, float]:
    """From the answer of a write to the event on each stream; apart: the streams are on another process."""
    [person] = await settle(place.where, 1)
    with place.serving() as (_, port), place.serving() as (_, other):
        await furnished(port, [person])
        streams = [await stream(other if apart else port, person) for _ in range(count)]
        writer = await wire(port)
        path, body = f"/vaults/{person.vault}/documents", {"collection": "c", "data": "A" * 1_024}
        spent: list[float] = []
        slowest: list[float] = []
        for seen in itertools.count(1):
            if seen > number:
                break
            await asked(writer, "POST", path, person.token, body)
            answered = time.perf_counter()
            while any(one.events < seen for one in streams):
                await asyncio.sleep(0.0005)
                assert time.perf_counter() < answered + 10, "an event did not come"
            waits = [max(0.0, one.last - answered) for one in streams]
            spent += waits
            slowest.append(max(waits))
            await asyncio.sleep(0.02)
        for one in streams:
            one.close()
    spent.sort()
    return {
        "median ms": statistics.median(spent) * 1000,
        "p99 ms": spent[int(len(spent) * 0.99)] * 1000,
        "median ms of the last of all": statistics.median(slowest) * 1000,
    }


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.streams", description=__doc__)
    parser.add_argument("--engines", default="sqlite,postgres")
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--writes", type=int, default=200)
    options = parser.parse_args()
    gc.disable()
    found: dict[str, dict[str, dict[str, float]]] = {}
    for engine in options.engines.split(","):
        found[engine] = {}
        with Place.new(engine) as place:
            show_progress(f"{engine}: idle streams")
            found[engine][f"{options.streams} idle streams"] = await idle(
                place, options.streams, options.rounds, options.seconds
            )
            for apart in (False, True):
                where = "another process" if apart else "the same process"
                show_progress(f"{engine}: 100 streams on {where}")
                found[engine][f"event on 100 streams of {where}, after the write's answer"] = await latency(
                    place, 100, options.writes, apart=apart
                )
    show_progress("")
    for engine, parts in found.items():
        for title, figures in parts.items():
            print(f"{engine}: {title}")
            for name, value in figures.items():
                print(f"  {name:<40} {value:10.2f}")


if __name__ == "__main__":
    uvloop.run(main())
