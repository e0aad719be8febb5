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
from strongroom.server.authentication import authenticate, finish_session_check, from_cached_token
from strongroom.server.backup_schedule import Schedule
from strongroom.server.cors import Cors
from strongroom.server.monitoring import tracing
from strongroom.server.request import ANONYMOUS, Access, ClientDisconnected, Endpoint, Request
from strongroom.server.response import Header, Response, refusal_response
from strongroom.server.routing import Router
from strongroom.store import MissingParent

if TYPE_CHECKING:
    from strongroom.model import ApiKey
    from strongroom.server.context import AppContext
    from strongroom.server.monitoring.shared_metrics import MetricsSlot

_PURGE_SECONDS: Final = 600
_REST: Final = 4  # times as long as a step took, before the next
_TELL_SECONDS: Final = 1.0
_TELL_FULL_SECONDS: Final = 60.0


class App:
    """The application, whoever carries its requests."""

    def __init__(self, context: AppContext, router: Router | None = None) -> None:
        self.context = context
        self._router = router or routes.router(context.variant)
        self._cors = Cors(context.settings.cors_origins)
        https = context.settings.public_url.startswith("https://")
        self._always: list[Header] = [(b"strict-transport-security", b"max-age=31536000")] if https else []
        self._always += self._cors.always
        self._chores: list[asyncio.Task[None]] = []
        self._traces: tracing.Traces | None = None
        self._told_full = float("-inf")  # when it was last told that the disk is full

    def start(self) -> None:
        """Begin the chores that go on beside the requests."""
        self._traces = tracing.begin(self.context.log)
        returning = memory.return_free_memory(self.context.db.release_memory)
        self._chores = [asyncio.create_task(self._purge()), asyncio.create_task(returning)]
        if self.context.metrics_slot is not None:
            self._chores.append(asyncio.create_task(self._tell(self.context.metrics_slot)))
        if self.context.settings.backup_dir:
            schedule = Schedule(
                self.context.settings, self.context.clock, self.context.log, self.context.metrics.backup_failed
            )
            self._chores.append(asyncio.create_task(schedule.run()))

    async def close(self) -> None:
        """End them, and let go of everything."""
        for chore in self._chores:
            chore.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)
        await self.context.close()
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)

    async def _purge(self) -> None:
        """Forget now and then what is expired or was kept for long enough."""
        while True:
            try:
                await self.context.db.write_long(sessions.purge, self.context.settings.event_days)
                await self.throw_away()
                await self.context.db.truncate_log()
            except Refusal:
                pass  # the disk is full or busy: there is always a next time
            except Exception as error:  # noqa: BLE001 - the chore must not end with one bad day
                self.context.log.fault(error, "purge")
            await asyncio.sleep(_PURGE_SECONDS)

    async def throw_away(self) -> None:
        """All that was kept for long enough, a little at a time; most of the time the database is everybody else's."""
        while True:
            began = time.monotonic()
            if not await self.context.db.write_long(retention.purge_some, self.context.retention):
                return
            await asyncio.sleep(_REST * (time.monotonic() - began))

    async def _tell(self, metrics_slot: MetricsSlot) -> None:
        """Tell the other processes of this server what was counted here."""
        while True:
            metrics_slot.write(self.context.samples())
            await asyncio.sleep(_TELL_SECONDS)

    async def handle(self, request: Request) -> Response | None:
        """The answer to a request, whatever happens; None if the client has gone meanwhile."""
        try:
            endpoint, request.parts = self._router.find(request.method, request.path)
            request.endpoint = endpoint
            if endpoint.access is not Access.PUBLIC:
                now = self.context.clock()
                actor = request.actor = from_cached_token(request, now) or await authenticate(request)
                request.recheck = authenticate
                self.context.rate_limit.count(actor.user_id, now)
                if actor.key is not None:
                    _require(actor.key, endpoint)
            response = await self._handled(request, endpoint)
        except MethodNotAllowed as refusal:
            response = (
                self._options(request, refusal) if request.method == "OPTIONS" else self._refuse(refusal, request)
            )
        except Refusal as refusal:
            response = self._refuse(refusal, request)
        except MissingParent:  # the account was deleted while this was under way
            response = self._refuse(Unauthorized(), request)
        except ClientDisconnected:
            return None
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a clean answer
            self.context.log.fault(error, request.request_id)
            response = self._refuse(InternalError(), request)
        response.request_id = request.request_id
        if self._always or b"origin" in request.headers:
            self._add_headers(response, request)
        return response

    async def _handled(self, request: Request, endpoint: Endpoint) -> Response:
        """What the endpoint answers. Who was not proven on the way is proven before he learns anything."""
        if request.session_check is None:
            return await endpoint.handler(request)
        try:
            response = await endpoint.handler(request)
        except Unavailable:
            raise  # which tells nothing of what is stored, and would only be met again
        except Refusal:
            await finish_session_check(request)
            raise
        await finish_session_check(request)
        return response

    def _refuse(self, refusal: Refusal, request: Request) -> Response:
        self.context.metrics.refusal(refusal.code)
        if isinstance(refusal, StorageFull) and time.monotonic() - self._told_full >= _TELL_FULL_SECONDS:
            self._told_full = time.monotonic()
            self.context.log.say("error", "The disk of the database is full: writes are refused until there is room.")
        return refusal_response(refusal, request.request_id)

    def _add_headers(self, response: Response, request: Request) -> None:
        """What depends on where the server stands, and on where a browser comes from."""
        headers = [*response.headers, *self._always]
        origin = request.headers.get(b"origin")
        if origin is not None:
            have = {name for name, _ in headers}
            headers += [header for header in self._cors.headers(origin) if header[0] not in have]
        response.headers = headers

    def _options(self, request: Request, refusal: MethodNotAllowed) -> Response:
        """Which methods there are; for a browser, whether it may use them."""
        headers = [(b"allow", ", ".join(refusal.allowed).encode())]
        origin = request.headers.get(b"origin")
        return Response(status=204, headers=headers + ([] if origin is None else self._cors.preflight(origin)))

    def note(self, request: Request, status: int, size: int, ended: str | None = None) -> None:
        """A line in the log, once the answer is out; and one more in the count."""
        seconds = time.perf_counter() - request.started
        route = "-" if request.endpoint is None else request.endpoint.path
        method = "-" if request.endpoint is None else request.endpoint.method
        self.context.metrics.request(method, route, status, seconds if ended is None else None)
        if self._traces is not None:
            known = request.endpoint is not None
            parent = (
                request.header(b"traceparent") if request.is_from_a_proxy else None
            )  # what others write counts for nothing
            self._traces.request(method if known else "_OTHER", route if known else None, status, seconds, parent)
        self.context.log.request(
            request.method,
            route,
            status,
            seconds,
            size,
            request.request_id,
            None if request.actor is ANONYMOUS else request.actor.user_id,
            ended,
            known=request.actor is not ANONYMOUS and status != 401,
        )


def _require(key: ApiKey, endpoint: Endpoint) -> None:
    """Refuse an API key what only a person may do, and what this key may not."""
    if endpoint.access is Access.USER:
        raise InsufficientScope("An API key cannot do this; log in as a user.")
    rules.require(key, endpoint.permission, whole_account=endpoint.whole_account)
