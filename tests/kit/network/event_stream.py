"""Reads server-sent events: a parser, and an event stream of an application in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

PATIENCE = 10.0  # seconds after which something that should have come has not


class Event(NamedTuple):
    """One event, or a comment (no name, no data)."""

    name: str
    id: int | None
    data: Any
    comment: bool = False


class Parser:
    """Server-sent events from bytes, however those are cut."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[Event]:
        """The events that are complete now."""
        *blocks, self._rest = (self._rest + piece).split(b"\n\n")
        return [self._event(block.decode()) for block in blocks]

    @staticmethod
    def _event(block: str) -> Event:
        fields: dict[str, str] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            assert name in {"", "id", "event", "data", "retry"}, block
            assert name not in fields, block
            fields[name] = value.removeprefix(" ")
        comment = not {"event", "data", "id"} & fields.keys()
        data = json.loads(fields["data"]) if "data" in fields else None
        return Event(fields.get("event", ""), int(fields["id"]) if "id" in fields else None, data, comment)


class Follow:
    """A stream of an application in this process. Who does not read it lets the application wait, as a socket does."""

    def __init__(self, app: Any, path: str, bearer: str, **headers: str) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.comments = 0
        self.body = b""
        self._app = app
        self._path, _, self._query = path.partition("?")
        self._sent = [(b"host", b"server"), (b"authorization", b"Bearer " + bearer.encode())]
        self._sent += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        self._events: list[Event] = []
        self._parser = Parser()
        self._news = asyncio.Event()
        self._closed = asyncio.Event()
        self.open = asyncio.Event()  # cleared: the client does not read, and the next piece fills what is in between
        self.open.set()
        self._full = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": self._query.encode(),
            "headers": self._sent,
            "client": ("127.0.0.1", 5),
        }
        self._task = asyncio.create_task(self._app(scope, self._receive, self._send))
        self._task.add_done_callback(lambda _: self._news.set())
        await self._until(lambda: self.status != 0 or self.over)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed.set()
        self.open.set()
        assert self._task is not None
        async with asyncio.timeout(PATIENCE):
            await self._task

    async def _receive(self) -> Any:
        await self._closed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if self._full:
            await self.open.wait()
            self._full = False
        if self._closed.is_set():
            return
        self._full = not self.open.is_set() and bool(message.get("body"))
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            piece = bytes(message.get("body", b""))
            self.body += piece
            if self.headers["content-type"] == "text/event-stream":
                for event in self._parser.feed(piece):
                    self.comments += event.comment
                    if not event.comment:
                        self._events.append(event)
        self._news.set()

    async def _until(self, condition: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._news.clear()
                await self._news.wait()

    @property
    def over(self) -> bool:
        """Whether the answer has ended."""
        return self._task is not None and self._task.done()

    async def next(self) -> Event:
        """The next event; what has not come in time is missed."""
        await self._until(lambda: self._events or self.over)
        assert self._events, "the stream ended"
        return self._events.pop(0)

    async def take(self, count: int) -> list[Event]:
        """So many events."""
        return [await self.next() for _ in range(count)]

    async def ready(self) -> int:
        """The first event's id."""
        event = await self.next()
        assert event.name == "ready", event
        assert event.id is not None
        assert event.id == event.data["cursor"]
        return event.id

    async def reason(self) -> str:
        """Why it ends; nothing comes before or after that."""
        event = await self.next()
        assert (event.name, event.id) == ("end", None), event
        await self._until(lambda: self.over)
        assert not self._events
        return str(event.data["reason"])

    @property
    def waiting(self) -> list[Event]:
        """What has come and was not taken."""
        return self._events


@asynccontextmanager
async def following(server: Any, person: Any, path: str, **headers: str) -> AsyncIterator[Follow]:
    """Follow as a person, from the first event on."""
    bearer = headers.pop("bearer", person.access)
    async with Follow(server.app, path, bearer, **headers) as stream:
        assert stream.status == 200, stream.body
        await stream.ready()
        yield stream
