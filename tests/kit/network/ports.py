"""Ports for servers that must know theirs before they listen."""

from __future__ import annotations

import random
import socket

_PORTS = range(15_000, 32_000)  # below those that the system gives to connections, which would take it meanwhile
_given: set[int] = set()


def free_port() -> int:
    """A port of the loopback address that nobody listens on, given only once by this process."""
    while True:
        port = random.SystemRandom().choice(_PORTS)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
