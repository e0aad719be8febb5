"""`strongroom backup -` and `strongroom restore -`: a whole service through a pipe, or not at all."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyrage
import pytest

from tests.kit.clock import Clock
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment, place_of, strongroom
from tests.kit.servers.populated_database import PAIRS, Rows, copied_rows_of, fill, live_in, without_lineage
from tests.kit.servers.postgres import postgres

KINDS = ["open", "passphrase", "age"]


def new_place(tmp_path: Path, engine: str, name: str) -> str:
    return str(tmp_path / name / "vault.db") if engine == "sqlite" else postgres().fresh()


def sealed_as(kind: str, home: Path) -> tuple[dict[str, str], list[str]]:
    """Settings that encrypt in this way, and the options that open it."""
    if kind == "passphrase":
        return {"BACKUP_PASSPHRASE": "open sesame"}, []
    if kind == "open":
        return {}, []
    key = pyrage.x25519.Identity.generate()
    (home / "key").write_text(f"{key}\n")
    return {"BACKUP_RECIPIENT": str(key.to_public())}, ["--identity", str(home / "key")]


def same(one: Rows, other: Rows) -> bool:
    return without_lineage(one) == without_lineage(other) and one["lineage"] != other["lineage"]


@pytest.mark.parametrize(
    ("engines", "kind"),
    [pytest.param(pair, kind, id=f"{' to '.join(pair)}-{kind}") for kind in KINDS for pair in PAIRS],
)
def test_a_service_goes_through_a_pipe(tmp_path: Path, clock: Clock, engines: tuple[str, str], kind: str) -> None:
    """From each engine into each, encrypted or not; nothing is left behind in any folder."""
    source, target = (new_place(tmp_path, engine, name) for engine, name in zip(engines, "ab", strict=True))
    asyncio.run(live_in(source, clock))
    seal, opens = sealed_as(kind, tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with processes.Popen(
        [*STRONGROOM, "backup", "-"],
        env=clean_environment(**place_of(source), **seal),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as writer:
        done = processes.run(
            [*STRONGROOM, "restore", "--new", "-", *opens],
            env=clean_environment(**place_of(target), **seal, TMPDIR=str(temporary)),
            stdin=writer.stdout,
            capture_output=True,
            check=False,
        )
        said = writer.stderr.read().decode() if writer.stderr else ""
    assert (writer.returncode, done.returncode) == (0, 0), (said, done.stderr)
    assert "to standard output" in said
    assert "from standard input" in done.stdout.decode()
    assert same(asyncio.run(copied_rows_of(source)), asyncio.run(copied_rows_of(target)))
    assert list(temporary.iterdir()) == []
    left = {path.name for path in (tmp_path / "b").iterdir()} if engines[1] == "sqlite" else set()
    assert left <= {"vault.db", "vault.db-lock", "vault.db-wal", "vault.db-shm"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_stream_is_never_taken_for_whole(tmp_path: Path, clock: Clock, kind: str) -> None:
    """Cut anywhere, by one byte or by half: verify and restore refuse it with 1, and nothing is made."""
    source = str(tmp_path / "vault.db")
    asyncio.run(live_in(source, clock))
    seal, opens = sealed_as(kind, tmp_path)
    made = processes.run(
        [*STRONGROOM, "backup", "-"], env=clean_environment(DB_PATH=source, **seal), capture_output=True, check=True
    ).stdout
    settings = {"DB_PATH": str(tmp_path / "new" / "vault.db"), **seal}

    def run(data: bytes, *command: str) -> subprocess.CompletedProcess[bytes]:
        return processes.run(
            [*STRONGROOM, *command, *opens],
            env=clean_environment(**settings),
            input=data,
            capture_output=True,
            check=False,
        )

    assert run(made, "backup", "--verify", "-").returncode == 0
    for cut in (0, 10, len(made) // 2, len(made) - 1):
        for command in [("backup", "--verify", "-"), ("restore", "--new", "-")]:
            done = run(made[:cut], *command)
            assert done.returncode == 1, done.stderr
            assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_writer_that_is_killed_leaves_a_restore_that_refuses(tmp_path: Path, clock: Clock) -> None:
    """Killed while it writes: the reader sees the end of the pipe, and the end of the archive is missing."""
    source = tmp_path / "vault.db"
    asyncio.run(live_in(str(source), clock))
    fill(source, 2_000, 10_000)
    target = tmp_path / "new" / "vault.db"
    with processes.Popen(
        [*STRONGROOM, "backup", "-"], env=clean_environment(DB_PATH=str(source)), stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        begun = writer.stdout.read(1_000_000)
        writer.send_signal(signal.SIGKILL)
        begun += writer.stdout.read()
    done = processes.run(
        [*STRONGROOM, "restore", "--new", "-"],
        env=clean_environment(DB_PATH=str(target)),
        input=begun,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"its end is missing" in done.stderr
    assert not target.parent.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_that_goes_away_is_a_code_and_one_line(tmp_path: Path, clock: Clock, kind: str) -> None:
    """`strongroom backup - | head -c 10`: no traceback, and not 0, so that pipefail notices."""
    source = tmp_path / "vault.db"
    asyncio.run(live_in(str(source), clock))
    fill(source, 500, 10_000)
    seal, _ = sealed_as(kind, tmp_path)
    done = processes.run(
        ["bash", "-c", f"{sys.executable} -m strongroom backup - | head -c 10; exit ${{PIPESTATUS[0]}}"],
        env=clean_environment(DB_PATH=str(source), **seal),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 141, done.stderr
    assert len(done.stdout) == 10
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert b"closed its end" in done.stderr


def test_no_archive_on_a_terminal(tmp_path: Path, clock: Clock) -> None:
    """Standard output or standard input that is a terminal is refused."""
    asyncio.run(live_in(str(tmp_path / "vault.db"), clock))
    ours, theirs = pty.openpty()
    for command, stream in (("backup", "stdout"), ("restore", "stdin")):
        done = processes.run(
            [*STRONGROOM, command, "-"],
            env=clean_environment(DB_PATH=str(tmp_path / "vault.db")),
            stderr=subprocess.PIPE,
            check=False,
            **{stream: theirs},  # type: ignore[call-overload]
        )
        assert done.returncode == 2
        assert b"terminal" in done.stderr
    os.close(ours)
    os.close(theirs)


def test_a_passphrase_is_not_read_from_the_pipe(tmp_path: Path, clock: Clock) -> None:
    """The archive comes by it: without a terminal and without a setting, a sentence."""
    source = str(tmp_path / "vault.db")
    asyncio.run(live_in(source, clock))
    made = processes.run(
        [*STRONGROOM, "backup", "-"],
        env=clean_environment(DB_PATH=source, BACKUP_PASSPHRASE="open sesame"),
        capture_output=True,
        check=True,
    ).stdout
    for command in (("restore", "-"), ("backup", "--verify", "-")):
        done = processes.run(
            [*STRONGROOM, *command],
            env=clean_environment(DB_PATH=source),
            input=made,
            capture_output=True,
            check=False,
            start_new_session=True,
        )
        assert done.returncode == 2
        assert b"BACKUP_PASSPHRASE" in done.stderr


def test_a_named_pipe_is_read_like_standard_input(tmp_path: Path, clock: Clock) -> None:
    """`restore <(…)`: what cannot be read twice is kept while it is read."""
    source = str(tmp_path / "vault.db")
    asyncio.run(live_in(source, clock))
    place = place_of(source)
    assert strongroom(tmp_path, "backup", "one", **place).returncode == 0
    done = processes.run(
        ["bash", "-c", f"{sys.executable} -m strongroom restore <(cat one)"],
        cwd=tmp_path,
        env=clean_environment(**place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_said_of_a_streamed_archive_is_what_verify_says(tmp_path: Path, clock: Clock) -> None:
    """The same counts and the same checksum, on standard error."""
    source = str(tmp_path / "vault.db")
    asyncio.run(live_in(source, clock))
    made = processes.run(
        [*STRONGROOM, "backup", "-"], env=clean_environment(DB_PATH=source), capture_output=True, check=True
    )
    done = processes.run(
        [*STRONGROOM, "backup", "--verify", "-"],
        env=clean_environment(DB_PATH=source),
        input=made.stdout,
        capture_output=True,
        check=True,
    )
    assert made.stderr.decode().splitlines()[:-1] == done.stdout.decode().splitlines()
    assert re.search(rb"checksum [0-9a-f]{64}", made.stderr)
