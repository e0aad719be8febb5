"""A proxy that lies, with a real server behind it: the lie is the only difference. It keeps every byte it is sent."""

from __future__ import annotations

import http.client
import json
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

READING = {("POST", "/auth/email/prelogin"), ("POST", "/auth/email/login"), ("POST", "/auth/refresh")}
_HOP = {"transfer-encoding", "content-length", "connection"}


class Talk:
    """One request and its answer. The server is asked when the answer is first looked at."""

    def __init__(self, line: Line, call: BaseHTTPRequestHandler, body: bytes) -> None:
        self._line = line
        self._call = call
        self._answer: tuple[int, dict[str, str], bytes] | None = None
        self.method = call.command
        self.path, _, self.query = call.path.partition("?")
        self.given = body
        self.lied = False

    @property
    def asked(self) -> Any:
        """The body of the request."""
        return json.loads(self.given)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        if self._answer is None:
            self._answer = self._line.ask(self._call, self.given)
        return self._answer

    @property
    def status(self) -> int:
        return self.answer()[0]

    @property
    def told(self) -> Any:
        """The body of the answer, where it is JSON."""
        return json.loads(self.answer()[2])

    def say(self, value: Any, status: int | None = None, headers: dict[str, str] | None = None) -> None:
        """Answer with something else."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        if status is None:
            status = self.status
        self._answer = status, {"content-type": "application/json", **(headers or {})}, body
        self.lied = True

    def refuse(self, status: int, code: str, details: Any = None, **headers: str) -> None:
        """Refuse in the server's manner, without asking it."""
        fault = {"code": code, "message": "No.", "requestId": "x", "details": details}
        self.say({"error": fault}, status, {name.replace("_", "-"): value for name, value in headers.items()})


Lie = Callable[[Talk], None]


class Sent:
    """A request as it came in. `late`: after the first lie."""

    def __init__(self, talk: Talk, raw: bytes, *, late: bool) -> None:
        self.method, self.path, self.raw, self.late = talk.method, talk.path, raw, late
        self._body = talk.given

    @property
    def writes(self) -> bool:
        """Whether it could change what the server keeps."""
        return self.method != "GET" and (self.method, self.path) not in READING

    def texts(self) -> list[str]:
        """Everything sealed that is in it."""
        body = json.loads(self._body or b"{}")
        parts = [body, *body.get("operations", [])]
        return [part[name] for part in parts for name in ("data", "hmac", "salt", "keyring", "name") if part.get(name)]


def _has_input(connection: socket.socket) -> bool:
    """Whether something can be read; a poll, because a process of many tests has more files than select takes."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


class Line:
    """The connection to the server that belongs to one of a client's; opened again if the server has ended it."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, call: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Pass a request on; status, headers and body of the answer."""
        if self._http.sock is not None and _has_input(self._http.sock):
            self._http.close()  # the server has hung up
        headers = {name: value for name, value in call.headers.items() if name.lower() != "connection"}
        self._http.request(call.command, call.path, body or None, headers)
        answer = self._http.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def close(self) -> None:
        self._http.close()


class Liar:
    """Passes everything on and tells the truth, until it has a lie to tell."""

    def __init__(self, port: int) -> None:
        self.lie: Lie | None = None
        self.lies = 0
        self.sent: list[Sent] = []
        self._lock = threading.Lock()
        liar = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def setup(self) -> None:
                super().setup()
                self.line = Line(port)

            def handle_any(self) -> None:
                liar._handle(self, self.line)

            def finish(self) -> None:
                self.line.close()
                super().finish()

            do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def _handle(self, call: BaseHTTPRequestHandler, line: Line) -> None:
        body = call.rfile.read(int(call.headers.get("content-length") or 0))
        talk = Talk(line, call, body)
        fields = "".join(f"{name}: {value}\n" for name, value in call.headers.items())
        raw = f"{call.requestline}\n{fields}\n".encode() + body
        with self._lock:
            self.sent.append(Sent(talk, raw, late=self.lies > 0))
        if self.lie is not None:
            self.lie(talk)
        status, headers, content = talk.answer()
        with self._lock:
            self.lies += talk.lied
        call.close_connection = talk.lied  # whoever was lied to may not know where the answer ends
        call.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in _HOP:
                call.send_header(name, value)
        call.send_header("content-length", str(len(content)))
        if talk.lied:
            call.send_header("connection", "close")
        call.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has heard enough
            call.wfile.write(content)
            call.wfile.flush()

    @property
    def received(self) -> bytes:
        """Every byte that it was sent."""
        return b"\n".join(sent.raw for sent in self.sent)

    def late_writes(self) -> list[str]:
        """What was written after the first lie."""
        return [f"{sent.method} {sent.path}" for sent in self.sent if sent.late and sent.writes]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(20)
