"""The network of the machines: TCP relays that know who connects to whom, and drop what a partition divides."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PIECE = 65_536
_SOCK_DIAG, _BY_FAMILY = 4, 20  # of Linux's netlink: a question about sockets
_TURN = 0.05  # seconds between two looks whether the way is open again


class Network:
    """Relays on a thread of their own. Nothing passes between a machine that is cut off and another one.

    Bytes that are not passed on are not lost either, as with TCP: they arrive when the partition is healed. A new
    connection over it is accepted by the relay and stays silent.
    """

    def __init__(self, roots: Callable[[str], Iterable[int]], machines: Iterable[str]) -> None:
        self._roots, self._machines = roots, tuple(machines)
        self._cut: frozenset[str] = frozenset()
        self._clients_pass = False
        self._looking = threading.Lock()
        self._owners: dict[int, str] = {}  # socket -> machine
        self._looked_at = 0.0
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    def relay(self, to: str, port: int) -> int:
        """A port that leads to this port of a machine."""
        return asyncio.run_coroutine_threadsafe(self._listen(to, port), self._loop).result(20)

    def cut_off(self, *machines: str, clients_pass: bool = False) -> None:
        """Divide these machines from all others; those who are no machine, the clients, may still reach them."""
        self._clients_pass = clients_pass
        self._cut = frozenset(machines)

    def heal(self) -> None:
        """Let everything pass again."""
        self._cut = frozenset()

    def close(self) -> None:
        """End all relays."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, to: str, port: int) -> int:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            try:
                await self._join(reader, writer, to, port)
            finally:
                writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0, backlog=200)
        self._servers.append(server)
        listening: int = server.sockets[0].getsockname()[1]
        return listening

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to: str, port: int) -> None:
        port_of = {name: writer.get_extra_info(name)[1] for name in ("peername", "sockname")}
        way = _Way(to, port_of["peername"], port_of["sockname"], time.monotonic())
        with suppress(OSError):
            await self._open(way)
            back_reader, back_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(self._pass_on(reader, back_writer, way), self._pass_on(back_reader, writer, way))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: _Way) -> None:
        try:
            with suppress(OSError):
                while piece := await reader.read(_PIECE):
                    await self._open(way)
                    writer.write(piece)
                    await writer.drain()
            await self._open(way)
        finally:
            writer.close()

    async def _open(self, way: _Way) -> None:
        """Wait until the two ends are not divided."""
        while self._cut and await self._divided(way):  # noqa: ASYNC110 - a test asks seldom
            await asyncio.sleep(_TURN)

    async def _divided(self, way: _Way) -> bool:
        if not way.is_known:  # asked only now, for the answer costs a look at all processes
            way.source, way.is_known = await asyncio.to_thread(self._owner, way), True
        if way.source is None:
            return way.to in self._cut and not self._clients_pass
        return way.source != way.to and (way.source in self._cut or way.to in self._cut)

    def _owner(self, way: _Way) -> str | None:
        """The machine whose process has made a connection; None for clients of the cluster."""
        inode = _inode(way.port, way.relay)
        with self._looking:
            if inode not in self._owners and self._looked_at < way.began:
                self._looked_at = time.monotonic()
                self._owners = {
                    held: machine
                    for machine in self._machines
                    for pid in family(self._roots(machine))
                    for held in _sockets(pid)
                }
            return self._owners.get(inode)


@dataclass
class _Way:
    """A connection: the machine that it leads to, the ports of its beginning, and whose it is."""

    to: str
    port: int
    relay: int
    began: float
    source: str | None = None
    is_known: bool = False


def _inode(source: int, to: int) -> int:
    """The socket of the system that is connected from one port of the loopback address to another; 0 if none is."""
    here = socket.inet_aton("127.0.0.1").ljust(16, b"\0")
    wanted = struct.pack("!HH16s16s", source, to, here, here) + struct.pack("=I8s", 0, b"\xff" * 8)
    request = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + wanted
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as asked:
        asked.send(struct.pack("=IHHII", 16 + len(request), _BY_FAMILY, 1, 0, 0) + request)
        answer = asked.recv(8192)
    found: int = struct.unpack_from("=I", answer, 84)[0] if struct.unpack_from("=H", answer, 4)[0] == _BY_FAMILY else 0
    return found


def _sockets(pid: int) -> set[int]:
    found = set()
    with suppress(OSError):
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                target = str(Path(descriptor.path).readlink())
                if target.startswith("socket:["):
                    found.add(int(target[8:-1]))
    return found


def family(roots: Iterable[int]) -> list[int]:
    """Processes and all that they have started and that still run below them, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry.name))
    found: list[int] = []
    waiting = list(roots)
    while waiting:
        pid = waiting.pop(0)
        if pid not in found:
            found.append(pid)
            waiting += children.get(pid, [])
    return found
