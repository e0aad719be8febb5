"""No request blocks the event loop for long: other clients wait a few milliseconds for it at the most."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

import tests.kit.servers.loop_watchdog
from strongroom import wire
from tests.kit.people.api_user import ApiUser
from tests.kit.samples import rounds
from tests.kit.servers.loop_watchdog import MILLISECOND
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import ENGINES, Server
from tests.security import hostile_bodies
from tests.security.mutator import Mutator

pytestmark = pytest.mark.skipif(
    "COVERAGE_PROCESS_START" in os.environ, reason="a server whose lines are measured takes several times as long"
)
# How long one callback may keep the loop, in turns of an empty loop at the same moment: 50 ms on an idle machine.
LONGEST = 50 * MILLISECOND
# A step of a long response: a page of small documents, which takes about 8 ms.
STEP = 25 * MILLISECOND
ATTEMPTS = 3  # of which the best counts: the machine may be slow for a moment
JSON = {"content-type": "application/json"}
MIB = 1024 * 1024


class Watched(Server):
    """A server whose loop is measured."""

    program = (str(Path(tests.kit.servers.loop_watchdog.__file__)),)

    def __init__(self, home: Path, **settings: str) -> None:
        super().__init__(home, WATCHDOG_FILE=str(home / "callbacks"), **settings)
        self._seen = 0

    def slow(self) -> list[tuple[int, str]]:
        """The callbacks that were noted since the last look, the slowest first."""
        path = self.home / "callbacks"
        lines = path.read_text().splitlines() if path.exists() else []
        new, self._seen = lines[self._seen :], len(lines)
        noted = [json.loads(line) for line in new]
        return sorted(((each["turns"], each["what"]) for each in noted), reverse=True)

    def holds(self, work: Callable[[], object], longest: int = LONGEST) -> None:
        """Do some work, up to three times: at least once, no callback of the server takes longer than this."""
        seen = []
        for _ in range(ATTEMPTS):
            self.slow()
            work()
            with self.connect() as http:
                http.get("/nowhere")  # once this is answered, the callback of the answer before has ended
            slow = self.slow()
            if not slow or slow[0][0] <= longest:
                return
            seen.append(slow[:5])
        raise AssertionError(seen)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Watched]]:
    """Gives the watched server on an engine, which is started for the first test that asks for it."""
    running: dict[str, Watched] = {}

    def get(engine: str) -> Watched:
        if engine not in running:
            place = {"DATABASE_URL": postgres().migrated()} if engine == "postgres" else {}
            home = tmp_path_factory.mktemp("watched")
            running[engine] = Watched(home, TRUSTED_PROXIES="127.0.0.0/8", **place)
            running[engine].start()
        return running[engine]

    try:
        yield get
        for server in running.values():
            assert server.end() == 0
            assert '"event":"fault"' not in server.log()
    finally:
        for server in running.values():
            server.abandon()


@pytest.fixture(params=ENGINES)
def server(watched: Callable[[str], Watched], request: pytest.FixtureRequest) -> Watched:
    """The watched server on the engine of the test."""
    return watched(request.param)


@pytest.fixture
def person(server: Watched) -> ApiUser:
    return ApiUser.register(server)


def test_a_planted_fault_is_caught(tmp_path: Path) -> None:
    """A handler that burns 80 ms on the loop is noticed; a watchdog that sees nothing would pass everything."""
    watched = Watched(tmp_path, WATCHDOG_PLANT="1")
    try:
        watched.start()
        with watched.connect() as http:
            with pytest.raises(AssertionError, match="RequestBatcher"):
                watched.holds(lambda: http.get("/health"))
            watched.holds(lambda: http.get("/ready"))
    finally:
        watched.abandon()


@pytest.mark.parametrize("size", [200, 6_000])
def test_batches(server: Watched, person: ApiUser, size: int) -> None:
    """A thousand operations of each kind, small ones and as large as fit into a body; and one that is refused."""
    path = f"/vaults/{person.vault()['uid']}/batch"
    data = "QUJD" * (size // 4)

    def send(*operations: dict[str, Any], status: int = 200) -> None:
        answer = person.http.post(path, json={"operations": operations})
        assert answer.status_code == status, answer.text[:500]

    def all_kinds() -> None:
        uids = [str(uuid.uuid4()) for _ in range(1_000)]
        send(*({"op": "create", "uid": uid, "collection": "c", "data": data} for uid in uids))
        send(*({"op": "put", "uid": uid, "data": data[:-4], "version": 1} for uid in uids))
        send(*({"op": "put", "uid": uid, "data": data, "version": 1} for uid in uids), status=409)
        send(*({"op": "delete", "uid": uid} for uid in uids))
        send(*({"op": "create", "uid": uid, "collection": "c", "data": data} for uid in uids), status=409)

    server.holds(all_kinds)


def test_many_who_write_at_once(server: Watched, person: ApiUser) -> None:
    """They share a transaction, and the loop is shared all the same."""
    path = f"/vaults/{person.vault()['uid']}/documents"

    def crowd() -> None:
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            sent = [
                pool.submit(person.http.post, path, json={"collection": "c", "data": "QUJD" * 500}) for _ in range(512)
            ]
            assert {each.result().status_code for each in sent} == {201}

    server.holds(crowd)


def test_lists_imports_and_exports(server: Watched, person: ApiUser) -> None:
    """As many rows as there are, in and out."""
    vault = person.vault(data="x" * MIB, salt="")
    for _ in range(rounds(10, 100)):
        operations = [{"op": "create", "collection": "c", "data": "QUJD" * 50} for _ in range(1_000)]
        assert person.http.post(f"/vaults/{vault['uid']}/batch", json={"operations": operations}).status_code == 200
    for _ in range(3):
        person.document(vault, data="QUJD" * (MIB + MIB // 4))
    server.holds(lambda: person.http.get(f"/vaults/{vault['uid']}/documents"))
    server.holds(lambda: person.http.get("/vault"))
    files = []
    server.holds(lambda: files.append(person.http.get("/auth/export").content))

    def bring() -> None:
        other = ApiUser.register(server)
        answer = other.http.post("/auth/import", content=files[-1], headers={"content-type": "application/x-ndjson"})
        assert answer.status_code == 200, answer.text
        assert other.http.delete(f"/vault/{vault['uid']}").status_code == 200

    server.holds(bring)


def test_long_lists_of_small_documents_give_way(server: Watched, person: ApiUser) -> None:
    """After each page: four lists of one account, and an export."""
    vault = person.vault()
    for _ in range(12):
        operations = [{"op": "create", "collection": "c", "data": "QUJD"} for _ in range(1_000)]
        assert person.http.post(f"/vaults/{vault['uid']}/batch", json={"operations": operations}).status_code == 200

    def four_lists() -> None:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = pool.map(person.http.get, [f"/vaults/{vault['uid']}/documents"] * 4)
            assert {len(answer.json()["documents"]) for answer in answers} == {12_000}

    server.holds(four_lists, longest=STEP)
    server.holds(lambda: person.http.get("/auth/export"), longest=STEP)


def test_large_bodies(server: Watched, person: ApiUser) -> None:
    """Good ones of the largest size: a document, a blob of escapes, a keyring; and the same with a fault in them."""
    path = f"/vaults/{person.vault()['uid']}/documents"
    document = json.dumps({"collection": "c", "data": "QUJD" * (MIB + MIB // 4)}).encode()
    for status, body in ((201, document), (400, document.replace(b"QUJD", b"{UJD", 1)), (400, document[:-1])):

        def send(status: int = status, body: bytes = body) -> None:
            assert person.http.post(path, content=body, headers=JSON).status_code == status

        server.holds(send)
    for piece in ("text with commas", "escapes", "mixed widths", "escaped pairs"):

        def blob(data: bytes = hostile_bodies.value(piece, 5 * MIB)) -> None:
            body = b'{"name":"%s","salt":"","data":%s}' % (uuid.uuid4().hex.encode(), data)
            assert person.http.post("/vault", content=body, headers=JSON).status_code == 201

        server.holds(blob)


def test_hostile_bodies(server: Watched, person: ApiUser) -> None:
    """Bodies of the largest size that are made to be costly: within the time that is promised for them."""
    vault = person.vault()
    batch, document = f"/vaults/{vault['uid']}/batch", f"/vaults/{vault['uid']}/documents"
    nonsense = {
        batch: {
            **dict(hostile_bodies.batches(5 * MIB)),
            **dict(hostile_bodies.bodies(wire.requests.Batch, 5 * MIB)),
        },
        "/auth/api-keys": dict(hostile_bodies.bodies(wire.requests.CreateApiKey, 5 * MIB)),
        document: dict(hostile_bodies.bodies(wire.requests.CreateDocument, 5 * MIB)),
    }
    for path, name in (
        (batch, "operations: list of creates"),
        (batch, "operations: list of objects"),
        (batch, "unknown: deep lists"),
        (batch, "1000 x unknown: list of numbers"),
        (batch, "1000 x data: deep lists"),
        ("/auth/api-keys", "collections: list of names"),
        (document, "uid again and again: 1"),
        (document, "hmac: escapes"),
    ):

        def send(path: str = path, body: bytes = nonsense[path][name]()) -> None:
            assert person.http.post(path, content=body, headers=JSON).status_code in {200, 400}

        server.holds(send, 2 * LONGEST)  # a body of the largest size whose every byte is a key; decoded in steps


def test_heads(server: Watched, person: ApiUser) -> None:
    """Heads of the largest size: long lists in headers, queries and paths, and tokens that are none."""
    vault = person.vault()
    path = f"/vaults/{vault['uid']}/documents"
    uid = person.document(vault)["uid"]
    commas, tags = "," * 60_000, ",".join(['"1"'] * 15_000)
    heads: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("PUT", f"{path}/{uid}", {"if-match": commas}),
        ("PUT", f"{path}/{uid}", {"if-match": tags}),
        ("PUT", f"/vault/{vault['uid']}", {"if-match": ",".join(['"1-2"'] * 10_000)}),
        ("GET", f"{path}/{uid}", {"if-none-match": tags}),
        ("GET", f"{path}/{uid}", {"if-none-match": 'W/"' + "x" * 60_000}),
        ("GET", f"{path}/{uid}", {"if-none-match": " " * 30_000 + "x" + " " * 30_000}),
        ("GET", "/docs", {"accept": ",".join(["text/html;q=0.1"] * 4_000), "accept-encoding": commas}),
        ("POST", "/auth/email/login", {"x-forwarded-for": ",".join(["127.0.0.1"] * 6_000)}),
        ("POST", "/auth/email/login", {"x-forwarded-for": commas, "forwarded": "for=" + commas[:100]}),
        ("POST", "/auth/email/login", {"content-type": "application/json" + ";" * 60_000}),
        ("GET", "/vault", {"authorization": "Bearer " + "a." * 30_000}),
        ("GET", "/vault", {"authorization": "Bearer " + "A" * 512 + "." + "A" * 4_096 + "." + "A" * 43}),
        ("GET", "/vault", {"authorization": " " * 60_000 + "x"}),
        ("GET", "/vault", {"x-request-id": "a" * 60_000, "origin": "h" * 1_000, "cookie": "a=b;" * 10_000}),
        ("GET", "/" * 60_000, {}),
        ("GET", "/vault/by-name/" + "%41" * 20_000, {}),
        ("GET", "/vault/by-name/" + "/%2F" * 15_000, {}),
        ("GET", "/" + "a/" * 30_000, {}),
        ("GET", "/%" + "%" * 60_000, {}),
        ("GET", path + "?" + "&".join(f"a{number}=" for number in range(8_000)), {}),
        ("GET", path + "?" + "&" * 60_000, {}),
        ("GET", path + "?since=" + "9" * 60_000, {}),
        ("GET", path + "?since=" + "9" * 3_999, {}),
        ("GET", path + "?collection=" + "%C3%A9" * 10_000, {}),
        ("GET", f"{path}/{uid}/versions/" + "9" * 3_999, {}),
    )
    for method, target, headers in heads:

        def send(method: str = method, target: str = target, headers: dict[str, str] = headers) -> None:
            given = {"host": "server", "authorization": f"Bearer {person.access}", "content-length": "0"} | headers
            head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as wire:
                wire.sendall(f"{method} {target} HTTP/1.1\r\n{head}connection: close\r\n\r\n".encode())
                answer = wire.makefile("rb").readline()
            assert answer.split()[1] < b"500", (target[:50], answer)

        server.holds(send)


def test_nonsense(server: Watched, person: ApiUser) -> None:
    """Requests that are almost right."""
    mutator = Mutator(7)
    vault = person.vault(data="x", salt="")
    mutator.known = [vault["uid"], person.document(vault)["uid"], vault["name"][:5]]
    mutator.bearers = [person.access]

    def fuzz() -> None:
        for _ in range(rounds(100, 2_000)):
            request = mutator.request()
            if request.target.partition("?")[0].endswith("/events"):
                continue
            with contextlib.suppress(httpx2.HTTPError, httpx2.InvalidURL, ValueError, TypeError):
                person.http.request(
                    request.method, request.target, headers=request.headers, content=request.body, timeout=20
                )

    server.holds(fuzz)


def test_a_long_list_of_keys(watched: Callable[[str], Watched]) -> None:
    """Of an account with more keys, and larger ones, than can be made today."""
    server = watched("sqlite")
    person = ApiUser.register(server)
    scope = json.dumps(["\U0001f511" * 255] * 100)
    with contextlib.closing(apsw.Connection(server.settings["DB_PATH"])) as database:
        database.setbusytimeout(20_000)
        database.executemany(
            "INSERT INTO api_keys (user_id, uid, key_hash, name, collections, created_at) VALUES (?, ?, ?, 'k', ?, 1)",
            [(person.id, str(uuid.uuid4()), str(uuid.uuid4()), scope) for _ in range(100)],
        )

    def read() -> None:
        assert len(person.http.get("/auth/api-keys").json()["keys"]) == 100

    server.holds(read)
