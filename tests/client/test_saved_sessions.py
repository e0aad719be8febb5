"""Sessions that last: a program that resumes one needs no password, and nobody is logged out by a kill or a twin."""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from strongroom import errors
from strongroom.client import Client, Locked, RolledBack
from strongroom.client.operations.own_files import FileLock
from strongroom.client.operations.session_file import SessionFile
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import PythonClientFactory
from tests.kit.clients.secrets import assert_hidden, secrets_of
from tests.kit.network.unreliable_network import Crash, World
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.process import Server
from tests.kit.servers.restartable_server import RestartableServer
from tests.kit.waiting import until

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
NEW = "another horse, another staple"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a session is saved: a folder of one's own."""
    folder = tmp_path / "own"
    folder.mkdir(0o700)
    return folder / "session"


class Program:
    """A program that has resumed a session, on a network of its own."""

    def __init__(self, devices: Devices, path: Path) -> None:
        self.client = Client.resume(path)
        self.world = World(devices.server, [])
        self.client._driver = self.world

    def count(self) -> int:
        """Something that needs the session and the keys."""
        return len(self.client.vaults())

    def refreshes(self) -> int:
        return sum(request.path == "/auth/refresh" for request in self.world.sent)


@pytest.fixture
def saved(tmp_path: Path, path: Path) -> Iterator[Devices]:
    """A session that is saved; tokens have their usual lives, and the clock is in the test's hand."""
    server = RestartableServer(str(tmp_path / "vault.db"), jwt_access_expiry="15m", jwt_refresh_expiry="30d")
    devices = Devices(server, tmp_path)
    devices.login().save_session(path)
    yield devices
    devices.close()
    server.close()


# Save and resume


def test_a_session_is_resumed_without_the_password(clients: PythonClientFactory, path: Path) -> None:
    """With tokens, keys and names; the file is its owner's alone and shows nothing."""
    client = clients.person()
    client.vault("a name of a vault", create=True).collection("notes").create("one")
    email = client._core.email
    client.save_session(path)
    tokens = [str(client._core.session._access), str(client._core.session._refresh)]
    client.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    raw = path.read_bytes()
    assert not any(word.encode() in raw for word in ("a name of", email, PASSWORD, "127.0.0.1", *tokens))
    again = clients.resume(path)
    notes = again.vault("a name of a vault").collection("notes")
    assert [note.value for note in notes] == ["one"]
    notes.create("two")
    assert repr(again._core.session.saved) == "SavedSession(...)"
    assert email not in repr(again._core.session.saved._file)


def test_a_resumed_session_refreshes_its_tokens(clients: PythonClientFactory, own_server: Server, path: Path) -> None:
    """The file has the newest tokens at each moment: a program that ends without a word is followed by another."""
    own_server.settings["JWT_ACCESS_EXPIRY"] = "1s"
    own_server.start()
    client = clients.client(f"http://127.0.0.1:{own_server.port}")
    client.register("person@example.com", PASSWORD)
    client.save_session(path)
    for _ in range(2):
        client = clients.resume(path, email=" Person@example.com")
        before = client._core.session._access

        def refreshed(client: Any = client, before: Any = before) -> bool:
            return bool(client.vaults() == [] and client._core.session._access != before)

        until(refreshed, "a token to run out", 30)


def test_lock_forgets_and_logout_deletes(clients: PythonClientFactory, path: Path) -> None:
    """After `lock` the file is resumed again; after `logout` it is gone, and so is the session."""
    client = clients.person()
    client.save_session(path)
    client.lock()
    assert client._core.ring is None
    assert client._core.session._refresh is None
    with pytest.raises(Locked):
        client.vaults()
    client = clients.resume(path)
    copy = path.read_bytes()
    client.logout()
    assert not path.exists()
    with pytest.raises(Locked, match="There is no saved session at session; log in"):
        clients.resume(path)
    path.touch(0o600)
    path.write_bytes(copy)
    with pytest.raises(errors.InvalidRefreshToken, match="log in again"):
        clients.resume(path).vaults()


def test_the_file_goes_with_the_account(clients: PythonClientFactory, path: Path) -> None:
    """A deleted account has no session."""
    client = clients.person()
    client.save_session(path)
    client.delete_account(PASSWORD)
    assert not path.exists()


