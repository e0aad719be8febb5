"""The figures: closed by default, right, cheap, and about nobody."""

from __future__ import annotations

import os
import re
import signal
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from strongroom.server.backup_schedule import backup_name
from strongroom.server.monitoring.metrics import FAMILIES, Metrics
from strongroom.server.monitoring.shared_metrics import MetricsSlot, SharedMetrics
from tests.kit.asynchronous import async_test
from tests.kit.network.event_stream import following
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.metrics import figures
from tests.kit.servers.process import Server
from tests.kit.waiting import until

TOKEN = "a token of those who watch".replace(" ", "-")
SHOWN = {"authorization": f"Bearer {TOKEN}"}


def routed(found: dict[str, float], name: str, route: str) -> dict[str, float]:
    """The samples of one route, by their last label."""
    return {
        key.rpartition("=")[2].strip('"}'): value
        for key, value in found.items()
        if key.startswith(name) and f'route="{route}"' in key
    }


@async_test
async def test_without_a_token_there_is_nothing(open_server: OpenServer) -> None:
    """Not even a hint that there could be."""
    async with open_server() as server:
        nothing, nowhere = await server.http.get("/metrics", headers=SHOWN), await server.http.get("/nowhere")
        assert nothing.status_code == nowhere.status_code == 404
        assert nothing.json()["error"]["message"] == nowhere.json()["error"]["message"]
    async with open_server(metrics_token=TOKEN, metrics_port=0) as server:
        assert (await server.http.get("/metrics", headers=SHOWN)).status_code == 404


