"""Vaults that are made without a server, and sent later."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from strongroom import errors
from strongroom.client import Locked
from tests.kit.clients.factory import ClientFactory
from tests.kit.clients.pair import Pair
from tests.kit.network.proxy import LOSE, PASS, REFUSE, Once, Proxy
from tests.kit.people.credentials import PASSWORD


@pytest.fixture
def pair(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> Iterator[Pair]:
    """Two devices that are in step; the second is behind a proxy."""
    made = Pair(clients, tmp_path, (None, proxy.url))
    yield made
    made.close()


def away(method: str, path: str) -> str:  # noqa: ARG001
    """The policy of a server that cannot be reached."""
    return REFUSE


def values(pair: Pair, device: int, name: str) -> list[str]:
    return sorted(note.value for note in pair.replicas[device].vault(name))


def test_a_vault_is_made_without_a_server(pair: Pair, proxy: Proxy, tmp_path: Path) -> None:
    """It takes documents at once, outlasts a restart, and is on every device after both have synced."""
    replica = pair.replicas[1]
    proxy.policy = away
    with pytest.raises(errors.VaultNotFound):
        replica.vault("trip")
    replica.vault("trip", create=True).collection("notes").create("one")
    replica.close()
    replica = pair.replicas[1] = pair.clients[1].open_replica(tmp_path / "replica-1")
    assert [vault.name for vault in replica.vaults()] == ["v", "trip"]
    replica.vault("trip", create=True).collection("notes").create("two")
    assert values(pair, 1, "trip") == ["one", "two"]
    with pytest.raises(errors.Unavailable):
        replica.sync()
    assert values(pair, 1, "trip") == ["one", "two"]
    proxy.policy = lambda *_: PASS
    report = replica.sync()
    assert (report.pushed, report.renamed_vaults, replica.pending) == (2, [], 0)
    pair.sync()
    assert values(pair, 0, "trip") == ["one", "two"]
    assert len(pair.clients[0].vaults()) == 2


@pytest.mark.both_languages
def test_two_devices_make_vaults_of_one_name(pair: Pair) -> None:
    """The second gets a number and says so; no document of either is lost, or in the other's vault."""
    vaults = [replica.vault("trip", create=True) for replica in pair.replicas]
    for number, vault in enumerate(vaults):
        vault.collection("notes").create(f"of device {number}")
    assert pair.replicas[0].sync().renamed_vaults == []
    report = pair.replicas[1].sync()
    [renamed] = report.renamed_vaults
    assert (renamed.uid, renamed.wanted, renamed.name) == (vaults[1].uid, "trip", "trip (2)")
    assert report.changed
    assert vaults[1].name == "trip (2)"
    vaults[1].collection("notes").create("later")
    pair.sync()
    for device in (0, 1):
        assert values(pair, device, "trip") == ["of device 0"]
        assert values(pair, device, "trip (2)") == ["later", "of device 1"]


