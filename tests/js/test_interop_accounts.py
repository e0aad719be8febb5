"""Accounts between the two clients: what one has written, the other opens; what one has shut, the other finds shut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from strongroom.client import Client, InvalidCredentials, Locked, SecondFactorRequired
from strongroom.errors import InsufficientScope, InvalidRefreshToken, Unauthorized
from tests.kit.clients.typescript import TypeScriptClientFactory
from tests.kit.people.authenticator_app import AuthenticatorApp
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.people.soft_key import SoftKey
from tests.kit.servers.process import Server

NEW = "another horse, another staple"
LAST = "the last horse, the last staple"


class Pair:
    """Somebody's account, and clients of it: `one` writes, `other` reads."""

    def __init__(self, one: Callable[[], Any], other: Callable[[], Any], with_token: Callable[[str], Any]) -> None:
        self.one, self.other, self.with_token = one, other, with_token
        self.email = unique_email()
        self.writer = one()
        self.writer.register(self.email, PASSWORD)

    def furnish(self) -> None:
        """A vault with a document and a blob, and one whose names are not sealed."""
        vault = self.writer.vault("personal 🗝", create=True)
        vault.collection("notes").create({"title": "Hello"})
        vault.collection("bytes").create(b"\0\1")
        vault.blob.put(["a blob"])
        self.writer.vault("plain", create=True, sealed=False).collection("notes").create("in a plain vault")

    def reads(self, password: str = PASSWORD, **more: Any) -> Any:
        """The other client, logged in; it has read everything."""
        client = self.other()
        client.login(self.email, password, **more)
        assert_furnished(client)
        return client


def assert_furnished(client: Any) -> None:
    """Everything of `furnish` is there."""
    assert {vault.name for vault in client.vaults()} == {"personal 🗝", "plain"}
    vault = client.vault("personal 🗝")
    assert [note.value for note in vault.collection("notes")] == [{"title": "Hello"}]
    assert [note.value for note in vault.collection("bytes")] == [b"\0\1"]
    assert {found.name for found in vault.collections()} == {"notes", "bytes"}
    assert vault.blob.get().value == ["a blob"]
    assert [note.value for note in client.vault("plain").collection("notes")] == ["in a plain vault"]


@pytest.fixture(params=["python to typescript", "typescript to python"])
def pair(request: pytest.FixtureRequest, named_server: Server) -> Iterator[Pair]:
    """An account that each client writes in turn, and the other reads."""
    url = f"http://localhost:{named_server.port}"
    typescript = TypeScriptClientFactory(url)
    with ExitStack() as stack:

        def python() -> Client:
            return stack.enter_context(Client(url))

        def python_token(token: str) -> Client:
            return stack.enter_context(Client.with_token(url, token))

        if request.param == "python to typescript":
            yield Pair(python, typescript.client, typescript.with_token)
        else:
            yield Pair(typescript.client, python, python_token)


def test_an_account_that_the_other_registered(pair: Pair) -> None:
    """Names, documents and blobs are read; what is then written is read by the first, and nothing is refused."""
    pair.furnish()
    reader = pair.reads()
    notes = reader.vault("personal 🗝").collection("notes")
    [note] = notes
    notes.replace(note, {"title": "Hello again"})
    reader.vault("third", create=True)
    assert [one.value for one in pair.writer.vault("personal 🗝").collection("notes")] == [{"title": "Hello again"}]
    pair.writer.vault("third").delete()
    assert {vault.name for vault in reader.vaults()} == {"personal 🗝", "plain"}


def test_a_password_that_the_other_changed(pair: Pair) -> None:
    """The new one opens everything, the one of before nothing; a session of before has ended."""
    pair.furnish()
    before = pair.reads()
    pair.writer.change_password(PASSWORD, NEW)
    pair.reads(NEW).change_password(NEW, LAST)
    with pytest.raises(InvalidCredentials):
        pair.other().login(pair.email, NEW)
    with pytest.raises(InvalidRefreshToken):
        before.sessions()
    pair.writer.login(pair.email, LAST)
    assert_furnished(pair.writer)


def test_a_recovery_key_that_the_other_printed(pair: Pair) -> None:
    """It opens the account and sets a password; one that was replaced or removed opens nothing."""
    pair.furnish()
    key = pair.writer.make_recovery_key(PASSWORD)
    other = pair.other()
    other.recover(pair.email, key, NEW)
    assert_furnished(other)
    again = other.make_recovery_key(NEW)
    with pytest.raises(InvalidCredentials):
        pair.one().recover(pair.email, key, LAST)
    pair.writer.recover(pair.email, again, LAST)
    assert_furnished(pair.writer)
    pair.writer.remove_recovery_key(LAST)
    with pytest.raises(InvalidCredentials):
        pair.other().recover(pair.email, again, PASSWORD)
    pair.reads(LAST)


