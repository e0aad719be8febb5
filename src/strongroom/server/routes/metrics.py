"""Metrics in the text format of Prometheus."""

from __future__ import annotations

import hmac
import os
import time
from typing import TYPE_CHECKING, Final

from strongroom import errors
from strongroom._version import __version__
from strongroom.actions import login_throttle
from strongroom.errors import NotFound, Refusal, Unauthorized
from strongroom.server.monitoring import metrics, process
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.response import Response
from strongroom.server.timeouts import timeout
from strongroom.store.queries import schema

if TYPE_CHECKING:
    from strongroom.server.context import AppContext

_TIMEOUT_SECONDS: Final = 2.0  # for the size of the database
_CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"


async def get(request: Request) -> Response:
    """The metrics, with METRICS_TOKEN; not found without a token, or where METRICS_PORT is set."""
    settings = request.context.settings
    if settings.metrics_port is not None or not settings.metrics_token:
        raise NotFound
    return await get_on_own_port(request)


async def get_on_own_port(request: Request) -> Response:
    """The metrics on METRICS_PORT; a token is required if one is set."""
    token = request.context.settings.metrics_token
    if token and not hmac.compare_digest(b"bearer " + token, _lower_scheme(request.headers.get(b"authorization", b""))):
        await request.write(login_throttle.record_failed_secret, request.counted_address)
        raise Unauthorized("Send the metrics token as 'Authorization: Bearer ...'.")
    return Response(await _exposition(request.context), content_type=_CONTENT_TYPE)


def _lower_scheme(header: bytes) -> bytes:
    scheme, _, token = header.partition(b" ")
    return scheme.lower() + b" " + token


async def _exposition(context: AppContext) -> bytes:
    """The metrics of all processes of this node, and of its database, as text."""
    samples = metrics.sum_samples(
        [context.samples(), *([] if context.metrics_slot is None else context.metrics_slot.others())]
    )
    checks = await context.readiness.checks()
    samples["strongroom_ready"] = {"": float(all(checks.values()) and not context.stopping)}
    engine = "postgresql" if context.settings.database_url else "sqlite"
    labels = metrics.format_labels(
        version=__version__, schema=schema.newest(), engine=engine, variant=context.variant.value
    )
    samples["strongroom_info"] = {labels: 1}
    started = process.started_at(os.getpid() if context.metrics_slot is None else os.getppid())
    if started is not None:
        samples["process_start_time_seconds"] = {"": started}
    if context.certificate_expires is not None:
        samples["strongroom_certificate_expiry_timestamp_seconds"] = {"": context.certificate_expires}
    try:
        async with await timeout(_TIMEOUT_SECONDS):
            size, free = await context.database_bytes()
            count, age = await context.waiting_deletions()
        samples["strongroom_deletions"] = {"": count}
        samples["strongroom_deletion_age_seconds"] = {"": age}
        samples["strongroom_database_bytes"] = {"": size}
        if free is not None:
            samples["strongroom_disk_free_bytes"] = {"": free}
    except (Refusal, OSError):  # the database cannot be reached: the other metrics are still shown
        pass
    backup = context.last_backup()
    if backup is not None:
        samples["strongroom_backup_age_seconds"] = {"": max(0.0, time.time() - backup / 1000)}
        samples["strongroom_backup_success_timestamp_seconds"] = {"": backup / 1000}
    return metrics.exposition_text(samples).encode()


METRICS: Final = Endpoint(
    method="GET",
    path="/metrics",
    handler=get,
    summary="Metrics of the server, in the text format of Prometheus",
    access=Access.PUBLIC,
    refusals=(errors.NotFound, errors.Unauthorized, errors.RateLimited),
)
