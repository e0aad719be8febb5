"""Effects: the I/O that an operation needs, as values. Nothing that yields them does I/O itself (sans-I/O).

An operation is a generator. It yields effects; a driver (driver.py, async_driver.py) performs each and sends its
result back:

    Request          an HTTP request                    → Response; NoResponse is raised if there is none
    Sleep            a delay                            → None
    Compute          a slow computation                 → its result
    Ask              a question to a person             → the answer
    WithLock         effects under a lock               → their result
    SendAndCompute   a request, and a computation       → both
    OpenStream       a stream of events or lines        → the stream, or the Response that refuses it
    ReadStream       the next bytes of a stream         → bytes, empty at its end
    CloseStream      the end of a stream                → None

So the blocking and the asynchronous client share one code, and tests need no network.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from strongroom.client.errors import Unreachable

T = TypeVar("T")


class Upload(Struct, frozen=True):
    """A body of JSON lines that is read from a file as it is sent: one line, then the file.

    `progress` is told the number of bytes of the file that were sent.
    """

    first: bytes
    path: str
    size: int
    progress: Callable[[int], None]

    def __repr__(self) -> str:
        return "Upload(...)"


class Request(Struct, frozen=True, kw_only=True):
    """An HTTP request. `max_bytes` limits the response; `wait` is added to the read timeout, in seconds.

    `keyring_version`: of the keyring whose keys the body is sealed with.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | Upload | None = None
    accept: str = "application/json"
    bearer: str | None = None
    max_bytes: int
    wait: float = 0.0
    keyring_version: int | None = None

    def __repr__(self) -> str:
        return f"Request({self.method}, ...)"


class Response(Struct, frozen=True):
    """An HTTP response. `retry_after` is in seconds."""

    status: int
    body: bytes
    retry_after: int | None = None
    is_json: bool = True  # by its media type

    def __repr__(self) -> str:
        return f"Response({self.status}, ...)"


class NoResponse(Exception):  # noqa: N818 - what happened, not a mistake
    """There is no response. `sent` is False if the request certainly has not arrived; `retry`: it may help."""

    def __init__(self, *, sent: bool, error: Unreachable | None = None, retry: bool = True) -> None:
        super().__init__()
        self.sent = sent
        self.error = error or Unreachable()
        self.retry = retry


class Sleep(Struct, frozen=True):
    """A delay, in seconds."""

    seconds: float


class Compute(Struct, frozen=True):
    """A computation too slow for an event loop."""

    run: Callable[[], Any]


class Ask(Struct, frozen=True):
    """A function of the caller's that a person answers; on an event loop it may be a coroutine function."""

    run: Callable[[], Any]


class WithLock(Struct, frozen=True):
    """Effects under a named lock: one thread or task at a time."""

    lock: str
    effects: Generator[Any, Any, Any]


class SendAndCompute(Struct, frozen=True):
    """A request, and a computation that runs until its response arrives."""

    request: Request
    run: Callable[[], Any]


class OpenStream(Struct, frozen=True):
    """A request for a stream: of server-sent events, or of what else it accepts."""

    request: Request


class ReadStream(Struct, frozen=True):
    """A read of the next bytes of a stream; `stream` is the driver's result of OpenStream."""

    stream: Any


class CloseStream(Struct, frozen=True):
    """Closes a stream, whether it has ended or not."""

    stream: Any


Effect: TypeAlias = Request | Sleep | Compute | Ask | WithLock | SendAndCompute | OpenStream | ReadStream | CloseStream
Effects: TypeAlias = Generator[Effect, Any, T]


def compute(run: Callable[[], T]) -> Effects[T]:
    """Run a slow computation."""
    result: T = yield Compute(run)
    return result


def ask(run: Callable[[], Any]) -> Effects[Any]:
    """Call a function that a person answers."""
    return (yield Ask(run))


def with_lock(lock: str, effects: Effects[T]) -> Effects[T]:
    """Run an operation under a named lock."""
    result: T = yield WithLock(lock, effects)
    return result