@pytest.mark.parametrize("new", [None, NEW])
def test_keys_that_the_other_rotated(pair: Pair, new: str | None) -> None:
    """Everything is of the next generation and opens. The recovery key is another one, so other sessions have ended."""
    pair.furnish()
    pair.writer.make_recovery_key(PASSWORD)
    old = pair.other()
    old.login(pair.email, PASSWORD)
    key = pair.writer.rotate_keys(PASSWORD, **({} if new is None else {"new_password": new})).recovery_key
    with pytest.raises(InvalidRefreshToken):
        old.vault("personal 🗝").collection("notes").create("under old keys")
    reader = pair.reads(new or PASSWORD)
    assert reader._core.keyring().generation == 2
    [note] = reader.vault("personal 🗝").collection("notes")
    assert note.version == 2
    reader.vault("personal 🗝").rotate()
    reader.rotate_keys(new or PASSWORD)
    pair.writer.login(pair.email, new or PASSWORD)
    assert_furnished(pair.writer)
    [note] = pair.writer.vault("personal 🗝").collection("notes")
    assert note.version == 4
    with pytest.raises(InvalidCredentials):
        pair.other().recover(pair.email, key, LAST)  # the second rotation has replaced it


def test_a_client_that_is_logged_in_meets_rotated_keys(pair: Pair) -> None:
    """It says that it must log in again, and writes nothing under the keys of before."""
    pair.furnish()
    reader = pair.reads()
    notes = reader.vault("personal 🗝").collection("notes")
    pair.writer.rotate_keys(PASSWORD)
    with pytest.raises(Locked, match="log in again"):
        notes.create("under old keys")
    with pytest.raises(Locked, match="log in again"):
        reader.vault("new", create=True)
    pair.reads()


def test_a_vault_whose_key_the_other_rotated(pair: Pair) -> None:
    """A client that is logged in goes on under the new key."""
    pair.furnish()
    reader = pair.reads()
    vault = pair.writer.vault("personal 🗝")
    vault.rotate()
    notes = reader.vault("personal 🗝").collection("notes")
    made = notes.create({"title": "after"})
    assert {str(note.value) for note in pair.writer.vault("personal 🗝").collection("notes")} == {
        "{'title': 'Hello'}",
        "{'title': 'after'}",
    }
    notes.delete(made)
    assert_furnished(pair.writer)


def test_a_token_that_the_other_made(pair: Pair) -> None:
    """Of a vault, of one whose names are not sealed, and of a collection; it ends when it is revoked."""
    pair.furnish()
    sealed, plain = pair.writer.vault("personal 🗝"), pair.writer.vault("plain")
    sealed.rotate()
    for vault in (sealed, plain):
        agent = pair.with_token(vault.token("agent"))
        opened = agent.vault()
        assert opened.name == vault.name
        opened.collection("agents").create("by the agent")
        assert [note.value for note in vault.collection("agents")] == ["by the agent"]
    agent = pair.with_token(sealed.collection("notes").token("reader", permissions=["read"]))
    assert [note.value for note in agent.collection()] == [{"title": "Hello"}]
    with pytest.raises(InsufficientScope):
        agent.collection().create("not allowed")
    with pytest.raises(Locked):
        agent.vault("personal 🗝")
    for key in pair.writer.api_keys():
        pair.writer.revoke_api_key(key.uid)
    with pytest.raises(Unauthorized):
        list(agent.collection())


def test_one_time_codes_that_the_other_enrolled(pair: Pair) -> None:
    """A login asks for one, whichever client it is; a recovery code stands in."""
    pair.furnish()
    app = AuthenticatorApp(pair.writer.second_factor.enrol(PASSWORD).secret)
    codes = pair.writer.second_factor.confirm(app.next())
    with pytest.raises(SecondFactorRequired):
        pair.other().login(pair.email, PASSWORD)
    reader = pair.reads(code=app.next())
    reader.second_factor.disable(PASSWORD, code=codes[0])
    pair.writer.login(pair.email, PASSWORD)


def test_a_passkey_that_the_other_enabled(pair: Pair) -> None:
    """It opens the account in the other client; after a rotation, once it was touched; a disabled one does not."""
    pair.furnish()
    key = SoftKey()
    added = pair.writer.passkeys.add("blue key", PASSWORD, key)
    codes = list(added.recovery_codes)
    pair.writer.passkeys.enable_unlock(added.passkey, PASSWORD, key)
    other = pair.other()
    other.login_with_passkey(key)
    assert_furnished(other)
    [listed] = other.passkeys.list()
    assert (listed.name, listed.unlocks) == ("blue key", True)
    [dropped] = other.rotate_keys(PASSWORD, new_password=NEW, code=key).passkeys
    with pytest.raises(Locked):
        pair.one().login_with_passkey(key)
    other.passkeys.enable_unlock(dropped, NEW, key)
    again = pair.one()
    again.login_with_passkey(key)
    assert_furnished(again)
    [listed] = again.passkeys.list()
    again.passkeys.disable_unlock(listed, NEW, code=codes.pop())
    with pytest.raises(Locked):
        pair.other().login_with_passkey(key)
    pair.reads(NEW, code=codes.pop())


def test_an_account_that_the_other_deleted(pair: Pair) -> None:
    """It is gone, and its email can be registered again; a client that has seen it takes the new one for a new one."""
    pair.furnish()
    reader = pair.reads()
    pair.writer.delete_account(PASSWORD)
    with pytest.raises(InvalidRefreshToken):
        reader.vaults()
    with pytest.raises(InvalidCredentials):
        pair.other().login(pair.email, PASSWORD)
    reader.register(pair.email, NEW)
    pair.writer.login(pair.email, NEW)
    assert pair.writer.vaults() == []
