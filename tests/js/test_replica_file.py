"""The file of a TypeScript replica: kills at any moment, one process at a time, damage, and whose file it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import ReadOnlyReplica
from strongroom.errors import Invalid
from tests.kit.clients.devices import Devices
from tests.kit.clients.javascript import run_test
from tests.kit.clients.typescript_devices import MixedCrew, Nodes, TypeScriptDevice
from tests.kit.people.credentials import PASSWORD
from tests.kit.samples import some
from tests.kit.servers.restartable_server import RestartableServer


@pytest.fixture
def devices(nodes: Nodes, tmp_path: Path) -> Iterator[Devices]:
    """A TypeScript device, `here`, and a Python one, in step."""
    server = RestartableServer(str(tmp_path / "vault.db"))
    crew = MixedCrew(server, 2, nodes, lambda number: number == 0)
    made = Devices(server, tmp_path, crew)
    yield made
    with contextlib.suppress(AssertionError):  # its process may have been killed
        made.close()
    crew.close()
    server.close()


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_step_of_a_sync(devices: Devices, *, after: bool) -> None:
    """At a request or a write to the file, in the middle of it or just after: the next sync brings all to one end."""
    here, there = devices.here, devices.there
    for number in range(3):
        devices.notes(there).create(f"first {number}")
    devices.sync()
    expected = {f"first {number}" for number in range(3)}
    killed = 0
    steps = [*range(0, 24, 2), *range(1, 24, 2)]  # requests, then writes
    for step in some("steps of a sync at which it is killed", steps):
        notes, process = devices.notes(here), here.client._node  # type: ignore[attr-defined]
        changed, gone = sorted(notes, key=lambda note: str(note.value))[:2]
        notes.replace(changed, f"{changed.value}+{step}")
        notes.delete(gone)
        notes.create(f"new {step}")
        devices.notes(there).create(f"theirs {step}")
        there.replica.sync()
        expected -= {changed.value, gone.value}
        expected |= {f"{changed.value}+{step}", f"new {step}", f"theirs {step}"}
        here.run(lambda: here.replica.sync(), [], (step, after), PASSWORD)  # noqa: PLW0108 - the replica of then
        killed += here.client._node is not process  # type: ignore[attr-defined]
        assert devices.values() == [sorted(expected)] * 3
    assert killed > 1


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_while_something_is_written(devices: Devices, *, after: bool) -> None:
    """A change that was cut off is not there at all, and one that was written is there; both without a server."""
    notes = devices.notes(devices.here)
    notes.create("before")
    devices.here.run(lambda: notes.create("at the end"), [], (1, after), PASSWORD)
    found = sorted(note.value for note in devices.notes(devices.here))
    assert found == (["at the end", "before"] if after else ["before"])
    devices.notes(devices.here).create("since")
    devices.here.begin_again(PASSWORD)
    assert len(list(devices.notes(devices.here))) == len(found) + 1


def opened(nodes: Nodes, path: Path) -> Any:
    """The file as another process opens it: what it refuses, it refuses before it looks for keys."""
    node = nodes.take()
    try:
        client = node.ask("new", args=("http://127.0.0.1:1", {}))
        return client.unlock(path, PASSWORD)
    finally:
        nodes.give_back(node)


def test_one_process_at_a_time(devices: Devices, nodes: Nodes) -> None:
    """Another process is refused until the first one has closed the file, or was killed."""
    path = Path(devices.here.path)
    with pytest.raises(ReadOnlyReplica):
        opened(nodes, path)
    assert isinstance(devices.here, TypeScriptDevice)
    with pytest.raises(ReadOnlyReplica):
        devices.here.client.unlock(path, PASSWORD)
    assert [note.value for note in devices.notes(devices.here)] == []  # it goes on
    devices.here.replica.close()
    opened(nodes, path)
    devices.here.replica = devices.here._open()
    devices.here.node.kill()
    assert path.with_name(path.name + ".lock").exists()
    opened(nodes, path)
    assert not path.with_name(path.name + ".lock").exists()


def test_a_number_of_a_process_that_is_used_again(devices: Devices, nodes: Nodes) -> None:
    """The lock of a process of before a restart of the machine: another process has its number now."""
    path = Path(devices.here.path)
    devices.here.replica.close()
    lock = path.with_name(path.name + ".lock")
    lock.write_text("1 1")  # process 1 runs, and has begun at another time
    opened(nodes, path)
    lock.write_text(f"1 {Path('/proc/1/stat').read_text().rpartition(') ')[2].split()[19]}")
    with pytest.raises(ReadOnlyReplica):
        opened(nodes, path)


def test_damage_is_told(devices: Devices, nodes: Nodes) -> None:
    """A changed byte before the last line, another file, one that others may read: refused, and left as it is."""
    path = Path(devices.here.path)
    assert path.stat().st_mode & 0o777 == 0o600
    devices.notes(devices.here).create("one")
    devices.here.replica.close()
    whole = path.read_bytes()
    for number in (20, len(whole) // 2):
        damaged = whole[:number] + bytes([whole[number] ^ 1]) + whole[number + 1 :]
        path.write_bytes(damaged)
        with pytest.raises(Invalid, match="not a replica"):
            opened(nodes, path)
        assert path.read_bytes() == damaged
    path.write_bytes(b"something else")
    with pytest.raises(Invalid, match="not a replica"):
        opened(nodes, path)
    assert path.read_bytes() == b"something else"
    path.write_bytes(whole)
    path.chmod(0o640)
    with pytest.raises(Invalid, match="yours alone"):
        opened(nodes, path)
    path.chmod(0o600)
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(Invalid, match="cannot be opened"):
        opened(nodes, path)


def test_every_cut_of_the_last_change_is_met(devices: Devices) -> None:
    """Wherever the end of the file was cut off, the changes before it open."""
    path = Path(devices.here.path)
    notes = devices.notes(devices.here)
    notes.create("kept")
    before = path.stat().st_size
    notes.create("cut off")
    devices.here.replica.close()
    whole = path.read_bytes()
    for cut in some("cuts of the last change", range(before, len(whole), 97)):
        path.write_bytes(whole[:cut])
        devices.here.replica = devices.here._open()
        assert [note.value for note in devices.notes(devices.here)] == ["kept"]
        devices.here.replica.close()
    assert path.stat().st_size == before


def test_a_log_that_has_grown_is_written_anew(devices: Devices) -> None:
    """What was replaced leaves the file, and what is there stays, after a kill too."""
    path = Path(devices.here.path)
    notes = devices.notes(devices.here)
    note = notes.create("x")
    largest = 0
    for number in range(60):
        note = notes.replace(note, f"{number}" * 100_000)
        largest = max(largest, path.stat().st_size)
    assert path.stat().st_size < largest
    devices.here.begin_again(PASSWORD)
    assert devices.get(devices.here, note.uid).value == "59" * 100_000
    assert not path.with_name(path.name + ".part").exists()


def test_faults_of_the_system() -> None:
    """A log whose move is not on disk, and two threads of one process: js/test/replicaFile.test.ts."""
    run_test("replicaFile")