@async_test
async def test_the_token_opens_and_nothing_else_does(open_server: OpenServer) -> None:
    """Wrong ones are refused, and count as guesses do."""
    async with open_server(metrics_token=TOKEN) as server:
        person = await server.person()
        for bad in (None, "", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "é"):
            headers = {} if bad is None else {b"authorization": bad.encode()}
            answer = await server.http.get("/metrics", headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized"), bad
        assert (await person("GET", "/metrics")).status_code == 401
        assert (await server.http.get("/metrics", headers={"authorization": f"bearer {TOKEN}"})).status_code == 200
        answer = await server.http.get("/metrics", headers=SHOWN)
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        for _ in range(100):
            last = await server.http.get("/metrics", headers={"authorization": "Bearer wrong"})
        assert last.status_code == 429
        assert (await server.http.get("/metrics", headers=SHOWN)).status_code == 200


@async_test
async def test_what_happens_is_counted(open_server: OpenServer, where: str) -> None:
    """By route and status, never by path; logins by their outcome; commits, the queues, the database."""
    async with open_server(metrics_token=TOKEN) as server:
        person = await server.person()
        vault = await person.vault()
        for _ in range(3):
            await person.document(vault)
        await person("GET", f"/vaults/{vault['uid']}/documents/{vault['uid']}")
        await server.login(person.email)
        for _ in range(11):
            await server.login(person.email, "wrong horse")
        await server.http.get("/nowhere/at/all")
        found = figures((await server.http.get("/metrics", headers=SHOWN)).text)

    create = "/vaults/{vaultUid}/documents"
    assert routed(found, "strongroom_requests_total", create) == {"201": 3}
    assert routed(found, "strongroom_requests_total", create + "/{uid}") == {"404": 1}
    assert routed(found, "strongroom_requests_total", "-") == {"404": 1}
    assert routed(found, "strongroom_request_seconds_bucket", create)["+Inf"] == 3
    assert found['strongroom_request_seconds_count{method="POST",route="' + create + '"}'] == 3
    assert found['strongroom_request_seconds_sum{method="POST",route="' + create + '"}'] > 0
    outcomes = {"ok": 1, "failed": 10, "throttled": 1, "disabled": 0}
    assert {key: found[f'strongroom_logins_total{{result="{key}"}}'] for key in outcomes} == outcomes
    assert found['strongroom_refusals_total{code="invalid_credentials"}'] == 10
    assert found['strongroom_refusals_total{code="rate_limited"}'] == 1
    assert found['strongroom_commit_writes_bucket{le="1"}'] >= 5
    assert found["strongroom_commit_seconds_count"] == found['strongroom_commit_writes_bucket{le="+Inf"}'] >= 5
    assert found["strongroom_commit_seconds_sum"] > 0
    assert found["strongroom_ready"] == found["strongroom_processes"] == 1
    assert found["strongroom_database_bytes"] > 10_000
    assert found["strongroom_event_streams"] == 0
    assert ("strongroom_disk_free_bytes" in found) == ("://" not in where)
    assert "strongroom_backup_age_seconds" not in found
    assert {f'strongroom_queue_depth{{queue="{name}"}}' for name in ("writes", "passwords", "lists")} <= found.keys()


@async_test
async def test_writes_that_arrive_together_share_a_commit(open_server: OpenServer) -> None:
    """The size of a shared commit is seen, and every write is counted once."""
    import asyncio

    async with open_server(metrics_token=TOKEN) as server:
        person = await server.person()
        await asyncio.gather(*(person.vault() for _ in range(40)))
        found = figures((await server.http.get("/metrics", headers=SHOWN)).text)
    shared = found['strongroom_commit_writes_bucket{le="+Inf"}'] - found['strongroom_commit_writes_bucket{le="1"}']
    assert shared > 0
    assert found["strongroom_commit_writes_sum"] >= 41


@async_test
async def test_open_streams_are_counted_and_closed_ones_are_not(open_server: OpenServer) -> None:
    """Of one vault and of a whole account; a long poll is no stream; one that the server ended is gone too."""
    async with open_server(metrics_token=TOKEN) as server:
        ann, bob = await server.person(), await server.person()
        vault = await ann.vault()

        async def count() -> float:
            return figures((await server.http.get("/metrics", headers=SHOWN)).text)["strongroom_event_streams"]

        assert await count() == 0
        async with following(server, ann, f"/vaults/{vault['uid']}/events"), following(server, bob, "/events") as other:
            assert await count() == 2
            async with following(server, ann, "/events"), following(server, ann, f"/vaults/{vault['uid']}/events"):
                assert await count() == 4
            assert await count() == 2
            assert (await bob("POST", "/auth/logout")).status_code == 200
            assert await other.reason() == "session_revoked"
            assert await count() == 1
        assert await count() == 0


@async_test
async def test_nothing_names_a_person(open_server: OpenServer) -> None:
    """No email, id, address, name, key or token, whatever the requests held."""
    async with open_server(metrics_token=TOKEN, address="203.0.113.77") as server:
        person = await server.person("canary-person@example.com")
        vault = await person.vault(name="canary-vault")
        key = await person.key(name="canary-key")
        await server.login("canary-stranger@example.com", "canary-password")
        await person("GET", "/vault/by-name/canary-vault")
        await person("GET", f"/vault/{vault['uid']}", bearer=key)
        await person("CANARY", "/vault")
        await server.http.get("/canary-path", headers={"user-agent": "canary-agent"})
        text = (await server.http.get("/metrics", headers=SHOWN)).text
    for secret in ("canary", "CANARY", person.id, vault["uid"], person.access, key, "203.0.113.77", TOKEN):
        assert secret not in text
    assert "@" not in text


@async_test
async def test_the_age_of_a_backup_is_told_once_there_is_one(open_server: OpenServer, tmp_path: Path) -> None:
    """By the newest in the folder where the server makes them."""
    async with open_server(metrics_token=TOKEN) as server:
        none = figures((await server.http.get("/metrics", headers=SHOWN)).text)
    assert "strongroom_backup_age_seconds" not in none
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / backup_name(int((time.time() - 3_600) * 1000))).write_bytes(b"strongroom archive 1\n")
    async with open_server(metrics_token=TOKEN, backup_dir=str(folder)) as server:
        found = figures((await server.http.get("/metrics", headers=SHOWN)).text)
    assert 3_600 <= found["strongroom_backup_age_seconds"] < 3_660


