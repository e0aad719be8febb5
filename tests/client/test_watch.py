"""Watching: a device learns of changes as they happen, or soon after."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Report
from strongroom.client.replica.watch import Events
from tests.kit.clients.factory import ClientFactory
from tests.kit.network.proxy import ABSENT, PASS, Proxy
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server
from tests.kit.waiting import until


class Watcher:
    """A device that watches on a thread."""

    def __init__(self, replica: Any, **options: Any) -> None:
        self.replica = replica
        self.reports: list[Report] = []
        self.trouble: list[BaseException] = []
        self._enough = False
        self._thread = threading.Thread(target=self._watch, kwargs=options, daemon=True)
        self._thread.start()

    def _watch(self, **options: Any) -> None:
        try:
            for report in self.replica.watch(**options):
                self.reports.append(report)
                if self._enough:
                    return
        except BaseException as trouble:  # noqa: BLE001
            self.trouble.append(trouble)

    def values(self) -> list[Any]:
        found = self.replica.vaults()
        return sorted(note.value for note in found[0]) if found else []

    def end(self, notes: Any) -> None:
        """The next change is the last that it hears of."""
        self._enough = True
        notes.create("zzz the end")
        self._thread.join(30)
        assert not self._thread.is_alive()
        assert self.trouble == []


def device(clients: ClientFactory, email: str, url: str | None = None) -> Any:
    client = clients.client(url)
    client.login(email, PASSWORD)
    return client


@pytest.mark.both_languages
def test_changes_come_by_themselves(clients: ClientFactory, tmp_path: Path) -> None:
    """Creates, changes, deletions and new vaults are here soon after they are there."""
    email = unique_email()
    owner = clients.client()
    owner.register(email, PASSWORD)
    notes = owner.vault("v", create=True).collection("notes")
    watcher = Watcher(device(clients, email).open_replica(tmp_path / "replica"), every=5.0)
    first = notes.create("first")
    until(lambda: watcher.values() == ["first"], "the first change")
    notes.create("second")
    notes.delete(first)
    until(lambda: watcher.values() == ["second"], "the second change")
    owner.vault("w", create=True)
    until(lambda: len(watcher.replica.vaults()) == 2, "the new vault")
    watcher.end(notes)


@pytest.mark.both_languages
@pytest.mark.parametrize("vaults", [1, 2])
def test_without_events_it_polls(clients: ClientFactory, tmp_path: Path, proxy: Proxy, vaults: int) -> None:
    """Where the server knows no events, changes come a little later."""
    email = unique_email()
    owner = clients.client()
    owner.register(email, PASSWORD)
    notes = owner.vault("v", create=True).collection("notes")
    for number in range(1, vaults):
        owner.vault(f"v{number}", create=True)
    proxy.policy = lambda _, path: ABSENT if path.endswith("/events") else PASS
    replica = device(clients, email, proxy.url).open_replica(tmp_path / "replica")
    watcher = Watcher(replica, every=0.3)
    notes.create("first")
    until(lambda: any(note.value == "first" for vault in replica.vaults() for note in vault), "the first change")
    watcher.end(notes)


@pytest.mark.parametrize("killed", [False, True])
def test_it_outlives_a_restart(clients: ClientFactory, own_server: Server, tmp_path: Path, *, killed: bool) -> None:
    """A server that goes away and comes back is watched again, also where its stream was cut off."""
    own_server.start()
    own_server.settings["PORT"] = str(own_server.port)
    url = f"http://127.0.0.1:{own_server.port}"
    email = unique_email()
    owner = clients.client(url)
    owner.register(email, PASSWORD)
    notes = owner.vault("v", create=True).collection("notes")
    watcher = Watcher(device(clients, email, url).open_replica(tmp_path / "replica"), every=0.5)
    notes.create("before")
    until(lambda: watcher.values() == ["before"], "the change before")
    own_server.end(signal.SIGKILL if killed else signal.SIGTERM)
    own_server.start()
    notes.create("after")
    until(lambda: watcher.values() == ["after", "before"], "the change after")
    watcher.end(notes)


def test_events_are_read_however_they_are_cut() -> None:
    """One byte at a time gives the same as all at once; comments and unknown events mean nothing."""
    text = b": strongroom\nretry: 2000\n\nid: 5\nevent: ready\ndata: {}\n\n:\n\n"
    text += b"id: 7\r\nevent: document\r\ndata: {}\r\n\r\n"
    text += b"event: end\ndata: {}\n\nid: x\nevent: vault\ndata: {}\n\n"
    expected = [("ready", 5), ("document", 7), ("end", 0), ("vault", 0)]
    assert Events().feed(text) == expected
    slowly = Events()
    assert [event for at in range(len(text)) for event in slowly.feed(text[at : at + 1])] == expected
