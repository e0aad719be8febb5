"""Connects to the host that takes writes, of several: the primary of PostgreSQL, wherever it is now.

All are tried at once: one that is switched off neither accepts nor refuses, and must not delay a connection to another.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

if TYPE_CHECKING:
    from asyncpg import Connection

_SILENT_SECONDS: Final = 5  # a host that has been silent for so long is gone, whatever is still under way
_TAKES_WRITES: Final = "read-write"


def split(url: str) -> list[str]:
    """A URL for each host that a URL names, in either of the two ways in which it can name several."""
    parts = urlsplit(url)
    before, at, named = parts.netloc.rpartition("@")
    if "," in named:
        return [urlunsplit(parts._replace(netloc=f"{before}{at}{host}")) for host in named.split(",")]
    query = dict(parse_qsl(parts.query))
    hosts, ports = query.get("host", "").split(","), query.get("port", "").split(",")
    if named or len(hosts) < 2:
        return [url]
    ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
    found = []
    for host, port in zip(hosts, ports, strict=True):
        own = {**query, "host": host, "port": port}
        own_query = urlencode({name: own[name] for name in own if own[name]}, safe="/")
        found.append(f"{url.partition('?')[0]}?{own_query}")
    return found


async def connect(url: str, seconds: float, **options: Any) -> Connection:
    """A connection to the one host, or to the first of several that takes writes."""
    addresses = split(url)
    if len(addresses) == 1:
        return _with_keepalive(await asyncpg.connect(url, timeout=seconds, **options))
    if "target_session_attrs" not in dict(parse_qsl(urlsplit(url).query)):
        options["target_session_attrs"] = _TAKES_WRITES
    under_way = {asyncio.ensure_future(asyncpg.connect(one, timeout=seconds, **options)) for one in addresses}
    try:
        return _with_keepalive(await _first(under_way))
    finally:
        for attempt in under_way:
            attempt.add_done_callback(_terminate_late)
            attempt.cancel()


async def _first(under_way: set[asyncio.Future[Connection]]) -> Connection:
    """The first that succeeds; the others stay in the set. A host that takes no writes is the least of all reasons."""
    reason: BaseException = ConnectionError("none of the hosts takes writes")
    while under_way:
        done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
        attempt = done.pop()
        under_way.discard(attempt)
        try:
            return attempt.result()
        except asyncpg.TargetServerAttributeNotMatched:
            pass
        except (
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
            OSError,
            TimeoutError,
        ) as error:
            reason = error
    raise reason


def _terminate_late(attempt: asyncio.Future[Connection]) -> None:
    """Close a connection that came too late."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().terminate()


def _with_keepalive(connection: Connection) -> Connection:
    """Set TCP keepalive, to notice within seconds that the host is gone: after a power loss it sends nothing."""
    bound = connection._transport.get_extra_info("socket")  # noqa: SLF001 - the driver has no door to it
    if bound is not None and bound.family != socket.AF_UNIX:
        with suppress(AttributeError, OSError):  # not every system has all of them
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _SILENT_SECONDS - 2)
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_SECONDS * 1000)
    return connection
