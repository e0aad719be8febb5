"""A command that root runs leaves no file that the service cannot open."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.programs.command_line import findings, strongroom
from tests.kit.programs.other_user import NOBODY, as_root, as_user, public_folder
from tests.kit.servers.secret import SECRET

pytestmark = as_root


@pytest.fixture
def service_folder() -> Iterator[Path]:
    """The folder of a service that runs as another user."""
    with public_folder() as folder:
        service_folder = folder / "service"
        service_folder.mkdir(mode=0o700)
        os.chown(service_folder, NOBODY, NOBODY)
        yield service_folder


def owned(service_folder: Path) -> dict[str, int]:
    return {str(path.relative_to(service_folder)): path.stat().st_uid for path in service_folder.rglob("*")}


def test_what_root_makes_belongs_to_the_service(service_folder: Path) -> None:
    """A database, its lock and folder, a restore over it and a backup in the folder of backups."""
    settings = {
        "DB_PATH": str(service_folder / "data" / "vault.db"),
        "BACKUP_DIR": str(service_folder / "kept"),
        "JWT_SECRET": SECRET,
    }
    for arguments in (
        ("db", "migrate"),
        ("users", "list"),
        ("backup", "--scheduled"),
        ("backup", str(service_folder / "kept" / "by-hand")),
        ("restore", str(service_folder / "kept" / "by-hand")),
        (
            "restore",
            str(service_folder / "kept" / "by-hand"),
            "--new",
            "--db-path",
            str(service_folder / "other" / "vault.db"),
        ),
        ("db", "copy", str(service_folder / "data" / "vault.db"), str(service_folder / "copy" / "vault.db")),
        ("vacuum", "--yes"),
    ):
        done = strongroom(service_folder, *arguments, **settings)
        assert (done.returncode, done.stderr) == (0, ""), (arguments, done.stderr)
    assert {name: owner for name, owner in owned(service_folder).items() if owner != NOBODY} == {}
    assert stat.S_IMODE((service_folder / "data" / "vault.db").stat().st_mode) == 0o600
    assert list((service_folder / "data").glob("vault.db.before-*"))
    listed = as_user(service_folder, NOBODY, "users", "list", **settings)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert (
        "warning"
        not in as_user(service_folder, NOBODY, "restore", str(service_folder / "kept" / "by-hand"), **settings).stdout
    )


def test_a_backup_elsewhere_stays_with_root(service_folder: Path, tmp_path: Path) -> None:
    """Password hashes are in it: whoever owns the folder that root works in does not get them."""
    settings = {"DB_PATH": str(service_folder / "vault.db")}
    assert strongroom(service_folder, "db", "migrate", **settings).returncode == 0
    bobs = tmp_path / "bob"
    bobs.mkdir()
    os.chown(bobs, 4321, 4321)
    assert strongroom(bobs, "backup", "one", **settings).returncode == 0
    assert (bobs / "one").stat().st_uid == 0


def test_a_planted_link_gets_no_owner(service_folder: Path, tmp_path: Path) -> None:
    """A user of the folder lays a link where root will make a file: its target keeps its owner."""
    target = tmp_path / "of root"
    target.write_text("precious")
    target.chmod(0o600)
    for name in ("vault.db-lock", "vault.db.restoring", "kept"):
        (service_folder / name).symlink_to(target)
    assert strongroom(service_folder, "db", "migrate", DB_PATH=str(service_folder / "vault.db")).returncode in {0, 2}
    strongroom(
        service_folder,
        "backup",
        "--scheduled",
        DB_PATH=str(service_folder / "vault.db"),
        BACKUP_DIR=str(service_folder / "kept"),
    )
    assert target.stat().st_uid == 0
    assert target.read_text() == "precious"


def test_a_restore_that_cannot_keep_the_owner_says_so(service_folder: Path) -> None:
    """Somebody else who may write to the folder replaces the file: the sentence names both, and what to do."""
    settings = {"DB_PATH": str(service_folder / "vault.db")}
    assert strongroom(service_folder, "db", "migrate", **settings).returncode == 0
    assert strongroom(service_folder, "backup", str(service_folder / "one"), **settings).returncode == 0
    (service_folder / "one").chmod(0o644)
    service_folder.chmod(0o777)
    (service_folder / "vault.db-lock").chmod(0o666)
    (service_folder / "vault.db").chmod(0o644)
    done = as_user(service_folder, 4321, "restore", "one", **settings)
    assert done.returncode == 0, done.stderr
    assert f"chown {NOBODY}" in done.stdout


def test_the_doctor_names_every_file_of_somebody_else(service_folder: Path) -> None:
    """Database, its companions, what restores kept, backups, secrets and folders; by mode as well as by owner."""
    settings = {
        "DB_PATH": str(service_folder / "vault.db"),
        "BACKUP_DIR": str(service_folder / "kept"),
        "JWT_SECRET": SECRET,
    }
    assert strongroom(service_folder, "db", "migrate", **settings).returncode == 0
    assert strongroom(service_folder, "backup", "--scheduled", **settings).returncode == 0
    [made] = (service_folder / "kept").glob("*.backup")
    assert strongroom(service_folder, "restore", str(made), **settings).returncode == 0
    for name in (".env", "words"):
        (service_folder / name).write_text("" if name == ".env" else "a long passphrase")
        (service_folder / name).chmod(0o600)
        os.chown(service_folder / name, NOBODY, NOBODY)
    arguments = ("doctor", "--json", "--settings", ".env", "--backup-passphrase-file", "words")

    def faults() -> str:
        told = strongroom(service_folder, *arguments, **settings)
        assert told.stdout, told.stderr
        return " ".join(one["says"] for one in findings(told, "permissions") if one["verdict"] == "fault")

    assert faults() == ""
    [before] = service_folder.glob("vault.db.before-*")
    for path in (service_folder / "vault.db", service_folder / "vault.db-lock", before, made, service_folder / "kept"):
        os.chown(path, 4321, 4321)
        assert f"{path} belongs to 4321" in faults()
        os.chown(path, NOBODY, NOBODY)
    for path in (service_folder / ".env", service_folder / "words"):
        os.chown(path, 4321, 4321)
        assert f"{path.name} belongs to 4321" in faults()
        os.chown(path, 0, NOBODY)
        path.chmod(0o640)
        assert faults() == "", "root's, readable by the group of the service: as the unit wants it"
        path.chmod(0o660)
        assert f"{path.name} can be" in faults()
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o600)
    before.chmod(0o640)
    assert f"{before} can be read by others" in faults()


def test_a_folder_that_this_user_cannot_enter_is_a_sentence(service_folder: Path) -> None:
    """Whoever types a command as the wrong user is told so, by every command that needs the database."""
    settings = {"DB_PATH": str(service_folder / "vault.db"), "JWT_SECRET": SECRET}
    assert strongroom(service_folder, "db", "migrate", **settings).returncode == 0
    for arguments in (("users", "list"), ("backup", "/tmp/x"), ("restore", "/dev/null"), ("stats",), ("doctor",)):  # noqa: S108
        done = as_user(service_folder.parent, 4321, *arguments, **settings)
        assert "Traceback" not in done.stderr, arguments
        assert done.returncode == 2, arguments
        assert "run the command as the service's user" in done.stdout + done.stderr, arguments


def test_a_folder_that_root_had_to_make_is_told_of(tmp_path: Path) -> None:
    """Above it all belongs to root, so whose the service is cannot be known: whose it is now, and what to type."""
    assert strongroom(tmp_path, "db", "migrate", DB_PATH="source.db").returncode == 0
    assert strongroom(tmp_path, "backup", "one", DB_PATH="source.db").returncode == 0
    folder = tmp_path / "lib" / "service"
    done = strongroom(tmp_path, "restore", "one", "--new", DB_PATH=str(folder / "vault.db"))
    assert (done.returncode, done.stderr) == (0, "")
    [warning] = [line for line in done.stdout.splitlines() if line.startswith("warning: ")]
    assert "belong to root" in warning
    assert f"chown -R strongroom: {folder}" in warning
    again = strongroom(tmp_path, "restore", "one", DB_PATH=str(folder / "vault.db"))
    assert "warning" not in again.stdout


def test_a_folder_that_cannot_be_made_is_told_of(service_folder: Path, tmp_path: Path) -> None:
    """With the line that makes it, as root."""
    assert strongroom(tmp_path, "db", "migrate", DB_PATH="source.db").returncode == 0
    assert strongroom(tmp_path, "backup", str(service_folder / "one"), DB_PATH="source.db").returncode == 0
    os.chown(service_folder / "one", NOBODY, NOBODY)
    folder = service_folder.parent / "lib"
    done = as_user(service_folder, NOBODY, "restore", "one", "--new", DB_PATH=str(folder / "vault.db"))
    assert done.returncode == 2
    assert f"install -d -m 0700 -o USER -g USER {folder}" in done.stderr
