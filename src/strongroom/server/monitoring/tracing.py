"""OpenTelemetry traces, if the extra `otel` is installed and the environment names a collector.

A span is a request: its method, its route's template, its status. No path, no address, no account.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from strongroom._version import __version__

if TYPE_CHECKING:
    from strongroom.server.monitoring.log import Log

_WANTED: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_TIMEOUT_SECONDS: Final = 3.0  # to send the last spans when the server stops


def begin(log: Log) -> Traces | None:
    """The tracer of this process, if a collector is configured."""
    if not any(os.environ.get(name) for name in _WANTED):
        return None
    try:
        return Traces()
    except ImportError:
        log.say("warning", f"{_WANTED[0]} is set, but there are no traces: install strongroom[otel].")
        return None


class Traces:
    """Creates a span for each request; a thread of OpenTelemetry's exports them in batches."""

    def __init__(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        named = os.environ.get("OTEL_SERVICE_NAME") or "strongroom"
        resource = Resource.create({"service.name": named, "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("strongroom", __version__)
        self._kind = SpanKind.SERVER
        self._fault = Status(StatusCode.ERROR)
        self._context = TraceContextTextMapPropagator()

    def request(self, method: str, route: str | None, status: int, seconds: float, parent: str | None) -> None:
        """Record a request that has just ended. `parent` is the span of the proxy that sent it."""
        about: dict[str, Any] = {"http.request.method": method, "http.response.status_code": status}
        if route is not None:
            about["http.route"] = route
        now = time.time_ns()
        span = self._tracer.start_span(
            "HTTP" if route is None else f"{method} {route}",
            context=None if parent is None else self._context.extract({"traceparent": parent}),
            kind=self._kind,
            attributes=about,
            start_time=now - int(seconds * 1e9),
        )
        if status >= 500:
            span.set_status(self._fault)
        span.end(now)

    def close(self) -> None:
        """Export the last spans, with a timeout."""
        ending = threading.Thread(target=self._provider.shutdown, daemon=True)
        ending.start()
        ending.join(_TIMEOUT_SECONDS)