def test_a_session_that_was_unlocked_offline_is_saved_when_it_is_open(
    clients: PythonClientFactory, path: Path, tmp_path: Path
) -> None:
    """There is nothing to save before the server has opened one."""
    client = clients.person()
    client.open_replica(tmp_path / "replica").close()
    other = clients.client()
    other.unlock(tmp_path / "replica", PASSWORD)
    other.save_session(path)
    assert clients.resume(path).vaults() == []


def test_who_has_nothing_saves_nothing(clients: PythonClientFactory, path: Path) -> None:
    """Neither a client without a login nor one of a token."""
    with pytest.raises(Locked):
        clients.client().save_session(path)
    token = clients.person().vault("v", create=True).token("agent")
    with pytest.raises(Locked, match="A token is no session"):
        clients.with_token(token).save_session(path)
    assert not path.exists()


# Refresh tokens


@pytest.mark.parametrize("later", [0, 40 * 1000, DAY])
@pytest.mark.parametrize("when", ["before the request", "before it is saved", "after"])
def test_a_kill_during_a_refresh_logs_nobody_out(
    saved: Devices, path: Path, monkeypatch: pytest.MonkeyPatch, when: str, later: int
) -> None:
    """Between the server's new token and the file, or on either side of it; within the server's grace and after it."""
    for _ in range(3):
        saved.server.clock.pass_(20 * MINUTE)
        program = Program(saved, path)
        with monkeypatch.context() as patch:
            if when == "before the request":
                program.world.left = 2
            elif when == "before it is saved":
                patch.setattr(SessionFile, "write", _crash)
            else:
                patch.setattr(SessionFile, "write", _crash_after(SessionFile.write))
            with pytest.raises(Crash):
                program.count()
        saved.server.clock.pass_(later)
        assert Program(saved, path).count() == 1


def _crash(*_: Any) -> None:
    raise Crash


def _crash_after(write: Any) -> Callable[..., None]:
    def crash(*given: Any) -> None:
        write(*given)
        raise Crash

    return crash


def test_two_programs_share_a_session(saved: Devices, path: Path) -> None:
    """Each takes the tokens that the other has got: no token is used that another has outlived."""
    one, two = Program(saved, path), Program(saved, path)
    for _ in range(4):
        for program in (one, two, two, one):
            saved.server.clock.pass_(20 * MINUTE)
            assert program.count() == 1
        saved.server.clock.pass_(20 * MINUTE)
        assert (one.count(), two.count()) == (1, 1)
    assert one.refreshes() + two.refreshes() == 20
    assert Program(saved, path).count() == 1


def test_programs_that_refresh_at_the_same_time(own_server: Server, path: Path) -> None:
    """Threads with clients of their own stand for processes: the lock is that of the operating system."""
    own_server.settings["JWT_ACCESS_EXPIRY"] = "1s"
    own_server.start()
    with Client(f"http://127.0.0.1:{own_server.port}") as client:
        client.register("person@example.com", PASSWORD)
        client.save_session(path)
    clients = [Client.resume(path) for _ in range(4)]

    def refreshed(client: Client) -> bool:
        before = client._core.session._refresh
        until(lambda: client.vaults() == [] and client._core.session._refresh != before, "a refresh", 60)
        return True

    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            assert all(threads.map(refreshed, clients))
    for one in clients:
        one.close()
    with Client.resume(path) as client:
        assert client.vaults() == []


def test_tokens_that_cannot_be_saved_are_not_used(saved: Devices, path: Path) -> None:
    """The error says so; when the disk is well again, the session goes on."""
    program = Program(saved, path)
    saved.server.clock.pass_(20 * MINUTE)
    path.with_name("session.part").mkdir()
    for _ in range(2):
        with pytest.raises(errors.Invalid, match="path cannot be written: session: ") as raised:
            program.count()
        assert_hidden(raised.value, secrets_of(program.client))
        saved.server.clock.pass_(MINUTE)
    path.with_name("session.part").rmdir()
    assert program.count() == 1
    assert Program(saved, path).count() == 1


