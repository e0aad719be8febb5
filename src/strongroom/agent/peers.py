"""Which user is at the other end of a local socket."""

from __future__ import annotations

import _socket as socket
import sys

from strongroom.agent.protocol import Failed

_LOCAL, _PEER_CREDENTIALS = 0, 1  # SOL_LOCAL and LOCAL_PEERCRED of macOS and the BSDs


def peer_user(connected: socket.socket) -> int:
    """The id of the user at the other end, as the kernel says. Where it cannot say, nobody is let in."""
    if hasattr(socket, "SO_PEERCRED"):
        told = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)  # pid, uid and gid
        return int.from_bytes(told[4:8], sys.byteorder)
    try:
        told = connected.getsockopt(_LOCAL, _PEER_CREDENTIALS, 76)  # a version, the uid, the groups
    except OSError:
        told = b""
    if len(told) < 8:
        raise Failed("no_agent", "This system does not say who is at the other end of a socket.")
    return int.from_bytes(told[4:8], sys.byteorder)
