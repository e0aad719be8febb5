"""What is safe to repeat is repeated, what is not is not, and a token that has run out is exchanged once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from strongroom import errors
from strongroom.client import Client
from tests.kit.clients.factory import ClientFactory
from tests.kit.network.proxy import BUSY, LOSE, PASS, REFUSE, Once, Proxy
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server
from tests.kit.waiting import until


@pytest.mark.both_languages
@pytest.mark.parametrize("fate", [LOSE, REFUSE, BUSY])
def test_a_day_on_a_bad_line(clients: ClientFactory, proxy: Proxy, fate: str) -> None:
    """Every first answer is lost, or every first request, or the server is busy: everything is done exactly once."""
    email = unique_email()
    proxy.policy = Once(fate)
    client = clients.client(proxy.url)
    client.register(email, PASSWORD)
    vault = client.vault("v", create=True)
    notes = vault.collection("notes")
    first, second = notes.create("first"), notes.create("second")
    first = notes.replace(first, "changed")
    notes.delete(second)
    vault.blob.put("blob")
    proxy.policy = Once(fate)
    assert [note.value for note in notes] == ["changed"]
    other = clients.client()
    other.login(email, PASSWORD)
    [seen] = other.vaults()
    assert [(note.value, note.version) for note in seen.collection("notes")] == [("changed", 2)]
    gone = seen.collection("notes").get(second.uid, deleted=True)
    assert (gone.deleted, gone.version) == (True, 3)
    assert seen.blob.get().version == 2


@pytest.mark.both_languages
@pytest.mark.parametrize("fate", [LOSE, REFUSE])
def test_the_ends_of_things_on_a_bad_line(clients: ClientFactory, proxy: Proxy, fate: str) -> None:
    """A deletion whose answer was lost counts as done, not as a refusal."""
    email = unique_email()
    client = clients.client(proxy.url)
    client.register(email, PASSWORD)
    vault = client.vault("v", create=True)
    vault.token("agent")
    other = clients.client()
    other.login(email, PASSWORD)
    [mine] = [session.id for session in client.sessions() if not session.current]
    proxy.policy = Once(fate)
    client.revoke_api_key(client.api_keys()[0].uid)
    client.end_session(mine)
    vault.delete()
    client.change_password(PASSWORD, "another password")
    proxy.policy = Once(fate)
    client.logout()
    again = clients.client()
    again.login(email, "another password")
    assert again.vaults() == []
    assert again.api_keys() == []


@pytest.mark.both_languages
def test_a_new_key_is_not_asked_for_twice(clients: ClientFactory, proxy: Proxy) -> None:
    """What would be made twice is sent once; what never left is sent again."""
    client = clients.client(proxy.url)
    client.register(unique_email(), PASSWORD)
    vault = client.vault("v", create=True)
    proxy.policy = Once(LOSE, "/auth/api-keys")
    with pytest.raises(errors.Unavailable):
        vault.token("agent")
    assert proxy.times("POST", "/auth/api-keys") == 1
    assert len(client.api_keys()) == 1


def test_a_server_that_is_away(clients: ClientFactory) -> None:
    """After a few attempts it is said that the server cannot be reached, and nothing else."""
    client = clients.client("http://127.0.0.1:9", retries=2)
    with pytest.raises(errors.Unavailable) as refused:
        client.login(unique_email(), PASSWORD)
    assert refused.value.__cause__ is None


@pytest.mark.both_languages
def test_who_is_asked_to_wait_too_long_is_told(clients: ClientFactory, proxy: Proxy) -> None:
    """A server that says when to come back is waited for, but not for longer than this client is patient."""
    client = clients.client(proxy.url, patience=0.5)
    email = unique_email()
    clients.client().register(email, PASSWORD)
    for _ in range(10):
        with pytest.raises(errors.InvalidCredentials):
            client.login(email, "not the password")
    with pytest.raises(errors.RateLimited) as refused:
        client.login(email, PASSWORD)
    assert refused.value.retry_after > 1
    assert f"{refused.value.retry_after:,} seconds" in str(refused.value)
    assert proxy.times("POST", "/auth/email/login") == 11


@pytest.mark.both_languages
def test_a_slow_server_is_not_waited_for(clients: ClientFactory, proxy: Proxy) -> None:
    """A client has a limit of its own."""
    client = clients.client(proxy.url, timeout=0.3, retries=0)
    proxy.answers.clear()
    with pytest.raises(errors.Unavailable):
        client.login(unique_email(), PASSWORD)
    proxy.answers.set()


@pytest.fixture
def brief(own_server: Server) -> Server:
    """A server whose access tokens die young."""
    own_server.settings["JWT_ACCESS_EXPIRY"] = "1s"
    return own_server.start()


@pytest.mark.both_languages
def test_tokens_are_exchanged_by_themselves(clients: ClientFactory, brief: Server) -> None:
    """Who works for longer than an access token lives does not notice."""
    client = clients.client(f"http://127.0.0.1:{brief.port}")
    client.register(unique_email(), PASSWORD)
    notes = client.vault("v", create=True).collection("c")
    begun = time.monotonic()
    numbers = 0

    def work() -> bool:
        nonlocal numbers
        notes.create(numbers)
        numbers += 1
        return time.monotonic() - begun > 2.5

    until(work, "tokens to run out", 60)
    assert [note.value for note in notes] == list(range(numbers))


def test_threads_exchange_a_token_once(proxy: Proxy) -> None:
    """Many threads meet a token that is refused at the same moment: one exchanges it, the others use the new one."""
    with Client(proxy.url) as client:
        client.register(unique_email(), PASSWORD)
        notes = client.vault("v", create=True).collection("c")
        note = notes.create("x")
        for exchanged in (1, 2):
            client._core.session._access = f"run-out-{exchanged}"
            with ThreadPoolExecutor(8) as threads:
                found = list(threads.map(lambda _: notes.get(note.uid).value, range(16)))
            assert found == ["x"] * 16
            assert proxy.times("POST", "/auth/refresh") == exchanged


@pytest.mark.both_languages
def test_a_session_that_has_ended_is_not_revived(clients: ClientFactory) -> None:
    """Where the refresh token is refused too, the client says so, and asks no more."""
    email = unique_email()
    client, other = clients.client(), clients.client()
    client.register(email, PASSWORD)
    other.login(email, PASSWORD)
    other.logout(everywhere=True)
    with pytest.raises(errors.InvalidRefreshToken):
        client.vaults()
    client.login(email, PASSWORD)
    assert client.vaults() == []


@pytest.mark.both_languages
def test_a_wrong_password_is_wrong_also_where_its_answer_was_lost(clients: ClientFactory, proxy: Proxy) -> None:
    """The client cannot tell at once whether the first sending has changed the password; then it looks."""
    email = unique_email()
    client = clients.client(proxy.url)
    client.register(email, PASSWORD)
    proxy.policy = Once(LOSE, "/auth/password")
    with pytest.raises(errors.InvalidCredentials):
        client.change_password("not the password", "another long password")
    assert {fate for _, path, fate in proxy.seen if path == "/auth/password"} == {LOSE, PASS}
    clients.client().login(email, PASSWORD)


@pytest.mark.both_languages
def test_nothing_is_repeated_that_was_refused(clients: ClientFactory, proxy: Proxy) -> None:
    """A refusal is an answer."""
    client = clients.client(proxy.url)
    client.register(unique_email(), PASSWORD)
    notes = client.vault("v", create=True).collection("c")
    with pytest.raises(errors.DocumentNotFound):
        notes.get("0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6")
    assert proxy.times("GET", "/documents/0192f0c1") == 1
    assert {fate for _, _, fate in proxy.seen} == {PASS}
