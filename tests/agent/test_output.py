"""Output that cannot be written, and characters that an encoding does not have: a sentence, or an escape."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.agent.person import STRONGROOM, Person
from tests.support.sampling import some

TITLE = "Gr\u00fc\u00dfe \u65e5\u672c \U0001f511"
FULL = "strongroom: The output cannot be written: No space left on device.\n"


@pytest.fixture(scope="module", autouse=True)
def _items(ada: Person) -> None:
    ada.add("GitHub", "hunter2")
    ada.add(TITLE, "p\u00e4ss")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        *(["get", "GitHub"], ["list"]),
        *some((["status", "--json"], ["get", "GitHub", "-n"], ["export", "-", "--yes"], ["generate"])),
        *some((["--version"], ["completion", "bash"], ["list", "--help"])),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_told(ada: Person, words: list[str]) -> None:
    """With the exit code 1, and in one sentence."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*STRONGROOM, *words], env=ada.environment(), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, FULL)


def test_an_encoding_without_some_characters(ada: Person) -> None:
    """Titles are shown with escapes, JSON stays JSON, and a value is in UTF-8 in any case."""

    def said(*words: str) -> bytes:
        env = ada.environment(PYTHONIOENCODING="latin-1")
        return subprocess.run([*STRONGROOM, *words], env=env, capture_output=True, check=True).stdout

    assert "Gr\u00fc\u00dfe \\u65e5\\u672c \\U0001f511".encode("latin-1") in said("list")
    titles = {one["title"] for one in json.loads(said("list", "--json").decode("ascii"))}
    assert titles == {"GitHub", TITLE}
    assert said("get", TITLE) == "p\u00e4ss\n".encode()
