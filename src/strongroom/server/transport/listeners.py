"""Listening sockets: TCP, a Unix socket, a second port for metrics; TLS."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import socket
import ssl
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom import credentials
from strongroom.server.settings import UNIX, BadSetting
from strongroom.server.web import app_files
from strongroom.web_release import PREFIX

if TYPE_CHECKING:
    from strongroom.server.settings import Settings

_LOCAL: Final = "127.0.0.1"  # where metrics are served without a token, or beside a Unix socket


class Listeners(NamedTuple):
    """The listening sockets of a server, and their URLs."""

    main: socket.socket
    metrics: socket.socket | None
    url: str
    metrics_url: str | None  # of the separate metrics port, if there is one
    made: tuple[int, int] | None = None  # device and inode of the Unix socket

    def release(self) -> None:
        """Close the sockets here; other processes that have them go on with theirs."""
        for bound in (self.main, self.metrics):
            if bound is not None:
                bound.close()

    def close(self) -> None:
        """Remove the file of the Unix socket, if it is still the one that was created."""
        if self.made is None:
            return
        path = Path(self.url.removeprefix(UNIX))
        with suppress(OSError):
            if _identity(path) == self.made:
                path.unlink()


def open_listeners(settings: Settings, host: str | None = None, port: int | None = None) -> Listeners:
    """Bind the sockets, or raise BadSetting with a sentence for the operator."""
    host = settings.host if host is None else host
    port = settings.port if port is None else port
    main = _bind_file(host.removeprefix(UNIX)) if host.startswith(UNIX) else _bind_address(host, port, "HOST and PORT")
    metrics = None
    if settings.metrics_port is not None:
        metrics_host = host if not host.startswith(UNIX) and (settings.metrics_token or _is_local(host)) else _LOCAL
        metrics = _bind_address(metrics_host, settings.metrics_port, "HOST and METRICS_PORT")
    told = None if metrics is None else _url(metrics, "http") + "/metrics"
    made = _identity(Path(host.removeprefix(UNIX))) if host.startswith(UNIX) else None
    return Listeners(main, metrics, _url(main, "https" if settings.tls_cert_file else "http"), told, made)


def _is_local(host: str) -> bool:
    """Whether an address is a loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode of a file."""
    found = path.lstat()
    return found.st_dev, found.st_ino


def _bind_address(host: str, port: int, named: str) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadSetting(f"Cannot listen on {host} port {port}: {reason}. Choose another with {named}.") from None
    return bound


def _bind_file(path: str) -> socket.socket:
    """A Unix socket, for its owner and its group. One that a dead server left behind is removed first."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o117)
    try:
        _remove_stale_socket(path)
        bound.bind(path)
    except OSError as error:
        bound.close()
        reason = error.strerror or str(error)
        raise BadSetting(f"Cannot listen on {UNIX}{path}: {reason}. Choose another with HOST.") from None
    finally:
        os.umask(mask)
    return bound


def _remove_stale_socket(path: str) -> None:
    """Remove a socket that no process listens on; anything else with this name stays, and is an error."""
    try:
        found = Path(path).lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError(0, "something that is no socket is there, and is left as it is")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        try:
            caller.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
        except FileNotFoundError:
            return
        else:
            raise OSError(0, "another server listens there")


def _url(bound: socket.socket, scheme: str) -> str:
    if bound.family == socket.AF_UNIX:
        return f"{UNIX}{bound.getsockname()}"
    host, port = bound.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def tls(settings: Settings) -> ssl.SSLContext | None:
    """The TLS context; None where TLS is not configured."""
    if not settings.tls_cert_file:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, settings)
    return context


def load_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    """Load or reload the certificate and its key, for new connections."""
    files = settings.tls_cert_file, settings.tls_key_file or None
    try:
        # First elsewhere: a pair that does not fit would take the good one away from a context that is in use.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*files, password="")
        context.load_cert_chain(*files, password="")
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it cannot be read"
        raise BadSetting(
            f"Cannot use the certificate {settings.tls_cert_file} with its key "
            f"{settings.tls_key_file or settings.tls_cert_file}: {str(reason).lower().replace('_', ' ')}."
        ) from None


def certificate_digest(settings: Settings) -> bytes:
    """A digest of the certificate file, to detect changes; empty where there is none."""
    try:
        return hashlib.sha256(Path(settings.tls_cert_file).read_bytes()).digest() if settings.tls_cert_file else b""
    except OSError:
        return b""


def expiry(settings: Settings) -> float | None:
    """When the certificate expires, in seconds since 1970; None where there is none, or it cannot be read."""
    try:
        return credentials.certificate_expiry(Path(settings.tls_cert_file).read_bytes())
    except (OSError, ValueError):
        return None


def announce(settings: Settings, data: str, listeners: Listeners) -> None:
    """Print where the server listens, what it serves, where the data is and where the documentation is."""
    serves = {
        "both": "document vaults and blob vaults",
        "document": "document vaults (Variant A)",
        "blob": "blob vaults (Variant B)",
    }[settings.vault_variant.value]
    reached = settings.public_url if listeners.url.startswith(UNIX) else listeners.url
    lines = [f"strongroom listens on {listeners.url}", f"  serves  {serves}", f"  data    {data}"]
    not_served = app_files.warning(settings.web)
    if not_served is not None:
        lines.append(f"  app     {not_served}")
    elif reached and settings.web:
        lines.append(f"  app     {reached}{PREFIX}")
    lines += [f"  docs    {reached}/docs"] if reached else []
    lines += [f"  figures {listeners.metrics_url}"] if listeners.metrics_url else []
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
