"""The harder cases of a damaged log: a file that is ahead of it, a log that is gone, old frames behind a torn one."""

from __future__ import annotations

import base64
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from tests.kit.faults.damaged_files import FRAME, Service, flip, frames
from tests.kit.faults.damaged_log import commit_frames, damage_reports, epoch_in_file, kept_logs

CHANCE = random.Random(13)  # noqa: S311


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A service with documents in its file."""
    one = Service(tmp_path_factory.mktemp("template") / "home", HISTORY_VERSIONS="0")
    one.start()
    one.write(20, CHANCE)
    assert one.server.end() == 0
    return one


@pytest.fixture
def service(template: Service, tmp_path: Path) -> Iterator[Service]:
    """The same, which runs."""
    one = template.copy(tmp_path / "home")
    one.server.start()
    yield one
    one.server.abandon()


def replace(service: Service, times: int) -> None:
    """Replace the content of one document again and again; the last one that was answered is acknowledged."""
    uid = next(iter(service.acknowledged))
    with service.server.connect() as http:
        for version in range(1, times + 1):
            data = base64.b64encode(CHANCE.randbytes(300)).decode()
            body = {"data": data, "version": version}
            done = http.put(f"/vaults/{service.vault}/documents/{uid}", json=body, headers=service.bearer)
            assert done.status_code == 200, done.text
            service.acknowledged[uid] = data


def checkpoint(service: Service) -> None:
    """Copy the log into the file, as SQLite does, and leave the log as it is."""
    connection = apsw.Connection(str(service.database))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.execute("SELECT 1 FROM lineage").fetchall()
    logged, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    assert logged == copied > 0
    connection.close()


def index_of(service: Service) -> Path:
    return service.server.home / "vault.db-shm"


# The file is ahead of its log.


@pytest.mark.parametrize("also_the_last", [False, True])
def test_old_frames_are_not_put_over_newer_pages(service: Service, also_the_last: bool) -> None:  # noqa: FBT001
    """The whole log was copied into the file, and the index that would tell so is gone: the file needs no log.

    The readable part of the log is a sound database by itself, only an older one. If the last frame is damaged too,
    the file has a page that no readable frame has; the others show that it is a later one.
    """
    replace(service, 30)
    service.kill()
    old_epoch = epoch_in_file(service)
    checkpoint(service)
    index_of(service).unlink()
    flip(service.log, 32 + (commit_frames(service.log)[10] - 1) * FRAME + 700)
    if also_the_last:
        flip(service.log, 32 + (frames(service.log) - 1) * FRAME + 700)
    service.server.start()
    assert service.stored() == service.acknowledged
    assert len(damage_reports(service)) == 2
    assert service.epoch() != old_epoch


def test_a_file_that_is_not_ahead_goes_on_with_its_log(service: Service) -> None:
    """What the readable part of the log has is taken: the file alone would be older."""
    replace(service, 30)
    service.write(5, CHANCE)
    service.kill()
    index_of(service).unlink()
    flip(service.log, 32 + (commit_frames(service.log)[-3] - 1) * FRAME + 700)
    service.server.start()
    assert service.stored() == dict(list(service.acknowledged.items())[:-3])
    assert len(damage_reports(service)) == 2


# The log is gone, and its index says that it held something.

GONE: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda log: os.truncate(log, 0),
    "cut within its header": lambda log: os.truncate(log, 20),
    "zeroed": lambda log: log.write_bytes(bytes(log.stat().st_size)),
    "zeroed and cut": lambda log: log.write_bytes(bytes(32)),
}


@pytest.mark.parametrize("how", GONE)
def test_a_log_that_is_gone_is_told_of(service: Service, how: str) -> None:
    """With how many frames there had been; clients learn by a new epoch. Commands refuse until a server has told it."""
    before = len(service.acknowledged)
    service.write(40, CHANCE)  # the first of them may be folded into the file, as a start does
    service.kill()
    count, old_epoch = frames(service.log), epoch_in_file(service)
    GONE[how](service.log)
    refused = service.command("users", "list")
    assert (refused.returncode, f"0 of {count} frames" in refused.stderr) == (2, True), refused.stderr
    service.server.start()
    assert len(damage_reports(service)) == 2
    assert f"0 of {count} frames" in damage_reports(service)[0]
    assert service.epoch() != old_epoch
    held = service.stored()
    assert list(held.items()) == list(service.acknowledged.items())[: len(held)]
    assert before <= len(held) < len(service.acknowledged)
    new_epoch = service.epoch()
    service.kill()
    service.server.start()
    assert (service.epoch(), damage_reports(service)) == (new_epoch, [])


@pytest.mark.parametrize("how", GONE)
def test_a_log_that_had_been_copied_may_go(service: Service, how: str) -> None:
    """The file has everything, so nothing is said."""
    service.write(40, CHANCE)
    service.kill()
    checkpoint(service)
    old_epoch = epoch_in_file(service)
    GONE[how](service.log)
    service.server.start()
    assert (damage_reports(service), kept_logs(service), service.epoch()) == ([], [], old_epoch)
    assert service.stored() == service.acknowledged


def test_a_zeroed_log_is_told_of_without_an_index_too(service: Service) -> None:
    """Its header is on the disk before its first frame, so a file that is longer held one."""
    service.write(40, CHANCE)
    service.kill()
    old_epoch = epoch_in_file(service)
    index_of(service).unlink()
    service.log.write_bytes(bytes(service.log.stat().st_size))
    service.server.start()
    assert len(damage_reports(service)) == 2
    assert service.epoch() != old_epoch


# Old frames behind a torn commit.


def _spill(connection: apsw.Connection) -> None:
    """Have a transaction that is larger than the cache write frames, and take it back."""
    connection.execute("PRAGMA cache_size = 5").fetchall()
    connection.execute("BEGIN")
    for number in range(200):
        connection.execute("INSERT INTO failures VALUES (?, hex(randomblob(600)), 1)", (f"spilled {number}",))


def _take_files(service: Service) -> dict[str, bytes]:
    """The files as they are while somebody has them open."""
    return {suffix: Path(f"{service.database}{suffix}").read_bytes() for suffix in ("", "-wal", "-shm")}


def _lay_files(service: Service, files: dict[str, bytes]) -> None:
    for suffix, content in files.items():
        Path(f"{service.database}{suffix}").write_bytes(content)


def _writer(service: Service) -> apsw.Connection:
    connection = apsw.Connection(str(service.database))
    connection.wal_autocheckpoint(0)
    connection.execute("PRAGMA synchronous = FULL").fetchall()
    return connection


def _unchanged(service: Service, old_epoch: str) -> None:
    """Start, and see that nothing is told, and nothing is missing."""
    service.server.start()
    assert (damage_reports(service), kept_logs(service), service.epoch()) == ([], [], old_epoch)
    assert service.stored() == service.acknowledged
    assert service.server.end() == 0


def test_a_kill_within_a_large_transaction_is_no_damage(service: Service) -> None:
    """Frames of the current generation lie behind the last commit, and belong to none; with the index and without."""
    service.write(40, CHANCE)
    service.kill()
    old_epoch = epoch_in_file(service)
    connection = _writer(service)
    connection.execute("UPDATE lineage SET probed_at = 1")
    committed = frames(service.log)
    _spill(connection)
    files = _take_files(service)
    connection.close(force=True)
    for with_index in (True, False):
        _lay_files(service, files)
        assert frames(service.log) > committed + 50
        if not with_index:
            index_of(service).unlink()
        _unchanged(service, old_epoch)


@pytest.mark.parametrize("torn", ["content of the commit", "the commit is missing", "half of a frame"])
def test_frames_that_were_taken_back_behind_a_torn_commit_are_no_damage(service: Service, torn: str) -> None:
    """A large transaction was taken back, and the next, smaller one was torn by a loss of power, which nobody saw."""
    service.write(40, CHANCE)
    service.kill()
    old_epoch = epoch_in_file(service)
    connection = _writer(service)
    connection.execute("UPDATE lineage SET probed_at = 1")
    before = commit_frames(service.log)[-1]
    _spill(connection)
    connection.execute("ROLLBACK")
    spilled = frames(service.log)
    connection.execute("UPDATE lineage SET probed_at = 2")
    files = _take_files(service)
    connection.close()
    _lay_files(service, files)
    index_of(service).unlink()
    last = commit_frames(service.log)[-1]
    assert before < last < spilled - 50, "frames of the large one lie behind the small one"
    begin = 32 + (last - 1) * FRAME
    if torn == "content of the commit":
        flip(service.log, begin + 700, 500)
    else:
        with service.log.open("rb+") as log:
            log.seek(begin)
            log.write(bytes(FRAME if torn == "the commit is missing" else FRAME // 2))
    _unchanged(service, old_epoch)


def test_frames_of_an_earlier_round_behind_a_torn_commit_are_no_damage(service: Service) -> None:
    """The log began again at its beginning; behind the torn commit lie commits of before, each followed by the next."""
    service.write(30, CHANCE)
    service.kill()
    old_epoch = epoch_in_file(service)
    connection = _writer(service)
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    earlier = frames(service.log)
    for number in range(3):
        connection.execute("UPDATE lineage SET probed_at = ?", (number,))
    files = _take_files(service)
    connection.close()
    _lay_files(service, files)
    index_of(service).unlink()
    last = commit_frames(service.log)[-1]
    assert 1 < last < earlier - 50
    flip(service.log, 32 + (last - 1) * FRAME + 700, 500)
    _unchanged(service, old_epoch)


# What else meets a damaged log.

_KILLED_RECOVERY = """
import os, signal, sys
from pathlib import Path
from strongroom.store.sqlite import log_recovery
log_recovery._sound_state = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
log_recovery.recover(Path(sys.argv[1]), 1_700_000_000_000)
"""


def test_a_restore_after_a_recovery_that_was_killed(service: Service) -> None:
    """The log that was set aside belongs to what is replaced: the restored service is not taken for a damaged one."""
    assert service.command("backup", "one").returncode == 0
    before = dict(service.acknowledged)
    service.write(20, CHANCE)
    service.kill()
    flip(service.log, 32 + frames(service.log) // 2 * FRAME + 700)
    damaged = service.log.read_bytes()
    ended = subprocess.run([sys.executable, "-c", _KILLED_RECOVERY, str(service.database)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert [path.suffix for path in kept_logs(service)] == [".pending"]
    done = service.command("restore", "one")
    assert done.returncode == 0, done.stderr
    [aside] = kept_logs(service)
    assert aside.suffix != ".pending"
    assert aside.read_bytes() == damaged
    service.server.start()
    epoch = service.epoch()
    assert (damage_reports(service), service.stored()) == ([], before)
    service.kill()
    service.server.start()
    assert (damage_reports(service), service.epoch(), kept_logs(service)) == ([], epoch, [aside])


def test_a_new_epoch_is_refused_on_a_damaged_log(service: Service) -> None:
    """It would fold what can be read, and nobody would be told what is missing. Nothing is changed."""
    service.write(20, CHANCE)
    service.kill()
    flip(service.log, 32 + frames(service.log) // 2 * FRAME + 700)
    before = _take_files(service)
    refused = service.command("db", "new-epoch", "--yes")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert "is damaged" in refused.stderr
    assert _take_files(service) == before
    service.server.start()
    assert len(damage_reports(service)) == 2
    assert service.server.end() == 0
    assert service.command("db", "new-epoch", "--yes").returncode == 0


def test_a_new_epoch_of_a_killed_server_loses_nothing(service: Service) -> None:
    """Its log is whole."""
    service.write(40, CHANCE)
    service.kill()
    old_epoch = epoch_in_file(service)
    assert service.command("db", "new-epoch", "--yes").returncode == 0
    service.server.start()
    assert (damage_reports(service), service.stored()) == ([], service.acknowledged)
    assert service.epoch() != old_epoch
