"""The load: closed-loop clients in a process of their own, cheap enough to share two cores with a server.

Each client sends bytes that were prepared beforehand, reads the answer by Content-Length or by chunks, checks its
status and size, and sends the next. Where a request follows from the answer before (a version, a cursor), the value is
cut out of that answer between two markers.
"""

from __future__ import annotations

import asyncio
import os
import time
from array import array
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from bench.peer_requests import RequestTemplate

_END = b"\r\n\r\n"
_PATIENCE = 600  # seconds for what is under way when a window ends
_TAIL = 4_096  # bytes at the end of an answer in which its value lies, if that is not in the head


@dataclass
class Plan:
    """What the clients of one scenario send to one peer. Client n runs lane n, and keeps its values from run to run."""

    host: str
    lanes: list[list[RequestTemplate]]
    values: list[list[bytes]] = field(default_factory=list)  # for each client, one value a slot
    marker: tuple[bytes, bytes] | None = None  # what stands before and after the value in an answer
    at: list[int] = field(default_factory=list)  # where each client goes on in its lane


@dataclass
class Window:
    """What one run of the load saw."""

    seconds: float
    latencies: array[int]  # nanoseconds
    client_cpu: float  # seconds that the load itself used


class LoadFailed(Exception):  # noqa: N818
    """An answer under load was wrong, late or missing."""


class _Client(asyncio.Protocol):
    """One connection that always has one request under way."""

    def __init__(self, run: _Run, number: int) -> None:
        plan = run.plan
        self._run = run
        self._number = number
        self._lane = plan.lanes[number % len(plan.lanes)]
        self._values = plan.values[number] if plan.values else []
        self._at = plan.at[number]
        self._template = self._lane[0]
        self._buffer = b""
        self._left = -1  # bytes of the body that are still to come; -1: the head is not complete
        self._chunked = False
        self._size = 0
        self._sent = 0
        self._timed = True  # the request under way begins what is timed
        self._head = b""
        self._tail = b""  # of the body, where the answer has a value
        self._write: Any = None
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._write = transport.write

    def start(self) -> None:
        self._send()

    def _send(self) -> None:
        template = self._template = self._lane[self._at]
        self._at += 1
        if self._at == len(self._lane):
            self._at = 0
        if template.slot < 0:
            request = template.before
        else:
            if template.first is not None:
                self._values[template.slot] = template.first
            request = template.before + self._values[template.slot].ljust(template.pad) + template.after
        if self._timed:
            self._sent = time.perf_counter_ns()
        self._timed = template.last
        self._write(request)

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        if self._left < 0:
            end = data.find(_END)
            if end < 0:
                self._buffer = data
                return
            head = data[:end].lower()
            status = int(head[9:12])
            if status != self._template.status:
                self._run.fail(f"status {status} instead of {self._template.status}: {data[:400]!r}")
                return
            at = head.find(b"\r\ncontent-length:")
            if at >= 0:
                stop = head.find(b"\r\n", at + 2)
                self._left = self._size = int(head[at + 17 : stop if stop > 0 else end])
                self._chunked = False
                if len(data) - end - 4 == self._left:  # the whole answer at once, as nearly always
                    self._done(data)
                    return
            elif b"transfer-encoding: chunked" in head:
                self._chunked = True
                self._left = self._size = 0
            else:
                self._run.fail(f"an answer of unknown length: {head!r}")
                return
            self._head, self._tail = data[: end + 4], b""
            data = data[end + 4 :]
        if self._chunked:
            self._take_chunks(data)
            return
        self._left -= len(data)
        if self._template.slot >= 0:
            self._keep(data)
        if self._left == 0:
            self._done(self._head + self._tail)

    def _keep(self, part: bytes) -> None:
        """Keep the end of a body whose value is needed; of the others nothing is."""
        self._tail = (self._tail + part[-_TAIL:])[-_TAIL:]

    def _take_chunks(self, data: bytes) -> None:
        """Walk over chunks. `_left` counts what is to come of the current one, its line end included."""
        at = 0
        while True:
            if self._template.slot >= 0:
                self._keep(data[at : at + max(self._left - 2, 0)])
            if self._left > len(data) - at:
                self._left -= len(data) - at
                return
            at += self._left
            self._left = 0
            stop = data.find(b"\r\n", at)
            if stop < 0:
                self._buffer = data[at:]
                return
            size = int(data[at:stop], 16)
            if size == 0:
                if len(data) < stop + 4:
                    self._buffer = data[at:]
                    return
                self._done(self._head + self._tail)
                return
            self._size += size
            self._left = size + 2
            at = stop + 2

    def _done(self, answer: bytes) -> None:
        now = time.perf_counter_ns()
        self._left = -1
        template = self._template
        if not template.least <= self._size <= template.most:
            self._run.fail(f"a body of {self._size} bytes: {answer[-300:]!r}")
            return
        if template.slot >= 0:
            before, after = self._run.plan.marker  # type: ignore[misc]
            found = answer.rfind(before)
            if found >= 0:
                found += len(before)
                value = answer[found : answer.find(after, found)]
                self._values[template.slot] = value.replace(b" ", b"%20") if b" " in value else value
        if template.last:
            self._run.latencies.append(now - self._sent)
        if not template.last or now < self._run.until:
            self._send()
        else:
            self._run.plan.at[self._number] = self._at
            self._run.one_ends()

    def connection_lost(self, exc: BaseException | None) -> None:
        if not self._run.over:
            self._run.fail(f"the connection was lost: {exc!r}")

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class _Run:
    """All clients of one window."""

    def __init__(self, plan: Plan, clients: int) -> None:
        self.plan = plan
        self.latencies: array[int] = array("q")
        self.until = 0
        self.over = False
        self._running = clients
        self._clients = clients
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def one_ends(self) -> None:
        self._running -= 1
        if self._running == 0:
            self.over = True
            self._ended.set_result(None)

    def fail(self, reason: str) -> None:
        if not self._ended.done():
            self.over = True
            self._ended.set_exception(LoadFailed(reason))

    async def go(self, seconds: float) -> Window:
        loop = asyncio.get_running_loop()
        address, _, port = self.plan.host.partition(":")
        clients = [_Client(self, number) for number in range(self._clients)]
        for client in clients:
            await loop.create_connection(lambda client=client: client, address, int(port))  # type: ignore[misc]
        before = time.process_time()
        begun = time.perf_counter_ns()
        self.until = begun + int(seconds * 1e9)
        try:
            for client in clients:
                client.start()
            await asyncio.wait_for(self._ended, seconds + _PATIENCE)
            took = (time.perf_counter_ns() - begun) / 1e9
        except TimeoutError:
            raise LoadFailed(f"it was not done within {_PATIENCE} seconds") from None
        finally:
            self.over = True
            for client in clients:
                client.close()
        return Window(took, self.latencies, time.process_time() - before)


