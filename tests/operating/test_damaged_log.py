"""A damaged write-ahead log is kept aside, told of, and followed by a new epoch; an unfinished one is not damaged."""

from __future__ import annotations

import math
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from strongroom.store.sqlite import log_recovery, write_ahead_log
from tests.kit.faults.damaged_files import FRAME, Service, doctor, flip, frames
from tests.kit.faults.damaged_log import commit_frames, damage_reports, epoch_in_file, kept_logs
from tests.kit.waiting import until

CHANCE = random.Random(11)  # noqa: S311


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A service with documents in its file and in its log, killed."""
    one = Service(tmp_path_factory.mktemp("template") / "home")
    one.start()
    one.write(60, CHANCE)
    assert one.server.end() == 0
    one.server.start()
    one.write(80, CHANCE)
    one.kill()
    return one


@pytest.fixture
def service(template: Service, tmp_path: Path) -> Iterator[Service]:
    """The same, in a folder of its own."""
    one = template.copy(tmp_path / "home")
    yield one
    one.server.abandon()


WHERE = {  # a frame, as a share of all, and a byte in it; 0 for the header of the log
    "the header's checksum": (0, 24),
    "the header's salts": (0, 17),
    "the first frame": (0.001, 500),
    "the header of a frame in the middle": (0.5, 9),
    "a page in the middle": (0.5, 2000),
    "the last transaction": (1, 2000),
}


def damage(service: Service, place: str) -> None:
    share, offset = WHERE[place]
    number = math.ceil(share * frames(service.log))
    flip(service.log, offset if number == 0 else 32 + (number - 1) * FRAME + offset)


@pytest.mark.parametrize(("workers", "place"), [*(("1", place) for place in WHERE), ("2", "a page in the middle")])
def test_a_damaged_log_is_told_of(service: Service, place: str, workers: str) -> None:
    """Kept with its bytes, a sentence and a line, a new epoch; what is left is a beginning of what was written."""
    old_epoch = epoch_in_file(service)
    damage(service, place)
    damaged = service.log.read_bytes()
    said = doctor(service.server.home)
    assert said.code == 1
    assert said.findings["log"][0] == "fault"
    assert "frames can be read" in said.findings["log"][1]
    service.server.settings["WORKERS"] = workers
    service.server.start()
    [aside] = kept_logs(service)
    assert aside.read_bytes() == damaged
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    assert len(damage_reports(service)) == 2, service.server.log()  # standard error, and the log, which goes there too
    assert str(aside) in damage_reports(service)[0]
    assert service.epoch() != old_epoch
    held = service.stored()
    assert list(held.items()) == list(service.acknowledged.items())[: len(held)]
    assert 60 <= len(held) < len(service.acknowledged)
    service.write(3, CHANCE)
    new_epoch = service.epoch()
    assert service.server.end() == 0
    service.server.start()
    assert (service.epoch(), len(kept_logs(service)), damage_reports(service)) == (new_epoch, 1, [])
    service.server.end()
    after = doctor(service.server.home)
    assert after.findings["integrity"][0] == "ok"
    assert after.findings["log"][0] == "warning"


def test_a_log_that_is_cut_off(service: Service) -> None:
    """The index that the killed server left says how much there was."""
    old_epoch = epoch_in_file(service)
    os.truncate(service.log, 32 + frames(service.log) // 2 * FRAME)
    service.server.start()
    assert len(damage_reports(service)) == 2
    assert service.epoch() != old_epoch


def test_an_unfinished_transaction_is_no_damage(service: Service) -> None:
    """After a loss of power the last transaction may be there in any part. Nothing is said, and nothing changes."""
    (service.server.home / "vault.db-shm").unlink()  # as after a loss of power, where it says nothing
    old_epoch = epoch_in_file(service)
    ends = commit_frames(service.log)
    last, before = ends[-1], ends[-2]
    whole = service.log.read_bytes()
    saved = service.server.home / "saved"
    shutil.copy(service.database, saved)
    assert last - before > 2
    torn = {
        "cut": whole[: 32 + before * FRAME + 700],
        "first frame missing": _zeroed(whole, before + 1),
        "last frame missing": _zeroed(whole, last),
        "a frame in the middle missing": _zeroed(whole, last - 1),
        "first half missing": whole[: 32 + before * FRAME] + bytes(2 * FRAME) + whole[32 + (before + 2) * FRAME :],
    }
    for name, content in torn.items():
        service.log.write_bytes(content)
        assert not write_ahead_log.inspect(service.database).damaged, name
        shutil.copy(saved, service.database)
    service.log.write_bytes(torn["a frame in the middle missing"])
    service.server.start()
    assert (damage_reports(service), kept_logs(service), service.epoch()) == ([], [], old_epoch)
    assert list(service.stored().items()) == list(service.acknowledged.items())[:-1]


def test_what_is_left_of_an_earlier_generation_is_no_damage(service: Service) -> None:
    """A log that begins again at its beginning leaves old frames behind the new ones."""
    service.server.start()
    service.server.end()
    connection = apsw.Connection(str(service.database))
    for statement in ("PRAGMA synchronous = FULL", "CREATE TABLE t (a)"):
        connection.execute(statement).fetchall()
    connection.wal_autocheckpoint(0)
    for _ in range(30):
        connection.execute("INSERT INTO t VALUES (randomblob(3000))")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    for _ in range(3):
        connection.execute("INSERT INTO t VALUES (randomblob(300))")
    copy = service.server.home / "copy.db"
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{service.database}{suffix}", f"{copy}{suffix}")
    connection.close()
    for with_index in (True, False):
        log = write_ahead_log.inspect(copy)
        assert not log.damaged
        assert 0 < log.readable == log.frames < frames(Path(f"{copy}-wal"))
        if with_index:
            Path(f"{copy}-shm").unlink()
    flip(Path(f"{copy}-wal"), 32 + 10)
    assert write_ahead_log.inspect(copy).damaged


@pytest.mark.parametrize("step", ["copied", "opened", "committed"])
def test_a_kill_in_the_middle_comes_to_the_same_end(service: Service, step: str) -> None:
    """Whichever step it was: one kept log, a new epoch, a server that runs."""
    old_epoch = epoch_in_file(service)
    damage(service, "the last transaction")
    damaged = service.log.read_bytes()
    code = f"""
