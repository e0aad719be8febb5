"""Where a request comes from. Nobody's X-Forwarded-For counts, but that of a proxy which the operator names."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from strongroom.server.http import Call

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HOPS: Final = 32  # of a header that are looked at, from the right; no chain of proxies is longer


def address_of(call: Call) -> str:
    """The caller's address, as far as it can be trusted."""
    if call.client is None:
        return "unknown"
    trusted = call.room.settings.trusted_proxies
    if not trusted:
        return call.client
    return _forwarded(call.client, call.header(b"x-forwarded-for") or "", trusted)


def is_a_proxy(call: Call) -> bool:
    """Whether the other end of the connection is a proxy that the operator names."""
    trusted = call.room.settings.trusted_proxies
    return call.client is not None and bool(trusted) and _is_one_of(call.client, trusted)


def _forwarded(peer: str, header: str, trusted: tuple[Network | str, ...]) -> str:
    """The last hop that is not a proxy of ours: what stands left of it, anyone may have written."""
    address = peer
    for part in reversed(header.rsplit(",", _HOPS)[-_HOPS:]):
        if not _is_one_of(address, trusted):
            break
        if hop := part.strip():
            address = _bare(hop)
    return address


def _bare(hop: str) -> str:
    """An address without its port, in any of the ways in which proxies write them."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _is_one_of(address: str, networks: tuple[Network | str, ...]) -> bool:
    if address in networks:  # the other end of a socket in a file has no address, and is called unix
        return True
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return any(
        parsed in network for network in networks if not isinstance(network, str) and network.version == parsed.version
    )


def counted(call: Call) -> str:
    """The address that failures count for."""
    return counted_address(address_of(call))


@lru_cache(maxsize=4096)
def counted_address(host: str) -> str:
    """An IPv6 customer has a whole /64, so that counts as one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address.packed[:8] + bytes(8), 64)))
    return str(address)
