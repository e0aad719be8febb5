"""Other spellings: of the same bytes by a server, which forks no account; of an email, which opens in every client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strongroom.client import Client, Tampered
from tests.client.hostile.lying_proxy import Liar, Talk
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


@pytest.fixture
def liar(server: Server) -> Iterator[Liar]:
    """A proxy that has nothing to lie about yet."""
    made = Liar(server.port)
    yield made
    made.close()


@pytest.mark.both_languages
@pytest.mark.parametrize("signs", ["=", "==", "===", "===="])
def test_padding_after_a_keyring_forks_no_account(clients: ClientFactory, liar: Liar, signs: str) -> None:
    """The device that is lied to refuses the keyring; later both make vaults, and each finds the other's."""
    email = unique_email()
    laptop, phone = clients.client(), clients.client(liar.url)
    laptop.register(email, PASSWORD)

    def lie(talk: Talk) -> None:
        if (talk.method, talk.path) == ("GET", "/auth/keyring"):
            talk.say(talk.told | {"keyring": talk.told["keyring"] + signs})

    liar.lie = lie
    with pytest.raises(Tampered):
        phone.login(email, PASSWORD)
    assert liar.late_writes() == []
    liar.lie = None
    phone.login(email, PASSWORD)
    phone.vault("of the phone", create=True)
    laptop.vault("of the laptop", create=True)
    for device in (laptop, phone):
        assert {vault.name for vault in device.vaults()} == {"of the phone", "of the laptop"}


@pytest.mark.both_languages
def test_padding_after_a_blob_forks_no_vault(clients: ClientFactory, liar: Liar) -> None:
    """The device that is lied to refuses the blob, and overwrites nothing; later each reads what the other wrote."""
    email = unique_email()
    laptop, phone = clients.client(), clients.client(liar.url)
    laptop.register(email, PASSWORD)
    mine = laptop.vault("shared", create=True).blob
    mine.put("first")
    phone.login(email, PASSWORD)
    theirs = phone.vault("shared").blob

    def lie(talk: Talk) -> None:
        told = talk.told if talk.method == "GET" and talk.path.startswith("/vault/") else {}
        if told.get("data"):
            talk.say(told | {"data": told["data"] + "="})

    liar.lie = lie
    with pytest.raises(Tampered):
        theirs.get()
    assert liar.late_writes() == []
    liar.lie = None
    theirs.put("second", after=theirs.get())
    assert mine.get().value == "second"
    mine.put("third", after=mine.get())
    assert theirs.get().value == "third"


@pytest.mark.both_languages
@pytest.mark.parametrize("letter", ["\ua7cb", "\u0130", "\u00c4", "\u212a"])
def test_an_email_of_any_letters_opens_in_every_client(clients: ClientFactory, server: Server, letter: str) -> None:
    """Only A to Z have no case: of the other letters each client and version of Unicode knows others."""
    email = f"{letter}{unique_email()}"
    made = clients.client()
    made.register(email.replace("example", "EXAMPLE"), PASSWORD)
    made.vault("v", create=True).collection("c").create("x")
    with Client(f"http://127.0.0.1:{server.port}") as other:
        other.login(f" {email}", PASSWORD)
        assert [note.value for note in other.vault("v").collection("c")] == ["x"]
