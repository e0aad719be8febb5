"""Waiting for changes: server-sent events, else long polling, else polling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from strongroom.client.errors import Tampered
from strongroom.client.net import requests
from strongroom.client.net.effects import NoResponse, ReadStream, Sleep
from strongroom.errors import InsufficientScope, MethodNotAllowed, NotFound, Unavailable

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.replica.local import Local

LONG_POLL: Final = 25  # seconds
_LONGEST: Final = 1 << 20  # bytes of one event


class Events:
    """An incremental parser of server-sent events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, part: bytes) -> list[tuple[str, int]]:
        """The events completed by these bytes: the name and the timestamp of each, 0 if it has none."""
        self._rest += part
        *whole, self._rest = self._rest.replace(b"\r\n", b"\n").split(b"\n\n")
        if len(self._rest) > _LONGEST:
            raise Tampered("The server tells of a change without an end.")
        return [event for event in map(_event, whole) if event[0]]


def _event(text: bytes) -> tuple[str, int]:
    name, timestamp = "", 0
    for line in text.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value[:32].decode("ascii", "replace")
        elif field == b"id" and value.isdigit() and len(value) < 20:
            timestamp = int(value)
    return name, timestamp


class Watch:
    """Waits for changes: by server-sent events, or by polling if a proxy or a scope does not let them through."""

    def __init__(self, local: Local, every: float) -> None:
        self._local = local
        self._core = local.core
        self._every = every
        self._use_events = True
        self._stream: Any = None
        self._events = Events()
        self._failures = 0

    def wait(self) -> Effects[None]:
        """Wait until a sync is worthwhile."""
        if self._use_events:
            try:
                yield from self._read_events(self._local.timestamp)
            except (NotFound, MethodNotAllowed, InsufficientScope):
                self._use_events = False
            except Unavailable:
                yield from self.back_off()
            else:
                self._failures = 0
                return
        if not self._use_events:
            yield from self._poll()

    def back_off(self) -> Effects[None]:
        """Wait before the next attempt to reach the server, with exponential backoff."""
        self._failures += 1
        yield Sleep(min(self._every, 0.25 * 2.0 ** min(self._failures, 8)))

    def detach(self) -> Any:
        """Detach the stream, if there is one; the caller closes it."""
        stream, self._stream = self._stream, None
        return stream

    def _read_events(self, timestamp: int) -> Effects[None]:
        if self._stream is None:
            token = self._core.token
            call = requests.vaults.events(None if token is None else token.vault, timestamp)
            self._stream = yield from self._core.session.open_stream(call)
            self._events = Events()
        while True:
            try:
                part = yield ReadStream(self._stream)
            except NoResponse:
                part = b""
            if not part:
                self._stream = None  # it has ended; continue from the same timestamp
                return
            events = self._events.feed(part)
            if any(name in {"document", "vault"} and at > timestamp for name, at in events):
                return
            if self._local.file.outbox.count_sendable():
                return  # something was written here meanwhile

    def _poll(self) -> Effects[None]:
        record = self._local.file.vaults.all()
        if len(record) != 1:
            yield Sleep(self._every)
            return
        try:
            call = requests.documents.list_page(record[0].uid, since=record[0].cursor, limit=1, wait=LONG_POLL)
            page = yield from self._core.session.send(call)
        except Unavailable:
            yield from self.back_off()
            return
        if not page.documents:
            yield Sleep(min(self._every, 1.0))  # a server that knows no waiting has answered at once
