"""Live events: who follows a vault or an account is told of each change, once, in order.

A hub has a channel for each vault and account that is followed here. A hint wakes the channel; it reads what is new
once, and hands the same bytes to all of its followers. A follower that is behind reads by itself until it has caught
up with the channel, then joins it.
"""

from __future__ import annotations

from strongroom.server.live.hub import Hub
from strongroom.server.live.stream import Stream, headers_only

__all__ = ["Hub", "Stream", "headers_only"]
