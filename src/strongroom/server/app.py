"""The HTTP application: routing, authentication, error handling and the request log around every handler."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from strongroom import rules
from strongroom.actions import retention, second_factors, sessions
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
from strongroom.server.backup_schedule import BackupSchedule
from strongroom.server.cors import Cors
from strongroom.server.monitoring import tracing
from strongroom.server.request import ANONYMOUS, Access, ClientDisconnected, Endpoint, Request
from strongroom.server.response import Header, Response, refusal_response
from strongroom.server.routing import Router
from strongroom.store import MissingParent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from strongroom.model import ApiKey
    from strongroom.server.context import AppContext
    from strongroom.server.monitoring.shared_metrics import MetricsSlot

_PURGE_SECONDS: Final = 600
_PURGE_PAUSE: Final = 4  # times the duration of a purge step, before the next
_PUBLISH_SECONDS: Final = 1.0
_RESEAL_SECONDS: Final = 60  # after a failure
_DISK_FULL_LOG_SECONDS: Final = 60.0  # between two log lines about a full disk


_LOST_SECRETS: Final = (
    "{} secrets of one-time codes cannot be opened: they were encrypted under a secret that is not set. Their owners "
    "need a recovery code or a passkey to log in. Set SECOND_FACTOR_SECRET_PREVIOUS to the JWT_SECRET or "
    "SECOND_FACTOR_SECRET of before, and reload; if that is lost, 'strongroom users reset-second-factor'."
)


class App:
    """The HTTP application, independent of the transport that carries its requests."""

    def __init__(self, context: AppContext, router: Router | None = None) -> None:
        self.context = context
        self._router = router or self._own_router()
        self._cors = Cors(context.settings.cors_origins)
        https = context.settings.public_url.startswith("https://")
        self._common_headers: list[Header] = [(b"strict-transport-security", b"max-age=31536000")] if https else []
        self._common_headers += self._cors.always
        self._tasks: list[asyncio.Task[None]] = []
        self._traces: tracing.Traces | None = None
        self._disk_full_logged_at = float("-inf")

    def _own_router(self) -> Router:
        """The router of the API, and of the web app where that is served."""
        api, web_app = routes.router(self.context.variant), self.context.web_app
        return api if web_app is None else Router([*api.endpoints, *routes.web_app.endpoints(web_app)])

    async def start(self) -> None:
        """Begin to serve the database, and start the background tasks."""
        await self.context.db.begin_serving(self.context.epoch)
        self._traces = tracing.begin(self.context.log)
        trimming = memory.return_free_memory(self.context.db.release_memory)
        work = (
            self._purge_periodically(),
            self._reseal_after_renewals(),
            self.context.deletions.run(self.context.log),
            trimming,
        )
        self._tasks = [asyncio.create_task(one) for one in work]
        if self.context.metrics_slot is not None:
            self._tasks.append(asyncio.create_task(self._publish_metrics(self.context.metrics_slot)))
        if self.context.settings.backup_dir:
            schedule = BackupSchedule(
                self.context.settings, self.context.clock, self.context.log, self.context.metrics.backup_failed
            )
            self._tasks.append(asyncio.create_task(schedule.run()))

    async def close(self) -> None:
        """Cancel the background tasks and release all resources."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.context.close()
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)

    async def _purge_periodically(self) -> None:
        """Background task: delete expired sessions and events, and purge what has passed its retention period."""
        while True:
            try:
                await self._in_steps(sessions.purge_some, self.context.settings.event_days)
                await self.purge()
                await self.context.db.truncate_log()
            except Refusal:
                pass  # the disk is full or busy: the next run tries again
            except Exception as error:  # noqa: BLE001 - one failure must not end the task
                self.context.log.fault(error, "purge")
            await asyncio.sleep(_PURGE_SECONDS)

    async def purge(self) -> None:
        """Purge all that has passed its retention period."""
        await self._in_steps(retention.purge_some, self.context.retention)

    async def _in_steps(self, purge_some: Callable[..., Awaitable[bool]], policy: Any) -> None:
        """Purge in small transactions, with pauses between them, until nothing is left."""
        sweep = retention.Sweep()
        while True:
            began = time.monotonic()
            if not await self.context.db.write_long(purge_some, policy, sweep):
                return
            await asyncio.sleep(_PURGE_PAUSE * (time.monotonic() - began))

    async def _reseal_after_renewals(self) -> None:
        """Background task: seal the secrets of one-time codes under the current key, at start and after a reload."""
        renewed = self.context.secrets_renewed
        while True:
            renewed.clear()
            try:
                await self.reseal()
                await renewed.wait()
            except Refusal:
                await asyncio.sleep(_RESEAL_SECONDS)  # the disk is full, or the database is away
            except Exception as error:  # noqa: BLE001 - one failure must not end the task
                self.context.log.fault(error, "reseal")
                await asyncio.sleep(_RESEAL_SECONDS)

    async def reseal(self) -> None:
        """Seal what is sealed under an older key anew, in small steps; log what no key opens."""
        db, box, log = self.context.db, self.context.secret_box, self.context.log
        lost = 0
        for key_id, count in (await db.read(second_factors.older_keys, box)).items():
            after: tuple[str, int] | None = ("", 0)
            if not box.knows(key_id):
                lost += count
                continue
            while after is not None:
                after = await db.write_long(second_factors.reseal_some, box, key_id, after)
            log.say("info", f"{count} secrets of one-time codes were encrypted anew, under the current secret.")
        if lost:
            log.say("error", _LOST_SECRETS.format(lost))

    async def _publish_metrics(self, metrics_slot: MetricsSlot) -> None:
        """Background task: share this process's metrics with the other workers of this server."""
        while True:
            metrics_slot.write(self.context.samples())
            await asyncio.sleep(_PUBLISH_SECONDS)

    async def handle(self, request: Request) -> Response | None:
        """Handle a request: its response, whatever happens, or None if the client disconnected."""
        try:
            endpoint, request.path_params = self._router.find(request.method, request.path)
            request.endpoint = endpoint
            if endpoint.access is not Access.PUBLIC:
                now = self.context.clock()
                actor = request.actor = from_cached_token(request, now) or await authenticate(request)
                request.recheck = authenticate
                self.context.rate_limit.count(actor.user_id, now)
                if actor.key is not None:
                    _require_access(actor.key, endpoint)
            response = await self._call_handler(request, endpoint)
        except MethodNotAllowed as refusal:
            response = (
                self._options(request, refusal) if request.method == "OPTIONS" else self._refuse(refusal, request)
            )
        except Refusal as refusal:
            response = self._refuse(refusal, request)
        except MissingParent:  # the account was deleted during the request
            response = self._refuse(Unauthorized(), request)
        except ClientDisconnected:
            return None
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a clean response
            self.context.log.fault(error, request.request_id)
            response = self._refuse(InternalError(), request)
        response.request_id = request.request_id
        if self._common_headers or b"origin" in request.headers:
            self._add_headers(response, request)
        return response

    async def _call_handler(self, request: Request, endpoint: Endpoint) -> Response:
        """Call the handler, and complete a pending session check before its response or refusal goes out."""
        if request.session_check is None:
            return await endpoint.handler(request)
        try:
            response = await endpoint.handler(request)
        except Unavailable:
            raise  # it reveals nothing that is stored, and the check would only fail in the same way
        except Refusal:
            await finish_session_check(request)
            raise
        await finish_session_check(request)
        return response

    def _refuse(self, refusal: Refusal, request: Request) -> Response:
        self.context.metrics.refusal(refusal.code)
        if isinstance(refusal, StorageFull) and time.monotonic() - self._disk_full_logged_at >= _DISK_FULL_LOG_SECONDS:
            self._disk_full_logged_at = time.monotonic()
            self.context.log.say("error", "The disk of the database is full: writes are refused until space is freed.")
        return refusal_response(refusal, request.request_id)

    def _add_headers(self, response: Response, request: Request) -> None:
        """Add the headers that depend on the settings, and the CORS headers for the origin of the request."""
        headers = [*response.headers, *self._common_headers]
        origin = request.headers.get(b"origin")
        if origin is not None:
            have = {name for name, _ in headers}
            headers += [header for header in self._cors.headers(origin) if header[0] not in have]
        response.headers = headers

    def _options(self, request: Request, refusal: MethodNotAllowed) -> Response:
        """Response to OPTIONS: the allowed methods, and the CORS headers of a preflight request."""
        headers = [(b"allow", ", ".join(refusal.allowed).encode())]
        origin = request.headers.get(b"origin")
        return Response(status=204, headers=headers + ([] if origin is None else self._cors.preflight(origin)))

    def log_request(self, request: Request, status: int, size: int, ended: str | None = None) -> None:
        """Log a request, count it and trace it, once its response was sent."""
        seconds = time.perf_counter() - request.started
        route = "-" if request.endpoint is None else request.endpoint.path
        method = "-" if request.endpoint is None else request.endpoint.method
        self.context.metrics.request(method, route, status, seconds if ended is None else None)
        if self._traces is not None:
            known = request.endpoint is not None
            parent = request.header(b"traceparent") if request.is_from_a_proxy else None  # no other peer is trusted
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


def _require_access(key: ApiKey, endpoint: Endpoint) -> None:
    """Refuse an API key on an endpoint for users only, or without the permission that the endpoint needs."""
    if endpoint.access is Access.USER:
        raise InsufficientScope("An API key cannot do this; log in as a user.")
    rules.require(key, endpoint.permission, whole_account=endpoint.whole_account)