def test_the_lock_of_a_killed_program_is_free(path: Path) -> None:
    """The operating system releases it."""
    code = (
        "import sys, time; from pathlib import Path\n"
        "from strongroom.client.operations.own_files import FileLock\n"
        "held = FileLock.take(Path(sys.argv[1])); print(held is not None, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "True\n"
            assert FileLock.take(path) is None
        finally:
            process.send_signal(signal.SIGKILL)
    held = FileLock.take(path)
    assert held is not None
    assert FileLock.take(path) is None
    held.release()


# How sessions end


def test_a_session_that_has_ended_says_so(saved: Devices, path: Path) -> None:
    """By another device, by another password, by time: the sentence says to log in again."""
    other = saved.login()
    program = Program(saved, path)
    [mine] = [one.id for one in program.client.sessions() if one.current]
    other.end_session(mine)
    with pytest.raises(errors.InvalidRefreshToken, match=r"has ended: .*; log in again\."):
        program.count()
    saved.login().save_session(path)
    other.change_password(PASSWORD, NEW)
    with pytest.raises(errors.InvalidRefreshToken, match="the password was changed; log in again"):
        Program(saved, path).count()
    other.save_session(path)
    saved.server.clock.pass_(400 * DAY)
    with pytest.raises(errors.InvalidRefreshToken, match="it expired"):
        Program(saved, path).count()


def test_a_logout_of_another_program_is_told(saved: Devices, path: Path) -> None:
    """The file is gone: that is what the other program says, and it writes none."""
    one, two = Program(saved, path), Program(saved, path)
    one.client.logout()
    with pytest.raises(errors.InvalidRefreshToken, match="The saved session is gone"):
        two.count()
    two.client.lock()
    assert not path.exists()


def test_keys_that_were_rotated_elsewhere(saved: Devices, path: Path) -> None:
    """The saved keys are those of before; the sentence says to log in again."""
    saved.login().rotate_keys(PASSWORD)
    program = Program(saved, path)
    with pytest.raises(Locked, match="keys were rotated on another device; log in again"):
        program.count()


def test_what_the_program_itself_changes_is_saved(saved: Devices, path: Path) -> None:
    """New keys, a new password, a new vault: the file has them before anything else happens."""
    program = Program(saved, path)
    program.client.vault("another", create=True)
    assert len(Program(saved, path).client._core.keyring().vaults) == 2
    program.client.rotate_keys(PASSWORD, new_password=NEW)
    again = Program(saved, path)
    assert again.count() == 2
    assert again.client._core.keyring().generation == 2


# What the device has seen


def test_what_was_seen_is_remembered(saved: Devices, path: Path) -> None:
    """An older version of a document and an older list of vaults are refused after a resume too."""
    notes = saved.here.client.vault("v").collection("notes")
    note = notes.create("one")
    program = Program(saved, path)
    shown: dict[str, Any] = {}

    def record(wanted: Any, told: Any) -> None:
        shown[wanted.path] = json.loads(json.dumps(told))

    program.world.lie = record
    assert program.count() == 1
    program.client.vault("v").collection("notes").get(note.uid)
    program.world.lie = None
    notes.replace(note, "two")
    assert program.client.vault("v").collection("notes").get(note.uid).value == "two"
    program.client.vault("another", create=True)
    program.client.lock()

    def lying(ending: str) -> Client:
        def older(wanted: Any, told: Any) -> None:
            if wanted.path.endswith(ending):
                told.clear()
                told.update(shown[wanted.path])

        again = Program(saved, path)
        again.world.lie = older
        return again.client

    with pytest.raises(RolledBack):
        lying(note.uid).vault("v").collection("notes").get(note.uid)
    with pytest.raises(RolledBack):
        lying("/auth/keyring").vaults()
    assert Program(saved, path).count() == 2


def test_programs_do_not_forget_for_each_other(saved: Devices, path: Path) -> None:
    """What either has seen is in the file, whoever saves last."""
    notes = saved.here.client.vault("v").collection("notes")
    note = notes.create("one")
    early = Program(saved, path)
    early.client.vault("v").collection("notes").get(note.uid)
    notes.replace(note, "two")
    late = Program(saved, path)
    late.client.vault("v").collection("notes").get(note.uid)
    late.client.lock()
    early.client.vault("another", create=True)
    early.client.lock()
    device = Client.resume(path)._core.device
    known = device.known(note.vault, note.uid)
    assert known is not None
    assert known.row.version == 2


def test_a_restore_that_was_mended_is_saved(saved: Devices, path: Path, tmp_path: Path) -> None:
    """What a replica has compared with a restored server takes the place of what was seen before."""
    program = Program(saved, path)
    replica = program.client.open_replica(tmp_path / "replica")
    notes = program.client.vault("v").collection("notes")
    note = notes.create("one")
    replica.sync()
    saved.server.backup()
    notes.replace(note, "two")
    replica.sync()
    saved.server.restore()
    replica.sync()
    assert notes.get(note.uid).value == "two"
    program.client.lock()
    again = Program(saved, path)
    assert again.client.vault("v").collection("notes").get(note.uid).value == "two"


def test_a_new_login_keeps_what_an_earlier_one_has_seen(saved: Devices, path: Path) -> None:
    """The session is another, the account the same."""
    note = saved.here.client.vault("v").collection("notes").create("one")
    program = Program(saved, path)
    program.client.vault("v").collection("notes").get(note.uid)
    program.client.lock()
    saved.login().save_session(path)
    assert Client.resume(path)._core.device.known(note.vault, note.uid) is not None


# Files that are refused


def damage(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        told = json.loads(path.read_bytes())
        change(told)
        path.write_text(json.dumps(told))

    return apply


def flipped(name: str, at: int) -> Callable[[Path], None]:
    def change(told: dict[str, Any]) -> None:
        raw = bytearray(base64.urlsafe_b64decode(told[name] + "=="))
        raw[at] ^= 1
        told[name] = base64.urlsafe_b64encode(raw).decode().rstrip("=")

    return damage(change)


def cut(length: int) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        path.write_bytes(path.read_bytes()[:length])

    return apply


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (flipped("sealed", 0), "path is damaged, or was changed: session. Log in again"),
        (flipped("sealed", 40), "path is damaged, or was changed: session."),
        (flipped("sealed", -1), "path is damaged, or was changed: session."),
        (flipped("key", 0), "path is damaged, or was changed: session."),
        (damage(lambda told: told.update(key="short")), "path is damaged, or was changed: session."),
        (damage(lambda told: told.update(id="another")), "path is damaged, or was changed: session."),
        (damage(lambda told: told.update(sealed="")), "path is damaged, or was changed: session."),
        (damage(lambda told: told.update(sealed=5)), "path is not a session file, or was cut off: session."),
        (damage(lambda told: told.update(format="strongroom session 1")), "path is a session file of another release"),
        (damage(lambda told: told.update(format="x")), "path is not a session file, or was cut off: session."),
        (cut(0), "path is not a session file, or was cut off: session. It was not changed."),
        (cut(100), "path is not a session file, or was cut off: session. It was not changed."),
        (cut(-1), "path is not a session file, or was cut off: session. It was not changed."),
        (lambda path: path.chmod(0o640), "path can be read by others (mode 640): session."),
        (lambda path: path.chmod(0o604), "path can be read by others (mode 604): session."),
        (lambda path: path.parent.chmod(0o777), "path is in a folder in which others can replace it"),
        (lambda path: path.parent.chmod(0o770), "path is in a folder in which others can replace it"),
        (linked, "path is a symbolic link; name the file itself: session."),
        (folder, "path is a folder or another thing that is not a file: session."),
    ],
)
def test_a_file_that_is_not_right_is_refused(
    clients: PythonClientFactory, path: Path, change: Callable[[Path], None], said: str
) -> None:
    """Altered, cut, or where others reach it: a sentence says so, no secret is shown, and it is not overwritten."""
    client = clients.person()
    client.save_session(path)
    secrets = secrets_of(client)
    change(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(errors.Invalid) as raised:
        clients.resume(path)
    assert str(raised.value).startswith(said)
    assert_hidden(raised.value, secrets)
    with pytest.raises(errors.Invalid):
        client.save_session(path)
    assert before == (path.read_bytes() if path.is_file() else b"")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(clients: PythonClientFactory, path: Path) -> None:
    """Somebody may have put it there."""
    clients.person().save_session(path)
    os.chown(path, 12345, 12345)
    with pytest.raises(errors.Invalid, match="belongs to another user of this machine"):
        clients.resume(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(clients: PythonClientFactory, path: Path) -> None:
    """Its owner can replace the file at any time."""
    clients.person().save_session(path)
    os.chown(path.parent, 12345, 12345)
    with pytest.raises(errors.Invalid, match="in a folder in which others can replace it"):
        clients.resume(path)


def test_the_session_of_another_account_is_refused(clients: PythonClientFactory, path: Path) -> None:
    """It is not overwritten; and not resumed by a program that says whose it wants."""
    mallory, client = clients.person(), clients.person()
    mallory.save_session(path)
    before = path.read_bytes()
    with pytest.raises(errors.Invalid, match="path holds the session of another account: session"):
        client.save_session(path)
    assert path.read_bytes() == before
    with pytest.raises(errors.Invalid, match="path holds the session of another account: session"):
        clients.resume(path, email=client._core.email)
    clients.resume(path, email=mallory._core.email)


def test_another_file_is_not_overwritten(clients: PythonClientFactory, path: Path) -> None:
    """A path that was mistyped may name a file of value."""
    path.touch(0o600)
    path.write_text("a text")
    with pytest.raises(errors.Invalid, match="is not a session file"):
        clients.person().save_session(path)
    assert path.read_text() == "a text"
    with pytest.raises(errors.Invalid, match="is in a folder that cannot be used"):
        clients.person().save_session(path / "below" / "session")


# The operating system's keyring


class Keyring(types.ModuleType):
    """The three functions of the package `keyring`; `down` makes them fail as its backends do."""

    def __init__(self) -> None:
        super().__init__("keyring")
        self.entries: dict[tuple[str, str], str] = {}
        self.down = False

    def _check(self) -> None:
        if self.down:
            raise RuntimeError("the keyring is locked")

    def set_password(self, service: str, name: str, password: str) -> None:
        self._check()
        self.entries[service, name] = str(password)

    def get_password(self, service: str, name: str) -> str | None:
        self._check()
        return self.entries.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        self._check()
        del self.entries[service, name]


@pytest.fixture
def system_keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Keyring]:
    """A keyring of the operating system."""
    made = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", made)
    return made


def test_the_key_lies_in_the_keyring(clients: PythonClientFactory, path: Path, system_keyring: Keyring) -> None:
    """The file alone opens nothing: not on another device, and not after a logout."""
    client = clients.person()
    client.save_session(path, keyring="notes app")
    [((service, _), key)] = system_keyring.entries.items()
    assert service == "notes app"
    assert json.loads(path.read_bytes())["key"] is None
    assert key not in path.read_text()
    assert clients.resume(path).vaults() == []
    kept = dict(system_keyring.entries)
    system_keyring.entries.clear()
    with pytest.raises(errors.Invalid, match="path has no key in this keyring: it was copied from another device"):
        clients.resume(path)
    system_keyring.entries.update(kept)
    client.save_session(path, keyring="notes app")  # with another key, and the old one is gone
    assert len(system_keyring.entries) == 1
    assert system_keyring.entries != kept
    clients.resume(path).logout()
    assert system_keyring.entries == {}


def test_without_its_key_a_file_opens_with_the_password_or_not_at_all(clients: PythonClientFactory, path: Path) -> None:
    """A file that names no key is one that needs the password; what was sealed otherwise does not open with it."""
    client = clients.person()
    client.save_session(path)
    damage(lambda told: told.update(key=None))(path)
    with pytest.raises(Locked, match="opens with the password: unlock its replica"):
        clients.resume(path)


def test_a_file_is_not_opened_with_the_key_of_another(
    clients: PythonClientFactory, path: Path, system_keyring: Keyring
) -> None:
    """Two files whose contents were exchanged."""
    other = path.with_name("other")
    clients.person().save_session(path, keyring="notes app")
    clients.person().save_session(other, keyring="notes app")
    told, theirs = json.loads(path.read_bytes()), json.loads(other.read_bytes())
    path.write_text(json.dumps(told | {"sealed": theirs["sealed"]}))
    with pytest.raises(errors.Invalid, match="is damaged, or was changed"):
        clients.resume(path)
    assert len(system_keyring.entries) == 2


def test_a_keyring_that_cannot_be_used(clients: PythonClientFactory, path: Path, system_keyring: Keyring) -> None:
    """It is locked, or its package is not there: a sentence says so, and nothing is left behind."""
    client = clients.person()
    system_keyring.down = True
    with pytest.raises(errors.Invalid, match="keyring of this machine cannot be used: RuntimeError"):
        client.save_session(path, keyring="notes app")
    system_keyring.down = False
    for service, said in [("", "keyring must be a name"), (5, "keyring must be a text")]:
        with pytest.raises(errors.Invalid, match=said):
            client.save_session(path, keyring=service)
    path.touch(0o600)
    path.write_text("something else")
    with pytest.raises(errors.Invalid, match="is not a session file"):
        client.save_session(path, keyring="notes app")
    assert system_keyring.entries == {}
    path.unlink()
    client.save_session(path, keyring="notes app")
    sys.modules["keyring"] = None  # type: ignore[assignment]
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'strongroom\[keyring\]'"):
        clients.resume(path)
