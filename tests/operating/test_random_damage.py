"""Random damage to the file and its log: refused or told of; never a document that is missing without a word.

What cannot be known without a checksum of its own: a changed letter within a value. SQLite has none, the server cannot
read what it keeps, and a client notices when it opens it. Such a trial counts as "a client notices". A log that is
damaged within its last transaction, after a loss of power that has taken the index of the log with it, looks like an
unfinished transaction; these trials kill the process and leave the index where it is.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.faults.damaged_files import FRAME, Service, frames
from tests.kit.samples import rounds
from tests.kit.waiting import until

TRIALS = rounds(12, 200)
BLOCKS = rounds(1, 4)
DAMAGED_BYTES = 500  # at the most, where not a whole page is
PLACES = (
    "file: its header",
    "file: a page overwritten",
    "file: bytes of a page",
    "file: cut off",
    "file: a page of zeros",
    "file: an index",
    "log: its head",
    "log: a frame",
    "log: bytes of a frame",
    "log: its tail",
    "log: cut off",
    "file, under load: pages",
    "file and log, under load: bytes",
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Service:
    service = Service(tmp_path_factory.mktemp("template") / "home")
    service.start()
    service.write(300, random.Random(1), 900)  # noqa: S311
    assert service.server.end() == 0
    return service


@pytest.fixture
def service(template: Service, tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "home")
    one.vault, one.token = template.vault, template.token
    yield one
    one.server.abandon()


def damage(service: Service, place: str, chance: random.Random) -> None:
    """One kind of damage, somewhere."""
    database, log = service.database, service.log
    pages = database.stat().st_size // 4096
    count = frames(log) if log.exists() else 0
    page = chance.randrange(1, pages) * 4096
    frame = 32 + chance.randrange(max(count, 1)) * FRAME
    some = chance.choice((1, 2, 16, DAMAGED_BYTES))
    match place:
        case "file: its header":
            _write(database, chance.randrange(0, 100), chance.randbytes(some))
        case "file: a page overwritten":
            _write(database, page, chance.randbytes(4096))
        case "file: bytes of a page":
            _write(database, page + chance.randrange(4096 - some), chance.randbytes(some))
        case "file: cut off":
            os.truncate(database, chance.randrange(pages // 2, pages) * 4096 + chance.choice((0, 700)))
        case "file: a page of zeros":
            _write(database, page, bytes(4096))
        case "file: an index":
            _write(database, chance.choice(_indexes(service)) + chance.randrange(4000), chance.randbytes(some))
        case "log: its head":
            _write(log, chance.randrange(0, 32), chance.randbytes(some))
        case "log: a frame":
            _write(log, frame, chance.randbytes(FRAME))
        case "log: bytes of a frame":
            _write(log, frame + chance.randrange(FRAME - some), chance.randbytes(some))
        case "log: its tail":
            _write(log, 32 + (count - 1) * FRAME + chance.randrange(FRAME - some), chance.randbytes(some))
        case "log: cut off":
            os.truncate(log, chance.randrange(33, log.stat().st_size))
        case "file, under load: pages":
            for _ in range(5):
                _write(database, chance.randrange(1, pages) * 4096, chance.randbytes(4096))
        case _:
            _write(database, page + chance.randrange(4000), chance.randbytes(some))
            _write(log, frame + chance.randrange(4000), chance.randbytes(some))


def _write(path: Path, offset: int, content: bytes) -> None:
    with path.open("rb+") as file:
        file.seek(offset)
        file.write(content)


def _indexes(service: Service) -> list[int]:
    """Where the pages of indexes begin."""
    whole = service.database.read_bytes()
    return [offset for offset in range(4096, len(whole), 4096) if whole[offset] in {0x02, 0x0A}]


class Load:
    """Somebody who writes and reads while the damage is done."""

    def __init__(self, service: Service, chance: random.Random) -> None:
        self._service, self._chance = service, chance
        self._thread = threading.Thread(target=self._run)
        self._stop = threading.Event()

    def __enter__(self) -> None:
        self._thread.start()
        before = len(self._service.acknowledged)
        until(lambda: len(self._service.acknowledged) > before + 3, "a few writes")

    def __exit__(self, *_: object) -> None:
        self._stop.wait(0.3)
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._service.write(1, self._chance)
                self._service.stored()
            except (AssertionError, httpx2.HTTPError, OSError):  # refused, or the server has stopped
                if self._service.server.process.poll() is not None:
                    return


def play(template: Service, service: Service, trial: int) -> str:
    """One trial; what came of it."""
    chance = random.Random(f"trial {trial}")  # noqa: S311
    place = PLACES[trial % len(PLACES)]
    home = service.server.home
    for path in home.iterdir():
        path.unlink()
    shutil.copy(template.database, service.database)
    service.acknowledged, service.sent = dict(template.acknowledged), dict(template.sent)
    service.server.start()
    epoch = service.epoch()
    service.write(chance.randint(5, 25), chance)
    if "under load" in place:
        with Load(service, chance):
            damage(service, place, chance)
        if service.server.process.poll() is None:
            service.kill()
        else:
            assert "is damaged" in service.server.log(), service.server.log()
    elif place.startswith("file") and trial % 2:
        assert service.server.end() == 0  # without a log, whose pages would cover those of the file
        damage(service, place, chance)
    else:
        service.kill()
        damage(service, place, chance)
    return judge(service, epoch, place)


def judge(service: Service, epoch: str, place: str) -> str:
    """Start again, read everything, and say whether something is missing without a word."""
    try:
        service.server.start()
    except AssertionError:
        said = service.server.log()
        assert service.server.process.wait(20) == 2, said
        assert said.startswith("strongroom: "), said
        assert "Traceback" not in said, said
        return "refused, with a sentence"
    held = read(service)
    if held is None:
        assert service.server.process.wait(20) == 74
        assert "is damaged" in service.server.log()
        return "stopped, with a line"
    told = "was damaged" in service.server.log()
    assert told == (service.epoch() != epoch), service.server.log()
    missing = service.acknowledged.keys() - held.keys()
    named = {uid for uid in missing if f"uid {uid}" in service.server.log()}
    changed = {uid for uid in held if held[uid] != service.sent.get(uid)}
    service.server.end(signal.SIGKILL)
    if told:
        assert not changed or "file" in place, "what is left is as it was"
        for uid in changed:  # by the damage itself, and not because pages of two moments were put together
            assert _span(held[uid], service.sent[uid]) <= DAMAGED_BYTES, f"another content of {uid}"
        return "told of: new epoch and a line" + (", and changed within a value" if changed else "")
    if changed:
        assert len(missing) <= len(changed), (missing, changed)
        return "changed within a value: a client notices"
    assert missing == named, f"missing without a word: {missing - named}"
    return "told of: a row by its name" if named else "everything is there"


def _span(one: str, other: str) -> int:
    """How far the first and the last letter that differ are apart; of texts of different lengths, the longer length."""
    if len(one) != len(other):
        return max(len(one), len(other))
    differ = [at for at, (here, there) in enumerate(zip(one, other, strict=True)) if here != there]
    return differ[-1] - differ[0] + 1


def read(service: Service) -> dict[str, str] | None:
    """What the server holds; None if it stops."""
    try:
        return service.stored()
    except (AssertionError, httpx2.HTTPError):
        if service.server.process.wait(20) is not None:
            return None
        raise


@pytest.mark.parametrize("block", range(BLOCKS))
def test_nothing_is_missing_without_a_word(
    template: Service, service: Service, block: int, record_property: Any
) -> None:
    """Every trial ends in one of the ways that are allowed."""
    outcomes: Counter[tuple[str, str]] = Counter()
    for trial in range(block, TRIALS, BLOCKS):
        try:
            outcomes[PLACES[trial % len(PLACES)], play(template, service, trial)] += 1
        except BaseException as error:
            error.add_note(f"trial {trial}: {PLACES[trial % len(PLACES)]}")
            raise
        service.server.abandon()
    for (place, outcome), count in sorted(outcomes.items()):
        record_property(place, f"{outcome}: {count}")
        print(f"{place:34} {outcome:58} {count}")  # noqa: T201