@pytest.mark.both_languages
def test_no_name_of_a_vault_lies_in_the_clear(pair: Pair, tmp_path: Path) -> None:
    """Neither the one that a vault has got, nor the one that was wanted, while that is not told yet."""
    for replica in pair.replicas:
        replica.vault("KANARIENVOGEL", create=True).collection("notes").create("one")
    pair.replicas[0].sync()
    [renamed] = pair.replicas[1].sync().renamed_vaults
    assert (renamed.wanted, renamed.name) == ("KANARIENVOGEL", "KANARIENVOGEL (2)")
    files = [path for path in tmp_path.rglob("replica-1*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) > 1000
    assert not [path.name for path in files if b"KANARIENVOGEL" in path.read_bytes()]


def test_names_that_an_earlier_release_has_kept_are_sealed(pair: Pair, tmp_path: Path) -> None:
    """They lie in the file in the clear: when it is opened, they are sealed and erased; the next report tells them."""
    path = tmp_path / "replica-1"
    pair.replicas[1].close()
    told = '[{"uid":"u","wanted":"KANARIENVOGEL","name":"KANARIENVOGEL (2)"}]'
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO facts (name, value) VALUES ('renamed vaults', ?)", (told,))
    assert b"KANARIENVOGEL" in path.read_bytes()
    replica = pair.replicas[1] = pair.clients[1].open_replica(path)
    [renamed] = replica.sync().renamed_vaults
    assert (renamed.uid, renamed.wanted, renamed.name) == ("u", "KANARIENVOGEL", "KANARIENVOGEL (2)")
    replica.close()
    assert b"KANARIENVOGEL" not in path.read_bytes()


def test_a_new_name_is_told_after_a_kill(pair: Pair, proxy: Proxy, tmp_path: Path) -> None:
    """By the next program, whether the kill came before the report or after it; a program that closes has heard it."""

    def opened_again() -> Any:
        pair.replicas[1] = pair.clients[1].open_replica(tmp_path / "replica-1")
        return pair.replicas[1]

    def renamed(replica: Any) -> list[str]:
        return [one.name for one in replica.sync().renamed_vaults]

    for replica in pair.replicas:
        replica.vault("trip", create=True).collection("notes").create("one")
    pair.replicas[0].sync()
    proxy.policy = lambda _, path: REFUSE if path.endswith("/batch") else PASS
    with pytest.raises(errors.Unavailable):
        pair.replicas[1].sync()  # the vault is made and pulled by now
    pair.replicas[1].close()
    proxy.policy = lambda *_: PASS
    replica = opened_again()
    assert renamed(replica) == ["trip (2)"]
    getattr(replica, "_thing", replica)._local.file.close()  # as a kill leaves it
    replica = opened_again()
    assert renamed(replica) == ["trip (2)"]
    assert renamed(replica) == []
    replica.close()
    assert renamed(opened_again()) == []


def test_a_name_that_another_program_uses(pair: Pair, proxy: Proxy) -> None:
    """A vault whose name is not sealed, and that is in no directory, does not stop the sync."""
    session = pair.clients[0]._core.session if hasattr(pair.clients[0], "_core") else None
    session = session or pair.clients[0]._thing._core.session

    headers = {"Authorization": f"Bearer {session._access!s}"}
    httpx2.post(f"{proxy.url}/vault", json={"name": "plain"}, headers=headers).raise_for_status()
    pair.replicas[1].vault("plain", create=True, sealed=False).collection("notes").create("mine")
    [renamed] = pair.replicas[1].sync().renamed_vaults
    assert renamed.name == "plain (2)"
    pair.sync()
    assert values(pair, 0, "plain (2)") == ["mine"]


@pytest.mark.both_languages
@pytest.mark.parametrize("fate", [LOSE, REFUSE])
def test_lost_requests_make_one_vault(pair: Pair, proxy: Proxy, fate: str) -> None:
    """Whatever gets lost on the way, there is one vault in the end, with its document."""
    pair.replicas[1].vault("trip", create=True).collection("notes").create("one")
    proxy.policy = Once(fate)
    for _ in range(12):
        try:
            pair.replicas[1].sync()
            break
        except errors.Unavailable:
            continue
    pair.sync()
    assert [sorted(vault.name for vault in replica.vaults()) for replica in pair.replicas] == [["trip", "v"]] * 2
    assert values(pair, 0, "trip") == ["one"]
    assert len(pair.clients[0].vaults()) == 2


def test_an_interrupted_sync_goes_on(pair: Pair, proxy: Proxy, tmp_path: Path) -> None:
    """A program that ends between any two requests of making a vault finishes it the next time."""
    replica = pair.replicas[1]
    replica.vault("trip", create=True).collection("notes").create("one")
    for left in range(40):
        count = 0

        def cut(method: str, _: str, left: int = left) -> str:
            nonlocal count
            count += 1
            return LOSE if count > left and method != "GET" else PASS

        proxy.policy = cut
        client = pair.clients[1]
        try:
            replica.sync()
            break
        except errors.Unavailable:
            assert values(pair, 1, "trip") == ["one"]
        replica.close()
        replica = pair.replicas[1] = client.open_replica(tmp_path / "replica-1")
    proxy.policy = lambda *_: PASS
    pair.sync()
    assert [values(pair, device, "trip") for device in (0, 1)] == [["one"], ["one"]]
    assert len(pair.clients[0].vaults()) == 2


@pytest.mark.both_languages
def test_the_directory_changes_while_a_vault_is_sent(pair: Pair, proxy: Proxy) -> None:
    """Another device makes a vault of this name just before: the keyring is read again, and the name is another."""
    pair.replicas[1].vault("trip", create=True).collection("notes").create("mine")
    todo = [lambda: pair.clients[0].vault("trip", create=True).collection("notes").create("theirs")]

    def quicker(method: str, path: str) -> str:
        if method == "PUT" and path == "/auth/keyring" and todo:
            todo.pop()()
        return PASS

    proxy.policy = quicker
    [renamed] = pair.replicas[1].sync().renamed_vaults
    assert (todo, renamed.name) == ([], "trip (2)")
    pair.sync()
    assert [values(pair, 0, name) for name in ("trip", "trip (2)")] == [["theirs"], ["mine"]]


@pytest.mark.both_languages
def test_a_rotation_before_a_vault_is_sent(pair: Pair, clients: ClientFactory, tmp_path: Path) -> None:
    """The keys of the account are replaced on another device: what was written under the old ones is sent."""
    pair.replicas[1].vault("trip", create=True).collection("notes").create("one")
    pair.replicas[1].close()
    pair.clients[0].rotate_keys(PASSWORD)
    device = clients.client()
    device.login(pair.email, PASSWORD)
    pair.replicas[1] = device.open_replica(tmp_path / "replica-1")
    assert values(pair, 1, "trip") == ["one"]
    assert pair.replicas[1].sync().pushed == 1
    pair.replicas[0].sync()
    assert values(pair, 0, "trip") == ["one"]


@pytest.mark.both_languages
def test_a_vault_that_is_deleted_before_its_documents_come(pair: Pair, proxy: Proxy) -> None:
    """They are refused, and can be moved; the vault is not made again."""
    pair.replicas[1].vault("trip", create=True).collection("notes").create("one")
    todo = [lambda: pair.clients[0].vault("trip").delete()]

    def quicker(_: str, path: str) -> str:
        if path.endswith("/batch") and todo:
            todo.pop()()
        return PASS

    proxy.policy = quicker
    [change] = pair.replicas[1].sync().refused
    assert (change.vault_name, change.reason.kind) == ("trip", "vault_deleted")
    change.move_to(pair.notes[1])
    pair.sync()
    assert pair.values() == [["one"], ["one"]]
    assert [vault.name for vault in pair.replicas[1].vaults()] == ["v"]


@pytest.mark.both_languages
def test_a_vault_that_the_server_refuses(pair: Pair, proxy: Proxy) -> None:
    """What waits in it is told; everything else is synced, and a later sync makes the vault."""
    pair.replicas[1].vault("trip", create=True).collection("notes").create("one")
    pair.notes[1].create("other")
    proxy.policy = lambda method, path: "409 import_unfinished" if (method, path) == ("POST", "/vault") else PASS
    report = pair.replicas[1].sync()
    [change] = report.refused
    assert (change.vault_name, change.reason.kind, report.pushed) == ("trip", "import_unfinished", 1)
    proxy.policy = lambda *_: PASS
    assert (pair.replicas[1].sync().pushed, pair.replicas[1].refused()) == (1, [])


def test_who_can_make_a_vault(pair: Pair, clients: ClientFactory, tmp_path: Path) -> None:
    """A token cannot; a name that no vault can have is refused at once."""
    agent = clients.with_token(pair.clients[0].vault("v").token("agent"))
    replica = agent.open_replica(tmp_path / "agent")
    replica.sync()
    with pytest.raises((Locked, errors.VaultNotFound)):
        replica.vault("trip", create=True)
    replica.close()
    for name in ("", "sr2.x", "x" * 200):
        with pytest.raises(errors.Invalid):
            pair.replicas[1].vault(name, create=True)
    assert [vault.name for vault in pair.replicas[1].vaults()] == ["v"]
