"""An account whose password the server knows is told apart, and becomes one that only its owner can open."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from strongroom import errors
from strongroom.client import Client, Locked, Tampered
from tests.client.hostile.lying_proxy import Liar, Talk
from tests.client.operator import TYPED, add_account
from tests.kit.clients.factory import ClientFactory
from tests.kit.clients.secrets import assert_hidden
from tests.kit.network.proxy import BUSY, LOSE, REFUSE, Once, Proxy
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

NAMED = "see `adopt_account`"


@pytest.fixture
def email(server: Server) -> str:
    """The email of an account that an operator has added."""
    made = unique_email()
    add_account(server, made)
    return made


class Recorder(httpx2.HTTPTransport):
    """Sends requests, and keeps their bodies."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[tuple[str, dict[str, Any]]] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        self.bodies.append((request.url.path, json.loads(body or b"{}")))
        return super().handle_request(request)


def plain_login(server: Server, email: str, password: str = TYPED) -> Any:
    """Log in as a client does that sends the password as typed."""
    return server.connect().post("/auth/email/login", json={"email": email, "password": password})


def fields_of(refusal: errors.Refusal) -> dict[str, str]:
    """What is wrong with which field."""
    assert refusal.details is not None
    fields: dict[str, str] = refusal.details["fields"]
    return fields


@pytest.mark.both_languages
def test_a_login_names_the_way_out(clients: ClientFactory, email: str) -> None:
    """To somebody who has never opened the account; who has only mistypes, and need not hear of it."""
    with pytest.raises(errors.InvalidCredentials, match=NAMED):
        clients.client().login(email, TYPED)
    person, own = clients.client(), unique_email()
    person.register(own, PASSWORD)
    with pytest.raises(errors.InvalidCredentials) as raised:
        person.login(own, PASSWORD + "?")
    assert "adopt" not in str(raised.value)


@pytest.mark.both_languages
def test_it_is_opened_by_its_owner_alone(clients: ClientFactory, server: Server, email: str) -> None:
    """The operator's password opens nothing more: no session and no API key of before is left."""
    before = plain_login(server, email).json()
    with server.connect(before["accessToken"]) as http:
        key = http.post("/auth/api-keys", json={"name": "the operator's"}).json()["key"]
        client = clients.client()
        assert client.adopt_account(email, TYPED, PASSWORD).id == before["user"]["id"]
        assert http.get("/vault").status_code == 401
    with server.connect(key) as http:
        assert http.get("/vault").status_code == 401
    assert plain_login(server, email).status_code == 401
    client.vault("v", create=True).collection("c").create("note")
    printed = client.make_recovery_key(PASSWORD)
    other = clients.client()
    other.login(email, PASSWORD)
    assert [note.value for note in other.vault("v").collection("c")] == ["note"]
    clients.client().recover(email, printed, "another long password")


def test_what_is_sent_as_typed(server: Server, email: str) -> None:
    """The operator's password by `adopt_account` alone; the new one never."""
    line = Recorder()
    with Client(f"http://127.0.0.1:{server.port}", transport=line) as client:
        with pytest.raises(errors.InvalidCredentials):
            client.login(email, TYPED)
        assert TYPED not in json.dumps(line.bodies)
        client.adopt_account(email, TYPED, PASSWORD)
    assert PASSWORD not in json.dumps(line.bodies)
    assert [path for path, body in line.bodies if TYPED in body.values()] == ["/auth/email/login", "/auth/password"]


@pytest.mark.both_languages
@pytest.mark.parametrize("fate", [LOSE, REFUSE, BUSY])
def test_on_a_bad_line(clients: ClientFactory, email: str, proxy: Proxy, fate: str) -> None:
    """Every first answer is lost, or every first request: it is done once."""
    client = clients.client(proxy.url)
    proxy.policy = Once(fate)
    client.adopt_account(email, TYPED, PASSWORD)
    assert client.vault("v", create=True)
    clients.client().login(email, PASSWORD)
    with pytest.raises(errors.InvalidCredentials, match="adopted already, log in with the password that was set"):
        clients.client().adopt_account(email, TYPED, PASSWORD)


@pytest.mark.both_languages
def test_where_the_line_stays_dead(clients: ClientFactory, email: str, proxy: Proxy) -> None:
    """The client does not know whether it is done, and holds no key; then the new password logs in."""
    client = clients.client(proxy.url, retries=1)
    proxy.policy = lambda _, path: LOSE if path == "/auth/password" else "pass"
    with pytest.raises(errors.Unavailable):
        client.adopt_account(email, TYPED, PASSWORD)
    with pytest.raises(Locked):
        client.sessions()
    client.login(email, PASSWORD)
    assert client.vaults() == []


