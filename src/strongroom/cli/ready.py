"""`strongroom ready`: asks a running server whether it can do its work, for a container's health check."""

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
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what listens everywhere listens here too


class _File(http.client.HTTPConnection):
    """HTTP through a socket in a file."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Open the file."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_SECONDS)
        self.sock.connect(self._path)


def ready(options: argparse.Namespace) -> int:
    """Ask the server of these settings, on this machine; exit code 0 if it is ready, else 1."""
    given = configuration.read(options).values
    try:
        connection = _connection(given["HOST"].text, int(given["PORT"].text), tls=bool(given["TLS_CERT_FILE"].text))
        connection.request("GET", "/ready")
        answer = connection.getresponse()
        said = answer.read().decode("utf-8", "replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        where = given["HOST"].text if given["HOST"].text.startswith(_UNIX) else f"port {given['PORT'].text}"
        reason = getattr(error, "strerror", None) or error
        terminal.complain(f"no answer from a server at {where}: {reason}. Does it run, with these settings?")
        return 1
    terminal.say(_sentence(said, is_ready=answer.status == 200))
    return 0 if answer.status == 200 else 1


def _sentence(said: str, *, is_ready: bool) -> str:
    """What the server answered, for people."""
    if is_ready:
        return "The server is ready."
    try:
        told = json.loads(said)
        bad = [name for name, is_good in told["checks"].items() if is_good != "ok"]
        why = f"; not well: {', '.join(bad)}. 'strongroom doctor' says more" if bad else ""
        return f"The server is not ready ({told['status']}){why}."
    except (ValueError, LookupError, TypeError, AttributeError):
        return "What answers there is no server of strongroom."


def _connection(host: str, port: int, *, tls: bool) -> http.client.HTTPConnection:
    if host.startswith(_UNIX):
        return _File(host.removeprefix(_UNIX))
    host = _ANYWHERE.get(host, host)
    if not tls:
        return http.client.HTTPConnection(host, port, timeout=_SECONDS)
    # The certificate is for another name than this machine's own; nothing secret is sent.
    return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=ssl._create_unverified_context())  # noqa: S323, SLF001
