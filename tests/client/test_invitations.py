"""With an invitation, a client registers at a server that is closed for sign-ups."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom import errors
from strongroom.client import Client
from tests.client.operator import invite
from tests.kit.clients.factory import ClientFactory
from tests.kit.clients.secrets import assert_hidden
from tests.kit.network.proxy import BUSY, LOSE, REFUSE, Once, Proxy
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.live_server import live_server
from tests.kit.servers.process import Server

UNKNOWN = "SRI-00000-11111-22222-33333-44444"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that takes registrations by invitation only."""
    with live_server(tmp_path_factory.mktemp("closed"), SIGNUPS="closed") as running:
        yield running


@pytest.fixture
def proxy(closed: Server) -> Iterator[Proxy]:
    made = Proxy(closed.port)
    yield made
    made.close()


@pytest.mark.both_languages
def test_an_invited_person_registers(clients: ClientFactory, closed: Server, proxy: Proxy) -> None:
    """Once; the account is like any other, on this device and on the next."""
    email, code = unique_email(), invite(closed)
    client = clients.client(proxy.url)
    assert client.register(email, PASSWORD, invitation=f" {code.lower()}\n").email == email
    client.vault("v", create=True).collection("c").create("note")
    other = clients.client(proxy.url)
    other.login(email, PASSWORD)
    assert [note.value for note in other.vault("v").collection("c")] == ["note"]
    with pytest.raises(errors.InvalidInvitation):
        clients.client(proxy.url).register(unique_email(), PASSWORD, invitation=code)


@pytest.mark.both_languages
def test_who_is_not_invited_is_told_what_to_do(clients: ClientFactory, closed: Server, proxy: Proxy) -> None:
    """In a sentence: to ask for an invitation, or what may be wrong with the one that was given."""
    client = clients.client(proxy.url)
    with pytest.raises(errors.SignupsClosed, match="by invitation only; ask its operator for one"):
        client.register(unique_email(), PASSWORD)
    bound = invite(closed, unique_email())
    for code in (bound, UNKNOWN, "", "mistyped"):
        with pytest.raises(errors.InvalidInvitation, match="mistyped, used, expired or revoked, or it is for another"):
            client.register(unique_email(), PASSWORD, invitation=code)


@pytest.mark.both_languages
@pytest.mark.parametrize("fate", [LOSE, REFUSE, BUSY])
def test_on_a_bad_line_it_is_used_once(clients: ClientFactory, closed: Server, proxy: Proxy, fate: str) -> None:
    """Where the answer is lost, the code is used when the client asks again: it sees that the account is its own."""
    email, code = unique_email(), invite(closed)
    proxy.policy = Once(fate)
    client = clients.client(proxy.url)
    client.register(email, PASSWORD, invitation=code)
    assert client.vault("v", create=True)
    clients.client(proxy.url).login(email, PASSWORD)


@pytest.mark.both_languages
def test_a_refusal_is_told_also_where_its_answer_was_lost(clients: ClientFactory, closed: Server, proxy: Proxy) -> None:
    """The account is not the client's own: then the reason is the refusal, and not a wrong password."""
    client = clients.client(proxy.url)
    proxy.policy = Once(LOSE, "/auth/email/register")
    with pytest.raises(errors.InvalidInvitation):
        client.register(unique_email(), PASSWORD, invitation=UNKNOWN)
    email = unique_email()
    clients.client(proxy.url).register(email, PASSWORD, invitation=invite(closed))
    proxy.policy = Once(LOSE, "/auth/email/register")
    with pytest.raises(errors.EmailAlreadyExists):
        client.register(email, "another long password", invitation=invite(closed))


def test_no_traceback_shows_the_code(proxy: Proxy) -> None:
    """It is a secret until it is used, and one that was mistyped is close to it."""
    with Client(proxy.url) as client:
        with pytest.raises(errors.InvalidInvitation) as raised:
            client.register(unique_email(), PASSWORD, invitation=UNKNOWN)
        assert_hidden(raised.value, [UNKNOWN, UNKNOWN[4:], PASSWORD])
