"""What a rotation does, and what it cannot do: the command and the web app say it in the same words."""

from __future__ import annotations

from pathlib import Path

from strongroom.cli import account

TEXTS = Path(__file__).parents[2] / "web/src/texts/en.ts"


def test_the_command_and_the_app_say_the_same_of_a_rotation() -> None:
    """Word for word."""
    texts = TEXTS.read_text("utf-8")
    for sentence in (account._DOES, account._CANNOT, account._PASSKEYS, account._DEVICES):
        assert f'"{sentence}"' in texts
