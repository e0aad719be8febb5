"""Secrets stay where they belong: nothing works after a logout, no email is on the disk, no secret in a traceback."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client, Locked, Tampered
from strongroom.client.format.primitives import SecretBytes, SecretText
from strongroom.errors import DocumentNotFound, InvalidCredentials, Refusal
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.clients.secrets import assert_hidden, secrets_of
from tests.kit.network.unreliable_network import world_of
from tests.kit.people.credentials import PASSWORD

NEW = "another horse, another staple"


# After a logout


def test_a_logout_closes_what_was_opened(clients: ClientFactory, tmp_path: Path) -> None:
    """Handles of a replica that were given out before neither read nor write."""
    client = clients.person()
    client.vault("v", create=True).collection("notes").create("one")
    replica = client.open_replica(tmp_path / "replica")
    replica.sync()
    vault = replica.vault("v")
    notes = vault.collection("notes")
    [note] = notes
    client.logout()
    attempts: list[Callable[[], Any]] = [
        replica.sync,
        replica.conflicts,
        replica.vaults,
        lambda: replica.pending,
        lambda: replica.vault("v"),
        lambda: list(vault),
        vault.blob,
        lambda: list(notes),
        lambda: notes.get(note.uid),
        lambda: notes.create("two"),
        lambda: notes.replace(note, "two"),
        lambda: notes.delete(note),
    ]
    for attempt in attempts:
        with pytest.raises(Locked):
            attempt()
    client.unlock(tmp_path / "replica", PASSWORD)
    again = client.open_replica(tmp_path / "replica")
    assert [one.value for one in again.vault("v").collection("notes")] == ["one"]
    assert again.pending == 0
    again.close()


def test_another_login_closes_what_was_opened(devices: Devices) -> None:
    """A client that logs in anew has other keys: handles of before end."""
    notes = devices.notes(devices.here)
    devices.here.client.login(devices.crew.email, PASSWORD)
    with pytest.raises(Locked):
        notes.create("two")


# On the disk


def test_no_email_is_in_a_replica(devices: Devices) -> None:
    """Nothing is in the clear: neither the email, nor names, nor content, in any file beside it."""
    here = devices.here.client
    here.vault("a name of a vault", create=True).collection("a name of a collection").create("a text in a document")
    devices.notes(devices.here).create("a text that waits")
    devices.sync()
    here.change_password(PASSWORD, NEW)
    devices.here.replica.sync()
    devices.notes(devices.here).create("a text that waits still")
    files = [path for path in devices.home.iterdir() if path.name.startswith(Path(devices.here.path).name)]
    written = b"".join(path.read_bytes() for path in files)
    assert b"strongroom replica" in written
    words = [devices.crew.email, devices.crew.email.split("@")[0], "example.com", "a name of", "a text", PASSWORD, NEW]
    for word in words:
        for spelled in (word.encode(), base64.b64encode(word.encode()).rstrip(b"=")[:-1], word.encode("utf-16-le")):
            assert spelled not in written, word
    devices.here.replica.close()
    client = devices.client()
    client.unlock(devices.here.path, NEW)
    assert client._core.email == devices.crew.email


# In a traceback


@pytest.mark.parametrize("at", [1, 20, 40, 70, 1300, 1400])
@pytest.mark.parametrize("how", ["login", "recover", "reload", "rotate", "change", "recovery key"])
def test_a_flipped_bit_of_the_keyring_shows_no_secret(devices: Devices, how: str, at: int) -> None:
    """Password, recovery key, every key and the session's tokens are in no local variable of the traceback."""
    client = devices.here.client
    recovery = client.make_recovery_key(PASSWORD)
    secrets: list[bytes | str] = [PASSWORD, NEW, recovery, recovery[4:], *secrets_of(client)]
    if how in {"login", "recover"}:
        client = devices.client()

    def flip(_wanted: Any, told: Any) -> None:
        if "keyring" in told:
            raw = bytearray(base64.b64decode(told["keyring"]))
            raw[at] ^= 1
            if at == 70:
                raw[65:1249] = bytes(1184)  # every slot: otherwise one of the others opens
            told["keyring"] = base64.b64encode(raw).decode()

    world_of(client).lie = flip
    calls: dict[str, Callable[[], Any]] = {
        "login": lambda: client.login(devices.crew.email, PASSWORD),
        "recover": lambda: client.recover(devices.crew.email, recovery, NEW),
        "reload": client.vaults,
        "rotate": lambda: client.rotate_keys(PASSWORD),
        "change": lambda: client.change_password(PASSWORD, NEW),
        "recovery key": lambda: client.make_recovery_key(PASSWORD),
    }
    with pytest.raises(Refusal) as raised:
        calls[how]()
    if client._core.ring is not None:
        secrets += secrets_of(client)
    assert_hidden(raised.value, secrets)


