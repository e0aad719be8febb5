"""Steps: what an operation needs from the world outside, as values. Nothing that yields them does I/O itself.

An operation is a generator. It yields one of these, and a driver (driving.py) sends back what came of it:

    Request     a request to the server    → Answer; Lost is thrown in where there is none
    Pause       some time                  → None
    Work        a slow computation         → its result
    Under       steps under a lock         → their result
    Meanwhile   a request, and work beside → both
    Listen      a stream of events         → Listening, or the Answer that refuses it
    Hear        the next of a stream       → bytes, empty at its end

So there is one code for the blocking client and for the asynchronous one, and tests can be the world.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Request(Struct, frozen=True, kw_only=True):
    """What is sent. `most` is the number of bytes that an answer may have; `wait` how long the server may be silent."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    bearer: str | None = None
    most: int
    wait: float = 0.0

    def __repr__(self) -> str:
        return f"Request({self.method}, ...)"


class Answer(Struct, frozen=True):
    """What came back. `retry_after` is in seconds."""

    status: int
    body: bytes
    retry_after: int | None = None

    def __repr__(self) -> str:
        return f"Answer({self.status}, ...)"


class Lost(Exception):  # noqa: N818 - what happened, not a mistake
    """There is no answer. `sent` is False where the request certainly has not arrived."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__()
        self.sent = sent


class Pause(Struct, frozen=True):
    """Let this many seconds pass."""

    seconds: float


class Work(Struct, frozen=True):
    """A computation that takes longer than an event loop should stand still."""

    run: Callable[[], Any]


class Under(Struct, frozen=True):
    """Steps that only one thread or task takes at a time."""

    lock: str
    steps: Generator[Any, Any, Any]


class Meanwhile(Struct, frozen=True):
    """A request, and work that is done while its answer is under way."""

    request: Request
    run: Callable[[], Any]


class Listen(Struct, frozen=True):
    """An answer that does not end."""

    request: Request


class Hear(Struct, frozen=True):
    """The next bytes of an answer that does not end; `stream` is what the driver gave for it."""

    stream: Any


Step: TypeAlias = Request | Pause | Work | Under | Meanwhile | Listen | Hear
Steps: TypeAlias = Generator[Step, Any, T]


def work(run: Callable[[], T]) -> Steps[T]:
    """Let the driver compute this."""
    result: T = yield Work(run)
    return result


def under(lock: str, steps: Steps[T]) -> Steps[T]:
    """Take these steps under a lock."""
    result: T = yield Under(lock, steps)
    return result
