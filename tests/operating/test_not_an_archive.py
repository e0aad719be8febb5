"""What is no archive, or cannot be opened without a passphrase: a sentence for each case, and what to do."""

from __future__ import annotations

import asyncio
import gzip
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from strongroom.store import open_database
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment, strongroom

PASSPHRASE: Final = "a passphrase of the tests"
READERS: Final = (("backup", "--verify"), ("restore",))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database and an encrypted backup of it."""
    folder = tmp_path_factory.mktemp("template")
    asyncio.run(open_database(str(folder / "vault.db"), lambda: time.time_ns() // 1_000_000).close())
    made = strongroom(folder, "backup", "kept.backup", DB_PATH="vault.db", BACKUP_PASSPHRASE=PASSPHRASE)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def service_folder(template: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(template, tmp_path / "home"))


def without_a_terminal(
    service_folder: Path, *arguments: str, given: bytes = b"", **settings: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a command as cron does."""
    return processes.run(
        [*STRONGROOM, *arguments],
        cwd=service_folder,
        env=clean_environment(DB_PATH="vault.db", **settings),
        input=given,
        capture_output=True,
        check=False,
        timeout=60,
        start_new_session=True,
    )


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[0])
@pytest.mark.parametrize("by", ["name", "stream"])
def test_an_encrypted_archive_without_a_passphrase(service_folder: Path, reader: tuple[str, ...], by: str) -> None:
    """Exit code 2, every way to give it, and nothing is changed."""
    archive = service_folder / "kept.backup"
    before = (service_folder / "vault.db").read_bytes()
    given = archive.read_bytes() if by == "stream" else b""
    done = without_a_terminal(service_folder, *reader, "-" if by == "stream" else str(archive), given=given)
    assert done.returncode == 2, done
    said = done.stderr.decode()
    assert "is encrypted, and no passphrase was given" in said
    for way in ("BACKUP_PASSPHRASE", "--backup-passphrase-file", "BACKUP_PASSPHRASE_FILE", "terminal"):
        assert way in said
    assert ("standard input, or" in said) == (by == "name"), "it is taken by the archive"
    assert said.count("\n") == 1
    assert (service_folder / "vault.db").read_bytes() == before


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[0])
def test_the_ways_to_give_it(service_folder: Path, reader: tuple[str, ...]) -> None:
    """Each of them opens it."""
    (service_folder / "passphrase").write_text(f"{PASSPHRASE}\n")
    (service_folder / "passphrase").chmod(0o600)
    archive = (service_folder / "kept.backup").read_bytes()
    for more, given, settings in (
        (("kept.backup",), f"{PASSPHRASE}\n".encode(), {}),
        (("kept.backup", "--backup-passphrase-file", "passphrase"), b"", {}),
        (("-",), archive, {"BACKUP_PASSPHRASE": PASSPHRASE}),
        (("-",), archive, {"BACKUP_PASSPHRASE_FILE": "passphrase"}),
    ):
        done = without_a_terminal(service_folder, *reader, *more, given=given, **settings)
        assert done.returncode == 0, (more, done.stderr)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[0])
@pytest.mark.parametrize("by", ["name", "stream"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n", "is not a strongroom archive."),
        (b"root:x:0:0:root:/root:/bin/bash\n", "is not a strongroom archive."),
        (b"strong", "is not a strongroom archive."),
        (b"SQLite format 3\0" + bytes(4080), "a SQLite database"),
        (gzip.compress(b"strongroom archive 1\n"), "compressed with gzip"),
        (b'{"vaults": []}', "JSON"),
        (os.urandom(4) + bytes(1000), "is not a strongroom archive."),
    ],
    ids=["empty", "newline", "text", "short", "database", "gzip", "json", "bytes"],
)
def test_what_is_no_archive(service_folder: Path, reader: tuple[str, ...], by: str, content: bytes, says: str) -> None:
    """A sentence that names it, exit code 1 as for a damaged one, and nothing is changed."""
    (service_folder / "other").write_bytes(content)
    before = (service_folder / "vault.db").read_bytes()
    done = without_a_terminal(service_folder, *reader, "-" if by == "stream" else "other", given=content)
    assert done.returncode == 1, done
    said = done.stderr.decode()
    assert says in said
    assert ("other" if by == "name" else "tandard input") in said
    assert said.count("\n") == 1
    assert (service_folder / "vault.db").read_bytes() == before
