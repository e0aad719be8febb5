"""The HTTP layer is never looser than a strict reference, whatever bytes come and wherever they are cut."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom import create_server
from strongroom.server.transport import connection as transport
from tests.http_differential.corpus import CORPUS
from tests.http_differential.cut import PROBE, Cut, fewest
from tests.http_differential.generator import Generator
from tests.http_differential.layer import Layer, layer, with_routes
from tests.http_differential.outcome import Outcome, read_answers
from tests.http_differential.reference import reference
from tests.http_differential.rule import agree, judge
from tests.kit.asynchronous import async_test
from tests.kit.samples import LONG, rounds
from tests.kit.servers.internals import is_started
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until

SEED = int(os.environ.get("HTTP_SEED", "0")) or secrets.randbelow(2**32)
STREAMS = rounds(700, 100_000, "STREAMS")
CUTTINGS = 3  # of each generated stream, besides the uncut one


@pytest.fixture(scope="module")
def database_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the database lies that all tests here open, and none of them writes to."""
    return tmp_path_factory.mktemp("database")


async def wrong_with(layer: Layer, stream: bytes, cuttings: list[Cut]) -> list[str]:
    """What is wrong with a stream: against the reference, uncut and cut, and between the cuttings."""
    reading = reference(stream)
    methods = [seen.method for seen in reading.requests]
    first: Outcome | None = None
    for cut in [Cut([stream], [True]), *cuttings]:
        ours = await layer.play(cut, methods)
        wrong = judge(reading, ours)
        first = first or ours
        differs = agree(reading, first, ours)
        if differs is not None:
            wrong.append(differs)
        if wrong:
            return [*wrong, str(cut)]
    return []


async def generated(layer: Layer, seed: int, streams: int) -> tuple[int, bytes, list[str]] | None:
    """The first generated stream with something wrong: its number, its bytes, and what."""
    for number in range(streams):
        generator = Generator(seed, number)
        stream = generator.stream()
        wrong = await wrong_with(layer, stream, [generator.cut(stream) for _ in range(CUTTINGS)])
        if wrong:
            return number, stream, wrong
    return None


async def in_the_corpus(layer: Layer, name: str) -> list[str]:
    """What is wrong with a stream of the corpus, cut in two at every place, and into single bytes."""
    stream = CORPUS[name] + PROBE
    cuttings = [Cut([stream[:at], stream[at:]], [True, True]) for at in range(1, len(stream))]
    cuttings += [Cut([stream[:at], stream[at:]], [False, True], stalls=True) for at in range(1, len(stream), 7)]
    single = [stream[at : at + 1] for at in range(len(stream))]
    return await wrong_with(layer, stream, [*cuttings, Cut(single, [True] * len(single))])


@pytest.mark.parametrize("name", CORPUS)
@async_test
async def test_a_stream_of_the_corpus_cut_at_every_place(name: str, database_folder: Path) -> None:
    """Never more answers than the reference knows requests, in its order; and the same for every cutting."""
    async with layer(database_folder) as ours:
        wrong = await in_the_corpus(ours, name)
    assert not wrong, "\n".join([*wrong, repr(CORPUS[name])])


@async_test
async def test_generated_streams(database_folder: Path) -> None:
    """The same for thousands of streams, made by a grammar with everything wrong that framing can be."""
    print(f"HTTP_SEED={SEED}")  # noqa: T201 - to repeat it
    began = time.monotonic()
    async with layer(database_folder) as ours:
        failed = await generated(ours, SEED, STREAMS)
        assert failed is None, await _told(ours, *failed)
    print(  # noqa: T201 - what the soak shows
        f"{STREAMS} streams, each in {CUTTINGS + 1} cuttings: none looser than the reference, "
        f"in {time.monotonic() - began:.1f} s"
    )


