"""Event streams and long polls: a subscriber gets each change once, in order.

A hub has a channel for each vault and account that is followed in this process. A change hint wakes the channel; it
reads the new changes once, and sends the same bytes to all of its followers. A follower that is behind reads by itself
until it has caught up with the channel, then joins it.
"""

from __future__ import annotations

from strongroom.server.live.hub import Hub
from strongroom.server.live.stream import Stream, headers_only

__all__ = ["Hub", "Stream", "headers_only"]
