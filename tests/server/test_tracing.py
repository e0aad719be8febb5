"""Traces: real requests, a real collector, and nothing about anybody; nothing at all unless they are asked for."""

from __future__ import annotations

import gzip
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.kit.programs import processes
from tests.kit.servers.process import Server
from tests.kit.waiting import until

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


class Collector:
    """Takes what is sent to it, as OTLP over HTTP."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.sent.append(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def spans(self) -> list[Any]:
        """All spans so far."""
        found = []
        for body in self.sent:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                names = {each.key: each.value.string_value for each in resource.resource.attributes}
                assert names["service.name"] == "strongroom"
                found += [span for scope in resource.scope_spans for span in scope.spans]
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def about(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_request_is_a_span_about_nobody(tmp_path: Path, collector: Collector, workers: str) -> None:
    """Its route, method and status; a parent only from a proxy that is named. What is left is sent at the end."""
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100", "DATABASE_URL": ""}
    server = Server(tmp_path, TRUSTED_PROXIES="127.0.0.1", WORKERS=workers, **environment)
    server.settings.pop("DATABASE_URL")
    try:
        server.start()
        http = server.connect()
        body = {"email": "canary@example.com", "password": "canary horse"}
        signed_in = http.post("/auth/email/register", json=body, headers={"x-forwarded-for": "203.0.113.77"}).json()
        mine = server.connect(signed_in["accessToken"])
        vault = mine.post("/vault", json={"name": "canary vault"}, headers={"traceparent": PARENT}).json()["uid"]
        assert mine.get(f"/vault/{vault}?canary=1").status_code == 200
        stranger = server.connect(address="127.0.0.9")
        assert stranger.get("/canary/path", headers={"traceparent": PARENT}).status_code == 404
        until(lambda: len(collector.spans) >= 2, "spans that are sent as they come")
        assert server.end() == 0
    finally:
        server.abandon()
    spans = {span.name: span for span in collector.spans}
    assert set(spans) == {"POST /auth/email/register", "POST /vault", "GET /vault/{uid}", "HTTP"}
    assert about(spans["GET /vault/{uid}"]) == {
        "http.request.method": "GET",
        "http.route": "/vault/{uid}",
        "http.response.status_code": 200,
    }
    assert about(spans["HTTP"]) == {"http.request.method": "_OTHER", "http.response.status_code": 404}
    assert spans["POST /vault"].trace_id.hex() == TRACE
    assert spans["HTTP"].trace_id.hex() != TRACE
    for span in spans.values():
        assert 0 < span.end_time_unix_nano - span.start_time_unix_nano < 20e9
    for secret in ("canary", vault, signed_in["user"]["id"], signed_in["accessToken"], "203.0.113.77", "127.0.0"):
        assert not any(secret.encode() in body for body in collector.sent), secret


def test_a_collector_that_is_away_holds_nobody_up(tmp_path: Path) -> None:
    """Neither a request nor the end."""
    server = Server(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    try:
        server.start()
        assert all(server.connect().get("/health").status_code == 200 for _ in range(20))
        assert server.end() == 0
    finally:
        server.abandon()


def test_unasked_it_is_not_even_loaded_and_uninstalled_it_is_missed() -> None:
    """Without the variable nothing of it is imported; without the extra, a sentence says what to install."""
    script = """
import os, sys
from strongroom.server.monitoring import tracing
from strongroom.server.monitoring.log import Log
assert tracing.begin(Log(1)) is None
assert not any(name.startswith("opentelemetry") for name in sys.modules)
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
sys.modules["opentelemetry"] = None
assert tracing.begin(Log(1)) is None
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL")}
    done = processes.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "install strongroom[otel]" in done.stdout
    assert done.stdout.count("\n") == 1