def test_a_flipped_bit_of_a_document_shows_no_key(devices: Devices) -> None:
    """The same, of the keys below a vault, online and on the disk."""
    notes = devices.here.client.vault("v").collection("notes")
    made = notes.create("one")
    devices.sync()
    secrets = secrets_of(devices.here.client)

    def flip(_wanted: Any, told: Any) -> None:
        if told.get("uid") == made.uid:
            raw = bytearray(base64.b64decode(told["data"]))
            raw[-1] ^= 1
            told["data"] = base64.b64encode(raw).decode()

    devices.here.world.lie = flip
    with pytest.raises(Tampered) as raised:
        notes.get(made.uid)
    assert_hidden(raised.value, secrets)
    file = devices.here.replica._local.file
    row = file.documents.get(made.vault, made.uid)
    assert row is not None
    file.run("UPDATE documents SET data = ? WHERE uid = ?", row.data[:-8] + "AAAAAAA=", made.uid)
    with pytest.raises(Tampered) as raised:
        devices.notes(devices.here).get(made.uid)
    assert_hidden(raised.value, secrets)


def test_a_flipped_bit_of_a_box_shows_no_key(devices: Devices) -> None:
    """Where no proof stands before the box: a blob, and the notice of a deletion."""
    vault = devices.here.client.vault("v")
    vault.blob.put("the blob")
    notes = vault.collection("notes")
    gone = notes.delete(notes.create("one"))
    secrets = secrets_of(devices.here.client)

    def flip(_wanted: Any, told: Any) -> None:
        raw = bytearray(base64.b64decode(told["data"]))
        raw[-1] ^= 1
        told["data"] = base64.b64encode(raw).decode()

    for attempt in (vault.blob.get, lambda: notes.get(gone.uid, deleted=True)):
        client = devices.login()
        assert client.vault("v").uid == vault.uid
        devices.here.client._core.device = client._core.device  # that has seen neither
        devices.here.world.lie = flip
        with pytest.raises(Tampered) as raised:
            attempt()
        assert_hidden(raised.value, secrets)


def test_a_wrong_password_and_a_wrong_token_are_not_shown(devices: Devices) -> None:
    """A mistyped secret is close to the right one."""
    wrong = PASSWORD + "?"
    with pytest.raises(InvalidCredentials) as raised:
        devices.login(wrong)
    assert_hidden(raised.value, [wrong, PASSWORD])
    devices.here.replica.close()
    with pytest.raises(InvalidCredentials) as raised:
        devices.client().unlock(devices.here.path, wrong)
    assert_hidden(raised.value, [wrong, PASSWORD])
    token = devices.there.client.vault("v").token("agent")
    with pytest.raises(Refusal) as refused:
        Client.with_token("http://127.0.0.1:1", token[:-1])
    assert_hidden(refused.value, [token[:-1], *secrets_of(devices.there.client)])


def test_a_refusal_of_the_server_shows_no_token(devices: Devices) -> None:
    """Neither the access token that was sent, nor the one that renews it."""
    notes = devices.here.client.vault("v").collection("notes")
    with pytest.raises(DocumentNotFound) as raised:
        notes.get("0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6")
    assert_hidden(raised.value, secrets_of(devices.here.client))


def test_secrets_have_no_repr() -> None:
    """Nor has what is cut from a key."""
    key, password = SecretBytes(b"key of 12 b."), SecretText("a password")
    assert "key" not in f"{key!r} {key[:3]!r} {[key]}"
    assert (key[:3], key[0]) == (b"key", ord("k"))
    assert "a password" not in f"{password!r} {[password]}"
    assert str(password) == "a password"
