"""Requests about the server itself."""

from __future__ import annotations

from strongroom.client.net import decoders
from strongroom.client.net.call import Call
from strongroom.wire import responses


def health() -> Call[responses.Health]:
    """Get the epoch of the server's database."""
    return Call(method="GET", path="/health", decode=decoders.health, authenticated=False)
