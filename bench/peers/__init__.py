"""Every peer, by the name that `--targets` takes. The first is what the others are compared with."""

from __future__ import annotations

from bench.peers.base import NotHere, Peer
from bench.peers.floor import Floor
from bench.peers.hono import HonoTwin
from bench.peers.kinto import Kinto
from bench.peers.pocketbase import PocketBase
from bench.peers.strongroom import OnPostgres, OnPostgres2, OnSqlite, OnSqlite2

__all__ = ["PEERS", "NotHere", "Peer"]

_KINDS: tuple[type[Peer], ...] = (OnSqlite, OnPostgres, OnSqlite2, OnPostgres2, Floor, HonoTwin, PocketBase, Kinto)
PEERS: dict[str, type[Peer]] = {kind.name: kind for kind in _KINDS}