def test_counting_costs_next_to_nothing() -> None:
    """Not many times what it takes to add one to a number in a dict: the best of many short runs of both."""
    metrics, route = Metrics(), "/vaults/{vaultUid}/documents"
    counts: dict[tuple[str, str], int] = {}

    def least() -> None:
        counts["GET", route] = counts.get(("GET", route), 0) + 1

    def best(work: Callable[[], None]) -> float:
        return min(timeit.repeat(work, number=500, repeat=300))

    assert best(lambda: metrics.request("GET", route, 200, 0.0007)) < 4 * best(least)


def test_a_process_that_takes_anothers_place_counts_on() -> None:
    """What both counted is the sum; gauges are only those of the living. A torn writing is not believed."""
    shared = SharedMetrics(2)
    assert MetricsSlot(shared, 0).before() == {}
    first = {"strongroom_requests_total": {"{a}": 5.0}, "strongroom_connections": {"": 9.0}}
    MetricsSlot(shared, 0).write(first)
    assert MetricsSlot(shared, 1).others() == [first]
    metrics = Metrics()
    metrics.continue_from(MetricsSlot(shared, 0).before())
    assert metrics._before == {"strongroom_requests_total": {"{a}": 5.0}}
    shared._memory[10] ^= 1
    assert MetricsSlot(shared, 1).others() == [first]
    assert SharedMetrics(1).read(0) == {}
    assert len({name for name, _, _ in FAMILIES}) == len(FAMILIES)


@pytest.fixture
def many(tmp_path: Path, where: str) -> Iterator[Server]:
    """A server of three processes, with a port for its figures."""
    place = {"DATABASE_URL": where} if "://" in where else {"DB_PATH": where, "DATABASE_URL": ""}
    server = Server(tmp_path / "home", WORKERS="3", METRICS_PORT="0", **place)
    try:
        yield server.start()
    finally:
        server.abandon()


def test_many_processes_tell_one_sum_that_never_falls(many: Server) -> None:
    """Whichever process is asked, and also after one of them was killed and replaced."""
    said = (many.home / "stdout").read_text()
    match = re.search(r"figures (http://\S+)", said)
    assert match is not None, said
    url = match[1]

    def asked() -> dict[str, float]:
        answer = httpx2.get(url, trust_env=False)
        assert answer.status_code == 200
        return figures(answer.text)

    def health() -> float:
        return routed(asked(), "strongroom_requests_total", "/health").get("200", 0)

    assert httpx2.get(f"http://127.0.0.1:{many.port}/metrics", trust_env=False).status_code == 404
    for path, status in (("/health", 200), ("/ready", 200), ("/vault", 404), ("/docs", 404)):
        assert httpx2.get(url.replace("/metrics", path), trust_env=False).status_code == status
    for _ in range(60):
        assert httpx2.get(f"http://127.0.0.1:{many.port}/health", trust_env=False).status_code == 200
    # Each process knows its own figures at once and tells them once a second: all must know, not only the one asked.
    told = lambda: all(health() == 61 for _ in range(20))  # noqa: E731
    until(told, "all sixty requests, and the one on the port of the figures, in the sum of each process")
    assert asked()["strongroom_processes"] == 3

    children = Path(f"/proc/{many.process.pid}/task/{many.process.pid}/children").read_text().split()
    assert len(children) == 3
    until(lambda: os.times().elapsed and _age(int(children[0])) > 6, "a process old enough to be replaced", 30)
    os.kill(int(children[0]), signal.SIGKILL)
    until(lambda: "ended by itself" in many.log(), "the end of the process to be noticed")

    def replaced() -> bool:
        found = asked()
        assert routed(found, "strongroom_requests_total", "/health").get("200", 0) == 61
        return (
            found["strongroom_processes"] == 3
            and str(children[0])
            not in Path(f"/proc/{many.process.pid}/task/{many.process.pid}/children").read_text().split()
        )

    until(replaced, "another in its place")


def _age(pid: int) -> float:
    """How many seconds a process has lived."""
    began = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return float(Path("/proc/uptime").read_text().split()[0]) - began / os.sysconf("SC_CLK_TCK")
