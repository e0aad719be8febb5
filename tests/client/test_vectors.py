"""The vectors hold, can be made again, and are believed by a second implementation as well."""

from __future__ import annotations

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
from tests.support.rows import each_row
from tests.vectors import make
from tests.vectors.operations import OPERATIONS

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
    """No chapter is missing, hundreds of cases are refused, and no two of them are the same."""
    assert FILES.keys() == make.CHAPTERS.keys()
    assert {chapter["format"] for chapter in FILES.values()} == {1}
    refused = [json.dumps([case["does"], case["given"]]) for _, _, case in CASES if "error" in case]
    assert len(refused) == len(set(refused)) >= 400
    assert {case["error"] for _, _, case in CASES if "error" in case} == {
        "tampered",
        "rolled_back",
        "weak_parameters",
        "validation_error",
    }
    assert {case["does"] for _, _, case in CASES} == OPERATIONS.keys()


def test_a_second_implementation_agrees() -> None:
    """A reader in JavaScript, written from the document, comes to the same outcome in every case."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js here")
    done = subprocess.run([node, str(FOLDER / "check.mjs")], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == f"{len(CASES)} as they should be, 0 not\n"
    assert done.returncode == 0, done.stderr


def test_the_documents_example_is_from_the_vectors() -> None:
    """Every value in the example of docs/format.md is one of the vectors'."""
    section = FORMAT.read_text("utf-8").partition("## An example")[2].partition("\n## ")[0]
    unfolded = re.sub(r"\n {18}", "", section)
    shown = re.findall(r"^(\w[\w' ,]*?)  +(\S.*)$|^(\S{5,17}'s salt) (\S+)$", unfolded, re.MULTILINE)
    values = [value for _, value, _, other in shown for value in [value or other]]
    assert len(values) == 29
    texts = "".join(path.read_text("utf-8") for path in FOLDER.glob("*.json"))
    rows = [case["gives"]["data"] for case in FILES["sealing"]["cases"] if case["does"] == "seal-document"]
    bare = (
        texts
        + "".join(_hex(row) for row in rows)
        + _hex(FILES["derivation"]["cases"][0]["given"]["descriptor"]["salt"])
    )
    for value in values:
        assert value.split()[2 if value.endswith("zeros") else 0].strip(",") in bare, value


def _hex(base64: str) -> str:
    import base64 as codec

    return codec.b64decode(base64).hex()