import os, signal, sys
from pathlib import Path
from strongroom.store.sqlite import database_file, log_recovery
def die(*_args, **_more): os.kill(os.getpid(), signal.SIGKILL)
if {step!r} == "copied": log_recovery._sound_state = die
if {step!r} == "opened":
    connect = database_file.connect
    def opened(path):
        connection = connect(path)
        connection.execute("SELECT count(*) FROM users").fetchall()
        die()
    database_file.connect = opened
if {step!r} == "committed":
    log_recovery.database_file.sync_folder = lambda folder, n=[]: n.append(1) or len(n) > 1 and die()
log_recovery.recover(Path({str(service.database)!r}), 1_700_000_000_000)
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False)
    assert ended.returncode == -signal.SIGKILL
    service.server.start()
    until(lambda: len(kept_logs(service)) == 1, "one kept log")
    assert kept_logs(service)[0].suffix != ".pending"
    assert kept_logs(service)[0].read_bytes() == damaged
    assert service.epoch() != old_epoch
    held = service.stored()
    assert list(held.items()) == list(service.acknowledged.items())[:-1]


def test_a_log_that_was_copied_further_than_it_can_be_read(service: Service) -> None:
    """Old pages of the log are not laid over newer ones of the file: what goes on holds together."""
    service.server.start()
    assert service.server.end() == 0
    writer, reader = apsw.Connection(str(service.database)), apsw.Connection(str(service.database))
    writer.execute("PRAGMA synchronous = FULL").fetchall()
    writer.wal_autocheckpoint(0)
    insert = "INSERT INTO failures VALUES (hex(randomblob(20)), hex(randomblob(500)), ?)"
    for number in range(100):
        writer.execute(insert, (number,))
    reader.execute("BEGIN").fetchall()
    reader.execute("SELECT count(*) FROM failures").fetchall()  # keeps the log from beginning anew
    writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    writer.execute("DELETE FROM failures WHERE failed_at < 50")
    for number in range(100, 150):
        writer.execute(insert, (number,))
    copy = service.server.home / "copy.db"
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{service.database}{suffix}", f"{copy}{suffix}")
    reader.close()
    writer.close()
    log = write_ahead_log.inspect(copy)
    assert not log.damaged
    assert log.copied is not None
    assert log.copied > 100
    flip(Path(f"{copy}-wal"), 32 + 100 * FRAME + 700)
    assert "was damaged" in str(log_recovery.recover(copy, 1_700_000_000_000))
    left = apsw.Connection(str(copy))
    assert left.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert left.execute("SELECT count(*), max(failed_at) FROM failures").fetchall() == [(100, 99)]
    left.close()


def test_a_log_without_which_there_is_nothing(service: Service) -> None:
    """Where nothing is sound without the log, no empty service takes its place, and nothing is changed."""
    flip(service.log, 8)
    os.truncate(service.database, 0)
    before = service.log.read_bytes(), service.database.read_bytes()
    ended = service.command("serve", "--port", "0")
    assert ended.returncode == 2
    assert "salvage" in ended.stderr
    assert (service.log.read_bytes(), service.database.read_bytes()) == before
    assert kept_logs(service) == []


def _zeroed(whole: bytes, number: int) -> bytes:
    begin = 32 + (number - 1) * FRAME
    return whole[:begin] + bytes(FRAME) + whole[begin + FRAME :]
