"""A real cluster, by docs/operating.md: whatever happens to it, nothing acknowledged is lost and no read goes back."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.cluster.load import Load
from tests.cluster.machines import DATABASE, Cluster, Machine, cluster, missing
from tests.faults.concurrent_clients import lost, stored
from tests.faults.proxy import Balancer
from tests.kit.asynchronous import async_test
from tests.kit.people.settled import settle_in
from tests.kit.samples import LONG, rounds
from tests.kit.servers.process import Server
from tests.kit.waiting import until_async

WRITERS, READERS, PROGRAMS = 6, 3, 2
PATIENCE = 240.0  # seconds until the cluster is whole again
# The longest time in which nothing is acknowledged: Patroni's ttl, its loop twice, and what a busy machine adds.
STALL = 90.0

pytestmark = [
    pytest.mark.alone,
    pytest.mark.soak,  # it takes minutes
    pytest.mark.skipif(LONG and missing() is not None, reason=str(missing()) if LONG else ""),
]


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """One cluster for all faults: each leaves it whole."""
    with cluster() as made:
        yield made


async def _new_leader(of: Cluster, old: Machine) -> None:
    await _until(lambda: of.leader(besides=old), "another primary")


async def _until(condition: Callable[[], object], what: str) -> object:
    """Wait for what is asked of other processes, while clients go on."""
    deadline = time.monotonic() + PATIENCE
    while not (found := await asyncio.to_thread(condition)):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        await asyncio.sleep(0.2)
    return found


async def _killed(of: Cluster, load: Load) -> None:
    """The machine of the primary loses its power."""
    old = of.primary()
    await asyncio.to_thread(old.power_off)
    await _new_leader(of, old)
    await _goes_on(load)
    of.start_machine(old)


async def _paused(of: Cluster, load: Load) -> None:
    """All processes of the primary's machine are paused, and go on when another one is the primary."""
    old = of.primary()
    old.signal(signal.SIGSTOP)
    try:
        await _new_leader(of, old)
        await _goes_on(load)
    finally:
        old.signal(signal.SIGCONT)


async def _cut_off(of: Cluster, load: Load) -> None:
    """Nobody reaches the primary, and it reaches nobody."""
    old = of.primary()
    of.network.cut_off(old.name)
    try:
        await _new_leader(of, old)
        await _goes_on(load)
    finally:
        of.network.heal()


async def _cut_off_but_for_clients(of: Cluster, load: Load) -> None:
    """The primary reaches neither etcd nor a replica, and the nodes of strongroom still reach it."""
    old = of.primary()
    of.network.cut_off(old.name, clients_pass=True)
    try:
        await _new_leader(of, old)
        await _goes_on(load)
    finally:
        of.network.heal()


async def _without_quorum(of: Cluster, load: Load) -> None:
    """Two of three members of etcd are killed; after a while they come back."""
    of.kill_etcd(0, 1)
    await asyncio.sleep(40)  # twice the ttl: whatever the primary does about it, it has done
    await _goes_on(load)
    of.restart_etcd(0, 1)


async def _switched_over(of: Cluster, load: Load) -> None:
    """A planned switchover."""
    old = of.primary()
    await asyncio.to_thread(of.switch_over)
    await _new_leader(of, old)
    await _goes_on(load)


async def _restarted_in_turn(of: Cluster, load: Load) -> None:
    """Each machine is shut down and started again, the next one when all are there."""
    for machine in of.machines.values():
        await asyncio.to_thread(machine.shut_down)
        await _goes_on(load)
        of.start_machine(machine)
        await _until(of.healthy, "a whole cluster")


async def _full_replica(of: Cluster, load: Load) -> None:
    """The disk of the replica that commits wait for is full."""
    replica = of.standby()
    assert replica is not None
    replica.fill_disk()
    try:
        await _until(lambda: of.standby() not in {None, replica}, "another replica to be waited for")
        await _goes_on(load)
    finally:
        replica.free_disk()


async def _goes_on(load: Load) -> None:
    """Writes are acknowledged."""
    begin = len(load.heard)
    await until_async(lambda: load.check() or len(load.heard) > begin + 50, "writes to go on", PATIENCE)  # type: ignore[func-returns-value]


FAULTS: dict[str, Callable[[Cluster, Load], Awaitable[None]]] = {
    "switchover": _switched_over,
    "killed": _killed,
    "paused": _paused,
    "cut off": _cut_off,
    "cut off, clients pass": _cut_off_but_for_clients,
    "etcd without quorum": _without_quorum,
    "restarted in turn": _restarted_in_turn,
    "full disk of the replica": _full_replica,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("turn", range(rounds(1, 2)))
def test_nothing_acknowledged_is_lost_and_no_read_goes_back(
    running: Cluster, fault: str, turn: int, tmp_path: Path
) -> None:
    """One node of strongroom reaches the primary through HAProxy, the other by an address with all three machines."""
    del turn
    _meet(running, fault, tmp_path)


@async_test
async def _meet(of: Cluster, fault: str, home: Path) -> None:
    await _until(of.healthy, "a whole cluster")
    hosts = ",".join(f"127.0.0.1:{machine.way}" for machine in of.machines.values())
    urls = [f"postgresql://{DATABASE}:password@{where}/{DATABASE}" for where in (f"127.0.0.1:{of.port}", hosts)]
    nodes = [
        Server(home / f"node{number}", JWT_ACCESS_EXPIRY="1d", DATABASE_URL=url, RATE_LIMIT="0")
        for number, url in enumerate(urls)
    ]
    try:
        of.sql(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        of.sql(f"CREATE DATABASE {DATABASE} OWNER {DATABASE}")
        for node in nodes:
            await asyncio.to_thread(node.start)
        _, token, vault = settle_in(nodes[0])
        async with Balancer([node.port for node in nodes]) as proxy, AsyncExitStack() as undo:
            await until_async(lambda: len(proxy.ready) == 2, "both nodes to be ready")
            url = f"http://127.0.0.1:{proxy.port}"
            load = Load(url, token, vault)
            load.start(WRITERS, READERS, PROGRAMS)
            undo.push_async_callback(load.abandon)
            await until_async(lambda: load.check() or len(load.heard) > 200, "some writes")  # type: ignore[func-returns-value]
            began = time.monotonic()
            await FAULTS[fault](of, load)
            await _until(of.healthy, "a whole cluster")
            await until_async(lambda: len(proxy.ready) == 2, "both nodes to be ready again", PATIENCE)
            await _goes_on(load)
            await load.stop()
            missed = lost(load.acknowledged, await stored(url, token, vault))
            stall = load.longest_stall(began)
            print(  # noqa: T201
                f"\n{fault}: acknowledged {len(load.heard)}, lost {len(missed)}, longest stall {stall:.1f} s, "
                f"reads {load.reads}, wrong {len(load.wrong)}, refused {dict(load.refused)}"
            )
            assert missed == {}
            assert load.wrong == []
            faults = [line for node in nodes for line in node.log().splitlines() if "Error" in line]
            assert load.refused[500] == 0, faults
            assert stall < STALL
    finally:
        for node in nodes:
            node.abandon()
