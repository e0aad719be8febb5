"""How long a server took for requests, by its own log."""

from __future__ import annotations

import json
from statistics import quantiles

from tests.kit.samples import LONG, rounds
from tests.kit.servers.process import Server
from tests.kit.waiting import until

PAIRS = rounds(30, 100)
MARGIN = 0.05 if LONG else 0.10
ATTEMPTS = 3  # other work on the machine may disturb one measurement; it does not disturb three in the same way


def measured(server: Server, ids: list[str]) -> list[float]:
    """The milliseconds that the server itself took for these requests, from its log."""

    def logged() -> dict[str, float]:
        lines = (json.loads(line) for line in server.log().splitlines() if line.startswith("{"))
        return {line["requestId"]: line["ms"] for line in lines if line["event"] == "request"}

    until(lambda: set(ids) <= logged().keys(), "the lines of the log")
    found = logged()
    return [found[name] for name in ids]


def quick(server: Server, ids: list[str]) -> float:
    """The milliseconds of the quickest tenth of these requests, which other work on the machine did not disturb."""
    return quantiles(measured(server, ids), n=10)[0]
