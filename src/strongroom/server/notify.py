"""sd_notify: readiness, reloads and heartbeats for systemd, if NOTIFY_SOCKET is set."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress


class Notifier:
    """Sends messages to the socket that the environment names."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        asked = environment.get("WATCHDOG_USEC", "") if self._is_for_us(environment) else ""
        self.every = int(asked) / 2_000_000 if address and asked.isdecimal() else 0.0  # seconds between two heartbeats

    @staticmethod
    def _is_for_us(environment: Mapping[str, str]) -> bool:
        return environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())

    def ready(self) -> None:
        """The server listens, or has reloaded."""
        self._send("READY=1")

    def reloading(self) -> None:
        """The server reloads; `ready` follows."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """The server shuts down."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """A heartbeat; without one in time, systemd kills and restarts the server."""
        self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
            wire.setblocking(False)  # noqa: FBT003
            wire.sendto(message.encode(), self._address)