async def _told(layer: Layer, number: int, stream: bytes, wrong: list[str]) -> str:
    """The failing stream, and the shortest that fails as well, cut after its first head or uncut."""

    async def fails(shorter: bytes) -> bool:
        at = shorter.find(b"\r\n\r\n") + 4
        cuttings = [Cut([shorter[:at], shorter[at:]], [True, True], stalls) for stalls in (False, True)]
        return bool(await wrong_with(layer, shorter, cuttings))

    shortest = await fewest(stream, fails) if await fails(stream) else b""
    return "\n".join([f"HTTP_SEED={SEED}, stream {number}:", *wrong, repr(stream), f"in short: {shortest!r}"])


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A server that listens, with the routes of these tests."""
    server = create_server(jwt_secret=SECRET, db_path=tmp_path_factory.mktemp("sockets") / "vault.db")
    server._app = with_routes(server)
    thread = threading.Thread(target=server.listen, args=(0,))
    thread.start()
    until(lambda: is_started(server), "the server's start")
    yield "127.0.0.1", int((server.url or "").rpartition(":")[2])
    server.close()
    thread.join(40)


@pytest.mark.parametrize("name", CORPUS)
@async_test
async def test_a_real_socket_tells_the_same(name: str, listening: tuple[str, int], database_folder: Path) -> None:
    """What the recording transport shows is what a client sees: the same answers, and the same end."""
    stream = CORPUS[name] + PROBE
    methods = [seen.method for seen in reference(stream).requests]
    async with layer(database_folder) as ours:
        recorded = await ours.play(Cut([stream], [True]), methods)
    raw, closed = await asyncio.to_thread(_exchanged, listening, stream, recorded.size, recorded.closed)
    answers, rest, continued = read_answers([(0, raw)], methods)
    seen = Outcome(answers, [], set(), closed, rest, continued)
    assert (seen.told, closed, continued) == (recorded.told, recorded.closed, recorded.continued)
    assert len(seen.answers) == len(recorded.answers)


def _exchanged(address: tuple[str, int], stream: bytes, size: int, closes: bool) -> tuple[bytes, bool]:  # noqa: FBT001
    """What a server answers, and whether it closes: waited for where it should, looked for briefly where not."""
    raw = b""
    with socket.create_connection(address, timeout=10) as wire:
        wire.sendall(stream)
        while True:
            if len(raw) >= size and not closes:
                wire.settimeout(0.05)
            try:
                more = wire.recv(65_536)
            except TimeoutError:
                return raw, False
            except ConnectionResetError:
                return raw, True
            if not more:
                return raw, True
            raw += more


def test_the_generator_makes_every_kind_of_stream() -> None:
    """A grammar that made only good streams, or only bad ones, would prove nothing."""
    ends = Counter(reference(Generator(1, number).stream()).end for number in range(500))
    assert min(ends[end] for end in ("open", "refused", "closed", "switched")) >= 15, ends
    whole = [reference(Generator(1, number).stream()) for number in range(500)]
    assert sum(len(reading.requests) > 2 for reading in whole if reading.end == "open") >= 60


# Planted faults: each is put into the connection, and must be caught.


def _keep(connection: Any) -> None:
    connection._exchange.keep_alive = True
    connection._last = False


def _upgrades_go_on(kind: type[Any]) -> type[Any]:
    class Planted(kind):  # type: ignore[misc]
        def on_headers_complete(self) -> None:
            super().on_headers_complete()
            if b"upgrade" in self._headers or self._exchange.request.method == "CONNECT":
                _keep(self)
                self._upgrade_with_body = False

    return Planted


def _expectations_go_on(kind: type[Any]) -> type[Any]:
    class Planted(kind):  # type: ignore[misc]
        def on_headers_complete(self) -> None:
            super().on_headers_complete()
            self._exchange.request.headers.pop(b"expect", None)
            self._exchange._continue = False

    return Planted


def _close_goes_on(kind: type[Any]) -> type[Any]:
    class Planted(kind):  # type: ignore[misc]
        def on_headers_complete(self) -> None:
            super().on_headers_complete()
            if self._headers.get(b"connection", b"").lower() == b"close":
                _keep(self)

    return Planted


def _bodies_are_forgotten(kind: type[Any]) -> type[Any]:
    class Planted(kind):  # type: ignore[misc]
        def response_sent(self, exchange: Any) -> None:
            if exchange.more_body and exchange.keep_alive:
                self._parser = transport._parser(self)
                self._head, self._body_left = 0, -1
            super().response_sent(exchange)

    return Planted


def _pieces_are_lost(kind: type[Any]) -> type[Any]:
    class Planted(kind):  # type: ignore[misc]
        def on_body(self, body: bytes) -> None:
            super().on_body(body if not self._exchange._body else b"")

    return Planted


def _answers_overtake(kind: type[Any]) -> type[Any]:
    class Last(deque[Any]):
        popleft = deque.pop

    class Planted(kind):  # type: ignore[misc]
        def __init__(self, **more: Any) -> None:
            super().__init__(**more)
            self._queue = Last()

    return Planted


def _refusals_interrupt(kind: type[Any]) -> type[Any]:
    class Planted(kind):  # type: ignore[misc]
        def _refuse(self, status: int, code: str, message: str) -> None:
            self._exchange = None
            super()._refuse(status, code, message)

    return Planted


def _lenient(**leniencies: bool) -> Callable[[type[Any]], type[Any]]:
    def wrap(kind: type[Any]) -> type[Any]:
        class Planted(kind):  # type: ignore[misc]
            def __init__(self, **more: Any) -> None:
                super().__init__(**more)
                self._parser.set_dangerous_leniencies(lenient_data_after_close=True, **leniencies)

        return Planted

    return wrap


PLANTED: dict[str, tuple[Callable[[type[Any]], type[Any]], str]] = {  # with the stream of the corpus that catches it
    "a connection goes on after an upgrade": (_upgrades_go_on, "upgrade"),
    "a connection goes on after CONNECT": (_upgrades_go_on, "connect"),
    "a connection goes on after a body that was never asked for": (_expectations_go_on, "expect and an early answer"),
    "a connection goes on after Connection: close": (_close_goes_on, "close, and more"),
    "the rest of a body is taken for a request": (_bodies_are_forgotten, "an early answer"),
    "a piece of a body is lost": (_pieces_are_lost, "chunks"),
    "a later answer overtakes": (_answers_overtake, "two requests"),
    "a refusal stands in the place of an answer": (_refusals_interrupt, "garbage in a slow answer"),
    "a chunk needs no end": (_lenient(lenient_optional_crlf_after_chunk=True), "a chunk without its end"),
    "a line feed alone ends a line": (_lenient(lenient_optional_cr_before_lf=True), "a line feed in a chunk extension"),
    "a header may hold anything": (_lenient(lenient_headers=True), "a NUL in a header"),
}


@pytest.mark.parametrize("fault", PLANTED)
@async_test
async def test_a_planted_fault_is_caught(fault: str, database_folder: Path) -> None:
    """By a stream of the corpus; and in the soak by the generated streams as well."""
    wrap, name = PLANTED[fault]
    async with layer(database_folder, wrap) as broken:
        found = await in_the_corpus(broken, name)
        assert found
        assert not any("AttributeError" in wrong for wrong in found)  # caught for what it does, not for a stale name
        if LONG:
            stream = await generated(broken, SEED, STREAMS)
            assert stream is not None
            print(f"{fault}: caught by stream {stream[0]}")  # noqa: T201


@async_test
async def test_checks_that_are_left_out_are_missed(database_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Host, of the version and of the transfer coding, which the parser does not make."""
    monkeypatch.setattr(transport, "_check", lambda *_: None)
    async with layer(database_folder) as broken:
        for name in ("no host", "gzip and chunked", "HTTP/2.0"):
            assert await in_the_corpus(broken, name), name
        assert await generated(broken, 1, 2_000)
