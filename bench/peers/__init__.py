"""Every peer, by the name that `--targets` takes. The first is what the others are compared with."""

from __future__ import annotations

from bench.peers.base import NotHere, Peer
from bench.peers.floor import Floor
from bench.peers.hono import HonoTwin
from bench.peers.kinto import Kinto
from bench.peers.pocketbase import PocketBase
from bench.peers.strongroom import OnPostgres, OnSqlite

__all__ = ["PEERS", "NotHere", "Peer"]

PEERS: dict[str, type[Peer]] = {kind.name: kind for kind in (OnSqlite, OnPostgres, Floor, HonoTwin, PocketBase, Kinto)}
