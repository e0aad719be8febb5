"""The vectors hold, can be made again, and are believed by a second implementation as well."""

from __future__ import annotations

import base64
import functools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from strongroom.client.format import primitives
from strongroom.errors import Refusal
from tests.kit.requirements import skip_or_fail
from tests.kit.rows import each_row
from tests.vectors import make
from tests.vectors.operations import OPERATIONS, READERS, WRITERS

pytestmark = pytest.mark.production_hashing

FOLDER = Path(make.__file__).parent
FORMAT = FOLDER.parent.parent / "docs" / "format.md"
FILES = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
CASES = [(name, at, case) for name, chapter in FILES.items() for at, case in enumerate(chapter["cases"])]


_cached = functools.cache(functools.cache)


@pytest.fixture(autouse=True)
def _derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tests derive the same keys, at the cost of production: what Argon2id gave once is not asked for again."""
    monkeypatch.setattr(primitives, "argon2id", _cached(primitives.argon2id))


@pytest.mark.parametrize("name", FILES)
def test_the_vectors_hold(name: str) -> None:
    """Each case gives what it says that it gives, or is refused as it says."""

    @each_row("case", FILES[name]["cases"])
    def holds(case: dict[str, Any]) -> None:
        run = OPERATIONS[case["does"]]
        if "error" not in case:
            assert run(case["given"]) == case["gives"]
            return
        with pytest.raises(Refusal) as caught:
            run(case["given"])
        assert caught.value.code == case["error"]

    holds()


@pytest.mark.parametrize("name", make.CHAPTERS)
def test_the_files_are_made_by_the_script(name: str) -> None:
    """What `python -m tests.vectors.make` writes is what is there, byte for byte."""
    assert make.spelled(make.CHAPTERS[name]()) == (FOLDER / f"{name}.json").read_text("utf-8")


def test_there_are_enough() -> None:
    """No chapter is missing, no two refused cases are the same, and each reader refuses at least fifty of its own."""
    assert FILES.keys() == make.CHAPTERS.keys()
    assert {chapter["format"] for chapter in FILES.values()} == {2}
    refused = [case for _, _, case in CASES if "error" in case]
    assert len({json.dumps([case["does"], case["given"]]) for case in refused}) == len(refused)
    for reader, operations in READERS.items():
        assert sum(case["does"] in operations for case in refused) >= 50, reader
        assert any(case["does"] in operations for _, _, case in CASES if "gives" in case), reader
    assert {case["error"] for case in refused} == {
        "tampered",
        "rolled_back",
        "weak_parameters",
        "validation_error",
        "locked",
        "unsupported",
    }
    assert {case["does"] for _, _, case in CASES} == OPERATIONS.keys()
    assert {case["does"] for _, _, case in CASES if "gives" in case} >= WRITERS


def test_a_second_implementation_agrees() -> None:
    """Readers and writers in JavaScript, written from the page, come to the same outcome in every case."""
    node = shutil.which("node")
    if node is None:
        skip_or_fail("There is no Node.js here.")
    done = subprocess.run([node, str(FOLDER / "check.mjs")], capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == f"{len(CASES)} as they should be, 0 not\n"
    assert done.returncode == 0, done.stderr


def test_the_pages_example_is_from_the_vectors() -> None:
    """Every value in the example of docs/format.md is one of the vectors'."""
    section = FORMAT.read_text("utf-8").partition("## An example")[2].partition("\n## ")[0]
    blocks = re.findall(r"```text\n(.*?)\n```", section, re.DOTALL)
    values = [line[18:].strip() for block in blocks for line in re.sub(r"\n {18}", "", block).split("\n")]
    assert len(values) == 55
    ring = FILES["keyrings"]["cases"][0]
    spelled = [
        FILES["sealing"]["cases"][0]["gives"]["data"],
        ring["gives"]["keyring"],
        ring["given"]["body"]["slots"][0]["associated"],
        FILES["derivation"]["cases"][0]["given"]["descriptor"]["salt"],
    ]
    texts = [path.read_text("utf-8") for path in FOLDER.glob("*.json")]
    bare = " ".join([*texts, *(base64.b64decode(text).hex() for text in spelled)])
    for value in values:
        assert value.split()[2 if value.endswith("zeros") else 0].strip(",") in bare, value
