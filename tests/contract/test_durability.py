"""What was acknowledged is kept: through a kill, and through a change of settings."""

import signal
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, refused
from tests.kit.people.api_user import PASSWORD, ApiUser
from tests.kit.servers.process import Server, fresh_address, on_a_file
from tests.kit.waiting import until

from .checks import BLOB


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "asked to end"])
def test_end_amid_writes(lone: Server, how: signal.Signals) -> None:
    """A server that ends amid the writes of eight clients has every write that it acknowledged."""
    server = lone.start()
    person = ApiUser.register(server)
    vault = person.vault()
    acknowledged: dict[str, Json] = {}

    def work(client: int) -> None:
        while True:
            document = {"uid": str(uuid.uuid4())}
            steps = [("POST", docs(vault)), ("PUT", docs(vault, document)), ("DELETE", docs(vault, document))]
            for version, (method, path) in enumerate(steps[: 1 + client % 3]):
                body = document | {"collection": "a", "data": uuid.uuid4().hex, "version": version}
                try:
                    answer = person.http.request(method, path, json=body)
                except httpx2.TransportError:
                    return
                if answer.status_code == 503:
                    return
                assert answer.status_code in (200, 201), answer.text
                acknowledged[document["uid"]] = answer.json()

    with ThreadPoolExecutor(8) as pool:
        clients = [pool.submit(work, client) for client in range(8)]
        until(lambda: len(acknowledged) > 150 or any(client.done() for client in clients), "some writes")
        server.process.send_signal(how)
        assert server.process.wait(20) == (0 if how == signal.SIGTERM else -how)
        for client in clients:
            client.result()
    server.start()
    http = server.connect(person.access)
    body = good(http.get(docs(vault), params={"since": 0}))
    stored = {document["uid"]: document for document in body["documents"]}
    assert len(acknowledged) > 150
    for uid, last in acknowledged.items():
        assert stored[uid]["version"] >= last["version"]
        if stored[uid]["version"] == last["version"]:
            assert stored[uid]["updatedAt"] == last["updatedAt"]
            assert stored[uid]["deletedAt"] == last["deletedAt"]
    times = [document["updatedAt"] for document in body["documents"]]
    assert times == sorted(set(times))
    later = http.post(docs(vault), json={"collection": "a", "data": "QQ"}).json()
    assert later["updatedAt"] > times[-1]
    assert server.end() == 0


def test_kill_right_after_an_answer(lone: Server) -> None:
    """Registration, session, key, logout and revocation outlive a kill that follows their answer at once."""
    server = lone.start()
    person = ApiUser.register(server)
    gone = person.login()
    key, revoked = person.key(), person.key()
    good(person.http.delete(f"/auth/api-keys/{revoked['uid']}"))
    vault = person.vault(**BLOB)
    good(gone.http.post("/auth/logout"))
    server.end(signal.SIGKILL)
    server.start()
    assert good(server.connect(person.access).get(f"/vault/{vault['uid']}")) == vault
    assert good(server.connect(key["key"]).get(f"/vault/{vault['uid']}")) == vault
    good(server.connect().post("/auth/refresh", json={"refreshToken": person.refresh}))
    refused(server.connect(gone.access, fresh_address()).get("/vault"), 401, "unauthorized")
    refused(server.connect(revoked["key"], fresh_address()).get("/vault"), 401, "unauthorized")
    person.login()
    assert server.end() == 0


def test_change_of_variant(lone: Server) -> None:
    """A database reopened under each other variant loses nothing."""
    server = lone.start()
    person = ApiUser.register(server)
    bare, full = person.vault(), person.vault(**BLOB)
    document, tombstone = person.document(bare), person.document(bare)
    tombstone = person.delete(bare, tombstone)
    beside, key = person.document(full), person.key()
    assert server.end() == 0

    server.settings["VAULT_VARIANT"] = "blob"
    server.start()
    seen = good(person.login().http.get(f"/vault/{full['uid']}"))
    assert {"data": seen["data"], "salt": seen["salt"]} == BLOB
    assert server.end() == 0

    server.settings["VAULT_VARIANT"] = "document"
    server.start()
    http = person.login().http
    assert {vault["uid"] for vault in good(http.get("/vault"))["vaults"]} == {bare["uid"], full["uid"]}
    assert good(http.get(docs(bare), params={"since": 0}))["documents"] == [document, tombstone]
    assert good(server.connect(key["key"]).get(docs(full, beside))) == beside
    assert server.end() == 0

    server.settings["VAULT_VARIANT"] = "both"
    server.start()
    http = server.connect(person.access)
    assert good(http.get(f"/vault/{bare['uid']}"))["updatedAt"] == tombstone["updatedAt"]
    assert {"data": "sealed text"}.items() <= good(http.get(f"/vault/{full['uid']}")).items()
    assert good(http.get(docs(bare), params={"since": 0}))["documents"] == [document, tombstone]
    assert server.end() == 0


@on_a_file
def test_secrets_are_not_on_disk(lone: Server) -> None:
    """Neither the password nor an API key nor a token is found in the files of the database."""
    server = lone.start()
    person = ApiUser.register(server)
    key = person.key()
    assert server.connect(key["key"]).get("/vault").status_code == 200
    assert server.end() == 0
    kept = b"".join(path.read_bytes() for path in server.home.rglob("*") if path.is_file())
    assert person.email.encode() in kept
    for secret in (PASSWORD, key["key"], person.access, person.refresh):
        assert secret.encode() not in kept
