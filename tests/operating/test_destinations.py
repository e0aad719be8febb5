"""Backups that leave the machine: to a folder, by SFTP and into S3; sent whole, checked, thinned out, brought back."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import obstore
import pytest

from strongroom.server import destinations
from strongroom.server.backup_schedule import backup_name
from strongroom.server.destinations.folder import Folder
from strongroom.server.destinations.protocol import EDGE, CannotSend
from strongroom.server.settings import BadSetting, resolve
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.programs.command_line import strongroom
from tests.kit.servers.populated_database import copied_rows_of, fill, live_in, without_lineage
from tests.kit.servers.process import Server
from tests.kit.servers.s3_server import client, s3_server
from tests.kit.servers.secret import SECRET
from tests.kit.servers.sftp_server import sftp_server
from tests.kit.waiting import until
from tests.kit.wall_clock import now

DAY = 86_400_000
_ARABIC = str.maketrans("0123456789", "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669")


class Destination(NamedTuple):
    """Where backups are sent to: the address, the settings that open it, and the folder behind it."""

    where: str
    settings: dict[str, str]
    files: Path


class Sftp(NamedTuple):
    """A server of SFTP: its port, and the folder with its keys and files."""

    port: int
    service_folder: Path


@pytest.fixture(scope="module")
def sftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sftp]:
    """One server for all tests, each of which has a folder of its own there."""
    service_folder = tmp_path_factory.mktemp("servers") / "sftp"
    with sftp_server(service_folder) as port:
        yield Sftp(port, service_folder)


DESTINATIONS = ("folder", "sftp", "s3")


@pytest.fixture
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Destination]:
    """A destination of the kind that the test names, behind a real server."""
    if request.param == "folder":
        (tmp_path / "elsewhere").mkdir()
        yield Destination(str(tmp_path / "elsewhere"), {}, tmp_path / "elsewhere")
    elif request.param == "sftp":
        port, sftp_folder = request.getfixturevalue("sftp")
        keys = {"BACKUP_SSH_KEY": str(sftp_folder / "client_key"), "BACKUP_SSH_HOSTS": str(sftp_folder / "known_hosts")}
        own = tmp_path.name
        yield Destination(
            f"sftp://ada@127.0.0.1:{port}/{own}/in/side", keys, sftp_folder / "files" / own / "in" / "side"
        )
    else:
        with s3_server(tmp_path / "s3") as settings:
            yield Destination("s3://vault/in/side", settings, tmp_path / "nowhere")


@pytest.fixture
def service_folder(tmp_path: Path, clock: Clock) -> Path:
    service_folder = tmp_path / "service"
    service_folder.mkdir(mode=0o700)
    asyncio.run(live_in(str(service_folder / "vault.db"), clock))
    return service_folder


def settings_of(service_folder: Path, destination: Destination, **more: str) -> dict[str, str]:
    where = {
        "DB_PATH": str(service_folder / "vault.db"),
        "BACKUP_DIR": str(service_folder / "kept"),
        "BACKUP_TO": destination.where,
    }
    return {**where, **destination.settings, **more}


def names(destination: Destination) -> list[str]:
    if destination.where.startswith("s3"):
        listed = obstore.list_with_delimiter(client(destination.settings, "in/side"))
        return sorted(meta["path"] for meta in listed["objects"])
    return sorted(path.name for path in destination.files.iterdir()) if destination.files.exists() else []


@pytest.mark.parametrize("destination", DESTINATIONS, indirect=True)
def test_a_scheduled_backup_is_sent_and_comes_back(service_folder: Path, destination: Destination) -> None:
    """Whole, for its owner only; once; and `restore` and `--verify` take it from there by its address."""
    settings = settings_of(service_folder, destination)
    done = strongroom(service_folder, "backup", "--scheduled", **settings)
    assert (done.returncode, done.stderr) == (0, "")
    assert ": sent to " in done.stdout
    [made] = (service_folder / "kept").glob("*.backup")
    assert names(destination) == [made.name]
    if not destination.where.startswith("s3"):
        assert (destination.files / made.name).read_bytes() == made.read_bytes()
        assert (destination.files / made.name).stat().st_mode & 0o777 == 0o600
    assert strongroom(service_folder, "backup", "--scheduled", **settings).stdout == ""
    address = f"{destination.where}/{made.name}"
    assert strongroom(service_folder, "backup", "--verify", address, **settings).returncode == 0
    done = strongroom(
        service_folder, "restore", "--new", address, "--db-path", str(service_folder / "new.db"), **settings
    )
    assert (done.returncode, done.stderr) == (0, "")
    old, new = (asyncio.run(copied_rows_of(str(service_folder / name))) for name in ("vault.db", "new.db"))
    assert without_lineage(old) == without_lineage(new)
    done = strongroom(service_folder, "restore", f"{destination.where}/nothing.backup", **settings)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("destination", DESTINATIONS, indirect=True)
def test_the_same_rule_says_what_is_kept_there(service_folder: Path, destination: Destination) -> None:
    """What is no backup of ours stays, one from the future too; what was left on the way goes after a day."""
    settings = settings_of(service_folder, destination, BACKUP_KEEP="2d")
    assert strongroom(service_folder, "backup", "--scheduled", **settings).returncode == 0
    [made] = (service_folder / "kept").glob("*.backup")
    [first] = names(destination)
    future, yesterday, old = backup_name(now() + 400 * DAY), backup_name(now() - DAY), backup_name(now() - 9 * DAY)
    left, fresh = f".{backup_name(now() - 3 * DAY)}.half", f".{backup_name(now() - DAY // 24)}.half"
    others = ["notes.txt", "my.backup", "strongroom-x.backup"]
    for name in (future, yesterday, old, left, fresh, *others):
        _put(destination, name)
    for path in (service_folder / "kept").glob("*.backup"):
        path.rename(path.with_name(backup_name(now() - 2 * DAY)))
    until(lambda: backup_name(now()) > made.name, "another second, and so another name")
    assert strongroom(service_folder, "backup", "--scheduled", **settings).returncode == 0
    newest = max(path.name for path in (service_folder / "kept").glob("*.backup"))
    days = {name[11:19]: name for name in sorted([first, newest, yesterday])}
    assert names(destination) == sorted([future, *others, fresh, *sorted(days.values())[-2:]])
    assert made.name == first


@pytest.mark.parametrize("destination", DESTINATIONS[:2], indirect=True)
def test_names_of_others_do_not_keep_a_backup_from_being_sent(service_folder: Path, destination: Destination) -> None:
    """Not UTF-8, with line breaks and escapes, or with the digits of another script: they stay."""
    settings = settings_of(service_folder, destination, BACKUP_KEEP="1d")
    destination.files.mkdir(parents=True, exist_ok=True)
    strange = [b"\xff\xfe.backup", b"a\nb\x1b[2J", backup_name(0).translate(_ARABIC).encode()]
    for name in strange:
        (destination.files / os.fsdecode(name)).write_text("x")
    done = strongroom(service_folder, "backup", "--scheduled", **settings)
    assert (done.returncode, done.stderr) == (0, "")
    [made] = (service_folder / "kept").glob("*.backup")
    assert {os.fsencode(path.name) for path in destination.files.iterdir()} == {*strange, os.fsencode(made.name)}


def _put(destination: Destination, name: str) -> None:
    """Lay a file there by the same door that everybody uses, or straight into the folder."""
    if destination.where.startswith("s3"):
        obstore.put(client(destination.settings, "in/side"), name, b"x")
    else:
        (destination.files / name).write_text("x")


@pytest.mark.parametrize("destination", DESTINATIONS, indirect=True)
def test_a_server_sends_and_says_so_and_the_doctor_looks_there(
    tmp_path: Path, service_folder: Path, destination: Destination
) -> None:
    """A line in the log; a finding with the age; and without the destination a fault, a failure, and another try."""
    server = Server(
        service_folder, BACKUP_TO=destination.where, BACKUP_DIR=str(service_folder / "kept"), **destination.settings
    )
    server.settings.pop("DATABASE_URL", None)
    server.start()
    try:
        until(lambda: ": sent to " in server.log(), "a line about it", 60)
    finally:
        assert server.end() == 0
    found = msgspec.json.decode(strongroom(service_folder, "doctor", "--json", **server.settings).stdout)["findings"]
    [told] = [one for one in found if one["check"] == "backup sent"]
    assert told["verdict"] == "ok", told
    assert names(destination)[0] in told["says"]
    on_disk = [one["verdict"] for one in found if one["check"] == "backup disk"]
    assert on_disk == ([] if "://" in destination.where else ["warning"]), "a folder on the same disk is no other place"
    gone = {**server.settings, "BACKUP_TO": f"{tmp_path}/unmounted"}
    found = msgspec.json.decode(strongroom(service_folder, "doctor", "--json", **gone).stdout)["findings"]
    assert [one["verdict"] for one in found if one["check"] == "backup sent"] == ["fault"]
    assert not (tmp_path / "unmounted").exists()


def test_what_cannot_be_sent_is_a_failed_backup_and_is_sent_later(service_folder: Path, tmp_path: Path) -> None:
    """The backup is made and stays here; the server tries again although none is due, and after a restart too."""
    settings = {
        "BACKUP_TO": str(tmp_path / "unmounted"),
        "BACKUP_DIR": str(service_folder / "kept"),
        "BACKUP_EVERY": "4s",
    }
    server = Server(service_folder, **settings)
    server.settings.pop("DATABASE_URL", None)
    server.start()
    try:
        until(
            lambda: "backup failed: " in server.log() and "was written, but cannot be sent" in server.log(),
            "a line",
            60,
        )
        (tmp_path / "unmounted").mkdir()
        until(lambda: list((tmp_path / "unmounted").glob("*.backup")), "a second try", 60)
    finally:
        assert server.end() == 0
    for path in (tmp_path / "unmounted").iterdir():
        path.unlink()
    server.settings["BACKUP_EVERY"] = "24h"
    server.start()
    try:
        until(lambda: list((tmp_path / "unmounted").glob("*.backup")), "the one that was there before the start", 60)
    finally:
        assert server.end() == 0


@pytest.mark.parametrize(
    ("destination", "where"),
    [(kind, where) for where in ("at the beginning", "at the end", "in the middle") for kind in DESTINATIONS],
    indirect=["destination"],
)
def test_another_file_of_the_same_name_and_size_is_told(
    service_folder: Path, destination: Destination, where: str
) -> None:
    """One of another service, or one that the disk has damaged: it is not taken for the backup, and nothing is sent."""
    fill(service_folder / "vault.db", 200, 2_000)
    settings = settings_of(service_folder, destination)
    assert strongroom(service_folder, "backup", "--scheduled", **settings).returncode == 0
    [made] = (service_folder / "kept").glob("*.backup")
    content = bytearray(made.read_bytes())
    assert len(content) > 3 * EDGE
    content[{"at the beginning": 30, "at the end": -5, "in the middle": len(content) // 2}[where]] ^= 1
    if destination.where.startswith("s3"):
        obstore.put(client(destination.settings, "in/side"), made.name, bytes(content))
    else:
        (destination.files / made.name).write_bytes(content)
    done = strongroom(service_folder, "backup", "--scheduled", **settings)
    if where == "in the middle" and not destination.where.startswith("/"):
        assert done.returncode == 0, "the whole of it is not fetched each time"
        return
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert "has a different file named" in done.stderr
    if not destination.where.startswith("s3"):
        assert (destination.files / made.name).read_bytes() == content
        (destination.files / made.name).unlink()
        assert ": sent to " in strongroom(service_folder, "backup", "--scheduled", **settings).stdout


def test_a_key_that_is_not_let_in_is_named(service_folder: Path, tmp_path: Path) -> None:
    """A key or a bucket that storage does not know: the sentence says which it is, and shows no secret."""
    with s3_server(tmp_path / "s3") as settings:
        wrong = {**settings, "AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "hunter2hunter2"}
        destination = Destination("s3://vault/in/side", wrong, tmp_path / "nowhere")
        done = strongroom(service_folder, "backup", "--scheduled", **settings_of(service_folder, destination))
        nowhere = Destination("s3://attic/in/side", settings, tmp_path / "nowhere")
        missing = strongroom(service_folder, "backup", "--scheduled", **settings_of(service_folder, nowhere))
    assert (done.returncode, missing.returncode) == (2, 2)
    assert "denies access with this key; check AWS_ACCESS_KEY_ID" in done.stderr
    assert "hunter2" not in done.stderr
    assert "s3://attic/in/side has no such bucket" in missing.stderr


def test_a_host_key_that_is_not_known_is_refused(service_folder: Path, tmp_path: Path) -> None:
    """Another one, or none: nothing is sent, and the sentence says what to do. An unknown key is denied access."""
    with sftp_server(tmp_path / "sftp") as port:
        ssh = tmp_path / "sftp"
        destination = Destination(
            f"sftp://ada@127.0.0.1:{port}/x", {"BACKUP_SSH_KEY": str(ssh / "client_key")}, ssh / "files"
        )
        other = (ssh / "client_key.pub").read_text()
        for line in ("", f"[127.0.0.1]:{port} {other}"):
            (ssh / "known_hosts").write_text(line)
            settings = settings_of(
                service_folder, destination, BACKUP_SSH_HOSTS=str(ssh / "known_hosts"), HOME=str(tmp_path)
            )
            done = strongroom(service_folder, "backup", "--scheduled", **settings)
            assert done.returncode == 2
            assert "host key" in done.stderr
            assert "BACKUP_SSH_HOSTS" in done.stderr
        assert list((ssh / "files").iterdir()) == []
        (ssh / "known_hosts").write_text(f"[127.0.0.1]:{port} {(ssh / 'host_key.pub').read_text()}")
        settings = settings_of(
            service_folder, destination, BACKUP_SSH_HOSTS=str(ssh / "known_hosts"), HOME=str(tmp_path)
        )
        settings["BACKUP_SSH_KEY"] = str(ssh / "host_key")
        done = strongroom(service_folder, "backup", "--scheduled", **settings)
        assert "denies access to this user" in done.stderr
        settings["BACKUP_SSH_KEY"] = str(ssh / "nowhere")
        done = strongroom(service_folder, "backup", "--scheduled", **settings)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_what_does_not_read_back_gets_no_name(
    service_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that loses a bit on the other side is noticed."""
    (tmp_path / "elsewhere").mkdir()
    path = service_folder / backup_name(now())
    path.write_bytes(os.urandom(100_000))
    real = shutil.copyfileobj

    def lose(source: IO[bytes], target: IO[bytes], size: int) -> None:
        real(source, target, size)
        target.flush()
        os.pwrite(target.fileno(), b"?", 50_000)

    monkeypatch.setattr("strongroom.server.destinations.folder.shutil.copyfileobj", lose)
    settings = resolve({"JWT_SECRET": SECRET})
    destination = destinations.destination(str(tmp_path / "elsewhere"), settings, {})
    with pytest.raises(destinations.CannotSend, match="does not read back"):
        asyncio.run(destinations.send(destination, path, settings.backup_keep, now()))
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "text",
    ["sftp://ada:hunter2@host/x", "ftp://host/x", "sftp:///x", "s3://", "s3://key:hunter2@bucket", "sftp://h:x/y"],
)
def test_an_address_with_a_password_or_of_another_kind_is_refused(text: str) -> None:
    """And not repeated, for a password may be in it."""
    with pytest.raises(BadSetting, match="BACKUP_TO must be") as refused:
        resolve({"JWT_SECRET": SECRET, "BACKUP_DIR": "x", "BACKUP_TO": text})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(BadSetting, match="BACKUP_DIR is not"):
        resolve({"JWT_SECRET": SECRET, "BACKUP_TO": "/srv"})


@async_test
async def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    """Not a traceback: the folder went away after it was checked, or a file is in the way."""
    there = tmp_path / "there"
    there.mkdir()
    (tmp_path / "backup").write_bytes(b"x")
    async with Folder(there) as folder:
        there.rmdir()
        for call in (folder.sizes(), folder.put(tmp_path / "backup"), folder.has(tmp_path / "backup")):
            with pytest.raises(CannotSend, match="fails: No such file or directory"):
                await call
