"""Values that are too large for the server: refused when they are written, or told, and never stuck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strongroom import errors
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

LIMIT = 20_000


class LimitedDevice:
    """A device of a server with a low limit."""

    def __init__(self, clients: ClientFactory, server: Server, path: Path, limit: int = LIMIT) -> None:
        self._server = server
        self.path = path
        self.limit(limit)
        self.client = clients.client(f"http://127.0.0.1:{server.port}")
        self.client.register(unique_email(), PASSWORD)
        self.vault = self.client.vault("v", create=True)
        self.replica = self.client.open_replica(path)

    def limit(self, limit: int) -> None:
        """Start the server again with another limit."""
        if self._server.port:
            self._server.end()
            self._server.settings["PORT"] = str(self._server.port)
        self._server.settings["MAX_BODY_BYTES"] = str(limit)
        self._server.start()

    @property
    def notes(self) -> Any:
        return self.replica.vault("v").collection("notes")

    def begin_again(self) -> None:
        """Close the replica, and open it again."""
        self.replica.close()
        self.replica = self.client.open_replica(self.path)


def test_what_is_too_large_is_refused_when_it_is_written(
    clients: ClientFactory, own_server: Server, tmp_path: Path
) -> None:
    """Limit and size are in the sentence; the largest value that is not refused is stored, and so is its deletion."""
    device = LimitedDevice(clients, own_server, tmp_path / "replica")
    device.replica.sync()
    note = device.notes.create("small")
    with pytest.raises(
        errors.PayloadTooLarge, match=r"needs a request of \d\d,\d\d\d bytes.* at most 20,000"
    ) as refused:
        device.notes.create(b"x" * LIMIT)
    assert refused.value.details is not None
    assert refused.value.details["limit"] == LIMIT < refused.value.details["size"]
    with pytest.raises(errors.PayloadTooLarge):
        device.notes.replace(note, b"x" * LIMIT)
    assert [found.value for found in device.notes] == ["small"]
    fits, too_long = 0, LIMIT
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        try:
            largest = device.notes.replace(device.notes.get(note.uid), b"x" * middle)
            fits = middle
        except errors.PayloadTooLarge:
            too_long = middle
    assert fits > LIMIT // 2
    largest = device.notes.create(b"x" * fits)
    assert (device.replica.sync().refused, device.replica.pending) == ([], 0)
    device.notes.replace(device.notes.get(largest.uid), b"y" * fits)
    assert device.replica.sync().refused == []
    device.notes.delete(device.notes.get(largest.uid))
    assert (device.replica.sync().refused, device.replica.pending) == ([], 0)
    assert [len(found.value) for found in device.vault.collection("notes")] == [fits]
    device.replica.close()


def test_a_limit_that_is_not_known_yet(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """The server's refusal is told and holds up nothing; the limit is known from then on, also after a restart."""
    device = LimitedDevice(clients, own_server, tmp_path / "replica", 100_000)
    device.replica.sync()
    device.limit(LIMIT)  # lowered since the replica asked
    huge = device.notes.create(b"x" * 30_000)
    for number in range(30):
        device.notes.create(number)
    report = device.replica.sync()
    assert report.pushed == 30
    [change] = report.refused
    assert (change.uid, change.reason.kind, change.reason.limit) == (huge.uid, "payload_too_large", LIMIT)
    assert f"{change.reason.size:,} bytes" in str(change.reason)
    assert "at most 20,000" in str(change.reason)
    device.begin_again()
    with pytest.raises(errors.PayloadTooLarge):
        device.notes.create(b"x" * 30_000)
    assert [change.uid for change in device.replica.refused()] == [huge.uid]
    device.limit(100_000)
    device.begin_again()
    assert device.replica.sync().pushed == 1  # by itself: the limit was raised
    assert device.replica.refused() == []
    device.replica.close()


def test_the_deletion_of_what_is_too_large(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """Of a document that was never stored, nothing is sent; of one that was, a deletion without its content."""
    device = LimitedDevice(clients, own_server, tmp_path / "replica", 100_000)
    device.replica.sync()
    stored = [device.notes.create(b"x" * 30_000) for _ in range(2)]
    device.replica.sync()
    device.limit(LIMIT)
    device.notes.delete(device.notes.get(stored[0].uid))  # with its content: the lower limit is not known yet
    never = device.notes.create(b"x" * 30_000)
    report = device.replica.sync()
    assert (report.pushed, [change.uid for change in report.refused]) == (1, [never.uid])
    device.notes.delete(device.notes.get(stored[1].uid))
    device.notes.delete(device.notes.get(never.uid))
    report = device.replica.sync()
    assert (report.pushed, report.refused, device.replica.pending) == (1, [], 0)
    assert list(device.vault.collection("notes")) == []
    assert [device.notes.get(one.uid, deleted=True).value for one in stored] == [None, None]
    with pytest.raises(errors.DocumentNotFound):
        device.notes.get(never.uid, deleted=True)
    device.replica.close()
