"""Links that somebody planted where the service keeps its files: root follows none to a file of somebody else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strongroom.store import migrations
from tests.kit.programs.command_line import clean_environment, strongroom
from tests.kit.programs.other_user import NOBODY, as_root, as_user, public_folder
from tests.kit.servers.secret import SECRET

# Runs a command; as soon as it has made the file whose name ends so, a link takes its place, as in a lost race.
SWAPPED = """
import os, sys
from pathlib import Path
from strongroom.cli import main
from strongroom.store import file_owners, migrations
ending, victim = sys.argv.pop(1), sys.argv.pop(1)
real = file_owners.make_file
def make_file(path, like=None):
    descriptor = real(path, like)
    if path.name.endswith(ending):
        path.unlink()
        path.symlink_to(victim)
    return descriptor
file_owners.make_file = make_file
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with public_folder() as folder:
        yield folder


@pytest.fixture
def service_folder(folder: Path) -> Path:
    """The folder of a service that runs as another user, where there is one."""
    service_folder = folder / "service"
    service_folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(service_folder, NOBODY, NOBODY)
    return service_folder


@pytest.fixture
def settings(service_folder: Path) -> dict[str, str]:
    """A database and a backup of it."""
    given = {"DB_PATH": str(service_folder / "vault.db"), "JWT_SECRET": SECRET}
    assert strongroom(service_folder, "db", "migrate", **given).returncode == 0
    assert strongroom(service_folder, "backup", "one", **given).returncode == 0
    return given


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_uid) for path in folder.iterdir()}


def swapped(
    service_folder: Path, ending: str, victim: Path, *command: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SWAPPED, ending, str(victim), *command],
        cwd=service_folder,
        env=clean_environment(**settings),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("empty", [True, False])
def test_nothing_is_restored_through_a_link(
    service_folder: Path,
    settings: dict[str, str],
    tmp_path: Path,
    empty: bool,  # noqa: FBT001
) -> None:
    """The new file is filled under a name that others can take: SQLite would fill what is empty, or a database."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"" if empty else (service_folder / "vault.db").read_bytes())
    before, old = victim.read_bytes(), (service_folder / "vault.db").read_bytes()
    done = swapped(service_folder, ".restoring", victim, "restore", "one", **settings)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert victim.read_bytes() == before
    assert (service_folder / "vault.db").read_bytes() == old
    assert strongroom(service_folder, "restore", "one", **settings).returncode == 0


def test_no_copy_before_a_migration_is_written_through_a_link(
    service_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it made then: the schema stays as it was, and the next start makes the copy."""
    from strongroom.store import open_database

    known = migrations.load()
    monkeypatch.setattr(migrations, "load", lambda: known[:-1])
    open_database(str(service_folder / "vault.db"), lambda: 1)
    monkeypatch.undo()
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    given = {"DB_PATH": str(service_folder / "vault.db"), "JWT_SECRET": SECRET}
    done = swapped(service_folder, ".half", victim, "db", "migrate", **given)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert victim.read_bytes() == b""
    assert not list(service_folder.glob("*.schema-*[0-9]"))
    assert strongroom(service_folder, "db", "migrate", **given).returncode == 0
    assert len(list(service_folder.glob("*.schema-*[0-9]"))) == 1


def test_a_log_that_is_a_link_is_refused(service_folder: Path, settings: dict[str, str], tmp_path: Path) -> None:
    """A damaged log is emptied: not somebody else's file, which would look like one."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious" * 2_000)
    (service_folder / "vault.db-wal").symlink_to(victim)
    for command in (("serve", "--port", "0"), ("users", "list"), ("backup", "two"), ("db", "new-epoch", "--yes")):
        done = strongroom(service_folder, *command, **settings)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (command, done)
        assert "vault.db-wal" in done.stderr
        assert "link" in done.stderr
    assert victim.read_bytes() == b"precious" * 2_000
    assert not list(service_folder.glob("*.damaged-*"))


COMMANDS = (
    ("restore", "one"),
    ("restore", "one", "--new"),
    ("users", "list"),
    ("db", "migrate"),
    ("db", "new-epoch", "--yes"),
    ("vacuum", "--yes"),
    ("backup", "two"),
    ("serve", "--port", "0"),
)


@as_root
@pytest.mark.parametrize("kind", ["a file", "no file", "by another link", "a folder above"])
def test_root_follows_no_planted_link(service_folder: Path, settings: dict[str, str], folder: Path, kind: str) -> None:
    """The service's user links its database to a folder of root: nothing is made, replaced or read there."""
    roots = folder / "root"
    roots.mkdir(mode=0o700)
    (roots / "vault.db").write_bytes((service_folder / "vault.db").read_bytes())
    for path in service_folder.glob("vault.db*"):
        path.unlink()
    link, target = service_folder / "vault.db", roots / ("new.db" if kind == "no file" else "vault.db")
    if kind == "by another link":
        (service_folder / "second").symlink_to(target)
        target = service_folder / "second"
    if kind == "a folder above":
        link, target = service_folder / "data", roots
        settings = {**settings, "DB_PATH": str(service_folder / "data" / "vault.db")}
    link.symlink_to(target)
    for path in service_folder.iterdir():
        os.lchown(path, NOBODY, NOBODY)
    before = content(roots)
    for command in COMMANDS:
        done = strongroom(service_folder, *command, **settings)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (command, done)
        assert f"{link} is a link" in done.stderr, (command, done)
        assert content(roots) == before, command
    said = strongroom(service_folder, "doctor", **settings)
    assert (said.returncode, "is a link" in said.stdout) == (1, True), said
    os.lchown(link, 0, 0)
    if kind == "by another link":
        os.lchown(service_folder / "second", 0, 0)
    assert (
        strongroom(service_folder, "restore", "one", *(["--new"] if kind == "no file" else []), **settings).returncode
        == 0
    )
    assert content(roots) != before


@as_root
def test_root_follows_a_link_within_what_its_maker_owns(
    service_folder: Path, settings: dict[str, str], folder: Path
) -> None:
    """He could have put a file there himself; and he may follow whatever he can write to."""
    disk = folder / "disk"
    disk.mkdir(mode=0o700)
    os.chown(disk, NOBODY, NOBODY)
    for path in service_folder.glob("vault.db*"):
        path.rename(disk / path.name)
    (service_folder / "vault.db").symlink_to(disk / "vault.db")
    os.lchown(service_folder / "vault.db", NOBODY, NOBODY)
    for command in (("users", "list"), ("restore", "one"), ("db", "new-epoch", "--yes")):
        assert strongroom(service_folder, *command, **settings).returncode == 0, command
    assert (service_folder / "vault.db").is_symlink()
    assert {path.stat().st_uid for path in disk.iterdir()} == {NOBODY}
    assert as_user(service_folder, NOBODY, "users", "list", **settings).returncode == 0


def test_a_link_to_itself_is_a_sentence(service_folder: Path) -> None:
    (service_folder / "vault.db").symlink_to(service_folder / "vault.db")
    for command in (("users", "list"), ("backup", "two"), ("serve", "--port", "0"), ("restore", "one")):
        done = strongroom(service_folder, *command, DB_PATH=str(service_folder / "vault.db"), JWT_SECRET=SECRET)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (command, done)
