"""Plays attacks on one server, one after another, and measures each: the honest client, bytes, processor time."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.fairness import honest
from tests.fairness.attacks import Attack
from tests.fairness.greedy import Greedy
from tests.fairness.measure import WatchedServer
from tests.fairness.stage import SETTINGS, Scale, Stage
from tests.kit.network.paths import docs
from tests.kit.servers.process import fresh_address
from tests.kit.waiting import until

SETTLED: Final = 0.5  # of a processor: less than that, and what an attack has left behind is done
_LOOK: Final = 0.03  # seconds


class Sample(NamedTuple):
    """A request of the honest client."""

    began: float
    seconds: float
    processor: float  # seconds that the event loop ran meanwhile
    status: int


class Honest:
    """The honest client, and what it has told so far."""

    def __init__(self, stage: Stage) -> None:
        vault, document = stage.vault_of_honest, stage.document_of_honest
        body = json.dumps({"collection": "notes", "data": "QUJD" * 64, "uid": document["uid"]})
        setting = {
            "port": stage.server.port,
            "pid": stage.server.process.pid,
            "address": "127.0.0.3",
            "token": stage.honest.access,
            "requests": [
                ("GET", docs(vault, document), ""),
                ("GET", f"{docs(vault)}?limit=20", ""),
                ("POST", docs(vault), body),
            ],
        }
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", str(Path(honest.__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        with self._process.stdin as stdin:
            stdin.write(json.dumps(setting).encode())
        self._samples: list[Sample] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            began, seconds, processor, status = line.split()
            self._samples.append(Sample(float(began), float(seconds), float(processor), int(status)))

    def between(self, begin: float, end: float) -> list[Sample]:
        """The requests that were under way between two moments."""
        until(lambda: self._samples and self._samples[-1].began >= end, "an honest request after the attack", 120)
        return [one for one in self._samples if one.began + one.seconds > begin and one.began < end]

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Waits(NamedTuple):
    """How long the honest client waited for responses, in milliseconds."""

    requests: int
    p50: float
    p99: float
    silence: float
    loop_p99: float  # of processor time of the event loop
    loop_longest: float


class Measured(NamedTuple):
    """An attack, and what it did."""

    attack: Attack
    alone: Waits
    beside: Waits
    requests: int
    statuses: dict[int, int]
    lost: int
    sent: int
    stored: int
    received: int
    processor: float  # milliseconds per request
    stretch: float  # milliseconds
    callback: str
    usage: dict[str, int]


def waits(samples: list[Sample]) -> Waits:
    """What these requests show."""
    assert {one.status for one in samples} <= {200, 201}, {one.status for one in samples}
    if not samples:
        return Waits(0, 0, 0, 0, 0, 0)
    wall, loop = sorted(one.seconds * 1e3 for one in samples), sorted(one.processor * 1e3 for one in samples)
    middle, high = len(wall) // 2, min(len(wall) - 1, len(wall) * 99 // 100)
    return Waits(len(wall), wall[middle], wall[high], wall[-1], loop[high], loop[-1])


class Harness:
    """A server, the two accounts, and the attacks."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.server = stage.server
        self._honest = Honest(stage)
        self._idle = 0.0  # seconds of processor in a second, beside the honest client alone
        began, processor = time.monotonic(), self.server.processor
        self._wait(0.3)
        self._idle = (self.server.processor - processor) / (time.monotonic() - began)

    def _wait(self, seconds: float) -> None:
        time.sleep(seconds)  # a measured interval

    def settle(self) -> None:
        """Wait until the work that an attack has left behind is done."""

        def is_done() -> bool:
            processor, stored, began = self.server.processor, self.server.stored, time.monotonic()
            self._wait(_LOOK)
            busy = (self.server.processor - processor) / (time.monotonic() - began)
            return busy < self._idle + SETTLED and self.server.stored == stored

        until(is_done, "the end of what an attack has left behind", 120)

    def play(self, attack: Attack) -> Measured:
        """Play an attack beside the honest client, who is measured alone just before."""
        stage, server, scale = self.stage, self.server, self.stage.scale
        stage.version = attack.version
        first = attack.make(stage, 0)  # which makes what the attack needs
        assert first.method == attack.route.split()[0]
        self.settle()
        begin = time.monotonic()
        self._wait(scale.alone)
        alone = waits(self._honest.between(begin, time.monotonic()))
        server.longest()
        stored, processor, begin = server.stored, server.processor, time.monotonic()
        greedy = Greedy(
            server.port,
            fresh_address(),
            lambda number: attack.make(stage, number),
            lambda _status, start: attack.learn(stage, start),
            streams=attack.streams,
        )
        load = asyncio.run(greedy.run(scale.connections, attack.silent, scale.attack))
        end, used = time.monotonic(), server.processor - processor
        beside = waits(self._honest.between(begin, end))
        self.settle()
        stretch, callback = server.longest()
        requests = max(1, load.statuses.total())
        spent = max(0.0, used - self._idle * (end - begin)) * 1e3 / requests
        grown = server.stored - stored
        outcome = dict(sorted(load.statuses.items()))
        counts = load.requests, outcome, load.lost, load.sent, grown, load.received
        return Measured(attack, alone, beside, *counts, spent, stretch, callback, stage.usage)

    def end(self) -> None:
        """End the honest client."""
        self._honest.end()


@contextmanager
def opened(home: Path, engine: str, scale: Scale) -> Iterator[Harness]:
    """A server on an engine, with its accounts."""
    server = WatchedServer(home, engine, **SETTINGS)
    harness = None
    try:
        server.start()
        harness = Harness(Stage(server, scale))
        yield harness
        assert '"event":"fault"' not in server.log(), server.log()[-4_000:]
    finally:
        if harness is not None:
            harness.end()
        server.abandon()
