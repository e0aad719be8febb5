"""The client's address: from the connection, or from X-Forwarded-For if the peer is a trusted proxy."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Trusted = tuple[Network | str, ...]  # TRUSTED_PROXIES
_HOPS: Final = 32  # of X-Forwarded-For that are read, from the right; no chain of proxies is longer


def client_address(peer: str | None, header: str, trusted: Trusted) -> str:
    """The client's address, as far as it can be trusted.

    It is the rightmost hop of X-Forwarded-For that is not a trusted proxy: a client can forge what is left of it.
    """
    if peer is None:
        return "unknown"
    if not trusted:
        return peer
    address = peer
    for part in reversed(header.rsplit(",", _HOPS)[-_HOPS:]):
        if not is_one_of(address, trusted):
            break
        if hop := part.strip():
            address = _without_port(hop)
    return address


def _without_port(hop: str) -> str:
    """An address without its port, in any notation that proxies use."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def is_one_of(address: str, networks: Trusted) -> bool:
    """Whether an address is in one of these networks."""
    if address in networks:  # "unix" is the peer of a Unix socket
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


@lru_cache(maxsize=4096)
def counted_address(host: str) -> str:
    """The address that limits count by: an IPv6 address counts as its /64 network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address.packed[:8] + bytes(8), 64)))
    return str(address)
