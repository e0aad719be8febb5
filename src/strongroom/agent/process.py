"""The agent: a socket, the operations that commands ask for, and a clock that ends it.

The agent holds keys only while it lives, and locking ends it: the operating system then clears its memory, which
Python could not. It ends by the command `lock`, when nobody has used it for some time, and when the machine was asleep.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from strongroom.agent import paths
from strongroom.agent.connection import address, is_running
from strongroom.agent.conversation import Conversation
from strongroom.agent.log import Log
from strongroom.agent.operations import LOCAL, Operation, Operations
from strongroom.agent.peers import peer_user
from strongroom.agent.protection import protect_memory
from strongroom.agent.protocol import MAX_LINE, Failed, decode

_BACKLOG: Final = 1024
_TIME_TO_ASK: Final = 10.0  # seconds until a connection has sent its request
_WITHOUT_KEYS: Final = 60.0  # seconds that an agent without keys waits for somebody to unlock it
_TICK: Final = 0.5
_ASLEEP: Final = 2.0  # seconds by which the clocks differ after a suspend
_TO_CLOSE: Final = 1.0  # seconds to save what is to be saved before the end
_TO_BEGIN_OR_END: Final = 10.0  # seconds in which another agent listens, or is gone
_BETWEEN_LOOKS: Final = 0.01
_WORKERS: Final = 4


def serve(listening: Callable[[], None]) -> None:
    """Run the agent until it is locked. `listening` is called when commands can ask it."""
    paths.make_folder(paths.home())
    paths.make_folder(paths.runtime())
    _harden()
    with _only_one(), _listen() as listener:
        _leave_the_terminal()
        agent = Agent(listener, Log(paths.log()))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: agent.end("a signal"))
        listening()
        agent.run()


class _Waiting:
    """A connection whose request has not come in whole."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self.connected = connected
        self.deadline = deadline
        self.buffer = bytearray()


