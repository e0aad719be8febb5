"""The mutation runner and the measured run that it chooses tests by: `python -m tests.mutation`, `make coverage`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coverage.__main__ import ROOT, measure, table
from tests.mutation import sql
from tests.mutation.__main__ import SOURCE, stale_reasons
from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.runner import Overlay
from tests.mutation.selection import Choice

_GUARDED = '''
"""A module with more than 1 guard."""
from typing import TYPE_CHECKING, Annotated
if TYPE_CHECKING:
    LEAST = 0 < 1
LIMIT: Annotated[int, 7] = 3
class Refused(Exception):
    def __repr__(self):
        return "Refused" if 1 < 2 else ""
def check(owner: str, asked: Annotated[str, 9]) -> bool:
    """Whether 5 < 6."""
    if owner != asked:
        raise Refused("not 4 you")
    return len(asked) < LIMIT
'''
_TESTS = """
import pytest
from planted.guarded import Refused, check
def test_own():
    assert check("me", "me")
    assert not check("you", "you")
def test_foreign():
    with pytest.raises(Refused):
        check("me", "no")
"""


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder of sources with one module, and tests beside it."""
    (tmp_path / "src" / "planted").mkdir(parents=True)
    (tmp_path / "src" / "planted" / "guarded.py").write_text(_GUARDED)
    (tmp_path / "test_planted.py").write_text(_TESTS)
    return tmp_path


def _mutants(planted: Path) -> list[Mutant]:
    return mutants_of(planted / "src" / "planted" / "guarded.py", planted / "src")


def test_what_is_changed_and_what_is_left_alone(planted: Path) -> None:
    """Guards, comparisons, numbers and results; no annotation, docstring, message, `__repr__` or TYPE_CHECKING."""
    found = {(mutant.kind, mutant.before, mutant.after, mutant.guard) for mutant in _mutants(planted)}
    assert found == {
        ("number", "3", "4", False),
        ("number", "3", "2", False),
        ("comparison", "owner != asked", "owner == asked", True),
        ("raise removed", 'raise Refused("not 4 you")', "pass", True),
        ("value returned", "len(asked) < LIMIT", "True", False),
        ("value returned", "len(asked) < LIMIT", "False", False),
        ("comparison", "len(asked) < LIMIT", "len(asked) <= LIMIT", False),
    }


def test_ids_stay_when_other_lines_change(planted: Path) -> None:
    """A written reason holds for its mutant, wherever its line moves."""
    before = {mutant.id for mutant in _mutants(planted)}
    path = planted / "src" / "planted" / "guarded.py"
    path.write_text("import os\n\n" + path.read_text())
    assert {mutant.id for mutant in _mutants(planted)} == before
    assert len(before) == 7


def test_a_mutant_is_killed_by_the_test_of_its_guard_alone(planted: Path) -> None:
    """Without that test it survives; the sources stay as they are."""
    (removed,) = [mutant for mutant in _mutants(planted) if mutant.kind == "raise removed"]
    with Overlay(planted / "src", planted) as overlay:
        assert overlay.run(removed, ["test_planted.py::test_own"], 120).what == "survived"
        outcome = overlay.run(removed, ["test_planted.py"], 120)
        assert (outcome.what, outcome.by) == ("killed", "test_planted.py::test_foreign")
        assert overlay.tests(["test_planted.py"], 120).what == "survived"
    assert (planted / "src" / "planted" / "guarded.py").read_text() == _GUARDED


def test_an_endless_mutant_is_ended(planted: Path) -> None:
    """With every process that its tests have started."""
    (planted / "test_planted.py").write_text("import time\ndef test_own():\n    time.sleep(600)\n")
    with Overlay(planted / "src", planted) as overlay:
        assert overlay.run(_mutants(planted)[0], ["test_planted.py"], 2).what == "timeout"


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (
            '"SELECT a FROM b WHERE owner = :owner AND n < :n ORDER BY n LIMIT :limit"',
            [
                ("owner = :owner", "(owner = :owner OR TRUE)"),
                ("n < :n", "(n < :n OR TRUE)"),
                ("<", "<="),
                (" LIMIT :limit", ""),
            ],
        ),
        (
            """f"UPDATE a SET b = 1 WHERE c || '' = :c AND {_OF} AND d IN (SELECT e FROM f)\"""",
            [
                ("c || '' = :c", "(c || '' = :c OR TRUE)"),
                ("{_OF}", "({_OF} OR TRUE)"),
                ("d IN (SELECT e FROM f)", "(d IN (SELECT e FROM f) OR TRUE)"),
            ],
        ),
        (
            """f"SELECT a FROM b WHERE c = :c{' AND d >= :d' if d else ''}{more}\"""",
            [("c = :c", "(c = :c OR TRUE)"), ("d >= :d", "(d >= :d OR TRUE)"), (">=", ">")],
        ),
        ('"SELECT a FROM b WHERE c BETWEEN :d AND :e"', [("c BETWEEN :d AND :e", "(c BETWEEN :d AND :e OR TRUE)")]),
    ],
)
def test_changes_of_a_statement(literal: str, expected: list[tuple[str, str]]) -> None:
    """A condition always holds, a bound moves, a limit goes; nothing else of the statement changes."""
    assert [(literal[start:end], after) for _, start, end, after in sql.changes(literal)] == expected


def test_tests_are_chosen_by_what_they_ran(tmp_path: Path) -> None:
    """In their own process and in those that they start; what runs once only is its users' matter."""
    version, uids = "tests/cli/test_cli.py::test_version", "tests/test_identifiers.py"
    assert measure([version, uids, "-p", "no:cacheprovider"], tmp_path) == 0
    choice = Choice(tmp_path, ROOT / "src")

    def chosen(path: str, kind: str, part: str) -> set[str]:
        found = mutants_of(ROOT / "src" / "strongroom" / path, ROOT / "src")
        mutant = next(one for one in found if one.kind == kind and part in one.before)
        return {test.partition("[")[0] for test in choice.tests_for(mutant, 10, 100)}

    assert chosen("cli/commands.py", "call removed", "parser.exit") == {version}
    assert chosen("identifiers.py", "value returned", "fullmatch") == {f"{uids}::test_one_spelling"}
    assert chosen("identifiers.py", "number", "16") == {
        f"{uids}::test_a_new_uid_is_a_uuid_of_version_7_and_carries_its_time",
        f"{uids}::test_uids_differ_and_sort_by_time",
    }
    assert chosen("store/queries/documents.py", "sql condition dropped", "user_id") == set()
    assert "| wire |" in table(tmp_path, ROOT / "src" / "strongroom" / "wire")


def test_a_reason_that_names_no_mutant_is_told(tmp_path: Path) -> None:
    """After a file was renamed or a line changed, its mutants have other ids."""
    path = SOURCE / "strongroom" / "actions" / "imports.py"
    known = mutants_of(path, SOURCE)[0].id
    reasons = tmp_path / "reasons.txt"
    reasons.write_text(f"# a comment\n{known} there is one\n00000000 there is none\n")
    assert stale_reasons(reasons) == ["00000000 there is none"]
