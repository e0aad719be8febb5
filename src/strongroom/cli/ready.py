"""`strongroom ready`: readiness check of a running server, for containers."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from typing import TYPE_CHECKING, Final

from strongroom.cli import configuration, terminal

if TYPE_CHECKING:
    import argparse

_SECONDS: Final = 3.0
_UNIX: Final = "unix:"
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the server listens on loopback too


class _UnixSocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(self._path)


def ready(options: argparse.Namespace) -> int:
    """Ask the server with these settings on this machine; exit code 0 if it is ready, else 1."""
    given = configuration.read(options).values
    try:
        connection = _connection(given["HOST"].text, int(given["PORT"].text), tls=bool(given["TLS_CERT_FILE"].text))
        connection.request("GET", "/ready")
        response = connection.getresponse()
        body = response.read().decode("utf-8", "replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        where = given["HOST"].text if given["HOST"].text.startswith(_UNIX) else f"port {given['PORT'].text}"
        reason = getattr(error, "strerror", None) or error
        terminal.print_error(
            f"no response from a server at {where}: {reason}. Check that it runs, and with these settings."
        )
        return 1
    terminal.print_line(_describe(body, is_ready=response.status == 200))
    return 0 if response.status == 200 else 1


def _describe(body: str, *, is_ready: bool) -> str:
    """The readiness report as a sentence."""
    if is_ready:
        return "The server is ready."
    try:
        report = json.loads(body)
        bad = [name for name, is_good in report["checks"].items() if is_good != "ok"]
        why = f"; failed: {', '.join(bad)}. 'strongroom doctor' says more" if bad else ""
        return f"The server is not ready ({report['status']}){why}."
    except (ValueError, LookupError, TypeError, AttributeError):
        return "The program that responds there is not a strongroom server."


def _connection(host: str, port: int, *, tls: bool) -> http.client.HTTPConnection:
    if host.startswith(_UNIX):
        return _UnixSocketConnection(host.removeprefix(_UNIX))
    host = _WILDCARDS.get(host, host)
    if not tls:
        return http.client.HTTPConnection(host, port, timeout=_SECONDS)
    # The certificate is for another name than this machine's own; nothing secret is sent.
    return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=ssl._create_unverified_context())  # noqa: S323, SLF001
