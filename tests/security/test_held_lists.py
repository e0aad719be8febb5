"""Lists and exports that their clients do not read: they keep neither the others waiting nor what was deleted."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import strongroom
from strongroom.actions import admin
from strongroom.errors import Refusal
from strongroom.server import snapshot_slots, snapshots
from strongroom.store.sqlite import writer as sqlite_writer
from tests.kit.asynchronous import async_test
from tests.kit.network.slow_reader import SlowReader
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import context_of, database_of, is_started, unfinished
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until

LARGE = 1_200_000  # bytes of a document: eight of them are more than a connection takes in by itself
JSON = {"content-type": "application/json"}


class Running:
    """A server on a thread, over real sockets."""

    def __init__(self, server: strongroom.Server) -> None:
        self.server = server
        self.context = context_of(server)
        self.url = server.url or ""
        self.opened: list[socket.socket | httpx2.Client] = []

    def person(self, documents: int = 0, data: bytes = b"A" * LARGE) -> tuple[httpx2.Client, str]:
        """Somebody with a vault of large documents: a client, and the path of the list."""
        http = httpx2.Client(base_url=self.url, timeout=30, trust_env=False)
        self.opened.append(http)
        body = {"email": f"{uuid.uuid4()}@example.com", "password": "correct horse"}
        token = http.post("/auth/email/register", json=body).json()["accessToken"]
        http.headers["authorization"] = f"Bearer {token}"
        path = f"/vaults/{http.post('/vault', json={'name': 'v'}).json()['uid']}/documents"
        document = b'{"collection":"c","data":"%s"}' % data
        for _ in range(documents):
            assert http.post(path, content=document, headers=JSON).status_code == 201
        return http, path

    def hold(self, http: httpx2.Client, path: str) -> socket.socket:
        """Ask for something, and read nothing of the answer but its first bytes."""
        wire = socket.socket()
        self.opened.append(wire)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        wire.settimeout(20)
        wire.connect(("127.0.0.1", int(self.url.rpartition(":")[2])))
        wire.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {http.headers['authorization']}\r\n\r\n".encode()
        )
        return wire


Serve = Callable[..., Any]


@pytest.fixture
def serve(where: str) -> Serve:
    """Runs a server on a thread."""

    @contextmanager
    def run(**settings: Any) -> Iterator[Running]:
        place: dict[str, Any] = {"database_url" if "://" in where else "db_path": where}
        server = strongroom.create_server(jwt_secret=SECRET, **place, **settings)
        thread = threading.Thread(target=server.listen, args=(0,))
        thread.start()
        with ExitStack() as stack:
            try:
                until(lambda: is_started(server), "the server's start")
                running = Running(server)
                stack.callback(lambda: [one.close() for one in running.opened])
                yield running
            finally:
                stack.close()
                server.close()
                thread.join(40)
                assert not thread.is_alive()

    return run


@pytest.fixture
def on_file(where: str) -> Path:
    """The database file."""
    return Path(where)


def ask(http: httpx2.Client, path: str) -> int:
    """The status of a whole answer."""
    with http.stream("GET", path) as answer:
        for _ in answer.iter_raw():
            pass
        return answer.status_code


def test_lists_that_nobody_reads_keep_nobody_waiting(serve: Serve) -> None:
    """Two accounts hold many lists unread, a third holds some of its own: all its other lists are answered."""
    with serve() as running:
        hostile = [running.person(8) for _ in range(2)]
        third, path = running.person(8)
        for http, listed in [*hostile * 16, *[(third, path)] * 4]:
            assert running.hold(http, listed).recv(15) == b"HTTP/1.1 200 OK"
        with ThreadPoolExecutor(8) as threads:
            statuses = list(threads.map(lambda _: ask(third, path), range(19)))
        assert statuses == [200] * 19
        assert ask(third, "/vault") == 200


def test_one_account_holds_few_places(serve: Serve) -> None:
    """Sixteen unread lists of one account leave places that others take without waiting."""
    with serve() as running:
        hostile = running.person(8)
        for _ in range(16):
            assert running.hold(*hostile).recv(15) == b"HTTP/1.1 200 OK"
            assert running.context.lists.held <= snapshot_slots.SLOTS_PER_ACCOUNT


def test_many_accounts_that_hold_all_places_give_way(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attacker with more accounts than there are places does not keep the others from theirs."""
    monkeypatch.setattr("strongroom.server.context.MAX_LISTS", 3)
    with serve(db_pool=6) as running:
        hostile = [running.person(8) for _ in range(5)]
        third, path = running.person(1)
        stop = threading.Event()

        def again_and_again(one: tuple[httpx2.Client, str]) -> None:
            while not stop.is_set():
                running.hold(*one).recv(15)

        threads = [threading.Thread(target=again_and_again, args=(one,)) for one in hostile]
        for thread in threads:
            thread.start()
        try:
            assert [ask(third, path) for _ in range(10)] == [200] * 10
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_a_held_list_keeps_nothing_of_a_deleted_account(serve: Serve, on_file: Path) -> None:
    """While another account holds lists unread, what a deleted one kept is in neither file within the bound."""
    marker = b"markerofthedeletedaccount" * 40
    log = on_file.with_name(on_file.name + "-wal")
    with serve() as running:
        holder, listed = running.person(8)
        gone, _ = running.person(40, data=marker)
        for _ in range(4):
            assert running.hold(holder, listed).recv(15) == b"HTTP/1.1 200 OK"
        assert marker in log.read_bytes() + on_file.read_bytes()
        deleted = gone.request("DELETE", "/auth/me", json={"password": "correct horse"})
        assert deleted.status_code == 200
        until(
            lambda: marker[:25] not in log.read_bytes() + on_file.read_bytes(),
            "the ciphertext to be gone",
            snapshots.LIST_SECONDS + 20,
        )


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_the_log_does_not_grow_with_lists_that_are_held(
    serve: Serve, on_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody always holds a list, writers write: the log stays within its bound, counted in pages."""
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", 100)
    monkeypatch.setattr(sqlite_writer, "MAX_LOG_PAGES", 400)
    log = on_file.with_name(on_file.name + "-wal")
    with serve() as running:
        holder, listed = running.person(8)
        writer, path = running.person()
        document = b'{"collection":"c","data":"%s"}' % (b"A" * 100_000)
        largest = 0
        for n in range(150):
            if n % 10 == 0:
                assert running.hold(holder, listed).recv(15) == b"HTTP/1.1 200 OK"
            assert writer.post(path, content=document, headers=JSON).status_code == 201
            largest = max(largest, log.stat().st_size // 4_096)
        assert largest < 400 + 2 * 301, "the bound, and what a commit may add before and while the log is emptied"


def test_an_export_that_is_read_too_slowly_is_cut(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lets go of the database, and the client sees that it has not got all of it; it is no fault of the server's."""
    faults: list[str] = []
    monkeypatch.setattr(snapshots, "EXPORT_GRACE", 0.5)
    monkeypatch.setattr(snapshots, "EXPORT_RATE", 8 << 20)  # what the buffers in between take in counts as read
    with serve() as running:
        monkeypatch.setattr(running.context.log, "fault", lambda error, _id: faults.append(type(error).__name__))
        http, _ = running.person(8)
        wire = running.hold(http, "/auth/export")
        assert wire.recv(15) == b"HTTP/1.1 200 OK"
        assert running.context.exports.held == 1
        until(lambda: running.context.exports.held == 0, "the export to be cut")
        got = bytearray()
        with pytest.raises(ConnectionResetError):  # noqa: PT012
            while more := wire.recv(1 << 20):
                got += more
            raise ConnectionResetError
        assert b'"kind":"trailer"' not in got
        assert not got.endswith(b"0\r\n\r\n")
        monkeypatch.setattr(snapshots, "EXPORT_GRACE", 60.0)
        whole = http.get("/auth/export")
        assert b'"kind":"trailer"' in whole.content
        assert faults == []
        until(lambda: not unfinished(running.server), "nothing that the end of the server would wait for")


def test_a_slow_export_gives_way_to_one_that_waits(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """While others wait, a faster rate is asked for than otherwise."""
    monkeypatch.setattr("strongroom.server.context.MAX_EXPORTS", 1)
    monkeypatch.setattr(snapshots, "EXPORT_GRACE", 1.0)
    monkeypatch.setattr(snapshots, "EXPORT_RATE", 1)
    monkeypatch.setattr(snapshots, "EXPORT_RATE_BUSY", 1 << 30)
    with serve(db_pool=5) as running:
        slow, _ = running.person(8)
        other, _ = running.person(1)
        assert running.hold(slow, "/auth/export").recv(15) == b"HTTP/1.1 200 OK"
        assert ask(other, "/auth/export") == 200


def documents_of(raw: bytes) -> dict[str, Any]:
    """A list as it was answered."""
    found: dict[str, Any] = json.loads(raw)
    return found


@asynccontextmanager
async def slowly(server: InProcessServer, person: Person, path: str, query: str = "") -> AsyncIterator[SlowReader]:
    """A list whose client took its beginning, and then nothing for longer than a snapshot lives."""
    slow = SlowReader(server.app, person.access, path, query)
    await slow.take(2)
    async with asyncio.timeout(20):
        while context_of(server.app).lists.held:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    db = database_of(server.app)
    pool = getattr(db, "_pool", None)
    assert pool is None or pool._out == 0, "a list that waits for its client holds a connection"
    assert not getattr(db, "_snapshots", {})
    yield slow
    if not slow.task.done():
        await slow.go_away()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots that live shortly, and lists of small chunks."""
    monkeypatch.setattr(snapshots.Snapshot, "seconds", 0.05)
    for module in ("snapshots", "routes.transfer"):
        monkeypatch.setattr(f"strongroom.server.{module}.CHUNK", 4_000)
    monkeypatch.setattr("strongroom.store.queries.documents.SHORT_LIST_ROWS", 0)
    monkeypatch.setattr("strongroom.store.sqlite.transaction.PAGE_BYTES", 2_000)
    monkeypatch.setattr("strongroom.store.postgres.transaction.PAGE_BYTES", 2_000)
    monkeypatch.setattr("strongroom.store.postgres.transaction._statements", {})


async def filled(server: InProcessServer, count: int = 12) -> tuple[Person, str, list[dict[str, Any]]]:
    """Somebody with documents: the path of the list, and the documents."""
    person = await server.person()
    vault = await person.vault()
    made = [await person.document(vault, data="A" * 1_000) for _ in range(count)]
    return person, f"/vaults/{vault['uid']}/documents", made


@pytest.mark.usefixtures("short")
@async_test
async def test_a_continued_list_misses_nothing_and_keeps_its_order(open_server: OpenServer) -> None:
    """What changes while it is continued comes later in it, in its new version; a list with since tells deletions."""
    async with open_server() as server:
        person, path, made = await filled(server)
        async with slowly(server, person, path, "since=0") as slow:
            changed = [
                (await person("PUT", f"{path}/{made[n]['uid']}", {"data": "BBBB", "version": 1})).json()
                for n in (0, 10)
            ]
            gone = (await person("DELETE", f"{path}/{made[1]['uid']}", {"version": 1})).json()
            new = (await person("POST", path, {"collection": "c", "data": "CCCC"})).json()
            found = documents_of(await slow.rest())
        moments = [one["updatedAt"] for one in found["documents"]]
        assert moments == sorted(set(moments))
        assert moments[-1] == found["next"]
        assert not found["hasMore"]
        assert [one["uid"] for one in found["documents"]][-4:] == [
            *(one["uid"] for one in changed),
            gone["uid"],
            new["uid"],
        ]
        latest = {one["uid"]: one for one in found["documents"]}
        truth = (await person("GET", f"{path}?since=0")).json()["documents"]
        assert sorted(latest.values(), key=lambda one: one["updatedAt"]) == truth


@pytest.mark.usefixtures("short")
@async_test
async def test_the_cursor_of_a_continued_list_of_live_documents_hides_no_deletion(open_server: OpenServer) -> None:
    """It ends before the first deletion, and says that there is more; what follows its last row tells all."""
    async with open_server() as server:
        person, path, made = await filled(server)
        async with slowly(server, person, path) as slow:
            await person("PUT", f"{path}/{made[10]['uid']}", {"data": "BBBB", "version": 1})
            await person("DELETE", f"{path}/{made[0]['uid']}", {"version": 1})
            await person("PUT", f"{path}/{made[11]['uid']}", {"data": "BBBB", "version": 1})
            found = documents_of(await slow.rest())
        assert found["hasMore"]
        assert found["documents"][-1]["updatedAt"] == found["next"]
        assert all(one["deletedAt"] is None for one in found["documents"])
        device = {one["uid"]: one for one in found["documents"]}
        assert made[0]["uid"] in device
        rest = (await person("GET", f"{path}?since={found['next']}")).json()["documents"]
        device |= {one["uid"]: one for one in rest}
        truth = (await person("GET", f"{path}?since=0")).json()["documents"]
        assert sorted(device.values(), key=lambda one: one["updatedAt"]) == truth


@pytest.mark.parametrize("limit", [3, 7, 11, 12, 13])
@pytest.mark.usefixtures("short")
@async_test
async def test_a_limit_counts_over_all_of_a_continued_list(open_server: OpenServer, limit: int) -> None:
    """However often it is continued, it has no more than was asked for, and tells whether there is more."""
    async with open_server() as server:
        person, path, made = await filled(server)
        for query in ("", "&since=0"):
            slow = SlowReader(server.app, person.access, path, f"limit={limit}{query}")
            raw = asyncio.ensure_future(dawdle(slow))
            found = documents_of(await raw)
            assert [one["uid"] for one in found["documents"]] == [one["uid"] for one in made[:limit]]
            assert found["hasMore"] is (limit < 12)
            assert found["next"] == found["documents"][-1]["updatedAt"]


async def dawdle(slow: SlowReader) -> bytes:
    """Read all, and let every snapshot end in between."""
    while not slow.task.done():
        slow._turns.release()
        await asyncio.sleep(0.06)
    return bytes(slow.read)


@pytest.mark.usefixtures("short")
@async_test
async def test_a_continued_list_of_vaults_has_them_all(open_server: OpenServer) -> None:
    """Beyond the last uid, in the order of the uids."""
    async with open_server() as server:
        person = await server.person()
        for _ in range(12):
            await person.vault(data="A" * 1_000, salt="")
        whole = (await person("GET", "/vault")).json()
        async with slowly(server, person, "/vault") as slow:
            assert documents_of(await slow.rest()) == whole


@pytest.mark.parametrize("ending", ["logout", "disabled", "deleted", "vault", "vault again", "key", "expired key"])
@pytest.mark.usefixtures("short")
@async_test
async def test_a_list_is_not_continued_for_one_who_may_not_read_any_more(open_server: OpenServer, ending: str) -> None:
    """The session, the account, the vault or the key is gone: the list is cut, and never looks complete."""
    async with open_server() as server:
        person, path, _ = await filled(server)
        vault = path.split("/")[2]
        if ending.endswith("key"):
            expires = {"expiresAt": server.clock.now + 1_000} if ending == "expired key" else {}
            made = (await person("POST", "/auth/api-keys", {"name": "k", **expires})).json()
            session, person.access = person.access, made["key"]
        async with slowly(server, person, path) as slow:
            match ending:
                case "logout":
                    assert (await person("POST", "/auth/logout", {})).status_code == 200
                case "disabled":
                    await database_of(server.app).write(admin.disable, person.id)
                case "deleted":
                    done = await person("DELETE", "/auth/me", {"password": "correct horse"})
                    assert done.status_code == 200
                case "key":
                    done = await person("DELETE", f"/auth/api-keys/{made['uid']}", bearer=session)
                    assert done.status_code == 200
                case "expired key":
                    server.clock.pass_(1_000)
                case _:
                    assert (await person("DELETE", f"/vault/{vault}")).status_code == 200
                    if ending == "vault again":
                        await person.vault(uid=vault)
            with pytest.raises(Refusal):
                await slow.rest()
            assert b"hasMore" not in slow.read


@pytest.mark.usefixtures("short")
@async_test
async def test_an_access_token_may_expire_while_a_list_is_read(open_server: OpenServer) -> None:
    """Its session is open: a list that it began is continued."""
    async with open_server(jwt_access_expiry="60s") as server:
        person, path, made = await filled(server)
        async with slowly(server, person, path) as slow:
            server.clock.pass_(61_000)
            assert len(documents_of(await slow.rest())["documents"]) == len(made)


@pytest.mark.parametrize("ending", ["logout", "disabled"])
@pytest.mark.usefixtures("short")
@async_test
async def test_an_export_ends_with_the_right_to_it(
    open_server: OpenServer, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends or the account is disabled in the middle: the file is cut before its trailer."""
    monkeypatch.setattr(snapshots.ExportSnapshot, "seconds", 0.0)
    async with open_server() as server:
        person, _, _ = await filled(server, 30)
        slow = SlowReader(server.app, person.access)
        await slow.take(2)
        if ending == "logout":
            assert (await person("POST", "/auth/logout", {})).status_code == 200
        else:
            await database_of(server.app).write(admin.disable, person.id)
        with pytest.raises(Refusal):
            await slow.rest()
        assert b'"trailer"' not in slow.read
        assert context_of(server.app).exports.held == 0


@pytest.mark.usefixtures("short")
@async_test
async def test_a_snapshot_that_ends_as_its_client_takes_again_leaves_its_place(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list goes on in a new snapshot, for which it needs the one place of its account."""
    real = snapshots.Snapshot.resume

    async def resume(snapshot: snapshots.Snapshot) -> None:
        asyncio.get_running_loop().call_soon(snapshot.release)
        await real(snapshot)

    monkeypatch.setattr(snapshots.Snapshot, "resume", resume)
    async with open_server(db_pool=2) as server:
        monkeypatch.setattr(context_of(server.app).lists, "_slots", 1)
        person, path, made = await filled(server, 30)
        found = documents_of((await person("GET", path)).content)
        assert [one["uid"] for one in found["documents"]] == [one["uid"] for one in made]


@pytest.mark.usefixtures("short")
@async_test
async def test_readers_of_every_pace_get_all_of_their_lists(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots end under them at any moment; each list is whole, and every connection comes back clean, once."""
    monkeypatch.setattr(snapshots.Snapshot, "seconds", 0.01)
    monkeypatch.setattr(snapshot_slots, "RECLAIM_SECONDS", 0.002)
    monkeypatch.setattr(snapshot_slots, "WAIT_SECONDS", 60.0)
    chance = random.Random(5)  # noqa: S311
    async with open_server(db_pool=4) as server:
        person, path, made = await filled(server, 30)
        room = context_of(server.app)

        async def one() -> None:
            slow = SlowReader(server.app, person.access, path, chance.choice(("", "since=0")))
            leaves = chance.random() < 0.3
            for n in range(40):
                if slow.task.done():
                    break
                if leaves and n == 7:
                    await slow.go_away()
                    return
                slow._turns.release()
                await asyncio.sleep(chance.choice((0, 0.001, 0.012, 0.02)))
            found = documents_of(await slow.rest())
            assert "documents" in found, found
            assert [one["uid"] for one in found["documents"]] == [one["uid"] for one in made]

        for _ in range(4):
            await asyncio.gather(*(one() for _ in range(12)))
        async with asyncio.timeout(20):
            while room.lists.held:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (room.lists.held, room.lists.waiting) == (0, 0)
        pool = getattr(room.db, "_pool", None)
        assert pool is None or (pool._out == 0 and len(pool._idle) <= 4)
        assert pool is None or not any(connection.is_in_transaction() for connection in pool._idle)
        assert not getattr(room.db, "_snapshots", {})
        assert (await person.document({"uid": path.split("/")[2]}))["version"] == 1