class Agent:
    """The loop of the agent. Operations run on threads: those that wait for a server apart from the others."""

    def __init__(self, listener: socket.socket, log: Log) -> None:
        self._listener = listener
        self._log = log
        self._operations = Operations(log, _table)
        self._selector = selectors.DefaultSelector()
        self._local = ThreadPoolExecutor(_WORKERS, "local")
        self._network = ThreadPoolExecutor(_WORKERS, "network")
        self._most = max(64, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 64)  # connections at a time
        self._waiting: dict[socket.socket, _Waiting] = {}
        self._ending = threading.Event()
        self._why = ""
        self._asked_to_lock: list[Conversation] = []
        self._woken, self._wake = os.pipe()

    def run(self) -> None:
        """Reply to requests until the end."""
        self._listener.settimeout(0)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        started, slept = time.monotonic(), asleep()
        while not self._ending.is_set():
            ready = self._selector.select(_TICK)
            if asleep() - slept > _ASLEEP:
                self.end("the machine was asleep")
            elif self._operations.idle_for_too_long():
                self.end("not used")
            elif not self._operations.unlocked and time.monotonic() - started > _WITHOUT_KEYS:
                self.end("nobody has unlocked it")
            else:  # only now: what came in while it slept is not replied to
                self._take(ready)
        self._close()

    def _take(self, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        """Accept connections, and read what has come."""
        for key, _ in ready:
            if key.fileobj is self._listener:
                self._accept()
            elif (waiting := self._waiting.get(key.fileobj)) is not None:  # type: ignore[call-overload]
                self._read(waiting)
        self._drop_slow()

    def end(self, why: str) -> None:
        """End soon; what is running may finish if it is quick."""
        self._why = self._why or why
        self._ending.set()
        with contextlib.suppress(OSError):
            os.write(self._wake, b"\0")

    def _accept(self) -> None:
        """Let one connection in, if it is of this user. If there are too many, the oldest silent one goes."""
        try:
            connected, _ = self._listener.accept()
        except OSError:  # no descriptor is left, or the other side has gone
            time.sleep(0.01)
            return
        try:
            user = peer_user(connected)
        except (Failed, OSError):
            user = -1
        if user != os.geteuid():
            self._log.write(f"refused a connection of the user {user}")
            connected.close()
            return
        connected.settimeout(0)
        if len(self._waiting) >= self._most:
            self._drop(next(iter(self._waiting.values())))
        self._waiting[connected] = _Waiting(connected, time.monotonic() + _TIME_TO_ASK)
        self._selector.register(connected, selectors.EVENT_READ)

    def _read(self, waiting: _Waiting) -> None:
        try:
            chunk = waiting.connected.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        waiting.buffer += chunk
        if b"\n" in chunk:
            line, _, _ = waiting.buffer.partition(b"\n")
            self._forget(waiting)
            self._begin(waiting.connected, bytes(line))
        elif not chunk or len(waiting.buffer) > MAX_LINE:
            self._drop(waiting)

    def _begin(self, connected: socket.socket, line: bytes) -> None:
        """Run an operation on a thread."""
        conversation = Conversation(connected)
        try:
            request = decode(line)
            operation = self._operations.find(request)
        except Failed as failed:
            conversation.fail(failed)
            return
        if operation == "lock":  # at once, and on no thread: whatever runs on one ends with the process
            self._asked_to_lock.append(conversation)  # closed by the end of the process, and that is the reply
            self.end("locked")
            return
        pool = self._local if operation in LOCAL else self._network
        pool.submit(self._reply, operation, request, conversation)

    def _reply(self, operation: str, request: dict[str, Any], conversation: Conversation) -> None:
        """On a thread: run an operation and send its result."""
        ends = self._operations.run(operation, request, conversation)
        if ends:
            self.end(ends)

    def _drop_slow(self) -> None:
        now = time.monotonic()
        for waiting in [one for one in self._waiting.values() if one.deadline < now]:
            self._drop(waiting)

    def _forget(self, waiting: _Waiting) -> None:
        self._selector.unregister(waiting.connected)
        del self._waiting[waiting.connected]

    def _drop(self, waiting: _Waiting) -> None:
        self._forget(waiting)
        waiting.connected.close()

    def _close(self) -> None:
        """Leave at once: keys are gone with the process. What is to be saved gets a moment."""
        with contextlib.suppress(OSError):
            os.unlink(paths.socket())
        self._log.write(f"ended: {self._why}")
        closing = threading.Thread(target=self._operations.close, daemon=True)
        closing.start()
        closing.join(_TO_CLOSE)
        os._exit(0)  # not through Python's end, which would wait for threads that wait for a server


def _table() -> dict[str, Operation]:
    """The operations by name. The client is loaded with the first one, after the agent has begun to listen."""
    from strongroom.agent import account_operations, item_reads, item_writes, login, transfer

    return {
        **login.OPERATIONS,
        **item_reads.OPERATIONS,
        **item_writes.OPERATIONS,
        **account_operations.OPERATIONS,
        **transfer.OPERATIONS,
    }


def asleep() -> float:
    """For how many seconds this machine has been asleep since its start, as far as that can be told."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    if hasattr(time, "CLOCK_UPTIME_RAW"):  # macOS
        return time.clock_gettime(time.CLOCK_MONOTONIC) - time.clock_gettime(time.CLOCK_UPTIME_RAW)
    return 0.0


@contextlib.contextmanager
def _only_one() -> Any:
    """Hold the lock of the one agent of this user. The operating system frees it when the process ends.

    An agent that has the lock and does not listen is about to listen, or about to end: then this one takes its place.
    """
    import fcntl

    try:
        held = os.open(paths.lock(), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise paths.unusable(f"The file {paths.lock()} cannot be used", error) from None
    deadline = time.monotonic() + _TO_BEGIN_OR_END
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if is_running() or time.monotonic() > deadline:
                os.close(held)
                raise Failed("running", "An agent of this user runs already.") from None
        time.sleep(_BETWEEN_LOOKS)
    yield
    os.close(held)


@contextlib.contextmanager
def _listen() -> Any:
    """A socket that only this user can use. One that a killed agent has left is replaced; nothing else is."""
    path = paths.socket()
    with contextlib.suppress(FileNotFoundError):
        found = os.lstat(path)
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise Failed("folder", f"Where the agent's socket should be there is something else: {path}; remove it.")
    fresh = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh)
    folder = paths.open_folder(paths.runtime())
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(address(fresh, folder))
        os.chmod(fresh, 0o600)
        listener.listen(_BACKLOG)
        os.rename(fresh, path)  # in one step: whoever finds a socket finds one that listens
        yield listener
    except OSError as error:
        raise paths.unusable(f"The agent cannot listen at {path}", error) from None
    finally:
        listener.close()
        os.close(folder)


def _harden() -> None:
    """No memory of this process in a dump, nor for a debugger of the same user; as many connections as are allowed."""
    os.umask(0o077)
    os.chdir("/")
    protect_memory()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # for good: it starts no program of anybody
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        wanted = 4096 if most == resource.RLIM_INFINITY else min(4096, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _leave_the_terminal() -> None:
    """Close what the process has of the one that started it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)