def _serve(pipe: Connection, cpus: set[int] | None) -> None:
    import uvloop

    if cpus:
        os.sched_setaffinity(0, cpus)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        while (order := pipe.recv()) is not None:
            plan, clients, seconds = order
            try:
                pipe.send((runner.run(run_window(plan, clients, seconds)), plan.values, plan.at))
            except (LoadFailed, OSError) as error:
                pipe.send((LoadFailed(str(error)), None, None))


async def run_window(plan: Plan, clients: int, seconds: float) -> Window:
    """Let this many clients run for so long, in this process."""
    return await _Run(plan, clients).go(seconds)


class Load:
    """The process that makes the load."""

    def __init__(self, cpus: set[int] | None) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, cpus), daemon=True)
        self._process.start()

    def run(self, plan: Plan, clients: int, seconds: float) -> Window:
        """Let this many clients run for so long; every answer is checked."""
        while len(plan.at) < clients:  # clients of one lane start at different places in it
            plan.at.append(len(plan.at) * 37 % len(plan.lanes[len(plan.at) % len(plan.lanes)]))
        self._pipe.send((plan, clients, seconds))
        window, values, at = self._pipe.recv()
        if isinstance(window, LoadFailed):
            raise window
        plan.values, plan.at = values, at
        return window  # type: ignore[no-any-return]

    def stop(self) -> None:
        """End the process."""
        self._pipe.send(None)
        self._process.join(10)
