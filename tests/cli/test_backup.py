"""`strongroom backup` and `strongroom restore`, as an operator types them."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
import stat
import sys
import time
import types
from pathlib import Path

import pyrage
import pytest

from strongroom import sealing
from strongroom.cli import archives, backup, main
from strongroom.server.admin import operations
from strongroom.store import open_database
from strongroom.store.locks import lock_of
from tests.kit.clock import Clock
from tests.kit.programs import processes
from tests.kit.samples import rounds, some
from tests.kit.servers.populated_database import copied_rows_of, damage, drawn_by, fill, live_in, rows_of
from tests.kit.servers.postgres import postgres

MIB = 1024 * 1024
KINDS = ["open", "passphrase", "age"]


@pytest.fixture
def service_folder(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small service in it, and the settings of a server there."""
    for name in ("JWT_SECRET", "DATABASE_URL", "BACKUP_DIR", "BACKUP_PASSPHRASE", "BACKUP_RECIPIENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DB_PATH", "vault.db")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "nice", lambda _: 0)
    for name, value in (("_MEMORY", 32), ("_PASSES", 1)):
        monkeypatch.setattr(sealing, name, value)
    asyncio.run(live_in(str(tmp_path / "vault.db"), clock))
    return tmp_path


def sealed_as(kind: str, service_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have backups sealed in this way; the options that open them."""
    if kind == "passphrase":
        monkeypatch.setenv("BACKUP_PASSPHRASE", "open sesame")
    if kind != "age":
        return []
    key = pyrage.x25519.Identity.generate()
    (service_folder / "key").write_text(f"{key}\n")
    monkeypatch.setenv("BACKUP_RECIPIENT", str(key.to_public()))
    return ["--identity", "key"]


def test_it_writes_an_archive_and_counts_it(service_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For its owner only, under its name only when it is whole; --verify counts the same."""
    assert main(["backup", "one"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    there = asyncio.run(copied_rows_of("vault.db"))
    for name, rows in there.items():
        assert re.search(rf"^{name} +{len(rows)}$", said.out, re.MULTILINE), name
    assert "bytes, verified." in said.out
    assert stat.S_IMODE((service_folder / "one").stat().st_mode) == 0o600
    assert [file.name for file in service_folder.iterdir() if "half" in file.name] == []
    assert main(["backup", "--verify", "one"]) == 0
    assert capsys.readouterr().out.splitlines() == said.out.splitlines()[:-1]


def test_nothing_is_written_over(service_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of that name stays as it is."""
    (service_folder / "one").write_text("precious")
    assert main(["backup", "one"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (service_folder / "one").read_text() == "precious"


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_reads_back_otherwise_gets_no_name(
    service_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A disk that loses a bit is noticed at once, and nothing is left that looks like a backup."""
    sealed_as(kind, service_folder, monkeypatch)
    real = archives._ArchiveFile.write

    def lose(self: archives._ArchiveFile, data: bytes) -> None:
        real(self, data)
        if len(data) > 1_000:
            self._file.flush()
            there = Path(f"/proc/self/fd/{self._file.fileno()}")
            self._file.flush()
            os.pwrite(self._file.fileno(), bytes([there.read_bytes()[600] ^ 1]), 600)
            monkeypatch.setattr(archives._ArchiveFile, "write", real)

    monkeypatch.setattr(archives._ArchiveFile, "write", lose)
    assert main(["backup", "one"]) == 2
    assert "does not read back" in capsys.readouterr().err
    assert not list(service_folder.glob("*one*")) + list(service_folder.glob(".*one*"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_refused_in_every_kind_of_archive(
    service_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """In its head and wherever chance points; by --verify, and by a restore before it begins.

    `make test` takes each fourth byte of the head.
    """
    more = sealed_as(kind, service_folder, monkeypatch)
    assert main(["backup", "one"]) == 0
    assert main(["backup", "--verify", "one", *more]) == 0
    monkeypatch.setattr(operations, "restore", lambda *_, **__: pytest.fail("it has begun"))
    whole = (service_folder / "one").read_bytes()
    chance = [random.randrange(len(whole)) for _ in range(rounds(20, 200))]  # noqa: S311
    places = [*some("bytes of the head of a backup", range(60)), *chance, len(whole) - 1]
    for number, at in enumerate(places):
        bad = bytearray(whole)
        bad[at] ^= 1 << number % 8
        (service_folder / "bad").write_bytes(bad)
        capsys.readouterr()
        command = ["restore", "bad"] if number % 4 == 0 else ["backup", "--verify", "bad"]
        assert main([*command, *more]) == 1, f"bit {number % 8} of byte {at}"
        assert capsys.readouterr().err.count("\n") == 1


def test_a_damaged_database_is_not_backed_up(service_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence says that it is damaged and names the restore; no file is left."""
    damage(service_folder / "vault.db")
    assert main(["backup", "one"]) == 2
    said = capsys.readouterr().err
    assert "is damaged" in said
    assert "'strongroom restore FILE'" in said
    assert not list(service_folder.glob("*one*")) + list(service_folder.glob(".*one*"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_leaves_the_machine_to_others(
    service_folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It has a low priority, and after each piece it rests for three times as long as the piece took."""
    sealed_as(kind, service_folder, monkeypatch)
    nice: list[int] = []
    rests: list[float] = []
    took = itertools.cycle([0.0, 0.0, 0.002, 0.0, 30.0])  # a page that waited for others counts as one second
    now = itertools.accumulate(took)
    monkeypatch.setattr(os, "nice", nice.append)
    slow = types.SimpleNamespace(
        monotonic=lambda: next(now), sleep=rests.append, strftime=time.strftime, gmtime=time.gmtime
    )
    monkeypatch.setattr(backup, "time", slow)
    written: list[int] = []
    real = archives._ArchiveFile.close

    def close(out: archives._ArchiveFile) -> str:
        written.append(len(rests))
        return real(out)

    monkeypatch.setattr(archives._ArchiveFile, "close", close)
    assert main(["backup", "one"]) == 0
    assert nice == [10]
    assert {round(rest, 6) for rest in rests} == {0.0, 0.006, 1.0}
    assert 0 < written[0] < len(rests)


@pytest.mark.parametrize("arguments", [["backup"], ["backup", "--verify", "nowhere"], ["restore", "nowhere"]])
@pytest.mark.usefixtures("service_folder")
def test_wrong_use_is_a_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """And exit code 2."""
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_damaged_file_is_refused_before_anything_is_touched(
    service_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the damage is, at its very end too; and so is one that is cut off. The restore itself does not begin."""
    assert main(["backup", "one"]) == 0
    monkeypatch.setattr(operations, "restore", lambda *_, **__: pytest.fail("it has begun"))
    whole = (service_folder / "one").read_bytes()
    before = (service_folder / "vault.db").read_bytes()
    for at in (25, 400, len(whole) // 2, len(whole) - 1):
        bad = bytearray(whole)
        bad[at] ^= 1
        (service_folder / "bad").write_bytes(bad)
        for command in (["restore", "bad"], ["backup", "--verify", "bad"]):
            capsys.readouterr()
            assert main(command) == 1
            assert "damaged" in capsys.readouterr().err
    (service_folder / "bad").write_bytes(whole[:-1])
    assert main(["restore", "bad"]) == 1
    assert (service_folder / "vault.db").read_bytes() == before
    assert not [file for file in service_folder.iterdir() if ".before-" in file.name or "restoring" in file.name]


@pytest.mark.usefixtures("service_folder")
def test_a_restore_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows, where the old ones are, and what to think of."""
    assert main(["backup", "one"]) == 0
    capsys.readouterr()
    assert main(["restore", "one"]) == 0
    said = capsys.readouterr().out
    kept = re.search(r"the previous database is kept: (\S+)", said)
    assert kept is not None
    assert Path(kept[1]).is_file()
    assert "has a new epoch" in said
    assert "JWT_SECRET" in said


def test_a_restore_into_a_file_that_is_named_leaves_the_database_of_the_settings_alone(
    service_folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rehearsal with --db-path must not replace the PostgreSQL that DATABASE_URL names."""
    assert main(["backup", "one"]) == 0
    where = postgres().fresh()
    asyncio.run(open_database(where, clock).close())
    before = asyncio.run(rows_of(where))
    monkeypatch.setenv("DATABASE_URL", where)
    assert main(["restore", "one", "--db-path", "rehearsal/vault.db", "--new"]) == 0
    assert asyncio.run(rows_of(where)) == before
    assert (service_folder / "rehearsal" / "vault.db").is_file()


def test_a_restore_is_refused_while_the_file_is_served(
    service_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, exit code 2."""
    assert main(["backup", "one"]) == 0
    lock = lock_of(service_folder / "vault.db")
    assert lock.shared()
    assert main(["restore", "one"]) == 2
    assert "A server is using" in capsys.readouterr().err
    lock.close()
    assert main(["restore", "one"]) == 0


def test_a_passphrase_seals_and_opens(
    service_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file, from the environment, or from standard input where it is asked for; never on the command line."""
    (service_folder / "words").write_text("open sesame\n")
    assert main(["backup", "sealed", "--backup-passphrase-file", "words"]) == 0
    assert (service_folder / "sealed").read_bytes().startswith(b"strongroom sealed 1\n")
    assert main(["backup", "--verify", "sealed", "--backup-passphrase-file", "words"]) == 0
    monkeypatch.setenv("BACKUP_PASSPHRASE", "open sesame")
    assert main(["backup", "--verify", "sealed"]) == 0
    assert main(["restore", "sealed"]) == 0
    monkeypatch.setenv("BACKUP_PASSPHRASE", "wrong")
    capsys.readouterr()
    assert main(["restore", "sealed"]) == 1
    assert "passphrase is wrong" in capsys.readouterr().err
    monkeypatch.delenv("BACKUP_PASSPHRASE")
    done = processes.run(
        [sys.executable, "-m", "strongroom", "restore", "sealed"],
        input="open sesame\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_age_recipient_seals_and_an_identity_opens(service_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The machine that makes the backup cannot open it."""
    key = pyrage.x25519.Identity.generate()
    (service_folder / "key").write_text(f"{key}\n")
    assert main(["backup", "sealed", "--backup-recipient", str(key.to_public())]) == 0
    capsys.readouterr()
    assert main(["backup", "--verify", "sealed"]) == 2
    assert "--identity" in capsys.readouterr().err
    assert main(["backup", "--verify", "sealed", "--identity", "key"]) == 0
    assert main(["restore", "sealed", "--identity", "key"]) == 0
    assert main(["backup", "other", "--backup-recipient", "age1nonsense"]) == 2
    assert not list(service_folder.glob("*other*")) + list(service_folder.glob(".*other*"))


@pytest.mark.usefixtures("service_folder")
def test_a_backup_is_sealed_to_one_key(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both at once would be a question that nobody answers."""
    monkeypatch.setenv("BACKUP_PASSPHRASE", "x")
    monkeypatch.setenv("BACKUP_RECIPIENT", "age1")
    assert main(["backup", "one"]) == 2
    assert "both set" in capsys.readouterr().err


def test_the_bar_is_drawn_where_somebody_looks_on(service_folder: Path) -> None:
    """While it writes and while it reads again."""
    _, drawn = drawn_by([sys.executable, "-m", "strongroom", "backup", "one"], service_folder)
    assert "backing up " in drawn
    assert "verifying " in drawn
    assert drawn.endswith("\r\x1b[K")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_is_flat(tmp_path: Path, clock: Clock) -> None:
    """100 MiB, or 1 GiB: a backup, its check and a restore each stay under 64 MiB, all told."""
    asyncio.run(open_database(str(tmp_path / "vault.db"), clock).close())
    fill(tmp_path / "vault.db", 2_000, 50_000)
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from strongroom.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1])"
    )
    for arguments in (
        ["backup", "one"],
        ["backup", "--verify", "one"],
        ["restore", "one", "--db-path", "new.db", "--new"],
    ):
        done = processes.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            env={**os.environ, "DB_PATH": "vault.db"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(done.stdout.splitlines()[-1]) * 1024 < 64 * MIB, arguments
    old, new = (asyncio.run(copied_rows_of(str(tmp_path / name))) for name in ("vault.db", "new.db"))
    assert old["documents"] == new["documents"]
