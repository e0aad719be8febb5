"""The first day, every day and the bad day of docs/operating.md, typed in command for command on real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operating import guide_stories
from tests.operating.guide_stories import Begin
from tests.operating.installation import STORIES, Installation

ON_EACH_ENGINE = pytest.mark.parametrize("engine", ["sqlite", "postgres"])


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Makes installations, and leaves no server behind."""
    made: list[Installation] = []

    def new(engine: str, name: str = "home") -> Installation:
        made.append(Installation(tmp_path / name, engine))
        return made[-1]

    yield new
    for installation in made:
        installation.abandon()


@ON_EACH_ENGINE
def test_the_first_day_and_every_day(begin: Begin, engine: str) -> None:
    """A server that backs itself up, one who was invited, no stranger; a rehearsal beside it."""
    guide_stories.the_first_day_and_every_day(begin, engine)


@ON_EACH_ENGINE
def test_something_is_gone(begin: Begin, engine: str) -> None:
    """What was deleted after the backup is there again, under another epoch."""
    guide_stories.something_is_gone(begin, engine)


@ON_EACH_ENGINE
def test_the_secret_has_leaked(begin: Begin, engine: str) -> None:
    """Every token is worth nothing at once, keys and one-time codes go on; then one person's sessions and key end."""
    guide_stories.the_secret_has_leaked(begin, engine)


def test_the_disk_is_full(begin: Begin) -> None:
    """Writes are refused; with what lay beside the database gone, they are taken again, without a restart."""
    guide_stories.the_disk_is_full(begin)


def test_the_file_is_damaged(begin: Begin) -> None:
    """The server refuses it and says what to do, the doctor names it, the restore mends it and keeps the old file."""
    guide_stories.the_file_is_damaged(begin)


@ON_EACH_ENGINE
def test_the_owner_is_locked_out(begin: Begin, engine: str) -> None:
    """By wrong passwords, by a shut account, by a phone that is lost, by a password that is forgotten."""
    guide_stories.the_owner_is_locked_out(begin, engine)


@ON_EACH_ENGINE
def test_the_machine_is_gone(begin: Begin, engine: str) -> None:
    """On another machine, and on the other engine, with the old secret: sessions go on."""
    guide_stories.the_machine_is_gone(begin, engine)


def test_every_part_of_the_guide_is_run_here() -> None:
    """A story that is added to the bad day needs a test above, by its name."""
    tests = {name.removeprefix("test_").replace("_", " ") for name in globals() if name.startswith("test_")}
    assert {story.lower() for story in STORIES} <= tests
    assert len(STORIES) == 6
