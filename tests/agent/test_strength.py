"""What is said about a new master password: an upper bound that orders good and bad ones rightly."""

from __future__ import annotations

import pytest

from strongroom.cli.strength import FAIR, WEAK, bits, sentence


@pytest.mark.parametrize(
    "password",
    ["password", "Password1", "12345678901234567890", "aaaaaaaaaaaaaaaa", "abcdefghijklmnop", "hunter2", "qwerty123!"],
)
def test_weak_ones_are_called_weak(password: str) -> None:
    """Runs, repetitions and the words that everybody takes."""
    assert bits(password) < WEAK
    assert "weak" in sentence(password)
    assert password == "password" or password not in sentence(password)


@pytest.mark.parametrize(
    "password", ["kT9#vQ2!mZx7", "correct horse battery staple anvil meadow lantern", "x8Fq2LpWz0RtYb"]
)
def test_strong_ones_are_not(password: str) -> None:
    """Random characters, and six random words."""
    assert bits(password) >= FAIR
    assert "strong" in sentence(password)


def test_more_is_not_weaker() -> None:
    """Another random word, another random character."""
    assert bits("anvil meadow lantern cobalt") < bits("anvil meadow lantern cobalt ferry")
    assert bits("kT9#vQ2!") < bits("kT9#vQ2!m")
