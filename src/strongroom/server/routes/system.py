"""Health, readiness, figures, and the API's own description."""

from __future__ import annotations

import asyncio
import hmac
from typing import Final

from msgspec import structs

from strongroom import __version__, errors, wire
from strongroom.actions import guessing
from strongroom.errors import NotFound, Unauthorized
from strongroom.server import meters, openapi, pages
from strongroom.server.address import counted
from strongroom.server.answers import Answer, answer
from strongroom.server.http import Call
from strongroom.server.table import Access, Endpoint
from strongroom.store import schema


async def health(call: Call) -> Answer:
    """The process is alive."""
    return answer(wire.Health("ok", call.room.clock(), call.room.epoch, __version__, schema.newest()))


async def ready(call: Call) -> Answer:
    """The database takes writes, its schema is current, and so on. Looked at once a second at most."""
    checks = await call.room.readiness.checks()
    good = all(checks.values())
    told = {name: "ok" if passed else "failed" for name, passed in checks.items()}
    if call.room.stopping:
        return answer(wire.ReadyReport("stopping", told), 503)
    return answer(wire.ReadyReport("ready" if good else "not ready", told), 200 if good else 503)


async def metrics(call: Call) -> Answer:
    """The figures, for who has the token. Without one, and where they have a port of their own, nothing is here."""
    settings = call.room.settings
    if settings.metrics_port is not None or not settings.metrics_token:
        raise NotFound
    return await figures(call)


async def figures(call: Call) -> Answer:
    """The figures on their own port, for anybody there unless a token is set."""
    token = call.room.settings.metrics_token
    if token and not hmac.compare_digest(b"bearer " + token, _lowered(call.given.get(b"authorization", b""))):
        await call.room.db.write(guessing.failed_secret, counted(call))
        raise Unauthorized("Send the metrics token as 'Authorization: Bearer ...'.")
    return Answer(await meters.exposition(call.room), content_type=meters.CONTENT_TYPE)


def _lowered(header: bytes) -> bytes:
    scheme, _, token = header.partition(b" ")
    return scheme.lower() + b" " + token


async def description(call: Call) -> Answer:
    """The API in OpenAPI 3.1."""
    return Answer(await asyncio.to_thread(openapi.description, call.room.variant))  # made once, which takes long


async def documentation(call: Call) -> Answer:
    """The API as a page to read."""
    page = await asyncio.to_thread(pages.documentation, call.room.variant)
    return Answer(page, content_type=b"text/html; charset=utf-8")


async def stylesheet(_call: Call) -> Answer:
    """How the page looks."""
    return Answer(pages.stylesheet(), content_type=b"text/css; charset=utf-8")


async def front(_call: Call) -> Answer:
    """Where to go from here."""
    return Answer(status=302, headers=[(b"location", b"/docs")])


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/health",
        handler=health,
        summary="Whether the process is alive",
        access=Access.PUBLIC,
        answers=wire.Health,
    ),
    Endpoint(
        method="GET",
        path="/ready",
        handler=ready,
        summary="Whether the server can do its work; 503 where it cannot",
        access=Access.PUBLIC,
        answers=wire.ReadyReport,
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        handler=metrics,
        summary="The server's figures, as Prometheus reads them",
        access=Access.PUBLIC,
        refusals=(errors.NotFound, errors.Unauthorized, errors.RateLimited),
    ),
    Endpoint(
        method="GET",
        path="/openapi.json",
        handler=description,
        summary="This description, in OpenAPI 3.1",
        access=Access.PUBLIC,
    ),
    Endpoint(
        method="GET", path="/docs", handler=documentation, summary="This description, as a page", access=Access.PUBLIC
    ),
    Endpoint(
        method="GET", path="/docs/style.css", handler=stylesheet, summary="The page's style", access=Access.PUBLIC
    ),
    Endpoint(method="GET", path="/", handler=front, summary="Leads to the documentation", access=Access.PUBLIC),
)
# What the port of the figures answers.
WATCHING: Final = (
    *(endpoint for endpoint in ENDPOINTS if endpoint.path in {"/health", "/ready"}),
    *(structs.replace(endpoint, handler=figures) for endpoint in ENDPOINTS if endpoint.path == "/metrics"),
)
