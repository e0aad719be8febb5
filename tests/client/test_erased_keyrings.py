"""A keyring that was replaced is in no file of a replica: what opened it opens nothing there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client, InvalidCredentials
from strongroom.client.replica.store import database
from tests.kit.clients.devices import Devices
from tests.kit.network.unreliable_network import ReplicaDevice
from tests.kit.people.credentials import PASSWORD

CHANGES: dict[str, Callable[[Client], Any]] = {
    "a recovery key": lambda client: client.make_recovery_key(PASSWORD),
    "a rotation": lambda client: client.rotate_keys(PASSWORD),
    "a rotation with a new password": lambda client: client.rotate_keys(PASSWORD, new_password=NEW),
    "a deleted vault": lambda client: client.vault("v").delete(),
}
NEW = "another horse, another staple"
_PIECE = 32  # characters of a keyring that are searched for
_HEAD = 88  # characters of its head that name the account, the version and the keyring before


def slots(sealed: str) -> set[str]:
    """Pieces of the slots and the body of a keyring."""
    return {sealed[at : at + _PIECE] for at in range(_HEAD, len(sealed) - _PIECE, _PIECE)}


def files_of(device: ReplicaDevice) -> list[Path]:
    """All files of a replica."""
    path = Path(device.path)
    return [one for one in path.parent.iterdir() if one.is_file() and one.name.startswith(path.name)]


def remains(device: ReplicaDevice, sealed: str, now: str = "") -> list[str]:
    """The files in which something of a keyring is that is not in the present one."""
    whole = {file.name: file.read_bytes() for file in files_of(device)}
    pieces = [piece.encode() for piece in slots(sealed) - slots(now)]
    return [name for name, raw in whole.items() if any(piece in raw for piece in pieces)]


def copied(device: ReplicaDevice, to: Path) -> Path:
    """A copy of a replica's files, as a thief takes them."""
    to.mkdir()
    for file in files_of(device):
        shutil.copy(file, to / file.name)
    (to / f"{Path(device.path).name}.lock").unlink(missing_ok=True)
    return to / Path(device.path).name


def kept(devices: Devices) -> str:
    """The keyring as the server has it, which a device holds."""
    sealed = devices.stored_keyring()[0]
    assert remains(devices.here, sealed), "the search finds what is there"
    return sealed


def end(device: ReplicaDevice, how: str) -> None:
    """Leave the files as somebody finds them: the client runs, was killed, or was closed."""
    if how == "closed":
        device.replica.close()
    elif how == "killed":
        getattr(device, "end_process", lambda: None)()  # of SQLite, a copy of open files is what a kill leaves


@pytest.mark.both_languages
@pytest.mark.parametrize("how", ["open", "killed", "closed"])
def test_a_former_password_opens_nothing_in_the_files(devices: Devices, tmp_path: Path, how: str) -> None:
    """Copied while the client runs, after a kill and after a close: no byte of the previous keyring is there."""
    here = devices.here
    before = kept(devices)
    here.client.change_password(PASSWORD, NEW)
    end(here, how)
    assert remains(here, before) == []
    stolen = copied(here, tmp_path / "stolen")
    if how == "killed" and hasattr(here, "end_process"):
        here.begin_again(NEW)
    with pytest.raises(InvalidCredentials):
        devices.client().unlock(stolen, PASSWORD)
    devices.client().unlock(stolen, NEW)


@pytest.mark.both_languages
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_keys_erases_the_previous_keyring(devices: Devices, change: str) -> None:
    """On the device that makes it, and on the other one when it learns of it."""
    before = kept(devices)
    CHANGES[change](devices.here.client)
    now = devices.stored_keyring()[0]
    assert remains(devices.here, before, now) == []
    if change != "a deleted vault":  # the session of the other device has ended, or it needs the new keys
        devices.there.client.login(devices.crew.email, NEW if "password" in change else PASSWORD)
        devices.there.replica = devices.there._open()
    devices.there.replica.sync()
    assert remains(devices.there, before, now) == []


@pytest.mark.both_languages
def test_no_keyring_of_many_stays(devices: Devices) -> None:
    """Small and large ones, whose pages are split and joined."""
    seen = []
    for number in range(12):
        seen.append(kept(devices))
        devices.here.client.vault(f"{number} {'x' * 90}", create=True)
        seen.append(kept(devices))
        old, new = (PASSWORD, NEW) if number % 2 == 0 else (NEW, PASSWORD)
        devices.here.client.change_password(old, new)
    assert [remains(devices.here, one) for one in seen] == [[]] * len(seen)


def test_a_log_that_a_kill_left_is_truncated_at_the_next_start(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends after the commit and before the log is truncated; so it does where somebody reads just then."""
    before = kept(devices)
    with monkeypatch.context() as patch:
        patch.setattr(database, "truncate_log", lambda _db: False)
        devices.here.client.change_password(PASSWORD, NEW)
        assert remains(devices.here, before) == [f"{Path(devices.here.path).name}-wal"]
    devices.notes(devices.here).create("the next transaction tries again")
    assert remains(devices.here, before) == []


def test_a_file_that_a_kill_left_is_erased_by_whoever_opens_it(
    devices: Devices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy of the open files is what a kill leaves."""
    before = kept(devices)
    with monkeypatch.context() as patch:
        patch.setattr(database, "truncate_log", lambda _db: False)
        devices.here.client.change_password(PASSWORD, NEW)
        left = copied(devices.here, tmp_path / "left")
    database.Database(left).close()
    raw = b"".join(one.read_bytes() for one in left.parent.iterdir())
    assert not any(piece.encode() in raw for piece in slots(before))


@pytest.mark.parametrize("devices", ["TypeScript here"], indirect=True)
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("after", [False, True])
def test_a_log_of_changes_that_a_kill_left_is_written_again(devices: Devices, step: int, *, after: bool) -> None:
    """The process ends in the write of the new keyring, or while the log is written again, or just after either."""
    before, here = kept(devices), devices.here
    is_kept = step > 1 or after
    here.run(lambda: here.client.change_password(PASSWORD, NEW), [], (step, after), NEW if is_kept else PASSWORD)
    assert bool(remains(here, before)) is not is_kept
