"""What systemd is told of the process that it started (sd_notify): where nobody asks, nothing is."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress


class Notifier:
    """Messages to the socket that the environment names."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        asked = environment.get("WATCHDOG_USEC", "") if self._is_for_us(environment) else ""
        self.every = (
            int(asked) / 2_000_000 if address and asked.isdecimal() else 0.0
        )  # seconds between two signs of life

    @staticmethod
    def _is_for_us(environment: Mapping[str, str]) -> bool:
        return environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())

    def ready(self) -> None:
        """It listens, or has reloaded."""
        self._say("READY=1")

    def reloading(self) -> None:
        """It reads its secrets anew, and says when it has."""
        self._say(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """It ends in order."""
        self._say("STOPPING=1")

    def alive(self) -> None:
        """It is not stuck; who does not say so in time is killed and started again."""
        self._say("WATCHDOG=1")

    def _say(self, message: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
            wire.setblocking(False)  # noqa: FBT003
            wire.sendto(message.encode(), self._address)