@pytest.mark.both_languages
@pytest.mark.parametrize("lie", ["another keyring", "another version", "none"])
def test_a_keyring_that_is_not_kept(clients: ClientFactory, server: Server, email: str, lie: str) -> None:
    """The server must show the keyring that it was given; otherwise the client holds no key and no session."""
    other = clients.person()._core.sealed
    liar = Liar(server.port)

    def lies(talk: Talk) -> None:
        if (talk.method, talk.path) == ("GET", "/auth/keyring") and talk.status == 200:
            if lie == "none":
                talk.refuse(404, "keyring_not_found")
            else:
                talk.say(talk.told | ({"version": 7} if lie == "another version" else {"keyring": other}))

    liar.lie = lies
    try:
        client = clients.client(liar.url)
        with pytest.raises((Tampered, errors.KeyringNotFound)):
            client.adopt_account(email, TYPED, PASSWORD)
        with pytest.raises(Locked):
            client.sessions()
    finally:
        liar.close()


def test_a_password_of_ones_own(clients: ClientFactory, server: Server, email: str) -> None:
    """Not the one that the server knows, and long enough; nothing is sent before that."""
    client = clients.client("http://127.0.0.1:9", retries=0)
    for new, told in ((TYPED, "new_password"), ("short", "password")):
        with pytest.raises(errors.Invalid) as raised:
            client.adopt_account(email, TYPED, new)
        assert list(fields_of(raised.value)) == [told]
    assert plain_login(server, email).status_code == 200


@pytest.mark.both_languages
def test_an_account_that_has_keys_is_left_alone(clients: ClientFactory, server: Server) -> None:
    """A device that has opened it does not send the password as typed; elsewhere the server does not know that one."""
    email = unique_email()
    client = clients.client()
    client.register(email, PASSWORD)
    with pytest.raises(errors.Invalid) as raised:
        client.adopt_account(email, PASSWORD, "another long password")
    assert "was not sent" in fields_of(raised.value)["email"]
    assert client.vaults() == []
    with pytest.raises(errors.InvalidCredentials):
        clients.client().adopt_account(email, PASSWORD, "another long password")
    other = unique_email()
    body = {"email": other, "password": TYPED, "kdf": {"odd": 1}, "keyring": "QUJD"}
    assert server.connect().post("/auth/email/register", json=body).status_code == 201
    with pytest.raises(errors.Invalid) as raised:
        clients.client().adopt_account(other, TYPED, PASSWORD)
    assert "has keys" in fields_of(raised.value)["email"]
    assert plain_login(server, other).status_code == 200


@pytest.mark.both_languages
def test_an_account_of_another_program_is_left_alone(clients: ClientFactory, server: Server, email: str) -> None:
    """It could not log in any more: nothing is changed while there are vaults."""
    http = server.connect(plain_login(server, email).json()["accessToken"])
    vault = http.post("/vault", json={"name": "theirs"}).json()["uid"]
    with pytest.raises(errors.AccountNotEmpty, match="Another program has stored vaults"):
        clients.client().adopt_account(email, TYPED, PASSWORD)
    assert plain_login(server, email).status_code == 200
    assert http.delete(f"/vault/{vault}").status_code == 200
    clients.client().adopt_account(email, TYPED, PASSWORD)


def test_on_a_server_without_api_keys(own_server: Server) -> None:
    """One of blob vaults only."""
    own_server.settings["VAULT_VARIANT"] = "blob"
    own_server.start()
    email = unique_email()
    add_account(own_server, email)
    with Client(f"http://127.0.0.1:{own_server.port}") as client:
        client.adopt_account(email, TYPED, PASSWORD)
        client.vault("v", create=True).blob.put("value")


def test_no_traceback_shows_a_password(server: Server, email: str) -> None:
    """Neither the operator's nor the new one, and no key."""
    with Client(f"http://127.0.0.1:{server.port}") as client:
        with pytest.raises(errors.InvalidCredentials) as raised:
            client.adopt_account(email, TYPED + "?", PASSWORD)
        assert_hidden(raised.value, [TYPED + "?", TYPED, PASSWORD])
        http = server.connect(plain_login(server, email).json()["accessToken"])
        http.post("/vault", json={"name": "theirs"})
        with pytest.raises(errors.AccountNotEmpty) as refused:
            client.adopt_account(email, TYPED, PASSWORD)
        assert_hidden(refused.value, [TYPED, PASSWORD])
