"""The frame around every request: an id, a route, a caller, an answer, a line in the log."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from strongroom import rules
from strongroom.actions import retention, sessions
from strongroom.errors import (
    InsufficientScope,
    InternalError,
    MethodNotAllowed,
    Refusal,
    StorageFull,
    Unauthorized,
    Unavailable,
)
from strongroom.server import memory, routes
from strongroom.server.authentication import authenticate, recognised, settle
from strongroom.server.backup_schedule import Schedule
from strongroom.server.cors import Cors
from strongroom.server.monitoring import tracing
from strongroom.server.request import NOBODY, Access, Call, Endpoint, Gone
from strongroom.server.response import Answer, Header, refusal_answer
from strongroom.server.routing import Table
from strongroom.store import Orphan

if TYPE_CHECKING:
    from strongroom.model import ApiKey
    from strongroom.server.context import Room
    from strongroom.server.monitoring.shared_metrics import Place

_PURGE_SECONDS: Final = 600
_REST: Final = 4  # times as long as a step took, before the next
_TELL_SECONDS: Final = 1.0
_TELL_FULL_SECONDS: Final = 60.0


class App:
    """The application, whoever carries its requests."""

    def __init__(self, room: Room, table: Table | None = None) -> None:
        self.room = room
        self._table = table or routes.table(room.variant)
        self._cors = Cors(room.settings.cors_origins)
        https = room.settings.public_url.startswith("https://")
        self._always: list[Header] = [(b"strict-transport-security", b"max-age=31536000")] if https else []
        self._always += self._cors.always
        self._chores: list[asyncio.Task[None]] = []
        self._traces: tracing.Traces | None = None
        self._told_full = float("-inf")  # when it was last told that the disk is full

    def start(self) -> None:
        """Begin the chores that go on beside the requests."""
        self._traces = tracing.begin(self.room.log)
        returning = memory.return_free_memory(self.room.db.release_memory)
        self._chores = [asyncio.create_task(self._purge()), asyncio.create_task(returning)]
        if self.room.place is not None:
            self._chores.append(asyncio.create_task(self._tell(self.room.place)))
        if self.room.settings.backup_dir:
            schedule = Schedule(self.room.settings, self.room.clock, self.room.log, self.room.meters.backup_failed)
            self._chores.append(asyncio.create_task(schedule.run()))

    async def close(self) -> None:
        """End them, and let go of everything."""
        for chore in self._chores:
            chore.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)
        await self.room.close()
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)

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
            if not await self.room.db.write_long(retention.step, self.room.keeping):
                return
            await asyncio.sleep(_REST * (time.monotonic() - began))

    async def _tell(self, place: Place) -> None:
        """Tell the other processes of this server what was counted here."""
        while True:
            place.write(self.room.samples())
            await asyncio.sleep(_TELL_SECONDS)

    async def answer(self, call: Call) -> Answer | None:
        """The answer to a request, whatever happens; None if the client has gone meanwhile."""
        try:
            endpoint, call.parts = self._table.find(call.method, call.path)
            call.endpoint = endpoint
            if endpoint.access is not Access.PUBLIC:
                now = self.room.clock()
                actor = call.actor = recognised(call, now) or await authenticate(call)
                call.recheck = authenticate
                self.room.meter.count(actor.user_id, now)
                if actor.key is not None:
                    _require(actor.key, endpoint)
            answer = await self._handled(call, endpoint)
        except MethodNotAllowed as refusal:
            answer = self._options(call, refusal) if call.method == "OPTIONS" else self._refuse(refusal, call)
        except Refusal as refusal:
            answer = self._refuse(refusal, call)
        except Orphan:  # the account was deleted while this was under way
            answer = self._refuse(Unauthorized(), call)
        except Gone:
            return None
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a clean answer
            self.room.log.fault(error, call.request_id)
            answer = self._refuse(InternalError(), call)
        answer.request_id = call.request_id
        if self._always or b"origin" in call.given:
            self._add_headers(answer, call)
        return answer

    async def _handled(self, call: Call, endpoint: Endpoint) -> Answer:
        """What the endpoint answers. Who was not proven on the way is proven before he learns anything."""
        if call.proof is None:
            return await endpoint.handler(call)
        try:
            answer = await endpoint.handler(call)
        except Unavailable:
            raise  # which tells nothing of what is stored, and would only be met again
        except Refusal:
            await settle(call)
            raise
        await settle(call)
        return answer

    def _refuse(self, refusal: Refusal, call: Call) -> Answer:
        self.room.meters.refusal(refusal.code)
        if isinstance(refusal, StorageFull) and time.monotonic() - self._told_full >= _TELL_FULL_SECONDS:
            self._told_full = time.monotonic()
            self.room.log.say("error", "The disk of the database is full: writes are refused until there is room.")
        return refusal_answer(refusal, call.request_id)

    def _add_headers(self, answer: Answer, call: Call) -> None:
        """What depends on where the server stands, and on where a browser comes from."""
        headers = [*answer.headers, *self._always]
        origin = call.given.get(b"origin")
        if origin is not None:
            have = {name for name, _ in headers}
            headers += [header for header in self._cors.headers(origin) if header[0] not in have]
        answer.headers = headers

    def _options(self, call: Call, refusal: MethodNotAllowed) -> Answer:
        """Which methods there are; for a browser, whether it may use them."""
        headers = [(b"allow", ", ".join(refusal.allowed).encode())]
        origin = call.given.get(b"origin")
        return Answer(status=204, headers=headers + ([] if origin is None else self._cors.preflight(origin)))

    def note(self, call: Call, status: int, size: int, ended: str | None = None) -> None:
        """A line in the log, once the answer is out; and one more in the count."""
        seconds = time.perf_counter() - call.started
        route = "-" if call.endpoint is None else call.endpoint.path
        method = "-" if call.endpoint is None else call.endpoint.method
        self.room.meters.request(method, route, status, seconds if ended is None else None)
        if self._traces is not None:
            known = call.endpoint is not None
            parent = (
                call.header(b"traceparent") if call.is_from_a_proxy else None
            )  # what others write counts for nothing
            self._traces.request(method if known else "_OTHER", route if known else None, status, seconds, parent)
        self.room.log.request(
            call.method,
            route,
            status,
            seconds,
            size,
            call.request_id,
            None if call.actor is NOBODY else call.actor.user_id,
            ended,
            known=call.actor is not NOBODY and status != 401,
        )


def _require(key: ApiKey, endpoint: Endpoint) -> None:
    """Refuse an API key what only a person may do, and what this key may not."""
    if endpoint.access is Access.USER:
        raise InsufficientScope("An API key cannot do this; log in as a user.")
    rules.require(key, endpoint.permission, whole_account=endpoint.whole_account)
