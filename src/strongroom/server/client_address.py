"""Where a request comes from. Nobody's X-Forwarded-For counts, but that of a proxy which the operator names."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Trusted = tuple[Network | str, ...]  # proxies that the operator names
_HOPS: Final = 32  # of a header that are looked at, from the right; no chain of proxies is longer


def client_address(peer: str | None, header: str, trusted: Trusted) -> str:
    """The address of the client behind a connection, as far as it can be trusted.

    It is the last hop of X-Forwarded-For that is not a proxy of ours: what stands left of it, anyone may have written.
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
            address = _bare(hop)
    return address


def _bare(hop: str) -> str:
    """An address without its port, in any of the ways in which proxies write them."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def is_one_of(address: str, networks: Trusted) -> bool:
    """Whether an address is in one of these networks."""
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
