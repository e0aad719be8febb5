"""A killed backup leaves a hidden, unfinished file: the next one to that folder removes it, and the doctor names it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from pathlib import Path

import msgspec

from strongroom.cli import archives
from strongroom.store import locks
from tests.kit.clock import Clock
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment, strongroom
from tests.kit.servers.populated_database import fill, live_in
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until


def halves(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.half"))


def test_the_half_of_a_killed_backup_is_cleared(tmp_path: Path, clock: Clock) -> None:
    """Not while its writer lives, nor what is not ours."""
    source = tmp_path / "vault.db"
    asyncio.run(live_in(str(source), clock))
    fill(source, 3_000, 10_000)
    folder = tmp_path / "kept"
    folder.mkdir(mode=0o700)
    stranger = folder / ".notes.12.half"
    stranger.write_text("somebody else's")
    settings = {"DB_PATH": str(source), "BACKUP_DIR": str(folder), "JWT_SECRET": SECRET}
    with processes.Popen(
        [*STRONGROOM, "backup", str(folder / "slow")], env=clean_environment(**settings), stdout=subprocess.DEVNULL
    ) as writer:
        half = until(lambda: [path for path in halves(folder) if path != stranger], "a half")[0]
        assert strongroom(tmp_path, "backup", str(folder / "quick-one"), **settings).returncode in {0, 2}
        assert half.exists() or (folder / "slow").exists()
        if half.exists():
            writer.send_signal(signal.SIGKILL)
    half.touch()
    found = msgspec.json.decode(strongroom(tmp_path, "doctor", "--json", **settings).stdout)["findings"]
    [named] = [one for one in found if half.name in one["says"]]
    assert (named["verdict"], named["check"]) == ("warning", "backup")
    assert not [one for one in found if stranger.name in one["says"]]
    assert half.exists(), "the doctor changes nothing"
    assert strongroom(tmp_path, "backup", str(folder / "next"), **settings).returncode == 0
    assert halves(folder) == [stranger]


def test_a_half_that_is_being_written_is_nobodys_to_clear(tmp_path: Path) -> None:
    """Until it is let go, also after its last byte: it has no name of its own yet."""
    half = tmp_path / f".one.1{locks.HALF}"
    out = archives._ArchiveFile(half, for_service=False)
    out.write(b"strongroom archive 1\n")
    assert locks.abandoned(tmp_path, remove=True) == []
    out.close()
    assert locks.abandoned(tmp_path, remove=True) == []
    out.abandon()
    assert locks.abandoned(tmp_path) == [half]
    assert locks.abandoned(tmp_path, remove=True) == [half]
    assert not half.exists()
