"""The benchmark's own parts: pages are what the results say, goals are judged, pages of a list are followed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from bench import goals, layers, report, result_files, result_table
from bench.load import LoadFailed, Plan, run_window
from bench.peer_requests import VALUE, PeerRequest, request_template
from bench.result_files import Machine
from tests.kit.project import ROOT


def test_the_pages_show_what_was_measured() -> None:
    """docs/benchmarks.md, its plots and the figures of other pages are those of bench/results; make bench-report."""
    for page, text in report.written(ROOT, result_files.FOLDER).items():
        assert page.read_text("utf-8") == text, page.name


def test_every_architecture_has_its_column() -> None:
    """What was measured on two machines stands side by side, each with its date; so does one that has no run yet."""
    [first] = [one for one in result_files.machines() if one.name == "aarch64"]
    second = replace(first, name="x86_64", run={**first.run, "date": "2026-12-24"})
    page = report.document([second, first, replace(first, name="riscv64", run=machine().run)])
    assert "| | wanted | x86-64 | aarch64 | riscv64 |" in page
    assert f"**x86-64**: 2026-12-24; {first.run['machine']}" in page
    assert f"**aarch64**: {first.run['date']}" in page
    assert "**riscv64**: not measured yet." in page
    rate = result_table.short(first.cells["get", 64, "strongroom"]["rate"])
    p50 = result_table.short(first.cells["get", 64, "strongroom"]["p50_ms"])
    assert f"| 64 | strongroom, SQLite | {rate} |  | {p50} | {rate} |  | {p50} |  |  |  |" in page


def machine(**rates: float) -> Machine:
    """A machine that has measured these: `scenario_target` with 64 clients."""
    cells = [
        {
            "scenario": name.partition("_")[0],
            "clients": 64,
            "target": name.partition("_")[2].replace("_", "-"),
            "rate": rate,
            "cpu_us": 100.0,
            "p50_ms": 2.0,
            "p99_ms": 7.0,
            "memory_mib": 50.0,
        }
        for name, rate in rates.items()
    ]
    run: dict[str, Any] = {"cells": cells, "date": "", "targets": [], "scenarios": [], "absent": {}}
    return Machine("x86_64", run, None, None, None, None)


def goal(title: str) -> goals.Goal:
    [found] = [one for one in goals.GOALS if one.title.startswith(title)]
    return found


def test_a_mark_that_is_missed_says_so() -> None:
    """A ratio below what was wanted is marked, one at it is not, and what was not measured has no figure."""
    good = machine(get_strongroom=2_500, get_hono=1_000, get_strongroom_pg=1_875)
    bad = machine(get_strongroom=2_400, get_hono=1_000, get_strongroom_pg=1_776)
    assert goal("get, 64 clients: \N{MULTIPLICATION SIGN} the twin's").shown(good) == "2.50"
    assert goal("get, 64 clients: \N{MULTIPLICATION SIGN} the twin's").shown(bad) == "2.40 (**missed**)"
    assert goal("get, 64 clients: PostgreSQL's part").shown(good) == "75 %"
    assert goal("get, 64 clients: PostgreSQL's part").shown(bad) == "74 % (**missed**)"
    assert goal("get, 64 clients, SQLite: p99 over p50").shown(good) == "3.50 (**missed**)"
    assert goal("create, 64 clients: \N{MULTIPLICATION SIGN} the twin's").shown(good) == "not measured"
    assert goal("memory at rest").shown(good) == "not measured"


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    """What a program writes is what the report reads, the machine that was measured last first."""
    for name, date in (("aarch64", "2026-01-01"), ("x86_64", "2026-02-01")):
        (tmp_path / name).mkdir()
        written = {"date": date, "note": 'with "marks"', "cells": [{"rate": 1.5}, {"rate": 2}], "absent": {}}
        (tmp_path / name / "run.json").write_text(result_files.text(written))
    (tmp_path / "a").mkdir()  # nothing was measured there
    found = result_files.machines(tmp_path)
    assert [one.name for one in found] == ["x86_64", "aarch64", "a"]
    assert found[1].run == {
        "date": "2026-01-01",
        "note": 'with "marks"',
        "cells": [{"rate": 1.5}, {"rate": 2}],
        "absent": {},
    }


def test_a_stack_belongs_to_the_layer_of_its_innermost_frame() -> None:
    """A statement of the session check counts as session; a response that a commit lets go counts as response."""
    writer = "/strongroom/store/sqlite/writer.py"
    outer = ("Runner.run (strongroom/server/transport/runner.py)", "Runner.run (lib/asyncio/runners.py)")
    rows = f"Tx._rows ({writer.replace('writer', 'transaction')})"
    assert layers.layer_of(outer) == layers.LOOP
    assert layers.layer_of((*outer, f"Writer._execute ({writer})", rows)) == "statements"
    assert layers.layer_of((*outer, f"Writer._passes ({writer})", rows)) == "session"
    assert layers.layer_of((*outer, f"Writer._commit ({writer})")) == "commit"
    inside = (
        "Exchange._step (strongroom/server/transport/exchange.py)",
        "json_response (strongroom/server/response.py)",
    )
    assert layers.layer_of((*outer, f"Writer._committed ({writer})", *inside)) == "response"


@asynccontextmanager
async def serving(respond: Callable[[bytes], list[bytes]]) -> AsyncIterator[str]:
    """A server that answers the head of a request with pieces, each sent by itself."""
    handlers: list[asyncio.Task[None]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(cast("asyncio.Task[None]", asyncio.current_task()))
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                for piece in respond(await reader.readuntil(b"\r\n\r\n")):
                    writer.write(piece)
                    await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*handlers)


LISTED = 5


@pytest.mark.parametrize("chunked", [False, True])
def test_the_load_follows_the_cursor_of_each_page(chunked: bool) -> None:  # noqa: FBT001
    """A list in pages is timed as one, and each page is asked for from the cursor of the page before."""
    asked: list[int] = []
    times: list[int] = []

    def respond(head: bytes) -> list[bytes]:
        times.append(time.perf_counter_ns())
        asked.append(int(head.partition(b"since=")[2].partition(b" ")[0]))
        body = b'{"documents": [' + b"x" * 9_000 + b'], "next":%d}' % (asked[-1] + 1)
        if not chunked:
            return [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body]
        cut = len(body) - 2  # within the cursor
        first, second = (b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:cut], body[cut:]))
        return [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + first, second + b"0\r\n\r\n"]

    async def run() -> list[int]:
        async with serving(respond) as host:
            ask = PeerRequest("GET", f"/documents?since={VALUE}")
            lane = [
                request_template(
                    ask, host, slot=0, least=9_000, first=None if number else b"40", last=number == LISTED - 1
                )
                for number in range(LISTED)
            ]
            window = await run_window(Plan(host, [lane], [[b""]], (b'"next":', b"}"), [0]), 1, 0.0)
        return list(window.latencies)

    [timed] = asyncio.run(run())
    assert timed >= times[-1] - times[0]
    assert asked == [40 + number for number in range(LISTED)]


def test_a_short_answer_fails_the_window() -> None:
    """An answer with fewer bytes than the documents have is a failure, and not a quick answer."""

    async def run() -> None:
        async with serving(lambda _: [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]) as host:
            await run_window(Plan(host, [[request_template(PeerRequest("GET", "/"), host, least=3)]], at=[0]), 1, 0.0)

    with pytest.raises(LoadFailed, match="a body of 2 bytes"):
        asyncio.run(run())


def test_a_figure_is_shown_with_the_digits_that_count() -> None:
    """Thousands have commas, small figures two digits after the point."""
    assert [result_table.short(value) for value in (12_345.6, 99.94, 1.234)] == ["12,346", "99.9", "1.23"]
