"""`lock` waits for nothing: neither for a server that hangs, nor for commands that do not read their response."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.kit.calibration import measured
from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.programs.process_state import alive
from tests.kit.servers.process import Server
from tests.kit.waiting import until

_AT_ONCE = 100  # times a command, about 5 seconds on an idle machine; what holds the agent up takes 30 or more
_BUSY = 6  # more than the agent has threads of each kind


@contextmanager
def hanging(server: Server) -> Iterator[None]:
    """A server that takes connections and does not respond."""
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


def asked(person: CommandLineUser, **request: str) -> socket.socket:
    """A connection that has sent a request, and does not read the response."""
    connected = socket.socket(socket.AF_UNIX)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connected.connect(str(person.home / "agent.sock"))
    connected.sendall(json.dumps({"protocol": "1", **request}).encode() + b"\n")
    return connected


def locked_at_once(person: CommandLineUser, pid: int) -> None:
    """Lock; the agent must end at once, compared with a command right after it."""
    with measured(time.monotonic) as lock:
        with asked(person, operation="lock") as connected:
            assert connected.recv(100) == b""
        until(lambda: not alive(pid), "the end of the agent")
    with measured(time.monotonic) as command:
        assert person.run("get", "Long").returncode == 5
    assert lock.seconds < _AT_ONCE * command.seconds


def test_lock_does_not_wait_for_a_server_that_hangs(person: CommandLineUser, server: Server) -> None:
    """While every thread for the network waits for it, with syncs, a change of the password, and an unlock behind."""
    with hanging(server), ExitStack() as stack:
        for _ in range(_BUSY):
            stack.enter_context(asked(person, operation="sync"))
        stack.enter_context(asked(person, operation="passwd", password=PASSWORD, new="another"))
        stack.enter_context(asked(person, operation="unlock", password=PASSWORD))
        locked_at_once(person, person.pid)


def test_lock_does_not_wait_for_an_unlock(person: CommandLineUser) -> None:
    """While passwords are derived on every thread for it."""
    with ExitStack() as stack:
        for _ in range(_BUSY):
            stack.enter_context(asked(person, operation="unlock", password="wrong"))
        locked_at_once(person, person.pid)


def test_lock_does_not_wait_for_commands_that_do_not_read(person: CommandLineUser) -> None:
    """While every thread for requests without a server waits for somebody to take a long response."""
    person.said("add", "note", "Long", stdin="x" * 1_000_000)
    pid = person.pid
    with ExitStack() as stack:
        for _ in range(_BUSY):
            stack.enter_context(asked(person, operation="item", item="Long"))
        waiting = stack.enter_context(asked(person, operation="status"))
        waiting.settimeout(0.5)
        with pytest.raises(TimeoutError):  # the threads are busy
            waiting.recv(1)
        locked_at_once(person, pid)
