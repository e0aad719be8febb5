"""The manager of a systemd unit, as far as a service notifies it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


class SystemdManager:
    """The end of the socket at which systemd listens."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.messages: list[str] = []

    def has_received(self, line: str) -> bool:
        """Whether a message has this line by now."""
        self.read()
        return any(line in message.split("\n") for message in self.messages)

    def read(self) -> None:
        """Take what has arrived."""
        while True:
            try:
                self.messages.append(self.socket.recv(4096, socket.MSG_DONTWAIT).decode())
            except BlockingIOError:
                return

    def count(self, line: str) -> int:
        """How many messages have this line by now."""
        self.read()
        return sum(line in message.split("\n") for message in self.messages)


@contextmanager
def manager(address: str) -> Iterator[SystemdManager]:
    """A manager that listens at this address."""
    made = SystemdManager(address)
    try:
        yield made
    finally:
        made.socket.close()
