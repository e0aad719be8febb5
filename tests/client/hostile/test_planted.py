"""The harness can fail: without a guard, the attacks that it stood against succeed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.hostile.attack import ATTACKS, Broken, play
from tests.client.hostile.chapters import CHAPTERS, PAGE
from tests.client.hostile.lying_proxy import Liar
from tests.client.hostile.planted import GUARDS
from tests.client.hostile.scenario import People, Stage
from tests.kit.clients.factory import PythonClientFactory
from tests.kit.samples import some

CASES = [
    (name, attack, on)
    for name, guard in GUARDS.items()
    for on, attacks in (("client", guard.client), ("replica", guard.replica))
    for attack in attacks
]


@pytest.mark.parametrize(("guard", "name", "on"), some("faults of a client against a server that lies", CASES))
def test_without_a_guard_an_attack_succeeds(
    hostile: PythonClientFactory,
    liar: Liar,
    people: People,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    guard: str,
    name: str,
    on: str,
) -> None:
    """What `test_attacks` would then say is red."""
    people.stay()
    people.leave()  # what was sealed with the guard in place does not open without it
    with monkeypatch.context() as patch:
        GUARDS[guard].away(patch)
        stage = Stage(hostile, liar, people, tmp_path, fresh=ATTACKS[name].fresh and on == "replica")
        caught: BaseException | None = None
        try:
            play(stage, ATTACKS[name], on=on)
        except Exception as failure:  # noqa: BLE001 - whatever turns the test red will do
            caught = failure
    liar.lie = None
    stage.close()
    print(f"{guard}: {caught!r}")  # noqa: T201 - what was seen, for who writes the page
    assert caught is not None, f"{name} does not need {guard}"
    assert isinstance(caught, Broken), repr(caught)


def test_each_guard_is_there_to_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are not taken today: a function that was renamed is noticed at once."""
    for guard in GUARDS.values():
        with monkeypatch.context() as patch:
            guard.away(patch)


def test_the_guards_are_listed() -> None:
    """Whoever reads the page learns which guards were taken away."""
    chapters = {path.stem for path in Path(__file__).parent.glob("on_*.py")}
    assert {chapter.__name__.rpartition(".")[2] for chapter in CHAPTERS} == chapters
    text = PAGE.read_text("utf-8")
    assert [guard for guard in GUARDS if f"| {guard} |" not in text] == []
    assert {attack for _, attack, _ in CASES} <= set(ATTACKS)
