"""A proxy between client and server that loses what it is told to lose."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASS, LOSE, REFUSE, BUSY, ABSENT = "pass", "lose", "refuse", "busy", "absent"
Policy = Callable[[str, str], str]


def transparent(method: str, path: str) -> str:  # noqa: ARG001
    """Pass everything on."""
    return PASS


class Proxy:
    """Passes requests on. `policy` says what becomes of each.

    pass      the answer is passed on
    lose      the server gets the request, the client gets no answer
    refuse    the server does not get it, and the client gets no answer
    busy      the client is told to come back later
    absent    the client is told that there is no such route
    507 code  the server does not get it, and the client gets this status and the error with this code
    """

    def __init__(self, port: int) -> None:
        self.policy: Policy = transparent
        self.seen: list[tuple[str, str, str]] = []
        self.answers = threading.Event()  # cleared, no answer comes for half a minute
        self.answers.set()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                proxy._handle(self, port)

            do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def _handle(self, call: BaseHTTPRequestHandler, port: int) -> None:
        body = call.rfile.read(int(call.headers.get("content-length") or 0))
        fate = self.policy(call.command, call.path.partition("?")[0])
        self.seen.append((call.command, call.path.partition("?")[0], fate))
        call.close_connection = True
        if fate == REFUSE:
            return
        if fate == BUSY:
            _answer(call, 503, b"", {"Retry-After": "0"})
            return
        if fate == ABSENT:
            _answer(call, 404, b'{"error": {"code": "not_found", "message": "", "requestId": "x"}}', {})
            return
        if fate[:3].isdigit():
            status, _, code = fate.partition(" ")
            error = f'{{"error": {{"code": "{code}", "message": "", "requestId": "x"}}}}'
            _answer(call, int(status), error.encode(), {})
            return
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            headers = {name: value for name, value in call.headers.items() if name.lower() != "connection"}
            line.request(call.command, call.path, body or None, headers)
            answer = line.getresponse()
            content = answer.read()
        finally:
            line.close()
        self.answers.wait(30)
        if fate == PASS:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client may have given up
                _answer(call, answer.status, content, dict(answer.getheaders()))

    def times(self, method: str, part: str) -> int:
        """How often such a request came."""
        return sum(method == seen and part in path for seen, path, _ in self.seen)

    def close(self) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(20)


def _answer(call: BaseHTTPRequestHandler, status: int, content: bytes, headers: dict[str, str]) -> None:
    call.send_response_only(status)
    for name, value in headers.items():
        if name.lower() not in {"transfer-encoding", "content-length", "connection"}:
            call.send_header(name, value)
    call.send_header("content-length", str(len(content)))
    call.send_header("connection", "close")
    call.end_headers()
    call.wfile.write(content)


class Once:
    """A policy: the first request of each kind meets this fate, the next passes."""

    def __init__(self, fate: str, *parts: str) -> None:
        self._fate = fate
        self._parts = parts
        self._met: set[tuple[str, str]] = set()

    def __call__(self, method: str, path: str) -> str:
        wanted = not self._parts or any(part in path for part in self._parts)
        if wanted and (method, path) not in self._met:
            self._met.add((method, path))
            return self._fate
        return PASS
