"""The frame around every request: an id, a route, a caller, an answer, a line in the log."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect

from strongroom import rules
from strongroom.actions import purging, sessions
from strongroom.errors import InsufficientScope, InternalError, MethodNotAllowed, Refusal, Unauthorized
from strongroom.server import routes
from strongroom.server.authenticate import authenticate
from strongroom.server.cors import Cors
from strongroom.server.http import NOBODY, Answer, Call, Header, refusal_answer
from strongroom.server.table import Access, Endpoint
from strongroom.store import Orphan

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from strongroom.server.room import Room

_PURGE_SECONDS: Final = 600
_REST: Final = 4  # times as long as a step took, before the next


class App:
    """The ASGI application."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self._table = routes.table(room.variant)
        self._cors = Cors(room.settings.cors_origins)
        https = room.settings.public_url.startswith("https://")
        self._always: list[Header] = [(b"strict-transport-security", b"max-age=31536000")] if https else []
        self._purging: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the life of the application."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        await self._request(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._purging = asyncio.create_task(self._purge())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._purging.cancel()
        await self.room.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _purge(self) -> None:
        """Forget now and then what is expired or was kept for long enough."""
        while True:
            try:
                await self.room.db.write_long(sessions.purge, self.room.settings.event_days)
                await self.throw_away()
                await self.room.db.fold()
            except Refusal:
                pass  # the disk is full or busy: there is always a next time
            except Exception as error:  # noqa: BLE001 - the chore must not end with one bad day
                self.room.log.fault(error, "purge")
            await asyncio.sleep(_PURGE_SECONDS)

    async def throw_away(self) -> None:
        """All that was kept for long enough, a little at a time; most of the time the database is everybody else's."""
        while True:
            began = time.monotonic()
            if not await self.room.db.write_long(purging.step, self.room.keeping):
                return
            await asyncio.sleep(_REST * (time.monotonic() - began))

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        call = Call(scope, receive, self.room)
        origin = call.given.get(b"origin")
        endpoint: Endpoint | None = None
        try:
            endpoint, call.parts = self._table.find(scope["method"], _raw_path(scope))
            answer = await self._answer(call, endpoint)
        except MethodNotAllowed as refusal:
            answer = (
                self._options(refusal, origin)
                if scope["method"] == "OPTIONS"
                else refusal_answer(refusal, call.request_id)
            )
        except Refusal as refusal:
            answer = refusal_answer(refusal, call.request_id)
        except Orphan:  # the account was deleted while this was under way
            answer = refusal_answer(Unauthorized(), call.request_id)
        except ClientDisconnect:
            self._note(call, endpoint, 499, started, 0)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a clean answer
            self.room.log.fault(error, call.request_id)
            answer = refusal_answer(InternalError(), call.request_id)
        answer.headers += self._always
        answer.headers.append((b"x-request-id", call.request_id.encode()))
        if origin is not None:
            have = {name for name, _ in answer.headers}
            answer.headers += [header for header in self._cors.headers(origin) if header[0] not in have]
        size = 0
        try:
            size = await answer.send(send, receive)
        finally:
            self._note(call, endpoint, answer.status, started, size)

    async def _answer(self, call: Call, endpoint: Endpoint) -> Answer:
        if endpoint.access is not Access.PUBLIC:
            actor = call.actor = await authenticate(call)
            call.recheck = authenticate
            self.room.meter.count(actor.user_id, self.room.clock())
            if actor.key is not None:
                if endpoint.access is Access.USER:
                    raise InsufficientScope("An API key cannot do this; log in as a user.")
                rules.require(actor.key, endpoint.permission, whole_account=endpoint.whole_account)
        return await endpoint.handler(call)

    def _options(self, refusal: MethodNotAllowed, origin: bytes | None) -> Answer:
        """Which methods there are; for a browser, whether it may use them."""
        headers = [(b"allow", ", ".join(refusal.allowed).encode())]
        return Answer(status=204, headers=headers + ([] if origin is None else self._cors.preflight(origin)))

    def _note(self, call: Call, endpoint: Endpoint | None, status: int, started: float, size: int) -> None:
        self.room.log.request(
            call.scope["method"],
            "-" if endpoint is None else endpoint.path,
            status,
            time.perf_counter() - started,
            size,
            call.request_id,
            None if call.actor is NOBODY else call.actor.user_id,
        )


def _raw_path(scope: Scope) -> bytes:
    """The path as it was sent, without the prefix that an embedding application mounts us under."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    prefix: bytes = scope.get("root_path", "").encode()
    return raw.removeprefix(prefix) if prefix else raw
