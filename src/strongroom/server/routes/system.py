"""Health, readiness, and the documentation of the API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from strongroom import wire
from strongroom._version import __version__
from strongroom.server.api_docs import html
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import Response, json_response
from strongroom.store.queries import schema
from strongroom.web_release import PREFIX

if TYPE_CHECKING:
    from strongroom.server.api_docs.openapi import ApiDescription


async def health(request: Request) -> Response:
    """Liveness: the process responds."""
    context = request.context
    limit = context.settings.max_body_bytes
    return json_response(
        wire.responses.Health("ok", context.clock(), context.epoch, __version__, schema.newest(), limit)
    )


async def ready(request: Request) -> Response:
    """Readiness: the database accepts writes, its schema is current, and so on. Checked once a second at most."""
    checks = await request.context.readiness.checks()
    good = all(checks.values())
    results = {name: "ok" if passed else "failed" for name, passed in checks.items()}
    if request.context.stopping:
        return json_response(wire.responses.ReadyReport("stopping", results), 503)
    return json_response(wire.responses.ReadyReport("ready" if good else "not ready", results), 200 if good else 503)


async def root(request: Request) -> Response:
    """Redirect to the web app, or to the documentation where no app is served."""
    place = b"/docs" if request.context.web_app is None else PREFIX.encode()
    return Response(status=302, headers=[(b"location", place)])


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/health",
        handler=health,
        summary="Whether the process is alive",
        access=Access.PUBLIC,
        response_type=wire.responses.Health,
    ),
    Endpoint(
        method="GET",
        path="/ready",
        handler=ready,
        summary="Whether the server can do its work; 503 where it cannot",
        access=Access.PUBLIC,
        response_type=wire.responses.ReadyReport,
    ),
    Endpoint(
        method="GET",
        path="/",
        handler=root,
        summary="Redirects to the web app, or to the documentation",
        access=Access.PUBLIC,
    ),
)


def documentation_endpoints(description: ApiDescription) -> tuple[Endpoint, ...]:
    """The endpoints that serve the documentation of the API."""

    async def api(_request: Request) -> Response:
        """The API in OpenAPI 3.1."""
        return Response(await asyncio.to_thread(description.as_json))  # cached; the first time takes long

    async def page(_request: Request) -> Response:
        """The API as an HTML page."""
        text = await asyncio.to_thread(html.documentation, description)
        return Response(text, content_type=b"text/html; charset=utf-8")

    async def stylesheet(_request: Request) -> Response:
        """The style sheet of the page."""
        return Response(html.stylesheet(), content_type=b"text/css; charset=utf-8")

    return (
        Endpoint(
            method="GET",
            path="/openapi.json",
            handler=api,
            summary="This description, in OpenAPI 3.1",
            access=Access.PUBLIC,
        ),
        Endpoint(
            method="GET", path="/docs", handler=page, summary="This description, as an HTML page", access=Access.PUBLIC
        ),
        Endpoint(
            method="GET",
            path="/docs/style.css",
            handler=stylesheet,
            summary="The style sheet of the page",
            access=Access.PUBLIC,
        ),
    )
